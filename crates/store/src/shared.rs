//! What the rooms of the store share: the committing thread, the flushing task, and readers.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tacho_model::{Clock, Timestamp};
use tokio::sync::watch;

use crate::budget::Budget;
use crate::damage::Unreadable;
use crate::disk::Space;
use crate::driver::Driver;
use crate::generation::Generations;
use crate::index::Index;
use crate::options::Options;
use crate::sessions::Sessions;
use crate::stats::{Counters, Stored};
use crate::upkeep::{Tombstones, Trusted, Upkeep};
use crate::{Error, Result};

pub struct Shared {
    pub driver: Arc<dyn Driver>,
    pub directory: PathBuf,
    pub options: Options,
    pub clock: Arc<dyn Clock>,
    /// The clock, as far as history may be deleted by it.
    pub trusted: Trusted,
    /// Room on the journal's disk.
    pub space: Space,
    /// Identity of the store, in its Meta table and in every journal file.
    pub id: u128,
    pub generations: Guarded<Generations>,
    /// Locked after `generations` where both are.
    pub index: Guarded<Index>,
    pub sessions: Guarded<Sessions>,
    /// What lies in the driver by kind; changed under `metadata_lock` only.
    pub stored: Guarded<[Stored; 3]>,
    /// Held by who changes what the Series and Meta tables say of the driver: the flusher or the upkeep.
    pub metadata_lock: tokio::sync::Mutex<()>,
    pub tombstones: Guarded<Tombstones>,
    pub unreadable: Unreadable,
    pub upkeep: Upkeep,
    pub budget: Arc<Budget>,
    pub counters: Counters,
    /// The last sealed generation: wakes the flusher.
    pub sealed: watch::Sender<u64>,
    /// A generation has begun: the flusher tells the driver that its journal must be there.
    pub begun: tokio::sync::Notify,
    pub progress: watch::Sender<Progress>,
}

impl Shared {
    /// The time by which history may be hidden and deleted.
    pub fn now(&self) -> Timestamp {
        self.trusted.now(&*self.clock)
    }

    /// The latest time that the next process may rely on.
    pub fn latest_time(&self) -> Timestamp {
        self.trusted.latest(&*self.clock)
    }

    /// May new records be written? What they take in the journal they take in the driver as well, at most: room for the chunks
    /// of what is in the journal now is left, and the reserve.
    ///
    /// # Errors
    /// `StorageFull`.
    pub fn check_space(&self) -> Result<()> {
        if self.options.disk_reserve_bytes == 0 {
            return Ok(());
        }
        self.space.check(self.journal_bytes())
    }

    /// Bytes of all journal files.
    pub fn journal_bytes(&self) -> u64 {
        let generations = self.generations.read();
        let sealed = generations.sealed.iter().map(|generation| generation.journal.length);
        sealed.chain(generations.active.iter().map(|active| active.journal.length)).sum()
    }
}

/// How far the flusher has come.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// All generations up to this one lie in the driver.
    pub flushed: u64,
    pub failures: u64,
    pub last_failure: Option<Error>,
    /// The flusher works no more: it was stopped, or it panicked.
    pub ended: bool,
}

/// A lock that a panic elsewhere does not close: every change under it is complete in itself.
#[derive(Debug, Default)]
pub struct Guarded<T>(RwLock<T>);

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
