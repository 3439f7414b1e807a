//! Which call caused this segment? The inverse of `mix64` turns the span id of the causing call into a number: the span base of
//! the segment that contains this call, plus the number of the call.

use tacho_chunk::RowRef;
use tacho_model::{SpanId, TraceId, unmix64};

use super::awaited;
use super::source::SourceBlock;
use crate::{Cancel, Error};

/// The position of a row: the index of its block, and its index in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) block: u32,
    pub(super) row: u32,
}

impl Place {
    pub(super) fn row<'a>(&self, blocks: &'a [SourceBlock]) -> RowRef<'a> {
        blocks[self.block as usize].block.row(self.row as usize)
    }
}

/// Index of spans with lookup in logarithmic time.
pub(super) struct Parents {
    /// Span base, trace, first call and place of each row that enters calls; sorted. A row without an enter may have the same
    /// first call as the next part of its segment.
    rows: Vec<(u64, TraceId, u32, Place)>,
}

impl Parents {
    /// Builds the index. It stays empty when no row has a parent.
    pub(super) fn new(blocks: &[SourceBlock], cancel: &Cancel) -> Result<Self, Error> {
        let mut asked = false;
        for source in awaited(blocks, cancel) {
            asked = asked || source?.1.block.rows().any(|row| row.parent().is_some());
        }
        let mut rows = vec![];
        for source in awaited(blocks, cancel).filter(|_| asked) {
            let (block, source) = source?;
            let entry =
                |(row, r): (u32, RowRef<'_>)| (r.base(), r.trace(), r.first_call(), Place { block, row });
            let enters = |(_, r): &(u32, RowRef<'_>)| !r.entered().is_empty();
            rows.extend((0u32..).zip(source.block.rows()).filter(enters).map(entry));
        }
        rows.sort_unstable();
        Ok(Self { rows })
    }

    /// Finds the row and the index of the call with this span id in this trace. Span ids of other tracers are not found.
    pub(super) fn find(
        &self,
        blocks: &[SourceBlock],
        trace: TraceId,
        span: SpanId,
    ) -> Option<(Place, usize)> {
        let counter = unmix64(span.0);
        let after = self.rows.partition_point(|(base, ..)| *base <= counter);
        let base = self.rows.get(after.checked_sub(1)?)?.0;
        let call = u32::try_from(counter - base).ok()?;
        let after =
            self.rows.partition_point(|(b, t, first_call, _)| (*b, *t, *first_call) <= (base, trace, call));
        let (found_base, found_trace, first_call, place) = *self.rows.get(after.checked_sub(1)?)?;
        let shape = place.row(blocks).shape();
        let position = shape.carried().len() + call.checked_sub(first_call)? as usize;
        ((found_base, found_trace) == (base, trace) && position < shape.calls().len())
            .then_some((place, position))
    }
}
