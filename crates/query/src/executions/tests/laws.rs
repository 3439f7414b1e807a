//! Invariants over random segments: every analysis counts the same calls and the same time.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::ExecutionBlock;
use tacho_model::{
    Carried, Event, EventKind, Labels, Operation, OperationKind, Segment, SpanId, TimeRange, TraceId, mix64,
};

use super::awaited::{calltree, graph, operations, search, services, trace};
use crate::executions::{CallTreeNode, Conditions, Filter, Level, Order, Search, SourceBlock};

pub const OPERATIONS: u32 = 6;
pub const ALL: Filter = Filter { service: None, operation: None, range: TimeRange::ALL };

pub const EVERYTHING: Search = Search {
    filter: ALL,
    duration_ns_min: None,
    duration_ns_max: None,
    outcome: None,
    request_id: None,
    conditions: Conditions::NONE,
    order: Order::Newest,
    limit: 100,
    after: None,
};

pub fn table(kinds: [OperationKind; 3]) -> Vec<Operation> {
    let operation = |n: u32| Operation { kind: kinds[n as usize % 3], name: format!("o{n}").into() };
    (0..OPERATIONS).map(operation).collect()
}

/// Kinds without http-client, so that no time of a server is subtracted from self times.
pub const LOCAL: [OperationKind; 3] =
    [OperationKind::Method, OperationKind::HttpServer, OperationKind::Database];

/// Description of one segment: trace, service, cause, and events (kind, operation, delta in ns). The cause is a call: the
/// number of its segment, which need not exist, and the number of the call in this segment.
pub type Seed = (u128, usize, Option<(u64, u64)>, Vec<(u8, u32, u64)>);

pub fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let cause = prop::option::of((0u64..12, 0u64..8));
    let events = prop::collection::vec((0u8..5, 0..OPERATIONS, 0u64..1_000), 1..24);
    prop::collection::vec((1u128..4, 0usize..3, cause, events), 1..12)
}

pub fn segment(number: u64, (trace, _, cause, events): &Seed) -> Segment {
    let mut open = 0;
    let event = |(choice, operation, delta): &(u8, u32, u64)| {
        let kind = match choice {
            2 | 3 if open > 0 => EventKind::Exit,
            4 if open > 0 => EventKind::ExitFailed,
            _ => EventKind::Enter(*operation),
        };
        open = if matches!(kind, EventKind::Enter(_)) { open + 1 } else { open - 1 };
        Event { delta: *delta, kind }
    };
    Segment {
        trace: TraceId(*trace),
        base: number << 24,
        part: 0,
        parent: cause.map(|(segment, call)| SpanId(mix64((segment << 24) + call))),
        thread: "t".into(),
        start: number as i64 * 100,
        carried: vec![],
        first_call: 0,
        events: events.iter().map(event).collect(),
        attributes: vec![],
    }
}

/// A segment cut into parts before the events at the indexes `cuts`. Part `n` adds `n * renamed` to the operations of the calls
/// that it carries.
pub fn parts(whole: &Segment, cuts: &[usize], renamed: u32) -> Vec<Segment> {
    let (mut now, mut calls, mut open, mut parts) =
        (whole.start, 0, Vec::<(u32, u32, i64)>::new(), Vec::<Segment>::new());
    for (n, event) in whole.events.iter().enumerate() {
        now += event.delta as i64;
        if n == 0 || cuts.contains(&n) {
            let part = parts.len() as u32;
            let carried = |(call, operation, since): &(u32, u32, i64)| Carried {
                operation: (operation + renamed * part) % OPERATIONS,
                call: *call,
                age: now.abs_diff(*since),
            };
            let carried = open.iter().map(carried).collect();
            parts.push(Segment {
                part,
                first_call: calls,
                start: now,
                carried,
                events: vec![],
                ..whole.clone()
            });
        }
        if let EventKind::Enter(operation) = event.kind {
            open.push((calls, operation, now));
            calls += 1;
        } else {
            open.pop();
        }
        if let Some(part) = parts.last_mut() {
            let delta = if part.events.is_empty() { 0 } else { event.delta };
            part.events.push(Event { delta, ..*event });
        }
    }
    parts
}

fn blocks(seeds: &[Seed]) -> Vec<SourceBlock> {
    let mut blocks = vec![ExecutionBlock::new(); 3];
    for (number, seed) in (0u64..).zip(seeds) {
        blocks[seed.1].push(&segment(number, seed), &table(LOCAL));
    }
    let labels = |n: usize| Arc::new(Labels::new([("service", format!("s{n}").as_str())]).unwrap());
    let source = |(n, block)| SourceBlock { labels: labels(n), block: Arc::new(block) };
    blocks.into_iter().enumerate().map(source).collect()
}

