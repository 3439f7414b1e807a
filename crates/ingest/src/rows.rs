//! Which records are in a block of a file of rows, and which rows of the block are broken?
//!
//! Each text format is one type that implements [`Rows`]. Step before: `cli/src/command/import/`, which reads files and cuts
//! blocks at [`Rows::whole`]. Step after: the same command, which sends the batch to a store.

use std::collections::BTreeMap;
use std::ops::Range;

use tacho_model::Batch;

use crate::budget;

/// Memory per byte of a block. Two bytes can be a broken row, which is reported with its reason and position.
pub const MEMORY_PER_BYTE: usize = 240;

pub const fn memory_bytes_max(block_bytes: usize) -> usize {
    budget::MEMORY_BYTES_MIN.saturating_add(block_bytes.saturating_mul(MEMORY_PER_BYTE))
}

/// One format of rows. A row is the unit that is kept or refused, usually a line.
pub trait Rows: Send {
    /// Length of the complete rows at the front of `bytes`; 0 if the first row is incomplete.
    fn whole(&self, bytes: &[u8]) -> usize;

    /// Whether each row can be decoded without the rows before it.
    fn stand_alone(&self) -> bool {
        true
    }

    /// Called at the end of a file. Returns a message if the file lacks its end marker, because it may be truncated.
    fn lacks(&self) -> Option<String> {
        None
    }

    /// Decodes complete rows. `before` is the number of rows in earlier blocks of this file.
    fn decode(&mut self, block: &[u8], before: u64) -> Block;
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub batch: Batch,
    /// Number of rows of the block, including broken and empty rows.
    pub rows: u64,
    pub broken: Vec<Broken>,
    /// Number of rows in `broken` whose other values are in the batch.
    pub partly: u64,
    /// Number of further rows lost to damage that is reported as one broken row.
    pub lost: u64,
    /// Number of ignored texts in columns without numbers, by name of the column.
    pub texts_skipped: BTreeMap<String, u64>,
    /// Number of ignored exemplars. A series cannot hold exemplars.
    pub exemplars: u64,
    /// Number of samples that represent many samples according to the file, for example averages of an hour. They are
    /// stored like other samples.
    pub thinned: u64,
}

/// A refused row, or a row with a refused value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", place(*.row, .at))]
pub struct Broken {
    /// Number of the row in the file, counted from 1. A header counts as a row.
    pub row: u64,
    pub at: At,
    pub reason: String,
    /// Position of the whole row in the block or, for Parquet, in the text that is written for broken rows.
    pub bytes: Range<usize>,
}

/// The place of a fault in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    Unknown,
    /// Name or position of a column.
    Column(String),
    /// Number of a byte in the line of text, counted from 1.
    Byte(usize),
}

fn place(row: u64, at: &At) -> String {
    match at {
        At::Unknown => format!("row {row}"),
        At::Column(column) => format!("row {row}, column {column}"),
        At::Byte(byte) => format!("line {row}, byte {byte}"),
    }
}

/// Length of the complete lines at the front.
pub(crate) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Lines of a block without their line ends, each with its position, which includes the line end.
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let mut at = 0;
    block.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let range = at..at + line.len();
        at = range.end;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (range, line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Describes the byte of a row that is not UTF-8: ` is not UTF-8: byte 0xE9 at character 12`.
pub(crate) fn not_utf8(row: &[u8], error: std::str::Utf8Error) -> String {
    let (good, bad) = row.split_at_checked(error.valid_up_to()).unwrap_or((row, &[]));
    let byte = bad.first().copied().unwrap_or_default();
    let characters = String::from_utf8_lossy(good).chars().count();
    format!(" is not UTF-8: byte 0x{byte:02X} at character {}", characters + 1)
}

/// Limit on the number of characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 48;

/// Puts a value into quotes; only the beginning of a long value.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}
