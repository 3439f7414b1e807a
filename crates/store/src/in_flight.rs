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

    /// Registers the series of a batch. Its samples must be grouped. The caller holds the lock of the index.
    pub fn register(self: &Arc<Self>, known: &KnownSamples) -> Ticket {
        debug_assert!(known.is_grouped(), "the ranges must be sorted");
        let ranges = ranges_of(known.numbers());
        let mut batches = self.lock();
        batches.next += 1;
        let batch = batches.next;
        batches.ranges.insert(batch, ranges);
        Ticket { all: self.clone(), batch }
    }

    /// Whether one of these series is registered. The caller holds the lock of the index for writing.
    pub fn has_any(&self, numbers: &[SeriesNumber]) -> bool {
        let batches = self.lock();
        batches.ranges.values().any(|ranges| numbers.iter().any(|number| contains(ranges, *number)))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.all.lock().ranges.remove(&self.batch);
    }
}

/// Ranges of consecutive numbers, sorted. There are few ranges, because the series of most senders were added together.
fn ranges_of(numbers: impl Iterator<Item = SeriesNumber>) -> Ranges {
    let mut ranges = Ranges::new();
    for number in numbers {
        match ranges.last_mut() {
            Some(last) if last.end().checked_add(1) == Some(number) => *last = *last.start()..=number,
            _ => ranges.push(number..=number),
        }
    }
    ranges
}

/// Whether sorted ranges have this number.
fn contains(ranges: &Ranges, number: SeriesNumber) -> bool {
    let begun = ranges.partition_point(|range| *range.start() <= number);
    begun.checked_sub(1).and_then(|last| ranges.get(last)).is_some_and(|last| last.contains(&number))
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
        let one = all.register(&known(&[4, 5, 6]));
        let two = all.register(&known(&[2, 6]));
        assert!(all.has_any(&[1, 5]) && all.has_any(&[2]) && !all.has_any(&[1, 3, 7]));
        drop(one);
        assert!(all.has_any(&[6]) && !all.has_any(&[5]));
        drop(two);
        assert!(!all.has_any(&[2, 4, 5, 6]));
    }

    #[test]
    fn sorted_ranges_contain_exactly_their_numbers() {
        let numbers = [0, 4, 5, 6, 8, 10, 11, u32::MAX];
        let ranges = ranges_of(numbers.into_iter());
        assert_eq!(ranges, [0..=0, 4..=6, 8..=8, 10..=11, u32::MAX..=u32::MAX]);
        for number in (0..15).chain([u32::MAX - 1, u32::MAX]) {
            assert_eq!(contains(&ranges, number), numbers.contains(&number), "{number}");
        }
        assert!(!contains(&Ranges::new(), 0));
    }
}
