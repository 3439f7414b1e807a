//! Counters of calls have the same samples from the calls and from summaries, and count each call once.

use std::sync::Arc;

use tacho_chunk::{CallSummary, ExecutionBlock};
use tacho_model::{Event, EventKind, Labels, Operation, OperationKind, Segment, TimeRange, TraceId};

use crate::executions::{Counter, CounterList, Counters, Counts, Fold, SourceBlock};
use crate::promql::{self, Output, Params, Piece, SeriesData};

const MINUTE: i64 = 60_000_000_000;
const DAY: i64 = 1_440 * MINUTE;
const MS: i64 = 1_000_000;

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

fn list(blocks: &[SourceBlock], counts: Counts, range: TimeRange) -> CounterList {
    let mut counters = Counters::new(counts, range, 1_000_000, |_| true);
    while counters.pass().is_some() {
        blocks.iter().for_each(|SourceBlock { labels, block }| counters.add(labels, block));
    }
    counters.finish()
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
            if is_within && counters.takes_summaries() && counters.add_summary(labels, &summary, false) {
                summed += 1;
            } else {
                counters.add(labels, block);
            }
        }
    }
    let CounterList { counters, is_over: false, .. } = counters.finish() else { panic!("too many samples") };
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
    assert_eq!(first(Counts::Calls), [1.0, 2.0, 0.0, 1.0, 2.0]);
    assert_eq!(first(Counts::Errors), [1.0, 2.0, 0.0, 1.0, 2.0]);
    assert_eq!(first(Counts::Durations), [0.000_09, 0.002_09, 0.0, 0.01, 0.020_000_001]);
    let (buckets, _) = counted(&blocks, Counts::Buckets, range);
    let last: Vec<f64> = buckets.iter().map(|values| values[4]).collect();
    assert_eq!(last, [0., 0., 0., 0., 0., 0., 1., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2.]);
    let second: Vec<f64> = buckets.iter().map(|values| values[1]).collect();
    assert_eq!(second[..5], [1.0, 1.0, 1.0, 1.0, 2.0]);
}

#[test]
fn durations_come_from_summaries_of_many_calls() {
    // 256 calls in each of two minutes before and after midnight. Some durations are at a bound, some just below or above it.
    let durations = [0, 99_999, 100_000, 100_001, 2_500_000, 59_000_000_000, 70_000_000_000, 1];
    let minute = |minute: i64| {
        let start = DAY + minute * MINUTE;
        (0..256).map(move |n: usize| call(start + n.cast_signed() as i64, durations[n % 8]))
    };
    let calls: Vec<Segment> = (-2..2).flat_map(minute).collect();
    let dense = [block(&calls[..768]), block(&calls[768..])];
    let few = [block(&calls[..60]), block(&calls[60..])];
    let range = TimeRange::new(DAY - 3 * MINUTE, DAY + 4 * MINUTE);
    for counts in [Counts::Durations, Counts::Buckets] {
        let (exact, _) = counted(&[], counts, range);
        assert_eq!(exact, Vec::<Vec<f64>>::new());
        let exact: Vec<Vec<f64>> = list(&dense, counts, range).counters.remove(0).values;
        for (blocks, least) in [(&dense, 2), (&few, 1)] {
            let (values, summed) = counted(blocks, counts, range);
            assert_eq!(values, exact, "{counts:?}");
            assert!(summed >= least, "{counts:?}: {summed} summaries");
        }
    }
}

/// The times of the samples in a range.
fn times(start: i64, end: i64) -> Vec<i64> {
    let minute = start.div_euclid(MINUTE) * MINUTE;
    let blocks = [block(&[call(minute - 1, 1), call(minute, 1)])];
    let list = list(&blocks, Counts::Calls, TimeRange::new(start, end));
    let times: Vec<i64> = list.times.iter().flat_map(|times| times.to_vec()).collect();
    assert!(list.counters.iter().all(|counter| counter.values[0].len() == times.len()), "{start} to {end}");
    times
}

#[test]
fn a_sample_of_value_0_follows_each_midnight() {
    let around = |midnight: i64| [midnight - MINUTE, midnight, midnight + MS, midnight + MINUTE];
    assert_eq!(times(DAY - MINUTE, DAY + MINUTE), around(DAY));
    assert_eq!(times(DAY - MINUTE, DAY + MS - 1), around(DAY)[..2]);
    assert_eq!(times(DAY, DAY + MS), around(DAY)[1..3]);
    assert_eq!(times(DAY + MS, DAY + MINUTE), around(DAY)[2..]);
    assert_eq!(times(DAY + MS + 1, DAY + MINUTE), around(DAY)[3..]);
    assert_eq!(times(-MINUTE, MINUTE), around(0));
    let days = times(DAY - MINUTE, 3 * DAY + MINUTE);
    assert_eq!((days.len(), days.is_sorted_by(|a, b| a < b)), (2 * 1_440 + 3 + 3, true));
}

