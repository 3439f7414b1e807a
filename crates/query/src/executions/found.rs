//! What is known about a trace that was found?
//!
//! A trace is represented by its *entry*: the earliest segment without a parent, or the earliest known segment if every segment
//! has a parent. Time, duration, outcome and status of the trace are those of the entry's first call.

use std::collections::HashMap;
use std::sync::Arc;

use tacho_chunk::{REQUEST_ID, RowRef};
use tacho_model::{Operation, OperationKind, Timestamp, TraceId};

use super::source::{Outcome, Source};

#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    pub trace_id: TraceId,
    pub service: Arc<str>,
    pub operation: Arc<str>,
    pub kind: OperationKind,
    pub start: Timestamp,
    /// If the first call of the entry has not ended: the time until the last known event of the entry.
    pub duration_ns: u64,
    /// Number of calls of the trace, of all services. Counts the calls that were entered in the blocks that the search read.
    pub calls: u64,
    pub outcome: Outcome,
    pub request_id: Option<String>,
    pub http_status: Option<i64>,
    /// The call that met the conditions, if the search has a service or an operation.
    pub matched: Option<Match>,
}

/// A call that met the conditions of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    pub service: Arc<str>,
    pub operation: Arc<str>,
    pub kind: OperationKind,
    pub start: Timestamp,
    /// If the call has not ended: the time until the last known event of its segment.
    pub duration_ns: u64,
    pub outcome: Outcome,
}

/// Times and outcome of the first call of a row.
#[derive(Clone, Copy)]
pub(super) struct FirstCall {
    pub(super) start: Timestamp,
    /// Exit of the call, or the last event of the row if the call is open at its end.
    pub(super) last: Timestamp,
    pub(super) outcome: Outcome,
}

impl FirstCall {
    pub(super) fn of(row: RowRef<'_>) -> Self {
        let age = row.ages().first().copied().unwrap_or(0);
        let left = row.shape().calls().first().and_then(|call| Some((call.exit?, call.failed)));
        Self {
            start: row.start().wrapping_sub_unsigned(age),
            last: left.map_or_else(|| row.range().end, |(exit, _)| exit_time(row, exit)),
            outcome: left.map_or(Outcome::Running, |(_, failed)| Outcome::of_exit(failed)),
        }
    }

    pub(super) const fn duration(&self) -> u64 {
        self.last.wrapping_sub(self.start).cast_unsigned()
    }
}

/// Time of the event with index `event` of a row.
fn exit_time(row: RowRef<'_>, event: u32) -> Timestamp {
    let passed =
        row.deltas().iter().take(event as usize + 1).fold(0u64, |sum, delta| sum.saturating_add(*delta));
    row.start().saturating_add_unsigned(passed)
}

struct Entry {
    /// The entry with the lowest rank represents the trace. Fields: whether the segment has a parent, number of the part, start,
    /// span base.
    rank: (bool, u32, Timestamp, u64),
    base: u64,
    service: Arc<str>,
    /// Number, within the segment, of the first call of the row.
    first_call: u32,
    times: FirstCall,
    /// The operation of the first call, from the latest known part that starts with this call.
    operation: Option<Operation>,
    /// Number of the part that `operation` is from.
    named_by: u32,
    request_id: Option<String>,
    http_status: Option<i64>,
}

impl Entry {
    fn new(source: Source<'_>, service: &Arc<str>, row: RowRef<'_>) -> Self {
        let first = row.shape().calls().first();
        let first_call = row.call_number(0);
        let request_id = row.attributes().find(|attribute| &**attribute.key == REQUEST_ID);
        Self {
            rank: (row.parent().is_some(), row.part(), row.start(), row.base()),
            base: row.base(),
            service: Arc::clone(service),
            first_call,
            times: FirstCall::of(row),
            operation: first.and_then(|call| source.block.operations().get(call.operation as usize)).cloned(),
            named_by: row.part(),
            request_id: request_id.map(|attribute| attribute.value.to_string()),
            http_status: row.statuses().find(|(call, _)| *call == first_call).map(|(_, status)| status),
        }
    }

