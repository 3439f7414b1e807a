//! A file of rows, decoded block by block: which records are in this block, and which of its rows are broken?
//!
//! One format = one type with [`Rows`]. The step before is `cli/src/command/import/`, which reads files and cuts
//! blocks at [`Rows::whole`]; the step after is the same command, which sends the batch to a store.

use std::collections::BTreeMap;
use std::ops::Range;

use tacho_model::Batch;

use crate::budget;

/// Memory per byte of a block: two bytes make a broken row, which is reported with its reason and position.
pub const MEMORY_PER_BYTE: usize = 240;

/// The most memory that decoding a block of this many bytes takes.
pub const fn memory_bytes_max(block_bytes: usize) -> usize {
    budget::MEMORY_BYTES_MIN.saturating_add(block_bytes.saturating_mul(MEMORY_PER_BYTE))
}

/// One format of rows. A row is the unit that is kept or refused: usually a line.
pub trait Rows: Send {
    /// Length of the whole rows at the front of `bytes`; 0 where the first row is incomplete.
    fn whole(&self, bytes: &[u8]) -> usize;

    /// Whether a row can be decoded without the rows before it.
    fn stand_alone(&self) -> bool {
        true
    }

    /// The item missing at the end of a file, which may be truncated.
    fn lacks(&self) -> Option<String> {
        None
    }

    /// Decodes whole rows; `before` is the number of rows in earlier blocks of this file.
    fn decode(&mut self, block: &[u8], before: u64) -> Block;
}

/// The result of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub batch: Batch,
    /// Rows of the block, broken and empty ones included.
    pub rows: u64,
    pub broken: Vec<Broken>,
    /// Further rows lost to damage that is reported as one broken row.
    pub lost: u64,
    /// Texts in columns without numbers, by the column's name: they are ignored.
    pub texts_left_out: BTreeMap<String, u64>,
    /// Exemplars, which a series cannot hold: they are ignored.
    pub exemplars: u64,
    /// Samples that represent many, according to the file: averages of an hour, for example. They are stored like
    /// other samples.
    pub thinned: u64,
}

/// A row, or a value of it, that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row}{}: {reason}", place(.column))]
pub struct Broken {
    /// In the file, from 1; a header counts.
    pub row: u64,
    /// Name or position of the column, where there is one.
    pub column: Option<String>,
    pub reason: String,
    /// Position of the whole row in the block, or in its textual form.
    pub bytes: Range<usize>,
}

fn place(column: &Option<String>) -> String {
    column.as_ref().map_or_else(String::new, |column| format!(", column {column}"))
}

/// Length of the whole lines at the front.
pub(crate) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Lines of a block with the position of each, without their line feeds.
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let mut at = 0;
    block.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let range = at..at + line.len();
        at = range.end;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (range, line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// The byte of a row that is not UTF-8: ` is not UTF-8: byte 0xE9 at character 12`.
pub(crate) fn not_utf8(row: &[u8], error: std::str::Utf8Error) -> String {
    let (good, bad) = row.split_at_checked(error.valid_up_to()).unwrap_or((row, &[]));
    let byte = bad.first().copied().unwrap_or_default();
    let characters = String::from_utf8_lossy(good).chars().count();
    format!(" is not UTF-8: byte 0x{byte:02X} at character {}", characters + 1)
}

/// Characters of a value that a message shows.
const SHOWN_CHARS_MAX: usize = 48;

/// The beginning of a value, quoted.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{:?}...", text.get(..end).unwrap_or(text)),
        None => format!("{text:?}"),
    }
}
