//! The result of a merge of everything or of a sweep, for the caller that ordered it.

use std::time::Duration;

use super::replacement::RowReplacement;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeReport {
    pub partitions: u64,
    pub merges: u64,
    pub chunks_in: u64,
    pub chunks_out: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub records_in: u64,
    pub records_out: u64,
    pub samples_replaced: u64,
    /// CPU time.
    pub busy: Duration,
    pub elapsed: Duration,
}

impl MergeReport {
    pub fn add(&mut self, replacement: &RowReplacement) {
        self.merges += 1;
        self.chunks_in += replacement.before.chunks;
        self.chunks_out += replacement.after.chunks;
        self.bytes_written += replacement.after.bytes;
        self.records_in += replacement.before.records;
        self.records_out += replacement.after.records;
        self.samples_replaced += replacement.samples_replaced;
    }
}
