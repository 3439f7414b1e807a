//! Samples in groups are stored together and read together. Each sample is read exactly once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tacho_model::{Batch, Labels, Sample, SampleSeries, SeriesId, TimeRange, Value, Windows};
use tacho_store::driver::{Capabilities, Delete, Driver, Info, Row, RowStream, Scan, Table};
use tacho_store::{Error, ErrorKind, MemoryDriver, Options, Piece, ReadReport, Result, Store};

use crate::common::{self, Bench, labels, samples};

const ALL: TimeRange = TimeRange::ALL;
const DAY: i64 = 86_400_000_000_000;
const YEAR: i64 = 365 * DAY;

/// A batch of several series with the same times and different values.
fn together(names: &[&str], at: impl Iterator<Item = i64> + Clone) -> Batch {
    let mut all = Batch::default();
    for (n, name) in names.iter().enumerate() {
        let points: Vec<(i64, f64)> = at.clone().map(|at| (at, (at as f64) / 4.0 + n as f64)).collect();
        all.samples.extend(samples(name, &points).samples);
    }
    all
}

fn ids(names: &[&str]) -> Vec<SeriesId> {
    names.iter().map(|name| common::id(name)).collect()
}

/// Samples of each series, concatenated, and the cost of the read. Asserts that the times of each series ascend.
async fn read(store: &Store, names: &[&str], range: TimeRange) -> (Vec<Vec<(i64, f64)>>, ReadReport) {
    let room = AtomicUsize::new(usize::MAX);
    let answer = store.read_samples(&ids(names), range, None, &room).await.unwrap();
    let flat = |pieces: &Vec<Piece>| {
        let all: Vec<(i64, f64)> =
            pieces.iter().flat_map(Piece::samples).map(|s| (s.at, s.value.as_f64())).collect();
        assert!(all.is_sorted_by(|a, b| a.0 < b.0), "{all:?}");
        all
    };
    (answer.series.iter().map(flat).collect(), answer.report)
}

fn rows(driver: &MemoryDriver, table: Table) -> Vec<Row> {
    driver.dump().into_iter().filter(|row| row.table == table).collect()
}

#[tokio::test]
async fn series_with_the_same_times_share_a_row_that_is_read_once() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    let names = ["a", "b", "c"];
    for (round, at) in [0..20, 20..40].into_iter().enumerate() {
        store.append(together(&names, at), None).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(rows(&driver, Table::Series).len(), 1);
        assert_eq!(rows(&driver, Table::Chunks).len(), round + 1);
    }
    let (found, report) = read(&store, &names, ALL).await;
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [40, 40, 40]);
    assert_eq!((report.chunks_seen, report.chunks_decoded, report.values_decoded), (2, 2, 120));

    // One series has other times. Its chunk is separate, and is skipped when the other series are read.
    let mut odd = together(&["a", "c"], 40..60);
    odd.samples.extend(together(&["b"], 41..61).samples);
    store.append(odd, None).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!((rows(&driver, Table::Series).len(), rows(&driver, Table::Chunks).len()), (1, 4));
    let (found, report) = read(&store, &["c", "nobody", "a"], TimeRange::new(45, 70)).await;
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [15, 0, 15]);
    assert_eq!((report.chunks_seen, report.chunks_skipped, report.chunks_decoded), (4, 3, 1));
    for name in names {
        let chunks = store.chunks(tacho_model::Kind::Sample, common::id(name)).await.unwrap();
        assert_eq!(chunks.iter().map(|chunk| chunk.header.count).collect::<Vec<_>>(), [20, 20, 20], "{name}");
    }
}

/// One sample at `at` of each of 640 pods.
fn round(at: i64) -> Batch {
    let pod = |number: u32| {
        let pod = format!("checkout-{}-{number:05}", number.wrapping_mul(2_654_435_761));
        let labels = Labels::new([("__name__", "req_n"), ("path", "/api/v1/orders"), ("pod", &pod)]).unwrap();
        let value = Value::F64(f64::from(number % 100));
        SampleSeries { labels: Arc::new(labels), samples: vec![Sample { at, value }] }
    };
    Batch { samples: (0..640).map(pod).collect(), ..Batch::default() }
}

