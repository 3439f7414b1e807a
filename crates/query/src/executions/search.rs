//! Which traces match a search? The answer has those that are first in the requested order, over the whole range.
//!
//! A search with a service, an operation or conditions (`conditions.rs`) looks for calls: calls that meet them all, or with a
//! service alone the outermost calls of the service's segments. Range, duration, outcome and order then apply to the call, and a
//! trace is found once, by its best call. Any other search looks for traces by their *entry*: the earliest segment without a
//! parent, else the earliest known segment (`found.rs`). A request id matches if any call of the trace has it.
//!
//! ```text
//!   Requests     the traces with the request id                            only with a request id
//!   Candidates   the best calls, or the best segments without a parent
//!   Spanning     all parts of calls in several parts                       only with conditions on attributes
//!   Parented     the traces with segments that have a parent               only for further rounds of the next two passes
//!   Root         which of these traces have a segment without a parent     only in a search for traces
//!   Rootless     the best segments of the traces that have none            only if there are such traces
//!   Verify       the entries of the candidates
//! ```
//!
//! If a search for calls has no condition on the request id, `Candidates` does not read a chunk whose summary shows that the
//! chunk has none of the best calls (`best.rs`), or which has no call that passes the first test of an attribute. In a search for
//! traces, a candidate is not always the entry of its trace. If `Verify` finds too few traces that are certainly among the first,
//! the passes from `Candidates` on are repeated with more candidates. They are also repeated if a call that was kept belongs to a
//! trace of an earlier page (`top.rs`).

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use tacho_chunk::{AttributeData, Edge, REQUEST_ID, RowRef, SummarizedChunk};
use tacho_model::{Labels, Operation, Timestamp, TraceId};

use super::best::best;
use super::calls::{Visit, Walker};
use super::conditions::{AttributeTest, Conditions};
use super::cursor::Cursor;
use super::fold::{Fold, Scope};
use super::found::{FirstCall, Gathering, Match, TraceSummary};
use super::limits::{Incomplete, Limits};
use super::parts::{Met, Parts};
use super::rootless::Parented;
use super::source::{Filter, Outcome, Source, service};
use super::spanning::Spanning;
use super::top::{Key, Order, Top};

/// A search for traces by their entries starts with this number of candidates plus twice the limit of the search.
const FIRST_CANDIDATES: usize = 64;
/// Factor by which the number of candidates grows if too few traces were found.
const GROWTH: usize = 8;

/// Conditions of a search. `None` means that there is no such condition.
#[derive(Clone, Debug)]
pub struct Search {
    pub filter: Filter,
    /// Both inclusive, ns.
    pub duration_ns_min: Option<u64>,
    pub duration_ns_max: Option<u64>,
    pub outcome: Option<Outcome>,
    pub request_id: Option<String>,
    pub conditions: Conditions,
    pub order: Order,
    /// Limit on the number of traces.
    pub limit: usize,
    /// The end of the page before, which is of this search ([`Cursor::is_of`]).
    pub after: Option<Cursor>,
}

impl Search {
    fn takes(&self, start: Timestamp, duration_ns: u64, outcome: Outcome) -> bool {
        self.filter.range.contains(start)
            && self.outcome.is_none_or(|wanted| wanted == outcome)
            && self.duration_ns_min.is_none_or(|min| min <= duration_ns)
            && self.duration_ns_max.is_none_or(|max| duration_ns <= max)
    }

    pub(super) fn takes_operation(&self, operation: &Operation) -> bool {
        self.filter.takes_operation(&operation.name) && self.conditions.takes_operation(operation)
    }

    fn is_for_calls(&self) -> bool {
        self.filter.service.is_some() || self.takes_any_depth()
    }

    /// Whether a call may be found if it is not the outermost call of its segment.
    fn takes_any_depth(&self) -> bool {
        self.filter.operation.is_some() || !self.conditions.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    pub traces: Vec<TraceSummary>,
    /// Whether further traces match, or may match.
    pub truncated: bool,
    /// The end of this page, if further traces match or may match.
    pub next: Option<Cursor>,
    /// Number of segments examined, one by one or by the summary of their chunk; each part of a segment counts.
    pub scanned: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    Start,
    Requests,
    Candidates,
    Spanning,
    Parented,
    Root,
    Rootless,
    Verify,
    End,
}

/// A trace that may be among the first ones.
struct Candidate {
    key: Key,
    matched: Option<Match>,
}

pub struct Searching {
    search: Search,
    pass: Pass,
    request: Option<AttributeTest>,
    requested: HashSet<TraceId>,
    walker: Walker,
    /// Candidates whose call is open at the end of the row.
    parts: Parts<Option<Candidate>, ()>,
    spanning: Spanning,
    limits: Limits,
    incomplete: Vec<Incomplete>,
    /// Number of segments with the requested request id whose traces were omitted.
    unrequested: u64,
    parented: Parented,
    candidates_max: usize,
    top: Top,
    gathering: Gathering,
    found: SearchResult,
}

impl Searching {
    pub fn new(search: Search) -> Self {
        Self::within(search, Limits::default())
    }

