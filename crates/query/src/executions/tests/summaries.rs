//! Answers from summaries have the same figures as answers from the calls, except that percentiles differ by up to 1 %, and the
//! self times of HTTP client calls are missing or shorter.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::{CallSummary, ExecutionBlock, Point, find_callers};
use tacho_model::{Attribute, AttributeValue, Labels, OperationKind, Segment, SeriesId, TimeRange};

use super::awaited::graph;
use super::laws::{Seed, parts, seeds, segment, table};
use super::{SHOP, notation};
use crate::executions::limits::Limits;
use crate::executions::{
    Counters, Counts, Filter, Fold, Graph, GraphNode, Graphing, LabelsOf, Level, OperationStats, Operations,
    ServiceStats, Services, SourceBlock,
};

const KINDS: [OperationKind; 3] =
    [OperationKind::Method, OperationKind::HttpServer, OperationKind::HttpClient];
const MINUTE_NS: i64 = 60_000_000_000;
/// Ten days. The steps of this range are three hours long, so that slots of each length fit into a step.
const RANGE: TimeRange = TimeRange::new(0, 14_400 * MINUTE_NS);

/// What the passes after the first one get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Later {
    /// The blocks of the first pass, and no summaries.
    Kept,
    /// The same blocks and summaries as the first pass.
    Reread,
    /// Summaries of all blocks: the blocks of the first pass were flushed.
    Flushed,
}

/// Computes an answer. Replaces a block with `is_summed` by its summary if the fold accepts the summary. Also returns the number
/// of blocks that were replaced in the first pass.
fn answer<F: Fold>(blocks: &[(SourceBlock, bool)], later: Later, fold: F) -> (F::Answer, usize) {
    answer_of(blocks, later, false, fold)
}

/// The sum of the summaries of some blocks, as stored in a roll-up.
fn rolled(blocks: &[&SourceBlock]) -> CallSummary {
    let summaries: Vec<_> = blocks.iter().map(|source| CallSummary::of(&source.block).unwrap()).collect();
    let merged = CallSummary::merged(&summaries.iter().collect::<Vec<_>>()).unwrap();
    CallSummary::decode_with_names(&merged.encode_with_names()).unwrap()
}

/// Like [`answer`]. With `is_rolled`, first adds the sum of all summaries of a series.
fn answer_of<F: Fold>(
    blocks: &[(SourceBlock, bool)],
    later: Later,
    is_rolled: bool,
    mut fold: F,
) -> (F::Answer, usize) {
    let (mut summed, mut passes) = (HashSet::new(), 0);
    while fold.pass().is_some() {
        let is_first = passes == 0;
        passes += 1;
        if !is_first && later != Later::Kept {
            fold.reread();
        }
        let mut done = HashSet::new();
        let can_sum = fold.takes_summaries() && (is_first || later != Later::Kept);
        for service in ["a", "b"].into_iter().filter(|_| is_rolled && can_sum) {
            let is_meant = |(source, is_summed): &(SourceBlock, bool)| {
                source.service() == service && (*is_summed || (!is_first && later == Later::Flushed))
            };
            let meant: Vec<_> = blocks.iter().enumerate().filter(|(_, block)| is_meant(block)).collect();
            let Some((_, (first, _))) = meant.first() else { continue };
            let summary = rolled(&meant.iter().map(|(_, (source, _))| source).collect::<Vec<_>>());
            if fold.add_summary(&first.labels, &summary, false) {
                done.extend(meant.iter().map(|(number, _)| *number));
            }
        }
        if is_first {
            summed.extend(&done);
        }
        for (number, (SourceBlock { labels, block }, is_summed)) in blocks.iter().enumerate() {
            if done.contains(&number) || (!is_first && later == Later::Kept && summed.contains(&number)) {
                continue;
            }
            let is_summed = *is_summed || (!is_first && later == Later::Flushed);
            if is_summed && fold.takes_summaries() {
                let summary = CallSummary::of(block).expect("the block is small");
                let summary = CallSummary::decode(
                    &summary.encode(),
                    summary.operations.clone(),
                    summary.callers.clone(),
                )
                .unwrap();
                if (is_first || later != Later::Kept) && fold.add_summary(labels, &summary, false) {
                    if is_first {
                        summed.insert(number);
                    }
                    continue;
                }
            }
            fold.add(labels, block);
        }
    }
    (fold.finish(), summed.len())
}

