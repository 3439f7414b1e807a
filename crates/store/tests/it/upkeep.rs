//! Tests merges, retention, downsampling and deletions. Records that no rule and no deletion concerns stay unchanged.

use std::sync::Arc;
use std::time::Duration;

use tacho_chunk::semantic::Semantic;
use tacho_chunk::{Aggregate, Aggregation, CodecSet, Method, Tolerance};
use tacho_model::{Kind, ManualClock, MatchOp, Matcher, NAME, TimeRange};
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::policy::{ChunkSettings, Downsampling, Policies, Retention, Rule};
use tacho_store::threads::Threads;
use tacho_store::{ErrorKind, MemoryDriver, Options, Store};

use crate::common::{self, Bench, batch, entries, executions, samples, values};

const ALL: TimeRange = TimeRange::ALL;
const SECOND: i64 = 1_000_000_000;

/// Options that let upkeep run only when a test orders it.
fn quiet(policies: Policies) -> Options {
    Options { merge_in_background: false, policies: Arc::new(policies), ..Options::default() }
}

fn rule<T>(name: &str, then: T) -> Vec<Rule<T>> {
    vec![Rule { matchers: vec![Matcher::equal(NAME, name)], then }]
}

async fn open_at(bench: &Bench, clock: Arc<ManualClock>) -> Arc<Store> {
    Store::open(bench.driver.clone(), bench.directory.path(), bench.options.clone(), clock).await.unwrap()
}

/// Makes `chunks` flushes of `count` samples each, one sample per second.
async fn fill(store: &Store, name: &str, chunks: i64, count: i64) {
    for chunk in 0..chunks {
        let at = (chunk * count..(chunk + 1) * count).map(|n| (n * SECOND, (n % 10) as f64));
        store.append(samples(name, &at.collect::<Vec<_>>()), None).await.unwrap();
        store.flush().await.unwrap();
    }
}

async fn chunks(store: &Store, name: &str) -> Vec<usize> {
    let chunks = store.chunks(Kind::Sample, common::id(name)).await.unwrap();
    chunks.iter().map(|chunk| chunk.header.count).collect()
}

/// Number of samples, entries and calls in chunks, according to the statistics.
fn records(store: &Store) -> [u64; 3] {
    store.stats().stored.map(|stored| stored.records)
}

#[tokio::test]
async fn merge_all_merges_everything() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies::default()));
    let store = bench.open().await;
    fill(&store, "m", 50, 200).await;
    for n in 0..20 {
        let both =
            batch([entries("log", &[(1, &n.to_string()), (n, "x")]), executions("svc", n as u128 + 1, n)]);
        store.append(both, None).await.unwrap();
        store.flush().await.unwrap();
    }
    let before = records(&store);
    let (kept, texts) = (values(&store, "m", ALL).await, common::texts(&store, "log").await);
    let report = store.merge_all().await.unwrap();
    assert_eq!((report.chunks_in, report.chunks_out), (50 + 20 + 20, 1 + 1 + 1));
    assert_eq!((report.records_in, report.records_out), (before.iter().sum(), before.iter().sum()));
    assert_eq!(chunks(&store, "m").await, [10_000]);
    let mut store = store;
    for reopened in [false, true] {
        if reopened {
            drop(store);
            store = bench.open().await;
        }
        assert_eq!(values(&store, "m", ALL).await, kept);
        assert_eq!(common::texts(&store, "log").await, texts);
        assert_eq!(common::traces(&store, "svc").await, (1..=20).collect::<Vec<_>>());
        assert_eq!(records(&store), before);
        assert_eq!(store.stats().stored.map(|s| s.chunks), [1, 1, 1]);
    }
    let again = store.merge_all().await.unwrap();
    assert_eq!((again.merges, again.bytes_written), (0, 0), "a second merge must have nothing to do");
}

