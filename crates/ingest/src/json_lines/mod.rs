//! JSON lines: which samples and entries does each object contain?
//!
//! A line has one of two shapes. The members of the object show which:
//! ```text
//! {"metric":{"__name__":"up","job":"a"},"values":[1,0.5],"timestamps":[1700000000000,1700000060000]}
//! {"__name__":"up","job":"a","time":"2023-11-14T22:13:20Z","value":1}
//! ```
//! VictoriaMetrics exports and imports the first shape (docs.victoriametrics.com, "JSON line format"). Times are in
//! milliseconds; NaN is `null`; infinities are `"Infinity"` and `"-Infinity"`. A line of entries has `entries` instead of
//! `values`: texts, or `{"hex":"00ff"}` for bytes. `write.rs` writes this shape. A line may have additional members, which
//! VictoriaMetrics ignores:
//! - `nanoseconds`: 0 to 999,999 for each time, to be added to it;
//! - `type`: `i64` or `u64`; `f64` if absent;
//! - `nan`: an object with the position (from 0) and the 64 bits in hexadecimal of each NaN other than the usual NaN
//!   (0x7ff8000000000000);
//! - `within`: bounds of the errors: how far the values and the times may differ from the recorded ones. If `within` has a
//!   member `thinned`, each value represents many recorded values. `server/src/read/reader.rs` adds `within`.
//!
//! In the second shape, `time` is a number since 1970 (s, ms, us or ns, depending on its size) or a string in ISO 8601.
//! A `value` that is a string, an object or an array becomes an entry, but strings such as `"NaN"` and `"Infinity"` are
//! numbers. Labels are in `labels`, in `metric`, or in any other member whose value is a string.

mod json;
mod write;

use std::borrow::Cow;
use std::sync::Arc;

use jiff::tz::TimeZone;
use tacho_model::limits::ENTRY_BYTES_MAX;
use tacho_model::{
    Body, Entry, EntrySeries, Labels, NAME, Sample, SampleSeries, Timestamp, Value, ValueType,
};

use crate::rows::{At, Block, Broken, Rows, lines, shown, whole_lines};
use crate::time_text::{TimeFormat, TimeReader, Unit, decimal};
use json::{Cursor, Fault, Scalar};
pub use write::{write_entries, write_samples};

#[derive(Clone, Debug)]
pub struct JsonLines {
    times: TimeReader,
}

impl JsonLines {
    /// `zone` applies to times that are texts without an offset.
    pub const fn new(zone: TimeZone) -> Self {
        Self { times: TimeReader::new(TimeFormat::Iso, zone) }
    }
}

impl Rows for JsonLines {
    fn whole(&self, bytes: &[u8]) -> usize {
        whole_lines(bytes)
    }

    fn decode(&mut self, block: &[u8], before: u64) -> Block {
        let mut out = Block::default();
        for (bytes, line) in lines(block) {
            out.rows += 1;
            let row = before + out.rows;
            if line.trim_ascii().is_empty() {
                continue;
            }
            match std::str::from_utf8(line) {
                Ok(text) => {
                    if let Err(Fault { at, reason }) = self.line(text, &mut out) {
                        out.broken.push(Broken { row, at: At::Byte(at + 1), reason, bytes });
                    }
                }
                Err(error) => {
                    let at = At::Byte(error.valid_up_to() + 1);
                    out.broken.push(Broken { row, at, reason: "the line is not UTF-8".into(), bytes });
                }
            }
        }
        out
    }
}

/// The members of one object. Arrays stay unparsed until all members are known, because other members determine how an
/// array is parsed.
#[derive(Default)]
struct Members<'a> {
    labels: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    values: Option<Cursor<'a>>,
    entries: Option<Cursor<'a>>,
    timestamps: Option<Cursor<'a>>,
    nanoseconds: Option<Cursor<'a>>,
    nan: Option<Cursor<'a>>,
    value_type: Option<ValueType>,
    time: Option<(usize, Scalar<'a>)>,
    value: Option<Cursor<'a>>,
    /// Whether each sample represents many samples.
    thinned: bool,
}

