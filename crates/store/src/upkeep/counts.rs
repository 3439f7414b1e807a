//! Counters of the upkeep.

use crate::counters::{Count, counters};

/// Statistics at one moment. Fields not marked "now" count since the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpkeepStats {
    /// Now: chunks that no merge has read. `chunks_due` are those in partitions with enough chunks for a merge
    /// (merge debt).
    pub chunks_fresh: u64,
    pub chunks_due: u64,
    /// Now: deletions that are not completed.
    pub tombstones: u64,
    pub merges: u64,
    /// Chunks that merges replaced, and chunks that merges wrote.
    pub chunks_in: u64,
    pub chunks_out: u64,
    /// Bytes of rows read by jobs, and bytes of chunks written.
    pub bytes_read: u64,
    pub bytes_written: u64,
    /// Records of the replaced chunks, and records of the written chunks.
    pub records_in: u64,
    pub records_out: u64,
    /// Samples replaced by later samples with the same time.
    pub samples_replaced: u64,
    /// Chunks deleted because all of their records were expired.
    pub chunks_expired: u64,
    /// Replaced rows that their merge did not delete, for example because of a crash, and that a later job deleted.
    pub rows_dead: u64,
    /// Deletions requested, and deletions completed.
    pub deletions: u64,
    pub deletions_done: u64,
    pub series_forgotten: u64,
    /// Roll-ups written.
    pub rollups: u64,
    /// Days of calls of a series whose summaries are kept since the calls have expired.
    pub days_kept: u64,
    /// Failed attempts that are retried.
    pub failures: u64,
    /// Bytes read only to verify them.
    pub verified_bytes: u64,
    pub busy_ns: u64,
}

counters! {
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
        rollups: Count,
        days_kept: Count,
        failures: Count,
        verified_bytes: Count,
        busy_ns: Count,
    }
}
