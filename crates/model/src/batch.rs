//! What does a protocol decoder produce, and what does the store accept?

use std::sync::Arc;

use crate::{Entry, Labels, Operation, Sample, Segment};

/// Records that arrived together. The journal accepts or refuses a batch as a whole. `Store::append` first
/// divides a very large batch, unless the batch has an `Origin` (session and frame numbers).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub samples: Vec<SampleSeries>,
    pub entries: Vec<EntrySeries>,
    pub executions: Vec<ExecutionSeries>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SampleSeries {
    pub labels: Arc<Labels>,
    pub samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct EntrySeries {
    pub labels: Arc<Labels>,
    pub entries: Vec<Entry>,
}

/// Segments of one observed process. `labels` has the name `executions` and at least the labels `service` and `host`.
/// Each [`crate::OperationIndex`] in `segments` is an index into `operations`.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionSeries {
    pub labels: Arc<Labels>,
    pub operations: Vec<Operation>,
    pub segments: Vec<Segment>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.entries.is_empty() && self.executions.is_empty()
    }

    /// Number of records by kind: samples, entries, executions (one per completed call).
    pub fn counts(&self) -> [usize; 3] {
        [
            self.samples.iter().map(|s| s.samples.len()).sum(),
            self.entries.iter().map(|s| s.entries.len()).sum(),
            self.executions.iter().flat_map(|s| &s.segments).map(Segment::calls_completed).sum(),
        ]
    }
}