#[tokio::test]
async fn rows_that_would_not_shrink_are_not_rewritten() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies::default()));
    let store = bench.open().await;
    store.append(samples("one", &[(1, 1.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    let report = store.merge_all().await.unwrap();
    assert_eq!((report.merges, report.bytes_written), (0, 0));
    assert_eq!(chunks(&store, "one").await, [1]);
}

#[tokio::test]
async fn late_and_repeated_samples_are_merged_and_the_last_one_stays() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies::default()));
    let store = bench.open().await;
    for (round, points) in
        [[(10, 1.0), (20, 1.0)], [(5, 2.0), (20, 2.0)], [(10, 3.0), (30, 3.0)]].iter().enumerate()
    {
        store.append(samples("m", points), None).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(store.stats().flushes, round as u64 + 1);
    }
    let report = store.merge_all().await.unwrap();
    assert_eq!((report.samples_replaced, records(&store)[0]), (2, 4));
    assert_eq!(values(&store, "m", ALL).await, [(5, 2.0), (10, 3.0), (20, 2.0), (30, 3.0)]);
    assert_eq!(chunks(&store, "m").await, [4]);
}

#[tokio::test]
async fn a_deletion_is_in_force_immediately_and_keeps_later_records() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies::default()));
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0), (5, 1.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    store.append(samples("m", &[(2, 1.0), (6, 1.0)]), None).await.unwrap();
    store.append(samples("other", &[(2, 1.0)]), None).await.unwrap();
    let deleted = store.delete(&[Matcher::equal(NAME, "m")], TimeRange::new(2, 5)).await.unwrap();
    assert_eq!(deleted.series, [1, 0, 0]);
    assert_eq!(values(&store, "m", ALL).await, [(1, 1.0), (6, 1.0)]);
    store.append(samples("m", &[(5, 9.0)]), None).await.unwrap();
    let expect = [(1, 1.0), (5, 9.0), (6, 1.0)];
    assert_eq!(values(&store, "m", ALL).await, expect);
    drop(store);
    let store = bench.open().await;
    assert_eq!((values(&store, "m", ALL).await, store.stats().upkeep.tombstones), (expect.to_vec(), 1));
    store.flush().await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!((values(&store, "m", ALL).await, store.stats().upkeep.tombstones), (expect.to_vec(), 0));
    assert_eq!(records(&store)[0], 4);
    store.delete(&[Matcher::equal(NAME, "m")], ALL).await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!((common::found(&store, Kind::Sample), records(&store)[0]), (1, 1));
    store.append(samples("m", &[(7, 7.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    drop(store);
    let store = bench.open().await;
    assert_eq!(values(&store, "m", ALL).await, [(7, 7.0)]);
}

/// Compiled patterns stay in memory until their deletions are done.
#[tokio::test]
async fn patterns_of_pending_deletions_are_limited() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies::default()));
    let store = bench.open().await;
    let all: Vec<_> = (0..70).map(|at| (at, 1.0)).collect();
    store.append(samples("m", &all), None).await.unwrap();
    let delete = async |pattern: &str, at| {
        let matcher = Matcher::new(NAME, MatchOp::Regex, pattern).unwrap();
        store.delete(&[matcher], TimeRange::new(at, at)).await
    };
    for at in 0..64 {
        assert_eq!(delete(".*m", at).await.unwrap().series, [1, 0, 0], "{at}");
    }
    let refused = delete(".*m", 64).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit, "{refused}");
    delete("m|n", 65).await.expect("refused, although a list of values needs no pattern");
    assert_eq!(values(&store, "m", ALL).await.len(), 5);
    store.flush().await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!(store.stats().upkeep.tombstones, 0);
    delete(".*m", 64).await.expect("refused, although the other deletions are done");
    assert_eq!(values(&store, "m", ALL).await.len(), 4);
}

#[tokio::test]
async fn bad_deletions_are_refused() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies::default()));
    let store = bench.open().await;
    for (matchers, range) in [
        (vec![], ALL),
        (vec![Matcher::equal("a", "")], ALL),
        (vec![Matcher::equal("a", "b")], TimeRange::new(2, 1)),
    ] {
        assert_eq!(store.delete(&matchers, range).await.unwrap_err().kind(), ErrorKind::Invalid);
    }
    let none = store.delete(&[Matcher::equal("a", "b")], ALL).await.unwrap();
    assert_eq!((none.series, store.stats().upkeep.tombstones), ([0, 0, 0], 0));
}

