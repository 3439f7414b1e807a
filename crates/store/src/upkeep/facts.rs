//! Inputs to the choice of merges: the facts of one row without its records, and the first unknown row.

use tacho_model::{TimeRange, Timestamp};

use crate::group::resent::Overhang;
use crate::group::row::Replacement;
use crate::keys::ChunkKey;

/// Facts of a row that need no decoding of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub key: ChunkKey,
    /// Time of the last record.
    pub end: Timestamp,
    /// Limit of the change of its times by a rule, ns; 0 for rows of other kinds.
    pub error: u64,
    pub overhang: Overhang,
    /// Times, entries or calls: the size of a chunk is measured in them.
    pub records: usize,
    /// Values to decode: records times members.
    pub values: usize,
    /// One bit for each member of the group that has values here; 1 for entries and executions.
    pub members: u64,
    /// Only rows of one bucket can share a chunk.
    pub bucket: i64,
    /// `None` for a row that no merge wrote.
    pub replacement: Option<Replacement>,
    pub state: State,
}

impl Facts {
    /// Time range in which later samples may be resent copies of its samples.
    pub const fn reach(&self) -> TimeRange {
        self.overhang.around(TimeRange::new(self.key.start, self.end))
    }

    /// Whether one of two values with the same time would replace the other.
    pub const fn conflicts(&self, other: &Self) -> bool {
        self.members & other.members != 0
    }

    /// One merge wrote both: overlaps between them are resolved.
    pub fn is_sibling(&self, other: &Self) -> bool {
        self.replacement.is_some() && self.replacement == other.replacement
    }
}

/// The work that the rules require for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Sound,
    /// To be rewritten: a deletion masks a part of it, some members are expired, or its resolution is too high for its age.
    Due,
    /// All of its records are expired.
    Expired,
}

/// The first row behind the known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub start: Timestamp,
    /// Start of the reach of this row and of all behind it.
    pub reach: Timestamp,
}

impl Next {
    /// A row that starts here and reaches no further back.
    pub const fn at(start: Timestamp) -> Self {
        Self { start, reach: start }
    }
}
