//! Divides a batch that is above the limit on the memory of one batch, or above the limit on the bytes of one journal record.
//! Each record is in one part.
//!
//! If a part fails, the sender repeats the whole batch. Repeated samples replace the stored ones, but
//! repeated entries would be stored twice. So the samples come before the entries, and the entries before the
//! executions.

use std::collections::VecDeque;
use std::sync::Arc;

use tacho_model::{
    Batch, Entry, EntrySeries, ExecutionSeries, KnownSamples, KnownSeries, Sample, SampleSeries,
};

use crate::arrival::{Arrival, SAMPLE_BYTES, SERIES_BYTES, entry_bytes, execution_bytes};
use crate::journal::record_cost;

/// What records take: estimated memory, and an upper bound of the bytes in a record of the journal. Also the limits on both.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub memory: usize,
    pub record: usize,
}

impl Cost {
    const NONE: Self = Self { memory: 0, record: 0 };

    /// The limits on one batch, if `memory` is the limit on its memory.
    pub const fn max(memory: usize) -> Self {
        Self { memory, record: record_cost::BATCH_COST_MAX }
    }

    /// The cost of a batch. Each sample has the highest bound, because the exact one depends on the types of all values.
    pub fn of(arrival: &Arrival) -> Self {
        let each = Self { memory: SAMPLE_BYTES, record: record_cost::SAMPLE_MAX };
        Self::sum(arrival, |_| each)
    }

    /// Like [`Cost::of`], with the exact bound of each sample, by which [`Parts`] divides.
    #[cfg(test)]
    pub fn exact(arrival: &Arrival) -> Self {
        Self::sum(arrival, of_sample)
    }

    fn sum(arrival: &Arrival, each: impl Fn(&[Sample]) -> Self) -> Self {
        let known = arrival.known().iter();
        let known = known.fold(Self::NONE, |sum, (series, samples)| {
            sum.and(of_known(series)).and(each(samples).times(samples.len()))
        });
        let samples =
            arrival.samples().map(|(_, s)| of_sample_series(s).and(each(&s.samples).times(s.samples.len())));
        let entries = arrival
            .entries()
            .map(|(_, s)| s.entries.iter().map(of_entry).fold(of_entry_series(s), Self::and));
        let executions = arrival.executions().map(|(_, series)| of_executions(series));
        samples.chain(entries).chain(executions).fold(known, Self::and)
    }

    pub const fn is_within(self, max: Self) -> bool {
        self.memory <= max.memory && self.record <= max.record
    }

    const fn and(self, other: Self) -> Self {
        Self { memory: self.memory + other.memory, record: self.record + other.record }
    }

    const fn less(self, taken: Self) -> Self {
        Self {
            memory: self.memory.saturating_sub(taken.memory),
            record: self.record.saturating_sub(taken.record),
        }
    }

    const fn times(self, count: usize) -> Self {
        Self { memory: self.memory * count, record: self.record * count }
    }

    /// How many records of the cost `each` fit.
    fn fitting(self, each: Self) -> usize {
        (self.memory / each.memory).min(self.record / each.record)
    }
}

fn of_sample_series(series: &SampleSeries) -> Cost {
    Cost { memory: SERIES_BYTES, record: record_cost::of_series(&series.labels) }
}

/// Includes the labels, because the journal may have to define the series.
fn of_known(series: KnownSeries) -> Cost {
    let labels_bytes = usize::from(series.labels_bytes);
    Cost { memory: SERIES_BYTES + labels_bytes, record: record_cost::SERIES + labels_bytes }
}

/// The cost of each of these samples of one series.
fn of_sample(samples: &[Sample]) -> Cost {
    Cost { memory: SAMPLE_BYTES, record: record_cost::of_sample(samples) }
}

fn of_entry_series(series: &EntrySeries) -> Cost {
    Cost { memory: 0, record: record_cost::of_series(&series.labels) }
}

fn of_entry(entry: &Entry) -> Cost {
    Cost { memory: entry_bytes(entry), record: record_cost::of_entry(entry) }
}

fn of_executions(series: &ExecutionSeries) -> Cost {
    Cost { memory: execution_bytes(series), record: record_cost::of_executions(series) }
}

#[derive(Debug, Default)]
pub struct Part {
    pub batch: Batch,
    pub known: KnownSamples,
}

impl Part {
    fn is_empty(&self) -> bool {
        self.batch.is_empty() && self.known.is_empty()
    }
}

pub struct Parts {
    known: Arc<KnownSamples>,
    /// The index of the next run of known samples, and the number of its samples that are in a part already.
    run: usize,
    taken: usize,
    samples: VecDeque<SampleSeries>,
    entries: VecDeque<EntrySeries>,
    executions: VecDeque<ExecutionSeries>,
    max: Cost,
}

impl Parts {
    /// A part takes at most `max`. A part with only one record, or with only one series of executions, may take more.
    pub fn new(batch: Batch, known: Arc<KnownSamples>, max: Cost) -> Self {
        let Batch { samples, entries, executions } = batch;
        let (samples, entries, executions) = (samples.into(), entries.into(), executions.into());
        Self { known, run: 0, taken: 0, samples, entries, executions, max }
    }

    /// Like [`Self::take_samples`], for known series, which need no labels.
    fn take_known(&mut self, part: &mut Part, left: &mut Cost) {
        while let Some((series, samples)) = self.known.get(self.run) {
            let samples = samples.get(self.taken..).unwrap_or_default();
            let (head, each) = (of_known(series), of_sample(samples));
            let fits = left.less(head).fitting(each);
            let count = if part.is_empty() { fits.max(1) } else { fits };
            if let Some(some) = samples.get(..count).filter(|some| some.len() < samples.len()) {
                part.known.extend(series, some);
                self.taken += count;
                *left = Cost::NONE;
                return;
            }
            part.known.extend(series, samples);
            *left = left.less(head).less(each.times(samples.len()));
            (self.run, self.taken) = (self.run + 1, 0);
        }
    }

