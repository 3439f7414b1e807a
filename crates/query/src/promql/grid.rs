//! At which times is a node evaluated?

use tacho_model::Timestamp;

/// `count` times that are `step` ns apart. The grid of an instant query has one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub start: Timestamp,
    pub step: i64,
    pub count: usize,
}

impl Grid {
    /// The step is as long as possible, so that `slide.rs` does not expect overlapping windows.
    pub const fn instant(at: Timestamp) -> Self {
        Self { start: at, step: Timestamp::MAX, count: 1 }
    }

    /// Number of times from `start` to at most `end`; 0 if `end` is before `start`. `step` must be positive.
    pub fn count_between(start: Timestamp, end: Timestamp, step: i64) -> u128 {
        debug_assert!(step > 0);
        let span = i128::from(end) - i128::from(start);
        u128::try_from(span / i128::from(step)).map_or(0, |n| if span < 0 { 0 } else { n + 1 })
    }

    pub fn time(&self, index: usize) -> Timestamp {
        let steps = i64::try_from(index).unwrap_or(i64::MAX);
        self.start.saturating_add(self.step.saturating_mul(steps))
    }

    pub fn last(&self) -> Timestamp {
        self.time(self.count.saturating_sub(1))
    }

    pub fn times(&self) -> impl Iterator<Item = Timestamp> + use<> {
        let grid = *self;
        (0..grid.count).map(move |index| grid.time(index))
    }
}

/// Maps an evaluation time `t` to the time that a selector reads: `t - offset`, or a fixed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The fixed time of `@`. The offset is already subtracted.
    pub fixed: Option<Timestamp>,
    pub offset: i64,
}

impl Reference {
    pub fn time(&self, evaluated_at: Timestamp) -> Timestamp {
        self.fixed.unwrap_or_else(|| evaluated_at.saturating_sub(self.offset))
    }

    /// What [`Reference::time`] returns for the first and the last time of a grid.
    pub fn bounds(&self, grid: &Grid) -> (Timestamp, Timestamp) {
        (self.time(grid.start), self.time(grid.last()))
    }
}

/// Nanoseconds as seconds. Whole milliseconds are converted as in Prometheus, so that results are bit-identical.
#[expect(clippy::cast_precision_loss, reason = "PromQL is defined on f64")]
pub fn seconds(ns: i64) -> f64 {
    const MILLISECOND: i64 = 1_000_000;
    if ns % MILLISECOND == 0 { (ns / MILLISECOND) as f64 / 1e3 } else { ns as f64 / 1e9 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_range_are_counted() {
        assert_eq!(Grid::count_between(0, 100, 10), 11);
        assert_eq!(Grid::count_between(0, 99, 10), 10);
        assert_eq!(Grid::count_between(5, 5, 10), 1);
        assert_eq!(Grid::count_between(5, 4, 10), 0);
        assert_eq!(Grid::count_between(i64::MIN, i64::MAX, 1), 1 << 64);
    }

    #[test]
    fn times_are_limited_to_the_range_of_timestamps() {
        let grid = Grid { start: i64::MAX - 1, step: i64::MAX, count: 3 };
        assert_eq!(grid.times().collect::<Vec<_>>(), [i64::MAX - 1, i64::MAX, i64::MAX]);
        assert_eq!(Reference { fixed: None, offset: i64::MAX }.time(i64::MIN), i64::MIN);
    }
}
