//! Apache Parquet (parquet.apache.org): which samples does each row hold?
//!
//! ```text
//!   long   time, name, host, value       a record a row; other columns are labels
//!   wide   time, host, cpu, memory       a series for each column of numbers, named by it; texts are labels
//! ```
//! `plan.rs` says what the columns are, `cell.rs` and `times.rs` read them, `sort.rs` puts the rows' values to their
//! series, `write.rs` writes long files, which `own.rs` describes. Columns are decoded by the crate `parquet`
//! (docs/adr/0007), which is handed ranges of bytes and does no I/O itself.
//!
//! A file is read row group by row group, of a wide one some columns at a time, so that its size and width do not
//! matter. What is damaged costs the rest of its row group, no more.

mod cell;
mod own;
mod plan;
mod sort;
mod times;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ::parquet::basic::Compression;
pub use ::parquet::errors::{ParquetError, Result as ChunkResult};
pub use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
pub use bytes::Bytes;
use jiff::tz::TimeZone;
use tacho_model::NAME;

use crate::csv::{self, Given};
use crate::rows::{Block, Broken};
use crate::time_text::TimeFormat;
use cell::{Cell, CellReader};
use plan::{Plan, Shape};
use sort::Sorter;
use times::Times;
pub use write::Writer;

/// Columns of values that are read at once: each has a page in memory, of about a megabyte.
const VALUES_AT_ONCE: usize = 64;
/// Cells of a block, and bounds for its rows.
const BLOCK_CELLS: usize = 1 << 19;
const BLOCK_ROWS: (usize, usize) = (1 << 10, 1 << 16);
/// Cells of the times that are looked at to find out what they count.
const HEAD_ROWS: usize = 500;

/// Where in a file a block begins or ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Row group, from 0.
    pub group: usize,
    /// Which of the parts into which the values' columns are cut, from 0.
    pub part: usize,
    /// Rows of the group that lie before.
    pub row: u64,
}

/// Some rows, or some columns of them.
pub struct Rows {
    pub block: Block,
    /// Broken rows as JSON lines: what [`Broken::bytes`] counts.
    pub text: String,
}

/// Reads a file.
pub struct Parquet<R: ChunkReader> {
    file: SerializedFileReader<R>,
    plan: Plan,
    /// Columns of values, part by part.
    parts: Vec<Vec<usize>>,
    times: Times,
    sorter: Sorter,
    place: Place,
    /// Rows of the groups before this one.
    before: u64,
    open: Option<Open>,
    description: String,
    doubts: Vec<String>,
}

/// The part of a row group that is being read.
struct Open {
    /// The column of each reader: the times, the labels, the values.
    columns: Vec<usize>,
    readers: Vec<CellReader>,
}

/// What went wrong, and in which column.
struct Fault {
    column: Option<usize>,
    reason: String,
}

