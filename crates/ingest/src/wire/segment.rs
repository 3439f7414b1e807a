//! The segment record: which calls did one thread make in one trace?
//!
//! Step before: `data.rs`, which passes the bytes of one record. Step after: the segment is added to the batch.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::limits::{
    ATTRIBUTE_BYTES_MAX, SEGMENT_ATTRIBUTES_MAX, SEGMENT_CARRIED_MAX, SEGMENT_EVENTS_MAX,
};
use tacho_model::{
    Attribute, AttributeValue, Carried, Event, EventKind, Operation, OperationIndex, Segment, SpanId,
    Timestamp, TraceId, mix64,
};

use super::dict::Dictionary;
use super::record::{RecordError, check_length, check_operation, text};
use crate::budget::{Budget, Full};
use crate::reader::{Flaw, Reader};

/// Bits of a segment's first byte.
pub(super) mod flag {
    pub const CONTINUED: u8 = 1;
    pub const PARENT: u8 = 2;
    pub const TRACE_FULL: u8 = 4;
    pub const TRACE_OF_SEGMENT: u8 = 8;
    pub const ATTRIBUTES: u8 = 16;
    pub const ALL: u8 = 31;
}

/// The operation id that ends the innermost open call as failed.
pub(super) const FAILED_EXIT: OperationIndex = 0;

/// Number of the lowest bits of a span base ([`span_base`]) in which the calls of a segment are counted. The segment's number is
/// added above these bits.
const CALL_BITS: u32 = 24;

/// The forms of an attribute's value. The discriminants are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Form {
    TextId = 0,
    Text = 1,
    Uuid = 2,
    Integer = 3,
}

impl Form {
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::TextId),
            1 => Some(Self::Text),
            2 => Some(Self::Uuid),
            3 => Some(Self::Integer),
            _ => None,
        }
    }
}

/// The operations of one frame, in order of first use. Maps ids of the connection to positions in this list.
#[derive(Debug, Default)]
pub(super) struct OperationTable {
    operations: Vec<Operation>,
    /// For operation id `i + 1`: the last frame that used the id, and the position of the operation in that frame.
    places: Vec<(u64, OperationIndex)>,
    /// Positions of operations whose ids are beyond `places`.
    sparse: HashMap<u64, OperationIndex>,
    frame: u64,
}

impl OperationTable {
    /// Discards the previous frame's operations.
    pub(super) fn begin_frame(&mut self, dictionary: &Dictionary) {
        self.operations.clear();
        self.sparse.clear();
        self.frame += 1;
        if self.places.len() < dictionary.operations_dense() {
            self.places.resize(dictionary.operations_dense(), (0, 0));
        }
    }

    pub(super) fn take(&mut self) -> Vec<Operation> {
        std::mem::take(&mut self.operations)
    }

    fn position(&mut self, context: &Context<'_>, id: u64) -> Result<OperationIndex, RecordError> {
        let dictionary = context.dictionary;
        let undefined = RecordError::Undefined { what: "operation", id };
        let at = id.checked_sub(1).and_then(|at| usize::try_from(at).ok());
        let place = at.and_then(|at| self.places.get_mut(at));
        let known = match &place {
            Some(place) => Some(place.1).filter(|_| place.0 == self.frame),
            None => self.sparse.get(&id).copied(),
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let operation = dictionary.operation(id).ok_or(undefined)?;
        check_operation(&operation.name)?;
        // The name is counted in full, because the journal writes it in full.
        context.take(3 * size_of::<Operation>() + operation.name.len())?;
        let index = OperationIndex::try_from(self.operations.len()).unwrap_or(OperationIndex::MAX);
        self.operations.push(operation.clone());
        match place {
            Some(place) => *place = (self.frame, index),
            None => {
                self.sparse.insert(id, index);
            }
        }
        Ok(index)
    }
}

/// The state to which the ids and times of a record refer.
pub(super) struct Context<'a> {
    pub session: u128,
    pub base: Timestamp,
    pub dictionary: &'a Dictionary,
    /// Remaining budget for the frame's records.
    pub budget: Cell<Budget>,
}

impl Context<'_> {
    pub(super) fn take(&self, bytes: usize) -> Result<(), Full> {
        self.take_beyond(bytes, 0)
    }

    pub(super) fn take_beyond(&self, bytes: usize, record_bytes: usize) -> Result<(), Full> {
        let mut budget = self.budget.get();
        let taken = budget.take_beyond(bytes, record_bytes);
        self.budget.set(budget);
        taken
    }
}

/// Memory of a segment in bytes, not counting its events, carried calls and attributes. The list of segments exists
/// twice while it grows.
const SEGMENT_BYTES: usize = 3 * size_of::<Segment>();

/// Reads one segment and adds its operations to `table`.
pub(super) fn segment(
    context: &Context<'_>,
    table: &mut OperationTable,
    reader: &mut Reader<'_>,
) -> Result<Segment, RecordError> {
    let dictionary = context.dictionary;
    context.take_beyond(SEGMENT_BYTES, reader.remaining())?;
    let flags = reader.u8()?;
    let both = flag::TRACE_FULL | flag::TRACE_OF_SEGMENT;
    if flags & !flag::ALL != 0 || flags & both == both {
        return Err(RecordError::Unknown { what: "combination of flags", value: u64::from(flags) });
    }
    let number = reader.varint()?;
    let (full, of_segment) = (flags & flag::TRACE_FULL != 0, flags & flag::TRACE_OF_SEGMENT != 0);
    let trace = read_trace(context.session, full, of_segment, number, reader)?;
    let thread = text(dictionary, "thread", reader.varint()?)?;
    let start = context.base.wrapping_add(reader.zigzag()?);
    let parent = match flags & flag::PARENT {
        0 => None,
        _ => Some(SpanId(u64::from_be_bytes(reader.array()?))),
    };
    let (part, first_call, carried) = match flags & flag::CONTINUED {
        0 => (0, 0, Vec::new()),
        _ => read_continued(context, table, reader)?,
    };
    let events = read_events(context, table, reader)?;
    let attributes = match flags & flag::ATTRIBUTES {
        0 => Vec::new(),
        _ => read_attributes(context, reader)?,
    };
    reader.finish()?;
    let base = span_base(context.session, number);
    let segment =
        Segment { trace, base, part, parent, thread, start, carried, first_call, events, attributes };
    segment.check(table.operations.len())?;
    Ok(segment)
}

