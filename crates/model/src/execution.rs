//! What is an execution? A call, which is stored as part of a segment of a trace.
//!
//! A *segment* holds the events of one thread for one trace, from the enter event of the outermost call to its exit event. Long
//! segments are cut into parts. A later part lists the calls that are open at its start; the part *carries* them. The order of
//! the events gives the shape of the call tree. The differences between events give the times of the calls:
//! ```text
//!   a() ─┬─ b()            events   enter a, enter b, exit, enter c, exit failed, exit
//!        └─ c() throws     deltas   0        120      80    15       940          33   ns
//! ```

use std::fmt;
use std::sync::Arc;

use crate::Timestamp;
use crate::limits::{SEGMENT_ATTRIBUTES_MAX, SEGMENT_CARRIED_MAX, SEGMENT_EVENTS_MAX};

/// 128-bit trace id of W3C Trace Context; never zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId(pub u128);

impl TraceId {
    /// A hash of 64 bits. Trace ids of some senders are counters, so their bits are mixed.
    #[expect(clippy::cast_possible_truncation, reason = "takes both halves")]
    pub const fn hash64(self) -> u64 {
        mix64(mix64(self.0 as u64) ^ (self.0 >> 64) as u64)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// 64-bit span id of W3C Trace Context. Call `k` of a segment has the id `mix64(base + k)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId(pub u64);

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection that makes a counter look random. The
/// agent generates ids with this function. The chunk encoder inverts it and stores the counter, which takes almost no
/// space.
pub const fn mix64(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

pub const fn unmix64(n: u64) -> u64 {
    let n = (n ^ (n >> 31) ^ (n >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    let n = (n ^ (n >> 27) ^ (n >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    n ^ (n >> 30) ^ (n >> 60)
}

/// Kind of an operation. The discriminants are sent on the wire and stored on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OperationKind {
    /// A method or constructor of the program: `com.shop.Board.post(java.lang.String)`.
    Method = 1,
    /// A received request: `GET /ads`.
    HttpServer = 2,
    /// A sent request: `GET http://host/path`.
    HttpClient = 3,
    /// A statement, normalised: `SELECT * FROM ad WHERE id = ?`.
    Database = 4,
    /// A wait for a pooled connection.
    ConnectionWait = 5,
    /// The run of a task that other code handed over, for example to a thread pool.
    Task = 6,
}

impl OperationKind {
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Method),
            2 => Some(Self::HttpServer),
            3 => Some(Self::HttpClient),
            4 => Some(Self::Database),
            5 => Some(Self::ConnectionWait),
            6 => Some(Self::Task),
            _ => None,
        }
    }

    /// Name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::HttpServer => "http-server",
            Self::HttpClient => "http-client",
            Self::Database => "database",
            Self::ConnectionWait => "connection-wait",
            Self::Task => "task",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Operation {
    pub kind: OperationKind,
    pub name: Arc<str>,
}

/// Index into the table of operations that accompanies a segment.
pub type OperationIndex = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    Enter(OperationIndex),
    /// The innermost open call returned.
    Exit,
    /// The innermost open call failed: with an exception, or, for a request, with a status of 500 or above or an incomplete
    /// answer.
    ExitFailed,
}

/// One enter or exit, `delta` ns after the previous event of the same part (0 for the first event of a part).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub delta: u64,
    pub kind: EventKind,
}

/// A call entered in an earlier part of the segment and still open when this part starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Carried {
    pub operation: OperationIndex,
    /// Index of the call in its segment, from 0 in order of enter events.
    pub call: u32,
    /// Time from the enter of the call to `start` of this part, ns.
    pub age: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AttributeValue {
    Text(Arc<str>),
    Integer(i64),
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
        }
    }
}

/// A fact about one call: `http.status` = 200, `request.id` = ..., `exception` = ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Index of the call in its segment.
    pub call: u32,
    pub key: Arc<str>,
    pub value: AttributeValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub trace: TraceId,
    /// All parts of a segment have the same base.
    pub base: u64,
    pub part: u32,
    /// The span that caused this segment. It belongs to another segment, or to another tracer.
    pub parent: Option<SpanId>,
    pub thread: Arc<str>,
    pub start: Timestamp,
    /// Calls open at the start, outermost first. Empty in part 0.
    pub carried: Vec<Carried>,
    /// Index of the first call entered in this part.
    pub first_call: u32,
    pub events: Vec<Event>,
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    #[error("trace id is zero")]
    TraceZero,
    #[error("segment has no events")]
    NoEvents,
    #[error("segment has {0} events, at most {SEGMENT_EVENTS_MAX} are allowed")]
    TooManyEvents(usize),
    #[error("segment carries {0} calls, at most {SEGMENT_CARRIED_MAX} are allowed")]
    TooManyCarried(usize),
    #[error("segment has {0} attributes, at most {SEGMENT_ATTRIBUTES_MAX} are allowed")]
    TooManyAttributes(usize),
    #[error("event {event} is an exit but no call is open")]
    ExitWithoutEnter { event: usize },
    #[error("operation {index} is not in the table of {count} operations")]
    UnknownOperation { index: OperationIndex, count: usize },
    #[error("times of the segment overflow")]
    TimeOverflow,
}

