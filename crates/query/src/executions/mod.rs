//! Which traces, operations, call trees and dependencies do these executions show?
//!
//! Each question is one function over [`SourceBlock`]s that the caller fetched. It returns plain data with the same
//! fields as the answer in `docs/api.md`. A block holds rows; a row is one part of a segment. Rows with the same sequence
//! of events share a shape. Blocks may extend beyond the requested range. A call belongs to the range if its enter event
//! is in the range.
//!
//! Each function polls for cancellation, at least once per block.
//!
//! **Self time** of a call: the time during which it was the innermost open call of its thread. The time of calls that
//! it makes on this thread is subtracted. The time of work that it hands to other threads or services is not
//! subtracted: during that work, the call either waits or continues in parallel.
//!
//! Step before: `server/src/http/executions/fetch.rs`, which reads blocks from the store. Step after:
//! `server/src/http/executions/answer.rs`, which writes JSON.

use crate::{Cancel, Error};

mod calls;
mod calltree;
mod dot;
mod durations;
mod graph;
mod operations;
mod parents;
mod search;
mod services;
mod source;
mod timeline;
mod trace;

pub use calltree::{CallTree, CallTreeNode, calltree};
pub use graph::{Graph, GraphEdge, GraphNode, Level, graph};
pub use operations::{OperationPoint, OperationStats, operations};
pub use search::{Search, SearchResult, TraceSummary, search};
pub use services::{ServicePoint, ServiceStats, services};
pub use source::{Filter, Outcome, SourceBlock};
pub use trace::{SPANS_MAX, Span, Trace, holds, trace};

/// The blocks with their indexes. Yields an error if the query is cancelled.
fn awaited<'a>(
    blocks: &'a [SourceBlock],
    cancel: &Cancel,
) -> impl Iterator<Item = Result<(u32, &'a SourceBlock), Error>> {
    (0u32..).zip(blocks).map(|(number, source)| cancel.check().map(|()| (number, source)))
}

#[cfg(test)]
mod tests;
