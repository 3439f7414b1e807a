//! Which traces match a search? Newest first.
//!
//! A trace is represented by its *entry*: the segment without a parent, or the first known segment if every segment has
//! a parent. Time, duration and outcome of the trace are those of the entry's first call. A condition on service,
//! operation or request id is met if any call of the trace meets it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use tacho_chunk::{AttributeData, RowRef};
use tacho_model::{AttributeValue, Operation, OperationKind, Timestamp, TraceId};

use super::awaited;
use super::parents::Place;
use super::source::{Filter, Outcome, SourceBlock};
use crate::{Cancel, Error};

/// Attributes that every HTTP probe records.
const REQUEST_ID: &str = "request.id";
const HTTP_STATUS: &str = "http.status";

/// Conditions of a search. `None` means that there is no such condition.
#[derive(Clone, Debug)]
pub struct Search {
    pub filter: Filter,
    /// Both inclusive, ns.
    pub duration_ns_min: Option<u64>,
    pub duration_ns_max: Option<u64>,
    pub outcome: Option<Outcome>,
    pub request_id: Option<String>,
    /// Limit on the number of traces.
    pub limit: usize,
}

/// The traces found.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    pub traces: Vec<TraceSummary>,
    /// Whether more traces than the limit matched.
    pub truncated: bool,
    /// Number of traces examined.
    pub scanned: usize,
}

/// A trace that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSummary {
    pub trace_id: TraceId,
    pub service: Arc<str>,
    pub operation: Arc<str>,
    pub kind: OperationKind,
    pub start: Timestamp,
    /// If the call has not ended: the time until its last known event.
    pub duration_ns: u64,
    /// Number of calls entered, in all services examined.
    pub calls: u64,
    pub outcome: Outcome,
    pub request_id: Option<String>,
    pub http_status: Option<i64>,
}

/// Facts about a trace that are collected while rows are read.
struct Gathered {
    entry: Entry,
    calls: u64,
    operation_seen: bool,
    request_seen: bool,
}

/// The entry of a trace: the segment that represents the trace.
#[derive(Clone, Copy)]
struct Entry {
    /// The lower key is the better entry. A segment without a parent is better, then an earlier part, then an earlier
    /// start; the span base breaks ties.
    rank: (bool, u32, Timestamp, u64),
    place: Place,
    /// Index of its first call within the segment.
    first_call: u32,
    /// The latest part that starts with the first call. The operation of the trace is taken from this part.
    named: (u32, Place),
    base: u64,
    start: Timestamp,
    /// Last known time of the first call.
    last: Timestamp,
    outcome: Outcome,
}

impl Entry {
    fn new(row: RowRef<'_>, place: Place) -> Self {
        let rank = (row.parent().is_some(), row.part(), row.start(), row.base());
        let (first, end) = (row.shape().calls().first(), row.range().end);
        let age = row.ages().first().copied().unwrap_or(0);
        // The first call of a row is its outermost call. Its exit is the last event of the row, or the call is open
        // at the end of the row.
        let left = first.filter(|call| call.exit.is_some());
        Self {
            rank,
            place,
            first_call: row.call_number(0),
            named: (row.part(), place),
            base: row.base(),
            start: row.start().wrapping_sub_unsigned(age),
            last: left.map_or(end, |call| exit_time(row, call.exit.unwrap_or_default())),
            outcome: left.map_or(Outcome::Running, |call| Outcome::of_exit(call.failed)),
        }
    }

    /// Joins two parts of one segment.
    fn join(self, other: Self) -> Self {
        let (first, later) = if other.rank < self.rank { (other, self) } else { (self, other) };
        // If the first call ended in the earlier part, the later part starts with another call. The later part then has no
        // further facts about the first call.
        if first.first_call != later.first_call {
            return first;
        }
        let end = if first.outcome == Outcome::Running && later.last >= first.last { later } else { first };
        let (start, named) = (first.start.min(later.start), first.named.max(later.named));
        Self { last: end.last, outcome: end.outcome, start, named, ..first }
    }

    /// Whether the first part is still missing. If it arrives later, this segment may become the entry of its trace.
    const fn is_headless(&self) -> bool {
        self.rank.1 > 0
    }

    const fn duration(&self) -> u64 {
        self.last.wrapping_sub(self.start).cast_unsigned()
    }
}

/// Segments whose first part is missing and that are currently not the entry of their trace.
#[derive(Default)]
struct Headless(HashMap<(TraceId, u64), Entry>);

impl Headless {
    /// Returns the better entry: the known one, or that of another row of the trace.
    fn better(&mut self, trace: TraceId, known: Entry, row: Entry) -> Entry {
        if known.base == row.base {
            return known.join(row);
        }
        let row = match self.0.is_empty() {
            true => row,
            false => self.0.remove(&(trace, row.base)).map_or(row, |parts| parts.join(row)),
        };
        let (better, worse) = if row.rank < known.rank { (row, known) } else { (known, row) };
        if worse.is_headless() {
            self.0.insert((trace, worse.base), worse);
        }
        better
    }
}

/// Time of event number `event` of a row.
fn exit_time(row: RowRef<'_>, event: u32) -> Timestamp {
    let passed =
        row.deltas().iter().take(event as usize + 1).fold(0u64, |sum, delta| sum.saturating_add(*delta));
    row.start().saturating_add_unsigned(passed)
}

