//! The memtable: records that are not encoded yet.
//!
//! Records are in order of arrival. They are sorted when they are read or sealed, so late and backfilled records cost no
//! extra work here. There may be millions of samples, so they are packed when they arrive (`samples.rs`), and series share their
//! times (`times.rs`).
//!
//! Path of one record. Before: `generation.rs` adds it. After: `seal/` encodes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tacho_chunk::ExecutionBlock;
use tacho_model::{Entry, Operation, Segment, TimeRange};

use crate::keys::{CHUNK_SPAN_MAX_NS, Span};
use crate::scatter::Walk;

mod samples;
mod times;
mod words;

pub use samples::{Column, OpenSamples, OpenSeries, latest};

/// A block of executions with at least this many completed calls is full. Its last segment may take it above this number.
pub const CHUNK_CALLS_MAX: usize = 65_536;
/// A block of executions with at least this much memory, in bytes, is full. This prevents a hostile sender from creating a huge
/// chunk with many distinct sequences of events.
pub const CHUNK_OPEN_BYTES_MAX: usize = 16 << 20;

#[derive(Debug, Default)]
pub struct OpenEntries {
    entries: Vec<Entry>,
    body_bytes: usize,
}

impl OpenEntries {
    /// Returns whether the entry is in another two-day window than the previous entry.
    pub fn push(&mut self, entry: Entry) -> bool {
        let changes_window =
            self.entries.last().is_some_and(|last| Walk::from(last.at).changes_window(entry.at));
        self.body_bytes += entry.body.as_bytes().len() + 16;
        self.entries.push(entry);
        changes_window
    }

    /// Entries of a range, in order of arrival.
    pub fn read(&self, range: TimeRange) -> Vec<Entry> {
        self.entries.iter().filter(|entry| range.contains(entry.at)).cloned().collect()
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.body_bytes
    }
}

/// Segments of at most this duration, ns, are grouped by day, so that a block spans at most two days. The duration begins with
/// the oldest call that the segment carries.
pub const SEGMENT_SHORT_MAX_NS: u64 = CHUNK_SPAN_MAX_NS / 2;

/// Selects the block of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    pub span: Span,
    /// Days from the epoch to the start of the segment or of the oldest call that it carries; 0 for
    /// long segments.
    day: i64,
}

impl Bucket {
    /// The segment has passed `Segment::check`, so its times do not overflow.
    fn of(segment: &Segment) -> Self {
        let age = segment.carried.iter().map(|c| c.age).max().unwrap_or(0);
        let first = segment.start.saturating_sub_unsigned(age);
        if age.saturating_add(segment.duration()) > SEGMENT_SHORT_MAX_NS {
            return Self { span: Span::Long, day: 0 };
        }
        Self { span: Span::Short, day: first.div_euclid(SEGMENT_SHORT_MAX_NS.cast_signed()) }
    }
}

/// Segments of one series in blocks: one growing block per bucket, and full blocks.
#[derive(Debug, Default)]
pub struct OpenExecutions {
    /// Shared with readers. A push during a read copies the block once.
    growing: BTreeMap<Bucket, Arc<ExecutionBlock>>,
    full: Vec<(Bucket, Arc<ExecutionBlock>)>,
    full_bytes: usize,
    /// An empty block with the capacity of the last full block. It becomes the next growing block.
    spare: Option<Arc<ExecutionBlock>>,
}

/// Memory of an empty block with its tables, bytes.
const BLOCK_BYTES: usize = 1_024;

impl OpenExecutions {
    pub fn push(&mut self, segment: &Segment, operations: &[Operation]) {
        let bucket = Bucket::of(segment);
        let spare = &mut self.spare;
        let block = self.growing.entry(bucket).or_insert_with(|| spare.take().unwrap_or_default());
        Arc::make_mut(block).push(segment, operations);
        if block.calls() >= CHUNK_CALLS_MAX || block.bytes() >= CHUNK_OPEN_BYTES_MAX || block.is_full() {
            self.full_bytes += block.room_bytes() + BLOCK_BYTES;
            self.spare = Some(Arc::new(ExecutionBlock::as_large_as(block)));
            self.full.extend(self.growing.remove(&bucket).map(|block| (bucket, block)));
        }
    }

    /// Number of growing blocks. A bucket has at most one.
    pub fn growing(&self) -> usize {
        self.growing.len()
    }

    /// All blocks, in the order in which a seal numbers them.
    pub fn blocks(&self) -> impl Iterator<Item = (Bucket, &Arc<ExecutionBlock>)> {
        let full = self.full.iter().map(|(bucket, block)| (*bucket, block));
        full.chain(self.growing.iter().map(|(bucket, block)| (*bucket, block)))
    }

    pub fn read(&self, range: TimeRange) -> Vec<Arc<ExecutionBlock>> {
        self.blocks().filter(|(_, block)| block.range().overlaps(&range)).map(|(_, b)| b.clone()).collect()
    }

    /// Memory of the capacity of all blocks including the spare one, bytes. A growing block may have the capacity of the
    /// former spare block.
    pub fn bytes(&self) -> usize {
        let spare = self.spare.iter();
        let held: usize =
            self.growing.values().chain(spare).map(|block| block.room_bytes() + BLOCK_BYTES).sum();
        held + self.full_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_model::{Event, EventKind, OperationKind, TraceId};

    #[test]
    fn spare_capacity_counts_as_memory() {
        let calls = 1_024;
        let event = |delta, kind| Event { delta, kind };
        let events = (0..calls).flat_map(|_| [event(1, EventKind::Enter(0)), event(1, EventKind::Exit)]);
        let segment = Segment {
            trace: TraceId(1),
            base: 2,
            part: 0,
            parent: None,
            thread: "main".into(),
            start: 3,
            carried: Vec::new(),
            first_call: 0,
            events: events.collect(),
            attributes: Vec::new(),
        };
        let operations = [Operation { kind: OperationKind::Method, name: "a".into() }];
        let mut open = OpenExecutions::default();
        let mut push = || {
            open.push(&segment, &operations);
            (open.full.len(), open.bytes())
        };
        // Each call has two events with a time.
        let times = 2 * CHUNK_CALLS_MAX * size_of::<u64>();
        let (full, bytes) = (1..=CHUNK_CALLS_MAX / calls).map(|_| push()).last().expect("some");
        assert_eq!(full, 1);
        assert!(
            (2 * times..4 * times).contains(&bytes),
            "{bytes} bytes, expected a full block and an empty block of the same capacity"
        );
        let (full, grown) = push();
        assert_eq!(full, 1);
        assert!(
            grown >= bytes,
            "{grown} after {bytes}: the growing block has the capacity of the former spare block"
        );
    }
}
