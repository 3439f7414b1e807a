//! Deletion: durable before the answer and in force immediately. Rows are rewritten later (`sweep.rs`).

use std::sync::Arc;

use tacho_model::{Kind, Labels, Matcher, SeriesId, TimeRange};

use super::Upkeep;
use super::tombstones::Tombstone;
use crate::changes::Change;
use crate::driver::Delete;
use crate::index;
use crate::kept;
use crate::mutation::Mutation;
use crate::waiting::Waiter;
use crate::{Error, ErrorKind, Result};

const MATCHERS_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Series that the matchers accept, by kind.
    pub series: [usize; 3],
}

/// Masks the records in the range, for the series that all matchers accept. Only records stored so far are masked. `seal`
/// seals the active generation and completes after that.
///
/// # Errors
/// `Invalid` if every matcher accepts the empty value, for too many matchers, or for an empty range; `Limit` when too many
/// deletions or patterns are pending; `Closed` when the selection of series ended early; the errors of `seal` and of the
/// driver. After an error of the driver, the deletion may still take effect after a restart.
pub async fn delete(
    upkeep: &Arc<Upkeep>,
    matchers: &[Matcher],
    range: TimeRange,
    seal: impl Future<Output = Result<()>>,
) -> Result<Deleted> {
    if matchers.is_empty() || matchers.iter().all(|matcher| matcher.matches_value("")) {
        return Err(Error::invalid("a deletion needs a matcher that does not accept the empty value"));
    }
    if matchers.len() > MATCHERS_MAX || range.is_empty() {
        let message = format!("deletion of {range} by {} matchers (at most {MATCHERS_MAX})", matchers.len());
        return Err(Error::invalid(message));
    }
    // No merge may mix masked and unmasked records while the tombstone is created.
    let _gate = upkeep.gate.write().await;
    let deleted = Deleted { series: selected(upkeep, matchers.to_vec()).await? };
    if deleted == Deleted::default() {
        return Ok(deleted);
    }
    upkeep.store.tombstones.read().check_room(matchers)?;
    seal.await?;
    delete_kept(upkeep, matchers.to_vec(), range).await?;
    let (id, through) = {
        let (generations, tombstones) = (upkeep.store.generations.read(), upkeep.store.tombstones.read());
        let growing = generations.active.as_ref().map_or(generations.next, |active| active.number);
        (tombstones.next_id(), if Mutation::TombstoneTooWide.is_on() { growing } else { growing - 1 })
    };
    let tombstone = Tombstone { id, matchers: matchers.to_vec(), range, through };
    if !Mutation::TombstoneNotStored.is_on() {
        upkeep.store.driver.put_to_free(vec![tombstone.row()]).await?;
    }
    upkeep.store.tombstones.write().add(tombstone);
    upkeep.store.changes.report(Change::Samples, range);
    upkeep.counts.deletions.add(1);
    tracing::info!(tombstone = id, through, %range, ?matchers, "deletion is in force");
    upkeep.store.inbox.wake();
    Ok(deleted)
}

/// Deletes the kept summaries of all hours and days that overlap the range. They have no records that could be masked. This is
/// done before the tombstone exists: after a crash in between, a repeated request deletes the rest.
async fn delete_kept(upkeep: &Arc<Upkeep>, matchers: Vec<Matcher>, range: TimeRange) -> Result<()> {
    let series = upkeep.store.summed.read().series();
    if series.is_empty() {
        return Ok(());
    }
    let of = Arc::clone(upkeep);
    let select = move || -> Vec<Delete> {
        let labels = |id: &SeriesId| of.store.index.read().labels(*id);
        let matches = |labels: Arc<Labels>| matchers.iter().all(|matcher| matcher.matches(&labels));
        let meant = series.into_iter().filter(|id| labels(id).is_some_and(matches));
        meant.flat_map(|id| kept::delete_days(id, range)).collect()
    };
    let deletes = upkeep.in_thread("selection of kept summaries", select).await?;
    if deletes.is_empty() { Ok(()) } else { upkeep.store.driver.delete(deletes).await }
}

/// Number of series that all matchers accept, by kind. Patterns may take seconds, so the selection stops when the caller
/// stops waiting.
async fn selected(upkeep: &Arc<Upkeep>, matchers: Vec<Matcher>) -> Result<[usize; 3]> {
    let upkeep = Arc::clone(upkeep);
    let threads = upkeep.store.options.threads;
    let waiter = Waiter::default();
    let waits = waiter.waits();
    let select = move || {
        let found = Kind::ALL.map(|kind| index::select(&upkeep.store.index, kind, &matchers, &waits));
        found.map(|numbers| numbers.map_or(0, |numbers| numbers.len()))
    };
    let selected = threads.start(select).join().await;
    selected.map_err(|e| Error::new(ErrorKind::Closed, "selection of series did not end").caused_by(e))
}
