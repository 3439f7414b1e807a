//! State shared by several parts of the store, and the order in which its locks are taken.
//!
//! | part | struct | run by |
//! |---|---|---|
//! | checks of a batch before the journal | `intake::Intake` | the caller of `Store::append` |
//! | journal and memtable | `commit::StoreParts` | the thread `tacho-journal`, or a task (`threads.rs`) |
//! | flush | `flush::Flusher` | one task |
//! | reads | `read::Reader` | the caller of a read |
//! | merges, rules, deletions | `upkeep::StoreParts` | one task |
//!
//! Lock order: the upkeep's `gate`, [`Metadata::lock`], `generations`, one of `index` and `tombstones`. Last is one of
//! `sessions`, [`Metadata::stored`], the upkeep's notes, the table of spellings (`index/spellings.rs`) and `in_flight`.
//! Only the first two are held during I/O.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, watch};

use crate::disk::Space;
use crate::generation::Generations;
use crate::guarded::Guarded;
use crate::stats::Stored;
use crate::{Error, Result};

/// Counts of the chunks in the driver, and a lock for metadata that flusher and upkeep both change.
#[derive(Debug)]
pub struct Metadata {
    /// The flusher and the upkeep hold this lock while they change the Series table or the row of these counts. The flusher
    /// also holds this lock while it marks a generation as flushed. Other rows of the Meta table do not need it.
    pub lock: tokio::sync::Mutex<()>,
    /// Chunks, bytes and records in the driver, by kind. Changed only under `lock`.
    pub stored: Guarded<[Stored; 3]>,
}

impl Metadata {
    pub fn new(stored: [Stored; 3]) -> Self {
        Self { lock: tokio::sync::Mutex::new(()), stored: Guarded::new(stored) }
    }
}

/// Signals by which the committing thread wakes the flusher.
#[derive(Debug)]
pub struct FlushSignals {
    /// The number of the last sealed generation.
    pub sealed: watch::Sender<u64>,
    /// Sent when a generation starts. The flusher then adds the journal of the generation to the list of required
    /// journals.
    pub started: Notify,
}

impl FlushSignals {
    pub fn new() -> Self {
        Self { sealed: watch::Sender::new(0), started: Notify::new() }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// All generations up to this one are in the driver.
    pub flushed: u64,
    pub failures: u64,
    pub last_failure: Option<Error>,
    /// Whether the flusher has ended, by a stop or a panic.
    pub ended: bool,
}

/// Whether the disk has space for more records.
pub struct RecordSpace {
    pub space: Space,
    pub generations: Arc<Guarded<Generations>>,
    /// Space kept free, bytes; 0 disables the check.
    pub reserve_bytes: u64,
    /// Bytes of the journals at the last check.
    pub journal_bytes: AtomicU64,
}

impl RecordSpace {
    /// Checks whether new records may be written. A flush takes at most as much space in the driver as the journal takes now.
    /// That space and the reserve are kept free.
    ///
    /// # Errors
    /// `StorageFull` when less space than that is free.
    pub fn check(&self) -> Result<()> {
        if self.reserve_bytes == 0 {
            return Ok(());
        }
        // While the committing thread adds a batch to the memtable, it locks `generations`. The previous number is then
        // used, so that small batches do not wait for large ones. The error is at most the journal of one group of
        // batches, which is far below the reserve.
        if let Some(generations) = self.generations.try_read() {
            self.journal_bytes.store(generations.journal_bytes(), Ordering::Relaxed);
        }
        self.space.check(self.journal_bytes.load(Ordering::Relaxed))
    }
}
