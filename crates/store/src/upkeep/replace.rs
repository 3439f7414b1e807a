//! Applies replacements: puts the new rows, publishes them to readers, deletes the replaced ones.
//!
//! ```text
//!   announce -> put new rows and the statistics, atomically -> publish
//!     -> wait for readers that began before -> delete replaced rows
//!     -> wait for readers that began before -> delete empty rows
//! ```
//! A crash before the put changes nothing. After the put, the replaced rows are dead because the new rows exist
//! (`alive.rs`). A failed put is retried with exponential backoff, unless the disk is full or a retry cannot help. A failed
//! delete is retried a limited number of times, because the rows that it leaves are dead anyway.

use std::sync::Arc;

use tacho_model::Kind;
use tokio::sync::RwLockReadGuard;

use super::Upkeep;
use super::replacement::RowReplacement;
use super::snapshots::{Place, Snapshots};
use crate::changes::Change;
use crate::driver::{Delete, Table};
use crate::keys::{sequence_row, stored_row};
use crate::kinds::of_kind_mut;
use crate::layer::retry::Backoff;
use crate::mutation::Mutation;
use crate::stats::Stored;
use crate::{Error, ErrorKind, Result};

/// Limit on rows per call of delete.
const DELETES: usize = 1_000;
/// Attempts of a delete. The waits between them take 6 to 13 s by default; other work of the upkeep waits during that time.
const DELETE_ATTEMPTS: u32 = 8;

/// Applies the replacements. `tombstone` is the last tombstone known when the replacements were computed. `gate` prevents new
/// tombstones until the new rows are put.
///
/// # Errors
/// The driver's error of a `put` that is not retried; nothing is then changed. `Unavailable` when replaced rows could not
/// be deleted; the replacement is then in force, and the next check of the partition deletes them.
pub async fn replace(
    upkeep: &Arc<Upkeep>,
    replacements: &[RowReplacement],
    tombstone: u64,
    gate: RwLockReadGuard<'_, ()>,
) -> Result<()> {
    let new: Vec<Place> = replacements.iter().flat_map(RowReplacement::places).collect();
    let replaced: Vec<Place> = replacements.iter().flat_map(|e| e.replaced.iter().cloned()).collect();
    if replaced.is_empty() {
        return Ok(());
    }
    let snapshots = &upkeep.store.snapshots;
    snapshots.announce(&new);
    if Mutation::MergeDeletesFirst.is_on() {
        delete(upkeep, &replaced).await;
    }
    if let Err(error) = put(upkeep, replacements).await {
        delete(upkeep, &new).await;
        snapshots.withdraw(&new);
        return Err(error);
    }
    if tombstone > 0 {
        upkeep.set_applied(&new, tombstone);
    }
    let change = snapshots.publish(&new, &replaced);
    [&new, &replaced].into_iter().for_each(|places| upkeep.store.inbox.days.note_merged(places));
    replacements.iter().for_each(|replacement| report_change(upkeep, replacement));
    drop(gate);
    replacements.iter().for_each(|replacement| count(upkeep, replacement));
    snapshots.wait_for_older(change).await;
    let deleted = delete(upkeep, &replaced).await;
    // A reader that has read a page with a replaced row must still find the replacement on a later
    // page. The marks and the empty rows are therefore removed only after such readers have ended.
    wait_for_readers(snapshots).await;
    snapshots.forget(change, &new, &replaced);
    if deleted {
        let empty: Vec<Place> = replacements.iter().flat_map(|e| e.empty.iter().cloned()).collect();
        delete(upkeep, &empty).await;
        return Ok(());
    }
    // The rows are dead because of the new rows. The next check of their partitions deletes them.
    let rows = replaced.len();
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("{rows} rows that were replaced could not be deleted for now"),
    ))
}

/// Reports the change to readers that keep results. A merge changes samples only by rules that permit it. Records that it drops
/// are masked already, but a clock that is set back would show expired ones again.
fn report_change(upkeep: &Upkeep, replacement: &RowReplacement) {
    if replacement.kind != Kind::Sample {
        return;
    }
    let policies = &upkeep.store.options.policies;
    let left = replacement.after.records + replacement.samples_replaced;
    let keeps_all = policies.retention.is_empty() || left >= replacement.before.records;
    let is_exact = policies.semantic.is_empty() && policies.downsampling.is_empty() && keeps_all;
    let kind = if is_exact { Change::Chunks } else { Change::Samples };
    upkeep.store.changes.report(kind, replacement.times);
}

pub async fn wait_for_readers(snapshots: &Snapshots) {
    snapshots.wait_for_older(snapshots.publish(&[], &[])).await;
}

