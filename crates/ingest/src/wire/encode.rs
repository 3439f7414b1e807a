//! DATA, the encoder: which bytes does an agent write for records?
//!
//! `tacho import` (`cli/src/command/import/frames.rs`), the generator of calls (`lab/src/calls/send.rs`), the simulator and tests
//! use this encoder. The agents have their own encoders.

use tacho_model::varint::{put_bytes, put_varint, put_zigzag};
use tacho_model::{Entry, Event, EventKind, Sample, SpanId, Timestamp, TraceId, Value, ValueType};

use super::declared;
use super::frame::{FrameType, put_frame};
use super::record::Tag;
use super::segment::{FAILED_EXIT, Form, flag};

/// The forms of a segment's trace id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceForm {
    /// A new trace. Its id is derived from the segment's number.
    Own,
    /// The trace that the segment with this number started.
    OfSegment(u64),
    /// An id that came from another process.
    Full(TraceId),
}

/// What a later part of a segment states in addition: the number of the part, the first call that it enters, and the calls that
/// are open at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continued<'a> {
    pub part: u32,
    pub first_call: u32,
    /// Operation id, call number and age in ns of each open call, outermost call first.
    pub carried: &'a [(u32, u32, u64)],
}

/// The forms of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeForm<'a> {
    /// Id of a text in the dictionary.
    TextId(u64),
    Text(&'a str),
    Uuid([u8; 16]),
    Integer(i64),
}

/// A segment that uses ids of the connection's dictionary.
#[derive(Clone, Copy, Debug)]
pub struct SegmentRecord<'a> {
    /// The segment's number in its session.
    pub number: u64,
    pub trace: TraceForm,
    pub parent: Option<SpanId>,
    /// Id of the text with the thread's name.
    pub thread: u64,
    pub start: Timestamp,
    pub continued: Option<Continued<'a>>,
    /// The index in `EventKind::Enter` is an operation id.
    pub events: &'a [Event],
    /// Call number, text id of the key, value.
    pub attributes: &'a [(u32, u64, AttributeForm<'a>)],
}

/// The forms of a field's value. The form must match the type of the field in the record type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldValue<'a> {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    F32(f32),
    Text(&'a str),
    /// Id of a text in the dictionary.
    TextId(u64),
    Uuid([u8; 16]),
    /// ns since the Unix epoch.
    Time(i64),
}

/// The call that wrote a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRef {
    /// The segment's number in its session.
    pub number: u64,
    pub trace: TraceForm,
    pub call: u32,
}

/// A declared record that uses ids of the connection's dictionary.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredRecord<'a> {
    pub record_type: u64,
    pub series: u64,
    pub at: Timestamp,
    pub call: Option<CallRef>,
    /// Values in the order of the fields in the record type.
    pub values: &'a [FieldValue<'a>],
}

/// Builds a DATA frame record by record: the inverse of [`super::Session::data`].
#[derive(Clone, Debug)]
pub struct DataFrame {
    body: Vec<u8>,
    base: Timestamp,
    record: Vec<u8>,
}

impl DataFrame {
    /// `seq` starts at 1 and rises. The time of a record is written relative to `base`; in a record of samples, each further
    /// time is relative to the sample before it.
    pub fn new(seq: u64, base: Timestamp) -> Self {
        let mut body = Vec::new();
        put_varint(&mut body, seq);
        body.extend_from_slice(&base.to_le_bytes());
        Self { body, base, record: Vec::new() }
    }

    pub fn body_bytes(&self) -> usize {
        self.body.len()
    }

