//! Which times have changed since a given moment? A reader that keeps results asks this before it uses them again.
//!
//! Every change gets the next number. A log holds disjoint time intervals, each with the number of its last change:
//!
//! ```text
//!   times   ──────[ 3 ]──────────[  7  ][ 9 ]──   since(7, all) = [ 9 ]
//! ```
//! The store reports a change only when all later reads see it, and before the sender of the records gets an answer. A reader
//! first takes the last number, and then reads. So it never keeps a state that is older than its number. When a log is full,
//! neighbouring intervals are joined: more times then count as changed, never fewer.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tacho_model::{TimeRange, Timestamp};

use crate::arrival::Arrival;
use crate::counters::Count;
use crate::policy::Policies;

/// Limit on the intervals of a log. It bounds memory and the time that [`Changes::since`] takes.
const INTERVALS_MAX: usize = 1_024;
/// Samples of one batch that are older than its newest sample by more than this, ns, are reported as a change of their own. So a
/// few late samples do not make all times up to the present count as changed.
const LATE_NS: i64 = 600_000_000_000;

/// What a change affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The samples that a read returns.
    Samples,
    /// Only the chunks that hold the samples. A read may then return other summaries of chunks.
    Chunks,
    /// Only the headers of chunks. From these, a read estimates the number of samples in a time range, as if the samples of a
    /// chunk were spread evenly. A chunk with late samples therefore changes estimates for all times between its first and its
    /// last sample.
    Counts,
}

/// The changes of a store. Each call of `since` or `report` holds the lock of the logs for some microseconds only.
#[derive(Debug, Default)]
pub struct Changes {
    logs: Mutex<Logs>,
    /// Number of intervals that were joined with a neighbour because a log was full.
    joined: Count,
    /// A change may affect samples up to this far before and after it, ns, because merges may have moved their times.
    distance: u64,
    downsamples: bool,
}

#[derive(Debug, Default)]
struct Logs {
    /// The number of the last change.
    last: u64,
    samples: Log,
    chunks: Log,
    counts: Log,
}

impl Changes {
    /// A merge may move the time of a sample, and also the time of its resent copy. So the distance is twice the largest
    /// move.
    pub fn new(policies: &Policies) -> Self {
        let downsamples = !policies.downsampling.is_empty();
        Self { distance: policies.time_max().saturating_mul(2), downsamples, ..Self::default() }
    }

    /// Whether merges may downsample series. Answers get a note about downsampled series, so a merge may change an answer even
    /// if no sample of it changes.
    pub const fn downsamples(&self) -> bool {
        self.downsamples
    }

    /// The times of all samples that a change in `range` may affect.
    pub const fn affected(&self, range: TimeRange) -> TimeRange {
        let TimeRange { start, end } = range;
        TimeRange::new(
            start.saturating_sub_unsigned(self.distance),
            end.saturating_add_unsigned(self.distance),
        )
    }

    fn lock(&self) -> MutexGuard<'_, Logs> {
        self.logs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the last change. Take it before a read whose result is kept.
    pub fn last(&self) -> u64 {
        self.lock().last
    }

    pub fn joined(&self) -> u64 {
        self.joined.get()
    }

    /// The intervals of all changes after the number `after` that overlap `range`, in the order of their starts.
    /// [`Change::Chunks`] also selects changes of samples. [`Change::Counts`] selects all changes.
    pub fn since(&self, after: u64, range: TimeRange, kind: Change) -> Vec<TimeRange> {
        let logs = self.lock();
        if logs.last <= after {
            return Vec::new();
        }
        let mut found: Vec<TimeRange> = logs.samples.since(after, range).collect();
        let others: &[&Log] = match kind {
            Change::Samples => &[],
            Change::Chunks => &[&logs.chunks],
            Change::Counts => &[&logs.chunks, &logs.counts],
        };
        found.extend(others.iter().flat_map(|log| log.since(after, range)));
        if !others.is_empty() {
            found.sort_unstable_by_key(|interval| interval.start);
        }
        found
    }

    /// Reports a change. Every read that begins after the report must see it.
    pub(crate) fn report(&self, kind: Change, range: TimeRange) {
        if range.is_empty() {
            return;
        }
        let range = self.affected(range);
        let mut logs = self.lock();
        logs.last += 1;
        let number = logs.last;
        let joined = match kind {
            Change::Samples => logs.samples.set(range, number),
            Change::Chunks => logs.chunks.set(range, number),
            Change::Counts => logs.counts.set(range, number),
        };
        self.joined.add(joined as u64);
    }
}