/// Four blocks, two for each of two services. Segments are cut into parts, and the parts of a segment may be in different blocks.
fn blocks(seeds: &[Seed], cuts: &[usize], choices: u64) -> Vec<(SourceBlock, bool)> {
    let mut blocks = vec![ExecutionBlock::new(); 4];
    let mut bits = choices;
    for (number, seed) in (0u64..).zip(seeds) {
        let whole = segment(number, seed);
        let start = (number * 97 % 14_000) as i64 * MINUTE_NS + number as i64;
        for part in parts(&Segment { start, ..whole }, cuts, 0) {
            bits = bits.rotate_left(1);
            let status = Attribute {
                call: part.first_call,
                key: "http.status".into(),
                value: AttributeValue::Integer(if bits & 2 == 0 { 200 } else { 404 }),
            };
            let part = Segment { attributes: vec![status], ..part };
            blocks[seed.1 % 2 * 2 + (bits & 1) as usize].push(&part, &table(KINDS));
        }
    }
    let labels = |n: usize| Arc::new(Labels::new([("service", ["a", "b"][n / 2])]).unwrap());
    let source = |(n, block)| SourceBlock { labels: labels(n), block: Arc::new(block) };
    let sources = blocks.into_iter().enumerate().map(source);
    (0u32..).zip(sources).map(|(n, source)| (source, choices >> (20 + n) & 1 == 1)).collect()
}

fn is_close(got: u64, exact: u64) -> bool {
    u128::from(got.abs_diff(exact)) * 100 <= u128::from(exact)
}

/// The answer without percentiles and without self times of HTTP clients.
fn certain_operation(stats: &OperationStats) -> OperationStats {
    let is_client = stats.kind == OperationKind::HttpClient;
    let self_ns = if is_client { None } else { stats.self_ns };
    OperationStats { p50_ns: 0, p95_ns: 0, p99_ns: 0, self_ns, ..stats.clone() }
}

fn certain_service(stats: &ServiceStats) -> ServiceStats {
    let mut certain = ServiceStats { p50_ns: 0, p95_ns: 0, p99_ns: 0, ..stats.clone() };
    certain.timeline.iter_mut().for_each(|point| point.p95_ns = 0);
    certain
}

/// Stores the callers of the segments, as a flush does for all blocks that have a number in `stored`.
fn with_callers(blocks: &mut [(SourceBlock, bool)], stored: impl Fn(usize) -> bool) {
    let sources: Vec<_> = blocks.iter().map(|(source, _)| source.clone()).collect();
    let all: Vec<_> = sources.iter().map(|source| (id_of(&source.labels), &*source.block)).collect();
    for (number, ((source, _), found)) in blocks.iter_mut().zip(find_callers(&all)).enumerate() {
        if stored(number) {
            Arc::make_mut(&mut source.block).set_callers(&found);
        }
    }
}

fn id_of(labels: &Labels) -> SeriesId {
    SeriesId(if labels.get("service") == Some("a") { 1 } else { 2 })
}

/// Knows the labels of both services.
fn labels_of() -> LabelsOf {
    Arc::new(|id| {
        let service = ["a", "b"].get(usize::try_from(id.0).ok()?.checked_sub(1)?)?;
        Labels::new([("service", *service)]).ok().map(Arc::new)
    })
}