/// Finds traces in two passes over the rows: the first finds the entries, the second reads request ids and HTTP statuses
/// of the traces found. The operations of each shape are read only once.
pub fn search(blocks: &[SourceBlock], search: &Search, cancel: &Cancel) -> Result<SearchResult, Error> {
    let gathered = gather(blocks, search, cancel)?;
    let scanned = gathered.len();
    let takes = |gathered: &Gathered| {
        let entry = &gathered.entry;
        gathered.operation_seen
            && gathered.request_seen
            && search.filter.range.contains(entry.start)
            && search.outcome.is_none_or(|outcome| outcome == entry.outcome)
            && search.duration_ns_min.is_none_or(|min| min <= entry.duration())
            && search.duration_ns_max.is_none_or(|max| entry.duration() <= max)
    };
    let mut found: Vec<(TraceId, Gathered)> = gathered.into_iter().filter(|(_, g)| takes(g)).collect();
    found.sort_by_key(|(trace, gathered)| (Reverse(gathered.entry.start), *trace));
    let truncated = found.len() > search.limit;
    found.truncate(search.limit);
    let facts = facts(blocks, &found, cancel)?;
    let traces =
        found.iter().zip(facts).map(|((trace, g), facts)| summary(blocks, *trace, g, facts)).collect();
    Ok(SearchResult { traces, truncated, scanned })
}

fn gather(
    blocks: &[SourceBlock],
    search: &Search,
    cancel: &Cancel,
) -> Result<HashMap<TraceId, Gathered>, Error> {
    let request_id = search.request_id.as_ref().map(|id| AttributeValue::Text(id.as_str().into()));
    let request_id = request_id.map(|id| AttributeData::new(&id));
    // Most traces have one segment. Growing the table step by step would take as long as filling it.
    let segments = blocks.iter().map(|source| source.block.len()).sum();
    let mut traces: HashMap<TraceId, Gathered> = HashMap::with_capacity(segments);
    let mut headless = Headless::default();
    for source in awaited(blocks, cancel) {
        let (block, source) = source?;
        let operation_in = shapes_with(source, &search.filter);
        for (row, r) in (0u32..).zip(source.block.rows()) {
            let operation_seen = operation_in[r.shape_index()];
            let request_seen = request_id.as_ref().is_none_or(|wanted| has_request_id(r, wanted));
            let calls = (r.shape().calls().len() - r.shape().carried().len()) as u64;
            let entry = Entry::new(r, Place { block, row });
            let known = match traces.entry(r.trace()) {
                Slot::Occupied(slot) => {
                    let known = slot.into_mut();
                    known.entry = headless.better(r.trace(), known.entry, entry);
                    known
                }
                Slot::Vacant(slot) => {
                    slot.insert(Gathered { entry, calls: 0, operation_seen: false, request_seen: false })
                }
            };
            known.calls += calls;
            known.operation_seen |= operation_seen;
            known.request_seen |= request_seen;
        }
    }
    Ok(traces)
}

/// For each shape of a block: whether it has a call of the requested service and operation.
fn shapes_with(source: &SourceBlock, filter: &Filter) -> Vec<bool> {
    let service = filter.takes_service(source);
    let operations: Vec<bool> =
        source.block.operations().iter().map(|o| service && filter.takes_operation(&o.name)).collect();
    let shapes = source.block.shapes().iter();
    shapes.map(|shape| shape.calls().iter().any(|call| operations[call.operation as usize])).collect()
}

fn has_request_id(row: RowRef<'_>, wanted: &AttributeData) -> bool {
    let same = |value: &AttributeData| match value {
        AttributeData::Integer(number) => number.to_string() == wanted.to_string(),
        text => text == wanted,
    };
    row.attributes().any(|attribute| &**attribute.key == REQUEST_ID && same(attribute.value))
}

/// Request id and HTTP status.
type Facts = (Option<String>, Option<i64>);

/// Request id and HTTP status of each trace found, from all parts of its entry.
fn facts(
    blocks: &[SourceBlock],
    found: &[(TraceId, Gathered)],
    cancel: &Cancel,
) -> Result<Vec<Facts>, Error> {
    let wanted: HashMap<(TraceId, u64), usize> =
        found.iter().enumerate().map(|(at, (trace, g))| ((*trace, g.entry.base), at)).collect();
    let mut facts = vec![(None, None); found.len()];
    for source in awaited(blocks, cancel) {
        for row in source?.1.block.rows() {
            let Some(at) = wanted.get(&(row.trace(), row.base())) else { continue };
            let (request_id, http_status): &mut Facts = &mut facts[*at];
            for attribute in row.attributes() {
                match (&**attribute.key, attribute.value) {
                    (REQUEST_ID, value) => {
                        *request_id = request_id.take().or_else(|| Some(value.to_string()));
                    }
                    (HTTP_STATUS, AttributeData::Integer(status)) => {
                        *http_status = http_status.or(Some(*status));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(facts)
}

fn summary(
    blocks: &[SourceBlock],
    trace_id: TraceId,
    gathered: &Gathered,
    (request_id, http_status): Facts,
) -> TraceSummary {
    let entry = &gathered.entry;
    let source = &blocks[entry.place.block as usize];
    let (_, named) = entry.named;
    let operations = blocks[named.block as usize].block.operations();
    let first = named.row(blocks).shape().calls().first();
    let operation: Option<&Operation> = first.and_then(|call| operations.get(call.operation as usize));
    TraceSummary {
        trace_id,
        service: source.service().into(),
        operation: operation.map_or_else(|| "".into(), |operation| Arc::clone(&operation.name)),
        kind: operation.map_or(OperationKind::Method, |operation| operation.kind),
        start: entry.start,
        duration_ns: entry.duration(),
        calls: gathered.calls,
        outcome: entry.outcome,
        request_id,
        http_status,
    }
}