/// Disjoint intervals by their start: their end, and the number of their last change.
#[derive(Debug, Default)]
struct Log(BTreeMap<Timestamp, (Timestamp, u64)>);

impl Log {
    fn since(&self, after: u64, range: TimeRange) -> impl Iterator<Item = TimeRange> {
        let overlapping =
            self.0.range(..=range.end).rev().take_while(move |(_, (end, _))| *end >= range.start);
        let mut found: Vec<TimeRange> = overlapping
            .filter(|(_, (_, number))| *number > after)
            .map(|(start, (end, _))| TimeRange::new(*start, *end))
            .collect();
        found.reverse();
        found.into_iter()
    }

    /// `number` must be above the number of each interval. Returns the number of intervals that were joined with a neighbour.
    fn set(&mut self, range: TimeRange, number: u64) -> usize {
        let inside: Vec<Timestamp> = self.0.range(range.start..=range.end).map(|(start, _)| *start).collect();
        let mut last =
            self.0.range(..range.start).next_back().map(|(start, (end, number))| (*start, *end, *number));
        if let Some((start, end, before)) = last.filter(|(_, end, _)| *end >= range.start) {
            self.0.insert(start, (range.start - 1, before));
            last = Some((start, end, before));
        } else {
            last = None;
        }
        for start in inside {
            if let Some((end, before)) = self.0.remove(&start) {
                last = Some((start, end, before));
            }
        }
        if let Some((_, end, before)) = last.filter(|(_, end, _)| *end > range.end) {
            self.0.insert(range.end + 1, (end, before));
        }
        self.0.insert(range.start, (range.end, number));
        let intervals = self.0.len();
        if intervals > INTERVALS_MAX {
            self.halve();
        }
        intervals - self.0.len()
    }

    /// Joins pairs of neighbours that together are not longer than the median pair.
    fn halve(&mut self) {
        let all: Vec<(Timestamp, Timestamp, u64)> = std::mem::take(&mut self.0)
            .into_iter()
            .map(|(start, (end, number))| (start, end, number))
            .collect();
        let mut spans: Vec<u64> =
            all.iter().zip(all.iter().skip(1)).map(|(a, b)| b.1.abs_diff(a.0)).collect();
        spans.sort_unstable();
        let span_max = spans.get(spans.len() / 2).copied().unwrap_or(u64::MAX);
        let mut rest = all.into_iter().peekable();
        while let Some((start, end, number)) = rest.next() {
            let joined = match rest.peek() {
                Some((_, next, other)) if next.abs_diff(start) <= span_max => (*next, number.max(*other)),
                _ => (end, number),
            };
            if joined.0 > end {
                rest.next();
            }
            self.0.insert(start, joined);
        }
    }
}

