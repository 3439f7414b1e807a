//! The cost of a query: Prometheus' `stats`, and counts of the data read.

use std::time::{Duration, Instant};

use serde::Serialize;
use tacho_store::ReadReport;

use tacho_api::export::Thinned;
use tacho_api::json::float;

/// Prometheus has the fields `timings` (in seconds) and `samples`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    timings: Timings,
    samples: Samples,
    chunks: Chunks,
    values_decoded: u64,
    bytes_read: u64,
    /// Upper bound of the difference between a stored and a recorded time, ns.
    time_error_max: u64,
    /// Upper bound of the difference between a stored value and the recorded value or exact aggregate, in the unit of the
    /// value.
    #[serde(with = "float")]
    value_error_max: f64,
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
    /// Values that are replaced by the summary of their chunk do not count.
    total_queryable_samples: usize,
}

#[derive(Debug, Serialize)]
struct Chunks {
    seen: u64,
    skipped: u64,
    summarised: u64,
    decoded: u64,
}

/// The steps of a query. After a wait for the permit for heavy queries, the steps are repeated (`question.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Queue,
    /// Includes parsing.
    Read,
    Evaluate,
}

pub struct Watch {
    last: Instant,
    queue: Duration,
    read: Duration,
    evaluate: Duration,
}

impl Watch {
    pub fn start() -> Self {
        let none = Duration::ZERO;
        Self { last: Instant::now(), queue: none, read: none, evaluate: none }
    }

    /// Adds the time since the end of the previous step.
    pub fn ends(&mut self, step: Step) {
        let now = Instant::now();
        let sum = match step {
            Step::Queue => &mut self.queue,
            Step::Read => &mut self.read,
            Step::Evaluate => &mut self.evaluate,
        };
        *sum += now.saturating_duration_since(self.last);
        self.last = now;
    }

    pub fn stats(&self, samples: usize, report: &ReadReport) -> Stats {
        let worked = self.read + self.evaluate;
        Stats {
            timings: Timings {
                exec_queue_time: self.queue.as_secs_f64(),
                query_preparation_time: self.read.as_secs_f64(),
                inner_eval_time: self.evaluate.as_secs_f64(),
                eval_total_time: worked.as_secs_f64(),
                exec_total_time: (self.queue + worked).as_secs_f64(),
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
