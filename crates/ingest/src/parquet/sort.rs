//! To which series does each value of some rows belong?

use std::collections::HashMap;
use std::sync::Arc;

use tacho_model::limits::{ENTRY_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_BYTES_MAX};
use tacho_model::{Body, Entry, EntrySeries, Labels, NAME, Sample, SampleSeries, Timestamp, Value};

use super::cell::{Cell, Kind};
use super::own;
use super::plan::{Plan, Shape};
use super::rows::{Place, Rows};
use super::times::Times;
use crate::json_text;
use crate::rows::{At, Block, Broken, shown};

/// Limits on the remembered label sets: their number and their bytes. Above either limit all are discarded.
const KNOWN_MAX: usize = 100_000;
const KNOWN_BYTES_MAX: usize = 32 << 20;
/// A block ends when its records, label sets and broken rows take more memory than this.
const BLOCK_BYTES: usize = 64 << 20;
/// Limit on the bytes of text of a broken row that is written out for correction.
const ROW_TEXT_BYTES_MAX: usize = 4 << 20;
/// Memory of a record in addition to its texts.
const RECORD_BYTES: usize = 64;
/// Memory of a label set, or of the error of a broken row, in addition to its texts.
const SET_BYTES: usize = 256;

/// Assigns rows to their series.
pub struct Sorter {
    plan: Plan,
    base: Vec<(String, String)>,
    /// Key: the cells of the label columns. Value: the series that `Self::series` returns for them.
    known: HashMap<String, Arc<[Arc<Labels>]>>,
    known_bytes: usize,
    /// Memory of the block so far: its records, label sets and broken rows.
    taken: usize,
    /// The columns of values to which the series in `known` belong.
    values: Vec<usize>,
}

/// The cells of some rows, column by column. `at` lists the columns.
struct Table<'a> {
    plan: &'a Plan,
    at: &'a [usize],
    cells: &'a [Vec<Cell>],
}

type Fault = (usize, String);

impl Sorter {
    /// `base` has the labels that every series gets.
    ///
    /// # Errors
    /// If a column name cannot be the name of a series; the error names the column.
    pub fn new(plan: Plan, base: Vec<(String, String)>) -> Result<Self, String> {
        if let Shape::Wide(columns) = &plan.shape {
            for name in columns.iter().map(|at| plan.column(*at)) {
                Labels::new([(NAME, name)]).map_err(|e| format!("column {name:?}: {e}"))?;
            }
        }
        Ok(Self { plan, base, known: HashMap::new(), known_bytes: 0, taken: 0, values: Vec::new() })
    }

    /// Assigns rows to their series, starting at row `from`, up to the limit of a block. `first` is the number of rows
    /// of the file before row `from`.
    pub fn sort(
        &mut self,
        at: &[usize],
        cells: &[Vec<Cell>],
        from: usize,
        times: &mut Times,
        place: Place,
        first: u64,
    ) -> Rows {
        let labels = self.plan.labels.len();
        let values = at.get(1 + labels..).unwrap_or_default();
        if self.values != values {
            self.forget();
            self.values = values.to_vec();
        }
        self.taken = 0;
        let plan = self.plan.clone();
        let table = Table { plan: &plan, at, cells };
        let mut rows = Rows { block: Block::default(), rows: 0, text: String::new() };
        let (mut slots, mut faults) = (Slots::default(), Vec::new());
        let mut last: Option<(usize, usize)> = None;
        let (mut number, mut key) = (first, String::new());
        for row in from..cells.first().map_or(0, Vec::len) {
            if self.taken > BLOCK_BYTES {
                break;
            }
            number += 1;
            let mut is_read = false;
            match times.read(table.cell(0, row)) {
                // The parts of a wide file have the same times. Only the first part reports the error.
                Err(reason) => faults.extend((place.part == 0).then_some((0, reason))),
                Ok(time) => {
                    let same = last.filter(|(before, _)| table.same_labels(*before, row, labels));
                    let set = match same {
                        Some((_, set)) => Ok(set),
                        None => self.series(&table, row, &mut key).map(|series| slots.set(series)),
                    };
                    match set {
                        Ok(set) => {
                            last = Some((row, set));
                            is_read = true;
                            self.keep(&table, row, time, set, &mut slots, &mut faults);
                        }
                        Err(fault) => faults.push(fault),
                    }
                }
            }
            if !faults.is_empty() {
                let before = rows.text.len();
                // In a wide file, the valid values of a broken row are imported.
                rows.block.partly += u64::from(is_read && matches!(self.plan.shape, Shape::Wide(_)));
                rows.broken(&table, row, number, place, &mut faults);
                self.taken += SET_BYTES + 2 * (rows.text.len() - before);
            }
        }
        rows.rows = usize::try_from(number - first).unwrap_or(0);
        rows.block.rows = if place.part == 0 { number - first } else { 0 };
        rows.block.batch = slots.batch;
        rows
    }

