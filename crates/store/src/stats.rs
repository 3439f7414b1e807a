//! Counters and gauges of the store.

use crate::counters::{Count, CountByKind, counters};
use crate::upkeep::UpkeepStats;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    pub chunks: u64,
    /// Bytes of encoded chunks, without keys.
    pub bytes: u64,
    /// Number of samples, entries, or completed calls.
    pub records: u64,
}

impl std::ops::AddAssign for Stored {
    fn add_assign(&mut self, other: Self) {
        self.chunks += other.chunks;
        self.bytes += other.bytes;
        self.records += other.records;
    }
}

/// Statistics at one moment. Fields not marked "now" count since the store was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Now: number of series of each kind, in the order of `Kind::ALL`.
    pub series: [usize; 3],
    /// Now: contents of the driver by kind. Kept over restarts.
    pub stored: [Stored; 3],
    /// Now: series of all kinds. A series with samples and entries counts once.
    pub series_total: usize,
    /// Now: estimated memory of the index of all series with their labels, bytes, and its limit.
    pub index_bytes: usize,
    pub index_bytes_max: usize,
    /// Now: series that the index finds by the hash of a sender's text, and the part of `index_bytes` for these hashes.
    pub spellings: usize,
    pub spellings_bytes: usize,
    /// Now: limit on the sum of the chunks in the driver and the chunks that the records in memory will need (an estimate).
    pub chunks_max: usize,
    /// Now: memory of records that are not in the driver yet, bytes, and its limit.
    pub open_bytes: usize,
    pub open_bytes_max: usize,
    /// Now: generations that wait for their flush.
    pub sealed: usize,
    /// Now: bytes of the journals of all generations in memory.
    pub journal_bytes: u64,
    /// Now: remembered sessions.
    pub sessions: usize,
    pub upkeep: UpkeepStats,
    /// Accepted records by kind: samples, entries, completed calls.
    pub records: [u64; 3],
    /// Samples that a flush did not write, because a sample of the same series and time arrived after them in the generation.
    pub samples_replaced: u64,
    pub batches: u64,
    pub batches_repeated: u64,
    /// Forgotten gaps in the frame numbers of sessions. A late frame in such a gap counts as repeated.
    pub session_gaps_forgotten: u64,
    /// Batches refused because the memory budget was used up. Senders have to wait.
    pub batches_full: u64,
    /// Batches refused because only the reserve of the disk was free.
    pub batches_disk_full: u64,
    /// Now: whether batches are refused because only the reserve of the disk is free.
    pub disk_full: bool,
    /// Now: whether the clock is too far ahead to be used for deletion.
    pub clock_doubted: bool,
    /// Series refused by a limit on series or labels. A series is counted each time it is sent.
    pub series_refused: u64,
    /// Records refused at the limit on chunks because they are far from the present time.
    pub records_far_refused: u64,
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
    /// Unreadable stored rows, each counted once, up to about 65,000.
    pub chunks_unreadable: u64,
    /// Counted in the journals when the store was opened: replayed batches, bytes in torn ends, damaged places. A damaged
    /// header whose copy is intact is not counted.
    pub recovered_batches: u64,
    pub recovered_torn_bytes: u64,
    pub recovered_damaged: u64,
    /// Quarantined journal files, including those of earlier starts.
    pub journals_quarantined: u64,
}

counters! {
    Counters of Stats {
        records: CountByKind,
        samples_replaced: Count,
        batches: Count,
        batches_repeated: Count,
        session_gaps_forgotten: Count,
        batches_full: Count,
        batches_disk_full: Count,
        series_refused: Count,
        records_far_refused: Count,
        journal_syncs: Count,
        journal_failures: Count,
        seals_by_size: Count,
        seals_by_age: Count,
        seals_by_close: Count,
        seals_by_failure: Count,
        flushes: Count,
        flush_failures: Count,
        chunks_written: Count,
        chunk_bytes_written: Count,
        recovered_batches: Count,
        recovered_torn_bytes: Count,
        recovered_damaged: Count,
        journals_quarantined: Count,
    }
}
