//! Reads the samples that a query's plan asks for.
//!
//! Path of one record: before, `crates/store/src/read.rs` hands it over; after, `crates/query/src/promql/` computes with it.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tacho_model::{Kind, Labels, SeriesId, TimeRange};
use tacho_query::promql::{Limits, Selection, SeriesData};
use tacho_store::Store;

use crate::http::error::ApiError;

/// Series of one query that are read at the same time: hides the latency of a remote driver.
const READS_AT_ONCE: usize = 16;

/// One list of series for each selection, in its order. Stops as soon as a limit is passed.
pub async fn selections(
    store: &Store,
    selections: &[Selection],
    limits: &Limits,
) -> Result<Vec<Vec<SeriesData>>, ApiError> {
    let (mut series_left, mut samples_left) = (limits.series_max, limits.samples_max);
    let mut all = Vec::with_capacity(selections.len());
    for selection in selections {
        let found = store.find(Kind::Sample, &selection.matchers);
        series_left = left(series_left, found.len(), "series", limits.series_max)?;
        all.push(read(store, found, selection.range, &mut samples_left, limits.samples_max).await?);
    }
    Ok(all)
}

async fn read(
    store: &Store,
    found: Vec<(SeriesId, Arc<Labels>)>,
    range: TimeRange,
    samples_left: &mut usize,
    samples_max: usize,
) -> Result<Vec<SeriesData>, ApiError> {
    let reads = found.into_iter().map(|(id, labels)| async move {
        let samples = store.samples(id, range).await?;
        let (at, values) = samples.iter().map(|sample| (sample.at, sample.value.as_f64())).unzip();
        Ok::<_, ApiError>(SeriesData::new(labels, at, values))
    });
    let mut reads = stream::iter(reads).buffered(READS_AT_ONCE);
    let mut list = Vec::new();
    while let Some(series) = reads.try_next().await? {
        *samples_left = left(*samples_left, series.len(), "samples", samples_max)?;
        if !series.is_empty() {
            list.push(series);
        }
    }
    Ok(list)
}

fn left(left: usize, used: usize, what: &str, max: usize) -> Result<usize, ApiError> {
    left.checked_sub(used).ok_or_else(|| {
        ApiError::execution(format!(
            "query needs more than {max} {what}: narrow its selectors or its time range"
        ))
    })
}
