//! Chunks are written small and early; who makes them large, and who takes away what is not wanted any more?
//!
//! ```text
//!   fresh.rs   where chunks have come          sweep.rs   where rules or deletions ask for something
//!        \_______________________  _______________________/
//!                                \/
//!   keeper.rs   one task, at its own pace (pace.rs): a batch of jobs after the other
//!   look.rs     one window of one partition (window.rs): what is there, what is to be done
//!   choice.rs   which rows to merge: a decision, as plain data; joints.rs  where one ends before the next begins
//!   merge/      the new chunks; lives.rs  which series are known to be no counters
//!   replacement.rs the new rows, and which ones they replace; sequence.rs  numbers for them
//!   replace.rs  put, change over (snapshots.rs), delete
//!   alive.rs    which rows count: what readers and a start after a crash rely on
//!   masks.rs    what of them is not to be read any more
//!   verify.rs   reads stored bytes again and reports rows that do not match their checksums
//!   clock.rs    what time it is, as far as history may be deleted by it
//! ```
//! Decisions and formats: `docs/adr/0003-upkeep.md`, `docs/format/keys.md`.
//!
//! Path of one record: before, `flush.rs` put its chunk into the driver; it may come here several times.

mod alive;
mod choice;
mod clock;
mod counts;
mod delete;
mod forget;
mod fresh;
mod joints;
mod keeper;
mod lives;
mod look;
mod masks;
mod merge;
mod orders;
mod pace;
mod replace;
mod replacement;
mod sequence;
mod snapshots;
mod sweep;
mod tombstones;
mod verify;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, RwLock, oneshot};

use crate::Result;
use crate::driver::Row;

pub use alive::alive;
pub use clock::{ClockBounds, Jump, Trusted};
pub use counts::UpkeepStats;
pub use delete::{Deleted, delete};
pub use keeper::{MergeReport, run};
pub use masks::masks_by_labels;
pub use orders::Order;
pub use sequence::row_sequence;
pub use snapshots::Snapshot;
pub use tombstones::{Mask, Tombstone, Tombstones, tombstones_scan};
pub use verify::verify;

/// What readers, the flusher and the upkeep share.
#[derive(Debug)]
pub struct Upkeep {
    snapshots: Arc<snapshots::Snapshots>,
    sequence: sequence::Sequence,
    lives: lives::Lives,
    fresh: fresh::Fresh,
    woken: Notify,
    /// Held by a deletion while it comes about, and by merges from their look at the tombstones to their `put`.
    gate: RwLock<()>,
    notes: Mutex<window::Notes>,
    counts: counts::Counts,
    orders: orders::Orders,
}

impl Upkeep {
    /// `last_sequence`: the last number that a merge of an earlier process has given.
    pub fn new(last_sequence: u64) -> Self {
        Self {
            snapshots: Arc::default(),
            sequence: sequence::Sequence::new(last_sequence),
            lives: lives::Lives::default(),
            fresh: fresh::Fresh::default(),
            woken: Notify::new(),
            gate: RwLock::new(()),
            notes: Mutex::default(),
            counts: counts::Counts::default(),
            orders: orders::Orders::default(),
        }
    }

    /// The last number that a merge has given.
    pub fn last_sequence(&self) -> u64 {
        self.sequence.last()
    }

    /// Begins a read: before memory or driver are looked at.
    pub fn snapshot(&self) -> Snapshot {
        self.snapshots.open()
    }

    /// A flush has put these rows into the table of chunks.
    pub fn note(&self, rows: &[Row]) {
        self.fresh.note(rows);
    }

    /// A generation was flushed, or something else is to be done.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Asks the task for something. Who asks for what is waiting already gets the same answer; it is dropped unanswered when the
    /// task has ended.
    ///
    /// # Errors
    /// `Full` when too many wait for the same.
    pub fn order(&self, order: Order) -> Result<oneshot::Receiver<Result<MergeReport>>> {
        self.orders.add(order)
    }

    fn notes(&self) -> MutexGuard<'_, window::Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise_wall(&self, place: snapshots::Place) {
        self.notes().walls.insert(place);
    }

    /// Tombstones up to this one have been applied to these rows.
    fn set_applied(&self, rows: &[snapshots::Place], tombstone: u64) {
        self.notes().applied.extend(rows.iter().map(|row| (row.clone(), tombstone)));
    }

    /// `enough`: fresh chunks of one partition that are worth a merge.
    pub fn stats(&self, enough: usize) -> UpkeepStats {
        let (chunks_fresh, chunks_due) = self.fresh.chunks(u32::try_from(enough).unwrap_or(u32::MAX));
        UpkeepStats { chunks_fresh, chunks_due, ..self.counts.snapshot() }
    }
}