impl JsonLines {
    /// Keeps the records of a line only if the whole line is valid.
    fn line(&mut self, text: &str, out: &mut Block) -> Result<(), Fault> {
        let mut cursor = Cursor::new(text);
        let mut members = Members::default();
        cursor.object(|cursor, name| member(cursor, name, &mut members))?;
        cursor.finish()?;
        let end = cursor.at();
        let fail = |reason: String| Fault { at: end, reason };
        let labels = std::mem::take(&mut members.labels);
        let labels = Labels::new(labels).map_err(|error| fail(error.to_string()))?;
        if labels.is_empty() {
            return Err(fail(format!("no labels: give {NAME:?} at least")));
        }
        let labels = Arc::new(labels);
        if let Some(time) = members.time {
            let at = self.time(time)?;
            let value = members.value.ok_or_else(|| fail("member \"value\" is missing".into()))?;
            return one(out, labels, at, value, members.value_type.unwrap_or(ValueType::F64));
        }
        let times = match &members.timestamps {
            Some(timestamps) => moments(timestamps.clone(), members.nanoseconds)?,
            None => return Err(fail("member \"time\" or \"timestamps\" is missing".into())),
        };
        match (members.values, members.entries) {
            (Some(values), None) => {
                let value_type = members.value_type.unwrap_or(ValueType::F64);
                let at = values.at();
                let mut values = numbers(values, value_type)?;
                put_nans(&mut values, members.nan)?;
                let samples = zip(times, values, at, |at, value| Sample { at, value })?;
                out.thinned += if members.thinned { samples.len() as u64 } else { 0 };
                out.batch.samples.push(SampleSeries { labels, samples });
            }
            (None, Some(entries)) => {
                let at = entries.at();
                let bodies = bodies(entries)?;
                let entries = zip(times, bodies, at, |at, body| Entry { at, body })?;
                out.batch.entries.push(EntrySeries { labels, entries });
            }
            _ => return Err(fail("give one of the members \"values\" and \"entries\"".into())),
        }
        Ok(())
    }

    fn time(&mut self, (at, time): (usize, Scalar<'_>)) -> Result<Timestamp, Fault> {
        let read = match &time {
            Scalar::Number(number) => {
                let unit = number.parse().map_or(Unit::Seconds, Unit::guess);
                decimal(number, unit.nanoseconds()).ok_or_else(|| format!("{} is not a time", shown(number)))
            }
            Scalar::Text(text) => self.times.read(text),
            Scalar::Null | Scalar::Bool(_) => Err("time is neither a number nor a text".into()),
        };
        read.map_err(|reason| Fault { at, reason })
    }
}

fn member<'a>(cursor: &mut Cursor<'a>, name: Cow<'a, str>, members: &mut Members<'a>) -> Result<(), Fault> {
    match &*name {
        "metric" | "labels" if cursor.peek() == Some(b'{') => {
            return cursor.object(|cursor, name| {
                let value = cursor.string()?;
                members.labels.push((name, value));
                Ok(())
            });
        }
        "values" => members.values = Some(cursor.skip()?),
        "entries" => members.entries = Some(cursor.skip()?),
        "timestamps" => members.timestamps = Some(cursor.skip()?),
        "nanoseconds" => members.nanoseconds = Some(cursor.skip()?),
        "nan" => members.nan = Some(cursor.skip()?),
        // The member in which an export states that values are inexact.
        "within" if cursor.peek() == Some(b'{') => {
            return cursor.object(|cursor, name| {
                members.thinned |= name == "thinned";
                cursor.skip().map(drop)
            });
        }
        "within" => {
            cursor.skip()?;
        }
        "type" => {
            let at = cursor.at();
            let said = cursor.scalar()?;
            let known = match &said {
                Scalar::Text(text) => value_type(text),
                _ => None,
            };
            // A text that names no value type is the value of a label named `type`.
            match (known, said) {
                (Some(known), _) => members.value_type = Some(known),
                (None, Scalar::Text(text)) => members.labels.push((name, text)),
                (None, _) => return Err(Fault { at, reason: "type is not a text".into() }),
            }
        }
        "time" | "timestamp" => {
            cursor.peek();
            members.time = Some((cursor.at(), cursor.scalar()?));
        }
        "value" => members.value = Some(cursor.skip()?),
        _ => {
            let is_text = cursor.peek() == Some(b'"');
            let at = cursor.at();
            match cursor.scalar() {
                Ok(Scalar::Text(text)) => members.labels.push((name, text)),
                Ok(Scalar::Null) => {}
                Err(fault) if is_text => return Err(fault),
                _ => return Err(Fault { at, reason: format!("label {name:?} is not a text") }),
            }
        }
    }
    Ok(())
}

