//! Which traces, operations, call trees and dependencies do these executions show?
//!
//! A [`Fold`] answers most questions and reads one block at a time. A trace and a call tree are computed from [`SourceBlock`]s
//! that are all in memory. The answers are plain data with the same fields as in `docs/api.md`. A block holds rows; a row is
//! one part of a segment. Rows with the same carried calls and the same sequence of events share a shape. Blocks may extend
//! beyond the requested range. A call belongs to the range if its enter event is in the range.
//!
//! **Self time** of a call: the time during which it was the innermost open call of its thread. The self time of an http-client
//! call excludes the time of the recorded http-server call that it caused. It includes the time of other work that the call hands
//! to other threads or services: during that work, the call waits or continues in parallel.
//!
//! Step before: `server/src/http/executions/fetch.rs`, which reads blocks from the store. Step after:
//! `server/src/http/executions/answer.rs`, which writes JSON.

use crate::{Cancel, Error};

mod best;
mod calls;
mod calltree;
mod causes;
mod conditions;
mod counters;
mod cursor;
mod dot;
mod durations;
mod fold;
mod found;
mod graph;
mod limits;
mod operations;
mod parents;
mod parts;
mod rootless;
mod search;
mod services;
mod source;
mod spanning;
mod timeline;
mod top;
mod trace;

pub use calltree::{CallTree, CallTreeNode, calltree};
pub use conditions::{AttributeTest, Conditions, Statuses};
pub use counters::{Counter, CounterKey, CounterList, Counters, Counts};
pub use cursor::Cursor;
pub use durations::QUANTILE_ERROR;
pub use fold::{Fold, Scope, over};
pub use found::{Match, TraceSummary};
pub use graph::{Graph, GraphEdge, GraphNode, Graphing, Level};
pub use limits::Incomplete;
pub use operations::{OperationPoint, OperationStats, Operations};
pub use search::{Search, SearchResult, Searching};
pub use services::{ServicePoint, ServiceStats, Services};
pub use source::{Filter, LabelsOf, Outcome, Source, SourceBlock};
pub use top::Order;
pub use trace::{SPANS_MAX, Span, Trace, trace};

/// The blocks with their indexes, or an error if the query is cancelled.
fn awaited<'a>(
    blocks: &'a [SourceBlock],
    cancel: &Cancel,
) -> impl Iterator<Item = Result<(u32, &'a SourceBlock), Error>> {
    (0u32..).zip(blocks).map(|(number, source)| cancel.check().map(|()| (number, source)))
}

#[cfg(test)]
mod tests;