    pub(super) fn within(search: Search, limits: Limits) -> Self {
        // The candidates of a search for calls are the traces to find, so its limit is enough.
        let candidates_max =
            if search.is_for_calls() { search.limit } else { 2 * search.limit + FIRST_CANDIDATES };
        Self {
            request: search.request_id.as_deref().map(AttributeTest::request),
            top: first_of(&search, candidates_max, &limits),
            search,
            pass: Pass::Start,
            requested: HashSet::new(),
            walker: Walker::default(),
            parts: Parts::new(limits.waiting),
            spanning: Spanning::new(limits.spanning),
            limits,
            incomplete: vec![],
            unrequested: 0,
            parented: Parented::new(limits.parented),
            candidates_max,
            gathering: Gathering::default(),
            found: SearchResult { traces: vec![], truncated: false, next: None, scanned: 0 },
        }
    }

    fn next(&mut self) -> Pass {
        match self.pass {
            Pass::Start if self.search.request_id.is_some() => Pass::Requests,
            Pass::Requests if self.requested.is_empty() => Pass::End,
            Pass::Start | Pass::Requests => Pass::Candidates,
            Pass::Candidates if !self.spanning.is_empty() => Pass::Spanning,
            Pass::Candidates | Pass::Spanning | Pass::Parented => {
                self.offer_open();
                if self.top.restart() {
                    return self.start_candidates();
                }
                self.parented.seal();
                if self.parented.is_empty() { self.next_round() } else { Pass::Root }
            }
            Pass::Root if self.parented.all_have_roots() => self.next_round(),
            Pass::Root => Pass::Rootless,
            Pass::Rootless => {
                self.offer_open();
                self.next_round()
            }
            Pass::Verify => self.verified(),
            Pass::End => Pass::End,
        }
    }

    fn next_round(&mut self) -> Pass {
        if self.parented.next_round() {
            return Pass::Parented;
        }
        if self.top.is_empty() {
            return self.verified();
        }
        self.gathering = Gathering::of(self.top.traces());
        Pass::Verify
    }

    fn start_candidates(&mut self) -> Pass {
        self.parts = Parts::new(self.limits.waiting);
        self.spanning = Spanning::new(self.limits.spanning);
        self.parented = Parented::new(self.limits.parented);
        self.found.scanned = 0;
        Pass::Candidates
    }

    /// Offers the candidates whose call is still open after the last known part of its segment, and the calls in several parts
    /// that meet all conditions.
    fn offer_open(&mut self) {
        for Candidate { key, matched } in self.parts.drain().flatten() {
            self.top.offer(key, || matched);
        }
        let Self { search, top, spanning, .. } = self;
        for (trace, call, passed) in spanning.drain() {
            let operation = Operation { kind: call.kind, name: Arc::clone(&call.operation) };
            let is_taken = search.takes(call.start, call.duration_ns, call.outcome)
                && search.takes_operation(&operation)
                && search.conditions.are_all(passed);
            if is_taken {
                top.offer(search.order.key(call.start, call.duration_ns, trace), || Some(call));
            }
        }
    }

