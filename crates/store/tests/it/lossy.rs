//! Rules never reduce precision by more than they permit. This holds for any division of the samples into batches, and for any
//! order and repetition of the batches.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::Tolerance;
use tacho_chunk::semantic::Semantic;
use tacho_model::{Kind, ManualClock, Matcher, NAME, TimeRange, mix64};
use tacho_store::policy::{Policies, Rule};
use tacho_store::{MemoryDriver, Options, Store};

use crate::common::{self, Bench, samples, values};

const ALL: TimeRange = TimeRange::ALL;
const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
/// Long after all samples, so that lossy reductions may apply to every chunk.
const NOW: i64 = 100 * 86_400 * SECOND;

type Points = Vec<(i64, f64)>;

fn bench(semantic: Option<Semantic>) -> Bench {
    let rule = |then| Rule { matchers: vec![Matcher::equal(NAME, "m")], then };
    let policies = Policies { semantic: semantic.map(rule).into_iter().collect(), ..Policies::default() };
    let options = Options { merge_in_background: false, policies: Arc::new(policies), ..Options::default() };
    Bench::with(Arc::new(MemoryDriver::new()), options)
}

fn percent(share: f64) -> Semantic {
    Semantic { value: Some(Tolerance::Relative(share / 100.0)), ..Semantic::default() }
}

async fn open(bench: &Bench) -> Arc<Store> {
    let clock = Arc::new(ManualClock::new(NOW));
    Store::open(bench.driver.clone(), bench.directory.path(), bench.options.clone(), clock).await.unwrap()
}

/// Sends and flushes one piece after the other. Merges after the marked pieces.
async fn feed(store: &Store, pieces: &[(&[(i64, f64)], bool)]) {
    for (points, merge) in pieces {
        store.append(samples("m", points), None).await.unwrap();
        store.flush().await.unwrap();
        if *merge {
            store.merge_all().await.unwrap();
        }
    }
}

async fn bytes_a_value(store: &Store) -> f64 {
    let chunks = store.chunks(Kind::Sample, common::id("m")).await.unwrap();
    let (bytes, count) =
        chunks.iter().fold((0, 0), |(b, c), chunk| (b + chunk.bytes, c + chunk.header.count));
    bytes as f64 / count as f64
}

/// Six pieces. After the first, second, fourth and sixth, all pieces sent until then are merged.
fn in_six(points: &[(i64, f64)]) -> Vec<(&[(i64, f64)], bool)> {
    points.chunks(points.len().div_ceil(6)).zip([true, true, false, true, false, true]).collect()
}

/// Rises from 1000 to 1011 within 10,000 seconds.
fn slow_counter() -> Points {
    (0..10_000).map(|n| (n * SECOND, 1_000.0 + (n * 11 / 9_999) as f64)).collect()
}

#[tokio::test]
async fn a_slow_counter_without_a_counter_name_keeps_every_increase() {
    let points = slow_counter();
    for pieces in [vec![(&points[..], true)], in_six(&points)] {
        let bench = bench(Some(percent(1.0)));
        let store = open(&bench).await;
        feed(&store, &pieces).await;
        let read = values(&store, "m", ALL).await;
        assert_eq!((changes(&read), increase(&read)), (11, 11.0), "in {} pieces", pieces.len());
        assert_eq!(read, points);
    }
}

fn changes(points: &[(i64, f64)]) -> usize {
    points.windows(2).filter(|pair| pair[0].1 != pair[1].1).count()
}

/// The increase as in PromQL, without extrapolation. A decrease counts as a restart from 0.
fn increase(points: &[(i64, f64)]) -> f64 {
    let step = |pair: &[(i64, f64)]| {
        if pair[1].1 < pair[0].1 { pair[1].1 } else { pair[1].1 - pair[0].1 }
    };
    points.windows(2).map(step).sum()
}

/// A random counter. `rises` and `restarts` are per thousand samples. `restarts` is limited to a tenth of `rises`, rounded up.
fn counter(seed: u64, count: u64, rises: u64, restarts: u64) -> Points {
    let mut value = (mix64(seed) % 5_000) as f64;
    let mut next = |n: u64| {
        let chance = mix64(seed ^ (n << 20));
        let size = mix64(chance);
        if chance % 1_000 < restarts && chance % 1_000 < rises.div_ceil(10) {
            value = match size % 4 {
                0 => 0.0,
                1 => (size >> 8) as f64 % (value + 1.0),
                2 => (value - 1.0).max(0.0),
                _ => (value * 0.9).floor(),
            };
        } else if (chance >> 32) % 1_000 < rises {
            value += (size % 7) as f64 / if seed.is_multiple_of(2) { 1.0 } else { 8.0 };
        }
        (n as i64 * SECOND, value)
    };
    (0..count).map(&mut next).collect()
}