/// The graph without self times of nodes with calls of HTTP clients.
fn certain_graph(graph: &Graph) -> Graph {
    let mut certain = graph.clone();
    let has_clients = |node: &GraphNode| ["http-client", "service"].contains(&node.kind);
    certain.nodes.iter_mut().filter(|node| has_clients(node)).for_each(|node| node.self_ns = 0);
    certain
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn graphs_from_summaries_have_the_figures_of_the_calls(
        seeds in seeds(),
        cuts in prop::collection::vec(1usize..12, 0..4),
        choices in any::<u64>(),
        service in prop::option::of(prop::sample::select(vec!["a", "b", "c"])),
    ) {
        let mut blocks = blocks(&seeds, &cuts, choices);
        let mut later = vec![Later::Kept, Later::Reread];
        // If the callers of a block are not stored, its segments are joined with the calls of all blocks, so these are read.
        let stored = |number: usize| choices >> (30 + number) & 3 > 0;
        if (0..blocks.len()).all(stored) {
            with_callers(&mut blocks, |_| true);
            later.push(Later::Flushed);
        } else {
            with_callers(&mut blocks, stored);
            blocks.iter_mut().for_each(|(_, is_summed)| *is_summed = false);
        }
        let filter = Filter { service: service.map(str::to_owned), operation: None, range: RANGE };
        for level in [Level::Operation, Level::Service] {
            let (exact, none) = answer(&blocks, Later::Reread, Graphing::new(filter.clone(), level));
            prop_assert_eq!(none, 0);
            let all = [usize::MAX, 1].into_iter().flat_map(|rounds| later.iter().map(move |later| (rounds, *later)));
            let all = all.flat_map(|(rounds, later)| [false, true].map(|is_rolled| (rounds, later, is_rolled)));
            for (rounds, later, is_rolled) in all {
                let limits = Limits { causes: rounds, ..Limits::default() };
                let fold = Graphing::within(filter.clone(), level, &limits);
                let (got, _) = answer_of(&blocks, later, is_rolled, fold.from_summaries(labels_of()));
                prop_assert_eq!(certain_graph(&got), certain_graph(&exact), "{:?}", later);
                // Of other services, not all segments are read that show the time of a recorded server.
                let is_whole = filter.service.is_none();
                for (got, exact) in got.nodes.iter().zip(&exact.nodes).filter(|_| is_whole) {
                    prop_assert!(got.self_ns <= exact.self_ns, "{:?}, exact {:?}", got, exact);
                }
            }
        }
    }

    #[test]
    fn operations_and_services_from_summaries_have_the_figures_of_the_calls(
        seeds in seeds(),
        cuts in prop::collection::vec(1usize..12, 0..4),
        choices in any::<u64>(),
        has_range in any::<bool>(),
        is_rolled in any::<bool>(),
    ) {
        let blocks = blocks(&seeds, &cuts, choices);
        let range = if has_range { RANGE } else { TimeRange::ALL };
        let filter = Filter { service: None, operation: None, range };

        let (exact, _) = answer(&blocks, Later::Reread, Operations::new(filter.clone(), None));
        let fold = Operations::new(filter.clone(), None).from_summaries();
        let (got, summed) = answer_of(&blocks, Later::Reread, is_rolled, fold);
        prop_assert_eq!(summed, blocks.iter().filter(|(_, is_summed)| *is_summed).count());
        let certain = |all: &[OperationStats]| all.iter().map(certain_operation).collect::<Vec<_>>();
        prop_assert_eq!(certain(&got), certain(&exact));
        for (got, exact) in got.iter().zip(&exact) {
            for (got, exact) in [(got.p50_ns, exact.p50_ns), (got.p95_ns, exact.p95_ns), (got.p99_ns, exact.p99_ns)] {
                prop_assert!(is_close(got, exact), "got {}, exact {}", got, exact);
            }
            let lacks_served = summed > 0 && got.kind == OperationKind::HttpClient;
            prop_assert_eq!(got.self_ns, if lacks_served { None } else { exact.self_ns });
        }

        let (exact, _) = answer(&blocks, Later::Reread, Services::new(filter.clone()));
        let (got, _) = answer_of(&blocks, Later::Reread, is_rolled, Services::new(filter).from_summaries());
        let certain = |all: &[ServiceStats]| all.iter().map(certain_service).collect::<Vec<_>>();
        prop_assert_eq!(certain(&got), certain(&exact));
        for (got, exact) in got.iter().zip(&exact) {
            let points = got.timeline.iter().zip(&exact.timeline).map(|(got, exact)| (got.p95_ns, exact.p95_ns));
            let figures = [(got.p50_ns, exact.p50_ns), (got.p95_ns, exact.p95_ns), (got.p99_ns, exact.p99_ns)];
            for (got, exact) in figures.into_iter().chain(points) {
                prop_assert!(is_close(got, exact), "got {}, exact {}", got, exact);
            }
        }
    }
}

