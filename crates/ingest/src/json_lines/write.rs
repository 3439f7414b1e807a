//! Writes the JSON lines of `tacho export` and `/api/v1/export`. [`super::JsonLines`] reads them back bit for bit.

use std::fmt::Write;

use tacho_model::{Body, Entry, Labels, Sample, Timestamp, Value, ValueType};

use crate::json_text;

/// The usual NaN. Every NaN is written as `null`; the bits of other NaNs are also in the member `nan`.
const NAN_BITS: u64 = f64::NAN.to_bits();

/// Appends one line for each sequence of values of one type.
pub fn write_samples(out: &mut String, labels: &Labels, samples: &[Sample]) {
    for run in samples.chunk_by(|a, b| a.value.value_type() == b.value.value_type()) {
        out.push_str("{\"metric\":");
        metric(out, labels);
        match run.first().map(|sample| sample.value.value_type()) {
            Some(ValueType::I64) => out.push_str(",\"type\":\"i64\""),
            Some(ValueType::U64) => out.push_str(",\"type\":\"u64\""),
            Some(ValueType::F64) | None => {}
        }
        out.push_str(",\"values\":[");
        separated(out, run, |out, sample| value(out, sample.value));
        out.push(']');
        nans(out, run);
        times(out, run.iter().map(|sample| sample.at));
        out.push_str("}\n");
    }
}

pub fn write_entries(out: &mut String, labels: &Labels, entries: &[Entry]) {
    out.push_str("{\"metric\":");
    metric(out, labels);
    out.push_str(",\"entries\":[");
    separated(out, entries, |out, entry| match &entry.body {
        Body::Text(body) => json_text::put(out, body),
        Body::Bytes(bytes) => {
            out.push_str("{\"hex\":\"");
            bytes.iter().for_each(|byte| put(out, format_args!("{byte:02x}")));
            out.push_str("\"}");
        }
    });
    out.push(']');
    times(out, entries.iter().map(|entry| entry.at));
    out.push_str("}\n");
}

fn put(out: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(what);
}

fn separated<T>(out: &mut String, list: &[T], each: impl Fn(&mut String, &T)) {
    for (nth, one) in list.iter().enumerate() {
        if nth > 0 {
            out.push(',');
        }
        each(out, one);
    }
}

fn metric(out: &mut String, labels: &Labels) {
    out.push('{');
    for (nth, (name, value)) in labels.iter().enumerate() {
        if nth > 0 {
            out.push(',');
        }
        json_text::put(out, name);
        out.push(':');
        json_text::put(out, value);
    }
    out.push('}');
}

fn value(out: &mut String, value: Value) {
    match value {
        Value::I64(value) => put(out, format_args!("{value}")),
        Value::U64(value) => put(out, format_args!("{value}")),
        Value::F64(value) if value.is_nan() => out.push_str("null"),
        Value::F64(f64::INFINITY) => out.push_str("\"Infinity\""),
        Value::F64(f64::NEG_INFINITY) => out.push_str("\"-Infinity\""),
        // The shortest digits that are read back as the same number, with an exponent if plain digits would be long.
        Value::F64(value) if value == 0.0 || (1e-5..1e17).contains(&value.abs()) => {
            put(out, format_args!("{value}"));
        }
        Value::F64(value) => put(out, format_args!("{value:e}")),
    }
}

fn nans(out: &mut String, run: &[Sample]) {
    let odd = run.iter().enumerate().filter_map(|(nth, sample)| match sample.value {
        Value::F64(value) if value.is_nan() && value.to_bits() != NAN_BITS => Some((nth, value.to_bits())),
        _ => None,
    });
    let mut any = false;
    for (nth, bits) in odd {
        out.push_str(if any { "," } else { ",\"nan\":{" });
        any = true;
        put(out, format_args!("\"{nth}\":\"{bits:016x}\""));
    }
    if any {
        out.push('}');
    }
}

fn times(out: &mut String, times: impl Iterator<Item = Timestamp> + Clone) {
    array(out, ",\"timestamps\":[", times.clone().map(|at| at.div_euclid(1_000_000)));
    let parts = times.map(|at| at.rem_euclid(1_000_000));
    if parts.clone().any(|part| part != 0) {
        array(out, ",\"nanoseconds\":[", parts);
    }
}

fn array(out: &mut String, begin: &str, numbers: impl Iterator<Item = i64>) {
    out.push_str(begin);
    for (nth, number) in numbers.enumerate() {
        if nth > 0 {
            out.push(',');
        }
        put(out, format_args!("{number}"));
    }
    out.push(']');
}