/// Span base of a segment. Call `k` has the id `mix64(base + k)`.
pub(super) fn span_base(session: u128, number: u64) -> u64 {
    let [.., a, b, c, d, e, f, g, h] = session.to_be_bytes();
    u64::from_be_bytes([a, b, c, d, e, f, g, h]).wrapping_add(number << CALL_BITS)
}

/// Id of the trace that a segment of the session started.
fn own_trace(session: u128, number: u64) -> TraceId {
    let high = session >> 64 << 64;
    TraceId(high | u128::from(mix64(span_base(session, number))))
}

/// Reads the trace id in one of its forms: the full id, the trace that another segment started, or the trace that segment
/// `number` started.
pub(super) fn read_trace(
    session: u128,
    full: bool,
    of_segment: bool,
    number: u64,
    reader: &mut Reader<'_>,
) -> Result<TraceId, Flaw> {
    if full {
        reader.array().map(|bytes| TraceId(u128::from_be_bytes(bytes)))
    } else if of_segment {
        reader.varint().map(|other| own_trace(session, other))
    } else {
        Ok(own_trace(session, number))
    }
}

fn read_continued(
    context: &Context<'_>,
    table: &mut OperationTable,
    reader: &mut Reader<'_>,
) -> Result<(u32, u32, Vec<Carried>), RecordError> {
    let zero = reader.flaw("continued segment with part 0");
    let part = reader.varint_u32()?;
    if part == 0 {
        return Err(zero.into());
    }
    let first_call = reader.varint_u32()?;
    let count = read_count("carried calls", SEGMENT_CARRIED_MAX, reader)?;
    let mut carried = Vec::with_capacity(count);
    for _ in 0..count {
        carried.push(Carried {
            operation: table.position(context, reader.varint()?)?,
            call: reader.varint_u32()?,
            age: reader.varint()?,
        });
    }
    Ok((part, first_call, carried))
}

fn read_events(
    context: &Context<'_>,
    table: &mut OperationTable,
    reader: &mut Reader<'_>,
) -> Result<Vec<Event>, RecordError> {
    let count = read_count("events", SEGMENT_EVENTS_MAX, reader)?;
    let late = reader.flaw("first event with a difference that is not 0");
    let mut events = Vec::with_capacity(count);
    for _ in 0..count {
        let head = reader.varint()?;
        let kind = match head & 1 {
            0 => EventKind::Exit,
            _ => match reader.varint()? {
                0 => EventKind::ExitFailed,
                id => EventKind::Enter(table.position(context, id)?),
            },
        };
        events.push(Event { delta: head >> 1, kind });
    }
    match events.first() {
        Some(first) if first.delta != 0 => Err(late.into()),
        _ => Ok(events),
    }
}

fn read_attributes(context: &Context<'_>, reader: &mut Reader<'_>) -> Result<Vec<Attribute>, RecordError> {
    let dictionary = context.dictionary;
    let count = read_count("attributes", SEGMENT_ATTRIBUTES_MAX, reader)?;
    let mut attributes = Vec::with_capacity(count);
    for _ in 0..count {
        attributes.push(Attribute {
            call: reader.varint_u32()?,
            key: text(dictionary, "attribute key", reader.varint()?)?,
            value: read_value(context, reader)?,
        });
    }
    Ok(attributes)
}

fn read_value(context: &Context<'_>, reader: &mut Reader<'_>) -> Result<AttributeValue, RecordError> {
    let dictionary = context.dictionary;
    let form = reader.u8()?;
    let unknown = RecordError::Unknown { what: "form of an attribute value", value: u64::from(form) };
    let text: Arc<str> = match Form::from_byte(form).ok_or(unknown)? {
        Form::TextId => {
            let text = text(dictionary, "attribute value", reader.varint()?)?;
            // The text counts each time, because the journal writes it in full each time.
            context.take(text.len())?;
            text
        }
        Form::Text => {
            let text = reader.string()?;
            check_length("attribute value", text.as_bytes(), ATTRIBUTE_BYTES_MAX)?;
            text.into()
        }
        Form::Uuid => uuid(reader.array()?).into(),
        Form::Integer => return Ok(AttributeValue::Integer(reader.zigzag()?)),
    };
    Ok(AttributeValue::Text(text))
}

/// A UUID in lower case with hyphens: 8-4-4-4-12 digits (RFC 9562, section 4).
pub(super) fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    text
}

/// Reads a count. It must be within its limit and within the remaining bytes.
fn read_count(what: &'static str, max: usize, reader: &mut Reader<'_>) -> Result<usize, RecordError> {
    let beyond = reader.flaw("count beyond the end of the input");
    let claimed = reader.varint()?;
    match usize::try_from(claimed) {
        Ok(count) if count <= max && count <= reader.remaining() => Ok(count),
        Ok(count) if count <= max => Err(beyond.into()),
        _ => Err(RecordError::TooMany { what, count: claimed, max }),
    }
}
