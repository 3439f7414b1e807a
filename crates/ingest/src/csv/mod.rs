//! Which records does each row of a CSV file (RFC 4180) hold?
//!
//! ```text
//!   wide   Date;cpu;memory                      one series per column, named by its header
//!   long   time,host,name,value                 one record per row; other columns are labels
//! ```
//! `detect.rs` finds the [`Dialect`] in a file's head, so that the command can show it before the import starts.
//! `split.rs` cuts rows; `number.rs` and `../time_text.rs` read cells. A broken cell is refused; the other
//! cells of a wide row are kept, unless the time is broken. A row has one error, with the row number, column and value of its
//! first broken cell. Empty cells of a wide row are skipped.
mod detect;
mod dialect;
mod file_name;
mod header;
mod number;
mod split;
mod write;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use jiff::tz::TimeZone;
use tacho_model::limits::ENTRY_BYTES_MAX;
use tacho_model::{Batch, Body, Entry, EntrySeries, Labels, NAME, Sample, SampleSeries, Timestamp, Value};

use crate::budget::Budget;
use crate::rows::{At, Block, Broken, Rows, not_utf8, shown};
use crate::time_text::TimeReader;
pub use detect::{Detected, Given, detect};
#[cfg(feature = "parquet")]
pub(crate) use detect::{SERIES_NAMES, TIME_NAMES, position, time_format};
pub(crate) use detect::{VALUE_NAMES, is_one_of};
pub use dialect::{Dialect, Shape};
pub use file_name::attributes;
pub use number::Numbers;
pub use split::ROW_BYTES_MAX;
pub use write::{write_entries, write_header, write_samples};

/// Reads the rows after a header.
#[derive(Clone, Debug)]
pub struct Csv {
    dialect: Dialect,
    times: TimeReader,
    header: Vec<String>,
    /// Labels for every series. The name, if any, is used only for a series without a name in the file.
    base: Vec<(String, String)>,
    /// Wide: the series of each column.
    columns: Vec<Option<Arc<Labels>>>,
    /// Wide: for each column without numbers, the number of texts in the block; `None` for the other columns.
    texts: Vec<Option<u64>>,
    /// Long: the series by the cells that identify it.
    known: HashMap<String, Arc<Labels>>,
    known_bytes: usize,
    /// Memory budget for the new series of a block.
    budget: Budget,
    /// Buffer for a number without its thousands separators.
    scratch: String,
}

/// The series of each column of a wide file.
fn series(
    header: &[String],
    time_column: usize,
    base: &[(String, String)],
) -> Result<Vec<Option<Arc<Labels>>>, String> {
    let is_series = |(column, name): &(usize, &String)| *column != time_column && !name.is_empty();
    let names: Vec<&str> =
        header.iter().enumerate().filter(is_series).map(|(_, name)| name.as_str()).collect();
    let given = base.iter().find(|(label, _)| label == NAME).map(|(_, name)| name.as_str());
    let given = given.map(|given| name_of_one(given, &names)).transpose()?;
    let of = |cell: (usize, &String)| {
        if !is_series(&cell) {
            return Ok(None);
        }
        let name = cell.1;
        let pairs = base.iter().filter(|(label, _)| label != NAME);
        let pairs = pairs.map(|(label, value)| (&**label, &**value));
        let labels = Labels::new(pairs.chain([(NAME, given.unwrap_or(name))]));
        labels.map(|labels| Some(Arc::new(labels))).map_err(|e| format!("column {name:?}: {e}"))
    };
    header.iter().enumerate().map(of).collect()
}

/// The name given by `--name`, for a wide file. It applies only to a file with one column of values, and only if this column has
/// one of the [`VALUE_NAMES`]. Otherwise the result is an error.
pub(crate) fn name_of_one<'a>(given: &'a str, columns: &[&str]) -> Result<&'a str, String> {
    match columns {
        [one] if is_one_of(one, &VALUE_NAMES) => Ok(given),
        [one] => Err(format!(
            "--name {given:?} applies to values without a name, but column {one:?} names its series: omit --name, \
             or give --value-column {one:?}"
        )),
        many => Err(format!(
            "--name {given:?} applies to one series, but {} columns are series named by the header: omit --name, \
             or select the column of values with --value-column",
            many.len()
        )),
    }
}

