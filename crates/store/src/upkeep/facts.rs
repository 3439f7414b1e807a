//! What merges are chosen by: one row without its records, and the first row that is not known.

use tacho_model::{TimeRange, Timestamp};

use crate::group::resent::Overhang;
use crate::group::row::Replacement;
use crate::keys::ChunkKey;

/// What is known of a row without decoding its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub key: ChunkKey,
    /// Its last moment.
    pub end: Timestamp,
    /// By how much its times may have been moved, ns; 0 of what is no row of samples.
    pub error: u64,
    pub overhang: Overhang,
    /// Times, entries or calls: what a chunk is measured by.
    pub records: usize,
    /// Numbers to decode: records by members.
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
    /// In which what comes later may be what it holds, sent again.
    pub const fn reach(&self) -> TimeRange {
        self.overhang.around(TimeRange::new(self.key.start, self.end))
    }

    /// Would one of two values with the same time win?
    pub const fn conflicts(&self, other: &Self) -> bool {
        self.members & other.members != 0
    }

    /// One merge wrote both: what was between them is settled.
    pub fn is_sibling(&self, other: &Self) -> bool {
        self.replacement.is_some() && self.replacement == other.replacement
    }
}

/// What the rules say of a row as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    #[default]
    Sound,
    /// To be written anew: a deletion hides a part of it, some members have had their time, or it is too fine for its age.
    Due,
    /// All of it has had its time.
    Expired,
}

/// The first row behind those that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub start: Timestamp,
    /// Where the reach begins of it and of all that are behind it.
    pub reach: Timestamp,
}

impl Next {
    /// What begins here and reaches no further back.
    pub const fn at(start: Timestamp) -> Self {
        Self { start, reach: start }
    }
}