/// The times of the samples of a batch: the late samples, if there are any, and the recent samples. The loops run for each
/// sample that is written, so they have no branches.
pub fn times(arrival: &Arrival) -> impl Iterator<Item = TimeRange> {
    let all = || arrival.all_samples().map(|sample| sample.at);
    let (first, newest) =
        all().fold((Timestamp::MAX, Timestamp::MIN), |(first, newest), at| (first.min(at), newest.max(at)));
    let recent = newest.saturating_sub(LATE_NS);
    let found = if first >= recent {
        [TimeRange::EMPTY, TimeRange::new(first, newest)]
    } else {
        let (last_late, first_recent) =
            all().fold((Timestamp::MIN, Timestamp::MAX), |(last_late, first_recent), at| {
                let is_late = at < recent;
                let late = if is_late { at } else { Timestamp::MIN };
                let other = if is_late { Timestamp::MAX } else { at };
                (last_late.max(late), first_recent.min(other))
            });
        [TimeRange::new(first, last_late), TimeRange::new(first_recent, newest)]
    };
    found.into_iter().filter(|range| !range.is_empty())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use tacho_model::{Batch, Labels, Sample, SampleSeries, Value};

    use super::*;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(start, end)
    }

    #[test]
    fn later_changes_replace_earlier_ones() {
        let changes = Changes::default();
        changes.report(Change::Samples, range(10, 30));
        changes.report(Change::Samples, range(15, 20));
        changes.report(Change::Chunks, range(0, 12));
        let since = |after, kind| changes.since(after, TimeRange::ALL, kind);
        assert_eq!(since(0, Change::Samples), [range(10, 14), range(15, 20), range(21, 30)]);
        assert_eq!(since(1, Change::Samples), [range(15, 20)]);
        assert_eq!(since(1, Change::Chunks), [range(0, 12), range(15, 20)]);
        assert_eq!(since(3, Change::Chunks), []);
        changes.report(Change::Counts, range(0, 40));
        assert_eq!(since(3, Change::Chunks), []);
        assert_eq!(since(3, Change::Counts), [range(0, 40)]);
        assert_eq!(since(2, Change::Counts), [range(0, 12), range(0, 40)]);
        assert_eq!(changes.since(0, range(16, 16), Change::Samples), [range(15, 20)]);
        assert_eq!(changes.since(0, range(31, 40), Change::Samples), []);
    }

    #[test]
    fn late_samples_of_a_batch_are_a_change_of_their_own() {
        let of = |times: &[i64]| -> Vec<TimeRange> {
            let samples = times.iter().map(|at| Sample { at: *at, value: Value::I64(0) });
            let labels = Arc::new(Labels::new([("__name__", "m")]).unwrap());
            let series = SampleSeries { labels, samples: samples.collect() };
            let batch = Batch { samples: vec![series.clone(), series], ..Batch::default() };
            super::times(&Arrival::new(Arc::new(batch), None)).collect()
        };
        let end = 2 * LATE_NS;
        for (times, expected) in [
            (&[][..], &[][..]),
            (&[5], &[range(5, 5)]),
            (&[end, LATE_NS], &[range(LATE_NS, end)]),
            (&[end, 7, 9], &[range(7, 9), range(end, end)]),
            (&[LATE_NS - 1, end, 0, LATE_NS], &[range(0, LATE_NS - 1), range(LATE_NS, end)]),
            (&[i64::MAX, i64::MIN], &[range(i64::MIN, i64::MIN), range(i64::MAX, i64::MAX)]),
        ] {
            assert_eq!(of(times), expected, "{times:?}");
        }
    }

    #[test]
    fn a_change_affects_samples_that_merges_may_have_moved() {
        let changes = Changes { distance: 4, ..Changes::default() };
        changes.report(Change::Samples, range(10, 10));
        changes.report(Change::Samples, range(i64::MAX - 1, i64::MAX));
        let found = changes.since(0, TimeRange::ALL, Change::Samples);
        assert_eq!(found, [range(6, 14), range(i64::MAX - 5, i64::MAX)]);
    }

    #[test]
    fn intervals_may_reach_the_ends_of_time() {
        let changes = Changes::default();
        for part in [TimeRange::ALL, range(i64::MAX, i64::MAX), range(i64::MIN, i64::MIN), TimeRange::ALL] {
            changes.report(Change::Samples, part);
        }
        assert_eq!(changes.since(3, TimeRange::ALL, Change::Samples), [TimeRange::ALL]);
    }

    #[test]
    fn intervals_are_joined_above_the_limit_and_counted() {
        let changes = Changes::default();
        let at = |n: usize| range(10 * i64::try_from(n).unwrap(), 10 * i64::try_from(n).unwrap() + 1);
        (0..INTERVALS_MAX).for_each(|n| changes.report(Change::Samples, at(n)));
        let found = || changes.since(0, TimeRange::ALL, Change::Samples);
        assert_eq!(found(), (0..INTERVALS_MAX).map(at).collect::<Vec<_>>());
        assert_eq!(changes.joined(), 0);
        changes.report(Change::Samples, at(INTERVALS_MAX));
        let joined = usize::try_from(changes.joined()).unwrap();
        assert!(joined > 0 && found().len() == INTERVALS_MAX + 1 - joined, "{joined} joined");
        assert!((0..=INTERVALS_MAX).all(|n| found().iter().any(|interval| interval.contains(at(n).start))));
    }

    proptest! {
        /// Compares the log with a list of all changes.
        #[test]
        fn every_changed_time_is_found(
            reports in prop::collection::vec((0..5_000_i64, 0..60_i64), 0..3_000),
            after in 0..3_000_u64,
        ) {
            let changes = Changes::default();
            for (start, length) in &reports {
                changes.report(Change::Samples, range(*start, start + length));
            }
            let found = changes.since(after, TimeRange::ALL, Change::Samples);
            prop_assert!(found.is_sorted_by(|a, b| a.end < b.start));
            let later = reports.iter().skip(usize::try_from(after).unwrap());
            for (start, length) in later {
                for at in [*start, start + length / 2, start + length] {
                    prop_assert!(found.iter().any(|interval| interval.contains(at)), "{}", at);
                }
            }
            if reports.len() <= INTERVALS_MAX / 2 {
                for interval in &found {
                    let covers = |(start, length): &(i64, i64)| range(*start, start + length).contains(interval.start);
                    prop_assert!(reports.iter().skip(usize::try_from(after).unwrap()).any(covers), "{}", interval);
                }
            }
        }
    }
}
