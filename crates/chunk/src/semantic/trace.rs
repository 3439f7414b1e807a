//! Which integers, one per interval, are on few straight lines? The lines either meet at their ends or are parallel.

use super::grid::Interval;

/// One integer from each interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Traced {
    pub(super) integers: Vec<i64>,
    pub(super) lines: usize,
}

/// Lines that meet. Each line starts at the end of the previous line, and ends when no integer slope reaches both its
/// intervals and the next interval (the swing filter of Elmeleegy, Elmagarmid, Cecchet, Aref, Zwaenepoel, "Online Piece-wise
/// Linear Approximation of Numerical Streams with Precision Guarantees", VLDB 2009). The first integer is `first`. No slope is
/// below `slope_min`.
///
/// `None` if an interval cannot be reached, because its upper end is less than `slope_min` above the end of the previous
/// line.
pub(super) fn meeting(intervals: &[Interval], first: i64, slope_min: i64) -> Option<Traced> {
    let mut traced = Traced { integers: vec![first], lines: 0 };
    let (_, rest) = intervals.split_first()?;
    let mut line = Line { start: first, count: 0, low: slope_min, high: i64::MAX, end: first };
    for interval in rest {
        line = match line.narrowed(*interval) {
            Some(narrowed) => narrowed,
            None => {
                let start = line.draw(&mut traced);
                let fresh = Line { start, count: 0, low: slope_min, high: i64::MAX, end: start };
                fresh.narrowed(*interval)?
            }
        };
    }
    line.draw(&mut traced);
    Some(traced)
}

/// A line that can still be extended.
#[derive(Clone, Copy)]
struct Line {
    start: i64,
    /// Number of integers after the start.
    count: i64,
    /// Range of slopes that reach all intervals so far.
    low: i64,
    high: i64,
    /// Middle of the last interval.
    end: i64,
}

impl Line {
    fn narrowed(self, interval: Interval) -> Option<Self> {
        let count = self.count + 1;
        let ceil = |a: i64| a.div_euclid(count) + i64::from(a.rem_euclid(count) > 0);
        let low = self.low.max(ceil(interval.low.saturating_sub(self.start)));
        let high = self.high.min(interval.high.saturating_sub(self.start).div_euclid(count));
        (low <= high).then_some(Self { count, low, high, end: interval.middle(), ..self })
    }

    /// Appends the integers after the start, with the slope that ends nearest to `end`. Returns the last integer.
    fn draw(self, traced: &mut Traced) -> i64 {
        if self.count == 0 {
            return self.start;
        }
        let wanted =
            self.end.saturating_sub(self.start).saturating_add(self.count / 2).div_euclid(self.count);
        let slope = wanted.clamp(self.low, self.high);
        let at = |place: i64| self.start.wrapping_add(slope.wrapping_mul(place));
        traced.integers.extend((1..=self.count).map(at));
        traced.lines += 1;
        at(self.count)
    }
}

/// Parallel lines. The height of a line is the integer that the line, extended to index 0, has there. A line grows while at least
/// one height leads it through all its intervals. It is drawn with the middle of these heights (Lazaridis and Mehrotra,
/// "Capturing Sensor-Generated Time Series with Quality Guarantees", ICDE 2003, for slope 0). The first integer of a line exceeds
/// the last integer of the previous line by at least `rise_min`.
///
/// `None` if an interval is too low for `rise_min`, or if a height overflows `i64`.
pub(super) fn parallel(intervals: &[Interval], slope: i64, rise_min: i64) -> Option<Traced> {
    let mut traced = Traced { integers: Vec::with_capacity(intervals.len()), lines: 0 };
    // Heights at index 0 of the lines that pass through all intervals since the last drawn line.
    let mut open: Option<Interval> = None;
    for (place, interval) in intervals.iter().enumerate() {
        let base = slope.checked_mul(i64::try_from(place).ok()?)?;
        let heights =
            Interval { low: interval.low.checked_sub(base)?, high: interval.high.checked_sub(base)? };
        open = match (open, open.and_then(|open| open.common(heights))) {
            (_, Some(common)) => Some(common),
            (None, None) => Some(heights),
            (Some(line), None) => {
                let last = traced.draw(line.middle(), slope, place);
                let least = last.saturating_add(rise_min).saturating_sub(base);
                Some(heights.common(Interval { low: least, high: i64::MAX })?)
            }
        };
    }
    traced.draw(open?.middle(), slope, intervals.len());
    Some(traced)
}

impl Traced {
    /// Appends the integers before index `end` on the line with this height at index 0. Returns the last integer.
    fn draw(&mut self, height: i64, slope: i64, end: usize) -> i64 {
        let at = |place: usize| height.wrapping_add(slope.wrapping_mul(place as i64));
        self.integers.extend((self.integers.len()..end).map(at));
        self.lines += 1;
        at(end.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn around(integers: &[i64], bound: i64) -> Vec<Interval> {
        integers.iter().map(|n| Interval { low: n - bound, high: n + bound }).collect()
    }

    #[test]
    fn a_bend_and_a_step_take_few_lines() {
        let bend: Vec<i64> = (0..100).map(|n: i64| n * 10 - (n - 50).max(0) * 25 + n % 3).collect();
        let traced = meeting(&around(&bend, 3), 0, i64::MIN).unwrap();
        assert!(traced.lines <= 3, "{} lines", traced.lines);
        let step: Vec<i64> = (0..100).map(|n: i64| n / 50 * 1_000 + n % 7).collect();
        assert_eq!(parallel(&around(&step, 3), 0, i64::MIN).unwrap().lines, 2);
        assert_eq!(parallel(&around(&[5], 0), 3, 1), Some(Traced { integers: vec![5], lines: 1 }));
    }

    proptest! {
        #[test]
        fn every_interval_contains_its_integer(
            integers in prop::collection::vec(-10_000i64..10_000, 1..200),
            bound in 0i64..3_000,
            slope in -50i64..50,
        ) {
            let intervals = around(&integers, bound);
            let first = intervals[0].middle();
            for traced in [meeting(&intervals, first, i64::MIN).unwrap(), parallel(&intervals, slope, i64::MIN).unwrap()] {
                prop_assert_eq!(traced.integers.len(), integers.len());
                for (n, interval) in traced.integers.iter().zip(&intervals) {
                    prop_assert!((interval.low..=interval.high).contains(n));
                }
                prop_assert!((1..=integers.len().max(1)).contains(&traced.lines) || integers.len() == 1);
            }
        }

        #[test]
        fn ascending_intervals_give_ascending_integers(
            steps in prop::collection::vec(1i64..200, 1..200),
            bound in 0i64..3_000,
            slope in 0i64..300,
        ) {
            let sum = |sum: &mut i64, step: &i64| { *sum += step; Some(*sum) };
            let integers: Vec<i64> = steps.iter().scan(0, sum).collect();
            let intervals = around(&integers, bound);
            for traced in [meeting(&intervals, integers[0], 1).unwrap(), parallel(&intervals, slope.max(1), 1).unwrap()] {
                prop_assert!(traced.integers.is_sorted_by(|a, b| a < b));
                for (n, original) in traced.integers.iter().zip(&integers) {
                    prop_assert!(n.abs_diff(*original) <= bound as u64);
                }
            }
        }
    }
}
