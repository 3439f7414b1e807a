//! Which calls does a trace consist of? The segments of all threads and services become one tree of spans.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tacho_chunk::RowRef;
use tacho_model::{AttributeValue, OperationKind, SpanId, Timestamp, TraceId};

use super::awaited;
use super::calls::Walker;
use super::source::{Outcome, SourceBlock};
use crate::{Cancel, Error};

/// Limit on the spans of one answer. The answer has the first spans in tree order.
pub const SPANS_MAX: usize = 100_000;

#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub trace_id: TraceId,
    /// Enter time of the first call.
    pub start: Timestamp,
    /// From `start` to the last event of any of its segments.
    pub duration_ns: u64,
    /// Spans in tree order: a parent is before its children, siblings are sorted by start time.
    pub spans: Vec<Span>,
    /// Number of spans omitted because of [`SPANS_MAX`].
    pub spans_cut: usize,
}

/// One call.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub id: SpanId,
    /// Id of the parent, even if the parent is missing. A span with a missing parent is a root.
    pub parent: Option<SpanId>,
    /// Depth in the tree: 0 for a root.
    pub depth: u32,
    pub service: Arc<str>,
    pub host: Arc<str>,
    pub thread: Arc<str>,
    pub operation: Arc<str>,
    pub kind: OperationKind,
    /// Time from the start of the trace.
    pub offset_ns: u64,
    /// If the call has not ended: the time until the last event of its segment.
    pub duration_ns: u64,
    /// Duration of this call without the calls that it made on its own thread. For an HTTP client call, also without the time
    /// of a recorded server.
    pub self_ns: u64,
    pub outcome: Outcome,
    pub attributes: BTreeMap<Arc<str>, AttributeValue>,
}

/// Spans while they are assembled from parts.
#[derive(Default)]
struct Assembly {
    spans: Vec<Loose>,
    by_id: HashMap<SpanId, usize>,
}

/// A span with absolute times.
struct Loose {
    span: Span,
    start: Timestamp,
    end: Timestamp,
    /// Index of the caller on the same thread.
    caller: Option<usize>,
}

