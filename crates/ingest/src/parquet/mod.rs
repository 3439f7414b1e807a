//! Which samples or entries does each row of an Apache Parquet file (parquet.apache.org) hold?
//!
//! ```text
//!   long   time, name, host, value       one record per row; other columns are labels
//!   wide   time, host, cpu, memory       one record per number, in a series named by the column; texts are labels
//! ```
//! `plan.rs` determines the roles of the columns. `cell.rs` and `times.rs` read cells. `sort.rs` assigns the values of
//! the rows to their series. `write.rs` writes long files, whose layout is in `own.rs`. The crate `parquet` decodes the
//! columns (docs/adr/0007); it gets ranges of bytes and does no I/O itself.
//!
//! A file is read one row group after the other, and of a wide file 64 value columns at a time. Therefore only the footer
//! takes more memory for a larger or wider file. If a page is damaged, at most the rest of its row group is lost. A file with
//! a damaged footer is refused. Pages are checked before they are decompressed (`pages.rs`). Limits on the cells, rows, texts
//! and pages of a block keep the memory for reading a file below [`memory_bytes_max`].

mod cell;
mod own;
mod page_head;
mod pages;
mod plan;
mod rows;
mod sort;
mod times;
mod write;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use ::parquet::basic::{Compression, Type};
use ::parquet::column::reader::get_column_reader;
pub use ::parquet::errors::{ParquetError, Result as ChunkResult};
pub use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
pub use bytes::Bytes;
use jiff::tz::TimeZone;
use tacho_model::NAME;

use crate::csv::{self, Given};
use crate::rows::{At, Block, Broken};
use crate::time_text::TimeFormat;
use cell::{Cell, CellReader};
use pages::{Guard, Held, PAGES_BYTES_MAX, PageBudget, Shared, is_prefixed};
use plan::{Plan, Shape};
pub use rows::{Place, Rows};
use sort::Sorter;
use times::Times;
pub use write::Writer;

/// Number of value columns that are read together. Each column has a page of about a megabyte in memory.
const VALUES_AT_ONCE: usize = 64;
/// Limits on the cells and rows of a block.
const BLOCK_CELLS: usize = 1 << 19;
const BLOCK_ROWS: usize = 1 << 16;
/// A block ends when its texts exceed the first limit, or the pages that hold the texts exceed the second limit.
const BLOCK_TEXT_BYTES: usize = 16 << 20;
const BLOCK_PAGE_BYTES: usize = 64 << 20;
/// Number of rows of a text column that are read before the size of the texts is checked. The second constant applies to
/// prefix-compressed texts.
const STEP_ROWS: usize = 256;
const STEP_ROWS_PREFIXED: usize = 16;
/// Limits on the cells of the time column, and on their bytes of text, that are examined to detect the format.
const HEAD_ROWS: usize = 500;
const HEAD_TEXT_BYTES: usize = 1 << 20;

/// Limit on the memory in bytes for reading a file, not including its footer: pages (twice for prefix-compressed texts), cells,
/// and the records of a block.
const MEMORY_BYTES_MAX: usize = 3 * PAGES_BYTES_MAX;
/// Memory per byte of the footer. The footer describes each column of each row group.
const MEMORY_PER_FOOTER_BYTE: usize = 64;

pub const fn memory_bytes_max(footer_bytes: usize) -> usize {
    MEMORY_BYTES_MAX.saturating_add(footer_bytes.saturating_mul(MEMORY_PER_FOOTER_BYTE))
}

pub struct Parquet<R: ChunkReader> {
    file: SerializedFileReader<Shared<R>>,
    input: Shared<R>,
    plan: Plan,
    /// Columns of values, in parts. The columns of a part are read together.
    parts: Vec<Vec<usize>>,
    times: Times,
    sorter: Sorter,
    place: Place,
    /// Number of rows in the row groups before the current one.
    before: u64,
    open: Option<Open>,
    description: String,
    doubts: Vec<String>,
}

