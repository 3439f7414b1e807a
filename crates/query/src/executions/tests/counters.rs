//! Counters of calls have the same samples from the calls and from summaries, and count each call once.

use std::sync::Arc;

use tacho_chunk::{CallSummary, ExecutionBlock};
use tacho_model::{Event, EventKind, Labels, Operation, OperationKind, Segment, TimeRange, TraceId};

use crate::executions::{Counter, CounterList, Counters, Counts, Fold, SourceBlock};

const MINUTE: i64 = 60_000_000_000;
const DAY: i64 = 1_440 * MINUTE;

/// A failed call of this duration.
fn call(start: i64, duration: u64) -> Segment {
    Segment {
        trace: TraceId(1),
        base: start.cast_unsigned(),
        part: 0,
        parent: None,
        thread: "t".into(),
        start,
        carried: vec![],
        first_call: 0,
        events: vec![
            Event { delta: 0, kind: EventKind::Enter(0) },
            Event { delta: duration, kind: EventKind::ExitFailed },
        ],
        attributes: vec![],
    }
}

fn block(calls: &[Segment]) -> SourceBlock {
    let mut block = ExecutionBlock::new();
    let operations = [Operation { kind: OperationKind::Method, name: "m".into() }];
    calls.iter().for_each(|call| block.push(call, &operations));
    let labels = Labels::new([("host", "h"), ("service", "s"), ("pid", "1")]).unwrap();
    SourceBlock { labels: Arc::new(labels), block: Arc::new(block) }
}

/// The samples of each counter. Also returns the number of summaries used.
fn counted(blocks: &[SourceBlock], counts: Counts, range: TimeRange) -> (Vec<Vec<f64>>, usize) {
    let mut counters = Counters::new(counts, range, 100_000, |key| &*key.service == "s");
    let (read, mut summed) = (counters.range(), 0);
    while counters.pass().is_some() {
        for SourceBlock { labels, block } in blocks {
            let times = block.range();
            let is_within = read.contains(times.start) && read.contains(times.end);
            let summary = CallSummary::of(block).unwrap();
            if is_within && counters.takes_summaries() && counters.add_summary(labels, &summary) {
                summed += 1;
            } else {
                counters.add(labels, block);
            }
        }
    }
    let CounterList { counters, is_over: false } = counters.finish() else { panic!("too many samples") };
    (counters.into_iter().next().map_or(vec![], |Counter { values, .. }| values), summed)
}

#[test]
fn a_counter_counts_the_calls_of_a_day_before_each_minute() {
    let calls = [
        call(DAY - 90 * 1_000_000_000, 90_000),
        call(DAY - 1, 2_000_000),
        call(DAY, 10_000_000),
        call(DAY + MINUTE, 10_000_001),
        call(DAY + 2 * MINUTE, 70_000_000_000),
    ];
    let blocks: Vec<SourceBlock> = calls.iter().map(|call| block(std::slice::from_ref(call))).collect();
    let range = TimeRange::new(DAY - 2 * MINUTE + 1, DAY + 2 * MINUTE + 5);
    let first = |counts| counted(&blocks, counts, range).0.remove(0);
    assert_eq!(first(Counts::Calls), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(first(Counts::Errors), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(first(Counts::Durations), [0.000_09, 0.002_09, 0.01, 0.020_000_001]);
    let (buckets, _) = counted(&blocks, Counts::Buckets, range);
    let last: Vec<f64> = buckets.iter().map(|values| values[3]).collect();
    assert_eq!(last, [0., 0., 0., 0., 0., 0., 1., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2.]);
    let second: Vec<f64> = buckets.iter().map(|values| values[1]).collect();
    assert_eq!(second[..5], [1.0, 1.0, 1.0, 1.0, 2.0]);
    assert_eq!(Counters::new(Counts::Calls, range, 1, |_| true).times(), (DAY - MINUTE, 4));
}

#[test]
fn counters_from_summaries_equal_those_from_the_calls() {
    // The first calls are so few that their summaries have long slots. The last ones are many in few minutes.
    let early: Vec<Segment> = (0..50).map(|n| call(n * 7 * MINUTE, 5)).collect();
    let late: Vec<Segment> = (0..500).map(|n| call(1_000 * MINUTE + n * 1_000_000_000, 5)).collect();
    let blocks = [block(&early), block(&late)];
    assert_eq!(
        [&early, &late].map(|calls| CallSummary::of(&block(calls).block).unwrap().slot_s),
        [3_600, 60]
    );
    for (first, last, summed) in [(900, 1_100, 2), (100, 1_100, 1), (1_003, 1_004, 1), (0, 100, 0)] {
        let range = TimeRange::new(first * MINUTE, last * MINUTE);
        let (values, used) = counted(&blocks, Counts::Calls, range);
        assert_eq!(used, summed, "{first}");
        let all = || early.iter().chain(&late);
        let before = |minute: i64| all().filter(|call| call.start < minute * MINUTE).count() as f64;
        let expected: Vec<f64> = (first..=last).map(before).collect();
        assert_eq!(values, [expected], "{first}");
    }
}

#[test]
fn too_many_samples_are_refused() {
    let blocks = [block(&[call(0, 5)])];
    let over = |samples_max| {
        let range = TimeRange::new(MINUTE, 10 * MINUTE);
        let mut counters = Counters::new(Counts::Buckets, range, samples_max, |_| true);
        while counters.pass().is_some() {
            blocks.iter().for_each(|source| counters.add(&source.labels, &source.block));
        }
        counters.finish().is_over
    };
    assert_eq!([179, 180].map(over), [true, false]);
}