impl<R: ChunkReader + 'static> Parquet<R> {
    /// `base` are labels of every series, a name among them for long files without one.
    ///
    /// # Errors
    /// Why it cannot be read, or what the user has to say.
    pub fn open(
        input: R,
        given: &Given,
        zone: TimeZone,
        base: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let file = guarded(|| SerializedFileReader::new(input))
            .map_err(|reason| format!("not a whole Parquet file: {reason}"))?;
        let metadata = file.metadata();
        check_places(&file)?;
        let plan = Plan::of(metadata.file_metadata(), given)?;
        let named = plan.labels.iter().find(|(_, label)| label == NAME).map(|(at, _)| plan.column(*at));
        let name = base.iter().find(|(label, _)| label == NAME).map(|(_, name)| name.as_str());
        let mut doubts = Vec::new();
        match (&plan.shape, named, name) {
            (Shape::Long(_), None, None) if !plan.is_own => {
                return Err("no column names the series, and no name is given".into());
            }
            (Shape::Long(_), Some(column), Some(name)) => doubts.push(csv::only_where_empty(name, column)),
            (Shape::Wide(columns), _, Some(name)) => {
                let columns: Vec<&str> = columns.iter().map(|at| plan.column(*at)).collect();
                csv::name_of_one(name, &columns)?;
            }
            _ => {}
        }
        let parts = match &plan.shape {
            Shape::Wide(columns) => columns.chunks(VALUES_AT_ONCE).map(<[usize]>::to_vec).collect(),
            Shape::Long(columns) => vec![columns.clone()],
        };
        check_codecs(&file, &plan)?;
        let head = head(&file, plan.time);
        let kind = plan.kind(plan.time).ok_or("the times' column cannot be read")?;
        let zone_name = zone.iana_name().unwrap_or("a zone without a name").to_owned();
        let times = Times::new(kind, given.time.as_ref(), zone, &head)?;
        let description = describe(&plan, &times, &zone_name);
        if !plan.left_out.is_empty() {
            let names = plan.left_out.join(", ");
            doubts.push(format!("columns that are left out: {}", crate::rows::shown(&names)));
        }
        let sorter = Sorter::new(plan.clone(), base)?;
        let (place, before, open) = (Place::default(), 0, None);
        Ok(Self { file, plan, parts, times, sorter, place, before, open, description, doubts })
    }

    /// What was found out, for people.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How times are written, where their type does not say it.
    pub fn time_format(&self) -> Option<&TimeFormat> {
        self.times.format()
    }

    /// Choices that another reading would fit as well.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Behind what was given out.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Goes on at a place that [`Self::place`] gave. One that the file does not have is its end.
    pub fn seek(&mut self, place: Place) {
        self.before = (0..place.group).map(|group| self.rows_of(group)).sum();
        self.place = place;
        self.open = None;
    }

    fn rows_of(&self, group: usize) -> u64 {
        match group < self.file.num_row_groups() {
            true => u64::try_from(self.file.metadata().row_group(group).num_rows()).unwrap_or(0),
            false => 0,
        }
    }

    /// The next rows; `None` at the end.
    pub fn next_rows(&mut self) -> Option<Rows> {
        while self.place.group < self.file.num_row_groups() {
            match unwound(|| self.read()).unwrap_or_else(|reason| Err(Fault { column: None, reason })) {
                Ok(Some(columns)) => return Some(self.sort(&columns)),
                Ok(None) => self.next_part(),
                Err(fault) => return Some(self.give_up(fault)),
            }
        }
        None
    }

    fn next_part(&mut self) {
        self.open = None;
        self.place.row = 0;
        self.place.part += 1;
        if self.place.part >= self.parts.len() {
            self.before += self.rows_of(self.place.group);
            self.place = Place { group: self.place.group + 1, ..Place::default() };
        }
    }

    /// The rest of the part is lost.
    fn give_up(&mut self, fault: Fault) -> Rows {
        let lost = self.rows_of(self.place.group).saturating_sub(self.place.row);
        let column = fault.column.map(|at| format!("{:?}", self.plan.column(at)));
        let reason = format!(
            "row group {} cannot be read from here on, {lost} rows are lost: {}",
            self.place.group, fault.reason
        );
        let row = self.before + self.place.row + 1;
        let broken = vec![Broken { row, column, reason, bytes: 0..0 }];
        let rows = if self.place.part == 0 { lost } else { 0 };
        self.next_part();
        let block = Block { rows, broken, lost: lost.saturating_sub(1), ..Block::default() };
        Rows { block, text: String::new() }
    }

    /// `None` at the end of the part.
    fn read(&mut self) -> Result<Option<Vec<Vec<Cell>>>, Fault> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_part()?,
        };
        let cells = BLOCK_CELLS / open.columns.len().max(1);
        let rows = cells.clamp(BLOCK_ROWS.0, BLOCK_ROWS.1);
        let mut columns: Vec<Vec<Cell>> = Vec::with_capacity(open.columns.len());
        for (at, reader) in open.columns.iter().zip(&mut open.readers) {
            let cells = reader.read(rows).map_err(|e| Fault { column: Some(*at), reason: said(&e) })?;
            if columns.first().is_some_and(|times| times.len() != cells.len()) {
                let reason = "it has not as many rows as the times".into();
                return Err(Fault { column: Some(*at), reason });
            }
            columns.push(cells);
        }
        let read = columns.first().map_or(0, Vec::len) as u64;
        let left = self.rows_of(self.place.group).saturating_sub(self.place.row);
        if read > left || (read == 0 && left > 0) {
            let reason = format!("it has not the {} rows that it claims", self.rows_of(self.place.group));
            return Err(Fault { column: Some(self.plan.time), reason });
        }
        if read == 0 {
            return Ok(None);
        }
        self.open = Some(open);
        Ok(Some(columns))
    }

    fn sort(&mut self, columns: &[Vec<Cell>]) -> Rows {
        let first = self.before + self.place.row;
        let at = self.open.as_ref().map_or(&[][..], |open| open.columns.as_slice());
        let rows = self.sorter.sort(at, columns, &mut self.times, self.place, first);
        self.place.row += columns.first().map_or(0, Vec::len) as u64;
        rows
    }

    fn open_part(&self) -> Result<Open, Fault> {
        let fault = |column: Option<usize>, e: ParquetError| Fault { column, reason: said(&e) };
        let group = self.file.get_row_group(self.place.group).map_err(|e| fault(None, e))?;
        let values = self.parts.get(self.place.part).map_or(&[][..], Vec::as_slice);
        let labels = self.plan.labels.iter().map(|(at, _)| *at);
        let columns: Vec<usize> =
            [self.plan.time].into_iter().chain(labels).chain(values.iter().copied()).collect();
        let mut readers = Vec::with_capacity(columns.len());
        let schema = self.file.metadata().file_metadata().schema_descr();
        for at in &columns {
            let Some(kind) = self.plan.kind(*at) else { continue };
            let reader = group.get_column_reader(*at).map_err(|e| fault(Some(*at), e))?;
            let mut reader = CellReader::new(kind, &schema.column(*at), reader);
            let skip = usize::try_from(self.place.row).unwrap_or(usize::MAX);
            if skip > 0 {
                reader.skip(skip).map_err(|e| fault(Some(*at), e))?;
            }
            readers.push(reader);
        }
        if readers.len() != columns.len() {
            return Err(Fault { column: None, reason: "a column cannot be read".into() });
        }
        Ok(Open { columns, readers })
    }
}

