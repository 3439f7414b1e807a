//! What do the selected series say at each step?
//!
//! Step before: `server`, which read the samples from the store. Step after: `functions.rs` and its like.

use std::borrow::Cow;
use std::sync::Arc;

use tacho_model::{Labels, Sample, Timestamp};

use super::grid::{Grid, Reference, seconds};
use super::node::Yield;
use super::rows::{Row, Samples};
use super::{STALE, is_stale};

/// One series of a [`super::Selection`]: two columns of equal length, sorted by time.
#[derive(Clone, Debug)]
pub struct SeriesData {
    pub labels: Arc<Labels>,
    pub at: Vec<Timestamp>,
    pub values: Vec<f64>,
}

impl SeriesData {
    /// Integers beyond 2^53 are rounded: PromQL is defined on f64.
    pub fn new(labels: Arc<Labels>, samples: &[Sample]) -> Self {
        let at = samples.iter().map(|sample| sample.at).collect();
        let values = samples.iter().map(|sample| sample.value.as_f64()).collect();
        Self { labels, at, values }
    }

    pub fn len(&self) -> usize {
        self.at.len().min(self.values.len())
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// For each step the newest sample of the last `lookback` ns, unless it is a staleness marker.
pub fn instants(
    series: &SeriesData,
    grid: &Grid,
    reference: &Reference,
    lookback: i64,
    yields: Yield,
) -> Row {
    let at = &series.at[..series.len()];
    let mut seen = 0;
    let points = grid.times().map(|time| {
        let now = reference.time(time);
        while seen < at.len() && at[seen] <= now {
            seen += 1;
        }
        let Some(newest) = seen.checked_sub(1) else { return STALE };
        let value = series.values[newest];
        match yields {
            _ if at[newest] <= now.saturating_sub(lookback) || is_stale(value) => STALE,
            Yield::Value => value,
            Yield::Time => seconds(at[newest]),
        }
    });
    Row { labels: series.labels.clone(), points: points.collect() }
}

/// All samples of a series but its staleness markers, for windows to slide over.
pub fn samples(series: &SeriesData) -> Samples<'_> {
    let (at, values) = (&series.at[..series.len()], &series.values[..series.len()]);
    let labels = series.labels.clone();
    if !values.iter().any(|value| is_stale(*value)) {
        return Samples { labels, at: Cow::Borrowed(at), values: Cow::Borrowed(values) };
    }
    let (at, values) =
        at.iter().zip(values).filter(|(_, value)| !is_stale(**value)).unzip::<_, _, Vec<_>, Vec<_>>();
    Samples { labels, at: Cow::Owned(at), values: Cow::Owned(values) }
}

/// The values of a subquery's inner expression as samples.
pub fn samples_of_row(row: &Row, grid: &Grid) -> Samples<'static> {
    let present = grid.times().zip(&row.points).filter(|(_, value)| !is_stale(**value));
    let (at, values) = present.map(|(time, value)| (time, *value)).unzip::<_, _, Vec<_>, Vec<_>>();
    Samples { labels: row.labels.clone(), at: Cow::Owned(at), values: Cow::Owned(values) }
}