    /// Takes the traces found, or starts again with more candidates.
    fn verified(&mut self) -> Pass {
        let (search, top) = (&self.search, &self.top);
        let is_last = search.is_for_calls() || self.candidates_max >= self.limits.candidates;
        let threshold = top.threshold().filter(|_| !is_last);
        let mut found: Vec<(Key, TraceSummary)> = vec![];
        for mut trace in std::mem::take(&mut self.gathering).into_summaries() {
            let Some((offered, matched)) = top.found(trace.trace_id) else { continue };
            trace.matched.clone_from(matched);
            let entry = search.order.key(trace.start, trace.duration_ns, trace.trace_id);
            let key = if search.is_for_calls() { *offered } else { entry };
            let is_taken = search.is_for_calls()
                || search.takes(trace.start, trace.duration_ns, trace.outcome)
                    && search.after.is_none_or(|after| entry < after.key());
            if is_taken && threshold.is_none_or(|threshold| threshold <= key) {
                found.push((key, trace));
            }
        }
        if threshold.is_some() && found.len() < search.limit {
            self.candidates_max = (self.candidates_max * GROWTH).min(self.limits.candidates);
            self.top = first_of(&self.search, self.candidates_max, &self.limits);
            return self.start_candidates();
        }
        let is_certain = |cut: &Key| found.iter().filter(|(key, _)| cut <= key).count() >= search.limit;
        if !search.is_for_calls() && top.threshold().is_some_and(|cut| !is_certain(&cut)) {
            self.incomplete.push(Incomplete::Candidates { limit: self.candidates_max });
        }
        found.sort_unstable_by_key(|(key, _)| Reverse(*key));
        self.found.truncated = top.is_cut() || found.len() > search.limit;
        let last = found.get(..search.limit).unwrap_or(&found).last().filter(|_| self.found.truncated);
        self.found.next = last.map(|(key, _)| Cursor::new(search, *key));
        self.found.traces = found.into_iter().take(search.limit).map(|(_, trace)| trace).collect();
        Pass::End
    }

    fn is_requested(&self, trace: TraceId) -> bool {
        self.search.request_id.is_none() || self.requested.contains(&trace)
    }

    /// Collects the traces with the request id.
    fn request(&mut self, source: Source<'_>) {
        let Some(request) = &self.request else { return };
        let has_id = |row: &RowRef<'_>| {
            row.attributes().any(|attribute| request.takes(attribute.key, attribute.value))
        };
        for row in source.block.rows().filter(has_id) {
            if self.requested.len() < self.limits.requested {
                self.requested.insert(row.trace());
            } else if !self.requested.contains(&row.trace()) {
                self.unrequested += 1;
            }
        }
    }

    fn offer_calls(&mut self, source: Source<'_>) {
        let search = &self.search;
        if !search.filter.takes_service(source.service()) {
            return;
        }
        let (service, operations) = (source.service().into(), source.block.operations());
        let wanted = operations.iter().map(|operation| search.takes_operation(operation)).collect();
        let first_test = search.conditions.first_test().cloned();
        let looking = Looking { service, operations, wanted, any_depth: search.takes_any_depth() };
        for row in source.block.rows() {
            if !self.is_requested(row.trace()) {
                continue;
            }
            match &first_test {
                None => self.offer_best(row, &looking),
                Some(test) => self.offer_with_attribute(row, test, &looking),
            }
        }
    }

    /// Offers the best ended call of a row that matches. The best open call that matches waits for the next part.
    fn offer_best(&mut self, row: RowRef<'_>, looking: &Looking<'_>) {
        let [mut ended, mut open]: [Option<(Key, Match)>; 2] = [None, None];
        let Self { search, walker, .. } = self;
        walker.walk(row, |visit| {
            let best = if visit.end.is_some() { &mut ended } else { &mut open };
            if looking.wants(&visit) {
                looking.take_better(best, search, row, &visit);
            }
        });
        if let Some((key, matched)) = ended {
            self.top.offer(key, || Some(matched));
        }
        self.join(row, open.map(|(key, matched)| Candidate { key, matched: Some(matched) }));
    }

    /// Offers the best call that begins and ends in this row and meets all conditions. Notes calls that pass the first test and
    /// begin or end in another part of the segment.
    fn offer_with_attribute(&mut self, row: RowRef<'_>, test: &AttributeTest, looking: &Looking<'_>) {
        let passing = row.attributes().filter(|attribute| test.takes(attribute.key, attribute.value));
        let mut calls: Vec<u32> = passing.map(|attribute| attribute.call).collect();
        if calls.is_empty() {
            return;
        }
        calls.sort_unstable();
        let mut best = None;
        let Self { search, walker, spanning, .. } = self;
        let conditions = &search.conditions;
        walker.walk(row, |visit| {
            let call = row.call_number(visit.position);
            if calls.binary_search(&call).is_err() {
                return;
            }
            if visit.call.enter.is_none() || visit.end.is_none() {
                spanning.note(row, call);
            } else if looking.wants(&visit) && conditions.are_all(conditions.passed(row, call)) {
                looking.take_better(&mut best, search, row, &visit);
            }
        });
        if let Some((key, matched)) = best {
            self.top.offer(key, || Some(matched));
        }
    }

