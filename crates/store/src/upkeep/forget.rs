//! Removes series without records from the index, and their rows from the Series table of the driver.

use std::sync::Arc;

use futures_util::TryStreamExt;
use tacho_model::{Kind, SeriesId, TimeRange};

use super::Upkeep;
use super::replace::delete_with_retries;
use super::window::Partition;
use crate::Result;
use crate::driver::{Delete, Driver, Scan, Scanned, Table};
use crate::generation::Generations;
use crate::in_flight::InFlight;
use crate::index::Index;
use crate::kept;
use crate::keys::{chunk_scan, spans};
use crate::rollup;

/// Removes the series of a partition that was found to be empty. Does nothing if memory or the driver holds records of it, or if
/// a flush has ended in the meantime.
pub async fn forget(upkeep: &Arc<Upkeep>, partition: Partition) {
    // The flusher checks the rows of the Series table under the metadata lock. If the series returns, the flusher puts its
    // row after this delete.
    let _locked = upkeep.store.metadata.lock.lock().await;
    let before = upkeep.store.progress.borrow().flushed;
    let driver = &*upkeep.store.driver;
    if holds_rows(driver, partition, TimeRange::ALL).await || holds_summaries(driver, partition).await {
        return;
    }
    let Some(forgotten) = leave(upkeep, partition, before) else { return };
    let id = partition.id.to_bytes();
    let mut clustering = vec![partition.kind as u8];
    clustering.extend_from_slice(&id);
    let mut deletes = vec![Delete::row(Table::Series, [id[0]], clustering)];
    deletes.extend(upkeep.lives.forget(&forgotten));
    if partition.kind == Kind::Execution {
        deletes.push(Delete::partition(Table::Meta, rollup::partition(partition.id)));
        deletes.push(kept::delete_until(partition.id));
        upkeep.store.summed.write().remove(partition.id);
    }
    delete_with_retries(upkeep, &deletes).await;
}

/// Whether a series has kept summaries of calls. `true` on an error.
async fn holds_summaries(driver: &dyn Driver, partition: Partition) -> bool {
    partition.kind == Kind::Execution
        && !matches!(first(driver, kept::all_scan(partition.id)).await, Ok(None))
}

/// The first row of a scan, even if it is damaged.
pub async fn first(driver: &dyn Driver, scan: Scan) -> Result<Option<Scanned>> {
    driver.scan(Scan { limit: Some(1), ..scan }).await?.try_next().await
}

/// Whether any row of any generation may have records in the range. `true` on an error.
pub async fn holds_rows(driver: &dyn Driver, partition: Partition, range: TimeRange) -> bool {
    for span in spans(partition.kind) {
        let scan = chunk_scan(partition.kind, partition.id, *span, range);
        if !matches!(first(driver, scan).await, Ok(None)) {
            return true;
        }
    }
    false
}

/// Removes the partition and its series from the index. `None` when memory holds records of it, or a flush has
/// ended since `flushed` was read.
fn leave(upkeep: &Upkeep, partition: Partition, flushed: u64) -> Option<Vec<SeriesId>> {
    let generations = upkeep.store.generations.write();
    let mut index = upkeep.store.index.write();
    // Records that were in memory during the scan are still in memory, unless a flush has ended since.
    if upkeep.store.progress.borrow().flushed != flushed {
        return None;
    }
    let forgotten = match partition.kind {
        Kind::Sample => leave_group((&generations, &upkeep.store.in_flight), &mut index, partition.id),
        kind => leave_series(&generations, &mut index, kind, partition.id),
    };
    upkeep.counts.series_forgotten.add(forgotten.as_ref().map_or(0, Vec::len) as u64);
    forgotten
}

/// The series removed with the group; `None` when the group stays.
fn leave_group(
    (generations, in_flight): (&Generations, &InFlight),
    index: &mut Index,
    id: SeriesId,
) -> Option<Vec<SeriesId>> {
    let group = index.group_number(id)?;
    let members = index.group(group).members.to_vec();
    let holds = |number: &u32| generations.holds(Kind::Sample, index.id(*number), *number);
    if members.iter().any(holds) || in_flight.has_any(&members) {
        return None;
    }
    index.remove_group(group);
    let mut forgotten = Vec::new();
    for number in members {
        // A series that is in another group stays, because it may have records there.
        if index.groups_of(number).next().is_none() {
            forgotten.push(index.id(number));
            index.remove(Kind::Sample, number);
        }
    }
    Some(forgotten)
}

fn leave_series(
    generations: &Generations,
    index: &mut Index,
    kind: Kind,
    id: SeriesId,
) -> Option<Vec<SeriesId>> {
    let number = index.number(id)?;
    if generations.holds(kind, id, number) {
        return None;
    }
    index.remove(kind, number);
    Some(vec![id])
}
