//! How is a range divided into the points of a chart?

use tacho_model::{TimeRange, Timestamp};

/// Limit on the points of one timeline (`docs/api.md`).
const POINTS_MAX: u64 = 120;
const SECOND: i64 = 1_000_000_000;

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
        let step_s = span_s.div_ceil(POINTS_MAX);
        Self { start_s, step_s: step_s.cast_signed(), len: span_s.div_ceil(step_s) as usize }
    }

    /// Index of the step that contains a time of the range.
    pub(super) fn index(&self, at: Timestamp) -> Option<usize> {
        let from_start = at.div_euclid(SECOND) - self.start_s;
        usize::try_from(from_start.div_euclid(self.step_s)).ok().filter(|index| *index < self.len)
    }

    /// Unix second at which step `index` starts.
    pub(super) fn unix_s(&self, index: usize) -> i64 {
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
        check(-s, 3_600 * s, 117, 31);
        check(i64::MIN, i64::MAX, 120, 153_722_868);
        assert_eq!(Steps::new(TimeRange::new(0, s)).index(5 * s), None);
        assert_eq!(Steps::new(TimeRange::new(0, s)).index(-1), None);
    }
}
