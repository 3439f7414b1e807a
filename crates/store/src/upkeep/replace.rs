//! Exchanges are carried out: put the new rows, let readers change over, delete the replaced ones.
//!
//! ```text
//!   announce -> put new rows and the statistics, atomically -> publish
//!     -> wait for readers that began before -> delete replaced rows
//!     -> wait for readers that began before -> delete empty rows
//! ```
//! A crash before the put leaves everything as it was, one after it leaves rows that are dead by what the new ones say
//! (`alive.rs`). What fails is tried again with growing waits, a delete some times: what it leaves is dead all the same.

use std::sync::Arc;

use tokio::sync::RwLockReadGuard;

use super::exchange::Exchange;
use super::visits::Place;
use crate::driver::{Delete, Table};
use crate::keys::{named_row, stored_row};
use crate::layer::retry::Backoff;
use crate::shared::Shared;
use crate::stats::Stored;
use crate::{Error, ErrorKind, Result};

/// Rows that one delete names at most.
const DELETES: usize = 1_000;
/// Attempts of a delete, some 15 s by the usual waits: others wait for it.
const DELETE_ATTEMPTS: u32 = 8;

/// `tombstone` is the last one that was known when the exchanges were made; `gate` keeps new ones away until the new rows are
/// there.
///
/// # Errors
/// What the driver says to a `put` that it will never take; then nothing is changed. `Unavailable` when replaced rows could not
/// be deleted: the exchange is in force, and what is left is deleted by the next look.
pub async fn replace(
    shared: &Arc<Shared>,
    exchanges: &[Exchange],
    tombstone: u64,
    gate: RwLockReadGuard<'_, ()>,
) -> Result<()> {
    let new: Vec<Place> = exchanges.iter().flat_map(Exchange::places).collect();
    let replaced: Vec<Place> = exchanges.iter().flat_map(|e| e.replaced.iter().cloned()).collect();
    if replaced.is_empty() {
        return Ok(());
    }
    let visits = &shared.upkeep.visits;
    visits.announce(&new);
    if let Err(error) = put(shared, exchanges).await {
        delete(shared, &new).await;
        visits.withdraw(&new);
        return Err(error);
    }
    if tombstone > 0 {
        shared.upkeep.set_applied(&new, tombstone);
    }
    let change = visits.publish(&new, &replaced);
    drop(gate);
    exchanges.iter().for_each(|exchange| count(shared, exchange));
    visits.wait_for_older(change).await;
    let deleted = delete(shared, &replaced).await;
    // Who has met a replaced row on an earlier page must meet what says that it is dead on a later one.
    all_leave(shared).await;
    visits.forget(change, &new, &replaced);
    if deleted {
        let empty: Vec<Place> = exchanges.iter().flat_map(|e| e.empty.iter().cloned()).collect();
        delete(shared, &empty).await;
        return Ok(());
    }
    // They are dead by what the new ones say; the next look at their partitions deletes them.
    let rows = replaced.len();
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("{rows} rows that were replaced could not be deleted for now"),
    ))
}

/// Waits for the end of all reads that have begun.
pub async fn all_leave(shared: &Shared) {
    let visits = &shared.upkeep.visits;
    visits.wait_for_older(visits.publish(&[], &[])).await;
}

fn count(shared: &Shared, exchange: &Exchange) {
    let counts = &shared.upkeep.counts;
    counts.merges.add(1);
    counts.chunks_in.add(exchange.before.chunks);
    counts.chunks_out.add(exchange.after.chunks);
    counts.bytes_written.add(exchange.after.bytes);
    counts.records_in.add(exchange.before.records);
    counts.records_out.add(exchange.after.records);
    counts.samples_replaced.add(exchange.samples_replaced);
    counts.chunks_expired.add(exchange.expired);
}

/// What lies in the driver when these exchanges are done.
fn stored_after(mut stored: [Stored; 3], exchanges: &[Exchange]) -> [Stored; 3] {
    for exchange in exchanges {
        let stored = &mut stored[exchange.kind as usize - 1];
        *stored += exchange.after;
        // Less than was counted lies there only where a put failed and was done all the same before a crash.
        stored.chunks = stored.chunks.saturating_sub(exchange.before.chunks);
        stored.bytes = stored.bytes.saturating_sub(exchange.before.bytes);
        stored.records = stored.records.saturating_sub(exchange.before.records);
    }
    stored
}

/// New rows and statistics in one `put`. The books are closed while it waits: the flusher must not.
async fn put(shared: &Shared, exchanges: &[Exchange]) -> Result<()> {
    let mut backoff = backoff(shared);
    let moved = || exchanges.iter().flat_map(|exchange| &exchange.moved);
    loop {
        let error = {
            let _books = shared.books.lock().await;
            let stored = stored_after(*shared.stored.read(), exchanges);
            let mut rows: Vec<_> =
                exchanges.iter().flat_map(|exchange| exchange.new.iter().cloned()).collect();
            rows.extend([stored_row(&stored), named_row(shared.upkeep.names.last())]);
            rows.extend(shared.upkeep.lives.rows(moved()));
            match shared.driver.put(rows).await {
                Ok(()) => {
                    *shared.stored.write() = stored;
                    shared.upkeep.lives.add(moved());
                    return Ok(());
                }
                Err(error) => error,
            }
        };
        report(shared, &error, "merged rows were not put");
        // A full disk has no room for it in the next minutes either, and a deletion may be what makes room: it waits for this.
        if !error.retryable() || error.kind() == ErrorKind::StorageFull {
            return Err(error);
        }
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

/// Deletes rows of the table of chunks. `false`: some of them stay for now.
pub async fn delete(shared: &Shared, places: &[Place]) -> bool {
    let row =
        |(partition, clustering): &Place| Delete::row(Table::Chunks, partition.clone(), clustering.clone());
    let rows: Vec<Delete> = places.iter().map(row).collect();
    insist_delete(shared, &rows).await
}

/// Tries some times, with growing waits. `false`: it was given up for now, and what calls this must be right with the rows still
/// there: who looks at them again deletes them then.
pub async fn insist_delete(shared: &Shared, deletes: &[Delete]) -> bool {
    for some in deletes.chunks(DELETES) {
        if !insist_delete_some(shared, some).await {
            return false;
        }
    }
    true
}

async fn insist_delete_some(shared: &Shared, deletes: &[Delete]) -> bool {
    let mut backoff = backoff(shared);
    for attempt in 1..=DELETE_ATTEMPTS {
        let Err(error) = shared.driver.delete(deletes.to_vec()).await else { return true };
        report(shared, &error, "rows were not deleted");
        if attempt < DELETE_ATTEMPTS {
            tokio::time::sleep(backoff.next_wait()).await;
        }
    }
    tracing::error!(rows = deletes.len(), "rows stay for now: a later sweep deletes them");
    false
}

pub fn backoff(shared: &Shared) -> Backoff {
    let options = &shared.options;
    Backoff::new(options.flush_wait_first, options.flush_wait_max, shared.id as u64)
}

pub fn report(shared: &Shared, error: &Error, what: &str) {
    tracing::warn!(%error, "{what}");
    shared.upkeep.counts.failures.add(1);
}