#[tokio::test]
async fn expired_chunks_and_their_series_are_removed() {
    let policies =
        Policies { retention: rule("m", Retention::of(100 * SECOND as u64)), ..Policies::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(policies));
    let clock = Arc::new(ManualClock::new(150 * SECOND));
    let store = open_at(&bench, clock.clone()).await;
    fill(&store, "m", 3, 50).await;
    fill(&store, "kept", 1, 50).await;
    // A chunk that ends exactly at the limit is not expired as a whole. It stays, but its expired part is not read.
    clock.set(149 * SECOND);
    store.sweep().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await.first(), Some(&(49 * SECOND, 9.0)));
    assert_eq!((store.stats().upkeep.chunks_expired, records(&store)[0]), (0, 200));
    clock.set(150 * SECOND);
    store.sweep().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await.first(), Some(&(50 * SECOND, 0.0)));
    assert_eq!((store.stats().upkeep.chunks_expired, records(&store)[0]), (1, 150));
    clock.set(1_000 * SECOND);
    store.sweep().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, []);
    assert_eq!((common::found(&store, Kind::Sample), store.stats().stored[0].chunks), (1, 1));
    assert_eq!(values(&store, "kept", ALL).await.len(), 50);
}

#[tokio::test]
async fn expired_records_are_not_read_from_memory_or_driver() {
    let keep = 100 * SECOND as u64;
    let retention =
        ["m", "log", "svc"].into_iter().flat_map(|name| rule(name, Retention::of(keep))).collect();
    let bench =
        Bench::with(Arc::new(MemoryDriver::new()), quiet(Policies { retention, ..Policies::default() }));
    let clock = Arc::new(ManualClock::new(0));
    let store = open_at(&bench, clock.clone()).await;
    for flushed in [false, true] {
        store.append(samples("m", &[(0, 1.0), (50 * SECOND, 2.0)]), None).await.unwrap();
        if !flushed {
            store.append(entries("log", &[(0, "old"), (50 * SECOND, "new")]), None).await.unwrap();
            store.append(executions("svc", 1, 0), None).await.unwrap();
            store.append(executions("svc", 2, 50 * SECOND), None).await.unwrap();
        } else {
            store.flush().await.unwrap();
        }
        for (now, left) in [(100, 2), (101, 1), (150, 1), (151, 0)] {
            clock.set(now * SECOND);
            assert_eq!(values(&store, "m", ALL).await.len(), left, "{now} s");
            assert_eq!(common::texts(&store, "log").await.len(), left, "{now} s");
            assert_eq!(common::traces(&store, "svc").await.len(), left, "{now} s");
        }
        clock.set(0);
    }
}

#[tokio::test]
async fn long_overlaps_are_merged_in_parts() {
    let options = Options { merge_values: 256, chunk_values: 64, ..quiet(Policies::default()) };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    fill(&store, "m", 40, 20).await;
    // Late samples that overlap all others and each other.
    for late in 0..4i64 {
        let at = (0..40).map(|n| (n * 20 * SECOND + late, late as f64)).collect::<Vec<_>>();
        store.append(samples("m", &at), None).await.unwrap();
        store.flush().await.unwrap();
    }
    let before = values(&store, "m", ALL).await;
    let merged = tokio::time::timeout(Duration::from_secs(60), store.merge_all())
        .await
        .expect("the merge did not end in time");
    assert_eq!((merged.unwrap().samples_replaced, before.len()), (40, 800 + 4 * 40 - 40));
    assert_eq!(values(&store, "m", ALL).await, before);
    assert!(chunks(&store, "m").await.len() <= 30, "{:?}", chunks(&store, "m").await);
    drop(store);
    let store = bench.open().await;
    assert_eq!(values(&store, "m", ALL).await, before);
    assert_eq!(records(&store)[0] as usize, before.len());
}

