//! Reads the samples that the plan of a query needs.
//!
//! Step before: `crates/store/src/read/samples.rs` returns the samples. Step after: `crates/query/src/promql/` computes with
//! them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tacho_model::{Kind, Labels, SeriesId, Timestamp};
use tacho_query::Cancel;
use tacho_query::promql::{self, Limits, Piece, Selection, SeriesData};
use tacho_store::{Damages, ErrorKind, ReadReport};

use super::calls;
use super::series::unless_many;
use crate::access::View;
use crate::http::error::ApiError;
use crate::http::running::Progress;

pub(super) type Pieces = (Arc<Labels>, Vec<tacho_store::Piece>);

/// The data of each selection, in order.
#[derive(Default)]
pub struct Fetched {
    data: Vec<Vec<Pieces>>,
    pub report: ReadReport,
    pub damages: Damages,
    pub of_calls: OfCalls,
}

#[derive(Default)]
pub struct OfCalls {
    /// Whether a selection selects series that are computed from calls (`calls.rs`), so that the answer depends on the calls.
    pub is_some: bool,
    pub warnings: Vec<String>,
}

impl Fetched {
    pub fn samples(&self) -> usize {
        self.data.iter().map(|series| samples(series)).sum()
    }

    pub fn series(&self) -> usize {
        self.data.iter().map(Vec::len).sum()
    }

    /// Converts the values to floats. Millions of integers are converted on several cores.
    pub fn floats(self) -> Floats {
        let all = self.samples();
        let convert =
            |(labels, pieces): Pieces| SeriesData { labels, pieces: pieces.into_iter().map(piece).collect() };
        let of_one = |series: Vec<Pieces>| {
            let samples = samples(&series);
            promql::each_of(series, samples, convert)
        };
        let data = self.data.into_iter().map(of_one).collect();
        Floats { data, samples: all, report: self.report, damages: self.damages, of_calls: self.of_calls }
    }
}

fn samples(series: &[Pieces]) -> usize {
    series.iter().flat_map(|(_, pieces)| pieces).map(tacho_store::Piece::len).sum()
}

pub struct Floats {
    pub data: Vec<Vec<SeriesData>>,
    pub samples: usize,
    pub report: ReadReport,
    pub damages: Damages,
    pub of_calls: OfCalls,
}

pub enum Failed {
    Over(ApiError),
    Other(ApiError),
}

pub type Series = Vec<(SeriesId, Arc<Labels>)>;

/// Finds the series of each selection. `None` if all selections together have more than `series_max` series. Stops when the
/// client disconnects, because the search of a large index takes long.
pub fn find(
    store: &View,
    selections: &[Selection],
    series_max: usize,
    cancel: &Cancel,
) -> Result<Option<Vec<Series>>, ApiError> {
    let waits = || !cancel.is_cancelled();
    let mut series_left = series_max;
    let mut found = Vec::with_capacity(selections.len());
    for selection in selections {
        let series = store.find_within(Kind::Sample, &selection.matchers, series_left, &waits);
        let Some(series) = unless_many(series)? else { return Ok(None) };
        series_left -= series.len();
        found.push(series);
    }
    Ok(Some(found))
}

/// Reads the samples of the selections. Fails as soon as the limit on samples is exceeded. The series that are computed from
/// calls (`calls.rs`) end at `now`.
pub async fn selections(
    (store, progress): (&View, &Progress),
    selections: &[Selection],
    found: &[Series],
    limits: &Limits,
    now: Timestamp,
) -> Result<Fetched, Failed> {
    let room = AtomicUsize::new(limits.samples_max);
    let mut fetched = Fetched { damages: store.lacks(Kind::Sample), ..Fetched::default() };
    for (selection, found) in selections.iter().zip(found) {
        let Selection { range, windows, .. } = selection;
        let ids: Vec<SeriesId> = found.iter().map(|(id, _)| *id).collect();
        let answer = store.read_samples(&ids, *range, windows.as_ref(), &room).await.map_err(|error| {
            match error.kind() {
                ErrorKind::Limit => Failed::Over(over("samples", limits.samples_max)),
                _ => Failed::Other(error.into()),
            }
        })?;
        fetched.report += answer.report;
        fetched.damages.extend(answer.damages);
        let series = found.iter().zip(answer.series).map(|((_, labels), pieces)| (labels.clone(), pieces));
        let has_data = |(_, pieces): &Pieces| pieces.iter().any(|piece| !piece.is_empty());
        let mut series: Vec<Pieces> = series.filter(has_data).collect();
        if let Some(counted) = calls::counted(selection) {
            let read = calls::read((store, progress), selection, counted, now, &room).await;
            let read = read.map_err(|error| Failed::Other(error.into()))?;
            let read = read.ok_or_else(|| Failed::Over(over("samples", limits.samples_max)))?;
            fetched.damages.extend(read.damages);
            fetched.of_calls.is_some = true;
            fetched.of_calls.warnings.extend(read.warnings);
            // Stored series with the same labels take precedence.
            let stored: HashSet<&Labels> = found.iter().map(|(_, labels)| &**labels).collect();
            series.extend(read.series.into_iter().filter(|(labels, _)| !stored.contains(&**labels)));
            if series.len() > limits.series_max {
                return Err(Failed::Over(over("series", limits.series_max)));
            }
        }
        fetched.data.push(series);
    }
    Ok(fetched)
}

/// Integers above 2^53 are rounded, because PromQL computes with f64.
fn piece(piece: tacho_store::Piece) -> Piece {
    match piece {
        tacho_store::Piece::Samples { times, values } => {
            Piece::Samples { at: times, values: values.into_f64() }
        }
        tacho_store::Piece::Summary(summary) => Piece::Summary(summary),
    }
}

pub fn over(what: &str, max: usize) -> ApiError {
    ApiError::execution(format!("query needs more than {max} {what}: narrow its selectors or its time range"))
}