fn sum(node: &CallTreeNode, figure: fn(&CallTreeNode) -> u64) -> u64 {
    figure(node) + node.children.iter().map(|child| sum(child, figure)).sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_analyses_count_the_same_calls(seeds in seeds()) {
        let blocks = blocks(&seeds);
        let calls: u64 = blocks.iter().map(|source| source.block.calls() as u64).sum();

        let operations = operations(&blocks, &ALL, None);
        prop_assert_eq!(operations.iter().map(|o| o.count).sum::<u64>(), calls);
        prop_assert_eq!(services(&blocks, &ALL).iter().map(|s| s.calls).sum::<u64>(), calls);

        let root = calltree(&blocks, &ALL).root;
        prop_assert_eq!(root.children.iter().map(|node| sum(node, |n| n.count)).sum::<u64>(), calls);
        let errors: u64 = operations.iter().map(|o| o.errors).sum();
        prop_assert_eq!(root.children.iter().map(|node| sum(node, |n| n.errors)).sum::<u64>(), errors);

        let graph = graph(&blocks, &ALL, Level::Operation);
        prop_assert_eq!(graph.nodes.iter().map(|n| n.count).sum::<u64>(), calls);
        for operation in &operations {
            let same = |n: &&crate::executions::GraphNode| {
                (&n.service, &n.operation) == (&operation.service, &operation.operation)
            };
            let node = graph.nodes.iter().find(same).expect("each operation must be a node");
            prop_assert_eq!((node.total_ns, node.self_ns), (operation.total_ns, operation.self_ns.unwrap()));
        }
    }

    #[test]
    fn no_time_is_counted_twice(seeds in seeds()) {
        let blocks = blocks(&seeds);
        // Time between events while a call is open, summed over all threads.
        let open = |row: tacho_chunk::RowRef<'_>| {
            let mut depth = 0u64;
            let steps = row.shape().events().iter().zip(row.deltas());
            steps.fold(0, |sum, (kind, delta)| {
                let sum = if depth > 0 { sum + delta } else { sum };
                depth = if matches!(kind, EventKind::Enter(_)) { depth + 1 } else { depth - 1 };
                sum
            })
        };
        let busy: u64 = blocks.iter().flat_map(|source| source.block.rows()).map(open).sum();
        let root = calltree(&blocks, &ALL).root;
        prop_assert_eq!(root.children.iter().map(|node| sum(node, |n| n.self_ns)).sum::<u64>(), busy);
        prop_assert_eq!(graph(&blocks, &ALL, Level::Service).nodes.iter().map(|n| n.self_ns).sum::<u64>(), busy);
    }

    #[test]
    fn each_trace_found_is_complete(seeds in seeds()) {
        let blocks = blocks(&seeds);
        let found = search(&blocks, &EVERYTHING);
        prop_assert_eq!(found.scanned, seeds.len() as u64);
        let traces: BTreeSet<u128> = seeds.iter().map(|seed| seed.0).collect();
        prop_assert_eq!(found.traces.len(), traces.len());
        prop_assert!(found.traces.is_sorted_by(|a, b| a.start >= b.start));
        for summary in found.traces {
            let trace = trace(&blocks, summary.trace_id).expect("a trace that was found must exist");
            prop_assert_eq!(trace.spans.len() as u64, summary.calls);
            for (at, span) in trace.spans.iter().enumerate() {
                let end = span.offset_ns + span.duration_ns;
                prop_assert!(end <= trace.duration_ns && span.self_ns <= span.duration_ns);
                // A span is one level below its parent, and its parent precedes it. A root has depth 0.
                let parent = trace.spans[..at].iter().find(|other| Some(other.id) == span.parent);
                prop_assert_eq!(span.depth, parent.map_or(0, |parent| parent.depth + 1));
            }
        }
    }

    #[test]
    fn search_results_are_independent_of_the_order_of_parts(
        seeds in seeds(),
        cuts in prop::collection::vec(1usize..12, 0..4),
        order in any::<u64>(),
    ) {
        let mut rows: Vec<(usize, Segment)> = Vec::new();
        for (number, seed) in (0u64..).zip(&seeds) {
            rows.extend(parts(&segment(number, seed), &cuts, 1).into_iter().map(|part| (seed.1, part)));
        }
        let searched = |rows: &[(usize, Segment)]| {
            let block = |(service, part): &(usize, Segment)| {
                let mut block = ExecutionBlock::new();
                block.push(part, &table(LOCAL));
                let labels = Labels::new([("service", format!("s{service}").as_str())]).unwrap();
                SourceBlock { labels: Arc::new(labels), block: Arc::new(block) }
            };
            let blocks: Vec<SourceBlock> = rows.iter().map(block).collect();
            search(&blocks, &EVERYTHING).traces
        };
        let in_order = searched(&rows);
        for turn in 0..6 {
            rows.sort_by_cached_key(|(_, part)| mix64(order ^ part.base ^ u64::from(part.part) << 8 ^ turn));
            prop_assert_eq!(&searched(&rows), &in_order);
        }
    }
}
