//! What has the upkeep done since the store was opened? Plain numbers.

use crate::stats::Count;

/// Numbers at one moment. Those that are not said to be "now" count since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpkeepStats {
    /// Now: chunks that no merge has seen; and those of them that lie where there are enough for a merge (merge debt).
    pub chunks_fresh: u64,
    pub chunks_due: u64,
    /// Now: deletions that are not wholly done.
    pub tombstones: u64,
    pub merges: u64,
    /// Chunks that were replaced, and what replaced them.
    pub chunks_in: u64,
    pub chunks_out: u64,
    /// Bytes of rows that were read to find out what to do, and of chunks that were written.
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Records of replaced chunks, and of those that replaced them.
    pub records_in: u64,
    pub records_out: u64,
    /// Samples that a later one of the same time had replaced.
    pub samples_replaced: u64,
    /// Chunks that were deleted because all of them had had their time.
    pub chunks_expired: u64,
    /// Rows that an earlier process had replaced and not deleted.
    pub rows_dead: u64,
    /// Deletions that were asked for, and those that were wholly done.
    pub deletions: u64,
    pub deletions_done: u64,
    /// Series that have left the index.
    pub series_forgotten: u64,
    /// Attempts that failed and were or will be repeated.
    pub failures: u64,
    /// Time that processors were busy with it, ns.
    pub busy_ns: u64,
}

/// The counting side of [`UpkeepStats`].
#[derive(Debug, Default)]
pub struct Counts {
    pub merges: Count,
    pub chunks_in: Count,
    pub chunks_out: Count,
    pub bytes_read: Count,
    pub bytes_written: Count,
    pub records_in: Count,
    pub records_out: Count,
    pub samples_replaced: Count,
    pub chunks_expired: Count,
    pub rows_dead: Count,
    pub deletions: Count,
    pub deletions_done: Count,
    pub series_forgotten: Count,
    pub failures: Count,
    pub busy_ns: Count,
}

impl Counts {
    /// The counts; what is "now" is filled in by the caller.
    pub fn snapshot(&self) -> UpkeepStats {
        UpkeepStats {
            merges: self.merges.get(),
            chunks_in: self.chunks_in.get(),
            chunks_out: self.chunks_out.get(),
            bytes_read: self.bytes_read.get(),
            bytes_written: self.bytes_written.get(),
            records_in: self.records_in.get(),
            records_out: self.records_out.get(),
            samples_replaced: self.samples_replaced.get(),
            chunks_expired: self.chunks_expired.get(),
            rows_dead: self.rows_dead.get(),
            deletions: self.deletions.get(),
            deletions_done: self.deletions_done.get(),
            series_forgotten: self.series_forgotten.get(),
            failures: self.failures.get(),
            busy_ns: self.busy_ns.get(),
            ..UpkeepStats::default()
        }
    }
}