/// Whether this is a usual name of a column of values, such as `value`. Such a name says nothing about the series.
pub fn is_value_name(column: &str) -> bool {
    is_one_of(column, &VALUE_NAMES)
}

/// The notice if `--name` is given for a file that has a column of names.
pub fn only_where_empty(name: &str, column: &str) -> String {
    format!("--name {name:?} is used only in rows where column {column:?} is empty")
}

/// A block gets the memory budget of a request body that is this many times as long. The larger budget is possible, because
/// not the server but the command that reads the file decodes the rows.
const ROW_MEMORY: usize = 4;
/// Limit in bytes on the memory of the series of a long file that are kept from row to row. Above the limit all kept
/// series are discarded.
const KNOWN_BYTES_MAX: usize = 64 << 20;
/// Memory of a kept series in addition to its names and values, bytes.
const KNOWN_BYTES: usize = 400;

impl Csv {
    /// `header` is the header of [`Detected`]. `base` has labels for every series. A name in `base` is used only for a series
    /// without a name in the file. A long file without a column of names needs a name in `base`.
    ///
    /// # Errors
    /// - A column of the header cannot be a series. The error names the column.
    /// - `base` has a name, but the columns of a wide file have names of their own.
    /// - A long file has neither a column of names nor a name in `base`.
    pub fn new(
        header: Vec<String>,
        dialect: Dialect,
        zone: TimeZone,
        base: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let times = TimeReader::new(dialect.time.clone(), zone);
        let has_name = base.iter().any(|(label, _)| label == NAME);
        let columns = match &dialect.shape {
            Shape::Wide => series(&header, dialect.time_column, &base)?,
            Shape::Long { name_column: None, .. } if !has_name => {
                return Err("no column names the series, and no name is given".into());
            }
            Shape::Long { .. } => vec![],
        };
        let is_text = |column: usize| dialect.text_columns.contains(&column).then_some(0);
        let texts = (0..columns.len()).map(is_text).collect();
        let (known, scratch, budget) = (HashMap::new(), String::new(), Budget::default());
        Ok(Self { dialect, times, header, base, columns, texts, known, known_bytes: 0, budget, scratch })
    }

    /// Number of local times that occurred twice because a clock was set back.
    pub const fn ambiguous(&self) -> u64 {
        self.times.ambiguous
    }

    fn column(&self, position: usize) -> String {
        self.header.get(position).map_or_else(|| (position + 1).to_string(), |name| format!("{name:?}"))
    }