    fn add_parts(&mut self, source: Source<'_>) {
        if !self.search.filter.takes_service(source.service()) {
            return;
        }
        let service: Arc<str> = source.service().into();
        let operations = source.block.operations();
        let Self { search, walker, spanning, .. } = self;
        for row in source.block.rows() {
            if spanning.wants(row.trace()) {
                walker.walk(row, |visit| {
                    let operation = &operations[visit.call.operation as usize];
                    let passed = |call| search.conditions.passed(row, call);
                    spanning.add(row, &visit, passed, (&service, operation));
                });
            }
        }
    }

    /// The highest rank that a matching call of a chunk can have; `None` if no call can match. Also drops candidates whose
    /// segment continues in this chunk, because the search may skip the blocks of the chunk.
    fn best_of(&mut self, chunk: SummarizedChunk<'_>) -> Option<u64> {
        let (mut is_open, waits) = (false, self.first_test().is_none());
        for part in &chunk.summary.loose {
            match part.edge {
                Edge::End(_) => is_open = true,
                // The candidate of the earlier part is dropped, as in `join`.
                Edge::Start(..) if waits => drop(self.parts.start_of(part.key, ())),
                Edge::Start(..) => {}
            }
        }
        // The summary has no bounds of open calls.
        if is_open { Some(u64::MAX) } else { best(&self.search, chunk) }
    }

    /// Offers the first call of a row as the first call of its trace's entry. If the call is still open, it waits for the next
    /// part.
    fn offer_entry(&mut self, row: RowRef<'_>) {
        let call = FirstCall::of(row);
        let key = self.search.order.key(call.start, call.duration(), row.trace());
        let is_taken = self.search.takes(call.start, call.duration(), call.outcome);
        if is_taken && call.outcome != Outcome::Running {
            self.top.offer(key, || None);
        }
        let is_waiting = is_taken && call.outcome == Outcome::Running;
        self.join(row, is_waiting.then_some(Candidate { key, matched: None }));
    }

    /// Lets an open candidate wait for the next part of its segment. When that part is added, the candidate is dropped, because
    /// the part has the same call.
    fn join(&mut self, row: RowRef<'_>, open: Option<Candidate>) {
        if !row.shape().carried().is_empty() {
            self.parts.start(row, ());
        }
        if row.is_open()
            && let Met::Alone(Some(Candidate { key, matched })) = self.parts.end(row, open)
        {
            self.top.offer(key, || matched);
        }
    }

    fn offer_entries(&mut self, source: Source<'_>) {
        for row in source.block.rows() {
            match (self.is_requested(row.trace()), row.parent()) {
                (true, None) => self.offer_entry(row),
                (true, Some(_)) => self.parented.insert(row.trace()),
                (false, _) => {}
            }
        }
    }
}

impl Fold for Searching {
    type Answer = SearchResult;

    fn pass(&mut self) -> Option<Scope> {
        self.pass = self.next();
        match self.pass {
            Pass::End => None,
            Pass::Requests => Some(Scope::Attribute(REQUEST_ID)),
            _ if self.search.request_id.is_some() => Some(Scope::Traces),
            Pass::Candidates if self.search.is_for_calls() => Some(Scope::Service),
            Pass::Spanning | Pass::Rootless | Pass::Verify => Some(Scope::Traces),
            _ => Some(Scope::All),
        }
    }

    fn wants(&self, trace: TraceId) -> bool {
        match self.pass {
            Pass::Spanning => self.spanning.wants(trace),
            Pass::Rootless => self.parented.lacks_root(trace),
            Pass::Verify => self.gathering.wants(trace),
            _ => self.is_requested(trace),
        }
    }

    fn wanted(&self) -> Option<Vec<TraceId>> {
        match self.pass {
            Pass::Spanning => Some(self.spanning.traces().collect()),
            Pass::Verify => Some(self.gathering.traces().collect()),
            _ if self.search.request_id.is_some() => Some(self.requested.iter().copied().collect()),
            _ => None,
        }
    }

    fn takes_traces_alone(&self) -> bool {
        // All segments of the blocks of `Candidates` count as scanned.
        matches!(self.pass, Pass::Spanning | Pass::Rootless | Pass::Verify)
    }

    fn wants_value(&self, value: &AttributeData) -> bool {
        self.request.as_ref().is_some_and(|request| request.accepts(value))
    }

    fn wanted_value(&self) -> Option<AttributeData> {
        self.request.as_ref().and_then(AttributeTest::value)
    }

