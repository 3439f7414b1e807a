//! What is the result of a node over its grid?
//!
//! This file and `window.rs` use each other. [`Ranges`] computes the [`Bounds`] of each window and changes the samples of a
//! [`Window`]. `window.rs` defines these two types, and applies functions to the changed samples.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use tacho_chunk::Times;
use tacho_model::{Labels, Timestamp};

use crate::Error;

use super::grid::{Grid, Reference};
use super::label_memory::{LabelRoom, bytes_of};
use super::series::Piece;
use super::window::{Bounds, Visits, Window};
use super::{STALE, is_stale};

/// One series over all steps of a grid.
#[derive(Clone, Debug)]
pub struct Row {
    pub labels: Arc<Labels>,
    /// One value per step; [`STALE`] where the series has no value.
    pub points: Vec<f64>,
}

impl Row {
    /// The value at `step`, if there is one.
    pub fn at(&self, step: usize) -> Option<f64> {
        let value = self.points[step];
        if is_stale(value) { None } else { Some(value) }
    }

    pub fn is_blank(&self) -> bool {
        self.points.iter().all(|value| is_stale(*value))
    }

    /// Replaces the values. Steps without a value stay without a value.
    pub fn map(&mut self, change: impl Fn(f64) -> f64) {
        for value in &mut self.points {
            if !is_stale(*value) {
                *value = change(*value);
            }
        }
    }

    /// As [`Row::map`], but `change` also gets the step. `None` removes the value.
    pub fn filter_map(&mut self, change: impl Fn(usize, f64) -> Option<f64>) {
        for (step, value) in self.points.iter_mut().enumerate() {
            if !is_stale(*value) {
                *value = change(step, *value).unwrap_or(STALE);
            }
        }
    }
}

/// The samples of one series without its staleness markers. Range windows slide over these samples.
#[derive(Clone, Debug)]
pub struct Samples<'d> {
    pub labels: Arc<Labels>,
    pub pieces: Cow<'d, [Piece]>,
}

/// Samples of one series, sorted by time.
#[derive(Clone, Debug, Default)]
pub struct Columns<'d> {
    pub at: Cow<'d, [Timestamp]>,
    pub values: Cow<'d, [f64]>,
}

impl Samples<'_> {
    /// All samples, as one piece in memory.
    pub fn columns(&self) -> Columns<'_> {
        if let [Piece::Samples { at: Times::Explicit(at), values }] = &*self.pieces {
            return Columns { at: Cow::Borrowed(at), values: Cow::Borrowed(values) };
        }
        let samples = self.pieces.iter().map(Piece::len).sum();
        let (mut all_at, mut all_values) = (Vec::with_capacity(samples), Vec::with_capacity(samples));
        for piece in self.pieces.iter() {
            if let Piece::Samples { at, values } = piece {
                all_at.extend(at.iter());
                all_values.extend_from_slice(values);
            }
        }
        Columns { at: all_at.into(), values: all_values.into() }
    }
}

impl FromIterator<(Timestamp, f64)> for Columns<'_> {
    fn from_iter<I: IntoIterator<Item = (Timestamp, f64)>>(samples: I) -> Self {
        let (at, values): (Vec<Timestamp>, Vec<f64>) = samples.into_iter().unzip();
        Self { at: at.into(), values: values.into() }
    }
}

/// Replaces the samples in a window. The second parameter has the values of the scalar arguments in the query.
pub type ChangeFn = fn(&Window<'_>, &[f64], &mut Visits<'_>) -> Result<Columns<'static>, Error>;

/// A [`ChangeFn`] with its arguments in a query.
#[derive(Clone, Debug)]
pub struct Change {
    pub function: ChangeFn,
    /// `parameters[i]` is the i-th scalar argument over all steps.
    pub parameters: Vec<Vec<f64>>,
}

/// A range vector at all steps: the samples, the window of each step, and the changes to the samples in each window.
#[derive(Clone, Debug)]
pub struct Ranges<'d> {
    pub series: Vec<Samples<'d>>,
    pub reference: Reference,
    /// Length of a window in ns.
    pub range: i64,
    /// Changes in the order in which they are applied.
    pub changes: Vec<Change>,
}

impl Ranges<'_> {
    pub fn bounds(&self, now: Timestamp) -> Bounds {
        let end = self.reference.time(now);
        Bounds { start: end.saturating_sub(self.range), end, now }
    }

    /// The samples of `window` after all changes. The changes use their parameters at `step`.
    pub fn change(
        &self,
        window: &Window<'_>,
        step: usize,
        visits: &mut Visits<'_>,
    ) -> Result<Columns<'static>, Error> {
        let mut changed: Option<Columns<'static>> = None;
        for Change { function, parameters } in &self.changes {
            let parameters: Vec<f64> = parameters.iter().map(|over_steps| over_steps[step]).collect();
            let window = match &changed {
                Some(Columns { at, values }) => Window { at, values, ..*window },
                None => *window,
            };
            if window.at.is_empty() {
                return Ok(Columns::default());
            }
            visits.count(window.at.len())?;
            let next = function(&window, &parameters, visits)?;
            changed = Some(next);
        }
        Ok(changed.unwrap_or_else(|| window.at.iter().copied().zip(window.values.iter().copied()).collect()))
    }
}