#[tokio::test]
async fn old_samples_are_downsampled_once() {
    let to = Aggregation { step: 10 * SECOND, how: Aggregate::Max };
    let down = Downsampling { after: 100 * SECOND as u64, to };
    let policies = Policies { downsampling: rule("m", down), ..Policies::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(policies));
    let clock = Arc::new(ManualClock::new(200 * SECOND));
    let store = open_at(&bench, clock.clone()).await;
    fill(&store, "m", 3, 100).await;
    store.sweep().await.unwrap();
    let now = values(&store, "m", ALL).await;
    assert_eq!(now.iter().filter(|(at, _)| *at <= 99 * SECOND).count(), 11);
    assert_eq!(now.iter().filter(|(at, _)| *at > 99 * SECOND).count(), 200);
    assert_eq!(now[1], (10 * SECOND, 9.0));
    let merges = store.stats().upkeep.merges;
    store.sweep().await.unwrap();
    assert_eq!((values(&store, "m", ALL).await, store.stats().upkeep.merges), (now, merges));
    clock.set(1_000 * SECOND);
    store.sweep().await.unwrap();
    assert!(values(&store, "m", ALL).await.len() <= 33);
}

#[tokio::test]
async fn full_chunks_lose_the_permitted_precision_and_state_it() {
    let semantic =
        Semantic { value: Some(Tolerance::Absolute(0.5)), method: Method::Linear, ..Semantic::default() };
    let policies = Policies { semantic: rule("m", semantic), ..Policies::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(policies));
    let store = bench.open().await;
    for name in ["m", "exact"] {
        for part in 0..10i64 {
            let noisy = |n: i64| {
                (n * SECOND, (n as f64 / 500.0).sin() * 40.0 + f64::from((n * 7 % 11) as i32) / 100.0)
            };
            let points: Vec<(i64, f64)> = (part * 1_000..(part + 1) * 1_000).map(noisy).collect();
            store.append(samples(name, &points), None).await.unwrap();
            store.flush().await.unwrap();
        }
    }
    let before = values(&store, "m", ALL).await;
    store.merge_all().await.unwrap();
    let after = values(&store, "m", ALL).await;
    assert_eq!(before.len(), after.len());
    let worst = before.iter().zip(&after).map(|(a, b)| (a.1 - b.1).abs()).fold(0.0, f64::max);
    assert!(worst > 0.0 && worst <= 0.5, "{worst}");
    let info = |chunks: Vec<tacho_store::ChunkInfo>| (chunks[0].bytes, chunks[0].header.members[0].loss);
    let (small, loss) = info(store.chunks(Kind::Sample, common::id("m")).await.unwrap());
    let (large, none) = info(store.chunks(Kind::Sample, common::id("exact")).await.unwrap());
    assert_eq!((loss.map(|loss| loss.achieved), none), (Some(worst), None));
    assert!(small * 2 < large, "{small} of {large} bytes");
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    store.merge_all().await.unwrap();
    let again = values(&store, "m", TimeRange::new(SECOND, i64::MAX)).await;
    assert_eq!(again[..], after[1..], "precision must be reduced only once");
}

/// The only chunk of each of three series with shared jittered times, after a merge.
async fn merged_together(policies: Policies) -> [tacho_store::ChunkInfo; 3] {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), quiet(policies));
    let store = bench.open().await;
    for part in 0..10i64 {
        let mut all = tacho_model::Batch::default();
        for (name, factor) in ["a", "b", "c"].into_iter().zip([3, 5, 7]) {
            let point = |n: i64| (n * SECOND + n * 7_919 % 1_000_003, (n * factor % 101) as f64);
            let points: Vec<(i64, f64)> = (part * 1_000..(part + 1) * 1_000).map(point).collect();
            all.samples.extend(samples(name, &points).samples);
        }
        store.append(all, None).await.unwrap();
        store.flush().await.unwrap();
    }
    store.merge_all().await.unwrap();
    let mut out = Vec::new();
    for name in ["a", "b", "c"] {
        let mut chunks = store.chunks(Kind::Sample, common::id(name)).await.unwrap();
        assert_eq!(chunks.len(), 1, "{name}");
        out.extend(chunks.pop());
        assert_eq!(values(&store, name, ALL).await.len(), 10_000, "{name}");
    }
    out.try_into().unwrap()
}

