//! The inverse of [`super::Csv`]: writes rows of a long file with one record each.

use std::fmt::Write;

use super::detect::{SERIES_NAMES, TIME_NAMES, VALUE_NAMES, is_one_of};
use tacho_model::{Body, Entry, Labels, NAME, Sample, Timestamp, Value};

/// Prefix for a label whose column a reader would take for the times, the names or the values. A label that already has this
/// prefix gets it again.
const LABEL: &str = "label_";

/// The columns of the file: the time, the name of the series, one column for each label in `names`, and the value.
pub fn write_header(out: &mut String, names: &[String]) {
    out.push_str("time,name");
    for name in names {
        out.push(',');
        cell(out, &column(name));
    }
    out.push_str(",value\n");
}

pub(super) fn column(label: &str) -> String {
    let known = [&TIME_NAMES[..], &SERIES_NAMES, &VALUE_NAMES];
    let clashes = known.iter().any(|known| is_one_of(label, known)) || label.starts_with(LABEL);
    if clashes { format!("{LABEL}{label}") } else { label.to_owned() }
}

/// Appends one row per sample. A reader gets the same numbers, but not always the same type and bits:
/// - A `U64` or `I64` with an absolute value below 2^53 is read as a float.
/// - A larger `U64` below 2^63 is read as an `I64`.
/// - Every NaN is read as the usual NaN.
pub fn write_samples(out: &mut String, names: &[String], labels: &Labels, samples: &[Sample]) {
    let series = series(names, labels);
    for sample in samples {
        time(out, sample.at);
        out.push_str(&series);
        // Writing to a string cannot fail.
        let _ = match sample.value {
            Value::F64(f64::INFINITY) => write!(out, "Inf"),
            Value::F64(f64::NEG_INFINITY) => write!(out, "-Inf"),
            Value::F64(value) if value == 0.0 || (1e-5..9e15).contains(&value.abs()) => {
                write!(out, "{value}")
            }
            // Without an exponent, a large whole number would be read as an integer.
            Value::F64(value) => write!(out, "{value:e}"),
            Value::I64(value) => write!(out, "{value}"),
            Value::U64(value) => write!(out, "{value}"),
        };
        out.push('\n');
    }
}

/// Appends one row per text entry and calls `written` with the entry. Entries of bytes are omitted.
pub fn write_entries(
    out: &mut String,
    names: &[String],
    labels: &Labels,
    entries: &[Entry],
    mut written: impl FnMut(&Entry),
) {
    let series = series(names, labels);
    for entry in entries {
        if let Body::Text(text) = &entry.body {
            time(out, entry.at);
            out.push_str(&series);
            cell(out, text);
            out.push('\n');
            written(entry);
        }
    }
}

/// Writes the columns `,name,a,b,` of a series.
fn series(names: &[String], labels: &Labels) -> String {
    let mut out = String::from(",");
    for name in std::iter::once(NAME).chain(names.iter().map(String::as_str)) {
        cell(&mut out, labels.get(name).unwrap_or(""));
        out.push(',');
    }
    out
}

fn time(out: &mut String, at: Timestamp) {
    let moment = jiff::Timestamp::from_nanosecond(i128::from(at));
    // Every 64-bit number of nanoseconds is within the range of jiff.
    let _ = moment.map(|moment| write!(out, "{moment}"));
}

/// Writes the text, with quotes if necessary.
fn cell(out: &mut String, text: &str) {
    let odd = |c: char| matches!(c, ',' | '"' | '\n' | '\r' | ';' | '\t' | '|');
    if !text.contains(odd) && text.trim() == text {
        return out.push_str(text);
    }
    out.push('"');
    for char in text.chars() {
        if char == '"' {
            out.push('"');
        }
        out.push(char);
    }
    out.push('"');
}
