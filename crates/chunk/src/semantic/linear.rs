//! Values that may be moved a little, on straight lines: where a signal rises, falls or stands still for a while, two numbers a
//! line are left of it.

use super::grid::{Grid, exponents};
use super::trace::{meeting, parallel};
use crate::loss::Tolerance;

/// A finer grid has more slopes for a long line, and each takes more bits. So many are tried.
const FINER: u8 = 3;

/// Columns within the tolerance, one of which may be small.
pub(super) fn candidates(values: &[f64], tolerance: Tolerance) -> Vec<Vec<f64>> {
    let grids =
        exponents(values, tolerance, FINER).filter_map(|exponent| Grid::of(values, tolerance, exponent));
    let traced = |grid: Grid| {
        let first = grid.intervals.first().map_or(0, |interval| interval.middle());
        let meeting = meeting(&grid.intervals, first, i64::MIN);
        let level = parallel(&grid.intervals, 0, i64::MIN);
        let floats = |traced: super::trace::Traced| grid.floats(&traced.integers, values);
        meeting.into_iter().chain(level).map(floats).collect::<Vec<_>>()
    };
    grids.flat_map(traced).collect()
}