    pub fn finish(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.body.len() + super::HEADER_BYTES);
        put_frame(&mut out, FrameType::Data, |out| out.extend_from_slice(&self.body));
        out
    }

    /// Appends one record for each run of values of one type.
    pub fn samples(&mut self, series: u64, samples: &[Sample]) {
        for run in samples.chunk_by(|a, b| a.value.value_type() == b.value.value_type()) {
            if let Some(first) = run.first() {
                self.sample_run(series, first.value.value_type(), run);
            }
        }
    }

    fn sample_run(&mut self, series: u64, value_type: ValueType, run: &[Sample]) {
        let out = &mut self.record;
        out.push(value_type as u8);
        put_varint(out, series);
        put_varint(out, run.len() as u64);
        let mut before = self.base;
        for sample in run {
            put_zigzag(out, sample.at.wrapping_sub(before));
            before = sample.at;
            match sample.value {
                Value::F64(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
                Value::I64(value) => put_zigzag(out, value),
                Value::U64(value) => put_varint(out, value),
            }
        }
        self.end_record(Tag::Samples);
    }

    pub fn entry(&mut self, series: u64, entry: &Entry) {
        let out = &mut self.record;
        put_varint(out, series);
        put_zigzag(out, entry.at.wrapping_sub(self.base));
        out.push(u8::from(matches!(entry.body, tacho_model::Body::Bytes(_))));
        put_bytes(out, entry.body.as_bytes());
        self.end_record(Tag::Entry);
    }

    pub fn segment(&mut self, segment: &SegmentRecord<'_>) {
        let out = &mut self.record;
        out.push(flags(segment));
        put_varint(out, segment.number);
        put_trace(out, segment.trace);
        put_varint(out, segment.thread);
        put_zigzag(out, segment.start.wrapping_sub(self.base));
        if let Some(parent) = segment.parent {
            out.extend_from_slice(&parent.0.to_be_bytes());
        }
        if let Some(continued) = &segment.continued {
            put_continued(out, continued);
        }
        put_varint(out, segment.events.len() as u64);
        for event in segment.events {
            put_event(out, *event);
        }
        if !segment.attributes.is_empty() {
            put_attributes(out, segment.attributes);
        }
        self.end_record(Tag::Segment);
    }

    pub fn declared(&mut self, record: &DeclaredRecord<'_>) {
        let out = &mut self.record;
        put_varint(out, record.record_type);
        put_varint(out, record.series);
        put_zigzag(out, record.at.wrapping_sub(self.base));
        let nulls = record.values.contains(&FieldValue::Null);
        out.push(record.call.map_or(0, declared_flags) | if nulls { declared::flag::NULLS } else { 0 });
        if let Some(CallRef { number, trace, call }) = record.call {
            put_varint(out, number);
            put_trace(out, trace);
            put_varint(out, u64::from(call));
        }
        if nulls {
            for values in record.values.chunks(8) {
                let bit = |(at, value): (usize, &FieldValue<'_>)| u8::from(*value == FieldValue::Null) << at;
                out.push(values.iter().enumerate().map(bit).sum());
            }
        }
        for value in record.values {
            put_field(out, value);
        }
        self.end_record(Tag::Declared);
    }

    /// Appends a record with any tag, as a later version or a hostile sender may do.
    pub fn raw(&mut self, tag: u8, record: &[u8]) {
        self.body.push(tag);
        put_bytes(&mut self.body, record);
    }

    fn end_record(&mut self, tag: Tag) {
        let record = std::mem::take(&mut self.record);
        self.raw(tag as u8, &record);
        self.record = record;
        self.record.clear();
    }
}

fn flags(segment: &SegmentRecord<'_>) -> u8 {
    let trace = match segment.trace {
        TraceForm::Own => 0,
        TraceForm::Full(_) => flag::TRACE_FULL,
        TraceForm::OfSegment(_) => flag::TRACE_OF_SEGMENT,
    };
    let set = |there: bool, bit: u8| if there { bit } else { 0 };
    trace
        | set(segment.continued.is_some(), flag::CONTINUED)
        | set(segment.parent.is_some(), flag::PARENT)
        | set(!segment.attributes.is_empty(), flag::ATTRIBUTES)
}

fn put_trace(out: &mut Vec<u8>, trace: TraceForm) {
    match trace {
        TraceForm::Own => {}
        TraceForm::OfSegment(number) => put_varint(out, number),
        TraceForm::Full(trace) => out.extend_from_slice(&trace.0.to_be_bytes()),
    }
}

const fn declared_flags(call: CallRef) -> u8 {
    declared::flag::CONTEXT
        | match call.trace {
            TraceForm::Own => 0,
            TraceForm::Full(_) => declared::flag::TRACE_FULL,
            TraceForm::OfSegment(_) => declared::flag::TRACE_OF_SEGMENT,
        }
}

fn put_field(out: &mut Vec<u8>, value: &FieldValue<'_>) {
    match value {
        FieldValue::Null => {}
        FieldValue::Bool(value) => out.push(u8::from(*value)),
        FieldValue::I64(value) | FieldValue::Time(value) => put_zigzag(out, *value),
        FieldValue::U64(value) | FieldValue::TextId(value) => put_varint(out, *value),
        FieldValue::F64(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
        FieldValue::F32(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
        FieldValue::Text(text) => put_bytes(out, text.as_bytes()),
        FieldValue::Uuid(bytes) => out.extend_from_slice(bytes),
    }
}

fn put_continued(out: &mut Vec<u8>, continued: &Continued<'_>) {
    put_varint(out, u64::from(continued.part));
    put_varint(out, u64::from(continued.first_call));
    put_varint(out, continued.carried.len() as u64);
    for (operation, call, age) in continued.carried {
        put_varint(out, u64::from(*operation));
        put_varint(out, u64::from(*call));
        put_varint(out, *age);
    }
}

/// Writes the delta shifted left by one bit, so a delta has at most 63 bits. The lowest bit is 1 for an enter and 0 for an exit.
/// A failed exit is written as an enter of operation 0.
fn put_event(out: &mut Vec<u8>, event: Event) {
    let (more, operation) = match event.kind {
        EventKind::Enter(operation) => (1, operation),
        EventKind::ExitFailed => (1, FAILED_EXIT),
        EventKind::Exit => return put_varint(out, event.delta << 1),
    };
    put_varint(out, event.delta << 1 | more);
    put_varint(out, u64::from(operation));
}

fn put_attributes(out: &mut Vec<u8>, attributes: &[(u32, u64, AttributeForm<'_>)]) {
    put_varint(out, attributes.len() as u64);
    for (call, key, value) in attributes {
        put_varint(out, u64::from(*call));
        put_varint(out, *key);
        match value {
            AttributeForm::TextId(id) => {
                out.push(Form::TextId as u8);
                put_varint(out, *id);
            }
            AttributeForm::Text(text) => {
                out.push(Form::Text as u8);
                put_bytes(out, text.as_bytes());
            }
            AttributeForm::Uuid(bytes) => {
                out.push(Form::Uuid as u8);
                out.extend_from_slice(bytes);
            }
            AttributeForm::Integer(number) => {
                out.push(Form::Integer as u8);
                put_zigzag(out, *number);
            }
        }
    }
}