fn count(upkeep: &Upkeep, replacement: &RowReplacement) {
    let counts = &upkeep.counts;
    counts.merges.add(1);
    counts.chunks_in.add(replacement.before.chunks);
    counts.chunks_out.add(replacement.after.chunks);
    counts.bytes_written.add(replacement.after.bytes);
    counts.records_in.add(replacement.before.records);
    counts.records_out.add(replacement.after.records);
    counts.samples_replaced.add(replacement.samples_replaced);
    counts.chunks_expired.add(replacement.expired);
}

/// Whether a replacement removes deleted, expired or downsampled records, and its rows take less space than the rows that they
/// replace.
fn drops_records(replacement: &RowReplacement) -> bool {
    let RowReplacement { before, after, samples_replaced, .. } = replacement;
    after.bytes < before.bytes && after.records + samples_replaced < before.records
}

fn stored_after(mut stored: [Stored; 3], replacements: &[RowReplacement]) -> [Stored; 3] {
    for replacement in replacements {
        let stored = of_kind_mut(&mut stored, replacement.kind);
        *stored += replacement.after;
        // The counts may be lower than the amounts in the driver, for example after their row was
        // lost and they restarted at 0 (`recover.rs`).
        stored.chunks = stored.chunks.saturating_sub(replacement.before.chunks);
        stored.bytes = stored.bytes.saturating_sub(replacement.before.bytes);
        stored.records = stored.records.saturating_sub(replacement.before.records);
    }
    stored
}

/// Puts new rows and statistics in one `put`. The metadata lock is not held between attempts, because the flusher needs it.
async fn put(upkeep: &Upkeep, replacements: &[RowReplacement]) -> Result<()> {
    let mut backoff = backoff(upkeep);
    let moved = || replacements.iter().flat_map(|replacement| &replacement.moved);
    let is_freeing = replacements.iter().all(drops_records);
    loop {
        let error = {
            let _locked = upkeep.store.metadata.lock.lock().await;
            let stored = stored_after(*upkeep.store.metadata.stored.read(), replacements);
            let mut rows: Vec<_> =
                replacements.iter().flat_map(|replacement| replacement.new.iter().cloned()).collect();
            rows.extend([stored_row(&stored), sequence_row(upkeep.store.sequence.last())]);
            rows.extend(upkeep.lives.rows(moved()));
            let driver = &upkeep.store.driver;
            let put = if is_freeing { driver.put_to_free(rows).await } else { driver.put(rows).await };
            match put {
                Ok(()) => {
                    *upkeep.store.metadata.stored.write() = stored;
                    upkeep.lives.add(moved());
                    return Ok(());
                }
                Err(error) => error,
            }
        };
        report(upkeep, &error, "merged rows were not put");
        // The put is not retried on a full disk, because a deletion that waits for this put may be the only way to free
        // space.
        if !error.retryable() || error.kind() == ErrorKind::StorageFull {
            return Err(error);
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Deletes rows of the Chunks table. Returns `false` if some of them could not be deleted.
pub async fn delete(upkeep: &Upkeep, places: &[Place]) -> bool {
    let row =
        |(partition, clustering): &Place| Delete::row(Table::Chunks, partition.clone(), clustering.clone());
    let rows: Vec<Delete> = places.iter().map(row).collect();
    delete_with_retries(upkeep, &rows).await
}

/// Retries with exponential backoff, a limited number of times. Returns `false` after the last failure. The caller must
/// then accept that the rows still exist. Dead chunks are deleted by the next check of their partition.
pub async fn delete_with_retries(upkeep: &Upkeep, deletes: &[Delete]) -> bool {
    for some in deletes.chunks(DELETES) {
        if !delete_some_with_retries(upkeep, some).await {
            return false;
        }
    }
    true
}

async fn delete_some_with_retries(upkeep: &Upkeep, deletes: &[Delete]) -> bool {
    let mut backoff = backoff(upkeep);
    for attempt in 1..=DELETE_ATTEMPTS {
        let Err(error) = upkeep.store.driver.delete(deletes.to_vec()).await else { return true };
        report(upkeep, &error, "rows were not deleted");
        if attempt < DELETE_ATTEMPTS {
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }
    tracing::error!(rows = deletes.len(), "rows stay for now: a later sweep deletes them");
    false
}

pub fn backoff(upkeep: &Upkeep) -> Backoff {
    let options = &upkeep.store.options;
    Backoff::of_store(options.flush_wait_first, options.flush_wait_max, upkeep.store.id)
}

pub fn report(upkeep: &Upkeep, error: &Error, what: &str) {
    tracing::warn!(%error, "{what}");
    upkeep.counts.failures.add(1);
}
