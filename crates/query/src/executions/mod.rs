//! Here are executions: which traces, operations, call trees and dependencies do they show?
//!
//! Each question is one function over [`SourceBlock`]s that the caller fetched, and answers with plain data that mirrors
//! `docs/api.md` field by field. Blocks may reach beyond the range that is asked for: a call belongs to the moment at which it
//! was entered.
//!
//! A question may take long: each looks now and then, between blocks at least, whether anybody still waits.
//!
//! What a call's **self time** is: the time during which it was the innermost open call of its thread. Calls it makes are taken
//! off; work that it hands to other threads or services is not, because it waits for that, or goes on, in its own time.
//!
//! Step before: `server/src/http/executions/fetch.rs`, which reads blocks from the store; step after:
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

/// The blocks with their numbers, as long as somebody waits for the answer.
fn awaited<'a>(
    blocks: &'a [SourceBlock],
    cancel: &Cancel,
) -> impl Iterator<Item = Result<(u32, &'a SourceBlock), Error>> {
    (0u32..).zip(blocks).map(|(number, source)| cancel.check().map(|()| (number, source)))
}

#[cfg(test)]
mod tests;
