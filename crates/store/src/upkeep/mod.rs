//! Chunks are written small and early; who makes them large, and who takes away what is not wanted any more?
mod alive;
mod fresh;
mod tombstones;
mod visits;

use std::sync::Arc;

use tokio::sync::Notify;

use crate::driver::Row;
pub use alive::alive;
pub use tombstones::{Mask, Tombstone, Tombstones, tombstones_scan};
pub use visits::Visit;

/// What readers, the flusher and the upkeep share.
#[derive(Debug, Default)]
pub struct Upkeep {
    visits: Arc<visits::Visits>,
    fresh: fresh::Fresh,
    woken: Notify,
}

impl Upkeep {
    /// Begins a read: before memory or driver are looked at.
    pub fn enter(&self) -> Visit {
        self.visits.enter()
    }

    /// A flush has put these rows into the table of chunks.
    pub fn note(&self, rows: &[Row]) {
        self.fresh.note(rows);
    }

    /// A generation was flushed.
    pub fn wake(&self) {
        self.woken.notify_one();
    }
}
