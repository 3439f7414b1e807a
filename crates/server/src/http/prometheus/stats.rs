//! The cost of a query: Prometheus' `stats`, and counts of the data read.

use std::time::Instant;

use serde::Serialize;
use tacho_store::ReadReport;

use tacho_api::export::Thinned;
use tacho_api::json::float;

/// `timings` and `samples` are as in Prometheus; the other fields are our own. Times in seconds.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    timings: Timings,
    samples: Samples,
    chunks: Chunks,
    values_decoded: u64,
    bytes_read: u64,
    /// Maximum difference of a time from the recorded one, ns.
    time_error_max: u64,
    /// Maximum difference of a value from the recorded one, in its own unit; for downsampled values, from the aggregate that they
    /// represent.
    #[serde(with = "float")]
    value_error_max: f64,
    /// Present if there are downsampled values.
    #[serde(skip_serializing_if = "Option::is_none")]
    thinned: Option<Thinned>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Timings {
    exec_queue_time: f64,
    query_preparation_time: f64,
    inner_eval_time: f64,
    eval_total_time: f64,
    exec_total_time: f64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    /// Values read for the query, without those answered by summaries.
    total_queryable_samples: usize,
}

#[derive(Debug, Serialize)]
struct Chunks {
    seen: u64,
    skipped: u64,
    summarised: u64,
    decoded: u64,
}

/// Measures the time of each step of a query.
pub struct Watch {
    started: Instant,
    /// When the permit was granted, the samples were read, the result was computed.
    queued: Instant,
    read: Instant,
}

impl Watch {
    pub fn start() -> Self {
        let now = Instant::now();
        Self { started: now, queued: now, read: now }
    }

    pub fn queued(&mut self) {
        self.queued = Instant::now();
    }

    pub fn read(&mut self) {
        self.read = Instant::now();
    }

    /// The stats after evaluation.
    pub fn stats(&self, samples: usize, report: &ReadReport) -> Stats {
        let now = Instant::now();
        let seconds = |from: Instant, to: Instant| to.saturating_duration_since(from).as_secs_f64();
        Stats {
            timings: Timings {
                exec_queue_time: seconds(self.started, self.queued),
                query_preparation_time: seconds(self.queued, self.read),
                inner_eval_time: seconds(self.read, now),
                eval_total_time: seconds(self.queued, now),
                exec_total_time: seconds(self.started, now),
            },
            samples: Samples { total_queryable_samples: samples },
            chunks: Chunks {
                seen: report.chunks_seen,
                skipped: report.chunks_skipped,
                summarised: report.chunks_summarised,
                decoded: report.chunks_decoded,
            },
            values_decoded: report.values_decoded,
            bytes_read: report.bytes_read,
            time_error_max: report.time_error_max,
            value_error_max: report.value_error_max,
            thinned: report.thinned.map(Thinned::of),
        }
    }
}
