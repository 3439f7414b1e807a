//! Series that hold nothing any more leave the index, and their row the driver.

use std::sync::Arc;

use futures_util::TryStreamExt;
use tacho_model::{Kind, SeriesId, TimeRange};

use super::Upkeep;
use super::replace::insist_delete;
use super::window::Partition;
use crate::driver::{Delete, Driver, Scan, Table};
use crate::generation::Generations;
use crate::index::Index;
use crate::keys::{chunk_scan, spans};

/// Of a partition that was seen empty. Does nothing when records of it are in memory, or were flushed meanwhile.
pub async fn forget(upkeep: &Arc<Upkeep>, partition: Partition) {
    // The flusher looks at these rows under the metadata lock: it puts the row of a series that comes back after this delete.
    let _locked = upkeep.store.metadata.lock.lock().await;
    let before = upkeep.store.progress.borrow().flushed;
    if holds_rows(&*upkeep.store.driver, partition, TimeRange::ALL).await {
        return;
    }
    let Some(forgotten) = leave(upkeep, partition, before) else { return };
    let id = partition.id.to_bytes();
    let mut clustering = vec![partition.kind as u8];
    clustering.extend_from_slice(&id);
    let mut deletes = vec![Delete::row(Table::Series, [id[0]], clustering)];
    deletes.extend(upkeep.lives.forget(&forgotten));
    insist_delete(upkeep, &deletes).await;
}

/// Does any row lie there, of whatever generation, that may reach into the range? When that cannot be said, it counts as yes.
pub async fn holds_rows(driver: &dyn Driver, partition: Partition, range: TimeRange) -> bool {
    for span in spans(partition.kind) {
        let scan = chunk_scan(partition.kind, partition.id, *span, range);
        let first = match driver.scan(Scan { limit: Some(1), ..scan }).await {
            Ok(mut rows) => rows.try_next().await,
            Err(error) => Err(error),
        };
        if !matches!(first, Ok(None)) {
            return true;
        }
    }
    false
}

/// Takes the partition and its series out of the index, unless records have come since `flushed`; then `None`.
fn leave(upkeep: &Upkeep, partition: Partition, flushed: u64) -> Option<Vec<SeriesId>> {
    let generations = upkeep.store.generations.write();
    let mut index = upkeep.store.index.write();
    // What was in memory when the rows were looked for is still there, or a flush has ended since.
    if upkeep.store.progress.borrow().flushed != flushed {
        return None;
    }
    let forgotten = match partition.kind {
        Kind::Sample => leave_group(&generations, &mut index, partition.id),
        kind => leave_series(&generations, &mut index, kind, partition.id),
    };
    upkeep.counts.series_forgotten.add(forgotten.as_ref().map_or(0, Vec::len) as u64);
    forgotten
}

/// Which series have left; `None` when the group stays.
fn leave_group(generations: &Generations, index: &mut Index, id: SeriesId) -> Option<Vec<SeriesId>> {
    let group = index.group_number(id)?;
    let members = index.group(group).members.to_vec();
    let holds = |number: &u32| generations.holds(Kind::Sample, index.id(*number), *number);
    if members.iter().any(holds) {
        return None;
    }
    index.remove_group(group);
    let mut forgotten = Vec::new();
    for number in members {
        // One that is in another group as well has its records there.
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
