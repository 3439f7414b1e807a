//! How many records of a request does `tacho_records_received_total` count? Those that are on disk: refused and repeated
//! records do not count. They are counted by service and kind.
//!
//! Requests over HTTP may have records of several services. The records of agents are counted elsewhere (`listen/counts.rs`),
//! because a connection of an agent has one service.

use std::collections::HashMap;

use tacho_model::{Batch, Kind, Labels, Segment};
use tacho_store::Refused;

use crate::metrics::Metrics;

/// Numbers of records by service and kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received(HashMap<(String, Kind), u64>);

/// The service that a series belongs to.
fn service(labels: &Labels) -> &str {
    labels.get("service").or_else(|| labels.get("job")).unwrap_or("")
}

impl Received {
    /// Counts the records of a batch. `runs` are the lengths of runs of sample series, in the order of the batch. The series of
    /// a run have equal labels except for the name. The labels of a run are read once, because labels are spread over memory:
    /// with thousands of series per body, reading them is most of the cost.
    pub fn of(batch: &Batch, runs: impl IntoIterator<Item = usize>) -> Self {
        let mut counts: HashMap<(&str, Kind), u64> = HashMap::new();
        let mut add = |labels, kind, count: usize| {
            *counts.entry((service(labels), kind)).or_default() += count as u64;
        };
        let (mut left, mut runs) = (batch.samples.as_slice(), runs.into_iter());
        while let Some(first) = left.first()
            && let Some(run) = runs.next()
        {
            let (series, rest) = left.split_at(left.len().min(run));
            add(&first.labels, Kind::Sample, series.iter().map(|s| s.samples.len()).sum());
            left = rest;
        }
        for series in &batch.entries {
            add(&series.labels, Kind::Entry, series.entries.len());
        }
        for series in &batch.executions {
            let calls = series.segments.iter().map(Segment::calls_completed).sum();
            add(&series.labels, Kind::Execution, calls);
        }
        Self(counts.into_iter().map(|((service, kind), count)| ((service.to_owned(), kind), count)).collect())
    }

    /// Takes out the records that were refused.
    #[must_use]
    pub fn without(mut self, refused: &Refused) -> Self {
        for (kind, labels, records) in &refused.of_series {
            if let Some(count) = self.0.get_mut(&(service(labels).to_owned(), *kind)) {
                *count = count.saturating_sub(*records as u64);
            }
        }
        self
    }

    /// Adds the counts to the metric.
    pub fn add_to(self, metrics: &Metrics) {
        for ((service, kind), count) in self.0.into_iter().filter(|(_, count)| *count > 0) {
            metrics.records_received.with([&service, kind.name()]).add(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_ingest::line_protocol::{self, Precision};

    use super::*;

    fn labels(service: &str) -> Arc<Labels> {
        Arc::new(Labels::new([("__name__", "m_a"), ("service", service)]).unwrap())
    }

    #[test]
    fn records_are_counted_by_service_without_the_refused_ones() {
        let lines = b"m,service=x a=1,b=2\nm,service=x a=3\nm,job=y a=1\nm a=1,b=\"t\"\nm,service=y,z=1 a=1\nn,service=x a=1\n";
        let decoded = line_protocol::decode(lines, Precision::Nanoseconds, 0);
        let all = || Received::of(&decoded.batch, decoded.runs.iter().copied());
        let of = |counts: &Received, service: &str, kind| counts.0.get(&(service.to_owned(), kind)).copied();
        let samples = |counts: &Received| ["x", "y", ""].map(|service| of(counts, service, Kind::Sample));
        assert_eq!(samples(&all()), [Some(4), Some(2), Some(1)]);
        assert_eq!((of(&all(), "", Kind::Entry), all().0.len()), (Some(1), 4));
        assert_eq!(Received::of(&decoded.batch, std::iter::repeat(1)), all());
        let of_series = vec![(Kind::Sample, labels("x"), 3), (Kind::Entry, labels("x"), 3)];
        let left = all().without(&Refused { of_series, ..Refused::default() });
        assert_eq!(samples(&left), [Some(1), Some(2), Some(1)]);
    }
}