/// What a footer says about places, before anything relies on it.
fn check_places<R: ChunkReader + 'static>(file: &SerializedFileReader<R>) -> Result<(), String> {
    let metadata = file.metadata();
    let width = metadata.file_metadata().schema_descr().num_columns();
    for (nth, group) in metadata.row_groups().iter().enumerate() {
        let columns = group.columns();
        let good = |number: i64| number >= 0;
        let fits = columns.len() == width
            && good(group.num_rows())
            && columns.iter().all(|column| {
                good(column.dictionary_page_offset().unwrap_or(0))
                    && good(column.data_page_offset())
                    && good(column.compressed_size())
                    && good(column.num_values())
            });
        if !fits {
            return Err(format!("not a whole Parquet file: row group {nth} is at no place of it"));
        }
    }
    let rows = metadata.row_groups().iter().try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()));
    rows.map(|_| ()).ok_or_else(|| "not a whole Parquet file: its rows are more than can be counted".into())
}

/// Told at once, not row group by row group.
fn check_codecs<R: ChunkReader + 'static>(file: &SerializedFileReader<R>, plan: &Plan) -> Result<(), String> {
    let labels = plan.labels.iter().map(|(at, _)| at);
    let wanted: Vec<usize> =
        [&plan.time].into_iter().chain(labels).chain(plan.shape.columns()).copied().collect();
    for group in file.metadata().row_groups() {
        for at in &wanted {
            let codec = group.columns().get(*at).map_or(Compression::UNCOMPRESSED, |c| c.compression());
            if let Compression::BROTLI(_) | Compression::LZO = codec {
                let name = plan.column(*at);
                let codec = if codec == Compression::LZO { "LZO" } else { "Brotli" };
                return Err(format!(
                    "column {name:?} is compressed with {codec}: write it with zstd or snappy"
                ));
            }
        }
    }
    Ok(())
}

/// The first cells of a column.
fn head<R: ChunkReader + 'static>(file: &SerializedFileReader<R>, column: usize) -> Vec<Cell> {
    let schema = file.metadata().file_metadata().schema_descr();
    let descriptor = schema.column(column);
    let Some(kind) = cell::Kind::of(&descriptor) else { return vec![] };
    let groups = file.metadata().row_groups();
    let Some(group) = groups.iter().position(|group| group.num_rows() > 0) else { return vec![] };
    // A damaged group is told when it is read: here it teaches nothing.
    let read = guarded(|| {
        let reader = file.get_row_group(group)?.get_column_reader(column)?;
        CellReader::new(kind, &descriptor, reader).read(HEAD_ROWS)
    });
    read.unwrap_or_default()
}

fn describe(plan: &Plan, times: &Times, zone: &str) -> String {
    let column = |at: &usize| format!("{:?}", plan.column(*at));
    let time = column(&plan.time);
    let labels: Vec<&str> =
        plan.labels.iter().filter(|(_, label)| label != NAME).map(|(at, _)| plan.column(*at)).collect();
    let labels = match labels.len() {
        0 => "no labels".to_owned(),
        _ => format!("labels {}", crate::rows::shown(&labels.join(", "))),
    };
    let shape = match &plan.shape {
        Shape::Wide(columns) => format!("a series for each column of numbers ({}); {labels}", columns.len()),
        Shape::Long(columns) => {
            let name = plan.labels.iter().find(|(_, label)| label == NAME);
            let name = name.map_or(String::new(), |(at, _)| format!(" named by {}", column(at)));
            let values: Vec<String> = columns.iter().map(column).collect();
            format!("one value a row in {}{name}; {labels}", values.join(" or "))
        }
    };
    let values = if plan.texts { "texts" } else { "numbers" };
    format!("Parquet; times in {time} as {}; {values}; {shape}", times.description(zone))
}

fn said(error: &ParquetError) -> String {
    let text = error.to_string();
    text.strip_prefix("Parquet error: ").unwrap_or(&text).to_owned()
}

thread_local! {
    static EXPECTED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// The crate answers most damage with errors, and some with panics: those end here, unseen.
fn unwound<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !EXPECTED.get() {
                before(info);
            }
        }));
    });
    EXPECTED.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(false);
    done.map_err(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        format!("it is damaged: {}", text.unwrap_or("its decoder ended"))
    })
}

fn guarded<T>(work: impl FnOnce() -> ChunkResult<T>) -> Result<T, String> {
    unwound(work)?.map_err(|e| said(&e))
}

#[cfg(test)]
mod tests;
