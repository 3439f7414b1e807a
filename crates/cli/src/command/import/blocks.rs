//! An open file of any format. Records are read block by block, and reading can resume at a [`Mark`].

use serde::{Deserialize, Serialize};
use tacho_ingest::rows::{Block, Rows};

use super::source::Source;
use crate::failure::Failure;

/// An open file with a known format.
pub trait Blocks {
    /// Returns `None` at the end.
    fn next(&mut self) -> Result<Option<Part>, Failure>;

    /// The position after the blocks returned so far. `None` if rows cannot be parsed without the rows before them.
    fn mark(&self) -> Option<Mark>;

    /// Resumes at a mark of an earlier run. Returns false if the mark does not match the file, because the file has changed.
    fn seek_to(&mut self, mark: &Mark) -> Result<bool, Failure>;

    /// Position in the uncompressed file, bytes. For Parquet, the number of rows before the position.
    fn offset(&self) -> u64;

    /// A message if the file lacks its end marker, and may be truncated. Known when all blocks are read.
    fn lacks(&self) -> Option<String> {
        None
    }
}

/// A block, and the text of its rows.
pub struct Part {
    pub block: Block,
    /// The bytes of all rows of the block. For Parquet, only the broken rows, as JSON lines.
    pub text: Vec<u8>,
}

/// A position in a file. `check` is a checksum of the head of the file and of a second stretch, to detect changes of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// A byte of the uncompressed file, and the number of rows before it. The second stretch of `check` is the bytes right
    /// before the position.
    Row { offset: u64, rows: u64, check: u64 },
    /// A row group, a part of its columns, and a row, each counted from 0. A part is the value columns that are read together.
    /// The second stretch of `check` is the end of the file.
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

pub struct Lines {
    pub source: Source,
    pub rows: Box<dyn Rows>,
    /// Number of rows already read, including a header.
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
