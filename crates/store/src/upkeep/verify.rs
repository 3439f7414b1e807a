//! Verifies older stored bytes in small parts when there is no other work.
//!
//! The back end reads its files and reports unreadable rows. This module counts and logs them as a read would.

use tacho_model::{Kind, SeriesId};

use super::Upkeep;
use crate::damage::Unreadable;
use crate::driver::{Damaged, Delete, Table, Verified};
use crate::keys::{ChunkKey, chunk_place};
use crate::{Error, Result};

/// Verifies the next part. Returns the number of bytes read, and whether all parts of this round are verified.
pub async fn verify(upkeep: &Upkeep) -> Result<(u64, bool)> {
    let Verified { bytes, damaged, done } = upkeep.store.driver.verify().await?;
    upkeep.counts.verified_bytes.add(bytes);
    for row in damaged {
        // A roll-up can be written again. A reader does not notice that it is missing.
        if row.table == Table::Meta && upkeep.store.inbox.days.note_damaged(&row.partition, &row.clustering) {
            upkeep.store.driver.delete(vec![Delete::row(row.table, row.partition, row.clustering)]).await?;
            continue;
        }
        report(&upkeep.store.unreadable, row);
    }
    Ok((bytes, done))
}

fn report(unreadable: &Unreadable, row: Damaged) {
    let place = (row.table == Table::Chunks).then(|| place(&row)).flatten();
    match place {
        Some((partition, key)) => {
            unreadable.note(partition, &key, &row.reason);
        }
        // The content of the row is in memory. The next start cannot read the row and reports that.
        None => tracing::error!(error = %Error::from(row), "row of the store's metadata is damaged"),
    }
}

fn place(row: &Damaged) -> Option<((Kind, SeriesId), ChunkKey)> {
    Some((chunk_place(&row.partition)?, ChunkKey::decode(&row.clustering).ok()?))
}
