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
    /// Indices of values that were not changed.
    pub exact: Vec<Range<usize>>,
    /// Permitted loss of precision in a full chunk.
    pub semantic: Semantic,
    pub encoding: Encoding,
}

/// Columns that have the same times.
pub struct Class {
    pub at: Arc<[Timestamp]>,
    pub times: Moving,
    /// Generation of its rows: the largest of the sources, or of its parts.
    pub generation: u64,
    pub columns: Vec<Column>,
}

/// Facts of the times of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moving {
    /// Rows with moved times, in order of time. Times between them are exact.
    pub moved: Arc<[Shifted]>,
    /// Exact times between moved ones: moving them, too, would change the order.
    pub stays: bool,
}

/// A row with moved times, with all of its times, also those that no new row has.
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

/// The parts of some ranges within `part`, counted from its start.
pub fn within(ranges: &[Range<usize>], part: &Range<usize>) -> Vec<Range<usize>> {
    let cut = |range: &Range<usize>| {
        let range = range.start.clamp(part.start, part.end)..range.end.clamp(part.start, part.end);
        range.start - part.start..range.end - part.start
    };
    let first = ranges.partition_point(|range| range.end <= part.start);
    let here = ranges.iter().skip(first).take_while(|range| range.start < part.end);
    here.map(cut).filter(|range| !range.is_empty()).collect()
}

/// Whether one of the ranges, which ascend and do not touch, holds all of `part`.
pub fn holds(ranges: &[Range<usize>], part: &Range<usize>) -> bool {
    let first = ranges.partition_point(|range| range.end < part.end);
    ranges.get(first).is_some_and(|range| range.start <= part.start)
}