/// The client waits for the server, so all self times are exact.
#[test]
fn the_time_of_a_server_is_subtracted_from_its_client() {
    let sources = notation::blocks(SHOP);
    let known: Vec<_> = sources.iter().map(|source| (source.labels.id(), source.labels.clone())).collect();
    let all: Vec<_> = sources.iter().map(|source| (source.labels.id(), &*source.block)).collect();
    let mut called = sources.clone();
    for (source, found) in called.iter_mut().zip(find_callers(&all)) {
        Arc::make_mut(&mut source.block).set_callers(&found);
    }
    let labels_of: LabelsOf =
        Arc::new(move |id| known.iter().find(|(known, _)| *known == id).map(|(_, labels)| labels.clone()));
    let filter = Filter { service: None, operation: None, range: TimeRange::ALL };
    for level in [Level::Operation, Level::Service] {
        let exact = graph(&sources, &filter, level);
        let client = exact.nodes.iter().find(|node| node.id.contains("http-client")).map(|node| node.self_ns);
        assert!(level == Level::Service || client == Some(200), "{exact:?}");
        // Each mix of summaries and blocks.
        for choices in 0..1u32 << called.len() {
            let mixed: Vec<_> =
                (0..).zip(&called).map(|(n, source)| (source.clone(), choices >> n & 1 == 1)).collect();
            let fold = Graphing::new(filter.clone(), level).from_summaries(labels_of.clone());
            assert_eq!(answer(&mixed, Later::Kept, fold).0, exact, "{level:?}, {choices:b}");
        }
        // Nothing is known about a caller whose series must not be read.
        let fold = Graphing::new(filter.clone(), level).from_summaries(Arc::new(|_| None));
        let summed: Vec<_> = called.iter().map(|source| (source.clone(), true)).collect();
        let confined = answer(&summed, Later::Kept, fold).0;
        assert_eq!(confined.unknown_callers, 2, "{confined:?}");
        assert_eq!(confined.nodes.len(), exact.nodes.len());
    }
}

#[test]
fn segments_whose_callers_were_never_searched_are_joined() {
    let sources = notation::blocks(SHOP);
    let summed: Vec<_> = sources.iter().map(|source| (source.clone(), true)).collect();
    let filter = Filter { service: None, operation: None, range: TimeRange::ALL };
    let fold = Graphing::new(filter.clone(), Level::Operation).from_summaries(Arc::new(|_| None));
    let (got, used) = answer(&summed, Later::Kept, fold);
    // Only a block without segments that have a parent could be replaced by its summary.
    let with_parent = |source: &SourceBlock| source.block.rows().any(|row| row.parent().is_some());
    assert_eq!(used, sources.iter().filter(|source| !with_parent(source)).count());
    if used == 0 {
        assert_eq!(got, graph(&sources, &filter, Level::Operation));
    }
}

#[test]
fn a_summary_with_slots_longer_than_a_step_is_refused() {
    let mut blocks = blocks(&[(1, 0, None, vec![(0, 0, 1), (2, 0, 5)])], &[], u64::MAX);
    blocks.retain(|(source, _)| !source.block.is_empty());
    let filter = |minutes: i64| Filter {
        service: None,
        operation: None,
        range: TimeRange::new(0, minutes * MINUTE_NS),
    };
    let summed = |minutes| answer(&blocks, Later::Reread, Services::new(filter(minutes)).from_summaries()).1;
    assert_eq!([30, 60, 14_400].map(summed), [0, 0, 1]);
}

/// Half an hour has steps of 15 s. The only figures of a minute count in its first step, and the rate is that of whole hours.
#[test]
fn the_only_summary_is_used_with_longer_slots() {
    let mut blocks = blocks(&[(1, 0, None, vec![(0, 0, 1), (2, 0, 5)])], &[], u64::MAX);
    blocks.retain(|(source, _)| !source.block.is_empty());
    let (SourceBlock { labels, block }, _) = &blocks[0];
    let summary = CallSummary::by_minute(block).unwrap();
    let filter = || Filter { service: None, operation: None, range: TimeRange::new(0, 30 * MINUTE_NS - 1) };
    let mut operations = Operations::new(filter(), None).from_summaries();
    let mut services = Services::new(filter()).from_summaries();
    operations.pass();
    services.pass();
    for is_only in [false, true] {
        assert_eq!(operations.add_summary(labels, &summary, is_only), is_only);
        assert_eq!(services.add_summary(labels, &summary, is_only), is_only);
    }
    let (operations, services) = (operations.finish(), services.finish());
    let all: u64 = operations.iter().map(|operation| operation.count).sum();
    let first: u64 = operations.iter().map(|operation| operation.timeline[0].count).sum();
    assert!(all > 0 && first == all, "{operations:?}");
    let rate = services[0].requests as f64 / 3_600.0;
    assert!(rate > 0.0 && (services[0].rate - rate).abs() < 1e-9, "{services:?}");
}

