//! Is what was written long ago still what was written? A little at a time, when there is nothing else to do.
//!
//! The back end reads its files and says which rows cannot be read any more; here they are counted and named, as if somebody had
//! asked for them.

use tacho_model::{Kind, SeriesId};

use crate::driver::{Damaged, Table, Verified};
use crate::keys::{ChunkKey, chunk_place};
use crate::shared::Shared;
use crate::{Error, Result};

/// Bytes that were read, and whether there is nothing more to read in this round.
pub async fn verify(shared: &Shared) -> Result<(u64, bool)> {
    let Verified { bytes, damaged, done } = shared.driver.verify().await?;
    shared.upkeep.counts.verified_bytes.add(bytes);
    damaged.into_iter().for_each(|row| tell(shared, row));
    Ok((bytes, done))
}

fn tell(shared: &Shared, row: Damaged) {
    let place = (row.table == Table::Chunks).then(|| place(&row)).flatten();
    match place {
        Some((partition, key)) => {
            shared.unreadable.note(&shared.counters.chunks_unreadable, partition, &key, &row.reason);
        }
        // What it says is in memory; the next start will miss it, and say so.
        None => tracing::error!(error = %Error::from(row), "row of the store's metadata is damaged"),
    }
}

fn place(row: &Damaged) -> Option<((Kind, SeriesId), ChunkKey)> {
    Some((chunk_place(&row.partition)?, ChunkKey::decode(&row.clustering).ok()?))
}
