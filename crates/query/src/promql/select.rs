//! What is the value of each selected series at each step?
//!
//! Step before: `series.rs`, which holds the samples read. Step after: `functions.rs` and the other operators.

use std::borrow::Cow;

use tacho_chunk::Times;

use crate::Error;

use super::grid::{Grid, Reference, seconds};
use super::node::Yield;
use super::rows::{Columns, Row, Samples};
use super::series::{Cursor, Piece, SeriesData};
use super::slide::cut;
use super::{STALE, is_stale};

/// At each step, the value or the time of the newest sample of the last `lookback` ns, as `yields` states. The step has no value
/// if that sample is a staleness marker.
pub fn instants(
    series: &SeriesData,
    grid: &Grid,
    reference: &Reference,
    lookback: i64,
    yields: Yield,
) -> Result<Row, Error> {
    let mut cursor = Cursor::new(&series.pieces);
    let mut points = Vec::with_capacity(grid.count);
    for time in grid.times() {
        let now = reference.time(time);
        cursor.pass(now, |_| {}).map_err(|_| cut())?;
        points.push(match (cursor.behind(), yields) {
            (None, _) => STALE,
            (Some((at, value)), _) if at <= now.saturating_sub(lookback) || is_stale(value) => STALE,
            (Some((_, value)), Yield::Value) => value,
            (Some((at, _)), Yield::Time) => seconds(at),
        });
    }
    Ok(Row { labels: series.labels.clone(), points })
}

/// All samples of a series without its staleness markers.
pub fn samples(series: &SeriesData) -> Samples<'_> {
    let pieces = if series.pieces.iter().any(Piece::has_stale) {
        Cow::Owned(series.pieces.iter().map(Piece::without_stale).collect())
    } else {
        Cow::Borrowed(&*series.pieces)
    };
    Samples { labels: series.labels.clone(), pieces }
}

/// Converts the values of a subquery's inner expression to samples.
pub fn samples_of_row(row: Row, grid: &Grid) -> Samples<'static> {
    let Row { labels, points } = row;
    let whole = grid.last() == grid.start.wrapping_add(grid.step.wrapping_mul(points.len() as i64 - 1));
    let piece = if whole && !points.iter().any(|value| is_stale(*value)) {
        Piece::Samples {
            at: Times::Regular { start: grid.start, step: grid.step, count: points.len() },
            values: points,
        }
    } else {
        let present = grid.times().zip(points).filter(|(_, value)| !is_stale(*value));
        let Columns { at, values } = present.collect();
        Piece::Samples { at: Times::Explicit((&*at).into()), values: values.into_owned() }
    };
    Samples { labels, pieces: Cow::Owned(vec![piece]) }
}
