//! Counts the records that a deletion would remove. Counting reads the records. The deletion itself does not.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tacho_chunk::ExecutionBlock;
use tacho_model::{Kind, Matcher, SeriesId, TimeRange};
use tacho_store::{Damages, Error, ErrorKind, Read, Result, Waiter};

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
            "complete": !self.cut && self.damages.is_empty(),
        })
    }
}

/// `only`: counts only samples or only entries.
///
/// # Errors
/// `Corrupt` when some records cannot be read, unless `allow_damaged` is set. Other errors of the store.
pub async fn affected(
    store: &View,
    selectors: &[Vec<Matcher>],
    range: TimeRange,
    (only, allow_damaged): (Option<Kind>, bool),
) -> Result<Affected> {
    let end = Instant::now() + COUNT_TIME_MAX;
    let (found, executions) = select(store, selectors.to_vec(), only).await?;
    let mut out = Affected { accepted: (found.len() + executions.len()) as u64, ..Affected::default() };
    let mut damages = if only.is_none() { store.lacks(Kind::Execution) } else { Damages::default() };
    for id in executions {
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
    for kind in [Kind::Sample, Kind::Entry].into_iter().filter(|kind| only.is_none_or(|only| only == *kind)) {
        let wanted = found.iter().filter(|series| series.kind == kind).cloned().collect();
        let mut reader = Reader::new(store.clone(), wanted, Some(kind), range).over_damage(true);
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

/// Selects the series of samples and entries, and those of calls. Stops when the client disconnects, because patterns may
/// take long.
async fn select(
    store: &View,
    selectors: Vec<Vec<Matcher>>,
    only: Option<Kind>,
) -> Result<(Vec<Selected>, BTreeSet<SeriesId>)> {
    let store = store.clone();
    let waiter = Waiter::default();
    let waits = waiter.waits();
    let select = move || {
        let found = reader::find_while(&store, &selectors, only, &waits)?;
        let mut calls = BTreeSet::new();
        for matchers in selectors.iter().filter(|_| only.is_none()) {
            let series = store.find_while(Kind::Execution, matchers, &waits)?;
            calls.extend(series.into_iter().map(|(id, _)| id));
        }
        Some((found, calls))
    };
    let selected = tokio::task::spawn_blocking(select).await;
    let selected =
        selected.map_err(|e| Error::new(ErrorKind::Closed, "selection of series did not end").caused_by(e));
    // `None` means that the selection has stopped, because the client has disconnected.
    selected.map(Option::unwrap_or_default)
}

/// Counts the completed calls of the segments that begin in the range. Deletions apply to the same segments.
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
