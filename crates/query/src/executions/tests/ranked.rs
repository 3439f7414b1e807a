//! A search that reads chunks by rank, and skips chunks, finds the same traces as a search that reads all chunks.

use std::cmp::Reverse;
use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::{CallSummary, ExecutionBlock, SummarizedChunk};
use tacho_model::{Labels, OperationKind, Segment, TimeRange};

use super::laws::{EVERYTHING, OPERATIONS, Seed, parts, seeds, segment, table};
use crate::executions::{Filter, Fold, Order, Outcome, Search, SearchResult, Searching, SourceBlock};

const KINDS: [OperationKind; 3] =
    [OperationKind::Method, OperationKind::HttpServer, OperationKind::HttpClient];
const MINUTE_NS: i64 = 60_000_000_000;
const BLOCKS: usize = 8;

/// Searches like a reader of the store: blocks without a summary first, then the others by descending rank. Also returns the
/// number of blocks that the search did not need.
pub fn ranked(blocks: &[(SourceBlock, bool)], search: &Search) -> (SearchResult, usize) {
    let (mut fold, mut skipped) = (Searching::new(search.clone()), 0);
    while fold.pass().is_some() {
        let (with, without): (Vec<_>, Vec<_>) =
            blocks.iter().partition(|(_, is_summed)| *is_summed && fold.ranks_chunks());
        for (SourceBlock { labels, block }, _) in without {
            add(&mut fold, labels, block);
        }
        let mut order = vec![];
        for (source, _) in with {
            let (segments, range) = (source.block.len(), source.block.range());
            let summary = CallSummary::of(&source.block).expect("the block is small");
            let summary =
                CallSummary::decode(&summary.encode(), summary.operations.clone(), summary.callers.clone())
                    .unwrap();
            let chunk = SummarizedChunk { summary: &summary, segments, range };
            match fold.rank(&source.labels, chunk) {
                Some(rank) => order.push((rank, source)),
                None => skipped += 1,
            }
        }
        order.sort_by_key(|(rank, _)| Reverse(*rank));
        for (rank, SourceBlock { labels, block }) in order {
            skipped += usize::from(!fold.needs_rank(rank, block.len()) || !add(&mut fold, labels, block));
        }
    }
    (fold.finish(), skipped)
}

/// Adds the segments of a block that pass the first test of the pass. Returns whether there are any.
fn add(fold: &mut Searching, labels: &Labels, block: &ExecutionBlock) -> bool {
    let Some(test) = fold.first_test() else {
        fold.add(labels, block);
        return true;
    };
    fold.examined(block.len());
    let mut passing = ExecutionBlock::new();
    let rows = block.rows().filter(|row| row.attributes().any(|a| test.takes(a.key, a.value)));
    rows.for_each(|row| passing.push_row(row));
    fold.add(labels, &passing);
    !passing.is_empty()
}

fn exact(blocks: &[(SourceBlock, bool)], search: &Search) -> SearchResult {
    let unsummed: Vec<_> = blocks.iter().map(|(source, _)| (source.clone(), false)).collect();
    ranked(&unsummed, search).0
}

/// Blocks of two services. The bits of `choices` select the block of each part of a segment, and the blocks with a summary.
fn blocks(seeds: &[Seed], cuts: &[usize], choices: u64) -> Vec<(SourceBlock, bool)> {
    let (mut blocks, mut bits) = (vec![ExecutionBlock::new(); BLOCKS], choices);
    for (number, seed) in (0u64..).zip(seeds) {
        let whole = segment(number, &(seed.0 + 3 * u128::from(number % 5), seed.1, seed.2, seed.3.clone()));
        let start = (number * 97 % 700) as i64 * MINUTE_NS + number as i64;
        for part in parts(&Segment { start, ..whole }, cuts, 0) {
            bits = bits.rotate_left(2);
            blocks[seed.1 % 2 * (BLOCKS / 2) + (bits & 3) as usize].push(&part, &table(KINDS));
        }
    }
    let labels = |n: usize| Arc::new(Labels::new([("service", ["a", "b"][n / (BLOCKS / 2)])]).unwrap());
    let source = |(n, block)| SourceBlock { labels: labels(n), block: Arc::new(block) };
    let sources = blocks.into_iter().enumerate().map(source).filter(|source| !source.block.is_empty());
    (0u32..).zip(sources).map(|(n, source)| (source, choices >> (20 + n) & 1 == 1)).collect()
}

