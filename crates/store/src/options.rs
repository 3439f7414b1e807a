//! Options of a store, with units and defaults.

use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Disk, RealDisk};
use crate::index::Bounds;
use crate::policy::Policies;
use crate::seal::CHUNK_VALUES_MAX;
use crate::threads::Threads;
use crate::upkeep::{ClockBounds, since_boot};

#[derive(Clone)]
pub struct Options {
    /// Memory of the memtable at which a generation is sealed, bytes. With hundreds of thousands of series, the generation is
    /// sealed later, at up to three eighths of `open_bytes_max` (`commit.rs`).
    pub seal_bytes: usize,
    /// Size of the journal at which a generation is sealed, bytes. A start after a crash reads all of these bytes.
    pub journal_bytes: u64,
    /// If the journals have at most this size in total, bytes, a stop leaves them, and the next start reads them. Otherwise a
    /// stop flushes all records. With 0, a stop always flushes them.
    pub stop_journal_bytes: u64,
    /// Limit on the samples of one series in a chunk that a flush writes, 1 to 65,536. Merges aim at about this number unless a
    /// rule sets another one.
    pub chunk_values: usize,
    /// Age of the first record at which a generation is sealed, measured by a monotonic clock.
    pub seal_age: Duration,
    /// Memory budget for records that are not in the driver yet, bytes. Above the budget, senders have to wait. The
    /// budget is at least twice `seal_bytes`.
    pub open_bytes_max: usize,
    /// Delay after which a sender that the memory budget refused should retry.
    pub retry_after: Duration,
    /// Limit on series of all kinds; each takes about 500 bytes of memory. A new series above this limit, `index_bytes_max`,
    /// `label_names_max` or `label_values_max` is refused; the existing series of its batch are stored. Concurrent batches may
    /// exceed the limits slightly.
    pub series_max: usize,
    /// Limit on the estimated memory of the index of all series with their labels, bytes. Series in the driver are
    /// loaded even above this limit.
    pub index_bytes_max: usize,
    /// Limit on chunks. A driver may keep their keys in memory, about 200 bytes each. At the limit, only records within
    /// two days of the present time are accepted. Such records alone do not reach the limit, because merges reduce them
    /// to few chunks.
    pub chunks_max: usize,
    /// Limit on distinct label names. It is above the needs of any schema, and stops a client that puts values into label
    /// names.
    pub label_names_max: usize,
    /// Limit on distinct values of one label. It stops a client that puts a request id into a label.
    pub label_values_max: usize,
    /// A session without a batch for this time is forgotten.
    pub session_age_max: Duration,
    pub sessions_max: usize,
    /// First and longest wait after a failed flush.
    pub flush_wait_first: Duration,
    pub flush_wait_max: Duration,
    /// Opens the store for reading only: writes neither to the driver nor to the journal.
    pub read_only: bool,
    /// The disk of the journal.
    pub disk: Arc<dyn Disk>,
    /// The threads for the journal, for encoding, merging and decoding.
    pub threads: Threads,
    /// Draws random numbers: the identity of a new store, and the keys of spellings.
    pub draw_id: fn() -> u128,
    /// Space kept free on the disk of the journal, bytes, in addition to the space for flushing the journal's records. New
    /// records are refused before this space is used; deletion, expiry and sealing continue. With 0, records are accepted until
    /// the disk is full.
    pub disk_reserve_bytes: u64,
    /// Limits on how far the clock may be ahead of the expected time. A clock that is further ahead is not used to
    /// delete records. `None` means that the clock is always trusted.
    pub clock_bounds: Option<ClockBounds>,
    /// Rules on retention, resolution and precision of records.
    pub policies: Arc<Policies>,
    /// Time since the machine started, by a clock that cannot be set.
    pub since_boot: fn() -> Duration,
    pub merge_in_background: bool,
    /// Number of adjacent chunks of similar size that one merge combines. With `n`, a record is rewritten once per
    /// factor of `n` between the sizes of a flushed chunk and a full chunk.
    pub merge_rows: usize,
    /// Approximate limit on the values that one merge decodes. Each value takes 8 bytes. The output takes the same
    /// amount again. The rows from which the merge chooses take additional memory.
    pub merge_values: usize,
    /// Limits on upkeep: bytes read and written per second, and CPU time in percent of one core.
    pub merge_bytes_per_second: u64,
    pub merge_cpu_percent: u32,
    /// Delay of the first sweep of all partitions after a start, and interval of sweeps for rules on age.
    pub sweep_first: Duration,
    pub sweep_every: Duration,
    /// Delay after a start, and interval, of verifying all stored bytes. Applies to back ends that do not verify their
    /// data themselves.
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
            stop_journal_bytes: 64 << 20,
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
            threads: Threads::Many,
            draw_id,
            disk_reserve_bytes: 0,
            clock_bounds: None,
            since_boot,
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

/// Draws 128 random bits, from the hasher keys that the standard library takes from the operating system.
pub fn draw_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let draw = || u128::from(RandomState::new().hash_one(std::process::id()));
    draw() << 64 | draw()
}