/// Temperatures: a wave with noise.
fn gauge(count: i64) -> Points {
    let noise = |n: i64| (mix64(n as u64) % 1_000) as f64 / 1_000.0;
    (0..count).map(|n| (n * SECOND, 300.0 + 40.0 * (n as f64 / 700.0).sin() + noise(n))).collect()
}

#[tokio::test]
async fn a_read_states_how_exact_each_series_is() {
    let bench = bench(Some(percent(1.0)));
    let store = open(&bench).await;
    feed(&store, &[(&gauge(1_000), true)]).await;
    store.append(samples("n", &[(5, 1.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    let ids = ["n", "m", "nothing"].map(common::id);
    let answer = store.read_short_samples(&ids, ALL, 1_001).await.unwrap().expect("there are 1,001 samples");
    let errors: Vec<f64> = answer.exactness.iter().map(|exactness| exactness.value_error_max).collect();
    assert!(errors[1] > 0.0, "{errors:?}");
    assert_eq!(errors, [0.0, answer.report.value_error_max, 0.0]);
    assert!(store.read_short_samples(&ids, ALL, 1_000).await.unwrap().is_none());
}

#[tokio::test]
async fn values_in_pieces_become_almost_as_small_as_in_one_batch() {
    let points = gauge(4_800);
    let size = async |rule: Option<Semantic>, pieces: &[(&[(i64, f64)], bool)]| {
        let bench = bench(rule);
        let store = open(&bench).await;
        feed(&store, pieces).await;
        let read = values(&store, "m", ALL).await;
        let worst = points.iter().zip(&read).map(|(a, b)| (a.1 - b.1).abs() / a.1).fold(0.0, f64::max);
        assert!(read.len() == points.len() && worst <= rule.map_or(0.0, |_| 0.01), "{worst}");
        bytes_a_value(&store).await
    };
    let rule = Some(percent(1.0));
    let exact = size(None, &[(&points, true)]).await;
    let once = size(rule, &[(&points, true)]).await;
    let many: Vec<_> = points.chunks(120).zip([false, true, true, true].into_iter().cycle()).collect();
    let mut turned: Vec<_> = in_six(&points).into_iter().rev().collect();
    turned[5].1 = true;
    for pieces in [in_six(&points), turned, many] {
        let bytes = size(rule, &pieces).await;
        let saved = (exact - bytes) / (exact - once);
        let told =
            format!("{} pieces: {bytes:.3}, once {once:.3}, exact {exact:.3} bytes a value", pieces.len());
        println!("{told}");
        assert!(saved >= 0.8, "{told}");
    }
}

/// About one sample every second, with a jitter of up to 50 ms.
fn jittered(count: i64) -> Points {
    let jitter = |n: i64| (mix64(n as u64) % 100_000) as i64 * 1_000 - 50 * MS;
    (1..=count).map(|n| (n * SECOND + jitter(n), (mix64(n as u64 + 7) % 1_000) as f64)).collect()
}

const MOVED: Semantic =
    Semantic { time: 200 * MS as u64, value: None, method: tacho_chunk::Method::Linear, aggregation: None };

#[tokio::test]
async fn times_in_pieces_become_almost_as_small_as_in_one_batch() {
    let points: Points = jittered(4_800).into_iter().map(|(at, _)| (at, 1.0)).collect();
    let size = async |rule: Option<Semantic>, pieces: &[(&[(i64, f64)], bool)]| {
        let bench = bench(rule);
        let store = open(&bench).await;
        feed(&store, pieces).await;
        let read = values(&store, "m", ALL).await;
        let worst = points.iter().zip(&read).map(|(a, b)| (a.0 - b.0).unsigned_abs()).max();
        let bound = rule.map_or(0, |rule| rule.time);
        assert!(read.len() == points.len() && worst <= Some(bound), "{worst:?}");
        bytes_a_value(&store).await
    };
    let exact = size(None, &[(&points, true)]).await;
    let once = size(Some(MOVED), &[(&points, true)]).await;
    for turned in [false, true] {
        let mut pieces = in_six(&points);
        if turned {
            pieces.reverse();
            pieces[5].1 = true;
        }
        let bytes = size(Some(MOVED), &pieces).await;
        let told = format!("{bytes:.3}, once {once:.3}, exact {exact:.3} bytes a value");
        println!("{told}");
        assert!((exact - bytes) / (exact - once) >= 0.8, "{told}");
    }
}

#[tokio::test]
async fn a_resent_batch_with_moved_times_is_stored_once() {
    let points = jittered(10_000);
    let bench = bench(Some(MOVED));
    let store = open(&bench).await;
    feed(&store, &[(&points, true)]).await;
    let once = values(&store, "m", ALL).await;
    assert!(once != points && once.len() == points.len());
    let chunks = store.chunks(Kind::Sample, common::id("m")).await.unwrap();
    assert!(chunks.iter().all(|chunk| chunk.header.time_error_max > 0));
    store.append(samples("m", &points), None).await.unwrap();
    assert_eq!(values(&store, "m", ALL).await.len(), 10_000, "in memory");
    store.flush().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, once, "flushed");
    store.merge_all().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, once, "merged");
    // A part of the batch is sent with other values. The values written last are returned.
    let part: Points = points[4_000..4_100].iter().map(|(at, value)| (*at, value + 0.5)).collect();
    feed(&store, &[(&part, false)]).await;
    for merged in [false, true] {
        if merged {
            store.merge_all().await.unwrap();
        }
        let read = values(&store, "m", ALL).await;
        assert_eq!(read.len(), 10_000);
        let new: Vec<f64> = read[4_000..4_100].iter().map(|(_, value)| *value).collect();
        assert_eq!(new, part.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(usize),
    Flush,
    Merge,
    Restart,
}

fn steps(batches: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..batches).prop_map(Step::Send),
        3 => Just(Step::Flush),
        2 => Just(Step::Merge),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..16)
}

/// Runs the steps, then sends every batch and merges all. `check` gets the samples that are read after each step, and the
/// samples sent.
async fn run(
    bench: &Bench,
    batches: &[Points],
    steps: &[Step],
    mut check: impl FnMut(&Points, &BTreeMap<i64, f64>),
) {
    let mut store = open(bench).await;
    let mut sent = BTreeMap::new();
    let all = (0..batches.len()).map(Step::Send).chain([Step::Merge, Step::Merge]);
    for step in steps.iter().cloned().chain(all) {
        match step {
            Step::Send(batch) => {
                store.append(samples("m", &batches[batch]), None).await.unwrap();
                sent.extend(batches[batch].iter().copied());
            }
            Step::Flush => store.flush().await.unwrap(),
            Step::Merge => {
                store.flush().await.unwrap();
                store.merge_all().await.unwrap();
            }
            Step::Restart => {
                drop(store);
                store = open(bench).await;
            }
        }
        check(&values(&store, "m", ALL).await, &sent);
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Sends batches in any order, each at least once.
    #[test]
    fn increases_of_counters_with_restarts_are_exact(
        seed in any::<u64>(),
        rises in prop_oneof![Just(1_000u64), Just(300), Just(20), Just(2)],
        restarts in prop_oneof![Just(0u64), Just(2), Just(100)],
        count in 50u64..3_000,
        pieces in 1usize..8,
        steps in steps(8),
    ) {
        let points = counter(seed, count, rises, restarts);
        let mut batches: Vec<Points> =
            points.chunks(points.len().div_ceil(pieces)).map(<[_]>::to_vec).collect();
        batches.resize(8, points[points.len() / 2..].to_vec());
        let bench = bench(Some(percent(10.0)));
        wait(run(&bench, &batches, &steps, |read, sent| {
            let sent: Points = sent.iter().map(|(at, value)| (*at, *value)).collect();
            assert_eq!((increase(read), changes(read)), (increase(&sent), changes(&sent)));
            assert_eq!(read, &sent);
        }));
    }

    /// Sends batches that overlap, in any order, each at least once.
    #[test]
    fn resent_samples_with_moved_times_are_stored_once(
        seed in any::<u32>(),
        period in prop_oneof![Just(10_000i64), Just(1_000), Just(300)],
        spread in 0i64..40,
        percent in prop_oneof![Just(1i64), Just(30), Just(1_000)],
        deal in 1u64..4,
        steps in steps(6),
    ) {
        let point = |n: i64| {
            let by_chance = mix64(u64::from(seed) << 32 | n as u64);
            let jitter = period * spread / 100 * (by_chance % 1_000) as i64 / 1_000;
            ((n * period + jitter) * MS, (by_chance >> 40) as f64)
        };
        // Each batch has adjacent samples, every sixth sample, or runs of seven samples. Some samples are in two batches.
        let mut batches = vec![Points::new(); 6];
        for n in 0..600 {
            let to = match deal { 1 => n / 100, 2 => n % 6, _ => n / 7 % 6 } as usize;
            batches[to].push(point(n));
            if n % 11 == 0 {
                batches[(to + 1) % 6].push(point(n));
            }
        }
        // If a batch has every sixth sample, a new sample can be between two samples that the rule has moved. Then the largest
        // permitted move must be smaller than the distance between neighbouring samples.
        let percent = if deal == 2 { percent.min(30) } else { percent };
        let error_max = period * MS * percent / 100;
        let bench = bench(Some(Semantic { time: error_max as u64, ..MOVED }));
        wait(run(&bench, &batches, &steps, |read, sent| {
            assert_eq!(read.len(), sent.len());
            for ((at, value), (wanted, exact)) in read.iter().zip(sent) {
                assert!((at - wanted).abs() <= error_max && value == exact, "{at} {value}, sent {wanted} {exact}");
            }
        }));
    }
}
