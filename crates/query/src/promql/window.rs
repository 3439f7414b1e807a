//! Which samples does a range window see, and what does a function make of them at each step?

use std::ops::Range;

use tacho_model::Timestamp;

use crate::Error;

use super::grid::Grid;
use super::rows::{Ranges, Samples};
use super::{Limits, STALE};

/// The samples of one series within `start < at <= end`; at least one.
#[derive(Clone, Copy, Debug)]
pub struct Window<'s> {
    pub at: &'s [Timestamp],
    pub values: &'s [f64],
    pub start: Timestamp,
    pub end: Timestamp,
    /// The time of evaluation; differs from `end` by `offset` and `@`.
    pub now: Timestamp,
}

impl Window<'_> {
    /// First and last sample.
    pub fn ends(&self) -> ((Timestamp, f64), (Timestamp, f64)) {
        let last = self.at.len() - 1;
        ((self.at[0], self.values[0]), (self.at[last], self.values[last]))
    }

    /// Pairs of values that follow each other.
    pub fn pairs(&self) -> impl Iterator<Item = (f64, f64)> {
        self.values.windows(2).map(|pair| (pair[0], pair[1]))
    }
}

/// Two indexes that only move forward, as long as windows do.
struct Slider {
    seen: Range<usize>,
}

impl Slider {
    fn slide(&mut self, at: &[Timestamp], start: Timestamp, end: Timestamp) -> Range<usize> {
        while self.seen.end < at.len() && at[self.seen.end] <= end {
            self.seen.end += 1;
        }
        while self.seen.start < self.seen.end && at[self.seen.start] <= start {
            self.seen.start += 1;
        }
        self.seen.clone()
    }
}

/// A function of windows, with what is the same for all series.
pub struct Sliding<'a> {
    pub function: fn(&Window<'_>, &[f64]) -> Option<f64>,
    /// Whether the function looks at [`Window::now`].
    pub uses_now: bool,
    pub ranges: &'a Ranges<'a>,
    pub grid: Grid,
    /// `parameters[i]` is the i-th scalar argument over all steps.
    pub parameters: Vec<Vec<f64>>,
}

impl Sliding<'_> {
    /// The function's value for `series` at each step.
    pub fn apply(&self, series: &Samples<'_>, visits: &mut Visits<'_>) -> Result<Vec<f64>, Error> {
        if self.is_constant() {
            let once = Grid { count: self.grid.count.min(1), ..self.grid };
            let first = self.over(once, series, visits)?;
            return Ok(first.repeat(self.grid.count));
        }
        self.over(self.grid, series, visits)
    }

    /// `rate(x[1d] @ end())` sees the same window at each step.
    fn is_constant(&self) -> bool {
        let steady = |values: &Vec<f64>| values.iter().all(|value| value.to_bits() == values[0].to_bits());
        self.ranges.reference.fixed.is_some() && !self.uses_now && self.parameters.iter().all(steady)
    }

    fn over(&self, grid: Grid, series: &Samples<'_>, visits: &mut Visits<'_>) -> Result<Vec<f64>, Error> {
        let mut slider = Slider { seen: 0..0 };
        let mut scalars = vec![0.0; self.parameters.len()];
        let mut points = Vec::with_capacity(grid.count);
        for (step, now) in grid.times().enumerate() {
            let end = self.ranges.reference.time(now);
            let start = end.saturating_sub(self.ranges.range);
            let seen = slider.slide(&series.at, start, end);
            if seen.is_empty() {
                points.push(STALE);
                continue;
            }
            visits.count(seen.len())?;
            for (scalar, over_steps) in scalars.iter_mut().zip(&self.parameters) {
                *scalar = over_steps[step];
            }
            let window =
                Window { at: &series.at[seen.clone()], values: &series.values[seen], start, end, now };
            points.push((self.function)(&window, &scalars).unwrap_or(STALE));
        }
        Ok(points)
    }
}

/// Counts the samples that windows pass over, against the limit.
pub struct Visits<'l> {
    limits: &'l Limits,
    visits: usize,
}

impl<'l> Visits<'l> {
    pub fn new(limits: &'l Limits) -> Self {
        Self { limits, visits: 0 }
    }

    fn count(&mut self, samples: usize) -> Result<(), Error> {
        self.visits = self.visits.saturating_add(samples);
        if self.visits > self.limits.visits_max {
            return Err(Error::limit(
                "visits of samples by windows",
                self.visits as u128,
                self.limits.visits_max,
            ));
        }
        Ok(())
    }
}

/// At which steps any series has a sample in its window.
pub fn presence_of_ranges(ranges: &Ranges<'_>, grid: &Grid) -> Vec<bool> {
    let mut present = vec![false; grid.count];
    for series in &ranges.series {
        let mut slider = Slider { seen: 0..0 };
        for (step, now) in grid.times().enumerate() {
            let end = ranges.reference.time(now);
            present[step] |= !slider.slide(&series.at, end.saturating_sub(ranges.range), end).is_empty();
        }
    }
    present
}

/// The samples of the one window that ends at `now`.
pub fn windows_at<'s>(
    series: &'s Samples<'_>,
    ranges: &Ranges<'_>,
    now: Timestamp,
) -> impl Iterator<Item = (Timestamp, f64)> + use<'s> {
    let end = ranges.reference.time(now);
    let seen = Slider { seen: 0..0 }.slide(&series.at, end.saturating_sub(ranges.range), end);
    series.at[seen.clone()].iter().copied().zip(series.values[seen].iter().copied())
}
