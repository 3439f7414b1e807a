//! What has the store done since it was opened, and what does it hold now? Plain numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::upkeep::UpkeepStats;

/// What lies in the driver of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub chunks: u64,
    /// Of encoded chunks, without keys.
    pub bytes: u64,
    /// Samples, entries, or completed calls.
    pub records: u64,
}

impl std::ops::AddAssign for Stored {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.bytes += other.bytes;
        self.records += other.records;
    }
}

/// Numbers at one moment. Those that are not said to be "now" count since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Now: series by kind, in the order of `Kind::ALL`.
    pub series: [usize; 3],
    /// Now: what lies in the driver by kind; kept over restarts.
    pub stored: [Stored; 3],
    /// Now: series of all kinds; one with samples and entries counts once.
    pub series_total: usize,
    /// Now: memory of records that are not in the driver yet, bytes, and its bound.
    pub open_bytes: usize,
    pub open_bytes_max: usize,
    /// Now: generations that wait for their flush.
    pub sealed: usize,
    /// Now: bytes of all journal files.
    pub journal_bytes: u64,
    /// Now: sessions that are remembered.
    pub sessions: usize,
    /// Merges, deletions, what has had its time.
    pub upkeep: UpkeepStats,
    /// Records taken by kind: samples, entries, completed calls.
    pub records: [u64; 3],
    /// Samples that were written again with the same time before they were sealed: the later one is kept.
    pub samples_replaced: u64,
    pub batches: u64,
    pub batches_repeated: u64,
    /// Batches refused because memory was full: senders were told to wait.
    pub batches_full: u64,
    /// New series for which there was no room; one counts as often as it comes.
    pub series_refused: u64,
    pub journal_syncs: u64,
    pub journal_failures: u64,
    pub seals_by_size: u64,
    pub seals_by_age: u64,
    pub seals_by_close: u64,
    pub seals_by_failure: u64,
    pub flushes: u64,
    pub flush_failures: u64,
    pub chunks_written: u64,
    pub chunk_bytes_written: u64,
    /// Chunks that could not be decoded and were left out of an answer.
    pub chunks_unreadable: u64,
    /// When the store was opened: batches read back, bytes of torn ends cut off, damaged records stepped over.
    pub recovered_batches: u64,
    pub recovered_torn_bytes: u64,
    pub recovered_damaged: u64,
}

/// The counting side of [`Stats`].
#[derive(Debug, Default)]
pub struct Counters {
    pub records: [Count; 3],
    pub samples_replaced: Count,
    pub batches: Count,
    pub batches_repeated: Count,
    pub batches_full: Count,
    pub series_refused: Count,
    pub journal_syncs: Count,
    pub journal_failures: Count,
    pub seals_by_size: Count,
    pub seals_by_age: Count,
    pub seals_by_close: Count,
    pub seals_by_failure: Count,
    pub flushes: Count,
    pub flush_failures: Count,
    pub chunks_written: Count,
    pub chunk_bytes_written: Count,
    pub chunks_unreadable: Count,
    pub recovered_batches: Count,
    pub recovered_torn_bytes: Count,
    pub recovered_damaged: Count,
}

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// The counts; what is "now" is filled in by the caller.
    pub fn snapshot(&self) -> Stats {
        Stats {
            records: std::array::from_fn(|kind| self.records[kind].get()),
            samples_replaced: self.samples_replaced.get(),
            batches: self.batches.get(),
            batches_repeated: self.batches_repeated.get(),
            batches_full: self.batches_full.get(),
            series_refused: self.series_refused.get(),
            journal_syncs: self.journal_syncs.get(),
            journal_failures: self.journal_failures.get(),
            seals_by_size: self.seals_by_size.get(),
            seals_by_age: self.seals_by_age.get(),
            seals_by_close: self.seals_by_close.get(),
            seals_by_failure: self.seals_by_failure.get(),
            flushes: self.flushes.get(),
            flush_failures: self.flush_failures.get(),
            chunks_written: self.chunks_written.get(),
            chunk_bytes_written: self.chunk_bytes_written.get(),
            chunks_unreadable: self.chunks_unreadable.get(),
            recovered_batches: self.recovered_batches.get(),
            recovered_torn_bytes: self.recovered_torn_bytes.get(),
            recovered_damaged: self.recovered_damaged.get(),
            ..Stats::default()
        }
    }
}
