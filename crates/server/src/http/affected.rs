//! Counts the records that a deletion would remove. Counting reads the records. The deletion itself does not.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tacho_chunk::ExecutionBlock;
use tacho_model::{Kind, Matcher, SeriesId, TimeRange};
use tacho_query::Cancel;
use tacho_store::{Damages, Read, Result, Unfound};

use super::answers::Share;
use super::app::App;
use super::error::ApiError;
use super::prometheus::series::{self, LIGHT_SERIES_MAX};
use crate::access::View;
use crate::read::reader::{self, Reader, Selected};

/// Time limit for counting, so that a large deletion does not have to wait long.
const COUNT_TIME_MAX: Duration = Duration::from_secs(10);

/// Number of series with records in the range, and number of these records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    series: u64,
    records: u64,
}

/// Counts of the records in a range, of all series that at least one selector accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affected {
    /// Number of accepted series, with or without records in the range. A series counts once for each kind of its records.
    accepted: u64,
    samples: Count,
    entries: Count,
    calls: Count,
    /// Hours with summaries of expired calls. A deletion removes the summaries of whole hours.
    hours: Count,
    /// Counting timed out, so there may be more records.
    cut: bool,
    damages: Damages,
}

impl Affected {
    pub const fn damages(&self) -> &Damages {
        &self.damages
    }

    pub fn to_json(&self) -> Value {
        let count = |count: Count| json!({ "series": count.series, "records": count.records });
        json!({
            "accepted": self.accepted,
            "samples": count(self.samples),
            "entries": count(self.entries),
            "calls": count(self.calls),
            "summaries": { "series": self.hours.series, "hours": self.hours.records },
            "complete": !self.cut && self.damages.is_empty(),
        })
    }
}

/// The series whose records in a range are counted.
pub struct Selection {
    accepted: usize,
    /// A reader for each kind, samples and entries.
    readers: Vec<(Kind, Reader)>,
    /// The series of calls. `None` if calls are not counted.
    calls: Option<BTreeSet<SeriesId>>,
    range: TimeRange,
}

/// Selects the series that at least one selector accepts. `only`: only samples or only entries. If the selectors accept many
/// series, waits for the permit of such selections. Takes the share of the selection from the memory budget of answers.
///
/// # Errors
/// When the budget is used up, or when too many requests wait. When the client has disconnected.
pub async fn select(
    app: &App,
    store: &View,
    (selectors, range): &(Vec<Vec<Matcher>>, TimeRange),
    only: Option<Kind>,
) -> std::result::Result<(Selection, Option<Share>), ApiError> {
    let work = |series_max| {
        let (store, selectors, range) = (store.clone(), selectors.clone(), *range);
        move |cancel: &Cancel| {
            let waits = || !cancel.is_cancelled();
            series::unless_many(Selection::within(&store, (&selectors, range), only, series_max, &waits))
        }
    };
    let selected = match series::selecting(app, &app.queries, work(LIGHT_SERIES_MAX)).await? {
        None => series::selecting_alone(app, &app.lists, work(usize::MAX)).await?,
        light => light,
    };
    let selection =
        selected.ok_or_else(|| ApiError::internal("a selection of series ended without a result"))?;
    let share = app.answers.share_of(reader::list_bytes(selection.accepted))?;
    Ok((selection, share))
}

impl Selection {
    fn within(
        store: &View,
        (selectors, range): (&[Vec<Matcher>], TimeRange),
        only: Option<Kind>,
        series_max: usize,
        waits: &dyn Fn() -> bool,
    ) -> std::result::Result<Self, Unfound> {
        let found = reader::find_within(store, selectors, only, series_max, waits)?;
        let mut accepted = found.len();
        let (samples, entries) = found.into_iter().partition(|series: &Selected| series.kind == Kind::Sample);
        let readers = [(Kind::Sample, samples), (Kind::Entry, entries)].into_iter();
        let readers =
            readers.filter(|(kind, _)| only.is_none_or(|only| only == *kind)).map(|(kind, series)| {
                (kind, Reader::new(store.clone(), series, Some(kind), range).over_damage(true))
            });
        let readers = readers.collect();
        let mut calls = only.is_none().then(BTreeSet::new);
        for matchers in selectors {
            let Some(calls) = &mut calls else { break };
            let left = series_max.saturating_sub(accepted + calls.len());
            let series = store.find_within(Kind::Execution, matchers, left, waits)?;
            calls.extend(series.into_iter().map(|(id, _)| id));
        }
        accepted += calls.as_ref().map_or(0, BTreeSet::len);
        Ok(Self { accepted, readers, calls, range })
    }
}

/// Counts the records of the selected series.
///
/// # Errors
/// `Corrupt` when some records cannot be read, unless `allow_damaged` is set. Other errors of the store.
pub async fn affected(store: &View, selection: Selection, allow_damaged: bool) -> Result<Affected> {
    let end = Instant::now() + COUNT_TIME_MAX;
    let Selection { accepted, readers, calls: executions, range } = selection;
    let mut out = Affected { accepted: accepted as u64, ..Affected::default() };
    let mut damages = if executions.is_some() { store.lacks(Kind::Execution) } else { Damages::default() };
    for id in executions.into_iter().flatten() {
        let hours = store.deleted_hours(id, range).await?;
        out.hours.series += u64::from(hours > 0);
        out.hours.records += hours;
        // A series may hold more calls than can be read in time.
        let Ok(calls) = tokio::time::timeout_at(end.into(), calls(store, id, range)).await else {
            out.cut = true;
            break;
        };
        let Read { records: calls, damages: more } = calls?;
        damages.extend(more);
        out.calls.series += u64::from(calls > 0);
        out.calls.records += calls;
    }
    for (kind, mut reader) in readers {
        let mut cut = false;
        while !cut {
            match tokio::time::timeout_at(end.into(), reader.next()).await {
                Ok(slice) if slice.as_ref().is_ok_and(Option::is_none) => break,
                Ok(slice) => drop(slice?),
                Err(_) => cut = true,
            }
        }
        out.cut |= cut;
        // `totals` includes a series only after its last record, so an interrupted series is added here.
        let series = reader.totals.series + u64::from(cut);
        match kind {
            Kind::Entry => out.entries = Count { series, records: reader.totals.entries.count },
            _ => out.samples = Count { series, records: reader.totals.samples.count },
        }
        damages.extend(reader.damages());
    }
    if !allow_damaged {
        damages.check()?;
    }
    out.damages = damages;
    Ok(out)
}

/// Counts the completed calls of a part of a segment if the first event of the part is in the range. A deletion removes the same
/// parts.
async fn calls(store: &View, id: SeriesId, range: TimeRange) -> Result<Read<u64>> {
    let calls = AtomicU64::new(0);
    let count = |block: &ExecutionBlock| {
        let rows = block.rows().filter(|row| range.contains(row.start()));
        calls.fetch_add(rows.map(|row| row.shape().completed() as u64).sum(), Ordering::Relaxed);
        false
    };
    let read = store.executions_within(id, range, &AtomicUsize::new(usize::MAX), count).await?;
    Ok(Read { records: calls.into_inner(), damages: read.damages })
}