    /// `left` is what the part may still take.
    fn take_samples(&mut self, part: &mut Part, left: &mut Cost) {
        while let Some(mut series) = self.samples.pop_front() {
            let (head, each) = (of_sample_series(&series), of_sample(&series.samples));
            let fits = left.less(head).fitting(each);
            let count = if part.is_empty() { fits.max(1) } else { fits };
            if series.samples.len() > count {
                let rest = series.samples.split_off(count);
                self.samples.push_front(SampleSeries { labels: series.labels.clone(), samples: rest });
                series.samples.shrink_to_fit();
                if count > 0 {
                    part.batch.samples.push(series);
                }
                *left = Cost::NONE;
                return;
            }
            *left = left.less(head).less(each.times(series.samples.len()));
            part.batch.samples.push(series);
        }
    }

    fn take_entries(&mut self, part: &mut Part, left: &mut Cost) {
        while let Some(mut series) = self.entries.pop_front() {
            *left = left.less(of_entry_series(&series));
            let over = series.entries.iter().position(|entry| {
                let cost = of_entry(entry);
                let fits = cost.is_within(*left);
                *left = left.less(cost);
                !fits
            });
            let Some(over) = over else {
                part.batch.entries.push(series);
                continue;
            };
            let count = if part.is_empty() { over.max(1) } else { over };
            let rest = series.entries.split_off(count);
            if !rest.is_empty() {
                self.entries.push_front(EntrySeries { labels: series.labels.clone(), entries: rest });
            }
            if count > 0 {
                part.batch.entries.push(series);
            }
            *left = Cost::NONE;
            return;
        }
    }

    fn take_executions(&mut self, part: &mut Part, left: &mut Cost) {
        while let Some(series) = self.executions.pop_front() {
            let cost = of_executions(&series);
            if !cost.is_within(*left) && !part.is_empty() {
                self.executions.push_front(series);
                return;
            }
            *left = left.less(cost);
            part.batch.executions.push(series);
        }
    }
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let (mut part, mut left) = (Part::default(), self.max);
        self.take_known(&mut part, &mut left);
        if self.known.get(self.run).is_none() {
            self.take_samples(&mut part, &mut left);
            if self.samples.is_empty() {
                self.take_entries(&mut part, &mut left);
            }
            if self.samples.is_empty() && self.entries.is_empty() {
                self.take_executions(&mut part, &mut left);
            }
        }
        Some(part).filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::{Body, Labels, Value};

    use super::*;

    fn labels(name: &str) -> Arc<Labels> {
        Arc::new(Labels::new([("__name__", name)]).unwrap())
    }

    fn samples(name: &str, count: i64) -> SampleSeries {
        let samples = (0..count).map(|at| Sample { at, value: Value::I64(at) }).collect();
        SampleSeries { labels: labels(name), samples }
    }

    /// Known series with these numbers of samples.
    fn known(all: &[(u32, i64)]) -> KnownSamples {
        let mut known = KnownSamples::default();
        for (number, samples) in all {
            let series = KnownSeries { number: *number, note: 0, labels_bytes: 9 };
            (0..*samples).for_each(|at| known.push(series, Sample { at, value: Value::I64(at) }));
        }
        known
    }

    fn entries(name: &str, lengths: &[usize]) -> EntrySeries {
        let entry = |(at, length): (usize, &usize)| Entry {
            at: at as i64,
            body: Body::Text("t".repeat(*length).into()),
        };
        EntrySeries { labels: labels(name), entries: lengths.iter().enumerate().map(entry).collect() }
    }

    #[test]
    fn each_record_is_in_one_part_and_only_a_single_record_may_exceed_the_limit() {
        let batch = Batch {
            samples: vec![samples("a", 3), samples("b", 40), samples("c", 1), samples("d", 17)],
            entries: vec![entries("l", &[10, 0, 300, 10]), entries("m", &[5])],
            executions: Vec::new(),
        };
        let known: Arc<KnownSamples> = Arc::new(known(&[(3, 2), (4, 30), (9, 1)]));
        let memory = [1, 79, 80, 81, 200, 500, 10_000].map(Cost::max);
        let record = [1, 95, 96, 97, 300, 700, 10_000].map(|record| Cost { memory: 10_000, record });
        for max in memory.into_iter().chain(record) {
            let (mut together, mut parts) = (Batch::default(), 0);
            let mut known_together = KnownSamples::default();
            for Part { batch: part, known } in Parts::new(batch.clone(), known.clone(), max) {
                known.iter().for_each(|(series, samples)| known_together.extend(series, samples));
                let arrival = Arrival::with_known(part.clone(), known, None);
                let is_one = arrival.counts().iter().sum::<usize>() == 1;
                let cost = Cost::exact(&arrival);
                assert!(cost.is_within(max) || is_one, "{cost:?} of {max:?}");
                for series in part.samples {
                    match together.samples.last_mut().filter(|last| last.labels == series.labels) {
                        Some(last) => last.samples.extend(series.samples),
                        None => together.samples.push(series),
                    }
                }
                for series in part.entries {
                    match together.entries.last_mut().filter(|last| last.labels == series.labels) {
                        Some(last) => last.entries.extend(series.entries),
                        None => together.entries.push(series),
                    }
                }
                parts += 1;
            }
            assert_eq!((&together, &known_together), (&batch, &*known), "{max:?}");
            assert_eq!(parts == 1, max.memory.min(max.record) == 10_000, "{max:?}");
        }
    }
}
