//! Which calls does a row hold, and how long did each call take?

use std::collections::{HashMap, HashSet};

pub(super) use tacho_chunk::Visit;
use tacho_chunk::{RowRef, part_gap};
use tacho_model::{Timestamp, TraceId};

use super::awaited;
use super::source::SourceBlock;
use crate::{Cancel, Error};

/// Walks over the rows of blocks and reuses its buffers. A row is a part of a segment, because long segments are split. A walker
/// from [`Walker::over`] also adds the time between two parts of a segment to the self time of the call that is innermost at the
/// start of the later part.
#[derive(Default)]
pub(super) struct Walker {
    walker: tacho_chunk::Walker,
    ends: PartEnds,
}

/// Time of the last event of each part that is followed by another part. The time between two parts is self time of the
/// innermost call that is open where the segment is split.
#[derive(Default)]
struct PartEnds(HashMap<(TraceId, u64, u32), Timestamp>);

impl PartEnds {
    fn new(blocks: &[SourceBlock], cancel: &Cancel) -> Result<Self, Error> {
        let before = |row: RowRef<'_>| Some((row.trace(), row.base(), row.part().checked_sub(1)?));
        let mut asked = HashSet::new();
        for source in awaited(blocks, cancel) {
            asked.extend(source?.1.block.rows().filter_map(before));
        }
        let end = |row: RowRef<'_>| {
            let key = (row.trace(), row.base(), row.part());
            let last = || row.deltas().iter().fold(row.start(), |at, delta| at.wrapping_add_unsigned(*delta));
            asked.contains(&key).then(|| (key, last()))
        };
        let mut ends = HashMap::new();
        for source in awaited(blocks, cancel).filter(|_| !asked.is_empty()) {
            ends.extend(source?.1.block.rows().filter_map(end));
        }
        Ok(Self(ends))
    }

    /// Time from the last event of the previous part to the first event of `row`, ns; 0 if the previous part is missing.
    fn gap(&self, row: RowRef<'_>) -> u64 {
        let before = row.part().checked_sub(1).and_then(|part| self.0.get(&(row.trace(), row.base(), part)));
        before.map_or(0, |end| part_gap(*end, row.start()))
    }
}

impl Walker {
    /// A walker for the rows of these blocks. Reads all rows to find the ends of parts.
    pub(super) fn over(blocks: &[SourceBlock], cancel: &Cancel) -> Result<Self, Error> {
        Ok(Self { ends: PartEnds::new(blocks, cancel)?, ..Self::default() })
    }

    /// Enter time of a call of the row that was walked last.
    pub(super) fn start(&self, position: usize) -> Timestamp {
        self.walker.start(position)
    }

    /// As [`tacho_chunk::Walker::walk`].
    pub(super) fn walk<'a>(&mut self, row: RowRef<'a>, visit: impl FnMut(Visit<'a>)) -> Timestamp {
        self.walker.walk(row, self.ends.gap(row), visit)
    }
}