#[tokio::test]
async fn series_of_one_round_share_rows_from_the_first_sample_on() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    for at in 0..3 {
        let batch = round(at);
        store.append(batch.clone(), None).await.unwrap();
        store.flush().await.unwrap();
        let chunks = rows(&driver, Table::Chunks);
        assert_eq!((rows(&driver, Table::Series).len(), chunks.len()), (10, 10 * (at as usize + 1)));
        let bytes: usize =
            chunks.iter().map(|row| row.partition.len() + row.clustering.len() + row.value.len()).sum();
        let samples = 640 * (at as usize + 1);
        assert!(bytes < 8 * samples, "{bytes} bytes of {samples} samples");
        let room = AtomicUsize::new(usize::MAX);
        for series in &batch.samples {
            let answer = store.read_samples(&[series.labels.id()], ALL, None, &room).await.unwrap();
            assert_eq!(answer.samples().len(), at as usize + 1);
            assert_eq!(answer.samples().last(), series.samples.last());
        }
    }
    drop(store);
    let store = bench.open().await;
    assert_eq!(store.series_count(), [640, 0, 0]);
    for series in &round(0).samples {
        assert_eq!(store.labels_of(series.labels.id()).unwrap(), series.labels);
    }
}

#[tokio::test]
async fn chunks_are_cut_at_the_same_places_for_all_members() {
    let driver = Arc::new(MemoryDriver::new());
    let bench = Bench::with(driver.clone(), Options { chunk_values: 50, ..Options::default() });
    let store = bench.open().await;
    store.append(together(&["a", "b"], 0..120), None).await.unwrap();
    store.append(together(&["a", "b"], (0..4).map(|n| n * DAY)), None).await.unwrap();
    store.flush().await.unwrap();
    let chunks = store.chunks(tacho_model::Kind::Sample, common::id("b")).await.unwrap();
    let cuts: Vec<(i64, i64)> = chunks.iter().map(|chunk| (chunk.start, chunk.end)).collect();
    assert_eq!(cuts, [(0, 49), (50, 99), (100, 2 * DAY), (3 * DAY, 3 * DAY)]);
    assert_eq!(rows(&driver, Table::Chunks).len(), 4);
    assert_eq!(store.stats().samples_replaced, 2, "both series have two samples at 0 ns");
}

