//! How can times be changed to take less space? Date-delta compaction with a closed loop.
//!
//! Chronix (Lautenschlager, Philippsen, Kumlehn, Adersberger, FAST 2017) omits a time if its distance from the previous
//! time is almost the last stored distance. The reader repeats the stored distance, so errors may add up. Here, each time
//! is chosen within the bound around the original time, so no error exceeds the bound. Two forms are tried, and the smaller
//! is kept: runs of equal distances ([`meeting`]), and a constant period with corrections ([`parallel`]).
//!
//! A sample with a changed time may be sent again with its original time. The copy must be distinguishable from the neighbours of
//! the sample and from a new sample. Therefore no time moves half way to a neighbour: the changed time nearest to an original
//! time belongs to the same sample. And no time moves by more than a quarter of the usual distance: a new sample that fills a gap
//! between two samples is further away from both than a copy is from its sample.

use tacho_model::{Timestamp, ValueType};

use super::grid::Interval;
use super::size::column_bytes;
use super::trace::{Traced, meeting, parallel};
use crate::times::regular_step;

/// Returns strictly ascending times that are at most `bound` ns from the times in `at`, and the largest actual difference. The
/// first and last time are unchanged, so that no time moves into the range of another chunk. Each time is nearer to its original
/// than to any other original. Returns `at` unchanged if changes save nothing, if the bound is 0, or if `at` does not ascend
/// strictly.
pub fn compact_times(at: &[Timestamp], bound: u64) -> (Vec<Timestamp>, u64) {
    let unchanged = || (at.to_vec(), 0);
    let Some((start, offsets)) = offsets(at).filter(|_| bound > 0) else { return unchanged() };
    let smallest = forms(&offsets, bound.min(quarter(&offsets)))
        .into_iter()
        .map(|traced| (bytes(&traced.integers), traced.integers))
        .min_by_key(|(bytes, _)| *bytes)
        .filter(|(bytes, _)| *bytes < self::bytes(&offsets));
    let Some((_, moved)) = smallest else { return unchanged() };
    let moved: Option<Vec<Timestamp>> = moved.iter().map(|offset| start.checked_add(*offset)).collect();
    match moved {
        Some(moved) if moved.is_sorted_by(|a, b| a < b) => {
            let error = moved.iter().zip(at).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or_default();
            if error <= bound { (moved, error) } else { unchanged() }
        }
        _ => unchanged(),
    }
}

/// Differences from the first time. `None` if a difference overflows, or if the times are not strictly ascending.
fn offsets(at: &[Timestamp]) -> Option<(Timestamp, Vec<i64>)> {
    let start = *at.first()?;
    at.last()?.checked_sub(start)?;
    let offsets = at.iter().map(|at| at.wrapping_sub(start)).collect();
    at.is_sorted_by(|a, b| a < b).then_some((start, offsets))
}

fn bytes(offsets: &[i64]) -> usize {
    let words = || offsets.iter().map(|offset| offset.cast_unsigned()).collect::<Vec<_>>();
    if regular_step(offsets).is_some() { 0 } else { column_bytes(&words(), ValueType::U64) }
}

/// Candidates for the smallest form.
fn forms(offsets: &[i64], bound: u64) -> Vec<Traced> {
    let bound = i64::try_from(bound).unwrap_or(i64::MAX);
    let end = offsets.last().copied().unwrap_or_default();
    let distance = |place: usize| Some((offsets.get(place + 1)? - offsets.get(place)?).saturating_sub(1) / 2);
    let around = |(place, at): (usize, &i64)| {
        let before = place.checked_sub(1).and_then(distance);
        // The first and last are unchanged.
        let bound = before.zip(distance(place)).map_or(0, |(before, after)| bound.min(before).min(after));
        Interval { low: at.saturating_sub(bound), high: at.saturating_add(bound).min(end) }
    };
    let intervals: Vec<Interval> = offsets.iter().enumerate().map(around).collect();
    let mut periods = periods(offsets);
    periods.dedup();
    let corrected = periods.into_iter().filter_map(|period| parallel(&intervals, period, 1));
    meeting(&intervals, 0, 1).into_iter().chain(corrected).collect()
}

/// The largest whole number below a quarter of the median distance.
fn quarter(offsets: &[i64]) -> u64 {
    let median = periods(offsets).pop().unwrap_or_default();
    (median.unsigned_abs().max(1) - 1) / 4
}