    fn time(&mut self, row: &[Cow<'_, str>]) -> Result<Timestamp, (usize, String)> {
        let position = self.dialect.time_column;
        let cell = row.get(position).ok_or((position, "time is missing".to_owned()))?;
        self.times.read(cell.trim()).map_err(|reason| (position, reason))
    }

    /// Adds the records of a row to `slots`, and its errors to `faults`. An error is the position of a column and a
    /// reason. Returns whether any record was added.
    fn wide(&mut self, row: &[Cow<'_, str>], slots: &mut Slots, faults: &mut Vec<(usize, String)>) -> bool {
        let at = match self.time(row) {
            Ok(at) => at,
            Err(fault) => {
                faults.push(fault);
                return false;
            }
        };
        let mut is_any_kept = false;
        if row.len() > self.columns.len() {
            faults.push((
                self.columns.len(),
                format!("row has {} columns, the header {}", row.len(), self.columns.len()),
            ));
        }
        for (position, (cell, labels)) in row.iter().zip(&self.columns).enumerate() {
            let cell = cell.trim();
            if cell.is_empty() || position == self.dialect.time_column {
                continue;
            }
            let Some(labels) = labels else {
                // A first column without a name is ignored: pandas writes the row numbers to it.
                if position > 0 {
                    faults.push((position, "the column has no name".to_owned()));
                }
                continue;
            };
            let kept = slots.keep(position, labels, at, cell, &self.dialect, &mut self.scratch);
            match (kept, self.texts.get_mut(position)) {
                (Ok(()), _) => is_any_kept = true,
                (Err(_), Some(Some(count))) => *count += 1,
                (Err(reason), _) => faults.push((position, reason)),
            }
        }
        is_any_kept
    }

    fn long(
        &mut self,
        row: &[Cow<'_, str>],
        slots: &mut Slots,
        value_column: usize,
    ) -> Result<(), (usize, String)> {
        let at = self.time(row)?;
        let cell = row.get(value_column).ok_or((value_column, "value is missing".to_owned()))?;
        let labels = self.labels(row, value_column).map_err(|reason| (value_column, reason))?;
        let (slot, cell) = (slots.of(&labels), if self.dialect.texts { cell } else { cell.trim() });
        slots
            .keep(slot, &labels, at, cell, &self.dialect, &mut self.scratch)
            .map_err(|reason| (value_column, reason))
    }

    fn labels(&mut self, row: &[Cow<'_, str>], value_column: usize) -> Result<Arc<Labels>, String> {
        let time_column = self.dialect.time_column;
        let naming = |position: &usize| *position != time_column && *position != value_column;
        let mut key = String::new();
        for (_, cell) in row.iter().enumerate().filter(|(position, _)| naming(position)) {
            key.push_str(split::cell_text(cell));
            key.push('\u{0}');
        }
        if let Some(labels) = self.known.get(&key) {
            return Ok(Arc::clone(labels));
        }
        let name_column = match self.dialect.shape {
            Shape::Long { name_column, .. } => name_column,
            Shape::Wide => None,
        };
        let cells = row.iter().enumerate().filter(|(position, _)| naming(position));
        let cells = cells.filter_map(|(position, cell)| {
            let label =
                if Some(position) == name_column { NAME } else { self.header.get(position)?.as_str() };
            Some((label, split::cell_text(cell)))
        });
        let name = name_column.and_then(|column| row.get(column)).map_or("", |cell| split::cell_text(cell));
        let base = self.base.iter().filter(|(label, _)| name.is_empty() || label != NAME);
        let base = base.map(|(label, value)| (label.as_str(), value.as_str()));
        let labels = Arc::new(Labels::new(base.chain(cells)).map_err(|error| error.to_string())?);
        // A series may take more memory than its row has bytes, because its labels include the
        // column names.
        let bytes = KNOWN_BYTES + labels.own_bytes() + key.len();
        self.budget.take(bytes).map_err(|full| full.to_string())?;
        self.known_bytes += bytes;
        if self.known_bytes > KNOWN_BYTES_MAX {
            self.known.clear();
            self.known_bytes = bytes;
        }
        self.known.insert(key, Arc::clone(&labels));
        Ok(labels)
    }
}

impl Rows for Csv {
    fn whole(&self, bytes: &[u8]) -> usize {
        split::whole(bytes, self.dialect.delimiter)
    }

    fn decode(&mut self, block: &[u8], before: u64) -> Block {
        let mut out = Block::default();
        let mut slots = Slots::default();
        let mut faults = Vec::new();
        self.budget = Budget::of_body(block.len() * ROW_MEMORY);
        for (bytes, row) in split::rows(block, self.dialect.delimiter) {
            out.rows += 1;
            let number = before + out.rows;
            let text = match std::str::from_utf8(row) {
                Ok(text) => text,
                Err(error) => {
                    let reason = format!("row{}", not_utf8(row, error));
                    out.broken.push(Broken { row: number, at: At::Unknown, reason, bytes });
                    continue;
                }
            };
            if text.trim().is_empty() {
                continue;
            }
            if text.contains('"') && split::is_open(row, self.dialect.delimiter) {
                let reason = "a quote is opened and not closed".into();
                out.broken.push(Broken { row: number, at: At::Unknown, reason, bytes });
                continue;
            }
            let cells = split::cells(text, char::from(self.dialect.delimiter));
            let is_any_kept = match self.dialect.shape {
                Shape::Wide => self.wide(&cells, &mut slots, &mut faults),
                Shape::Long { value_column, .. } => {
                    faults.extend(self.long(&cells, &mut slots, value_column).err());
                    false
                }
            };
            out.partly += u64::from(is_any_kept && !faults.is_empty());
            out.broken.extend(self.broken(number, bytes, &mut faults));
        }
        out.batch = slots.batch;
        for (name, count) in self.header.iter().zip(&mut self.texts) {
            let texts = count.as_mut().map(std::mem::take).filter(|texts| *texts > 0);
            out.texts_skipped.extend(texts.map(|texts| (name.clone(), texts)));
        }
        out
    }
}

impl Csv {
    /// One error per row: the first error, and the number of further errors.
    fn broken(&self, row: u64, bytes: Range<usize>, faults: &mut Vec<(usize, String)>) -> Option<Broken> {
        let more = faults.len().saturating_sub(1);
        let (position, reason) = faults.drain(..).next()?;
        let reason = if more > 0 { format!("{reason} (and {more} more in this row)") } else { reason };
        Some(Broken { row, at: At::Column(self.column(position)), reason, bytes })
    }
}

/// For each series, the position in the batch at which its records are collected.
#[derive(Default)]
struct Slots {
    batch: Batch,
    /// Index: the position of a column, or the number of a series in a long file.
    places: Vec<Option<usize>>,
    numbers: HashMap<Arc<Labels>, usize>,
}

impl Slots {
    /// The number of a series in this block.
    fn of(&mut self, labels: &Arc<Labels>) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(Arc::clone(labels)).or_insert(next)
    }

    fn keep(
        &mut self,
        slot: usize,
        labels: &Arc<Labels>,
        at: Timestamp,
        cell: &str,
        dialect: &Dialect,
        scratch: &mut String,
    ) -> Result<(), String> {
        if self.places.len() <= slot {
            self.places.resize(slot + 1, None);
        }
        let Some(place) = self.places.get_mut(slot) else { return Ok(()) };
        if dialect.texts {
            if cell.len() > ENTRY_BYTES_MAX {
                return Err(format!("text of {} bytes, at most {ENTRY_BYTES_MAX} are allowed", cell.len()));
            }
            let list = &mut self.batch.entries;
            let place = *place.get_or_insert_with(|| {
                list.push(EntrySeries { labels: Arc::clone(labels), entries: Vec::new() });
                list.len() - 1
            });
            let entry = Entry { at, body: Body::Text(cell.into()) };
            list.get_mut(place).into_iter().for_each(|series| series.entries.push(entry.clone()));
            return Ok(());
        }
        let value =
            dialect.numbers.read(cell, scratch).ok_or_else(|| format!("{} is not a number", shown(cell)))?;
        if let Some(other) = dialect.doubtful.and_then(|other| other.read(cell, scratch))
            && other.to_bits() != value.to_bits()
        {
            return Err(format!(
                "{} is ambiguous, {value} or {other}: give --decimal . or --decimal ,",
                shown(cell)
            ));
        }
        let list = &mut self.batch.samples;
        let place = *place.get_or_insert_with(|| {
            list.push(SampleSeries { labels: Arc::clone(labels), samples: Vec::new() });
            list.len() - 1
        });
        let sample = Sample { at, value: exact(value, cell) };
        list.get_mut(place).into_iter().for_each(|series| series.samples.push(sample));
        Ok(())
    }
}

/// From 2^53 on, some whole numbers are not exact as a float.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Keeps a whole number from 2^53 on as an integer, because a float may round it. The cell must have only digits and a sign, and
/// the number must fit into 64 bits.
fn exact(value: f64, cell: &str) -> Value {
    if value.abs() < EXACT_MAX || !value.is_finite() {
        return Value::F64(value);
    }
    let whole = cell.parse().map(Value::I64).or_else(|_| cell.parse().map(Value::U64));
    whole.unwrap_or(Value::F64(value))
}

#[cfg(test)]
mod tests;