enum Step {
    Write(&'static str, Vec<(i64, f64)>),
    Flush,
    Crash,
}
use Step::{Crash, Flush, Write};

/// Compares the store after every step with a map of the samples sent.
async fn check(case: &str, steps: Vec<Step>) {
    let bench =
        Bench::with(Arc::new(MemoryDriver::new()), Options { chunk_values: 100, ..Options::default() });
    let mut store = bench.open().await;
    let mut model: BTreeMap<&str, BTreeMap<i64, f64>> = BTreeMap::new();
    for (n, step) in steps.into_iter().enumerate() {
        match step {
            Write(name, points) => {
                store.append(samples(name, &points), None).await.unwrap();
                model.entry(name).or_default().extend(points);
            }
            Flush => store.flush().await.unwrap(),
            Crash => {
                drop(store);
                store = bench.open().await;
            }
        }
        let names: Vec<&str> = model.keys().copied().collect();
        let edges: Vec<i64> = model.values().flat_map(BTreeMap::keys).copied().collect();
        let (low, high) =
            (edges.iter().min().copied().unwrap_or(0), edges.iter().max().copied().unwrap_or(0));
        let middle = low / 2 + high / 2;
        for range in
            [ALL, TimeRange::new(low, middle), TimeRange::new(middle, high), TimeRange::new(high, high)]
        {
            let (found, _) = read(&store, &names, range).await;
            for (name, found) in names.iter().zip(found) {
                let expect = model[name].range(range.start..=range.end).map(|(at, value)| (*at, *value));
                assert!(found.into_iter().eq(expect), "{case}, step {n}, {name}, {range}");
            }
        }
    }
}

fn every(step: i64, times: std::ops::Range<i64>, value: f64) -> Vec<(i64, f64)> {
    times.map(|n| (n * step, value + n as f64)).collect()
}

#[tokio::test]
async fn late_repeated_and_distant_samples_equal_those_in_a_map() {
    check(
        "late samples in the same generation and in a later one",
        vec![
            Write("a", every(10, 0..150, 0.0)),
            Write("b", every(10, 0..150, 1.0)),
            Write("a", every(10, 20..30, 100.0)),
            Flush,
            Write("a", every(5, 40..90, 200.0)),
            Write("b", every(10, 150..180, 2.0)),
            Flush,
            Write("a", vec![(7, 7.0), (1_000, 8.0), (1_000, 9.0)]),
            Crash,
            Write("b", vec![(0, -1.0)]),
            Flush,
            Crash,
        ],
    )
    .await;
    check(
        "backfill of years, newest first",
        vec![
            Write("a", every(DAY, 700..730, 0.0)),
            Flush,
            Write("a", every(DAY, 300..700, 0.0)),
            Write("b", every(DAY, 0..730, 5.0)),
            Crash,
            Flush,
            Write("a", every(DAY, 0..301, 1.0)),
            Flush,
            Crash,
        ],
    )
    .await;
    check(
        "the earliest and the latest times",
        vec![
            Write("a", vec![(i64::MAX, 1.0), (i64::MIN, 2.0), (0, 3.0), (-YEAR, 4.0)]),
            Write("b", vec![(200 * YEAR, 1.0), (-200 * YEAR, 2.0)]),
            Crash,
            Flush,
            Write("a", vec![(i64::MAX, 5.0), (i64::MAX - 1, 6.0), (i64::MIN, 7.0)]),
            Flush,
        ],
    )
    .await;
    check(
        "series that separate and share times again",
        vec![
            Write("a", every(1, 0..20, 0.0)),
            Write("b", every(1, 0..20, 0.0)),
            Flush,
            Write("a", every(1, 20..40, 0.0)),
            Write("b", every(2, 10..30, 0.0)),
            Write("c", every(1, 20..40, 0.0)),
            Flush,
            Crash,
            Write("c", every(1, 40..60, 0.0)),
            Write("a", every(1, 40..60, 0.0)),
            Write("b", every(1, 0..60, 0.0)),
            Flush,
        ],
    )
    .await;
}

#[tokio::test]
async fn values_are_kept_when_their_type_changes() {
    let bench = Bench::new();
    let store = bench.open().await;
    let big = Value::U64(u64::MAX);
    let points =
        [(1, Value::F64(0.5)), (2, big), (3, Value::I64(-1)), (4, Value::F64(1.5)), (2, Value::I64(7))];
    store.append(common::typed("m", &points), None).await.unwrap();
    let expect = [(1, Value::F64(0.5)), (2, Value::I64(7)), (3, Value::I64(-1)), (4, Value::F64(1.5))];
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
        }
        let found = store.samples(common::id("m"), ALL).await.unwrap();
        assert_eq!(found.iter().map(|s| (s.at, s.value)).collect::<Vec<_>>(), expect);
    }
    store.append(common::typed("m", &[(2, big)]), None).await.unwrap();
    let found = store.samples(common::id("m"), TimeRange::new(2, 2)).await.unwrap();
    assert_eq!(found[0].value, big);
}

/// Pieces as text: `1..10 10 sum 55` for a summary (times, count, sum), `11-20` for samples (first and last time).
async fn pieces(store: &Store, range: TimeRange, windows: Windows) -> (Vec<String>, ReadReport) {
    let room = AtomicUsize::new(usize::MAX);
    let answer = store.read_samples(&ids(&["a"]), range, Some(&windows), &room).await.unwrap();
    let say = |piece: &Piece| match piece {
        Piece::Summary(s) => format!("{}..{} {} sum {}", s.start, s.end, s.count, s.sum),
        Piece::Samples { times, .. } => format!("{}-{}", times.first().unwrap(), times.last().unwrap()),
    };
    (answer.series[0].iter().map(say).collect(), answer.report)
}

