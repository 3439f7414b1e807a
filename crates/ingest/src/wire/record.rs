//! What does one record of a DATA frame hold, or why is it refused?
//!
//! This file and `segment.rs` use each other. `segment.rs` defines the context in which samples and entries are read.
//! Segments use the limit checks and the errors of this file.

use std::sync::Arc;

use tacho_model::limits::{ATTRIBUTE_BYTES_MAX, ENTRY_BYTES_MAX, OPERATION_BYTES_MAX};
use tacho_model::{
    Body, Entry, EntrySeries, LabelError, Labels, Sample, SampleSeries, SegmentError, Value, ValueType,
};

use super::descriptor::RecordTypeError;
use super::dict::Dictionary;
use super::segment::Context;
use crate::budget::Full;
use crate::reader::{Flaw, Reader};

/// The kinds of records. The discriminants are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Samples = 1,
    Entry = 2,
    Segment = 3,
    Declared = 4,
}

impl Tag {
    pub(super) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Samples),
            2 => Some(Self::Entry),
            3 => Some(Self::Segment),
            4 => Some(Self::Declared),
            _ => None,
        }
    }
}

/// Why one record was refused. A REJECT frame has this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RecordError {
    #[error(transparent)]
    Malformed(#[from] Flaw),
    #[error("record of unknown tag {0}")]
    Tag(u8),
    #[error("{what} {id} is not defined")]
    Undefined { what: &'static str, id: u64 },
    #[error("{what} {value} is unknown")]
    Unknown { what: &'static str, value: u64 },
    #[error(transparent)]
    Labels(#[from] LabelError),
    #[error(transparent)]
    RecordType(#[from] RecordTypeError),
    #[error("{what} of {bytes} bytes, at most {max} are allowed")]
    TooLong { what: &'static str, bytes: usize, max: usize },
    #[error("{what} of more than {max} bytes")]
    Beyond { what: &'static str, max: usize },
    #[error("{count} {what}, at most {max} are allowed")]
    TooMany { what: &'static str, count: u64, max: usize },
    #[error(transparent)]
    Segment(#[from] SegmentError),
    #[error(transparent)]
    Full(#[from] Full),
}

/// Memory of one item in the batch's list of series, bytes. The list exists twice while it grows.
const LISTED_BYTES: usize = 128;

pub(super) fn samples(context: &Context<'_>, reader: &mut Reader<'_>) -> Result<SampleSeries, RecordError> {
    let (dictionary, base) = (context.dictionary, context.base);
    let record_bytes = reader.remaining();
    let type_byte = reader.u8()?;
    let value_type = ValueType::from_byte(type_byte)
        .ok_or(RecordError::Unknown { what: "value type", value: u64::from(type_byte) })?;
    let labels = series(dictionary, reader.varint()?)?;
    let count = reader.length()?;
    let bytes_least = if value_type == ValueType::F64 { 9 } else { 2 };
    let count_most = count.min(reader.remaining() / bytes_least);
    // Samples count three times: adjacent records of one series are merged into one list, which exists twice while it grows.
    context.take_beyond(LISTED_BYTES + 3 * size_of::<Sample>() * count_most, record_bytes)?;
    let mut samples = Vec::with_capacity(count_most);
    let mut at = base;
    for _ in 0..count {
        at = at.wrapping_add(reader.zigzag()?);
        let value = match value_type {
            ValueType::F64 => Value::F64(f64::from_le_bytes(reader.array()?)),
            ValueType::I64 => Value::I64(reader.zigzag()?),
            ValueType::U64 => Value::U64(reader.varint()?),
        };
        samples.push(Sample { at, value });
    }
    reader.finish()?;
    Ok(SampleSeries { labels, samples })
}

pub(super) fn entry(context: &Context<'_>, reader: &mut Reader<'_>) -> Result<EntrySeries, RecordError> {
    let (dictionary, base) = (context.dictionary, context.base);
    context.take_beyond(LISTED_BYTES + 3 * size_of::<Entry>() + reader.remaining(), reader.remaining())?;
    let labels = series(dictionary, reader.varint()?)?;
    let at = base.wrapping_add(reader.zigzag()?);
    let body_type = reader.u8()?;
    let flaw = reader.flaw("text that is not UTF-8");
    let bytes = reader.bytes()?;
    check_length("entry", bytes, ENTRY_BYTES_MAX)?;
    let body = match body_type {
        0 => Body::Text(std::str::from_utf8(bytes).map_err(|_| flaw)?.into()),
        1 => Body::Bytes(bytes.into()),
        _ => return Err(RecordError::Unknown { what: "body type", value: u64::from(body_type) }),
    };
    reader.finish()?;
    Ok(EntrySeries { labels, entries: vec![Entry { at, body }] })
}

pub(super) fn series(dictionary: &Dictionary, id: u64) -> Result<Arc<Labels>, RecordError> {
    let labels = dictionary.series(id).ok_or(RecordError::Undefined { what: "series", id })?;
    Ok(Arc::clone(labels.as_ref().map_err(LabelError::clone)?))
}

/// A text of the dictionary that is short enough to be a thread's name, a key or a value.
pub(super) fn text(dictionary: &Dictionary, what: &'static str, id: u64) -> Result<Arc<str>, RecordError> {
    let text = dictionary.text(id).ok_or(RecordError::Undefined { what, id })?;
    check_length(what, text.as_bytes(), ATTRIBUTE_BYTES_MAX)?;
    Ok(Arc::clone(text))
}

pub(super) fn check_operation(name: &str) -> Result<(), RecordError> {
    check_length("operation", name.as_bytes(), OPERATION_BYTES_MAX)
}

pub(super) const fn check_length(what: &'static str, bytes: &[u8], max: usize) -> Result<(), RecordError> {
    if bytes.len() > max { Err(RecordError::TooLong { what, bytes: bytes.len(), max }) } else { Ok(()) }
}
