//! What may be set, with its unit and its default.

use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Disk, RealDisk};
use crate::index::Bounds;
use crate::policy::Policies;
use crate::seal::CHUNK_VALUES_MAX;
use crate::upkeep::ClockBounds;

#[derive(Clone)]
pub struct Options {
    /// A generation is sealed when its open chunks take this much memory, bytes.
    pub seal_bytes: usize,
    /// A generation is sealed when its journal takes this many bytes: what a start after a crash has to read.
    pub journal_bytes: u64,
    /// Samples of one series in one chunk; 1 to 65,536.
    pub chunk_values: usize,
    /// A generation is sealed when its first record is this old, by a clock that does not jump.
    pub seal_age: Duration,
    /// Memory for records that are not in the driver yet, bytes; past it senders are told to wait.
    /// At least twice `seal_bytes` is used.
    pub open_bytes_max: usize,
    /// How long a sender is told to wait.
    pub retry_after: Duration,
    /// Series of all kinds, about 500 bytes of memory each. A new one past this or one of the next three is refused, the
    /// known ones of its batch are kept. Batches that are under way together may pass them by a little.
    pub series_max: usize,
    /// Memory of the index of all series with their labels, bytes, estimated. A new series past it is refused as one past
    /// `series_max` is. What is in the driver already is opened whatever it takes.
    pub index_bytes_max: usize,
    /// Distinct names of labels: far above any schema, far below a name made of a value.
    pub label_names_max: usize,
    /// Distinct values of one label: a request id in a label is found out before it takes the memory.
    pub label_values_max: usize,
    /// A session that is silent for so long is forgotten.
    pub session_age_max: Duration,
    /// Sessions remembered at most.
    pub sessions_max: usize,
    /// First and longest wait after a flush that failed.
    pub flush_wait_first: Duration,
    pub flush_wait_max: Duration,
    /// Nothing is written, neither to the driver nor to the journal: the store is closed from the start, and can be read.
    pub read_only: bool,
    /// Where the journal lies.
    pub disk: Arc<dyn Disk>,
    /// Space that is kept free on that disk, bytes, beside what the records in the journal will take as chunks: new records are
    /// refused before it is touched, and deletion, expiry and sealing go on. 0: until the disk is full.
    pub disk_reserve_bytes: u64,
    /// How far the clock may be ahead of what is expected before history is deleted by it; `None`: it is believed always.
    pub clock_bounds: Option<ClockBounds>,
    /// What is to become of a series' history.
    pub policies: Arc<Policies>,
    /// Is there upkeep while nobody asks for it?
    pub merge_in_background: bool,
    /// Chunks side by side and of like size that are worth a merge: a record is written again once for each power of it that is
    /// between a flush and a full chunk.
    pub merge_rows: usize,
    /// Numbers that one merge decodes at most, about: 8 bytes each, as much again for what it writes, and for the rows that
    /// it chooses from.
    pub merge_values: usize,
    /// What the upkeep may read and write a second, bytes, and take of one processor, percent.
    pub merge_bytes_per_second: u64,
    pub merge_cpu_percent: u32,
    /// The first look at all partitions after a start, and how often rules on age are followed.
    pub sweep_first: Duration,
    pub sweep_every: Duration,
    /// When, after a start and after the last time, all stored bytes are read again to see whether they are sound: of a back
    /// end that does not look after that itself.
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