    /// The series with the labels of a row: one series per column of values in a wide file, otherwise one series.
    fn series(
        &mut self,
        table: &Table<'_>,
        row: usize,
        key: &mut String,
    ) -> Result<Arc<[Arc<Labels>]>, Fault> {
        let count = self.plan.labels.len();
        let mut ends = Vec::with_capacity(count);
        key.clear();
        for nth in 1..=count {
            table.check_label(nth, row, key.len() - ends.len()).map_err(|reason| (nth, reason))?;
            table.put(nth, row, key).map_err(|reason| (nth, reason))?;
            ends.push(key.len());
            key.push('\u{0}');
        }
        if let Some(series) = self.known.get(key) {
            self.taken += SET_BYTES * series.len();
            return Ok(Arc::clone(series));
        }
        let mut begin = 0;
        let mut pairs: Vec<(&str, &str)> = Vec::with_capacity(count + self.base.len() + 1);
        for ((_, label), end) in self.plan.labels.iter().zip(&ends) {
            pairs.push((label, key.get(begin..*end).unwrap_or_default()));
            begin = end + 1;
        }
        let is_wide = matches!(self.plan.shape, Shape::Wide(_));
        let named = is_wide || pairs.iter().any(|(label, value)| *label == NAME && !value.is_empty());
        let base = self.base.iter().filter(|(label, _)| !named || label != NAME);
        pairs.extend(base.map(|(label, value)| (&**label, &**value)));
        let fault = |reason: String| (1.min(count), reason);
        let make = |pairs: &[(&str, &str)]| {
            let labels = Labels::new(pairs.iter().copied()).map_err(|e| fault(e.to_string()))?;
            if labels.is_empty() { Err(fault("series has no labels".into())) } else { Ok(Arc::new(labels)) }
        };
        let series: Arc<[Arc<Labels>]> = match is_wide {
            false => vec![make(&pairs)?].into(),
            true => {
                let mut list = Vec::with_capacity(self.values.len());
                for at in &self.values {
                    // `Parquet::open` refuses a given name if there are several columns of values.
                    let given = self.base.iter().find(|(label, _)| label == NAME);
                    let name = given.map_or_else(|| self.plan.column(*at), |(_, name)| name);
                    pairs.push((NAME, name));
                    list.push(make(&pairs)?);
                    pairs.pop();
                }
                list.into()
            }
        };
        let labels: usize = series.iter().map(|labels| SET_BYTES + labels.canonical_bytes()).sum();
        self.taken += labels;
        if self.known.len() >= KNOWN_MAX || self.known_bytes > KNOWN_BYTES_MAX {
            self.forget();
        }
        self.known_bytes += labels + key.len();
        self.known.insert(key.clone(), Arc::clone(&series));
        Ok(series)
    }

    fn forget(&mut self) {
        self.known.clear();
        self.known_bytes = 0;
    }

    fn keep(
        &mut self,
        table: &Table<'_>,
        row: usize,
        time: Timestamp,
        set: usize,
        slots: &mut Slots,
        faults: &mut Vec<Fault>,
    ) {
        let begin = 1 + self.plan.labels.len();
        let cells = (begin..table.at.len()).map(|nth| (nth, table.cell(nth, row)));
        let mut cells = cells.filter(|(_, cell)| !cell.is_null());
        let is_wide = matches!(self.plan.shape, Shape::Wide(_));
        // In a long file, the first value that is not null is used.
        let one = if is_wide { None } else { cells.next() };
        for (nth, cell) in one.into_iter().chain(cells.take(if is_wide { usize::MAX } else { 0 })) {
            let series = if is_wide { nth - begin } else { 0 };
            self.taken += RECORD_BYTES + if self.plan.texts { cell.text_bytes() } else { 0 };
            let kept = match self.plan.texts {
                true => body(table, nth, row).map(|body| slots.entry(set, series, Entry { at: time, body })),
                false => number(cell)
                    .map(|value| slots.sample(set, series, Sample { at: time, value }))
                    .ok_or_else(|| {
                        let mut text = String::new();
                        let _ = table.put(nth, row, &mut text);
                        format!("{} is not a number", shown(&text))
                    }),
            };
            faults.extend(kept.err().map(|reason| (nth, reason)));
        }
    }
}

