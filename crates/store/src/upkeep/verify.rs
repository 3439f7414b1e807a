//! Is what was written long ago still what was written? A little at a time, when there is nothing else to do.
//!
//! The back end reads its files and says which rows cannot be read any more; here they are counted and named, as if somebody had
//! asked for them.

use tacho_model::{Kind, SeriesId};

use super::Upkeep;
use crate::damage::Unreadable;
use crate::driver::{Damaged, Table, Verified};
use crate::keys::{ChunkKey, chunk_place};
use crate::{Error, Result};

/// Bytes that were read, and whether there is nothing more to read in this round.
pub async fn verify(upkeep: &Upkeep) -> Result<(u64, bool)> {
    let Verified { bytes, damaged, done } = upkeep.store.driver.verify().await?;
    upkeep.counts.verified_bytes.add(bytes);
    damaged.into_iter().for_each(|row| report(&upkeep.store.unreadable, row));
    Ok((bytes, done))
}

fn report(unreadable: &Unreadable, row: Damaged) {
    let place = (row.table == Table::Chunks).then(|| place(&row)).flatten();
    match place {
        Some((partition, key)) => {
            unreadable.note(partition, &key, &row.reason);
        }
        // What it says is in memory; the next start will miss it, and say so.
        None => tracing::error!(error = %Error::from(row), "row of the store's metadata is damaged"),
    }
}

fn place(row: &Damaged) -> Option<((Kind, SeriesId), ChunkKey)> {
    Some((chunk_place(&row.partition)?, ChunkKey::decode(&row.clustering).ok()?))
}
