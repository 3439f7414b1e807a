//! Which samples does a range window contain, and what is the result of a function at each step?
//!
//! This file and `output.rs` use each other: the answer to an instant query for a range vector has the points of one window of
//! each series ([`window_at`]), and `output.rs` defines the type of a point.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_model::Timestamp;

use crate::Error;

use super::digest::Digest;
use super::grid::Grid;
use super::output::Point;
use super::rows::{Columns, Ranges, Samples};
use super::series::{At, Cursor, Passed, Piece, Run};
use super::slide::{cut, slide};
use super::{Params, STALE};

/// Bounds of a window. It contains the samples with `start < at <= end`.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub start: Timestamp,
    pub end: Timestamp,
    /// The evaluation time. It differs from `end` if the query has `offset` or `@`.
    pub now: Timestamp,
}

/// The samples of one series within bounds. Functions get only windows with at least one sample.
#[derive(Clone, Copy, Debug)]
pub struct Window<'s> {
    pub at: &'s [Timestamp],
    pub values: &'s [f64],
    pub bounds: Bounds,
}

/// Two indexes that only move forwards, as the windows do.
struct Slider {
    seen: Range<usize>,
}

impl Slider {
    fn slide(&mut self, at: &[Timestamp], bounds: &Bounds) -> Range<usize> {
        while self.seen.end < at.len() && at[self.seen.end] <= bounds.end {
            self.seen.end += 1;
        }
        while self.seen.start < self.seen.end && at[self.seen.start] <= bounds.start {
            self.seen.start += 1;
        }
        self.seen.clone()
    }
}

/// The windows of a function call in a query. All series have the same windows.
pub struct Frame<'a> {
    pub ranges: &'a Ranges<'a>,
    pub grid: Grid,
    /// `parameters[i]` is the i-th scalar argument over all steps.
    pub parameters: &'a [Vec<f64>],
}

impl Frame<'_> {
    pub fn bounds(&self, step: usize) -> Bounds {
        self.ranges.bounds(self.grid.time(step))
    }

    pub fn parameters_at(&self, step: usize, into: &mut [f64]) {
        for (parameter, over_steps) in into.iter_mut().zip(self.parameters) {
            *parameter = over_steps[step];
        }
    }

    /// Whether each step reads the same window with the same parameters, as in `rate(x[1d] @ end())`.
    fn is_constant(&self) -> bool {
        let steady = |values: &Vec<f64>| values.iter().all(|value| value.to_bits() == values[0].to_bits());
        let of_changes = |change: &super::rows::Change| change.parameters.iter().all(steady);
        self.ranges.reference.fixed.is_some()
            && self.parameters.iter().all(steady)
            && self.ranges.changes.iter().all(of_changes)
    }
}