fn value_type(name: &str) -> Option<ValueType> {
    match name {
        "f64" => Some(ValueType::F64),
        "i64" => Some(ValueType::I64),
        "u64" => Some(ValueType::U64),
        _ => None,
    }
}

/// Adds the only record of a line of the second shape to `out`.
fn one(
    out: &mut Block,
    labels: Arc<Labels>,
    at: Timestamp,
    mut value: Cursor<'_>,
    value_type: ValueType,
) -> Result<(), Fault> {
    let place = value.at();
    let mut entry = |text: &str| {
        let body = body(text, place)?;
        out.batch
            .entries
            .push(EntrySeries { labels: Arc::clone(&labels), entries: vec![Entry { at, body }] });
        Ok(())
    };
    if matches!(value.peek(), Some(b'{' | b'[')) {
        // A structured entry stays JSON text.
        let begin = value.skip()?;
        return entry(begin.until(&value));
    }
    match value.scalar()? {
        Scalar::Text(text) if special(&text).is_none() => entry(&text)?,
        scalar => {
            let value = number(&scalar, value_type, place)?;
            out.batch.samples.push(SampleSeries { labels, samples: vec![Sample { at, value }] });
        }
    }
    Ok(())
}

fn body(text: &str, at: usize) -> Result<Body, Fault> {
    if text.len() > ENTRY_BYTES_MAX {
        let reason = format!("text of {} bytes, at most {ENTRY_BYTES_MAX} are allowed", text.len());
        return Err(Fault { at, reason });
    }
    Ok(Body::Text(text.into()))
}

fn zip<T, R>(
    times: Vec<Timestamp>,
    of: Vec<T>,
    at: usize,
    make: impl Fn(Timestamp, T) -> R,
) -> Result<Vec<R>, Fault> {
    if times.len() != of.len() {
        let reason = format!("{} values, but {} times", of.len(), times.len());
        return Err(Fault { at, reason });
    }
    Ok(times.into_iter().zip(of).map(|(at, value)| make(at, value)).collect())
}

/// Times in nanoseconds: `timestamps`, which are milliseconds, plus `nanoseconds` if given.
fn moments(mut timestamps: Cursor<'_>, nanoseconds: Option<Cursor<'_>>) -> Result<Vec<Timestamp>, Fault> {
    let mut out = Vec::new();
    timestamps.array(|cursor| {
        let at = cursor.at();
        let scalar = cursor.scalar()?;
        let ms = match &scalar {
            // The first and the last possible millisecond are accepted here, because only some of their nanoseconds are out of
            // range. The sum of milliseconds and nanoseconds is checked below.
            Scalar::Number(text) => {
                text.parse().ok().filter(|ms: &i64| ms.unsigned_abs() <= MILLISECONDS_MAX)
            }
            _ => None,
        };
        match ms {
            Some(ms) => out.push(i128::from(ms) * 1_000_000),
            None => {
                return Err(Fault {
                    at,
                    reason: "time is not a whole number of milliseconds in the years 1677 to 2262".into(),
                });
            }
        }
        Ok(())
    })?;
    if let Some(mut nanoseconds) = nanoseconds {
        let mut times = out.iter_mut();
        nanoseconds.array(|cursor| {
            let at = cursor.at();
            let part = match cursor.scalar()? {
                Scalar::Number(text) => {
                    text.parse::<i128>().ok().filter(|part| (0..1_000_000).contains(part))
                }
                _ => None,
            };
            match part.zip(times.next()) {
                Some((part, time)) => *time += part,
                None => return Err(Fault { at, reason: "nanoseconds do not fit the times".into() }),
            }
            Ok(())
        })?;
        if times.next().is_some() {
            return Err(Fault { at: nanoseconds.at(), reason: "nanoseconds do not fit the times".into() });
        }
    }
    let at = timestamps.at();
    let late = |_| Fault { at, reason: "time is outside the years 1677 to 2262".into() };
    out.into_iter().map(|time| i64::try_from(time).map_err(late)).collect()
}