#[derive(Clone, Debug)]
pub enum Value<'d> {
    /// One number per step.
    Scalar(Vec<f64>),
    Vector(Vec<Row>),
    Ranges(Ranges<'d>),
    Text(Arc<str>),
}

impl<'d> Value<'d> {
    /// Number of values held, which counts towards the limit on points. A sample of a range vector counts as two (time and
    /// value) if the range vector owns it, otherwise not at all.
    pub fn points(&self) -> usize {
        match self {
            Self::Scalar(points) => points.len(),
            Self::Vector(rows) => rows.iter().map(|row| row.points.len()).sum(),
            Self::Ranges(ranges) => ranges
                .series
                .iter()
                .map(|s| match &s.pieces {
                    Cow::Owned(pieces) => 2 * pieces.iter().map(Piece::len).sum::<usize>(),
                    Cow::Borrowed(_) => 0,
                })
                .sum(),
            Self::Text(_) => 0,
        }
    }

    pub fn into_scalar(self) -> Result<Vec<f64>, Error> {
        match self {
            Self::Scalar(points) => Ok(points),
            _ => Err(mistyped("scalar")),
        }
    }

    pub fn into_rows(self) -> Result<Vec<Row>, Error> {
        match self {
            Self::Vector(rows) => Ok(rows),
            _ => Err(mistyped("instant vector")),
        }
    }

    pub fn into_ranges(self) -> Result<Ranges<'d>, Error> {
        match self {
            Self::Ranges(ranges) => Ok(ranges),
            _ => Err(mistyped("range vector")),
        }
    }

    pub fn into_text(self) -> Result<Arc<str>, Error> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(mistyped("string")),
        }
    }
}

/// `lower.rs` has checked all types, so a wrong type is a bug. A release build fails the query instead of panicking.
fn mistyped(wanted: &str) -> Error {
    debug_assert!(false, "operand is not of the type {wanted}");
    Error::execution(format!("internal: operand is not of the type {wanted}"))
}

/// What a node needs to create rows: its steps, and the limits on points and on the bytes of labels.
#[derive(Clone, Copy, Debug)]
pub struct Canvas<'l> {
    pub grid: Grid,
    pub points_max: usize,
    pub labels: &'l LabelRoom,
}

impl Canvas<'_> {
    /// Checks the number of rows against the limit on points, before the rows are allocated.
    pub fn check_rows(&self, rows: usize) -> Result<(), Error> {
        let points = rows as u128 * self.grid.count as u128;
        if points > self.points_max as u128 {
            return Err(Error::limit("intermediate points", points, self.points_max));
        }
        Ok(())
    }
}

/// How two series with the same labels are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twins {
    /// Two such series become one series if they never have values at the same step. Otherwise they are an error.
    Join,
    /// Two such series are an error, as in Prometheus for functions of ranges.
    Refuse,
}

/// Removes rows without any value. `twins` decides about rows with the same labels.
pub fn settle(rows: Vec<Row>, twins: Twins) -> Result<Vec<Row>, Error> {
    let mut settled: Vec<Row> = Vec::with_capacity(rows.len());
    let mut positions: HashMap<Arc<Labels>, usize> = HashMap::with_capacity(rows.len());
    for row in rows {
        if row.is_blank() {
            continue;
        }
        match positions.entry(row.labels.clone()) {
            Entry::Vacant(vacant) => {
                vacant.insert(settled.len());
                settled.push(row);
            }
            Entry::Occupied(occupied) => match twins {
                Twins::Join => join(&mut settled[*occupied.get()], row)?,
                Twins::Refuse => return Err(same_labels(&row.labels)),
            },
        }
    }
    Ok(settled)
}

fn join(into: &mut Row, from: Row) -> Result<(), Error> {
    for (kept, value) in into.points.iter_mut().zip(from.points) {
        match (is_stale(*kept), is_stale(value)) {
            (_, true) => {}
            (true, false) => *kept = value,
            (false, false) => return Err(same_labels(&into.labels)),
        }
    }
    Ok(())
}

pub fn same_labels(labels: &Labels) -> Error {
    Error::execution(format!("vector cannot contain metrics with the same labelset: {labels}"))
}

/// A row with `value` at each step of `grid` for which `present` returns true.
pub fn row_where(labels: Arc<Labels>, grid: &Grid, value: f64, present: impl Fn(usize) -> bool) -> Row {
    let points = (0..grid.count).map(|step| if present(step) { value } else { STALE }).collect();
    Row { labels, points }
}

/// Whether any of the rows has a value, for each step.
pub fn presence<'r>(rows: impl IntoIterator<Item = &'r Row>, grid: &Grid) -> Vec<bool> {
    let mut present = vec![false; grid.count];
    for row in rows {
        for (step, value) in row.points.iter().enumerate() {
            present[step] |= !is_stale(*value);
        }
    }
    present
}

/// Bytes of the labels of a value, including labels shared with other values.
pub fn label_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Vector(rows) => rows.iter().map(|row| bytes_of(&row.labels)).sum(),
        Value::Ranges(ranges) => ranges.series.iter().map(|series| bytes_of(&series.labels)).sum(),
        Value::Scalar(_) | Value::Text(_) => 0,
    }
}