#[tokio::test]
async fn statistics_replace_the_values_of_a_chunk_inside_one_window() {
    let bench =
        Bench::with(Arc::new(MemoryDriver::new()), Options { chunk_values: 10, ..Options::default() });
    let store = bench.open().await;
    store.append(samples("a", &every(1, 1..41, 0.0)), None).await.unwrap();
    store.flush().await.unwrap();
    let range = TimeRange::new(1, 40);
    let one = Windows { first: 40, step: 0, count: 1, range: 40 };
    let (whole, report) = pieces(&store, range, one).await;
    assert_eq!(whole, ["1..10 10 sum 55", "11..20 10 sum 155", "21..30 10 sum 255", "31..40 10 sum 355"]);
    assert_eq!((report.chunks_summarised, report.chunks_decoded, report.values_decoded), (4, 0, 0));

    let cut = Windows { first: 25, step: 0, count: 1, range: 15 };
    let (some, report) = pieces(&store, range, cut).await;
    assert_eq!(some, ["1..10 10 sum 55", "11..20 10 sum 155", "21-30", "31..40 10 sum 355"]);
    assert_eq!((report.chunks_summarised, report.chunks_decoded), (3, 1));

    // Statistics cannot be used for a chunk that overlaps other samples, or that has a NaN. Such chunks are decoded. The two
    // new samples are first in the memtable, and then in a chunk from 15 to 41.
    store.append(samples("a", &[(15, 0.5), (41, f64::NAN)]), None).await.unwrap();
    let in_memory = ["1..10 10 sum 55", "11-20", "21..30 10 sum 255", "31..40 10 sum 355", "41-41"];
    for expected in [in_memory.as_slice(), &["1..10 10 sum 55", "11-41"]] {
        let all = TimeRange::new(1, 60);
        let one = Windows { first: 60, step: 0, count: 1, range: 60 };
        let (some, _) = pieces(&store, all, one).await;
        assert_eq!(some, expected, "chunks that overlap the late samples must be decoded");
        store.flush().await.unwrap();
    }
}

#[tokio::test]
async fn a_read_that_is_too_large_fails_before_decoding() {
    let bench = Bench::new();
    let store = bench.open().await;
    store.append(together(&["a", "b"], 0..1_000), None).await.unwrap();
    for flushed in [false, true] {
        if flushed {
            store.flush().await.unwrap();
        }
        for (range, needs) in [(ALL, 2_000), (TimeRange::new(0, 99), 200), (TimeRange::new(2_000, 3_000), 0)]
        {
            let room = AtomicUsize::new(needs);
            store.read_samples(&ids(&["a", "b"]), range, None, &room).await.unwrap();
            assert_eq!(room.into_inner(), 0, "{range}");
            if needs > 0 {
                let room = AtomicUsize::new(needs - 1);
                let error = store.read_samples(&ids(&["a", "b"]), range, None, &room).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
            }
        }
    }
}

/// Stores `rows_left` more rows. The `put` that has more rows fails and loses the rest, like a `put` of a killed process.
struct Stops {
    inner: MemoryDriver,
    rows_left: AtomicUsize,
}

#[async_trait]
impl Driver for Stops {
    fn info(&self) -> Info {
        self.inner.info()
    }
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }
    async fn put(&self, mut rows: Vec<Row>) -> Result<()> {
        let left = self.rows_left.load(Ordering::SeqCst);
        let whole = rows.len() <= left;
        rows.truncate(left);
        self.rows_left.store(left - rows.len(), Ordering::SeqCst);
        self.inner.put(rows).await?;
        if whole { Ok(()) } else { Err(Error::new(ErrorKind::Unavailable, "injected: stopped")) }
    }
    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        self.inner.scan(scan).await
    }
    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.inner.delete(deletes).await
    }
}

#[tokio::test]
async fn a_flush_interrupted_at_any_row_is_repeated_with_the_same_rows() {
    let names: Vec<String> = (0..12).map(|n| format!("m{n:02}")).collect();
    let mut first: Vec<&str> = names.iter().map(String::as_str).collect();
    let second = first.split_off(9);
    let mut all = together(&first, 0..30);
    all.samples.extend(together(&second, 5..30).samples);
    all.samples.extend(samples("late", &[(3, 1.0), (1, 2.0), (3, 3.0)]).samples);

    let whole = Arc::new(MemoryDriver::new());
    let reference = Bench::with(whole.clone(), Options { chunk_values: 10, ..Options::default() });
    let store = reference.open().await;
    store.append(all.clone(), None).await.unwrap();
    store.flush().await.unwrap();
    let (series, chunks) = (rows(&whole, Table::Series), rows(&whole, Table::Chunks));
    assert_eq!((series.len(), chunks.len()), (3, 3 + 3 + 1));

    // The store writes its identity as the first row, and other facts about itself after the last chunk.
    for stop in 1..=series.len() + chunks.len() + 3 {
        let driver = Arc::new(Stops { inner: MemoryDriver::new(), rows_left: AtomicUsize::new(stop) });
        let bench = Bench::with(driver.clone(), reference.options.clone());
        let store = bench.open().await;
        store.append(all.clone(), None).await.unwrap();
        let _ = store.flush().await;
        drop(store);
        driver.rows_left.store(usize::MAX, Ordering::SeqCst);
        let store = bench.open().await;
        store.flush().await.unwrap();
        assert_eq!(rows(&driver.inner, Table::Series), series, "stopped after {stop} rows");
        assert_eq!(rows(&driver.inner, Table::Chunks), chunks, "stopped after {stop} rows");
        let (found, _) = read(&store, &["m00", "m11", "late"], ALL).await;
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [30, 25, 2]);
    }
}

