//! The metrics of one connection of an agent. The counters are looked up once.

use tacho_ingest::wire::Ping;
use tacho_model::Kind;

use crate::metrics::Metrics;
use crate::metrics::registry::Counter;

const PROTOCOL: &str = "native";

pub(super) struct Counts {
    /// One counter per kind: samples, entries, executions.
    received: [Counter; 3],
    dropped: Counter,
    refused: Counter,
    bytes: Counter,
    waits: Counter,
}

impl Counts {
    pub(super) fn new(metrics: &Metrics, service: &str) -> Self {
        Self {
            received: Kind::ALL.map(|kind| metrics.records_received.with([service, kind.name()])),
            dropped: metrics.records_dropped.with([service]),
            refused: metrics.records_refused.with([PROTOCOL]),
            bytes: metrics.received_bytes.with([PROTOCOL]),
            waits: metrics.sender_waits.with([PROTOCOL]),
        }
    }

    /// Adds records that are on disk. `counts` has one number per kind.
    pub(super) fn received(&self, counts: impl IntoIterator<Item = usize>) {
        self.received.iter().zip(counts).for_each(|(counter, count)| counter.add(count as u64));
    }

    /// `added` are the records that the agent dropped since its last report.
    pub(super) fn dropped(&self, added: Ping) {
        self.dropped.add(added.executions_dropped);
        self.dropped.add(added.samples_dropped);
        self.dropped.add(added.entries_dropped);
    }

    pub(super) fn refused(&self, count: u64) {
        self.refused.add(count);
    }

    pub(super) fn frame(&self, bytes: usize) {
        self.bytes.add(bytes as u64);
    }

    pub(super) fn waited(&self) {
        self.waits.add(1);
    }
}
