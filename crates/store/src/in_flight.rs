//! Which known series have samples on their way to the memtable? These series must stay in the index, because such samples
//! come without labels.
//!
//! `intake.rs` registers the series of a batch while it holds the lock of the index, and gets a ticket. The ticket is dropped
//! when the samples are in the memtable, or when the batch is refused. `upkeep/forget.rs` does not forget registered series; a
//! later sweep may forget them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_model::KnownSamples;

use crate::index::SeriesNumber;

type Ranges = Vec<RangeInclusive<SeriesNumber>>;

#[derive(Debug, Default)]
pub struct InFlight(Mutex<Batches>);

#[derive(Debug, Default)]
struct Batches {
    next: u64,
    ranges: BTreeMap<u64, Ranges>,
}

/// Keeps the series of one batch in the index until the ticket is dropped.
#[derive(Debug)]
pub struct Ticket {
    all: Arc<InFlight>,
    batch: u64,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, Batches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the series of a batch. The caller holds the lock of the index.
    pub fn register(self: &Arc<Self>, known: &KnownSamples) -> Ticket {
        let ranges = ranges_of(known);
        let mut batches = self.lock();
        batches.next += 1;
        let batch = batches.next;
        batches.ranges.insert(batch, ranges);
        Ticket { all: self.clone(), batch }
    }

    /// Whether one of these series is registered. The caller holds the lock of the index for writing.
    pub fn has_any(&self, numbers: &[SeriesNumber]) -> bool {
        let batches = self.lock();
        let mut ranges = batches.ranges.values().flatten();
        ranges.any(|range| numbers.iter().any(|number| range.contains(number)))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.all.lock().ranges.remove(&self.batch);
    }
}

/// Ranges of consecutive numbers. There are few ranges, because most batches have the series in the order of their numbers.
fn ranges_of(known: &KnownSamples) -> Ranges {
    let mut ranges = Ranges::new();
    for number in known.numbers() {
        match ranges.last_mut() {
            Some(last) if last.end().checked_add(1) == Some(number) => *last = *last.start()..=number,
            _ => ranges.push(number..=number),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use tacho_model::{KnownSeries, Sample, Value};

    use super::*;

    #[test]
    fn series_are_registered_until_the_last_ticket_is_dropped() {
        let known = |numbers: &[u32]| {
            let mut known = KnownSamples::default();
            for number in numbers {
                let series = KnownSeries { number: *number, note: 0, labels_bytes: 0 };
                known.push(series, Sample { at: 0, value: Value::I64(0) });
            }
            known
        };
        let all = Arc::<InFlight>::default();
        assert_eq!(
            ranges_of(&known(&[4, 5, 6, 9, 8, 0, u32::MAX])),
            [4..=6, 9..=9, 8..=8, 0..=0, u32::MAX..=u32::MAX]
        );
        let one = all.register(&known(&[4, 5, 6]));
        let two = all.register(&known(&[6, 2]));
        assert!(all.has_any(&[1, 5]) && all.has_any(&[2]) && !all.has_any(&[1, 3, 7]));
        drop(one);
        assert!(all.has_any(&[6]) && !all.has_any(&[5]));
        drop(two);
        assert!(!all.has_any(&[2, 4, 5, 6]));
    }
}
