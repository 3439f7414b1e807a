//! Columns of samples in memory, between their decoding (`samples.rs`) and their encoding (`lossy.rs`).

use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::semantic::Semantic;
use tacho_chunk::{Encoding, Loss, Times, ValueColumn};
use tacho_model::{TimeRange, Timestamp};

use crate::group::resent::Moved;

/// Values of one member at the times of its class.
pub struct Column {
    pub member: u16,
    pub values: ValueColumn,
    pub loss: Option<Loss>,
    /// Places of values that were not moved.
    pub exact: Vec<Range<usize>>,
    /// What may be given up once a chunk is full.
    pub semantic: Semantic,
    pub encoding: Encoding,
}

/// Columns that have the same times.
pub struct Class {
    pub at: Arc<[Timestamp]>,
    pub times: Moving,
    /// Of its rows: the largest of the sources, or of those that it is made of.
    pub generation: u64,
    pub columns: Vec<Column>,
}

/// What is known of the times of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moving {
    /// Rows that had been moved, in order of time. What lies between them is exact.
    pub moved: Arc<[Shifted]>,
    /// They lie among moved ones: to move them, too, would mix them up.
    pub stays: bool,
}

/// A row whose times had been moved, with all of them: those that are not to be in any new row as well.
#[derive(Clone, Debug, PartialEq)]
pub struct Shifted {
    pub row: Moved,
    pub times: Times,
}

impl Shifted {
    pub fn has(&self, at: Timestamp) -> bool {
        !self.times.slice(TimeRange::new(at, at)).is_empty()
    }
}

/// What of some ranges lies within `part`, counted from its start.
pub fn within(ranges: &[Range<usize>], part: &Range<usize>) -> Vec<Range<usize>> {
    let cut = |range: &Range<usize>| {
        let range = range.start.clamp(part.start, part.end)..range.end.clamp(part.start, part.end);
        range.start - part.start..range.end - part.start
    };
    let first = ranges.partition_point(|range| range.end <= part.start);
    let here = ranges.iter().skip(first).take_while(|range| range.start < part.end);
    here.map(cut).filter(|range| !range.is_empty()).collect()
}

/// Does one of the ranges, which ascend and do not touch, hold all of `part`?
pub fn holds(ranges: &[Range<usize>], part: &Range<usize>) -> bool {
    let first = ranges.partition_point(|range| range.end < part.end);
    ranges.get(first).is_some_and(|range| range.start <= part.start)
}