/// The trace with this id, or `None` when no block contains a segment of it.
pub fn trace(blocks: &[SourceBlock], id: TraceId, cancel: &Cancel) -> Result<Option<Trace>, Error> {
    let mut rows: Vec<(&SourceBlock, RowRef<'_>)> = vec![];
    for source in awaited(blocks, cancel) {
        let (_, source) = source?;
        rows.extend(source.block.rows().filter(|row| row.trace() == id).map(|row| (source, row)));
    }
    // Sorted by part, so that a call exists before a later part carries or ends it.
    rows.sort_by_key(|(_, row)| (row.base(), row.part()));
    let mut assembly = Assembly::default();
    let mut walker = Walker::default();
    for (source, row) in rows {
        cancel.check()?;
        assembly.add(source, row, &mut walker);
    }
    Ok(assembly.finish(id))
}

impl Assembly {
    fn add(&mut self, source: &SourceBlock, row: RowRef<'_>, walker: &mut Walker) {
        let names = [source.service(), source.host()].map(Arc::<str>::from);
        let calls = row.shape().calls();
        let mut positions = Vec::with_capacity(calls.len());
        for (position, call) in calls.iter().enumerate() {
            let caller = call.parent.map(|parent| positions[parent as usize]);
            let operation = &source.block.operations()[call.operation as usize];
            let id = row.span(row.call_number(position));
            let new = || Span {
                id,
                parent: caller.map_or_else(|| row.parent(), |caller: usize| Some(self.spans[caller].span.id)),
                depth: 0,
                service: Arc::clone(&names[0]),
                host: Arc::clone(&names[1]),
                thread: Arc::clone(row.thread()),
                operation: Arc::clone(&operation.name),
                kind: operation.kind,
                offset_ns: 0,
                duration_ns: 0,
                self_ns: 0,
                outcome: Outcome::Running,
                attributes: BTreeMap::new(),
            };
            let at = match self.by_id.get(&id) {
                Some(at) => {
                    // The operation of a call may become known late, for example the route of a request.
                    let span = &mut self.spans[*at].span;
                    span.operation = Arc::clone(&operation.name);
                    span.kind = operation.kind;
                    *at
                }
                None => {
                    let span = new();
                    self.by_id.insert(id, self.spans.len());
                    self.spans.push(Loose { span, start: Timestamp::MAX, end: Timestamp::MIN, caller });
                    self.spans.len() - 1
                }
            };
            positions.push(at);
        }
        self.time(row, &positions, walker);
        for attribute in row.attributes() {
            if let Some(at) = self.by_id.get(&row.span(attribute.call)) {
                let attributes = &mut self.spans[*at].span.attributes;
                attributes.insert(Arc::clone(attribute.key), attribute.value.to_value());
            }
        }
    }

    /// Sets times and outcomes of the calls of a row. `positions` maps the calls to spans.
    fn time(&mut self, row: RowRef<'_>, positions: &[usize], walker: &mut Walker) {
        let mut open = vec![];
        let last = walker.walk(row, |visit| {
            let at = positions[visit.position];
            let loose = &mut self.spans[at];
            loose.start = loose.start.min(visit.start);
            match visit.end {
                Some(end) => {
                    loose.end = end;
                    loose.span.outcome = Outcome::of_exit(visit.call.failed);
                }
                None => open.push(at),
            }
        });
        for at in open {
            self.spans[at].end = self.spans[at].end.max(last);
        }
    }

    /// Computes durations and self times, and sorts the spans in tree order.
    fn finish(mut self, trace_id: TraceId) -> Option<Trace> {
        let start = self.spans.iter().map(|loose| loose.start).min()?;
        let end = self.spans.iter().map(|loose| loose.end).max()?;
        for loose in &mut self.spans {
            loose.span.offset_ns = loose.start.wrapping_sub(start).cast_unsigned();
            loose.span.duration_ns = loose.end.max(loose.start).wrapping_sub(loose.start).cast_unsigned();
            loose.span.self_ns = loose.span.duration_ns;
        }
        for at in 0..self.spans.len() {
            let duration = self.spans[at].span.duration_ns;
            if let Some(caller) = self.spans[at].caller {
                let own = &mut self.spans[caller].span.self_ns;
                *own = own.saturating_sub(duration);
            }
        }
        self.discount();
        let order = self.order();
        let spans_cut = order.len().saturating_sub(SPANS_MAX);
        let mut spans: Vec<Option<Span>> = self.spans.into_iter().map(|loose| Some(loose.span)).collect();
        let place = |(at, depth): (usize, u32)| spans[at].take().map(|span| Span { depth, ..span });
        let spans = order.into_iter().take(SPANS_MAX).filter_map(place).collect();
        let duration_ns = end.wrapping_sub(start).cast_unsigned();
        Some(Trace { trace_id, start, duration_ns, spans, spans_cut })
    }

    /// Subtracts the time of recorded servers from the self times of the HTTP client calls that they served.
    fn discount(&mut self) {
        for at in 0..self.spans.len() {
            let Loose { span, caller: None, .. } = &self.spans[at] else { continue };
            let (kind, duration, parent) = (span.kind, span.duration_ns, span.parent);
            let client = parent.and_then(|parent| self.by_id.get(&parent)).copied();
            let client =
                client.filter(|_| kind == OperationKind::HttpServer && span.outcome != Outcome::Running);
            let Some(client) = client.map(|client| &mut self.spans[client].span) else { continue };
            if client.kind == OperationKind::HttpClient && client.outcome != Outcome::Running {
                client.self_ns = client.self_ns.saturating_sub(duration);
            }
        }
    }

    /// All spans with their depth, in tree order. Ids come from the network, so parents may be missing or form cycles.
    /// Spans that no root reaches come last. The earliest of these spans gets the depth 0, and the spans below it follow. This
    /// is repeated until no span remains.
    fn order(&self) -> Vec<(usize, u32)> {
        let mut by_time: Vec<usize> = (0..self.spans.len()).collect();
        by_time.sort_by_key(|at| (self.spans[*at].start, *at));
        let mut children: Vec<Vec<usize>> = vec![vec![]; self.spans.len()];
        let mut roots = vec![];
        for at in &by_time {
            match self.spans[*at].span.parent.and_then(|parent| self.by_id.get(&parent)) {
                Some(parent) => children[*parent].push(*at),
                None => roots.push(*at),
            }
        }
        let mut order = Vec::with_capacity(self.spans.len());
        let mut seen = HashSet::new();
        let mut stack = vec![];
        for root in roots.iter().chain(&by_time) {
            stack.push((*root, 0));
            while let Some((at, depth)) = stack.pop() {
                if seen.insert(at) {
                    order.push((at, depth));
                    stack.extend(children[at].iter().rev().map(|child| (*child, depth + 1)));
                }
            }
        }
        order
    }
}
