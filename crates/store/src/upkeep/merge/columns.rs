//! Columns of samples in memory, between decoding (`samples.rs`) and encoding (`lossy.rs`).

use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::semantic::Semantic;
use tacho_chunk::{Encoding, Loss, Times, ValueColumn};
use tacho_model::{TimeRange, Timestamp};

use crate::group::resent::Moved;

/// Values of one member at the times of a class.
pub struct Column {
    pub member: u16,
    pub values: ValueColumn,
    pub loss: Option<Loss>,
    /// Index ranges of values that were not changed.
    pub exact: Vec<Range<usize>>,
    /// Permitted loss of precision. It applies to a chunk that is not expected to grow any more (`lossy.rs`).
    pub semantic: Semantic,
    pub encoding: Encoding,
}

/// Columns with the same times.
pub struct Class {
    pub at: Arc<[Timestamp]>,
    pub times: Moving,
    /// Generation of the new rows: the largest generation of all sources. For exact times between moved times: the
    /// largest generation of the sources of these times only.
    pub generation: u64,
    pub columns: Vec<Column>,
}

/// Information about the moved times of a class: times that a rule with a permitted error changed (`lossy.rs`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Moving {
    /// Rows with moved times, ordered by time. All times between these rows are exact.
    pub moved: Arc<[Shifted]>,
    /// Whether exact times must stay exact, for one of two reasons. If the exact times are between moved times, moving them
    /// could change the order of samples. If columns of one member interlace, resent samples could not be assigned to
    /// their originals after a move.
    pub stays: bool,
}

/// A row with moved times. `times` has all times of the row, including those that are in no new row.
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

/// The intersections of the ranges with `part`, as offsets from the start of `part`.
pub fn within(ranges: &[Range<usize>], part: &Range<usize>) -> Vec<Range<usize>> {
    let cut = |range: &Range<usize>| {
        let range = range.start.clamp(part.start, part.end)..range.end.clamp(part.start, part.end);
        range.start - part.start..range.end - part.start
    };
    let first = ranges.partition_point(|range| range.end <= part.start);
    let here = ranges.iter().skip(first).take_while(|range| range.start < part.end);
    here.map(cut).filter(|range| !range.is_empty()).collect()
}

/// Whether one of the ranges contains all of `part`. The ranges are in ascending order and do not touch.
pub fn holds(ranges: &[Range<usize>], part: &Range<usize>) -> bool {
    let first = ranges.partition_point(|range| range.end < part.end);
    ranges.get(first).is_some_and(|range| range.start <= part.start)
}
