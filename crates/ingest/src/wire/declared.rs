//! DATA, tag 4: which entry does a record of a declared type become?
//!
//! Step before: `data.rs`, which passes the bytes of one record. Step after: the entry, a JSON object, is added to the
//! batch.

use std::sync::Arc;

use tacho_model::limits::{ATTRIBUTE_BYTES_MAX, ENTRY_BYTES_MAX};
use tacho_model::{Body, Entry, EntrySeries, SegmentError, SpanId, TraceId, mix64};

use super::descriptor::{FieldType, RecordType, SPAN_MEMBER, TRACE_MEMBER};
use super::object::Object;
use super::record::{RecordError, check_length, series, text};
use super::segment::{self, Context, uuid};
use crate::reader::{Flaw, Reader};

/// Flags of a record.
pub(super) mod flag {
    pub const CONTEXT: u8 = 1;
    pub const NULLS: u8 = 2;
    /// This bit and [`TRACE_OF_SEGMENT`] are the same as in the flags of a segment.
    pub const TRACE_FULL: u8 = 4;
    pub const TRACE_OF_SEGMENT: u8 = 8;
    pub const ALL: u8 = 15;
}

/// Memory of an entry in addition to its text, bytes. The list of entries exists twice while it grows.
const RECORD_BYTES: usize = 256;
/// Bytes of a JSON member in addition to its name and its value.
const FIELD_BYTES: usize = 8;

/// Reads one record and renders its entry.
pub(super) fn declared(context: &Context<'_>, reader: &mut Reader<'_>) -> Result<EntrySeries, RecordError> {
    let dictionary = context.dictionary;
    let id = reader.varint()?;
    let known = dictionary.record_type(id).ok_or(RecordError::Undefined { what: "record type", id })?;
    let record_type: &Arc<RecordType> = known.as_ref().map_err(Clone::clone)?;
    let labels = series(dictionary, reader.varint()?)?;
    let at = context.base.wrapping_add(reader.zigzag()?);
    let flags = read_flags(reader)?;
    let call = match flags & flag::CONTEXT {
        0 => None,
        _ => Some(read_call(context.session, flags, reader)?),
    };
    let nulls = match flags & flag::NULLS {
        0 => &[],
        _ => read_nulls(record_type.fields.len(), reader)?,
    };
    // Memory for the names and the values of the fields. `put_value` counts the texts of values that are
    // dictionary ids.
    let names: usize = record_type.fields.iter().map(|field| field.name.len() + FIELD_BYTES).sum();
    context.take_beyond(RECORD_BYTES + names + reader.remaining(), reader.remaining())?;
    let mut object = Object::default();
    for (position, field) in record_type.fields.iter().enumerate() {
        object.name(&field.name);
        if is_null(nulls, position) {
            object.null();
        } else {
            put_value(context, field.field_type, reader, &mut object)?;
        }
    }
    reader.finish()?;
    if let Some((trace, span)) = call {
        object.name(TRACE_MEMBER);
        object.text(&trace.to_string());
        object.name(SPAN_MEMBER);
        object.text(&span.to_string());
    }
    let text = object.finish();
    // Memory for the growing text and for its final copy.
    context.take_beyond(3 * text.len(), names)?;
    check_length("entry", text.as_bytes(), ENTRY_BYTES_MAX)?;
    Ok(EntrySeries { labels, entries: vec![Entry { at, body: Body::Text(text.into()) }] })
}

fn read_flags(reader: &mut Reader<'_>) -> Result<u8, RecordError> {
    let flags = reader.u8()?;
    let both = flag::TRACE_FULL | flag::TRACE_OF_SEGMENT;
    let has_trace = flags & both != 0;
    if flags & !flag::ALL != 0 || flags & both == both || has_trace && flags & flag::CONTEXT == 0 {
        return Err(RecordError::Unknown { what: "combination of flags", value: u64::from(flags) });
    }
    Ok(flags)
}

/// Trace and span of the call that wrote the record.
fn read_call(session: u128, flags: u8, reader: &mut Reader<'_>) -> Result<(TraceId, SpanId), RecordError> {
    let number = reader.varint()?;
    let full = flags & flag::TRACE_FULL != 0;
    let trace = segment::read_trace(session, full, flags & flag::TRACE_OF_SEGMENT != 0, number, reader)?;
    if trace.0 == 0 {
        return Err(SegmentError::TraceZero.into());
    }
    let call = u64::from(reader.varint_u32()?);
    Ok((trace, SpanId(mix64(segment::span_base(session, number).wrapping_add(call)))))
}

/// One null bit per field, the lowest bit first. If the bit is set, the field has no value.
fn read_nulls<'a>(fields: usize, reader: &mut Reader<'a>) -> Result<&'a [u8], Flaw> {
    let beyond = reader.flaw("null bit without a field");
    let bits = reader.take(fields.div_ceil(8))?;
    let last = bits.last().copied().unwrap_or_default();
    let unused = (8 - fields % 8) % 8;
    if last.leading_zeros() < u32::try_from(unused).unwrap_or_default() {
        return Err(beyond);
    }
    Ok(bits)
}

fn is_null(nulls: &[u8], position: usize) -> bool {
    nulls.get(position / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
}

fn put_value(
    context: &Context<'_>,
    field_type: FieldType,
    reader: &mut Reader<'_>,
    object: &mut Object,
) -> Result<(), RecordError> {
    match field_type {
        FieldType::Bool => {
            let value = reader.u8()?;
            let flag = RecordError::Unknown { what: "truth value", value: u64::from(value) };
            object.truth(if value < 2 { value == 1 } else { return Err(flag) });
        }
        FieldType::I64 => object.number(reader.zigzag()?),
        FieldType::U64 => object.number(reader.varint()?),
        FieldType::F64 => object.real(f64::from_le_bytes(reader.array()?)),
        FieldType::F32 => object.real_short(f32::from_le_bytes(reader.array()?)),
        FieldType::Text => {
            let text = reader.string()?;
            check_length("value of a field", text.as_bytes(), ATTRIBUTE_BYTES_MAX)?;
            object.text(text);
        }
        FieldType::TextId => {
            let text = text(context.dictionary, "value of a field", reader.varint()?)?;
            context.take(text.len())?;
            // Stops as soon as the entry is too long. Rendering the rest would only add the exact length to the message.
            if object.so_far().len() > ENTRY_BYTES_MAX {
                return Err(RecordError::Beyond { what: "entry", max: ENTRY_BYTES_MAX });
            }
            object.text(&text);
        }
        FieldType::Uuid => object.text(&uuid(reader.array()?)),
        FieldType::Time => object.time(reader.zigzag()?),
    }
    Ok(())
}