fn row(table: Table, partition: &[u8], clustering: &[u8], value: Vec<u8>) -> Row {
    Row { table, partition: partition.to_vec(), clustering: clustering.to_vec(), value: value.into() }
}

/// The rows of a store of version 1 with one series, built by hand according to `docs/format/keys.md`.
fn version_1(name: &str, chunk: &[u8], start: i64) -> Vec<Row> {
    let labels = labels(name);
    let id = labels.id().to_bytes();
    let kind_and_id = [&[1][..], &id].concat();
    let key = [&[1, 0][..], &(start as u64 ^ 1 << 63).to_be_bytes(), &7u64.to_be_bytes(), &[0; 4]].concat();
    vec![
        row(Table::Meta, b"store", b"identity", [&[0, 1][..], &9u128.to_be_bytes()].concat()),
        row(Table::Meta, b"store", b"flushed", [&[1][..], &7u64.to_be_bytes()].concat()),
        row(Table::Series, &id[..1], &kind_and_id, [&[1][..], &labels.canonical()].concat()),
        row(Table::Chunks, &kind_and_id, &key, chunk.to_vec()),
    ]
}

#[tokio::test]
async fn a_store_of_version_1_is_read_and_extended() {
    let start = 1_750_000_000_000_000_000;
    for (file, count) in [("samples-constant", 5), ("samples-dictionary", 22)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../testdata/chunk/{file}.chunk"));
        let driver = Arc::new(MemoryDriver::new());
        driver.put(version_1("old", &std::fs::read(path).unwrap(), start)).await.unwrap();
        let bench = Bench::with(driver.clone(), Options::default());
        let store = bench.open().await;
        let (found, _) = read(&store, &["old"], ALL).await;
        assert_eq!((found[0].len(), found[0][0].0), (count, start), "{file}");

        // New samples of the old series go to the old partition. A new series gets its own partition.
        store.append(together(&["old", "new"], (1..21).map(|n| start - n)), None).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        let store = bench.open().await;
        let (found, report) = read(&store, &["old", "new"], ALL).await;
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [count + 20, 20], "{file}");
        assert_eq!((report.chunks_seen, report.chunks_decoded), (3, 3));
        let partitions: Vec<Vec<u8>> =
            rows(&driver, Table::Chunks).into_iter().map(|row| row.partition).collect();
        let old = [&[1][..], &common::id("old").to_bytes()].concat();
        assert_eq!(partitions.iter().filter(|partition| **partition == old).count(), 2);
        let identity = driver.dump().into_iter().find(|row| row.clustering == b"identity").unwrap();
        assert_eq!(identity.value[..2], [0, 2]);
    }
}

#[tokio::test]
async fn other_tasks_run_during_a_read_of_many_series() {
    let bench = Bench::new();
    let store = bench.open().await;
    let names: Vec<String> = (0..1_000).map(|n| format!("m{n}")).collect();
    for name in &names {
        store.append(common::samples(name, &[(1, 1.0)]), None).await.unwrap();
    }
    let ids: Vec<_> = names.iter().map(|name| common::id(name)).collect();
    // The read and another task share one thread. The other task counts its turns until the read ends.
    let turns = Arc::new(AtomicUsize::new(0));
    let counter = turns.clone();
    let other = tokio::spawn(async move {
        loop {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let answer = store.read_samples(&ids, ALL, None, &AtomicUsize::new(usize::MAX)).await.unwrap();
    assert_eq!(answer.series.len(), 1_000);
    assert!(turns.load(Ordering::Relaxed) >= 5, "{turns:?}");
    other.abort();
}
