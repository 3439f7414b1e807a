//! How is a range divided into the points of a chart?

use tacho_model::{TimeRange, Timestamp};

/// Limit on the points of one timeline (`docs/api.md`).
const POINTS_MAX: u64 = 120;
const SECOND: i64 = 1_000_000_000;
/// A range of more than this many seconds has steps of whole minutes. Each step begins at a multiple of its length, so that the
/// slots of summaries fit into the steps.
const ALIGNED_S: u64 = 3_600;
/// Lengths of the steps of such a range, in seconds. A very long range has steps of several days.
const STEPS_S: [u64; 14] =
    [60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 14_400, 21_600, 28_800, 43_200, 86_400];
const DAY_S: u64 = 86_400;

/// Divides a range into equal steps of whole seconds. No sum of seconds overflows, because a time has 2^63 ns at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    start_s: i64,
    step_s: i64,
    pub(super) len: usize,
}

impl Steps {
    pub(super) fn new(range: TimeRange) -> Self {
        let start_s = range.start.div_euclid(SECOND);
        let end_s = range.end.div_euclid(SECOND);
        let span_s = end_s.saturating_sub(start_s).max(0).unsigned_abs() + 1;
        if span_s <= ALIGNED_S {
            let step_s = span_s.div_ceil(POINTS_MAX);
            return Self { start_s, step_s: step_s.cast_signed(), len: span_s.div_ceil(step_s) as usize };
        }
        // An aligned range may have one step more than its length needs.
        let least_s = span_s.div_ceil(POINTS_MAX - 1);
        let known = STEPS_S.into_iter().find(|step_s| *step_s >= least_s);
        let step_s = known.unwrap_or(least_s.next_multiple_of(DAY_S)).cast_signed();
        let first = start_s.div_euclid(step_s);
        let len = (end_s.div_euclid(step_s) - first).unsigned_abs() + 1;
        Self { start_s: first * step_s, step_s, len: len as usize }
    }

    /// Whether each slot is within one step. A slot is `slot_s` seconds long and starts at a multiple of its length.
    pub(super) const fn fits_slots(self, slot_s: i64) -> bool {
        self.step_s.rem_euclid(slot_s) == 0 && self.start_s.rem_euclid(slot_s) == 0
    }

    /// Index of the step that contains a time of the range.
    pub(super) fn index(self, at: Timestamp) -> Option<usize> {
        self.index_s(at.div_euclid(SECOND))
    }

    /// Index of the step that contains a second of the range.
    pub(super) fn index_s(self, second: i64) -> Option<usize> {
        let from_start = second.checked_sub(self.start_s)?;
        usize::try_from(from_start.div_euclid(self.step_s)).ok().filter(|index| *index < self.len)
    }

    /// Unix second at which step `index` starts.
    pub(super) fn unix_s(self, index: usize) -> i64 {
        self.start_s + self.step_s * index as i64
    }

    /// Length of the requested range in seconds, never 0.
    pub(super) fn seconds(range: TimeRange) -> f64 {
        ((i128::from(range.end) - i128::from(range.start)).max(1) as f64) / SECOND as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_fit_into_aligned_steps_of_their_multiples() {
        let fits =
            |seconds: i64, slot_s| Steps::new(TimeRange::new(7, seconds * 1_000_000_000)).fits_slots(slot_s);
        assert_eq!([60, 300].map(|slot| fits(3_599, slot)), [false, false]);
        assert_eq!([60, 300].map(|slot| fits(3_600, slot)), [true, false]);
        assert_eq!([60, 300, 900, 3_600].map(|slot| fits(86_400, slot)), [true, true, true, false]);
    }

    /// The encoder of roll-ups knows these lengths (`chunk/src/summary/merge.rs`).
    #[test]
    fn slots_of_roll_ups_fit_into_the_steps_of_longer_ranges() {
        for (above_s, slot_s) in [(3_600, 60), (119 * 120, 300), (119 * 600, 900), (119 * 1_800, 3_600)] {
            for seconds in (above_s + 1..40 * 86_400).step_by(59) {
                let steps = Steps::new(TimeRange::new(7, seconds * SECOND));
                assert!(steps.fits_slots(slot_s), "{seconds} s have steps of {} s", steps.step_s);
            }
        }
    }

    /// Number of steps, seconds per step, and the positions of both ends of the range.
    fn check(start: i64, end: i64, len: usize, step_s: i64) {
        let steps = Steps::new(TimeRange::new(start, end));
        assert_eq!((steps.len, steps.index(start), steps.index(end)), (len, Some(0), Some(len - 1)));
        assert_eq!(steps.unix_s(1).wrapping_sub(steps.unix_s(0)), step_s);
    }

    #[test]
    fn a_range_has_at_most_120_points() {
        let s = 1_000_000_000;
        check(5, 6, 1, 1);
        check(0, 119 * s, 120, 1);
        check(0, 120 * s, 61, 2);
        check(-s, 3_598 * s, 120, 30);
        check(-s, 3_600 * s, 62, 60);
        check(30 * s, 86_430 * s, 97, 900);
        let Steps { start_s, .. } = Steps::new(TimeRange::new(1_000 * s, 86_430 * s));
        assert_eq!(start_s, 900);
        check(i64::MIN, i64::MAX, 120, 1_795 * 86_400);
        assert_eq!(Steps::new(TimeRange::new(0, s)).index(5 * s), None);
        assert_eq!(Steps::new(TimeRange::new(0, s)).index(-1), None);
    }
}
