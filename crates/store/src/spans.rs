//! The times of many records as few ranges. Late records get ranges of their own, so the times between late and recent records
//! are not covered.

use tacho_model::{TimeRange, Timestamp};

const RANGES_MAX: usize = 8;
/// Ranges with a smaller gap than this, ns, are joined.
const GAP_MIN: u64 = 600_000_000_000;

/// Ascending, disjoint ranges that cover all added ones. At the limit, the two ranges with the smallest gap are joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<TimeRange>);

impl Spans {
    pub fn add(&mut self, added: TimeRange) {
        if added.is_empty() {
            return;
        }
        let at = self.0.partition_point(|span| span.start < added.start);
        self.0.insert(at, added);
        let mut joined: Vec<TimeRange> = Vec::with_capacity(self.0.len());
        for span in self.0.drain(..) {
            match joined.last_mut() {
                Some(last) if gap(*last, span) < GAP_MIN => last.end = last.end.max(span.end),
                _ => joined.push(span),
            }
        }
        if joined.len() > RANGES_MAX {
            let gaps = joined.iter().zip(joined.iter().skip(1)).map(|(one, next)| gap(*one, *next));
            if let Some((smallest, _)) = gaps.enumerate().min_by_key(|(_, gap)| *gap) {
                let next = joined.remove(smallest + 1);
                joined.get_mut(smallest).into_iter().for_each(|one| one.end = next.end);
            }
        }
        self.0 = joined;
    }

    /// From the first to the last time; an empty range if there are none.
    pub fn hull(&self) -> TimeRange {
        let (first, last) = (self.0.first(), self.0.last());
        first.zip(last).map_or(TimeRange::EMPTY, |(first, last)| TimeRange::new(first.start, last.end))
    }

    pub fn iter(&self) -> impl Iterator<Item = TimeRange> {
        self.0.iter().copied()
    }
}

/// The time between two ranges, ns; 0 if they overlap. `one` does not begin after `next`.
const fn gap(one: TimeRange, next: TimeRange) -> u64 {
    let (end, start): (Timestamp, Timestamp) = (one.end, next.start);
    if start <= end { 0 } else { start.abs_diff(end) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    fn range(start: i64, end: i64) -> TimeRange {
        TimeRange::new(start * MINUTE, end * MINUTE)
    }

    fn spans(ranges: impl IntoIterator<Item = TimeRange>) -> Vec<TimeRange> {
        let mut spans = Spans::default();
        ranges.into_iter().for_each(|range| spans.add(range));
        spans.0
    }

    #[test]
    fn late_records_have_a_range_of_their_own() {
        let recent = [range(1_000, 1_001), range(500, 500), range(1_001, 1_002), range(1_009, 1_010)];
        assert_eq!(spans(recent), [range(500, 500), range(1_000, 1_010)]);
        assert_eq!(spans([range(20, 20), range(10, 10)]), [range(10, 10), range(20, 20)]);
        assert_eq!(Spans(spans([range(20, 21), range(9, 10)])).hull(), range(9, 21));
        assert!(Spans::default().hull().is_empty());
        assert_eq!(spans([range(19, 19), range(10, 10)]), [range(10, 19)]);
        assert_eq!(spans([range(0, 5), range(20, 30), range(4, 21)]), [range(0, 30)]);
        assert_eq!(spans([range(5, 4)]), []);
        assert_eq!(spans([TimeRange::ALL, range(0, 5)]), [TimeRange::ALL]);
    }

    #[test]
    fn the_nearest_ranges_are_joined_at_the_limit() {
        let at = |n: usize| range(100 * i64::try_from(n).unwrap(), 100 * i64::try_from(n).unwrap() + 1);
        let most: Vec<TimeRange> = (0..RANGES_MAX).map(at).collect();
        assert_eq!(spans(most.clone()), most);
        let found = spans(most.iter().copied().chain([range(350, 350)]));
        assert_eq!(found.len(), RANGES_MAX);
        assert_eq!(found[3], range(300, 350));
    }

    proptest! {
        #[test]
        fn all_added_ranges_are_covered(added in prop::collection::vec((0..5_000_i64, 0..30_i64), 0..40)) {
            let found = spans(added.iter().map(|(start, length)| range(*start, start + length)));
            prop_assert!(found.len() <= RANGES_MAX && found.is_sorted_by(|one, next| one.end < next.start));
            for (start, length) in added {
                let added = range(start, start + length);
                prop_assert!(found.iter().any(|span| span.start <= added.start && added.end <= span.end));
            }
        }
    }
}
