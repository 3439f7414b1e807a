//! What is known about the calls of a chunk without reading them? Counts, sums and a sketch of the durations of each operation,
//! counts of each slot of time, and which operations called which (`docs/format/chunk.md`, *Summary*).
//!
//! ```text
//!   buckets.rs  the buckets of durations
//!   sketch.rs   durations, counted by bucket
//!   build.rs    a block -> its summary
//!   minutes.rs  the durations of the calls of each minute
//!   statuses.rs the durations of the calls with each status
//!   links.rs    a block -> the links of its summary; links -> bytes, and back
//!   bytes.rs    a summary -> bytes, and back
//!   merge.rs    summaries of several chunks -> their sum
//!   names.rs    a summary with its names -> bytes, and back
//!   columns.rs  columns of numbers
//! ```
//! A summary is computed from one chunk. It lists the parts of segments whose previous or next part is in another chunk, so that
//! a reader can join them. The self time of a call of an HTTP client includes the time of the server, even if the server is
//! recorded.

mod buckets;
mod build;
mod bytes;
mod columns;
mod links;
mod merge;
mod minutes;
mod names;
mod sketch;
mod statuses;

use std::sync::Arc;

use tacho_model::{Operation, TimeRange, Timestamp, TraceId};

use crate::{Caller, Encoding, Error, ExecutionBlock};

pub use buckets::{SKETCH_ERROR, bucket_count, bucket_of, bucket_range, bucket_value};
pub use minutes::{DURATION_BOUNDS_NS, duration_bucket};
pub use sketch::Sketch;
pub use statuses::StatusDurations;

pub(crate) use build::summary;
pub use bytes::SummaryInfo;
pub(crate) use bytes::{check, check_header, decode, encode};

const SECOND_NS: i64 = 1_000_000_000;
/// Possible lengths of a slot, seconds. Each length divides the next. The encoder uses the first length with enough calls per
/// point.
const SLOTS_S: [i64; 4] = [60, 300, 900, SLOT_MAX_S];
const SLOT_MAX_S: i64 = 3_600;

/// Buckets with their counts, ascending by bucket. No count is 0.
pub type Buckets = Vec<(u16, u64)>;

/// The summary of a chunk of executions. A call belongs to the slot in which it was entered.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSummary {
    pub operations: Arc<[Operation]>,
    /// The callers in the chunk.
    pub callers: Arc<[Caller]>,
    /// Length of a slot, seconds. Slot `n` begins at second `n * slot_s` of the Unix epoch.
    pub slot_s: i64,
    /// Ascending by operation. Calls with a caller are before calls without a caller.
    pub cells: Vec<Cell>,
    /// Ascending by slot and cell.
    pub points: Vec<Point>,
    /// The durations of each point. `None` in summaries of versions 1 and 2, if there are few calls per point, and with slots of
    /// more than a minute.
    pub durations: Option<Vec<PointDurations>>,
    /// Ascending by slot and class.
    pub requests: Vec<RequestSlot>,
    /// Parts of segments whose previous or next part is not in the chunk.
    pub loose: Vec<LoosePart>,
    /// Ascending by source and operation. `None` in summaries of version 1, and if the caller of a segment was never searched.
    pub links: Option<Vec<Link>>,
    /// Ascending by status. `None` in summaries of versions 1 to 3, and if there are too many statuses.
    pub statuses: Option<Vec<StatusDurations>>,
}

/// Completed calls of one operation that have the same source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub source: LinkSource,
    /// Index of the called operation in the chunk.
    pub operation: u32,
    pub count: u64,
    pub errors: u64,
    /// Sum of the durations. Saturates at `u64::MAX`.
    pub total_ns: u64,
}

/// What called the calls of a [`Link`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinkSource {
    /// A call that is not known: the segment has a parent, but was stored without its caller.
    Unknown,
    /// A call of another segment: index of the caller in the chunk.
    Caller(u32),
    /// A call of the same segment: index of its operation in the chunk.
    Operation(u32),
}

/// Calls of one operation, either with or without a caller. Only `refused` and `self_ns` include calls that do not end in the
/// chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the operation in the chunk.
    pub operation: u32,
    /// Whether the calls are outermost calls of segments without a parent.
    pub is_uncalled: bool,
    pub count: u64,
    pub errors: u64,
    /// Calls with a status from 400 to 499.
    pub refused: u64,
    /// Sum of the durations. Saturates at `u64::MAX`, like `self_ns`.
    pub total_ns: u64,
    pub self_ns: u64,
    /// Shortest and longest duration; 0 without completed calls.
    pub min_ns: u64,
    pub max_ns: u64,
    pub buckets: Buckets,
}

