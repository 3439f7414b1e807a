//! An open file of any format: reads records block by block and gives the mark to resume from.

use serde::{Deserialize, Serialize};
use tacho_ingest::rows::{Block, Rows};

use super::source::Source;
use crate::failure::Failure;

/// A file whose format is detected.
pub trait Blocks {
    /// `None` at the end.
    fn next(&mut self) -> Result<Option<Part>, Failure>;

    /// The position after the blocks returned so far; `None` where rows cannot be parsed without the rows before them.
    fn mark(&self) -> Option<Mark>;

    /// Resumes at a mark of an earlier run; false when the file has changed since.
    fn seek_to(&mut self, mark: &Mark) -> Result<bool, Failure>;

    /// Bytes of the uncompressed file that were returned, or rows.
    fn offset(&self) -> u64;

    /// Records missing in the file; known once all blocks are read.
    fn lacks(&self) -> Option<String> {
        None
    }
}

/// A block, and the bytes of its rows (or values that identify them).
pub struct Part {
    pub block: Block,
    pub text: Vec<u8>,
}

/// A position in a file, with checksums of the file's head and of a stretch that detect a changed file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Byte of the uncompressed file, and the rows before it; the stretch is the bytes right before it.
    Row { offset: u64, rows: u64, check: u64 },
    /// Row group, part of its columns, and row; the stretch is the end of the file.
    Group { group: u64, part: u64, row: u64, check: u64 },
}

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Row { offset, rows, .. } => write!(f, "row {}, byte {offset}", rows + 1),
            Self::Group { group, row, .. } => write!(f, "row {} of row group {group}", row + 1),
        }
    }
}

/// Rows one after the other.
pub struct Lines {
    pub source: Source,
    pub rows: Box<dyn Rows>,
    /// Rows already read, including a header.
    pub before: u64,
}

impl Blocks for Lines {
    fn next(&mut self) -> Result<Option<Part>, Failure> {
        let Some(text) = self.source.block(&*self.rows)? else { return Ok(None) };
        let block = self.rows.decode(&text, self.before);
        self.before += block.rows;
        Ok(Some(Part { block, text }))
    }

    fn mark(&self) -> Option<Mark> {
        let (offset, check) = (self.source.offset, self.source.check());
        self.rows.stand_alone().then_some(Mark::Row { offset, rows: self.before, check })
    }

    fn seek_to(&mut self, mark: &Mark) -> Result<bool, Failure> {
        let Mark::Row { offset, rows, check } = *mark else { return Ok(false) };
        self.before = rows;
        self.source.seek_to(offset)?;
        Ok(self.source.offset == offset && self.source.check() == check)
    }

    fn offset(&self) -> u64 {
        self.source.offset
    }

    fn lacks(&self) -> Option<String> {
        self.rows.lacks()
    }
}
