//! How are values changed so that they are on straight lines? A line of any length takes only two numbers: its length, and its
//! slope or its start.

use super::grid::{Grid, exponents};
use super::trace::{Traced, meeting, parallel};
use crate::loss::Tolerance;

/// Number of finer grids that are tried. A finer grid has more slopes for a long line, but each slope takes more bits.
const FINER: u8 = 3;
/// Bits of a line on the coarsest grid, measured on smooth and noisy waves.
const LINE_BITS: f64 = 7.5;
/// Additional bits of a line on a grid that is ten times finer.
const FINER_BITS: f64 = std::f64::consts::LOG2_10;

/// Columns within the tolerance that may be small: a column with lines that meet, and a column with level lines.
pub(super) fn candidates(values: &[f64], tolerance: Tolerance) -> Vec<Vec<f64>> {
    let grids =
        exponents(values, tolerance, FINER).filter_map(|exponent| Grid::of(values, tolerance, exponent));
    let grids: Vec<Grid> = grids.collect();
    let meeting = grids.iter().filter_map(|grid| {
        let first = grid.intervals.first()?.middle();
        Some((grid, meeting(&grid.intervals, first, i64::MIN)?))
    });
    let coarsest = grids.first().map_or(0, |grid| grid.exponent);
    let bits = |grid: &Grid, traced: &Traced| {
        traced.lines as f64 * (LINE_BITS + FINER_BITS * f64::from(grid.exponent - coarsest))
    };
    let meeting = meeting.min_by(|(grid, a), (other, b)| bits(grid, a).total_cmp(&bits(other, b)));
    let level = grids.first().and_then(|grid| Some((grid, parallel(&grid.intervals, 0, i64::MIN)?)));
    let floats = |(grid, traced): (&Grid, Traced)| grid.floats(&traced.integers, values);
    meeting.into_iter().chain(level).map(floats).collect()
}
