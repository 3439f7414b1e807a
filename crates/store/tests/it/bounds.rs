//! Tests the limits on series, labels, chunks and the size of a batch: which records are refused, with which messages, and
//! that other records are kept.

use std::sync::Arc;

use tacho_model::{Batch, Kind, Labels, Matcher, Sample, SampleSeries, TimeRange, Value};
use tacho_store::disk::FaultyDisk;
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::{Appended, ErrorKind, MemoryDriver, Options};

use crate::common::{self, Bench, batch, entries, labels, origin, samples, values};

#[tokio::test]
async fn series_with_a_new_value_of_a_full_label_are_refused_and_others_kept() {
    let options = Options { label_values_max: 100, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    let request = |id: usize| {
        let labels =
            Labels::new([("__name__", "latency".to_owned()), ("request_id", format!("r{id}"))]).unwrap();
        let samples = vec![Sample { at: 1, value: Value::I64(1) }];
        SampleSeries { labels: Arc::new(labels), samples }
    };
    store.append(samples("up", &[(1, 1.0)]), None).await.unwrap();
    let mut refused = 0;
    for first in (0..10_000).step_by(1_000) {
        let requests = Batch { samples: (first..first + 1_000).map(request).collect(), ..Batch::default() };
        let Appended::Partly(part) =
            store.append(batch([requests, samples("up", &[(2, 1.0)])]), None).await.unwrap()
        else {
            panic!("nothing was refused")
        };
        refused += part.series;
        let reason = &part.named[0].reason;
        assert!(
            reason.contains("label \"request_id\" already has 100 values, at most 100 are allowed"),
            "{reason}"
        );
    }
    assert_eq!((refused, store.stats().series_refused), (9_900, 9_900));
    assert_eq!(store.series_count(), [101, 0, 0]);
    let costs = store.cardinality(1);
    let label = costs.labels.iter().find(|label| label.name == "request_id").unwrap();
    assert_eq!((label.values, label.series), (100, 100));
    let known = Batch { samples: vec![request(7)], ..Batch::default() };
    assert_eq!(store.append(known, None).await.unwrap(), Appended::Stored);
}

#[tokio::test]
async fn new_series_above_a_limit_are_refused_and_known_ones_kept() {
    let bench = Bench::with(Arc::new(MemoryDriver::new()), Options { series_max: 2, ..Options::default() });
    let store = bench.open().await;
    store.append(batch([entries("log", &[(1, "x")]), samples("two", &[(1, 1.0)])]), None).await.unwrap();
    let mixed = batch([samples("three", &[(1, 1.0), (2, 1.0)]), samples("two", &[(2, 2.0)])]);
    let Appended::Partly(refused) = store.append(mixed, None).await.unwrap() else {
        panic!("no series was refused")
    };
    assert_eq!((refused.series, refused.records), (1, [2, 0, 0]));
    let [named] = &refused.named[..] else { panic!("{refused:?}") };
    assert_eq!((named.kind, named.position), (Kind::Sample, 0));
    assert!(named.reason.starts_with("series three{"), "{}", named.reason);
    assert!(named.reason.ends_with("limit of 2 series is reached"), "{}", named.reason);
    assert_eq!(store.series_count(), [1, 1, 0]);
    let two = store.find(Kind::Sample, &[Matcher::equal("__name__", "two")])[0].0;
    assert_eq!(store.samples(two, TimeRange::ALL).await.unwrap().len(), 2);

    let alone = store.append(samples("four", &[(1, 1.0)]), origin(1, 1)).await.unwrap();
    assert!(matches!(alone, Appended::Partly(_)), "{alone:?}");
    assert_eq!(
        store.session_acked(1),
        1,
        "the refused frame must be acknowledged: a repetition would be refused again"
    );
    assert_eq!(store.stats().series_refused, 2);
}

const DAY: i64 = 86_400_000_000_000;

#[tokio::test]
async fn records_far_apart_in_time_are_refused_at_the_limit_on_chunks_and_live_ones_kept() {
    let options = Options { chunks_max: 1_000, merge_in_background: false, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    let far = |name: &str, count: i64| -> Batch {
        let points: Vec<(i64, f64)> = (1..=count).map(|n| (n * 3 * DAY, 1.0)).collect();
        samples(name, &points)
    };
    assert_eq!(store.append(far("m", 900), None).await.unwrap(), Appended::Stored);
    // First the 900 records are in memory, then they are stored. In both cases, 200 more chunks would exceed the limit.
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
            assert!(store.stats().stored[0].chunks >= 900, "{:?}", store.stats().stored);
        }
        let mixed = batch([far("n", 200), samples("up", &[(2 * DAY, 1.0), (5, 1.0)])]);
        let Appended::Partly(refused) = store.append(mixed, None).await.unwrap() else {
            panic!("no series was refused")
        };
        assert_eq!((refused.series, refused.records), (1, [200, 0, 0]), "flushed: {flushed}");
        let reason = &refused.named[0].reason;
        let (head, said) = reason.split_once(": limit of 1000 chunks (chunks_max): ").unwrap();
        assert_eq!(head, format!("series {}", labels("n")));
        let (stored, said) = said.split_once(" are stored, records in memory take up to ").unwrap();
        let (in_memory, said) = said.split_once(" more and this batch up to ").unwrap();
        let [stored, in_memory] = [stored, in_memory].map(|count| count.parse::<usize>().unwrap());
        // For each series, the number of its chunks less one: 199 for `n`, and 1 for `up`. The sum is 200.
        let expect = "200, estimated from their times; records more than two days from now are refused \
            (of this series: 200 of 200)";
        assert_eq!(said, expect);
        assert!((898..=910).contains(&(stored + in_memory)), "{reason}");
        assert_eq!(stored > 0, flushed, "{reason}");
        assert_eq!(values(&store, "up", TimeRange::ALL).await.len(), 2);
        assert_eq!(store.append(samples("m", &[(5, 2.0)]), None).await.unwrap(), Appended::Stored);
    }
    assert_eq!(store.stats().records_far_refused, 400);
    // The limit also applies to batches with one record each.
    let mut kept = 0;
    for n in 1..=1_000 {
        kept += usize::from(
            store.append(samples("m", &[(-n * 3 * DAY, 1.0)]), None).await.unwrap() == Appended::Stored,
        );
    }
    assert!((80..=101).contains(&kept), "{kept}");
    store.flush().await.unwrap();
    let stored = store.stats().stored[0].chunks;
    store.close().await.unwrap();
    drop(store);
    let lower = Bench { options: Options { chunks_max: 500, ..bench.options.clone() }, ..bench };
    let store = lower.open().await;
    let Appended::Partly(refused) = store.append(far("n", 2), None).await.unwrap() else {
        panic!("no series was refused")
    };
    let expect = format!(
        "series {}: limit of 500 chunks (chunks_max): {stored} are stored; records more than two days from now are \
         refused (of this series: 2 of 2)",
        labels("n")
    );
    assert_eq!(refused.named[0].reason, expect);
}