/// Above this limit, a time does not fit into 64 bits of nanoseconds.
const MILLISECONDS_MAX: u64 = (1 << 63) / 1_000_000 + 1;

fn numbers(mut values: Cursor<'_>, value_type: ValueType) -> Result<Vec<Value>, Fault> {
    let mut out = Vec::new();
    values.array(|cursor| {
        cursor.peek();
        let at = cursor.at();
        let scalar = cursor.scalar()?;
        out.push(number(&scalar, value_type, at)?);
        Ok(())
    })?;
    Ok(out)
}

fn number(scalar: &Scalar<'_>, value_type: ValueType, at: usize) -> Result<Value, Fault> {
    if let (Scalar::Number(text), ValueType::F64) = (scalar, value_type)
        && text.parse().is_ok_and(f64::is_infinite)
    {
        let reason = format!("{} is out of range: a number is at most about 1.8e308", shown(text));
        return Err(Fault { at, reason });
    }
    let read = match (scalar, value_type) {
        (Scalar::Number(text), ValueType::F64) => text.parse().ok().map(Value::F64),
        (Scalar::Number(text), ValueType::I64) => text.parse().ok().map(Value::I64),
        (Scalar::Number(text), ValueType::U64) => text.parse().ok().map(Value::U64),
        (Scalar::Null, ValueType::F64) => Some(Value::F64(f64::NAN)),
        (Scalar::Text(text), ValueType::F64) => special(text).map(Value::F64),
        (Scalar::Bool(truth), _) => Some(Value::U64(u64::from(*truth))),
        _ => None,
    };
    let name = match value_type {
        ValueType::F64 => "a number",
        ValueType::I64 => "a whole number of 64 bits",
        ValueType::U64 => "an unsigned whole number of 64 bits",
    };
    read.ok_or_else(|| {
        let said = match scalar {
            Scalar::Number(text) => shown(text),
            Scalar::Text(text) => shown(text),
            Scalar::Null => "null".into(),
            Scalar::Bool(truth) => truth.to_string(),
        };
        Fault { at, reason: format!("{said} is not {name}") }
    })
}

/// Numbers that JSON cannot write with digits.
fn special(text: &str) -> Option<f64> {
    match text {
        "Infinity" | "+Infinity" | "Inf" | "+Inf" => Some(f64::INFINITY),
        "-Infinity" | "-Inf" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => None,
    }
}

/// Reads `{"position":"bits in hexadecimal"}` for NaNs other than the usual NaN.
fn put_nans(values: &mut [Value], nan: Option<Cursor<'_>>) -> Result<(), Fault> {
    let Some(mut nan) = nan else { return Ok(()) };
    nan.object(|cursor, position| {
        let at = cursor.at();
        let bits = u64::from_str_radix(&cursor.string()?, 16).ok().map(f64::from_bits).filter(|v| v.is_nan());
        let value = position.parse::<usize>().ok().and_then(|position| values.get_mut(position));
        match bits.zip(value) {
            Some((bits, value)) => *value = Value::F64(bits),
            None => return Err(Fault { at, reason: "bits of a NaN do not fit the values".into() }),
        }
        Ok(())
    })
}

fn bodies(mut entries: Cursor<'_>) -> Result<Vec<Body>, Fault> {
    let mut out = Vec::new();
    entries.array(|cursor| {
        let at = cursor.at();
        if cursor.peek() != Some(b'{') {
            out.push(body(&cursor.string()?, at)?);
            return Ok(());
        }
        let (mut bytes, mut members) = (None, 0);
        cursor.object(|cursor, name| {
            members += 1;
            let text = cursor.string()?;
            bytes = if name == "hex" && members == 1 { from_hex(&text) } else { None };
            Ok(())
        })?;
        match bytes.filter(|bytes| bytes.len() <= ENTRY_BYTES_MAX) {
            Some(bytes) => out.push(Body::Bytes(bytes.into())),
            None => {
                return Err(Fault {
                    at,
                    reason: "bytes of an entry are not {\"hex\":\"00ff\"}, or are over 1 MiB".into(),
                });
            }
        }
        Ok(())
    })?;
    Ok(out)
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests;