const fn number(cell: &Cell) -> Option<Value> {
    match cell {
        Cell::Signed(value) => Some(Value::I64(*value)),
        Cell::Unsigned(value) => Some(Value::U64(*value)),
        Cell::Float(value) => Some(Value::F64(*value)),
        Cell::Bool(value) => Some(Value::I64(*value as i64)),
        Cell::Null | Cell::Bytes(_) | Cell::Moment(_) => None,
    }
}

/// Bytes stay bytes in files of Tachograph. In other files they are text if they are valid UTF-8.
fn body(table: &Table<'_>, nth: usize, row: usize) -> Result<Body, String> {
    let column = table.at.get(nth).copied().unwrap_or(usize::MAX);
    let must_be_bytes = table.plan.is_own && table.plan.column(column) == own::BYTES;
    let too_long =
        |bytes: usize| Err(format!("text of {bytes} bytes, at most {ENTRY_BYTES_MAX} are allowed"));
    let cell = table.cell(nth, row);
    if cell.text_bytes() > ENTRY_BYTES_MAX {
        return too_long(cell.text_bytes());
    }
    let body = match (cell, table.plan.kind(column)) {
        (Cell::Bytes(bytes), Some(Kind::Bytes))
            if must_be_bytes || std::str::from_utf8(bytes.data()).is_err() =>
        {
            Body::Bytes(bytes.data().into())
        }
        _ => {
            let mut text = String::new();
            table.put(nth, row, &mut text)?;
            Body::Text(text.into())
        }
    };
    match body.as_bytes().len() {
        bytes if bytes > ENTRY_BYTES_MAX => too_long(bytes),
        _ => Ok(body),
    }
}

impl Table<'_> {
    fn cell(&self, nth: usize, row: usize) -> &Cell {
        self.cells.get(nth).and_then(|column| column.get(row)).unwrap_or(&Cell::Null)
    }

    fn put(&self, nth: usize, row: usize, out: &mut String) -> Result<(), String> {
        let kind = self.at.get(nth).and_then(|at| self.plan.kind(*at)).unwrap_or(Kind::Bytes);
        self.cell(nth, row).put(kind, out)
    }

    /// Checks the limits of labels before the value is copied. `before` is the number of bytes of the row's other
    /// labels so far.
    fn check_label(&self, nth: usize, row: usize, before: usize) -> Result<(), String> {
        let bytes = self.cell(nth, row).text_bytes();
        let label = self.plan.labels.get(nth - 1).map_or("", |(_, label)| label);
        if bytes > LABEL_VALUE_BYTES_MAX {
            return Err(format!(
                "value of label {label:?} has {bytes} bytes, at most {LABEL_VALUE_BYTES_MAX} are allowed"
            ));
        }
        if before + bytes > LABELS_BYTES_MAX {
            let bytes = before + bytes;
            return Err(format!(
                "labels of {bytes} bytes, at most {LABELS_BYTES_MAX} are allowed for one series"
            ));
        }
        Ok(())
    }

    fn row_text_bytes(&self, row: usize) -> usize {
        (0..self.at.len()).map(|nth| self.cell(nth, row).text_bytes()).sum()
    }

    fn same_labels(&self, a: usize, b: usize, count: usize) -> bool {
        (1..=count).all(|nth| self.cell(nth, a) == self.cell(nth, b))
    }

    fn name(&self, nth: usize) -> &str {
        self.at.get(nth).map_or("?", |at| self.plan.column(*at))
    }

    /// Appends the row as a JSON object. For a long file, a user can correct the object, and [`crate::json_lines::JsonLines`]
    /// reads it.
    fn json(&self, row: usize, out: &mut String) {
        let long = matches!(self.plan.shape, Shape::Long(_));
        let labels = self.plan.labels.len();
        out.push('{');
        for nth in 0..self.at.len() {
            let cell = self.cell(nth, row);
            if cell.is_null() && nth > 0 {
                continue;
            }
            let label = nth.checked_sub(1).and_then(|nth| self.plan.labels.get(nth));
            let name = match label {
                Some((_, label)) => label,
                None if nth == 0 => "time",
                None if long && nth > labels => "value",
                None => self.name(nth),
            };
            out.push_str(if nth > 0 { "," } else { "" });
            json_text::put(out, name);
            out.push(':');
            self.json_cell(nth, row, out);
        }
        out.push_str("}\n");
    }

    fn json_cell(&self, nth: usize, row: usize, out: &mut String) {
        let mut text = String::new();
        match self.cell(nth, row) {
            Cell::Null => return out.push_str("null"),
            Cell::Bytes(bytes) => text.push_str(&String::from_utf8_lossy(bytes.data())),
            _ => {
                let _ = self.put(nth, row, &mut text);
            }
        }
        let kind = self.at.get(nth).and_then(|at| self.plan.kind(*at));
        let finite = text.parse::<f64>().is_ok_and(f64::is_finite);
        match kind {
            Some(Kind::Signed | Kind::Unsigned | Kind::Float | Kind::Decimal(_)) if finite => {
                out.push_str(&text);
            }
            _ => json_text::put(out, &text),
        }
    }
}