/// Computes a function of windows for one series over all steps.
pub type Slide =
    Box<dyn Fn(&Samples<'_>, &Frame<'_>, &mut Visits<'_>) -> Result<Vec<f64>, Error> + Send + Sync>;

/// A function that is computed for sliding windows.
pub struct Sliding {
    slide: Slide,
    /// Whether the function reads [`Bounds::now`].
    uses_now: bool,
    /// Whether summaries are sufficient instead of samples.
    pub from_summaries: bool,
}

impl Sliding {
    pub fn digest<D: Digest + 'static>(read: fn(&D, &Bounds, &[f64]) -> Option<f64>) -> Self {
        let slide = move |series: &Samples<'_>, frame: &Frame<'_>, visits: &mut Visits<'_>| {
            if frame.ranges.changes.is_empty() {
                return slide(&series.pieces, frame, visits, read);
            }
            each_window(series, frame, visits, |window, parameters| {
                let run = Run { at: At::Explicit(window.at), values: window.values };
                read(&D::of(&run), &window.bounds, parameters)
            })
        };
        Self { slide: Box::new(slide), uses_now: false, from_summaries: D::FROM_SUMMARIES }
    }

    /// A function that needs every sample of each window.
    pub fn window(read: fn(&Window<'_>, &[f64]) -> Option<f64>) -> Self {
        let slide = move |series: &Samples<'_>, frame: &Frame<'_>, visits: &mut Visits<'_>| {
            each_window(series, frame, visits, read)
        };
        Self { slide: Box::new(slide), uses_now: false, from_summaries: false }
    }

    /// A function that needs only the values of each window, not their times. It may reorder and change the values.
    pub fn values(read: fn(&mut [f64], &[f64]) -> Option<f64>) -> Self {
        let slide = move |series: &Samples<'_>, frame: &Frame<'_>, visits: &mut Visits<'_>| {
            if frame.ranges.changes.is_empty() {
                return each_values(&series.pieces, frame, visits, read);
            }
            each_window(series, frame, visits, |window, parameters| {
                read(&mut window.values.to_vec(), parameters)
            })
        };
        Self { slide: Box::new(slide), uses_now: false, from_summaries: false }
    }

    pub fn using_now(self) -> Self {
        Self { uses_now: true, ..self }
    }

    /// The values of the function for `series` at each step.
    pub fn apply(
        &self,
        series: &Samples<'_>,
        frame: &Frame<'_>,
        visits: &mut Visits<'_>,
    ) -> Result<Vec<f64>, Error> {
        if !self.uses_now && frame.is_constant() {
            let once = Grid { count: frame.grid.count.min(1), ..frame.grid };
            let first = (self.slide)(series, &Frame { grid: once, ..*frame }, visits)?;
            return Ok(first.repeat(frame.grid.count));
        }
        (self.slide)(series, frame, visits)
    }
}

pub struct Walk<'s> {
    columns: Columns<'s>,
    slider: Slider,
    ranges: &'s Ranges<'s>,
}

impl<'s> Walk<'s> {
    pub fn new(series: &'s Samples<'_>, ranges: &'s Ranges<'s>) -> Self {
        Self { columns: series.columns(), slider: Slider { seen: 0..0 }, ranges }
    }

    /// The samples of the window at `now` after all changes. `now` must not decrease from call to call.
    pub fn window(
        &mut self,
        now: Timestamp,
        step: usize,
        visits: &mut Visits<'_>,
    ) -> Result<Columns<'_>, Error> {
        let bounds = self.ranges.bounds(now);
        let seen = self.slider.slide(&self.columns.at, &bounds);
        visits.count(seen.len())?;
        let (at, values) = (&self.columns.at[seen.clone()], &self.columns.values[seen]);
        if self.ranges.changes.is_empty() {
            return Ok(Columns { at: at.into(), values: values.into() });
        }
        self.ranges.change(&Window { at, values, bounds }, step, visits)
    }
}

/// The result of `read` for the samples of each window after all changes.
fn each_window(
    series: &Samples<'_>,
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: impl Fn(&Window<'_>, &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let mut walk = Walk::new(series, frame.ranges);
    let mut parameters = vec![0.0; frame.parameters.len()];
    let mut points = Vec::with_capacity(frame.grid.count);
    for step in 0..frame.grid.count {
        let bounds = frame.bounds(step);
        frame.parameters_at(step, &mut parameters);
        let samples = walk.window(bounds.now, step, visits)?;
        let window = Window { at: &samples.at, values: &samples.values, bounds };
        let value = if window.at.is_empty() { None } else { read(&window, &parameters) };
        points.push(value.unwrap_or(STALE));
    }
    Ok(points)
}

/// The result of `read` for the values of each window.
fn each_values(
    pieces: &[Piece],
    frame: &Frame<'_>,
    visits: &mut Visits<'_>,
    read: fn(&mut [f64], &[f64]) -> Option<f64>,
) -> Result<Vec<f64>, Error> {
    let mut cursor = Cursor::new(pieces);
    let mut parameters = vec![0.0; frame.parameters.len()];
    let mut points = Vec::with_capacity(frame.grid.count);
    let mut values = Vec::new();
    for step in 0..frame.grid.count {
        let bounds = frame.bounds(step);
        cursor.pass(bounds.start, |_| {}).map_err(|_| cut())?;
        values.clear();
        let append = |passed: Passed<'_>| {
            if let Passed::Run(run) = passed {
                values.extend_from_slice(run.values);
            }
        };
        cursor.clone().pass(bounds.end, append).map_err(|_| cut())?;
        visits.count(values.len())?;
        frame.parameters_at(step, &mut parameters);
        let value = if values.is_empty() { None } else { read(&mut values, &parameters) };
        points.push(value.unwrap_or(STALE));
    }
    Ok(points)
}

