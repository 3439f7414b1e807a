//! Inputs to the choice of merges: facts about each row of a window, available without decoding its records, and the
//! first row after the window.

use tacho_model::{TimeRange, Timestamp};

use crate::group::resent::Overhang;
use crate::group::row::Replacement;
use crate::keys::ChunkKey;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub key: ChunkKey,
    /// Time of the last record.
    pub end: Timestamp,
    /// Largest change of the row's times by a rule, ns; 0 for entries and executions.
    pub error: u64,
    pub overhang: Overhang,
    /// Number of timestamps (of samples), entries or calls. The size of a chunk is measured in this unit.
    pub records: usize,
    /// Values to decode: the records, multiplied by the members.
    pub values: usize,
    /// Bit mask of the members of the group with values in this row; 1 for entries and executions.
    pub members: u64,
    /// Only rows of the same bucket can share a chunk.
    pub bucket: i64,
    /// `None` for a row that no merge wrote.
    pub replacement: Option<Replacement>,
    pub state: State,
}

impl Facts {
    /// Time range in which samples that arrive later may be copies of the row's samples.
    pub const fn reach(&self) -> TimeRange {
        self.overhang.around(TimeRange::new(self.key.start, self.end))
    }

    /// Whether a sample of one row could replace a sample of the other row with the same time.
    pub const fn conflicts(&self, other: &Self) -> bool {
        self.members & other.members != 0
    }

    /// Whether the same merge wrote both rows. Overlaps between such rows are resolved.
    pub fn is_sibling(&self, other: &Self) -> bool {
        self.replacement.is_some() && self.replacement == other.replacement
    }
}

/// Work that rules and deletions require for a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Sound,
    /// The row must be rewritten. A deletion may mask records of it, some of its members are expired, or its resolution is too
    /// high for its age.
    Due,
    Expired,
}

/// The first row after the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub start: Timestamp,
    /// Earliest start of the reach of this row and all later rows.
    pub reach: Timestamp,
}

impl Next {
    /// A row that starts at `start` and does not reach further back.
    pub const fn at(start: Timestamp) -> Self {
        Self { start, reach: start }
    }
}
