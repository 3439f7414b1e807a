//! Options of a store, with units and defaults.

use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Disk, RealDisk};
use crate::index::Bounds;
use crate::policy::Policies;
use crate::seal::CHUNK_VALUES_MAX;
use crate::upkeep::ClockBounds;

#[derive(Clone)]
pub struct Options {
    /// A generation is sealed when its memtable takes this much memory, bytes.
    pub seal_bytes: usize,
    /// A generation is sealed when its journal reaches this many bytes: a start after a crash reads all of them.
    pub journal_bytes: u64,
    /// Samples of one series in one chunk; 1 to 65,536.
    pub chunk_values: usize,
    /// A generation is sealed when its first record is this old, by a clock that does not jump.
    pub seal_age: Duration,
    /// Memory budget for records that are not in the driver yet, bytes; above it senders have to wait. At least twice
    /// `seal_bytes` is used.
    pub open_bytes_max: usize,
    /// Retry delay for senders above the memory budget.
    pub retry_after: Duration,
    /// Limit on series of all kinds, about 500 bytes of memory each. A new series above this or one of the next three limits
    /// is refused, the known series of its batch are kept. Concurrent batches may exceed them by a little.
    pub series_max: usize,
    /// Limit on the memory of the index of all series with their labels, bytes, estimated. A new series above it is refused
    /// as above `series_max`. Series in the driver are loaded even above it.
    pub index_bytes_max: usize,
    /// Limit on chunks, whose keys a driver may keep in memory, about 200 bytes each: at the limit only records up to two days
    /// from now are accepted. Without such records it is not reached by live data, which is merged into few chunks.
    pub chunks_max: usize,
    /// Limit on distinct label names: more than any schema has, fewer than a client generates that puts values into
    /// names.
    pub label_names_max: usize,
    /// Limit on distinct values of one label: detects a request id in a label before it takes the memory.
    pub label_values_max: usize,
    /// A session is forgotten after this time without a batch.
    pub session_age_max: Duration,
    /// Limit on remembered sessions.
    pub sessions_max: usize,
    /// First and longest wait after a failed flush.
    pub flush_wait_first: Duration,
    pub flush_wait_max: Duration,
    /// Opens the store for reading only: writes neither to the driver nor to the journal.
    pub read_only: bool,
    /// The disk of the journal.
    pub disk: Arc<dyn Disk>,
    /// Space kept free on that disk, bytes, in addition to the space for flushing the journal's records: new records are
    /// refused before it is used; deletion, expiry and sealing go on. 0: until the disk is full.
    pub disk_reserve_bytes: u64,
    /// How far the clock may be ahead of the expected time before it is no longer used to delete history; `None`:
    /// always trusted.
    pub clock_bounds: Option<ClockBounds>,
    /// Rules on retention, resolution and precision.
    pub policies: Arc<Policies>,
    /// Whether background compaction runs.
    pub merge_in_background: bool,
    /// Number of adjacent chunks of similar size that are merged: a record is rewritten once for each power of this
    /// number between the size of a flush and that of a full chunk.
    pub merge_rows: usize,
    /// Limit on the values that one merge decodes, about: 8 bytes each, as much again for its output, and for the rows it
    /// chooses from.
    pub merge_values: usize,
    /// Limits on upkeep: bytes read and written per second, and CPU time in percent of one core.
    pub merge_bytes_per_second: u64,
    pub merge_cpu_percent: u32,
    /// First sweep of all partitions after a start, and the sweep interval for rules on age.
    pub sweep_first: Duration,
    pub sweep_every: Duration,
    /// Delay after a start, and interval, of reading all stored bytes again to verify them, for a back end that does not do
    /// so itself.
    pub verify_first: Duration,
    pub verify_every: Duration,
}

impl Options {
    pub(crate) const fn bounds(&self) -> Bounds {
        let Self { series_max, label_names_max, label_values_max, index_bytes_max: bytes_max, .. } = *self;
        Bounds { series_max, label_names_max, label_values_max, bytes_max }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seal_bytes: 64 << 20,
            journal_bytes: 256 << 20,
            chunk_values: CHUNK_VALUES_MAX,
            seal_age: Duration::from_secs(30 * 60),
            open_bytes_max: 256 << 20,
            retry_after: Duration::from_secs(1),
            series_max: 10_000_000,
            index_bytes_max: 4 << 30,
            chunks_max: 20_000_000,
            label_names_max: 10_000,
            label_values_max: 500_000,
            session_age_max: Duration::from_secs(7 * 86_400),
            sessions_max: 100_000,
            flush_wait_first: Duration::from_millis(100),
            flush_wait_max: Duration::from_secs(30),
            read_only: false,
            disk: Arc::new(RealDisk),
            disk_reserve_bytes: 0,
            clock_bounds: None,
            policies: Arc::default(),
            merge_in_background: true,
            merge_rows: 8,
            merge_values: 4 << 20,
            merge_bytes_per_second: 32 << 20,
            merge_cpu_percent: 25,
            sweep_first: Duration::from_secs(10 * 60),
            sweep_every: Duration::from_secs(3_600),
            verify_first: Duration::from_secs(3_600),
            verify_every: Duration::from_secs(7 * 86_400),
        }
    }
}