#[tokio::test]
async fn scattered_records_seal_a_generation_before_it_makes_too_many_chunks() {
    let bench =
        Bench::with(Arc::new(MemoryDriver::new()), Options { seal_bytes: 1 << 20, ..Options::default() });
    let store = bench.open().await;
    // Five parts fill a generation. It is sealed after the answer to the fifth part and before the next part is stored.
    for part in 0..11 {
        let points: Vec<(i64, f64)> = (0..1_000).map(|n| ((part * 1_000 + n) * 3 * DAY, 1.0)).collect();
        store.append(samples("m", &points), None).await.unwrap();
    }
    assert!(store.stats().seals_by_size >= 2, "{:?}", store.stats());
    store.flush().await.unwrap();
    assert_eq!(values(&store, "m", TimeRange::ALL).await.len(), 11_000);
}

/// Samples that take 8 bytes each in the journal.
fn irregular(name: &str, count: i64) -> Batch {
    let points: Vec<(i64, f64)> = (0..count).map(|at| (at, (at as f64).sqrt())).collect();
    samples(name, &points)
}

#[tokio::test]
async fn a_batch_larger_than_the_memory_budget_is_kept_in_parts() {
    let options = Options { seal_bytes: 20_000, open_bytes_max: 60_000, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    let all = batch([
        irregular("a", 5_000),
        irregular("b", 10),
        irregular("c", 2_000),
        entries("log", &[(1, "x")]),
    ]);
    let error = store.append(all.clone(), origin(1, 1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert_eq!(error.to_string(), "batch of 112417 bytes is over 15000: send it in parts");
    assert_eq!(store.append(all, None).await.unwrap(), Appended::Stored);
    drop(store);
    let store = bench.open().await;
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
        }
        for (name, count) in [("a", 5_000), ("b", 10), ("c", 2_000)] {
            let values = common::values(&store, name, TimeRange::ALL).await;
            assert!(values.len() == count && values.iter().all(|(at, value)| *value == (*at as f64).sqrt()));
        }
        assert_eq!(common::texts(&store, "log").await, [(1, "x".to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_part_waits_for_memory_before_it_is_refused() {
    let options = Options { seal_bytes: 20_000, open_bytes_max: 60_000, ..Options::default() };
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let bench = Bench::with(driver.clone(), options);
    let store = bench.open().await;
    driver.freeze();
    let start = tokio::time::Instant::now();
    let error = store.append(irregular("a", 8_000), None).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Full { .. }), "{error}");
    assert!(error.to_string().contains("parts of the batch that are stored"), "{error}");
    assert!(start.elapsed().as_secs() >= 30, "{:?}", start.elapsed());
    assert_eq!(
        store.stats().batches_full,
        1,
        "a batch must be counted once, not each attempt of its waiting part"
    );
    driver.thaw();
}

/// The labels of the series take more bytes than one record of the journal may have, although their samples take little memory.
#[tokio::test]
async fn a_batch_with_many_long_labels_is_kept_in_parts() {
    const SERIES: usize = 1_100;
    let bench = Bench::with(Arc::new(MemoryDriver::new()), Options::default());
    let store = bench.open().await;
    let series = |number: usize| {
        let long = |label| (format!("l{label:02}"), format!("{number:04}{}{number:04}", "x".repeat(3_990)));
        let labels = Arc::new(Labels::new((0..16).map(long)).unwrap());
        SampleSeries { labels, samples: vec![Sample { at: 1, value: Value::I64(1) }] }
    };
    let all = Batch { samples: (0..SERIES).map(series).collect(), ..Batch::default() };
    let error = store.append(all.clone(), origin(1, 1)).await.unwrap_err();
    assert!(error.to_string().contains("is over 67108864: send it in parts"), "{error}");
    assert_eq!(store.append(all, None).await.unwrap(), Appended::Stored);
    drop(store);
    assert_eq!(bench.open().await.stats().series_total, SERIES);
}

#[tokio::test]
async fn the_failure_of_a_later_part_states_the_stored_parts_and_a_repetition_stores_all() {
    let disk = FaultyDisk::default();
    let options = Options {
        seal_bytes: 20_000,
        open_bytes_max: 60_000,
        disk: Arc::new(disk.clone()),
        ..Options::default()
    };
    // The driver is frozen while the disk is small, because a flush would remove a journal, which frees space.
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let bench = Bench::with(driver.clone(), options);
    let store = bench.open().await;
    driver.freeze();
    disk.set_space(10_000);
    let error = store.append(irregular("a", 3_000), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    assert!(error.to_string().contains("parts of the batch that are stored 1"), "{error}");
    disk.set_space(u64::MAX);
    driver.thaw();
    store.append(irregular("a", 3_000), None).await.unwrap();
    assert_eq!(common::values(&store, "a", TimeRange::ALL).await.len(), 3_000);
}
