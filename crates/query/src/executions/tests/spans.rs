//! Over random segments, folds give the answers that the tests compute from the spans of whole traces. The folds get the rows
//! in random order and in blocks of random size, and join the rows in several rounds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::{ExecutionBlock, REQUEST_ID};
use tacho_model::{Labels, OperationKind, Segment, SpanId, TraceId, mix64, unmix64};

use super::awaited::trace;
use super::laws::{ALL, EVERYTHING, LOCAL, OPERATIONS, Seed, parts, seeds, segment, table};
use crate::executions::limits::Limits;
use crate::executions::{
    Graphing, Level, Operations, Order, Outcome, Search, Searching, SourceBlock, Span, TraceSummary, over,
};

/// Kinds with http-client, so that the time of a server is subtracted from some self times.
const REMOTE: [OperationKind; 3] =
    [OperationKind::HttpClient, OperationKind::HttpServer, OperationKind::Method];

/// How the rows of the segments are cut, ordered, and distributed over blocks.
#[derive(Clone, Debug)]
struct Layout {
    cuts: Vec<usize>,
    order: u64,
    rows_max: usize,
    /// Value of the limits `causes` and `parented`. A small value causes several rounds.
    round_max: usize,
}

fn layouts(cuts: usize) -> impl Strategy<Value = Layout> {
    let cuts = prop::collection::vec(1usize..12, 0..=cuts);
    (cuts, any::<u64>(), 1usize..4, 0usize..4).prop_map(|(cuts, order, rows_max, round_max)| Layout {
        cuts,
        order,
        rows_max,
        round_max,
    })
}

/// The blocks of these segments. No segment is its own cause.
fn blocks(seeds: &[Seed], layout: &Layout, kinds: [OperationKind; 3]) -> Vec<SourceBlock> {
    let mut rows: Vec<(usize, Segment)> = vec![];
    for (number, seed) in (0u64..).zip(seeds) {
        let mut seed = seed.clone();
        seed.2 = seed.2.filter(|(cause, _)| *cause != number);
        rows.extend(parts(&segment(number, &seed), &layout.cuts, 0).into_iter().map(|part| (seed.1, part)));
    }
    rows.sort_by_cached_key(|(_, part)| mix64(layout.order ^ part.base ^ u64::from(part.part) << 8));
    let block = |rows: &[(usize, Segment)]| {
        let mut block = ExecutionBlock::new();
        rows.iter().for_each(|(_, part)| block.push(part, &table(kinds)));
        let labels = Labels::new([("service", format!("s{}", rows[0].0).as_str())]).unwrap();
        SourceBlock { labels: Arc::new(labels), block: Arc::new(block) }
    };
    let same = rows.chunk_by(|(a, _), (b, _)| a == b);
    same.flat_map(|rows| rows.chunks(layout.rows_max)).map(block).collect()
}

/// All spans of each trace.
fn traces(seeds: &[Seed], blocks: &[SourceBlock]) -> Vec<(TraceId, i64, Vec<Span>)> {
    let ids: BTreeSet<u128> = seeds.iter().map(|seed| seed.0).collect();
    let whole = |id| {
        let found = trace(blocks, TraceId(id)).expect("the trace has segments");
        (found.trace_id, found.start, found.spans)
    };
    ids.into_iter().map(whole).collect()
}

type Name = (Arc<str>, Arc<str>, OperationKind);

fn name(span: &Span) -> Name {
    (span.service.clone(), span.operation.clone(), span.kind)
}

/// Number of the segment and of the call.
fn place(id: SpanId) -> (u64, u64) {
    (unmix64(id.0) >> 24, unmix64(id.0) & 0xff_ffff)
}

/// Completed calls, errors, total and self time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Figures([u64; 4]);

impl Figures {
    fn add(&mut self, span: &Span) {
        let ended = u64::from(span.outcome != Outcome::Running);
        let failed = u64::from(span.outcome == Outcome::Failed);
        for (sum, one) in self.0.iter_mut().zip([ended, failed, span.duration_ns * ended, span.self_ns]) {
            *sum += one;
        }
    }
}

