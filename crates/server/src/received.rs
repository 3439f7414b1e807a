//! Counts the records of requests for `tacho_records_received_total`, by service and kind. Only records on disk count: refused
//! and repeated records do not.
//!
//! Requests over HTTP may have records of several services. An agent's connection has one service, so `listen/counts.rs` counts
//! its records.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tacho_model::{Batch, Kind, KnownSamples, Labels, Segment, Spelling};
use tacho_store::{Learned, Refused};

use crate::metrics::Metrics;

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Received(HashMap<(String, Kind), u64>);

fn service(labels: &Labels) -> &str {
    labels.get("service").or_else(|| labels.get("job")).unwrap_or("")
}

impl Received {
    /// Counts the records of a batch. `runs` are the lengths of runs of sample series, in the order of the batch. The series of
    /// a run have equal labels except for the name. The labels of a run are read once. Labels are spread over memory, so
    /// reading them is most of the cost with thousands of series per body.
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

    /// Adds the samples of known series. The note of a known series is the number of its service in `services`.
    #[must_use]
    pub fn and(mut self, known: &KnownSamples, services: &Services) -> Self {
        for (note, count) in known.notes() {
            if let Some(service) = services.service(note) {
                *self.0.entry((service, Kind::Sample)).or_default() += count;
            }
        }
        self
    }

    #[must_use]
    pub fn without(mut self, refused: &Refused, services: &Services) -> Self {
        for (note, records) in &refused.of_notes {
            let count = services.service(*note).and_then(|service| self.0.get_mut(&(service, Kind::Sample)));
            if let Some(count) = count {
                *count = count.saturating_sub(*records as u64);
            }
        }
        for (kind, labels, records) in &refused.of_series {
            if let Some(count) = self.0.get_mut(&(service(labels).to_owned(), *kind)) {
                *count = count.saturating_sub(*records as u64);
            }
        }
        self
    }

    pub fn add_to(self, metrics: &Metrics) {
        for ((service, kind), count) in self.0.into_iter().filter(|(_, count)| *count > 0) {
            metrics.records_received.with([&service, kind.name()]).add(count);
        }
    }
}

/// Limit on the numbered services. Series of further services are not known by their spelling.
const SERVICES_MAX: usize = 1_024;

/// The services of known series. The labels of a known series are not read, so its note is the number of its service.
#[derive(Debug, Default)]
pub struct Services(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    names: Vec<String>,
    numbers: HashMap<String, u16>,
}

impl Services {
    fn lock(&self) -> MutexGuard<'_, Numbered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn service(&self, number: u16) -> Option<String> {
        self.lock().names.get(usize::from(number)).cloned()
    }

    /// Requests wait after their decoding, and before their append, until the result is dropped.
    #[cfg(test)]
    pub fn pause(&self) -> impl Sized {
        self.lock()
    }

    /// What the store learns about the sample series of a batch. `spellings` has one element for each of them, or is empty.
    pub fn learned(&self, batch: &Batch, spellings: &[Spelling]) -> Vec<Learned> {
        if spellings.is_empty() {
            return Vec::new();
        }
        let mut numbered = self.lock();
        let series = batch.samples.iter().map(|series| &series.labels).zip(spellings);
        let learned =
            series.filter(|(_, spelling)| **spelling != Spelling::NONE).filter_map(|(labels, spelling)| {
                let labels_bytes = u16::try_from(labels.canonical_bytes()).ok()?;
                let note = numbered.number(service(labels))?;
                Some(Learned { id: labels.id(), spelling: *spelling, note, labels_bytes })
            });
        learned.collect()
    }
}

impl Numbered {
    fn number(&mut self, service: &str) -> Option<u16> {
        if let Some(known) = self.numbers.get(service) {
            return Some(*known);
        }
        let number = u16::try_from(self.names.len()).ok().filter(|_| self.names.len() < SERVICES_MAX)?;
        self.names.push(service.to_owned());
        self.numbers.insert(service.to_owned(), number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_ingest::line_protocol::{self, Precision};
    use tacho_model::{KnownSeries, Sample, Value};

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
        let services = Services::default();
        let left = all().without(&Refused { of_series, ..Refused::default() }, &services);
        assert_eq!(samples(&left), [Some(1), Some(2), Some(1)]);
        // Known series are counted by the note of their service.
        let notes = ["x", "y"].map(|service| services.lock().number(service).unwrap());
        let mut known = KnownSamples::default();
        for (number, note) in (0..).zip([notes[1], notes[0], notes[1]]) {
            let series = KnownSeries { number, note, labels_bytes: 9 };
            known.push(series, Sample { at: 0, value: Value::U64(0) });
        }
        assert_eq!(samples(&all().and(&known, &services)), [Some(5), Some(4), Some(1)]);
        let of_notes = [(notes[0], 1), (notes[1], 2), (77, 3)].into();
        let refused = Refused { of_notes, ..Refused::default() };
        assert_eq!(samples(&all().and(&known, &services).without(&refused, &services)), samples(&all()));
    }
}