impl Rows {
    /// Adds one error for the row: the first of `faults`, with the number of further faults.
    fn broken(&mut self, table: &Table<'_>, row: usize, number: u64, place: Place, faults: &mut Vec<Fault>) {
        let more = faults.len().saturating_sub(1);
        let Some((nth, reason)) = faults.drain(..).next() else { return };
        let reason = if more > 0 { format!("{reason} (and {more} more in this row)") } else { reason };
        let begin = self.text.len();
        let text_bytes = table.row_text_bytes(row);
        let reason = match text_bytes <= ROW_TEXT_BYTES_MAX {
            true => {
                table.json(row, &mut self.text);
                reason
            }
            // The row is too long for a correction by hand.
            false => format!("{reason} (the row has {text_bytes} bytes and is not written out)"),
        };
        let at = At::Column(format!("{:?} of row group {}", table.name(nth), place.group));
        self.block.broken.push(Broken { row: number, at, reason, bytes: begin..self.text.len() });
    }
}

/// The batch of a block, and for each series the position in the batch at which its records are collected.
#[derive(Default)]
struct Slots {
    batch: tacho_model::Batch,
    sets: Vec<Set>,
    /// Key: the address of a list of series. Value: the position of the list in `sets`. `sets` keeps the list allocated, so
    /// that no other list has this address.
    numbers: HashMap<usize, usize>,
}

struct Set {
    series: Arc<[Arc<Labels>]>,
    places: Vec<Option<usize>>,
}

impl Slots {
    /// The position in `sets` of the element for these series. Adds it if it is missing.
    fn set(&mut self, series: Arc<[Arc<Labels>]>) -> usize {
        let next = self.sets.len();
        let number = *self.numbers.entry(series.as_ptr().addr()).or_insert(next);
        if number == next {
            let places = vec![None; series.len()];
            self.sets.push(Set { series, places });
        }
        number
    }

    fn sample(&mut self, set: usize, series: usize, sample: Sample) {
        let list = &mut self.batch.samples;
        let Some(Set { series: all, places }) = self.sets.get_mut(set) else { return };
        let (Some(labels), Some(place)) = (all.get(series), places.get_mut(series)) else { return };
        let place = *place.get_or_insert_with(|| {
            list.push(SampleSeries { labels: Arc::clone(labels), samples: Vec::new() });
            list.len() - 1
        });
        if let Some(series) = list.get_mut(place) {
            series.samples.push(sample);
        }
    }

    fn entry(&mut self, set: usize, series: usize, entry: Entry) {
        let list = &mut self.batch.entries;
        let Some(Set { series: all, places }) = self.sets.get_mut(set) else { return };
        let (Some(labels), Some(place)) = (all.get(series), places.get_mut(series)) else { return };
        let place = *place.get_or_insert_with(|| {
            list.push(EntrySeries { labels: Arc::clone(labels), entries: Vec::new() });
            list.len() - 1
        });
        if let Some(series) = list.get_mut(place) {
            series.entries.push(entry);
        }
    }
}
