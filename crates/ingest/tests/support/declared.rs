//! Reads declared record types from the keys of a case, encodes their records, and returns the expected entries.

use tacho_ingest::wire::{
    CallRef, DataFrame, DeclaredRecord, FieldType, FieldValue, RecordField, RecordType,
};
use tacho_model::{Body, Entry};

use super::data::{Keys, all, get, one, trace_form};
use super::vector::{number, unhex};

/// Reads `TYPE NAME` or `TYPE NAME UNIT`.
pub fn field(text: &str) -> RecordField {
    let (kind, rest) = text.split_once(' ').unwrap();
    let (name, unit) = rest.split_once(' ').unwrap_or((rest, ""));
    let field_type = FieldType::from_byte(number(kind)).unwrap();
    RecordField { field_type, name: name.into(), unit: unit.into() }
}

pub fn record_type(name: &str) -> RecordType {
    RecordType { name: name.into(), fields: Vec::new() }
}

pub fn encode(frame: &mut DataFrame, base: i64, keys: Keys<'_>) {
    let values: Vec<FieldValue<'_>> = all(keys, "value").map(value).collect();
    let call = one(keys, "call").map(|call| CallRef {
        number: get(keys, "number"),
        trace: trace_form(keys),
        call: number(call),
    });
    frame.declared(&DeclaredRecord {
        record_type: get(keys, "type"),
        series: get(keys, "series"),
        at: base.wrapping_add(get(keys, "dt")),
        call,
        values: &values,
    });
}

/// Reads `FORM VALUE` or `null`. Floating-point numbers are given as their bits in hex.
fn value(text: &str) -> FieldValue<'_> {
    let (form, rest) = text.split_once(' ').unwrap_or((text, ""));
    match form {
        "null" => FieldValue::Null,
        "bool" => FieldValue::Bool(number(rest)),
        "i64" => FieldValue::I64(number(rest)),
        "u64" => FieldValue::U64(number(rest)),
        "f64" => FieldValue::F64(f64::from_bits(u64::from_str_radix(rest, 16).unwrap())),
        "f32" => FieldValue::F32(f32::from_bits(u32::from_str_radix(rest, 16).unwrap())),
        "string" => FieldValue::Text(rest),
        "text" => FieldValue::TextId(number(rest)),
        "uuid" => FieldValue::Uuid(unhex(&rest.replace('-', "")).try_into().unwrap()),
        "time" => FieldValue::Time(number(rest)),
        other => panic!("form {other}"),
    }
}

/// The expected entry of the record. Its body is the value of the key `text`.
pub fn entry(base: i64, keys: Keys<'_>) -> Entry {
    let body = Body::Text(one(keys, "text").unwrap().into());
    Entry { at: base.wrapping_add(get(keys, "dt")), body }
}