pub fn rounds_of(max: usize) -> Limits {
    Limits { causes: max, parented: max, ..Limits::default() }
}

fn check_operations(seeds: &[Seed], blocks: &[SourceBlock], round_max: usize) {
    let mut expected: BTreeMap<Name, Figures> = BTreeMap::new();
    for (_, _, spans) in traces(seeds, blocks) {
        spans.iter().for_each(|span| expected.entry(name(span)).or_default().add(span));
    }
    expected.retain(|_, figures| figures.0[0] > 0);
    let found = over(blocks, Operations::within(ALL, None, &rounds_of(round_max)));
    let found = found.into_iter().map(|o| {
        ((o.service, o.operation, o.kind), Figures([o.count, o.errors, o.total_ns, o.self_ns.unwrap()]))
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), expected);
}

fn check_graph(seeds: &[Seed], blocks: &[SourceBlock], round_max: usize) {
    let mut expected: BTreeMap<(String, String), [u64; 3]> = BTreeMap::new();
    let id = |span: &Span| format!("{} {} {}", span.service, span.kind.name(), span.operation);
    for (_, _, spans) in traces(seeds, blocks) {
        let by_id: BTreeMap<SpanId, &Span> = spans.iter().map(|span| (span.id, span)).collect();
        for span in spans.iter().filter(|span| span.outcome != Outcome::Running) {
            let Some(parent) = span.parent.and_then(|parent| by_id.get(&parent)) else { continue };
            let mut figures = Figures::default();
            figures.add(span);
            let edge = expected.entry((id(parent), id(span))).or_default();
            edge.iter_mut().zip(figures.0).for_each(|(sum, one)| *sum += one);
        }
    }
    let graph = over(blocks, Graphing::within(ALL, Level::Operation, &rounds_of(round_max)));
    let edges = graph.edges.into_iter().map(|e| ((e.from, e.to), [e.count, e.errors, e.total_ns]));
    assert_eq!(edges.collect::<BTreeMap<_, _>>(), expected);
    for operation in over(blocks, Operations::new(ALL, None)) {
        let node = graph.nodes.iter().find(|n| {
            (&n.service, &n.operation, n.kind)
                == (&operation.service, &operation.operation, operation.kind.name())
        });
        let figures = node.map(|n| (n.count, n.errors, n.total_ns, n.self_ns));
        let o = &operation;
        assert_eq!(figures, Some((o.count, o.errors, o.total_ns, o.self_ns.unwrap())), "{o:?}");
    }
}

/// A trace; then start, duration and outcome of its entry or of its best call.
pub type Found = (TraceId, i64, u64, Outcome);

/// All traces that a search finds, in order. `meets`: whether a call meets the conditions of the search, if it has any.
pub fn expected(
    search: &Search,
    seeds: &[Seed],
    blocks: &[SourceBlock],
    meets: Option<&dyn Fn(&Span) -> bool>,
) -> Vec<Found> {
    let mut all: Vec<((u64, Reverse<TraceId>), Found)> = vec![];
    for (id, start, spans) in traces(seeds, blocks) {
        let is_outermost = |span: &Span| span.parent.is_none_or(|parent| place(parent).0 != place(span.id).0);
        let mut best = None;
        let (service, operation) = (&search.filter.service, &search.filter.operation);
        let any_depth = operation.is_some() || meets.is_some();
        let is_for_calls = service.is_some() || any_depth;
        let has_request = |id: &String| {
            spans.iter().any(|s| s.attributes.get(REQUEST_ID).is_some_and(|v| v.to_string() == *id))
        };
        if !search.request_id.as_ref().is_none_or(has_request) {
            continue;
        }
        if !is_for_calls {
            let entry = spans.iter().filter(|span| place(span.id).1 == 0);
            best = entry.min_by_key(|span| (span.parent.is_some(), span.offset_ns, place(span.id).0));
        }
        for span in spans.iter().filter(|_| is_for_calls) {
            let takes = service.as_ref().is_none_or(|service| **service == *span.service)
                && (any_depth || is_outermost(span))
                && operation.as_ref().is_none_or(|name| **name == *span.operation)
                && meets.is_none_or(|meets| meets(span));
            let key = |span: &Span| search.order.key(start + span.offset_ns as i64, span.duration_ns, id);
            if takes && takes_times(search, start, span) && best.is_none_or(|best| key(best) < key(span)) {
                best = Some(span);
            }
        }
        if let Some(span) = best.filter(|span| takes_times(search, start, span)) {
            let at = start + span.offset_ns as i64;
            all.push((search.order.key(at, span.duration_ns, id), (id, at, span.duration_ns, span.outcome)));
        }
    }
    all.sort_by_key(|(key, _)| Reverse(*key));
    all.into_iter().map(|(_, found)| found).collect()
}