#[tokio::test]
async fn a_rule_applies_only_to_its_series_of_a_group() {
    let codecs = |chunk: &tacho_store::ChunkInfo, member: usize| chunk.header.members[member].codec;
    let plain = merged_together(Policies::default()).await;
    assert_eq!(
        plain.each_ref().map(|chunk| chunk.header.members.len()),
        [3; 3],
        "all series must share one row"
    );
    for (nth, name) in ["a", "b", "c"].into_iter().enumerate() {
        let varint =
            ChunkSettings { codecs: CodecSet::only(["varint"]).unwrap(), ..ChunkSettings::default() };
        let policies = Policies { chunks: rule(name, varint), ..Policies::default() };
        for chunk in merged_together(policies).await {
            for member in 0..3 {
                let changed = codecs(&chunk, member) != codecs(&plain[0], member);
                assert_eq!(changed, member == nth, "{name}: {:?}", codecs(&chunk, member));
            }
        }
        let policies = Policies {
            semantic: rule(name, Semantic { time: 2_000_000, ..Semantic::default() }),
            ..Policies::default()
        };
        let chunks = merged_together(policies).await;
        for (of, chunk) in chunks.iter().enumerate() {
            let bound = if of == nth { 1..=2_000_000 } else { 0..=0 };
            assert!(bound.contains(&chunk.header.time_error_max), "{name}: {}", chunk.header.time_error_max);
            assert_eq!(chunk.header.members.len(), if of == nth { 1 } else { 2 });
        }
    }
}

/// The paused clock advances only while all tasks wait, so no merge is under way after a sleep. The sleep ends before the first
/// sweep.
#[tokio::test(start_paused = true)]
async fn chunks_are_merged_in_the_background_a_few_times_each() {
    let options = Options {
        threads: Threads::One,
        sweep_first: Duration::from_secs(100),
        merge_cpu_percent: 100,
        chunk_values: 6_400,
        ..Options::default()
    };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    fill(&store, "m", 64, 100).await;
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert!(chunks(&store, "m").await.len() < 8, "{:?}", chunks(&store, "m").await);
    assert_eq!(values(&store, "m", ALL).await.len(), 6_400);
    let stats = store.stats().upkeep;
    assert!(stats.records_in <= 3 * 6_400, "records were written again {} times", stats.records_in / 6_400);
}

/// Each merge reads and writes more than 20 bytes, so the upkeep rests longer than 20 seconds after it.
#[tokio::test(start_paused = true)]
async fn an_order_to_merge_ends_the_pause_between_two_batches_of_jobs() {
    let options = Options { threads: Threads::One, merge_bytes_per_second: 1, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    fill(&store, "m", 10, 20).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(store.stats().upkeep.merges > 0, "the upkeep has not run its first batch of jobs");
    fill(&store, "other", 3, 20).await;
    // If `merge_all` did not end the pause, the paused clock would reach this time limit first.
    let merged = tokio::time::timeout(Duration::from_secs(20), store.merge_all())
        .await
        .expect("the merge did not end in time");
    assert!(merged.unwrap().merges > 0);
    assert_eq!(chunks(&store, "other").await, [60]);
}

#[tokio::test]
async fn nothing_is_merged_on_a_driver_without_atomic_puts() {
    let driver = Faulty::new(MemoryDriver::new(), Faults { torn: u64::MAX, ..Faults::default() });
    let bench = Bench::with(Arc::new(driver), Options::default());
    let store = bench.open().await;
    let error = store.merge_all().await.unwrap_err();
    assert!(error.to_string().contains("has no atomic put of several rows"), "{error}");
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    store.delete(&[Matcher::equal(NAME, "m")], ALL).await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, []);
}