/// Counts the samples that windows read, and checks the limit.
pub struct Visits<'l> {
    params: &'l Params,
    all: &'l AtomicUsize,
    /// Samples counted here and not yet added to the total.
    here: usize,
}

impl<'l> Visits<'l> {
    /// The total is updated after this number of samples, because an atomic addition takes as long as reading twenty samples.
    const HERE_MAX: usize = 1 << 16;

    pub fn new(params: &'l Params, all: &'l AtomicUsize) -> Self {
        Self { params, all, here: 0 }
    }

    pub fn another(&self) -> Self {
        Self::new(self.params, self.all)
    }

    /// Limit on the values of an intermediate result.
    pub const fn points_max(&self) -> usize {
        self.params.limits.points_max
    }

    pub fn count(&mut self, samples: usize) -> Result<(), Error> {
        self.here = self.here.saturating_add(samples);
        let visits_max = self.params.limits.visits_max;
        if self.here < Self::HERE_MAX.min(visits_max) {
            return Ok(());
        }
        self.params.cancel.check()?;
        let before = self.all.fetch_add(self.here, Ordering::Relaxed);
        let visits = before.saturating_add(std::mem::take(&mut self.here));
        if visits > visits_max {
            return Err(Error::limit("samples read by windows", visits as u128, visits_max));
        }
        Ok(())
    }
}

/// Whether any series has a sample in its window, for each step.
pub fn presence_of_ranges(
    ranges: &Ranges<'_>,
    grid: &Grid,
    visits: &mut Visits<'_>,
) -> Result<Vec<bool>, Error> {
    let mut present = vec![false; grid.count];
    let frame = Frame { ranges, grid: *grid, parameters: &[] };
    for series in &ranges.series {
        let points = each_window(series, &frame, visits, |_, _| Some(1.0))?;
        for (present, point) in present.iter_mut().zip(points) {
            *present |= !super::is_stale(point);
        }
    }
    Ok(present)
}

/// The samples of the window at `now` after all changes.
pub fn window_at(
    series: &Samples<'_>,
    ranges: &Ranges<'_>,
    now: Timestamp,
    visits: &mut Visits<'_>,
) -> Result<Vec<Point>, Error> {
    let bounds = ranges.bounds(now);
    let (mut cursor, mut points) = (Cursor::new(&series.pieces), Vec::new());
    cursor.pass(bounds.start, |_| {}).map_err(|_| cut())?;
    let mut append = |passed: Passed<'_>| {
        if let Passed::Run(run) = passed {
            points.extend(run.iter().map(|(at, value)| Point { at, value }));
        }
    };
    cursor.pass(bounds.end, &mut append).map_err(|_| cut())?;
    if ranges.changes.is_empty() || points.is_empty() {
        return Ok(points);
    }
    let samples: Columns<'_> = points.iter().map(|point| (point.at, point.value)).collect();
    let window = Window { at: &samples.at, values: &samples.values, bounds };
    let changed = ranges.change(&window, 0, visits)?;
    Ok(changed.at.iter().zip(&*changed.values).map(|(at, value)| Point { at: *at, value: *value }).collect())
}