/// The part of a row group that is being read.
struct Open {
    /// The columns that the readers read: the time, the labels, the values.
    columns: Vec<usize>,
    readers: Vec<CellReader>,
    held: Vec<Held>,
    /// Number of rows that are read together. It is smaller if there are texts.
    step: usize,
    /// The rows of the current block, by column. The first `sorted` rows are already assigned to their series.
    cells: Vec<Vec<Cell>>,
    sorted: usize,
}

/// An error, and the column in which it occurred.
struct Fault {
    column: Option<usize>,
    reason: String,
}

impl<R: ChunkReader + 'static> Parquet<R> {
    /// `base` has the labels of every series. It must include a name if the file is long, has no column of names, and is not
    /// written by Tachograph.
    ///
    /// # Errors
    /// - The file cannot be read. The error names the reason.
    /// - The columns or their compression are unsupported.
    /// - An option is missing or does not suit the file. The error names the option.
    pub fn open(
        input: R,
        given: &Given,
        zone: TimeZone,
        base: Vec<(String, String)>,
    ) -> Result<Self, String> {
        let input = Shared::new(input);
        let file = guarded(|| SerializedFileReader::new(input.clone()))
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
        let head = head(&file, &input, plan.time);
        let kind = plan.kind(plan.time).ok_or("the column of times cannot be read")?;
        let zone_name = zone.iana_name().unwrap_or("a zone without a name").to_owned();
        let times = Times::new(kind, given.time.as_ref(), zone, &head)?;
        let description = describe(&plan, &times, &zone_name);
        if !plan.ignored.is_empty() {
            let names = plan.ignored.join(", ");
            doubts.push(format!("ignored columns: {}", crate::rows::shown(&names)));
        }
        let sorter = Sorter::new(plan.clone(), base)?;
        let (place, before, open) = (Place::default(), 0, None);
        Ok(Self { file, input, plan, parts, times, sorter, place, before, open, description, doubts })
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The time format; `None` if the type of the column determines the time.
    pub fn time_format(&self) -> Option<&TimeFormat> {
        self.times.format()
    }

    /// Notices for the user, such as the ignored columns.
    pub fn doubts(&self) -> &[String] {
        &self.doubts
    }

    /// Position after the last returned block.
    pub const fn place(&self) -> Place {
        self.place
    }

    /// Number of rows of the file before the position. Each row counts once: when its first part of columns is read.
    pub fn rows_read(&self) -> u64 {
        let Place { group, part, row } = self.place;
        self.before + if part == 0 { row } else { self.rows_of(group) }
    }

    /// Continues at a position that [`Self::place`] returned. A position outside the file means the end of the file.
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

    pub fn next_rows(&mut self) -> Option<Rows> {
        while self.place.group < self.file.num_row_groups() {
            match unwound(|| self.read()).unwrap_or_else(|reason| Err(Fault { column: None, reason })) {
                Ok(Some(open)) => return Some(self.sort(open)),
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

    /// Skips the rest of the part after an error.
    fn give_up(&mut self, fault: Fault) -> Rows {
        let lost = self.rows_of(self.place.group).saturating_sub(self.place.row);
        let named = |column| At::Column(format!("{:?}", self.plan.column(column)));
        let at = fault.column.map_or(At::Unknown, named);
        let (columns, values) = match self.parts.len() {
            0 | 1 => ("", ""),
            _ => ("some columns of ", "their values in "),
        };
        let reason = format!(
            "{columns}row group {} cannot be read from here on, {values}{lost} rows are lost: {}",
            self.place.group, fault.reason
        );
        let row = self.before + self.place.row + 1;
        let broken = vec![Broken { row, at, reason, bytes: 0..0 }];
        let rows = if self.place.part == 0 { lost } else { 0 };
        self.next_part();
        let block = Block { rows, broken, lost: lost.saturating_sub(1), ..Block::default() };
        Rows { block, rows: 0, text: String::new() }
    }

    /// Reads the next block if all rows of the current block are assigned to their series. `None` at the end of the part.
    fn read(&mut self) -> Result<Option<Open>, Fault> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.open_part()?,
        };
        if !open.is_sorted() {
            return Ok(Some(open));
        }
        open.read()?;
        let read = open.rows() as u64;
        let left = self.rows_of(self.place.group).saturating_sub(self.place.row);
        if read > left || (read == 0 && left > 0) {
            let reason = format!(
                "the column does not have the {} rows that the footer states",
                self.rows_of(self.place.group)
            );
            return Err(Fault { column: Some(self.plan.time), reason });
        }
        Ok((read > 0).then_some(open))
    }

    fn sort(&mut self, mut open: Open) -> Rows {
        let first = self.before + self.place.row;
        let rows =
            self.sorter.sort(&open.columns, &open.cells, open.sorted, &mut self.times, self.place, first);
        let done = rows.rows;
        open.sorted += done;
        self.place.row += done as u64;
        self.open = Some(open);
        rows
    }

    fn open_part(&self) -> Result<Open, Fault> {
        let fault = |column: Option<usize>, e: ParquetError| Fault { column, reason: said(&e) };
        let values = self.parts.get(self.place.part).map_or(&[][..], Vec::as_slice);
        let labels = self.plan.labels.iter().map(|(at, _)| *at);
        let columns: Vec<usize> =
            [self.plan.time].into_iter().chain(labels).chain(values.iter().copied()).collect();
        let (mut readers, mut held) = (Vec::with_capacity(columns.len()), Vec::with_capacity(columns.len()));
        let (budget, mut step) = (PageBudget::default(), BLOCK_ROWS);
        for at in &columns {
            let Some(kind) = self.plan.kind(*at) else { continue };
            let of_column = budget.column();
            let reader = reader(&self.file, &self.input, self.place.group, *at, kind, of_column.clone());
            let mut reader = reader.map_err(|e| fault(Some(*at), e))?;
            let skip = usize::try_from(self.place.row).unwrap_or(usize::MAX);
            reader.skip(skip).map_err(|e| fault(Some(*at), e))?;
            of_column.settle();
            step = step.min(reader.step());
            readers.push(reader);
            held.push(of_column);
        }
        if readers.len() != columns.len() {
            return Err(Fault { column: None, reason: "a column cannot be read".into() });
        }
        let cells = vec![Vec::new(); columns.len()];
        Ok(Open { columns, readers, held, step, cells, sorted: 0 })
    }
}

impl Open {
    fn rows(&self) -> usize {
        self.cells.first().map_or(0, Vec::len)
    }

    fn is_sorted(&self) -> bool {
        self.sorted >= self.rows()
    }

    /// Reads the next block, which is empty at the end. Reads some rows of all columns at a time, until the rows, the texts
    /// or the pages that hold the texts reach a limit.
    fn read(&mut self) -> Result<(), Fault> {
        self.sorted = 0;
        self.cells.iter_mut().for_each(Vec::clear);
        self.held.iter().for_each(Held::settle);
        let rows_max = (BLOCK_CELLS / self.columns.len().max(1)).clamp(1, BLOCK_ROWS);
        let (mut text_bytes, mut wanted) = (0, 0);
        while wanted < rows_max && text_bytes < BLOCK_TEXT_BYTES && self.page_bytes() < BLOCK_PAGE_BYTES {
            let step = self.step.min(rows_max - wanted).min(self.rows_of_pages());
            wanted += step;
            for ((at, reader), cells) in self.columns.iter().zip(&mut self.readers).zip(&mut self.cells) {
                let before = cells.len();
                reader.read(step, cells).map_err(|e| Fault { column: Some(*at), reason: said(&e) })?;
                text_bytes +=
                    cells.get(before..).unwrap_or_default().iter().map(Cell::text_bytes).sum::<usize>();
            }
            let rows = self.rows();
            if let Some((at, _)) = self.columns.iter().zip(&self.cells).find(|(_, cells)| cells.len() != rows)
            {
                return Err(Fault {
                    column: Some(*at),
                    reason: "the column and the column of times differ in their number of rows".into(),
                });
            }
            if rows < wanted {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Memory of the pages that hold the texts of this block.
    fn page_bytes(&self) -> usize {
        self.held.iter().map(Held::passed).sum()
    }

    /// Number of rows that may be read before the next check. Each row may have a page of its own.
    fn rows_of_pages(&self) -> usize {
        if self.step == BLOCK_ROWS {
            return BLOCK_ROWS;
        }
        let largest = self.held.iter().map(Held::largest).max().unwrap_or(0);
        // One row at first, because it shows how large the pages are.
        (PAGES_BYTES_MAX / 2).checked_div(largest).map_or(1, |pages| pages.max(1))
    }
}

/// Opens a column of a row group.
fn reader<R: ChunkReader + 'static>(
    file: &SerializedFileReader<Shared<R>>,
    input: &Shared<R>,
    group: usize,
    at: usize,
    kind: cell::Kind,
    held: Held,
) -> ChunkResult<CellReader> {
    let group = file.get_row_group(group)?;
    let metadata = group.metadata().column(at);
    let pages = Guard::new(group.get_column_page_reader(at)?, input.clone(), metadata, held);
    let step = match metadata.column_type() {
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY if is_prefixed(metadata) => STEP_ROWS_PREFIXED,
        Type::BYTE_ARRAY | Type::FIXED_LEN_BYTE_ARRAY => STEP_ROWS,
        _ => BLOCK_ROWS,
    };
    let descriptor = metadata.column_descr_ptr();
    Ok(CellReader::new(kind, step, &descriptor, get_column_reader(descriptor.clone(), Box::new(pages))))
}

/// Checks the positions and numbers in the footer before they are used.
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
            return Err(format!(
                "not a whole Parquet file: row group {nth} has an invalid position or number"
            ));
        }
    }
    let rows = metadata.row_groups().iter().try_fold(0i64, |sum, group| sum.checked_add(group.num_rows()));
    rows.map(|_| ()).ok_or_else(|| "not a whole Parquet file: its number of rows overflows".into())
}

