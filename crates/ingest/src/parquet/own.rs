//! Which layout do files written by Tachograph have, and how are they recognised?
//!
//! ```text
//!   samples   time  name  LABEL...  value  value_i64  value_u64
//!   entries   time  name  LABEL...  text   bytes
//! ```
//! `value` holds every number as a double, for other programs. Integers are also in `value_i64` or `value_u64`.
//! Tachograph reads integers from these columns, so that no bit is lost. The column of a label has the name of the label.
//! If this name is one of the seven fixed names above or begins with `label_`, the column gets the prefix `label_`.
//!
//! This file and `plan.rs` use each other. `plan.rs` first asks this file whether a Parquet file has the layout of
//! Tachograph. If so, this file returns the plan.

use parquet::file::metadata::{FileMetaData, KeyValue};
use tacho_model::NAME;

use super::plan::{Column, Plan, Shape};
use crate::csv::Given;

/// The key in the metadata of the file. Its value is the version of this layout.
const KEY: &str = "tachograph";
const VERSION: &str = "1";

pub const TIME: &str = "time";
pub const SERIES: &str = "name";
pub const VALUE: &str = "value";
pub const VALUE_I64: &str = "value_i64";
pub const VALUE_U64: &str = "value_u64";
pub const TEXT: &str = "text";
pub const BYTES: &str = "bytes";
const LABEL: &str = "label_";

const FIXED: [&str; 7] = [TIME, SERIES, VALUE, VALUE_I64, VALUE_U64, TEXT, BYTES];

pub fn mark() -> KeyValue {
    KeyValue::new(KEY.to_owned(), VERSION.to_owned())
}

pub fn is_own(file: &FileMetaData) -> bool {
    let pairs = file.key_value_metadata().map_or(&[][..], Vec::as_slice);
    pairs.iter().any(|pair| pair.key == KEY && pair.value.as_deref() == Some(VERSION))
}

/// Whether the given options agree with the layout. Otherwise the file is read like a file of another program.
pub fn fits(given: &Given) -> bool {
    let is = |said: &Option<String>, columns: &[&str]| {
        said.as_ref().is_none_or(|name| columns.contains(&name.as_str()))
    };
    !given.wide && is(&given.time_column, &[TIME]) && is(&given.value_column, &[VALUE, TEXT, BYTES])
}

/// The column that holds a label.
pub fn column(label: &str) -> String {
    let clashes = FIXED.contains(&label) || label.starts_with(LABEL);
    if clashes { format!("{LABEL}{label}") } else { label.to_owned() }
}

fn label(column: &str) -> String {
    column.strip_prefix(LABEL).unwrap_or(column).to_owned()
}

/// The roles of the columns in a file that `tacho export` wrote.
///
/// # Errors
/// If a column is missing; the error names it.
pub fn plan(columns: Vec<Column>) -> Result<Plan, String> {
    let find = |name: &str| columns.iter().position(|column| column.name == name && column.kind.is_some());
    let time = find(TIME).ok_or_else(|| format!("column {TIME:?} is missing"))?;
    let name = find(SERIES);
    let numbers: Vec<usize> = [VALUE_I64, VALUE_U64, VALUE].into_iter().filter_map(find).collect();
    let texts: Vec<usize> = [TEXT, BYTES].into_iter().filter_map(find).collect();
    let is_texts = numbers.is_empty();
    let values = if is_texts { texts } else { numbers };
    if values.is_empty() {
        return Err(format!("columns {VALUE:?} and {TEXT:?} are missing"));
    }
    let labels = columns.iter().enumerate().filter_map(|(at, column)| match &*column.name {
        _ if Some(at) == name => Some((at, NAME.to_owned())),
        fixed if FIXED.contains(&fixed) => None,
        other => Some((at, label(other))),
    });
    let labels = labels.collect();
    let shape = Shape::Long(values);
    Ok(Plan { columns, time, labels, shape, texts: is_texts, is_own: true, ignored: Vec::new() })
}
