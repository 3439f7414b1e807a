//! What has the upkeep done since the store was opened? Plain numbers.

use crate::counters::{Count, counters};

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
    /// Bytes that were read only to see whether they are still what was written.
    pub verified_bytes: u64,
    /// Time that processors were busy with it, ns.
    pub busy_ns: u64,
}

counters! {
    /// The counting side of [`UpkeepStats`].
    Counts of UpkeepStats {
        merges: Count,
        chunks_in: Count,
        chunks_out: Count,
        bytes_read: Count,
        bytes_written: Count,
        records_in: Count,
        records_out: Count,
        samples_replaced: Count,
        chunks_expired: Count,
        rows_dead: Count,
        deletions: Count,
        deletions_done: Count,
        series_forgotten: Count,
        failures: Count,
        verified_bytes: Count,
        busy_ns: Count,
    }
}
