//! Where have chunks come since the last merge? Counted in memory, so that the usual choice costs no read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tacho_model::Timestamp;

use crate::driver::Row;
use crate::keys::ChunkKey;

/// What a flush has added to one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    pub chunks: u32,
    /// Where the first of them begins.
    pub from: Timestamp,
}

/// Partitions with chunks that no merge has seen.
#[derive(Debug, Default)]
pub struct Fresh(Mutex<HashMap<Vec<u8>, Added>>);

impl Fresh {
    /// Counts rows that were put into the table of chunks.
    pub fn note(&self, rows: &[Row]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let Ok(key) = ChunkKey::decode(&row.clustering) else { continue };
            let added = all.entry(row.partition.clone()).or_insert(Added { chunks: 0, from: key.start });
            *added = Added { chunks: added.chunks + 1, from: added.from.min(key.start) };
        }
    }
}
