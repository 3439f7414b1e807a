//! Which time windows does a query have, and does a window contain only a part of a chunk?

use crate::Timestamp;

/// `count` windows of `range` ns each. The first window ends at `first`; each further window ends `step` ns after the
/// previous one. A window contains the times `at` with `end - range < at <= end`. Windows overlap if `step` is less
/// than `range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    pub first: Timestamp,
    /// Above 0 unless `count` is 1.
    pub step: i64,
    pub count: usize,
    /// Above 0.
    pub range: i64,
}

impl Windows {
    /// Whether any window contains a part of `start..=end` but not all of it. If not, statistics of the whole interval
    /// are sufficient for every window.
    pub fn cut(&self, start: Timestamp, end: Timestamp) -> bool {
        // A window cuts the interval if one of the window's two edges is inside the interval.
        let between = |edge: i128| i128::from(start) <= edge && edge < i128::from(end);
        let after_start = |first: i128| -> i128 {
            let steps = (i128::from(start) - first).max(0);
            let step = i128::from(self.step.max(1));
            steps.div_euclid(step) + i128::from(steps.rem_euclid(step) > 0)
        };
        [i128::from(self.first), i128::from(self.first) - i128::from(self.range)].into_iter().any(|first| {
            let n = after_start(first);
            n < self.count as i128 && between(first + n * i128::from(self.step))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_agrees_with_a_check_of_every_time() {
        let holds = |w: &Windows, n: i64, at: i64| {
            let end = w.first + n * w.step;
            end - w.range < at && at <= end
        };
        for (first, step, count, range) in
            [(10, 5, 4, 5), (10, 5, 4, 12), (10, 7, 3, 2), (10, 0, 1, 6), (3, 1, 9, 1)]
        {
            let windows = Windows { first, step, count, range };
            for start in -5..40 {
                for end in start..40 {
                    let expect = (0..count as i64).any(|n| {
                        let inside = (start..=end).filter(|at| holds(&windows, n, *at)).count() as i64;
                        inside != 0 && inside != end - start + 1
                    });
                    assert_eq!(windows.cut(start, end), expect, "{windows:?} {start}..={end}");
                }
            }
        }
    }
}
