//! Upkeep: merges small chunks into large ones, and removes records that are expired or deleted.
//!
//! ```text
//!   fresh.rs   partitions with new chunks           sweep.rs   partitions with work for rules or deletions
//!        \______________________  _______________________/
//!                               \/
//!   keeper.rs       the task: runs batches of jobs (batch.rs) at a limited pace (pace.rs)
//!   job.rs          reads one window of one partition (window.rs), decides and merges
//!   choice.rs       which rows to merge, as plain data, from facts.rs; joints.rs  clean boundaries between rows
//!   merge/          encodes the new chunks; lives.rs  which series are known not to be counters
//!   replacement.rs  the new rows, and which ones they replace; sequence.rs  their numbers
//!   replace.rs      put, publish to readers (snapshots.rs), delete
//!   alive.rs        which rows are alive, for readers and for a start after a crash
//!   masks.rs        which records are masked, although their rows still exist
//!   rollups.rs      sums of the summaries of many chunks of calls
//!   keep.rs         summaries of calls that then expire; hours.rs  their sums by hour
//!   verify.rs       reads stored bytes again and reports rows that do not match their checksums
//!   clock.rs        whether the clock is trusted for deleting records
//! ```
//! Decisions and formats: `docs/adr/0003-upkeep.md`, `docs/format/keys.md`.
//!
//! Path of one record. Before: `flush.rs` put its chunk into the driver. The record may pass through the upkeep several
//! times.

mod alive;
mod batch;
mod choice;
mod clock;
mod counts;
mod delete;
mod facts;
mod forget;
mod fresh;
mod hours;
mod job;
mod joints;
mod keep;
mod keeper;
mod lives;
mod masks;
mod merge;
mod orders;
mod pace;
mod replace;
mod replacement;
mod report;
mod rollups;
mod sequence;
mod snapshots;
mod sweep;
mod tombstones;
mod verify;
mod window;

/// The codecs of the upkeep's rows, for the fuzz targets only.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use super::lives::{Lives, decode as decode_life};
    pub use super::tombstones::Tombstone;
}

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_model::{Kind, Timestamp};
use tokio::sync::{Notify, RwLock, oneshot, watch};

use crate::changes::Changes;
use crate::damage::Unreadable;
use crate::driver::{Driver, Row};
use crate::generation::Generations;
use crate::guarded::Guarded;
use crate::in_flight::InFlight;
use crate::index::Index;
use crate::kept::SummedDays;
use crate::options::Options;
use crate::read::Reader;
use crate::shared::{Metadata, Progress, RecordSpace};
use crate::{Error, ErrorKind, Result};

pub use alive::alive;
pub use clock::{ClockBounds, Jump, TrustedClock, since_boot};
pub use counts::UpkeepStats;
pub use delete::{Deleted, delete};
pub use keeper::run;
pub use lives::{LIVES, decode as decode_life};
pub use masks::Masks;
pub use orders::Order;
pub use report::MergeReport;
pub use sequence::{Sequence, row_sequence};
pub use snapshots::{Snapshot, Snapshots};
pub use tombstones::{Mask, TOMBSTONES, Tombstone, Tombstones, tombstones_scan};
pub use verify::verify;

pub struct StoreParts {
    pub driver: Arc<dyn Driver>,
    pub options: Arc<Options>,
    pub id: u128,
    pub clock: Arc<TrustedClock>,
    pub space: Arc<RecordSpace>,
    pub summed: Arc<Guarded<SummedDays>>,
    /// Reads calls like a query.
    pub reader: Reader,
    pub generations: Arc<Guarded<Generations>>,
    pub index: Arc<Guarded<Index>>,
    pub in_flight: Arc<InFlight>,
    pub metadata: Arc<Metadata>,
    pub tombstones: Arc<Guarded<Tombstones>>,
    pub unreadable: Arc<Unreadable>,
    pub snapshots: Arc<Snapshots>,
    pub inbox: Arc<Inbox>,
    pub sequence: Arc<Sequence>,
    pub changes: Arc<Changes>,
    pub progress: watch::Receiver<Progress>,
}

/// The chunks that the flusher has put, and the signal that there is work for the upkeep.
#[derive(Debug, Default)]
pub struct Inbox {
    fresh: fresh::Fresh,
    days: rollups::ChangedDays,
    woken: Notify,
}

impl Inbox {
    /// Reports that a flush has put these rows into the Chunks table.
    pub fn note(&self, rows: &[Row]) {
        self.fresh.note(rows);
        self.days.note(rows);
    }

    /// Reports that a flush has ended. The noted rows may then be merged.
    pub fn flushed(&self) {
        self.fresh.release();
        self.days.release();
    }

    pub fn wake(&self) {
        self.woken.notify_one();
    }
}

/// State of the upkeep. The fields are visible only in the modules of the upkeep.
pub struct Upkeep {
    store: StoreParts,
    lives: lives::Lives,
    /// Held by a deletion while the deletion takes effect, and by a merge from its read of the tombstones to its
    /// `put`.
    gate: RwLock<()>,
    notes: Mutex<window::Notes>,
    counts: counts::Counts,
    orders: orders::Orders,
}

impl Upkeep {
    pub fn new(store: StoreParts) -> Self {
        Self {
            store,
            lives: lives::Lives::default(),
            gate: RwLock::new(()),
            notes: Mutex::default(),
            counts: counts::Counts::default(),
            orders: orders::Orders::default(),
        }
    }

    /// Orders work from the task. Callers of an order that is already waiting share its answer. When the task has ended,
    /// the channel closes without an answer.
    ///
    /// # Errors
    /// `Full` when too many callers wait for the same order.
    pub fn order(&self, order: Order) -> Result<oneshot::Receiver<Result<MergeReport>>> {
        self.orders.add(order)
    }

    pub fn wake(&self) {
        self.store.inbox.wake();
    }

    /// [`Policy::summed_until`](crate::policy::Policy::summed_until) of a partition.
    fn summed_until(&self, partition: &window::Partition) -> Option<Timestamp> {
        (partition.kind == Kind::Execution).then(|| self.store.summed.read().until(partition.id))
    }

    /// Computes on a thread for long work.
    async fn in_thread<T: Send + 'static>(
        &self,
        what: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let ended = |e| Error::new(ErrorKind::Closed, format!("{what} did not end")).caused_by(e);
        self.store.options.threads.start(work).join().await.map_err(ended)
    }

    fn notes(&self) -> MutexGuard<'_, window::Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark_undecodable(&self, place: snapshots::Place) {
        self.notes().undecodable.insert(place);
    }

    /// Notes that tombstones up to this one have been applied to these rows.
    fn set_applied(&self, rows: &[snapshots::Place], tombstone: u64) {
        self.notes().applied.extend(rows.iter().map(|row| (row.clone(), tombstone)));
    }

    pub fn stats(&self) -> UpkeepStats {
        let due = u32::try_from(self.store.options.merge_rows).unwrap_or(u32::MAX);
        let (chunks_fresh, chunks_due) = self.store.inbox.fresh.chunks(due);
        let tombstones = self.store.tombstones.read().len() as u64;
        UpkeepStats { chunks_fresh, chunks_due, tombstones, ..self.counts.snapshot() }
    }
}