impl Cell {
    /// Index of the cell if each operation had both of its cells.
    fn place(&self) -> usize {
        self.operation as usize * 2 + usize::from(self.is_uncalled)
    }
}

/// Completed calls of one cell in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    pub slot: i64,
    /// Index of the cell.
    pub cell: u32,
    pub count: u64,
    pub errors: u64,
}

/// Durations of the calls of a [`Point`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PointDurations {
    /// Sum of the durations. Saturates at `u64::MAX`.
    pub total_ns: u64,
    /// Calls by [`duration_bucket`], ascending. No count is 0.
    pub counts: Vec<(u8, u64)>,
}

/// Durations of the calls of one class in one slot, over all operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSlot {
    pub slot: i64,
    pub class: RequestClass,
    pub buckets: Buckets,
}

/// Which calls may be requests. The classes have no call in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Calls of kind http-server with a caller.
    Served = 0,
    /// Calls of kind http-server without a caller.
    ServedUncalled = 1,
    /// Calls of other kinds without a caller.
    Uncalled = 2,
}

impl RequestClass {
    const ALL: [Self; 3] = [Self::Served, Self::ServedUncalled, Self::Uncalled];

    const fn of(is_http: bool, is_uncalled: bool) -> Option<Self> {
        match (is_http, is_uncalled) {
            (true, false) => Some(Self::Served),
            (true, true) => Some(Self::ServedUncalled),
            (false, true) => Some(Self::Uncalled),
            (false, false) => None,
        }
    }

    pub const fn is_http(self) -> bool {
        matches!(self, Self::Served | Self::ServedUncalled)
    }

    pub const fn is_uncalled(self) -> bool {
        matches!(self, Self::Uncalled | Self::ServedUncalled)
    }
}

/// Identifies a part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartKey {
    pub trace: TraceId,
    pub base: u64,
    pub part: u32,
}

/// A part whose previous or next part is not in the chunk. The time between the two parts is self time of the innermost call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoosePart {
    /// The earlier of the two parts. With [`Edge::Start`], it is not in the chunk.
    pub key: PartKey,
    pub edge: Edge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The time of the last event of the earlier part.
    End(Timestamp),
    /// The operation of the later part's innermost carried call, and the time of the later part's first event.
    Start(u32, Timestamp),
}

/// A summary with facts from the header of its chunk.
#[derive(Clone, Copy, Debug)]
pub struct SummarizedChunk<'a> {
    pub summary: &'a CallSummary,
    pub segments: usize,
    /// First and last time of the chunk, both inclusive.
    pub range: TimeRange,
}

impl CallSummary {
    /// The summary of a block, even of a small block, for which the encoder writes no summary. `None` if a limit `SUMMARY_*_MAX`
    /// is exceeded.
    pub fn of(block: &ExecutionBlock) -> Option<Self> {
        build::summary_in_form(block, None)
    }

    /// Like [`Self::of`], but with slots of one minute and with the durations of each point. `None` also for a block of too many
    /// minutes and operations.
    pub fn by_minute(block: &ExecutionBlock) -> Option<Self> {
        if !build::may_be_by_minute(block) {
            return None;
        }
        let form = build::Form { slot_s: SLOTS_S[0], has_durations: true };
        build::summary_in_form(block, Some(form))
    }

    /// Whether the counts and durations of each minute are known.
    pub fn is_by_minute(&self) -> bool {
        self.slot_s == SLOTS_S[0] && self.durations.is_some()
    }

    /// Decodes the bytes of a summary. For tests: does not check the checksum, and gets the names as arguments.
    ///
    /// # Errors
    /// If the bytes are malformed.
    pub fn decode(bytes: &[u8], operations: Arc<[Operation]>, callers: Arc<[Caller]>) -> Result<Self, Error> {
        bytes::decode(bytes, operations, callers)
    }

    pub fn encode(&self) -> Vec<u8> {
        bytes::encode(self, &Encoding::default())
    }

    /// The Unix second at which a slot begins.
    pub const fn slot_start_s(&self, slot: i64) -> i64 {
        slot.saturating_mul(self.slot_s)
    }
}

/// A segment with one call of operation 0 from time 0 on, for tests.
#[cfg(test)]
fn one_call(number: u64, duration_ns: u64) -> tacho_model::Segment {
    use tacho_model::{Event, EventKind, Segment};
    let events = [(0, EventKind::Enter(0)), (duration_ns, EventKind::Exit)];
    Segment {
        trace: TraceId(u128::from(number) + 1),
        base: number << 8,
        part: 0,
        parent: None,
        thread: "t".into(),
        start: 0,
        carried: vec![],
        first_call: 0,
        events: events.map(|(delta, kind)| Event { delta, kind }).to_vec(),
        attributes: vec![],
    }
}
