//! How high can the calls of a chunk rank in a search? For each operation, the summary of the chunk has figures of the ended
//! calls: their number, how many of them failed, the shortest and the longest duration, and the slots in which the calls began.
//! It also has the shortest and the longest duration of the calls with each status.
//! From these figures, this file computes the highest possible rank. A search reads the chunks with the highest ranks first, and
//! does not read chunks whose calls cannot be in the answer.
//!
//! This file and `search.rs` use each other: a search orders chunks by these ranks, and the ranks depend on its conditions.

use tacho_chunk::{CallSummary, Cell, Edge, Point, SummarizedChunk};

use super::conditions::Statuses;
use super::search::Search;
use super::source::Outcome;
use super::top::Order;

const SECOND_NS: i64 = 1_000_000_000;

/// The highest rank ([`Order::rank`]) that an ended call of a chunk can have if it matches the search. `None` if no ended call
/// can match. Ignores calls that are still open.
pub(super) fn best(search: &Search, chunk: SummarizedChunk<'_>) -> Option<u64> {
    let within = within(search, chunk.summary)?;
    let cells: Vec<Option<u64>> =
        chunk.summary.cells.iter().map(|cell| duration(search, chunk, cell, within)).collect();
    let of_point = |point: &Point| {
        let duration_ns = cells.get(point.cell as usize).copied().flatten()?;
        let start_ns = |slot: i64| chunk.summary.slot_start_s(slot).saturating_mul(SECOND_NS);
        let wanted = search.filter.range;
        let first = start_ns(point.slot).max(chunk.range.start).max(wanted.start);
        let last = (start_ns(point.slot.saturating_add(1)) - 1).min(chunk.range.end).min(wanted.end);
        let start = if search.order == Order::Newest { last } else { first };
        (first <= last).then(|| search.order.rank(start, duration_ns))
    };
    chunk.summary.points.iter().filter_map(of_point).max()
}

/// The shortest and the longest possible duration of a call with the wanted statuses; `None` if no call has them.
fn within(search: &Search, summary: &CallSummary) -> Option<(u64, u64)> {
    let any = (0, u64::MAX);
    // A call that ends here may have its status in an earlier part, in another chunk. If the search looks for another attribute
    // first, only this chunk shows that the call exists.
    let is_split = || summary.loose.iter().any(|part| matches!(part.edge, Edge::Start(..)));
    if search.conditions.has_others() && is_split() {
        return Some(any);
    }
    // A refused call may have one name with its status and another one with its exit, so all operations count.
    let has_refused = summary.cells.iter().any(|cell| cell.refused > 0);
    if !has_refused && search.conditions.statuses().any(Statuses::are_refused) {
        return None;
    }
    search.conditions.statuses().try_fold(any, |(shortest, longest), wanted| {
        let (min, max) = summary.durations_of_statuses(|status| wanted.contain(status))?;
        Some((min.max(shortest), max.min(longest)))
    })
}

/// The best duration of the calls of a cell that may match; `None` if none can match. `within` has the shortest and the longest
/// possible duration of a call with the wanted status.
fn duration(search: &Search, chunk: SummarizedChunk<'_>, cell: &Cell, within: (u64, u64)) -> Option<u64> {
    let operation = chunk.summary.operations.get(cell.operation as usize)?;
    let has_outcome = match search.outcome {
        None => cell.count > 0,
        Some(Outcome::Ok) => cell.count > cell.errors,
        Some(Outcome::Failed) => cell.errors > 0,
        Some(Outcome::Running) => false,
    };
    let shortest = search.duration_ns_min.unwrap_or(0).max(cell.min_ns).max(within.0);
    let longest = search.duration_ns_max.unwrap_or(u64::MAX).min(cell.max_ns).min(within.1);
    let is_taken = search.takes_operation(operation) && has_outcome && shortest <= longest;
    is_taken.then_some(if search.order == Order::Slowest { longest } else { shortest })
}
