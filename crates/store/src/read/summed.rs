//! Which calls does a summary have?

use tacho_chunk::{CallSummary, SummarizedChunk};
use tacho_model::TimeRange;

/// A summary that a read uses instead of calls.
#[derive(Clone, Copy, Debug)]
pub struct Summed<'a> {
    pub summary: &'a CallSummary,
    pub of: SummedOf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummedOf {
    /// Calls that have not expired. All are in the range, which is the first and the last time of their chunks.
    Chunks(TimeRange),
    /// The expired calls of a day. All are in the range. If the caller refuses the summary, it gets those of the hours.
    Day { lacks_calls: bool },
    /// The expired calls of an hour: those of the segments that started in it. Nothing else has these calls. `is_cut`: the range
    /// has only a part of the hour.
    Hour { is_cut: bool, lacks_calls: bool },
    /// Like `Hour`, for the hour before the range. Calls of a segment may begin after the hour in which the segment started.
    HourBefore,
}

impl<'a> Summed<'a> {
    pub(super) const fn of_chunk(chunk: SummarizedChunk<'a>) -> Self {
        Self { summary: chunk.summary, of: SummedOf::Chunks(chunk.range) }
    }
}

impl SummedOf {
    /// Whether nothing else has these calls.
    pub const fn is_only(self) -> bool {
        matches!(self, Self::Hour { .. } | Self::HourBefore)
    }
}