    /// Joins two parts of one segment.
    fn join(self, other: Self) -> Self {
        let (first, later) = if other.rank < self.rank { (other, self) } else { (self, other) };
        let request_id = first.request_id.or(later.request_id);
        // If the first call ended in the earlier part, the later part starts with another call.
        if first.first_call != later.first_call {
            return Self { request_id, ..first };
        }
        let is_open = first.times.outcome == Outcome::Running && later.times.last >= first.times.last;
        let end = if is_open { later.times } else { first.times };
        let is_renamed = later.named_by > first.named_by;
        let (operation, named_by) =
            if is_renamed { (later.operation, later.named_by) } else { (first.operation, first.named_by) };
        Self {
            times: FirstCall { start: first.times.start.min(later.times.start), ..end },
            operation,
            named_by,
            request_id,
            http_status: first.http_status.or(later.http_status),
            ..first
        }
    }

    /// Whether the first part is still missing. If it arrives later, this segment may become the entry of its trace.
    const fn is_headless(&self) -> bool {
        self.rank.1 > 0
    }
}

/// Facts about the traces that a search has chosen.
#[derive(Default)]
pub(super) struct Gathering {
    traces: HashMap<TraceId, (Option<Entry>, u64)>,
    /// Segments whose first part is missing and that are currently not the entry of their trace.
    headless: HashMap<(TraceId, u64), Entry>,
}

impl Gathering {
    pub(super) fn of(traces: impl Iterator<Item = TraceId>) -> Self {
        Self { traces: traces.map(|trace| (trace, (None, 0))).collect(), headless: HashMap::new() }
    }

    pub(super) fn wants(&self, trace: TraceId) -> bool {
        self.traces.contains_key(&trace)
    }

    pub(super) fn traces(&self) -> impl Iterator<Item = TraceId> {
        self.traces.keys().copied()
    }

    /// Adds the rows of the chosen traces.
    pub(super) fn add(&mut self, source: Source<'_>) {
        let service: Arc<str> = source.service().into();
        for row in source.block.rows() {
            let Some((known, calls)) = self.traces.get_mut(&row.trace()) else { continue };
            *calls += (row.shape().calls().len() - row.shape().carried().len()) as u64;
            let entry = Entry::new(source, &service, row);
            *known = Some(match known.take() {
                None => entry,
                Some(known) => better(&mut self.headless, row.trace(), known, entry),
            });
        }
    }

    pub(super) fn into_summaries(self) -> impl Iterator<Item = TraceSummary> {
        self.traces.into_iter().filter_map(|(trace_id, (entry, calls))| {
            let entry = entry?;
            let operation = entry.operation.as_ref();
            Some(TraceSummary {
                trace_id,
                service: entry.service,
                operation: operation.map_or_else(|| "".into(), |operation| Arc::clone(&operation.name)),
                kind: operation.map_or(OperationKind::Method, |operation| operation.kind),
                start: entry.times.start,
                duration_ns: entry.times.duration(),
                calls,
                outcome: entry.times.outcome,
                request_id: entry.request_id,
                http_status: entry.http_status,
                matched: None,
            })
        })
    }
}

/// Joins two entries of a trace if they are parts of one segment. Otherwise returns the entry with the lower rank. The other
/// entry goes to `headless` if its first part is missing.
fn better(headless: &mut HashMap<(TraceId, u64), Entry>, trace: TraceId, known: Entry, row: Entry) -> Entry {
    if known.base == row.base {
        return known.join(row);
    }
    let row = match headless.remove(&(trace, row.base)) {
        Some(parts) => parts.join(row),
        None => row,
    };
    let (better, worse) = if row.rank < known.rank { (row, known) } else { (known, row) };
    if worse.is_headless() {
        headless.insert((trace, worse.base), worse);
    }
    better
}
