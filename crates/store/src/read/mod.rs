//! Returns the records of series in a time range.
//!
//! ```text
//!   samples.rs  samples of many series, by group
//!   series.rs   entries or executions of one series
//!   chunks.rs   lists all stored chunks of one series, without their records
//!   rows.rs     rows of one partition: visible to the reader's snapshot, not replaced, damaged ones reported
//!   summaries.rs  rows of calls, or the summaries of their chunks (usage.rs); rolled.rs  those of roll-ups where possible
//!   kept.rs  summaries of expired calls
//!   ranked.rs  rows of calls that a search needs, best first
//! ```
//! Until the flush of a generation ends, its records are read from memory. Afterwards they are read from the driver. A read
//! first reads the generations in memory. In the driver, the read ignores chunks of these generations, so that a flush
//! during the read does not duplicate records.

mod chunks;
mod kept;
mod ranked;
mod rolled;
mod rows;
pub mod samples;
pub mod series;
mod summaries;
mod summed;
mod usage;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_model::{Kind, Labels, SeriesId};

use crate::damage::Unreadable;
use crate::driver::Driver;
use crate::generation::{Generation, Generations};
use crate::guarded::Guarded;
use crate::index::Index;
use crate::options::Options;
use crate::upkeep::{Mask, Masks, Snapshots};
use crate::{Error, ErrorKind, Result};

pub use chunks::{ChunkInfo, chunks};
pub use kept::deleted_hours;
pub use rows::head as row_head;
pub use series::{Having, Needed};
pub use summaries::summary as row_summary;
pub use summed::{Summed, SummedOf};

/// Gets the number of chunks that are done, and the number of all chunks that the read of a series needs. Chunks whose summaries
/// are enough do not count.
pub type Steps<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// The parts of the store that a read uses. A read changes only the registered snapshots and the count of unreadable rows.
pub struct Reader {
    pub driver: Arc<dyn Driver>,
    pub options: Arc<Options>,
    pub generations: Arc<Guarded<Generations>>,
    pub index: Arc<Guarded<Index>>,
    pub masks: Masks,
    pub snapshots: Arc<Snapshots>,
    pub unreadable: Arc<Unreadable>,
}

impl Reader {
    fn labels_of(&self, id: SeriesId) -> Option<Arc<Labels>> {
        self.index.read().labels(id)
    }

    fn masks_of(&self, kind: Kind, id: SeriesId) -> Vec<Mask> {
        if kind == Kind::Execution {
            return self.masks.of_calls(id, || self.labels_of(id)).0;
        }
        let Some(masks) = self.masks.by_labels() else { return Vec::new() };
        // Patterns are not tried under the lock of the index.
        let labels = self.labels_of(id);
        labels.map_or_else(Vec::new, |labels| masks(&labels))
    }
}

/// What a read found in the generations in memory, at one moment.
pub struct InMemory<T> {
    /// The oldest generation in memory. If memory has none, the number of the generation that starts next.
    pub oldest: u64,
    /// The results for the generations that have any, in order of generations.
    pub parts: Vec<T>,
}

/// Calls `read` for each generation in memory. The generations are locked only while `read` runs for the active one; sealed
/// generations do not change.
pub fn read_memory<T>(reader: &Reader, read: impl Fn(&Generation) -> Option<T>) -> InMemory<T> {
    let generations = reader.generations.read();
    let oldest = generations.oldest();
    let Generations { active, sealed, .. } = &*generations;
    let sealed: Vec<Arc<Generation>> = sealed.iter().cloned().collect();
    let open = active.as_ref().and_then(&read);
    drop(generations);
    let parts = sealed.iter().filter_map(|generation| read(generation)).chain(open).collect();
    InMemory { oldest, parts }
}

pub fn take_room(room: &AtomicUsize, amount: usize, unit: &str) -> Result<()> {
    let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount));
    taken.map(drop).map_err(|left| {
        let message = format!("{amount} {unit} do not fit: the limit permits only {left} more");
        Error::new(ErrorKind::Limit, message)
    })
}