/// The mean and the median distance.
fn periods(offsets: &[i64]) -> Vec<i64> {
    let mut distances: Vec<i64> = offsets.iter().zip(offsets.iter().skip(1)).map(|(a, b)| b - a).collect();
    let count = i64::try_from(distances.len()).unwrap_or(i64::MAX);
    let mean = offsets.last().and_then(|last| last.checked_add(count / 2)?.checked_div(count));
    let middle = distances.len() / 2;
    let median = (!distances.is_empty()).then(|| *distances.select_nth_unstable(middle).1);
    mean.into_iter().chain(median).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COUNT: usize = 5_000;
    const SEEDS: u64 = 5;

    /// Times in ms. The jitter is added to each distance or, with `grid`, to each grid point.
    fn series(seed: u64, period: i64, low: i64, high: i64, grid: bool) -> Vec<i64> {
        let mut place = 0;
        let mut next = |n: usize| {
            let jitter = low + (tacho_model::mix64(seed << 32 | n as u64) % (high - low + 1) as u64) as i64;
            place += period + if grid { 0 } else { jitter };
            if grid { n as i64 * period + jitter } else { place }
        };
        (0..COUNT).map(&mut next).collect()
    }

    /// Percentage of times that start a new line in the better form, averaged over seeds. Also asserts that each time is
    /// within the bound.
    fn stored(bound: u64, sort: (i64, i64, i64, bool)) -> f64 {
        let (period, low, high, grid) = sort;
        let share = |seed: u64| {
            let at = series(seed, period, low, high, grid);
            let (start, offsets) = offsets(&at).unwrap();
            let traced = forms(&offsets, bound).into_iter().min_by_key(|traced| traced.lines).unwrap();
            assert!(traced.integers.is_sorted_by(|a, b| a < b));
            let error =
                traced.integers.iter().zip(&at).map(|(n, at)| (start + n).abs_diff(*at)).max().unwrap();
            assert!(error <= bound, "{error} > {bound}");
            100.0 * traced.lines as f64 / at.len() as f64
        };
        (0..SEEDS).map(share).sum::<f64>() / SEEDS as f64
    }

    /// The limits are percentages of stored times, measured with two closed loops that do not look ahead: one loop stores runs of
    /// equal distances, the other loop a constant period with corrections. Each limit is the lower of both percentages, averaged
    /// over 20 series of 5,000 times.
    #[test]
    fn look_ahead_does_not_increase_the_number_of_stored_times() {
        let grid = (10_000, -5, 5, true);
        let wide = (10_000, -50, 50, true);
        let walk = (10_000, -50, 50, false);
        let late = (10_000, 0, 20, false);
        let table = [
            (grid, [(10, 0.86), (50, 1.15), (200, 1.84), (1_000, 0.39)]),
            (wide, [(10, 85.97), (50, 42.26), (200, 10.90), (1_000, 3.15)]),
            (walk, [(10, 79.24), (50, 31.50), (200, 9.20), (1_000, 2.02)]),
            (late, [(10, 34.59), (50, 8.86), (200, 2.41), (1_000, 0.52)]),
        ];
        for (sort, bounds) in table {
            for (bound, percent_max) in bounds {
                let percent = stored(bound, sort);
                assert!(percent <= percent_max, "{sort:?} +-{bound}: {percent:.2} % > {percent_max} %");
            }
        }
    }

    #[test]
    fn a_large_bound_keeps_times_distinguishable() {
        let at = series(7, 100, -30, 30, false);
        for bound in [60, 100, 1_000, 1_000_000, u64::MAX] {
            let (moved, error) = compact_times(&at, bound);
            assert!(error > 0 && error <= 25, "{error}");
            let [moved, exact] = [&moved, &at].map(|at| bytes(&offsets(at).unwrap().1));
            assert!(moved * 4 < exact * 3, "{moved} of {exact} bytes");
        }
    }

    proptest! {
        #[test]
        fn no_time_moves_by_more_than_the_bound(
            first in any::<i64>(),
            steps in prop::collection::vec(prop_oneof![1u64..300, any::<u64>()], 0..200),
            bound in prop_oneof![Just(0), 1u64..1_000, any::<u64>()],
        ) {
            let next = |at: &mut i64, step: &u64| { *at = at.checked_add_unsigned(*step)?; Some(*at) };
            let at: Vec<i64> = std::iter::once(first).chain(steps.iter().filter(|step| **step > 0).scan(first, next)).collect();
            let (moved, error) = compact_times(&at, bound);
            prop_assert!(moved.is_sorted_by(|a, b| a < b) && moved.len() == at.len());
            prop_assert_eq!(Some(error), moved.iter().zip(&at).map(|(a, b)| a.abs_diff(*b)).max());
            prop_assert!(error <= bound && (bound > 0 || moved == at));
            prop_assert!(moved.first() == at.first() && moved.last() == at.last());
            for (nth, at) in at.iter().enumerate() {
                let nearest = moved.iter().enumerate().min_by_key(|(_, moved)| moved.abs_diff(*at));
                prop_assert_eq!(nearest.map(|(place, _)| place), Some(nth));
            }
        }
    }
}