fn searches() -> impl Strategy<Value = Search> {
    let outcome =
        prop::sample::select(vec![None, Some(Outcome::Ok), Some(Outcome::Failed), Some(Outcome::Running)]);
    let range = prop::sample::select(vec![
        TimeRange::ALL,
        TimeRange::new(90 * MINUTE_NS + 7, 400 * MINUTE_NS),
        TimeRange::new(i64::MIN, 300 * MINUTE_NS + 3),
    ]);
    let operation = prop::option::of(0..OPERATIONS);
    let durations = (prop::option::of(0u64..4_000), prop::option::of(0u64..4_000));
    (prop::bool::ANY, operation, range, durations, outcome, 0..Order::ALL.len(), 1usize..5).prop_map(
        |(is_of_service, operation, range, (duration_ns_min, duration_ns_max), outcome, order, limit)| {
            let service = (is_of_service || operation.is_none()).then(|| "a".to_owned());
            let operation = operation.map(|operation| format!("o{operation}"));
            let (filter, order) = (Filter { service, operation, range }, Order::ALL[order]);
            Search { filter, duration_ns_min, duration_ns_max, outcome, order, limit, ..EVERYTHING }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_search_by_rank_finds_the_traces_of_a_search_of_all_blocks(
        seeds in seeds(),
        cuts in prop::collection::vec(1usize..12, 0..3),
        choices in any::<u64>(),
        search in searches(),
    ) {
        let blocks = blocks(&seeds, &cuts, choices);
        let (exact, (got, _)) = (exact(&blocks, &search), ranked(&blocks, &search));
        prop_assert_eq!(&got.traces, &exact.traces);
        prop_assert_eq!(got.scanned, exact.scanned);
        prop_assert!(got.truncated || !exact.truncated);
    }
}

#[test]
fn chunks_that_cannot_have_one_of_the_first_calls_are_skipped() {
    // Ten blocks, an hour apart. Each has five calls of a trace of its own; those of block `n` take `100 * n` ns and more.
    let block = |n: u64| {
        let seed = |call: u64| (u128::from(n) + 1, 0, None, vec![(0, 0, 1), (2, 0, 100 * n + call)]);
        let start = n as i64 * 60 * MINUTE_NS;
        let row = |call| Segment { start, ..segment(n * 5 + call, &seed(call)) };
        summed(&(0..5).map(row).collect::<Vec<_>>())
    };
    let blocks: Vec<_> = (0..10).map(block).collect();
    let check = |order: Order, change: &dyn Fn(&mut Search), skipped: usize| {
        let mut search = Search { limit: 2, ..of_service(order, None) };
        change(&mut search);
        let (got, found) = ranked(&blocks, &search);
        assert_eq!((&got.traces, got.scanned), (&exact(&blocks, &search).traces, 50), "{search:?}");
        assert_eq!(found, skipped, "{search:?}");
    };
    Order::ALL.into_iter().for_each(|order| check(order, &|_| (), 8));
    check(Order::Newest, &|search| search.duration_ns_max = Some(350), 8);
    check(Order::Newest, &|search| search.duration_ns_min = Some(905), 10);
    check(Order::Newest, &|search| search.outcome = Some(Outcome::Failed), 10);
    check(Order::Newest, &|search| search.outcome = Some(Outcome::Running), 10);
    check(Order::Slowest, &|search| search.filter.operation = Some("o1".into()), 10);
    check(Order::Slowest, &|search| search.filter.range.end = 150 * MINUTE_NS, 8);
    check(Order::Slowest, &|search| search.filter.service = Some("b".into()), 10);
    check(Order::Slowest, &|search| search.limit = 100, 0);
}

/// A block of service `a` with a summary.
fn summed(rows: &[Segment]) -> (SourceBlock, bool) {
    let mut block = ExecutionBlock::new();
    rows.iter().for_each(|row| block.push(row, &table(KINDS)));
    let labels = Arc::new(Labels::new([("service", "a")]).unwrap());
    (SourceBlock { labels, block: Arc::new(block) }, true)
}

fn of_service(order: Order, outcome: Option<Outcome>) -> Search {
    let filter = Filter { service: Some("a".into()), operation: None, range: TimeRange::ALL };
    Search { filter, outcome, order, limit: 1, ..EVERYTHING }
}

#[test]
fn of_equal_calls_in_different_chunks_the_trace_with_the_smaller_id_is_first() {
    let call = |trace: u64| segment(trace, &(trace.into(), 0, None, vec![(0, 0, 0), (2, 0, 5)]));
    let (found, skipped) =
        ranked(&[2, 1].map(|trace| summed(&[call(trace)])), &of_service(Order::Slowest, None));
    let ids: Vec<u128> = found.traces.iter().map(|trace| trace.trace_id.0).collect();
    assert_eq!((ids, skipped), (vec![1], 0));
}

#[test]
fn a_call_that_ends_in_a_skipped_chunk_is_not_running() {
    let whole = segment(1, &(1, 0, None, vec![(0, 0, 0), (2, 0, 1_000)]));
    let blocks: Vec<_> = parts(&whole, &[1], 0).into_iter().map(|part| summed(&[part])).collect();
    let search = of_service(Order::Slowest, Some(Outcome::Running));
    let (found, skipped) = ranked(&blocks, &search);
    assert_eq!((found.traces, found.scanned, skipped), (vec![], 2, 1));
    assert_eq!(ranked(&blocks[..1], &search).0.traces.len(), 1);
}