/// The value of a PromQL query over a counter that is named `m`. `le` is the index of the counter.
fn asked(query: &str, at: i64, (list, le): (&CounterList, usize)) -> f64 {
    let labels = Arc::new(Labels::new([("__name__", "m")]).unwrap());
    let piece = |(at, values)| Piece::Samples { at, values };
    let pieces = list.pieces(&list.counters[0].values[le]).map(piece).collect();
    let plan = promql::parse(query).unwrap().plan(&Params::range(at, at, MINUTE)).unwrap();
    let output = plan.evaluate(&[vec![SeriesData { labels, pieces }]]).unwrap();
    let Output::Matrix(series) = output else { panic!("a range query returns a matrix") };
    series[0].points[0].value
}

#[test]
fn increase_over_midnight_is_the_number_of_calls() {
    // A job just after each midnight: as many calls as on the day before, more calls, longer calls, fewer calls.
    let jobs = [(50, 5), (50, 5), (80, 5), (90, 200_000_000), (10, 5)];
    let days = (0i64..).zip(jobs);
    let job = |(day, (count, duration))| (0..count).map(move |n| call(day * DAY + n, duration));
    let mut calls: Vec<Segment> = days.flat_map(job).collect();
    calls.extend((0..5).map(|day| call(day * DAY + 700 * MINUTE, 5)));
    let blocks = [block(&calls)];
    let range = TimeRange::new(0, 5 * DAY);
    for (counts, bounds) in [(Counts::Calls, vec![0]), (Counts::Buckets, vec![0, 16, 17])] {
        let list = list(&blocks, counts, range);
        for le in bounds {
            let is_counted =
                |call: &Segment| le > 0 || counts == Counts::Calls || call.events[1].delta < 100_000;
            for (start, end) in [(0, 5), (0, 1_440), (0, 1_445), (1_440, 2_885), (2_880, 4_325), (0, 7_000)] {
                let (start_ns, end_ns) = (start * MINUTE, end * MINUTE);
                let within = |call: &&Segment| (start_ns..end_ns).contains(&call.start) && is_counted(call);
                let expected = calls.iter().filter(within).count() as f64;
                let got = |query: &str| asked(&format!("{query}(m[{}m])", end - start), end_ns, (&list, le));
                assert!((got("increase") - expected).abs() < 1e-6, "{counts:?} {le}: {start} to {end}");
                let per_second = expected / ((end - start) * 60) as f64;
                assert!((got("rate") - per_second).abs() < 1e-9, "{counts:?} {le}: {start} to {end}");
            }
            // The first sample of a window that begins within a day is a minute after the start of the window. `increase`
            // extrapolates over this minute.
            for midnight in 1..5 {
                let end = midnight * DAY + 300 * MINUTE;
                let within =
                    |call: &&Segment| (end - 600 * MINUTE..end).contains(&call.start) && is_counted(call);
                let expected = calls.iter().filter(within).count() as f64;
                let got = asked("increase(m[10h])", end, (&list, le));
                assert!((got - expected).abs() <= expected / 500.0, "{counts:?} {le}: {got} for {expected}");
            }
        }
    }
}

#[test]
fn counters_from_summaries_equal_those_from_the_calls() {
    // The summary of few calls has long slots. The summary of two or more calls per minute has short slots.
    let early: Vec<Segment> = (0..50).map(|n| call(n * 7 * MINUTE, 5)).collect();
    let late: Vec<Segment> = (0..500).map(|n| call(1_000 * MINUTE + n * 1_000_000_000, 5)).collect();
    let blocks = [block(&early), block(&late)];
    let slot_s = |calls: &[Segment]| CallSummary::of(&block(calls).block).unwrap().slot_s;
    let per_minute = |calls: i64| (0..50 * calls).map(|n| call(n * MINUTE / calls, 5)).collect::<Vec<_>>();
    assert_eq!(
        [early.clone(), per_minute(1), per_minute(2), late.clone()].map(|c| slot_s(&c)),
        [900, 300, 60, 60]
    );
    for (first, last, summed) in [(900, 1_100, 2), (100, 1_100, 1), (1_003, 1_004, 1), (1, 100, 0)] {
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
