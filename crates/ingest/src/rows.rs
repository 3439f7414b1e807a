//! A file of rows, read block by block: which records are in this block, and which of its rows are broken?
//!
//! One format = one type with [`Rows`]. The step before is `server/src/command/import/`, which reads files and cuts
//! blocks where [`Rows::whole`] says; the step after is the same command, which sends the batch to a store.

use std::collections::BTreeMap;
use std::ops::Range;

use tacho_model::Batch;

use crate::budget;

/// What a byte of a block may take in memory: two make a broken row, which is named with its reason and its place.
pub const MEMORY_PER_BYTE: usize = 240;

/// The most memory that decoding a block of this many bytes takes.
pub const fn memory_bytes_max(block_bytes: usize) -> usize {
    budget::MEMORY_BYTES_MIN.saturating_add(block_bytes.saturating_mul(MEMORY_PER_BYTE))
}

/// One format of rows. A row is what is kept or refused as one: a line, most often.
pub trait Rows: Send {
    /// Length of the front of `bytes` that holds whole rows only; 0 where not even the first one is whole.
    fn whole(&self, bytes: &[u8]) -> usize;

    /// Whether a row can be understood without those before it.
    fn stand_alone(&self) -> bool {
        true
    }

    /// What a file lacks that has no more rows: it may be cut off.
    fn lacks(&self) -> Option<String> {
        None
    }

    /// Takes whole rows; `before` is the number of rows in earlier blocks of this file.
    fn decode(&mut self, block: &[u8], before: u64) -> Block;
}

/// What a block held.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub batch: Batch,
    /// Rows of the block, broken and empty ones included.
    pub rows: u64,
    pub broken: Vec<Broken>,
    /// Further rows that could not even be read, for damage that is told as one broken row.
    pub lost: u64,
    /// Texts in columns that hold no numbers, by the column's name: they are left out.
    pub texts_left_out: BTreeMap<String, u64>,
    /// Exemplars, which have no place in a series and are left out.
    pub exemplars: u64,
    /// Samples that stand for many, by what the file says: averages of an hour, say. As samples they are any other.
    pub thinned: u64,
}

/// A row that was refused, or a value of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row}{}: {reason}", place(.column))]
pub struct Broken {
    /// In the file, from 1; a header counts.
    pub row: u64,
    /// Name or position of the column, where there is one.
    pub column: Option<String>,
    pub reason: String,
    /// Where the whole row lies in the block, or in the text that stands for it.
    pub bytes: Range<usize>,
}

fn place(column: &Option<String>) -> String {
    column.as_ref().map_or_else(String::new, |column| format!(", column {column}"))
}

/// Length of whole lines at the front.
pub(crate) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

/// Lines of a block with the place of each, without their line feeds.
pub(crate) fn lines(block: &[u8]) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let mut at = 0;
    block.split_inclusive(|byte| *byte == b'\n').map(move |line| {
        let range = at..at + line.len();
        at = range.end;
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        (range, line.strip_suffix(b"\r").unwrap_or(line))
    })
}

/// Which byte of a row is not UTF-8: ` is not UTF-8: byte 0xE9 at character 12`.
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