    fn first_test(&self) -> Option<AttributeTest> {
        self.search.conditions.first_test().filter(|_| self.ranks_chunks()).cloned()
    }

    fn examined(&mut self, segments: usize) {
        self.found.scanned += segments as u64;
    }

    fn add_source(&mut self, source: Source<'_>) {
        let rows = source.block.rows();
        match self.pass {
            Pass::Start | Pass::End => {}
            Pass::Requests => self.request(source),
            Pass::Candidates => {
                // With a test, the caller counts the segments, also those that it does not decode.
                self.found.scanned += if self.first_test().is_none() { rows.len() as u64 } else { 0 };
                if self.search.is_for_calls() {
                    self.offer_calls(source);
                } else {
                    self.offer_entries(source);
                }
            }
            Pass::Spanning => self.add_parts(source),
            Pass::Parented => {
                for row in rows.filter(|row| row.parent().is_some()) {
                    if self.is_requested(row.trace()) {
                        self.parented.insert(row.trace());
                    }
                }
            }
            Pass::Root => {
                let roots = rows.filter(|row| row.parent().is_none());
                roots.for_each(|row| self.parented.root(row.trace()));
            }
            Pass::Rootless => {
                for row in rows.filter(|row| row.parent().is_some()) {
                    if self.parented.lacks_root(row.trace()) {
                        self.offer_entry(row);
                    }
                }
            }
            Pass::Verify => self.gathering.add(source),
        }
    }

    fn ranks_chunks(&self) -> bool {
        let is_for_calls = self.search.is_for_calls() && self.search.request_id.is_none();
        self.pass == Pass::Candidates && is_for_calls
    }

    fn rank(&mut self, labels: &Labels, chunk: SummarizedChunk<'_>) -> Option<u64> {
        let is_taken = self.search.filter.takes_service(service(labels));
        let best = if is_taken { self.best_of(chunk) } else { None };
        self.found.scanned += if best.is_none() { chunk.segments as u64 } else { 0 };
        best
    }

    fn needs_rank(&mut self, rank: u64, segments: usize) -> bool {
        let is_needed = self.top.may_take(rank);
        if !is_needed {
            self.top.cut();
            self.found.scanned += segments as u64;
        }
        is_needed
    }

    fn incomplete(&self) -> Vec<Incomplete> {
        let (omitted, limit) = (self.unrequested, self.limits.requested);
        let spanning = self.spanning.incomplete();
        let requests = (omitted > 0).then_some(Incomplete::Requests { omitted, limit });
        self.incomplete
            .iter()
            .copied()
            .chain(self.parts.incomplete())
            .chain(requests)
            .chain(spanning)
            .chain(self.top.incomplete())
            .collect()
    }

    fn finish(self) -> SearchResult {
        self.found
    }
}

fn first_of(search: &Search, candidates_max: usize, limits: &Limits) -> Top {
    let last = search.after.map(Cursor::key);
    Top::new(candidates_max).after(last, search.is_for_calls().then_some(limits.pages))
}

/// A block in which a search looks for calls.
struct Looking<'a> {
    service: Arc<str>,
    operations: &'a [Operation],
    /// Whether the search takes the operation with this index.
    wanted: Vec<bool>,
    any_depth: bool,
}

impl Looking<'_> {
    fn wants(&self, visit: &Visit<'_>) -> bool {
        self.wanted[visit.call.operation as usize] && (self.any_depth || visit.call.parent.is_none())
    }

    /// Replaces `best` if the search takes the visited call and the call is better.
    fn take_better(
        &self,
        best: &mut Option<(Key, Match)>,
        search: &Search,
        row: RowRef<'_>,
        visit: &Visit<'_>,
    ) {
        let (start, end) = (visit.start, visit.end.unwrap_or_else(|| row.range().end));
        let duration_ns = end.wrapping_sub(start).cast_unsigned();
        let outcome = visit.end.map_or(Outcome::Running, |_| Outcome::of_exit(visit.call.failed));
        let key = search.order.key(start, duration_ns, row.trace());
        if search.takes(start, duration_ns, outcome) && best.as_ref().is_none_or(|(best, _)| *best < key) {
            let Operation { kind, name } = &self.operations[visit.call.operation as usize];
            let (service, operation) = (Arc::clone(&self.service), Arc::clone(name));
            *best = Some((key, Match { service, operation, kind: *kind, start, duration_ns, outcome }));
        }
    }
}