impl Segment {
    /// The number of executions: calls that exit in this part.
    pub fn calls_completed(&self) -> usize {
        self.events.iter().filter(|e| !matches!(e.kind, EventKind::Enter(_))).count()
    }

    /// Time from the first to the last event, ns.
    pub fn duration(&self) -> u64 {
        self.events.iter().fold(0, |sum: u64, e| sum.saturating_add(e.delta))
    }

    /// Checks the invariants that users of a segment rely on. `operations` is the length of the table of
    /// operations.
    pub fn check(&self, operations: usize) -> Result<(), SegmentError> {
        if self.trace.0 == 0 {
            return Err(SegmentError::TraceZero);
        }
        if self.events.is_empty() {
            return Err(SegmentError::NoEvents);
        }
        if self.events.len() > SEGMENT_EVENTS_MAX {
            return Err(SegmentError::TooManyEvents(self.events.len()));
        }
        if self.carried.len() > SEGMENT_CARRIED_MAX {
            return Err(SegmentError::TooManyCarried(self.carried.len()));
        }
        if self.attributes.len() > SEGMENT_ATTRIBUTES_MAX {
            return Err(SegmentError::TooManyAttributes(self.attributes.len()));
        }
        let known = |index: OperationIndex| match usize::try_from(index) {
            Ok(at) if at < operations => Ok(()),
            _ => Err(SegmentError::UnknownOperation { index, count: operations }),
        };
        for carried in &self.carried {
            known(carried.operation)?;
        }
        let mut open = self.carried.len();
        for (at, event) in self.events.iter().enumerate() {
            match event.kind {
                EventKind::Enter(operation) => {
                    known(operation)?;
                    open += 1;
                }
                EventKind::Exit | EventKind::ExitFailed => {
                    open = open.checked_sub(1).ok_or(SegmentError::ExitWithoutEnter { event: at })?;
                }
            }
        }
        self.check_times()
    }

    fn check_times(&self) -> Result<(), SegmentError> {
        let total = self.events.iter().try_fold(0u64, |sum, e| sum.checked_add(e.delta));
        let end = total.and_then(|t| i64::try_from(t).ok()).and_then(|t| self.start.checked_add(t));
        let oldest = self.carried.iter().map(|c| c.age).max().unwrap_or(0);
        let begin = i64::try_from(oldest).ok().and_then(|age| self.start.checked_sub(age));
        if end.is_none() || begin.is_none() { Err(SegmentError::TimeOverflow) } else { Ok(()) }
    }

    pub const fn span(&self, call: u32) -> SpanId {
        SpanId(mix64(self.base.wrapping_add(call as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(kinds: &[EventKind]) -> Segment {
        Segment {
            trace: TraceId(1),
            base: 0,
            part: 0,
            parent: None,
            thread: "main".into(),
            start: 0,
            carried: vec![],
            first_call: 0,
            events: kinds.iter().map(|kind| Event { delta: 1, kind: *kind }).collect(),
            attributes: vec![],
        }
    }

    #[test]
    fn unbalanced_exits_and_unknown_operations_are_refused() {
        use EventKind::{Enter, Exit, ExitFailed};
        let check = |kinds: &[EventKind]| segment(kinds).check(1);
        assert_eq!(check(&[Enter(0), Enter(0), ExitFailed, Exit]), Ok(()));
        assert_eq!(check(&[Enter(0)]), Ok(()));
        assert_eq!(check(&[]), Err(SegmentError::NoEvents));
        assert_eq!(check(&[Enter(0), Exit, Exit]), Err(SegmentError::ExitWithoutEnter { event: 2 }));
        assert_eq!(check(&[Enter(1)]), Err(SegmentError::UnknownOperation { index: 1, count: 1 }));
        let mut late = segment(&[Enter(0)]);
        late.start = i64::MAX;
        assert_eq!(late.check(1), Err(SegmentError::TimeOverflow));
    }

    proptest! {
        #[test]
        fn mix_is_a_bijection(n in any::<u64>()) {
            prop_assert_eq!(unmix64(mix64(n)), n);
            prop_assert_eq!(mix64(unmix64(n)), n);
        }
    }
}
