//! Divides a batch that takes more memory than one batch of the journal may take. Each record is in one part.
//!
//! The samples come before the entries, and these before the executions. So after a failure of a later part, a sender that
//! repeats the batch replaces most records: samples replace themselves, but entries do not.

use std::collections::VecDeque;

use tacho_model::{Batch, EntrySeries, ExecutionSeries, SampleSeries};

use crate::arrival::{SAMPLE_BYTES, SERIES_BYTES, entry_bytes, execution_bytes};

pub struct Parts {
    samples: VecDeque<SampleSeries>,
    entries: VecDeque<EntrySeries>,
    executions: VecDeque<ExecutionSeries>,
    bytes_max: usize,
}

impl Parts {
    /// A part takes at most `bytes_max`. A part with only one entry, or with only one series of executions, may take more.
    pub fn new(batch: Batch, bytes_max: usize) -> Self {
        let Batch { samples, entries, executions } = batch;
        Self { samples: samples.into(), entries: entries.into(), executions: executions.into(), bytes_max }
    }

    /// Moves the next samples to the part. `left` is the memory that the part may still take.
    fn take_samples(&mut self, part: &mut Batch, left: &mut usize) {
        while let Some(mut series) = self.samples.pop_front() {
            let fits = left.saturating_sub(SERIES_BYTES) / SAMPLE_BYTES;
            let count = if part.is_empty() { fits.max(1) } else { fits };
            if series.samples.len() > count {
                let rest = series.samples.split_off(count);
                self.samples.push_front(SampleSeries { labels: series.labels.clone(), samples: rest });
                series.samples.shrink_to_fit();
                if count > 0 {
                    part.samples.push(series);
                }
                *left = 0;
                return;
            }
            *left = left.saturating_sub(SERIES_BYTES + SAMPLE_BYTES * series.samples.len());
            part.samples.push(series);
        }
    }

    /// Moves the next entries to the part.
    fn take_entries(&mut self, part: &mut Batch, left: &mut usize) {
        while let Some(mut series) = self.entries.pop_front() {
            let over = series.entries.iter().position(|entry| {
                let bytes = entry_bytes(entry);
                let fits = bytes <= *left;
                *left = left.saturating_sub(bytes);
                !fits
            });
            let Some(over) = over else {
                part.entries.push(series);
                continue;
            };
            let count = if part.is_empty() { over.max(1) } else { over };
            let rest = series.entries.split_off(count);
            if !rest.is_empty() {
                self.entries.push_front(EntrySeries { labels: series.labels.clone(), entries: rest });
            }
            if count > 0 {
                part.entries.push(series);
            }
            *left = 0;
            return;
        }
    }

    /// Moves the next series of executions to the part.
    fn take_executions(&mut self, part: &mut Batch, left: &mut usize) {
        while let Some(series) = self.executions.pop_front() {
            let bytes = execution_bytes(&series);
            if bytes > *left && !part.is_empty() {
                self.executions.push_front(series);
                return;
            }
            *left = left.saturating_sub(bytes);
            part.executions.push(series);
        }
    }
}

impl Iterator for Parts {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let (mut part, mut left) = (Batch::default(), self.bytes_max);
        self.take_samples(&mut part, &mut left);
        if self.samples.is_empty() {
            self.take_entries(&mut part, &mut left);
        }
        if self.samples.is_empty() && self.entries.is_empty() {
            self.take_executions(&mut part, &mut left);
        }
        Some(part).filter(|part| !part.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tacho_model::{Body, Entry, Labels, Sample, Value};

    use super::*;
    use crate::arrival::Arrival;

    fn labels(name: &str) -> Arc<Labels> {
        Arc::new(Labels::new([("__name__", name)]).unwrap())
    }

    fn samples(name: &str, count: i64) -> SampleSeries {
        let samples = (0..count).map(|at| Sample { at, value: Value::I64(at) }).collect();
        SampleSeries { labels: labels(name), samples }
    }

    fn entries(name: &str, lengths: &[usize]) -> EntrySeries {
        let entry = |(at, length): (usize, &usize)| Entry {
            at: at as i64,
            body: Body::Text("t".repeat(*length).into()),
        };
        EntrySeries { labels: labels(name), entries: lengths.iter().enumerate().map(entry).collect() }
    }

    #[test]
    fn the_parts_have_all_records_once_and_none_is_over_the_limit() {
        let batch = Batch {
            samples: vec![samples("a", 3), samples("b", 40), samples("c", 1), samples("d", 17)],
            entries: vec![entries("l", &[10, 0, 300, 10]), entries("m", &[5])],
            executions: Vec::new(),
        };
        for bytes_max in [1, 79, 80, 81, 200, 500, 10_000] {
            let (mut together, mut parts) = (Batch::default(), 0);
            for part in Parts::new(batch.clone(), bytes_max) {
                let arrival = Arrival::new(Arc::new(part.clone()), None);
                let is_one = part.counts().iter().sum::<usize>() == 1;
                assert!(
                    arrival.bytes() <= bytes_max || is_one,
                    "{} bytes, limit {bytes_max}",
                    arrival.bytes()
                );
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
            assert_eq!(together, batch, "limit {bytes_max}");
            assert_eq!(parts == 1, bytes_max == 10_000, "limit {bytes_max}");
        }
    }
}
