//! The metrics of the server itself: one field per metric or group of metrics.
//!
//! `/metrics` returns them (`http/status.rs`), and `selfwatch.rs` stores them at an interval, by default every ten seconds.

mod access;
mod answers;
mod cache;
mod control;
mod decoders;
#[cfg(test)]
mod lint;
mod process;
pub mod registry;
mod store;
pub mod text;
mod tls;
mod upkeep;

pub use cache::CacheFigures;
use registry::{Collect, Counter, Family, Gauge, Histogram};

/// A new metric is a field, its value in `default`, and an element in `families`.
pub struct Metrics {
    /// `kind` is sample, entry or execution (one per call).
    pub records_received: Family<Counter, 2>,
    pub records_dropped: Family<Counter, 1>,
    /// `protocol` is native, remote-write, line or import.
    pub records_refused: Family<Counter, 1>,
    /// Bytes of the frames of agents after HELLO, and of HTTP bodies with records. Bodies in gzip are counted decompressed,
    /// others as received.
    pub received_bytes: Family<Counter, 1>,
    pub decoders: decoders::DecoderFigures,
    /// Number of temporary refusals (Retry-After or WAIT), for example because the memory for records or the disk was full.
    pub sender_waits: Family<Counter, 1>,
    /// `listener` is http or native.
    pub connections: Family<Gauge, 1>,
    pub connections_refused: Family<Counter, 2>,
    pub http_requests: Family<Counter, 2>,
    pub http_request_seconds: Family<Histogram, 1>,
    pub queries_running: Family<Gauge, 0>,
    pub queries_cancelled: Family<Counter, 0>,
    pub answers: answers::AnswerFigures,
    pub cache: CacheFigures,
    pub tls: tls::TlsFigures,
    pub access: access::AccessFigures,
    pub control: control::ControlFigures,
    store: store::StoreFigures,
    upkeep: upkeep::UpkeepFigures,
    process: process::Process,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            records_received: Family::new(
                "tacho_records_received_total",
                ["service", "kind"],
                "Records stored, without refused and repeated ones; a call counts as one execution.",
            ),
            records_dropped: Family::new(
                "tacho_records_dropped_total",
                ["service"],
                "Records dropped by agents, as they report it.",
            ),
            records_refused: Family::new(
                "tacho_records_refused_total",
                ["protocol"],
                "Records refused as malformed, over a limit, or outside of the selector of a token.",
            ),
            received_bytes: Family::new(
                "tacho_received_bytes_total",
                ["protocol"],
                "Bytes of frames and bodies with records; bodies in gzip are counted decompressed.",
            ),
            decoders: decoders::DecoderFigures::default(),
            sender_waits: Family::new(
                "tacho_sender_waits_total",
                ["protocol"],
                "Retry-After and WAIT responses to senders because the store or the memory for bodies and records was full, or \
                 because of the rate limit of a token.",
            ),
            connections: Family::new("tacho_connections", ["listener"], "Open connections."),
            connections_refused: Family::new(
                "tacho_connections_refused_total",
                ["listener", "reason"],
                "Connections refused or closed. Reasons at the limit: idle (closed for a new one), too-many (all are busy).",
            ),
            http_requests: Family::new(
                "tacho_http_requests_total",
                ["route", "status"],
                "HTTP requests answered.",
            ),
            http_request_seconds: Family::new(
                "tacho_http_request_seconds",
                ["route"],
                "Time to answer an HTTP request.",
            ),
            queries_running: Family::new(
                "tacho_queries_running",
                [],
                "PromQL queries, selections of series, searches of entries and analyses of executions in progress.",
            ),
            queries_cancelled: Family::new(
                "tacho_queries_cancelled_total",
                [],
                "PromQL queries, selections of series, searches of entries and analyses of executions that ended \
                 early, because the client disconnected or the time limit was reached.",
            ),
            answers: answers::AnswerFigures::default(),
            cache: CacheFigures::default(),
            tls: tls::TlsFigures::default(),
            access: access::AccessFigures::default(),
            control: control::ControlFigures::default(),
            store: store::StoreFigures::default(),
            upkeep: upkeep::UpkeepFigures::default(),
            process: process::Process::default(),
        }
    }
}

impl Metrics {
    /// All families, in the order of `/metrics`. Updates the figures of the operating system first.
    pub fn families(&self) -> Vec<&dyn Collect> {
        self.process.read();
        let own: [&dyn Collect; 11] = [
            &self.records_received,
            &self.records_dropped,
            &self.records_refused,
            &self.received_bytes,
            &self.sender_waits,
            &self.connections,
            &self.connections_refused,
            &self.http_requests,
            &self.http_request_seconds,
            &self.queries_running,
            &self.queries_cancelled,
        ];
        own.into_iter()
            .chain(self.decoders.families())
            .chain(self.answers.families())
            .chain(self.cache.families())
            .chain(self.tls.families())
            .chain(self.access.families())
            .chain(self.control.families())
            .chain(self.store.families())
            .chain(self.upkeep.families())
            .chain(self.process.families())
            .collect()
    }

    pub fn read_store(&self, store: &tacho_store::Store) {
        let stats = store.stats();
        self.store.read(&stats, &store.driver_health());
        self.upkeep.read(&stats.upkeep);
        self.cache.changes_joined.with([]).raise_to(store.changes().joined());
    }

    pub fn text(&self) -> String {
        text::render(self.families())
    }
}