/// Changes the summary of a block with one call, encodes and decodes it, and adds it twice to each answer. If `decode` refuses
/// the summary, both answers are empty.
fn fold_hostile(change: impl Fn(&mut CallSummary)) -> (Vec<OperationStats>, Vec<ServiceStats>) {
    let block = blocks(&[(1, 0, None, vec![(0, 0, 1), (2, 0, 5)])], &[], u64::MAX).into_iter();
    let (SourceBlock { labels, block }, _) = block.max_by_key(|(source, _)| source.block.calls()).unwrap();
    let mut summary = CallSummary::of(&block).unwrap();
    change(&mut summary);
    let (mut operations, mut services) = (
        Operations::new(Filter { service: None, operation: None, range: TimeRange::ALL }, None)
            .from_summaries(),
        Services::new(Filter { service: None, operation: None, range: TimeRange::ALL }).from_summaries(),
    );
    if let Ok(summary) =
        CallSummary::decode(&summary.encode(), summary.operations.clone(), summary.callers.clone())
    {
        operations.pass();
        services.pass();
        for _ in 0..2 {
            assert!(
                operations.add_summary(&labels, &summary, false)
                    && services.add_summary(&labels, &summary, false)
            );
        }
        for level in [Level::Operation, Level::Service] {
            let mut graph =
                Graphing::new(Filter { service: None, operation: None, range: TimeRange::ALL }, level)
                    .from_summaries(labels_of());
            graph.pass();
            (0..2).for_each(|_| _ = graph.add_summary(&labels, &summary, false));
            graph.finish();
        }
        for counts in [Counts::Calls, Counts::Errors] {
            for range in [
                TimeRange::new(0, 100 * MINUTE_NS),
                TimeRange::new(i64::MIN, i64::MIN + MINUTE_NS),
                TimeRange::new(1, 0),
            ] {
                let mut counters = Counters::new(counts, range, 1_000, |_| true);
                counters.pass();
                (0..2).for_each(|_| _ = counters.add_summary(&labels, &summary, false));
                counters.finish();
            }
        }
    }
    (operations.finish(), services.finish())
}

#[test]
fn hostile_summaries_do_not_panic() {
    let none = (vec![], vec![]);
    assert_eq!(fold_hostile(|summary| summary.operations = [].into()), none);
    let empty = |summary: &mut CallSummary| {
        summary.cells.clear();
        summary.requests.clear();
        summary.points.truncate(1);
        summary.points.iter_mut().for_each(|point| (point.count, point.errors) = (0, 0));
    };
    assert_eq!(fold_hostile(empty), none);
    let swapped = |summary: &mut CallSummary| {
        summary.cells.iter_mut().for_each(|cell| (cell.min_ns, cell.max_ns) = (cell.max_ns + 1, cell.min_ns));
    };
    assert_eq!(fold_hostile(swapped), none);

    // `decode` accepts these figures, because it does not compare them with the header of a chunk.
    let most = |slot: i64| {
        move |summary: &mut CallSummary| {
            summary.cells.truncate(1);
            summary.requests.clear();
            let cell = &mut summary.cells[0];
            (cell.count, cell.errors, cell.total_ns, cell.self_ns) = (u64::MAX, u64::MAX, u64::MAX, u64::MAX);
            cell.buckets = vec![(0, u64::MAX)];
            summary.points = vec![Point { slot, cell: 0, count: u64::MAX, errors: u64::MAX }];
        }
    };
    for slot in [0, 1, i64::MIN, i64::MAX] {
        let (operations, services) = fold_hostile(most(slot));
        assert_eq!((operations[0].count, operations[0].errors), (u64::MAX, u64::MAX), "{slot}");
        assert_eq!(services[0].calls, u64::MAX, "{slot}");
    }
}
