//! Does a reader that accepts summaries need the calls of a chunk?

use tacho_chunk::Chunk;
use tacho_model::TimeRange;

use super::rows::Found;

/// How a reader that accepts summaries uses a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Nothing,
    /// The reader uses the summary of the chunk. If the chunk has no usable summary, the reader uses the calls.
    Summary,
    Calls,
}

/// How a reader uses chunks of these generations, first and last, which have records from the first to the last time of the
/// range.
pub type Usage<'a> = &'a (dyn Fn((u64, u64), TimeRange, HasSummary) -> Use + Sync);

/// Whether there is a summary.
pub type HasSummary = bool;

/// How the reader uses the chunk of a row. Damaged rows are read, so that the damage is reported.
pub fn usage_of(row: &Found, usage: Usage<'_>) -> Use {
    match Chunk::open_header(&row.chunk, row.whole) {
        Ok(header) if row.damaged.is_none() => {
            let has_summary = header.summary.is_some_and(|summary| summary.bytes > 0);
            let generation = row.key.generation;
            usage((generation, generation), TimeRange::new(header.start, header.end), has_summary)
        }
        _ if row.counts() => Use::Calls,
        _ => Use::Nothing,
    }
}