/// `start`: start of the trace.
fn takes_times(search: &Search, start: i64, span: &Span) -> bool {
    search.filter.range.contains(start + span.offset_ns as i64)
        && search.outcome.is_none_or(|outcome| outcome == span.outcome)
        && search.duration_ns_min.is_none_or(|min| min <= span.duration_ns)
        && search.duration_ns_max.is_none_or(|max| span.duration_ns <= max)
}

pub fn found(traces: Vec<TraceSummary>) -> impl Iterator<Item = Found> {
    traces.into_iter().map(|t| {
        let entry = (t.start, t.duration_ns, t.outcome);
        let (start, duration, outcome) =
            t.matched.map_or(entry, |call| (call.start, call.duration_ns, call.outcome));
        (t.trace_id, start, duration, outcome)
    })
}

/// A search may find any of several calls with equal keys, so only keys are compared.
pub fn key(order: Order, (id, start, duration, _): &Found) -> (TraceId, u64) {
    (*id, order.key(*start, *duration, *id).0)
}

fn check_search(search: &Search, seeds: &[Seed], blocks: &[SourceBlock], round_max: usize) {
    let got = over(blocks, Searching::within(search.clone(), rounds_of(round_max)));
    let got = found(got.traces).map(|found| key(search.order, &found)).collect::<Vec<_>>();
    let expected = expected(search, seeds, blocks, None).into_iter().take(search.limit);
    assert_eq!(got, expected.map(|found| key(search.order, &found)).collect::<Vec<_>>(), "{search:?}");
}

fn searches() -> impl Strategy<Value = Search> {
    let service = prop::option::of((0usize..3).prop_map(|n| format!("s{n}")));
    let operation = prop::option::of((0..OPERATIONS).prop_map(|n| format!("o{n}")));
    let order = (0..Order::ALL.len()).prop_map(|n| Order::ALL[n]);
    let outcomes = [None, None, Some(Outcome::Ok), Some(Outcome::Failed), Some(Outcome::Running)];
    let outcome = (0..outcomes.len()).prop_map(move |n| outcomes[n]);
    let shortest = prop::option::of(0u64..3_000);
    (service, operation, order, outcome, shortest, 1usize..4).prop_map(
        |(service, operation, order, outcome, duration_ns_min, limit)| Search {
            filter: super::Filter { service, operation, ..ALL },
            duration_ns_min,
            outcome,
            order,
            limit,
            ..EVERYTHING
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn folds_over_whole_segments_agree_with_the_spans(seeds in seeds(), layout in layouts(0), search in searches()) {
        let blocks = blocks(&seeds, &layout, REMOTE);
        check_operations(&seeds, &blocks, layout.round_max);
        check_graph(&seeds, &blocks, layout.round_max);
        check_search(&search, &seeds, &blocks, layout.round_max);
    }

    #[test]
    fn folds_over_parts_agree_with_the_spans(seeds in seeds(), layout in layouts(4), search in searches()) {
        let blocks = blocks(&seeds, &layout, LOCAL);
        check_operations(&seeds, &blocks, layout.round_max);
        check_graph(&seeds, &blocks, layout.round_max);
        check_search(&search, &seeds, &blocks, layout.round_max);
    }
}