/// Checks the compression of the columns in all row groups, so that an unsupported compression is refused before rows are read.
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
                    "column {name:?} is compressed with {codec}, which is unsupported: use zstd or snappy"
                ));
            }
        }
    }
    Ok(())
}

/// The first cells of a column.
fn head<R: ChunkReader + 'static>(
    file: &SerializedFileReader<Shared<R>>,
    input: &Shared<R>,
    column: usize,
) -> Vec<Cell> {
    let schema = file.metadata().file_metadata().schema_descr();
    let Some(kind) = cell::Kind::of(&schema.column(column)) else { return vec![] };
    let groups = file.metadata().row_groups();
    let Some(group) = groups.iter().position(|group| group.num_rows() > 0) else { return vec![] };
    // Damage is ignored here, because it is reported when the row group is read.
    let read = guarded(|| {
        let mut reader = reader(file, input, group, column, kind, PageBudget::default().column())?;
        let mut cells = Vec::new();
        while cells.len() < HEAD_ROWS && cells.iter().map(Cell::text_bytes).sum::<usize>() < HEAD_TEXT_BYTES {
            let before = cells.len();
            let step = if before == 0 { 1 } else { reader.step().min(HEAD_ROWS - before) };
            reader.read(step, &mut cells)?;
            if cells.len() < before + step {
                break;
            }
        }
        Ok(cells)
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
        Shape::Wide(columns) => format!("one series per column of numbers ({}); {labels}", columns.len()),
        Shape::Long(columns) => {
            let name = plan.labels.iter().find(|(_, label)| label == NAME);
            let name = name.map_or(String::new(), |(at, _)| format!(" named by {}", column(at)));
            let values: Vec<String> = columns.iter().map(column).collect();
            format!("one value per row in {}{name}; {labels}", values.join(" or "))
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

/// Runs a call of the crate `parquet`. The crate reports most damage as errors and some damage as panics; this function
/// catches the panics.
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
        format!("damaged: {}", text.unwrap_or("its decoder panicked"))
    })
}

fn guarded<T>(work: impl FnOnce() -> ChunkResult<T>) -> Result<T, String> {
    unwound(work)?.map_err(|e| said(&e))
}

#[cfg(test)]
mod tests;
