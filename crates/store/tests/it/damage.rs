//! Unreadable rows are reported as damages in answers, and the upkeep does not change them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tacho_model::{Kind, Matcher, NAME, TimeRange};
use tacho_store::driver::{Capabilities, Delete, Info, RowStream, Scan};
use tacho_store::layer::faults::{Faults, Faulty, Wound};
use tacho_store::threads::Threads;
use tacho_store::{Damage, Driver, ErrorKind, MemoryDriver, Options, Result, Row, Store, Table};

use crate::common::{self, Bench, batch, entries, executions, id, labels, samples};

const ALL: TimeRange = TimeRange::ALL;
const DAY_NS: i64 = 86_400_000_000_000;

/// A store on a driver whose rows can be damaged.
struct Patient {
    bench: Bench,
    memory: Arc<MemoryDriver>,
    faulty: Arc<Faulty<Arc<MemoryDriver>>>,
}

impl Patient {
    fn new() -> Self {
        Self::with(Options::default())
    }

    fn with(options: Options) -> Self {
        let memory = Arc::new(MemoryDriver::new());
        let faulty = Arc::new(Faulty::new(memory.clone(), Faults::default()));
        let options = Options { merge_in_background: false, ..options };
        Self { bench: Bench::with(faulty.clone(), options), memory, faulty }
    }

    fn rows(&self, table: Table) -> Vec<Row> {
        self.memory.dump().into_iter().filter(|row| row.table == table).collect()
    }

    fn chunks(&self) -> Vec<Row> {
        self.rows(Table::Chunks)
    }

    fn damage(&self, row: &Row, wound: Wound) {
        self.faulty.damage((row.table, &row.partition, &row.clustering), wound);
    }

    /// Puts the row again, which makes it readable.
    async fn make_readable(&self, row: &Row) {
        let place = |row: &Row| (row.table, row.partition.clone(), row.clustering.clone());
        let held = self.memory.dump().into_iter().find(|held| place(held) == place(row));
        assert_eq!(held.as_ref(), Some(row), "the only copy was lost or changed");
        self.faulty.put(vec![row.clone()]).await.unwrap();
    }
}

/// Series names, ranges and reasons of damages.
fn listed(damages: &tacho_store::Damages) -> Vec<(String, TimeRange, String)> {
    let name =
        |damage: &Damage| damage.labels.as_ref().map_or("?".into(), |l| l.get(NAME).unwrap().to_owned());
    damages.named().iter().map(|d| (name(d), d.range, d.reason.to_string())).collect()
}

async fn read(store: &Store, names: &[&str]) -> (Vec<Vec<(i64, f64)>>, Vec<(String, TimeRange, String)>) {
    let ids: Vec<_> = names.iter().map(|name| id(name)).collect();
    let answer = store.read_samples(&ids, ALL, None, &AtomicUsize::new(usize::MAX)).await.unwrap();
    let series = answer.series.iter();
    let values = series
        .map(|pieces| pieces.iter().flat_map(|p| p.samples()).map(|s| (s.at, s.value.as_f64())).collect());
    (values.collect(), listed(&answer.damages))
}

/// Flushes three generations. Each has one row with two series.
async fn three(store: &Store) {
    for generation in 0..3i64 {
        let points: Vec<(i64, f64)> =
            (0..20).map(|n| (generation * 100 + n, ((n * 37) % 11) as f64 / 3.0)).collect();
        let other: Vec<(i64, f64)> = points.iter().map(|(at, v)| (*at, v * v + 0.1)).collect();
        store.append(batch([samples("a", &points), samples("b", &other)]), None).await.unwrap();
        store.flush().await.unwrap();
    }
}

#[tokio::test]
async fn answers_list_their_damages_and_strict_reads_fail() {
    let patient = Patient::new();
    let store = patient.bench.open().await;
    three(&store).await;
    let (whole, nothing) = read(&store, &["a", "b"]).await;
    assert_eq!((whole[0].len(), nothing), (60, vec![]));
    let rows = patient.chunks();
    assert_eq!(rows.len(), 3);
    patient.damage(&rows[1], Wound::Lost);
    for _ in 0..3 {
        let (left, told) = read(&store, &["a", "b"]).await;
        for (left, whole) in left.iter().zip(&whole) {
            assert_eq!(left.as_slice(), [&whole[..20], &whole[40..]].concat());
        }
        let range = TimeRange::new(100, 100 + 2 * DAY_NS);
        let lost = |name: &str| (name.to_owned(), range, "injected damage".to_owned());
        assert_eq!(told, [lost("a"), lost("b")]);
    }
    assert_eq!(store.stats().chunks_unreadable, 1, "a damaged row must count once, however often it is read");
    for error in [
        store.samples(id("a"), ALL).await.unwrap_err(),
        store.chunks(Kind::Sample, id("b")).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().starts_with("stored records cannot be read: injected damage (of series "));
    }
    // No record before the damaged row is missing.
    assert_eq!(store.samples(id("a"), TimeRange::new(0, 99)).await.unwrap().len(), 20);
    assert_eq!(store.read_chunks(Kind::Sample, id("a")).await.unwrap().records.len(), 2);
    // Masked samples do not count as missing.
    let gone = TimeRange::new(50, 200 + 2 * DAY_NS);
    store.delete(&[Matcher::equal(NAME, "a")], gone).await.unwrap();
    assert_eq!(store.samples(id("a"), ALL).await.unwrap().len(), 20);
    let (_, told) = read(&store, &["a", "b"]).await;
    assert_eq!(told.iter().map(|(name, ..)| &**name).collect::<Vec<_>>(), ["b"]);
}

/// Reads a row of each kind with each possible single bit flip. No value is wrong. A missing value is always reported as a
/// damage, and a damage is reported only if a value is missing.
#[tokio::test]
async fn one_flipped_bit_loses_at_most_its_row_and_never_silently() {
    let patient = Patient::new();
    let store = patient.bench.open().await;
    three(&store).await;
    let logged = batch([entries("log", &[(1, "one"), (2, "two")]), executions("svc", 7, 5)]);
    store.append(logged, None).await.unwrap();
    store.flush().await.unwrap();
    let (whole, _) = read(&store, &["a", "b"]).await;
    let of = |kind: Kind| patient.chunks().into_iter().find(|row| row.partition[0] == kind as u8).unwrap();
    let (mut partial, mut intact) = (0, 0);
    let row = of(Kind::Sample);
    for bit in 0..row.value.len() * 8 {
        patient.damage(&row, Wound::Flipped(bit));
        let (left, told) = read(&store, &["a", "b"]).await;
        for ((left, whole), name) in left.iter().zip(&whole).zip(["a", "b"]) {
            let told = told.iter().any(|(of, ..)| of == name);
            let expect = if told { &whole[20..] } else { &whole[..] };
            assert_eq!(left, expect, "bit {bit}, {name}");
        }
        partial += usize::from(told.len() == 1);
        intact += usize::from(told.is_empty());
    }
    assert!(partial > 0, "each flipped bit damaged both series");
    assert_eq!(intact, 0, "all bits must be covered by a checksum");
    assert_eq!(store.stats().chunks_unreadable, 1);
    for bit in 0..of(Kind::Entry).value.len() * 8 {
        patient.damage(&of(Kind::Entry), Wound::Flipped(bit));
        let read = store.read_entries(id("log"), ALL).await.unwrap();
        assert_eq!((read.records.len(), listed(&read.damages).len()), (0, 1), "bit {bit}");
    }
    assert_eq!(store.entries(id("log"), ALL).await.unwrap_err().kind(), ErrorKind::Corrupt);
    let mut readable = 0;
    for bit in 0..of(Kind::Execution).value.len() * 8 {
        patient.damage(&of(Kind::Execution), Wound::Flipped(bit));
        let room = AtomicUsize::new(usize::MAX);
        let read = store.executions_within(id("svc"), ALL, &room, |_| true).await.unwrap();
        match (read.records.len(), listed(&read.damages).len()) {
            (1, 0) => readable += 1,
            found => assert_eq!(found, (0, 1), "bit {bit}"),
        }
    }
    assert_eq!(readable, 256, "the filter of trace ids has 256 bits, and no record depends on them");
    assert_eq!(store.executions(id("svc"), ALL).await.unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(store.stats().chunks_unreadable, 3);
}

/// Flips each bit of rows that a merge wrote. Their prefixes state which rows they replace. A damaged row replaces no
/// other row of the merge and is not replaced by any of them.
#[tokio::test]
async fn a_damaged_row_of_a_merge_neither_replaces_rows_nor_is_replaced() {
    let patient = Patient::with(Options { chunk_values: 30, ..Options::default() });
    let store = patient.bench.open().await;
    three(&store).await;
    store.merge_all().await.unwrap();
    let later: Vec<(i64, f64)> = (1_000..1_020).map(|at| (at, 1.0)).collect();
    store.append(batch([samples("a", &later), samples("b", &later)]), None).await.unwrap();
    store.flush().await.unwrap();
    let (whole, _) = read(&store, &["a", "b"]).await;
    let merged: Vec<Row> =
        patient.chunks().into_iter().filter(|row| row.value.starts_with(b"TREP")).collect();
    assert_eq!(merged.len(), 2);
    let mut intact = 0;
    for (row, lost) in merged.iter().zip([0..30, 30..60]) {
        let left_of = |told: bool| match told {
            true => [&whole[0][..lost.start], &whole[0][lost.end..]].concat(),
            false => whole[0].clone(),
        };
        for bit in 0..row.value.len() * 8 {
            let chunk = row.value.windows(4).position(|window| window == b"TCHK").unwrap();
            // `Unnoticed` is not tried in a version byte: a read fails if it meets a newer version of a chunk or prefix.
            let versions = [4, chunk + 4];
            let unnoticed = (!versions.contains(&(bit / 8))).then_some(Wound::Unnoticed(bit));
            for wound in unnoticed.into_iter().chain([Wound::Flipped(bit)]) {
                patient.damage(row, wound);
                let (left, told) = read(&store, &["a", "b"]).await;
                for (n, name) in ["a", "b"].iter().enumerate() {
                    let told = told.iter().any(|(of, ..)| of == name);
                    let expect: Vec<i64> = left_of(told).iter().map(|(at, _)| *at).collect();
                    let found: Vec<i64> = left[n].iter().map(|(at, _)| *at).collect();
                    assert_eq!(found, expect, "{wound:?} of {:?}, {name}", row.clustering);
                    assert!(left[n].iter().all(|sample| whole[n].contains(sample)), "{wound:?}, {name}");
                }
                intact += usize::from(told.is_empty());
            }
        }
        patient.make_readable(row).await;
    }
    assert!(intact > 0, "the chunk after a damaged prefix must be readable");
}

#[tokio::test]
async fn upkeep_keeps_the_only_copy_of_unreadable_rows() {
    let options = Options::default();
    let patient = Patient::with(options);
    let store = patient.bench.open().await;
    for at in 0..8i64 {
        let all = [samples("a", &[(at, at as f64)]), entries("log", &[(at, "x")]), executions("s", 1, at)];
        store.append(batch(all), None).await.unwrap();
        store.flush().await.unwrap();
    }
    let (whole, _) = read(&store, &["a"]).await;
    let rows = patient.chunks();
    let damaged: Vec<&Row> = Kind::ALL
        .iter()
        .map(|kind| rows.iter().filter(|r| r.partition[0] == *kind as u8).nth(3).unwrap())
        .collect();
    damaged.iter().for_each(|row| patient.damage(row, Wound::Lost));
    for _ in 0..2 {
        let report = store.merge_all().await.unwrap();
        store.sweep().await.unwrap();
        assert!(report.chunks_out <= report.chunks_in);
    }
    assert!(patient.chunks().len() < rows.len(), "the rows before and after a damaged row must be merged");
    assert_eq!(store.stats().chunks_unreadable, 3);
    assert_eq!(store.read_entries(id("log"), ALL).await.unwrap().records.len(), 7);
    for row in damaged {
        patient.make_readable(row).await;
    }
    let (again, told) = read(&store, &["a"]).await;
    assert_eq!((again, told), (whole, vec![]));
    assert_eq!(store.entries(id("log"), ALL).await.unwrap().len(), 8);
    assert_eq!(common::traces(&store, "s").await.len(), 8);
}

#[tokio::test]
async fn a_deletion_of_an_unreadable_row_stays_pending_and_does_not_block_other_deletions() {
    let patient = Patient::new();
    let store = patient.bench.open().await;
    for at in [1, 10 * DAY_NS] {
        let both = batch([samples("a", &[(at, 1.0), (at + 1, 2.0)]), entries("log", &[(at, "secret")])]);
        store.append(both, None).await.unwrap();
        store.flush().await.unwrap();
    }
    let rows = patient.chunks();
    let damaged: Vec<&Row> =
        rows.iter().filter(|row| row.clustering[2..10] == (1i64 as u64 ^ 1 << 63).to_be_bytes()).collect();
    assert_eq!(damaged.len(), 2);
    damaged.iter().for_each(|row| patient.damage(row, Wound::Lost));
    let early = TimeRange::new(0, DAY_NS);
    store.delete(&[Matcher::equal(NAME, "a")], early).await.unwrap();
    store.delete(&[Matcher::equal(NAME, "log")], early).await.unwrap();
    store.delete(&[Matcher::equal(NAME, "log")], TimeRange::new(9 * DAY_NS, 11 * DAY_NS)).await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!(store.stats().upkeep.tombstones, 2, "the third deletion must be done");
    drop(store);
    let store = patient.bench.open().await;
    store.sweep().await.unwrap();
    for row in damaged {
        patient.make_readable(row).await;
    }
    assert_eq!(store.entries(id("log"), ALL).await.unwrap(), vec![]);
    assert_eq!(common::values(&store, "a", ALL).await.len(), 2);
    store.sweep().await.unwrap();
    assert_eq!(store.stats().upkeep.tombstones, 0);
    assert_eq!(store.entries(id("log"), ALL).await.unwrap(), vec![]);
    assert_eq!(common::values(&store, "a", ALL).await.len(), 2);
}

struct Watched {
    inner: Arc<Faulty<Arc<MemoryDriver>>>,
    partition: Vec<u8>,
    scans: AtomicUsize,
}

#[async_trait]
impl Driver for Watched {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        self.inner.put(rows).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        self.scans.fetch_add(usize::from(scan.partition == self.partition), Ordering::SeqCst);
        self.inner.scan(scan).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.inner.delete(deletes).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_cannot_be_completed_is_retried_only_by_a_sweep() {
    let patient = Patient::with(Options { threads: Threads::One, ..Options::default() });
    let store = patient.bench.open().await;
    let points: Vec<(i64, &str)> =
        [0, 1, 2, 10 * DAY_NS, 10 * DAY_NS + 1].into_iter().map(|at| (at, "text")).collect();
    store.append(entries("log", &points), None).await.unwrap();
    store.flush().await.unwrap();
    let partition = patient.chunks()[0].partition.clone();
    three(&store).await;
    drop(store);
    let series = patient.rows(Table::Series);
    let group = series.iter().find(|row| row.clustering[0] == Kind::Sample as u8).unwrap();
    patient.damage(group, Wound::Lost);
    let scans = AtomicUsize::new(0);
    let watched = Arc::new(Watched { inner: patient.faulty.clone(), partition, scans });
    let hour = Duration::from_secs(3_600);
    let options = Options {
        merge_in_background: true,
        sweep_first: hour,
        sweep_every: hour,
        verify_first: 1_000 * hour,
        ..patient.bench.options.clone()
    };
    let bench = Bench { driver: watched.clone(), options, ..patient.bench };
    let store = bench.open().await;
    let scans = || watched.scans.load(Ordering::SeqCst);
    // The paused clock advances only while all tasks wait. After this time, the upkeep has done its work and waits for its
    // next sweep.
    let work = || tokio::time::sleep(Duration::from_secs(1));
    // Each flush wakes the upkeep.
    let flush = async |at: i64| {
        store.append(entries("other", &[(at, "text")]), None).await.unwrap();
        store.flush().await.unwrap();
        work().await;
    };
    let log = [Matcher::equal(NAME, "log")];
    // The series whose labels are unreadable have no records in this range.
    store.delete(&log, TimeRange::new(10 * DAY_NS, 10 * DAY_NS)).await.unwrap();
    work().await;
    assert_eq!(store.stats().upkeep.tombstones, 0);
    let before = scans();
    store.delete(&log, TimeRange::new(0, 0)).await.unwrap();
    work().await;
    assert!(scans() > before);
    store.sweep().await.unwrap();
    let tried = scans();
    for n in 1..10 {
        flush(n).await;
        assert_eq!(scans(), tried, "wake {n} has read the rows again");
    }
    store.delete(&log, TimeRange::new(1, 1)).await.unwrap();
    work().await;
    assert!(scans() > tried);
    store.sweep().await.unwrap();
    let again = scans();
    tokio::time::sleep(hour + hour / 2).await;
    assert!(scans() > again, "the sweep must read the rows again");
    assert_eq!(store.stats().upkeep.tombstones, 2);
    assert_eq!(common::texts(&store, "log").await.len(), 2);
}

#[tokio::test]
async fn unreadable_labels_and_deletions_are_reported_until_their_rows_are_rewritten() {
    let patient = Patient::new();
    let store = patient.bench.open().await;
    three(&store).await;
    store.append(entries("log", &[(1, "one")]), None).await.unwrap();
    store.flush().await.unwrap();
    patient.faulty.freeze_after(u64::MAX);
    store.delete(&[Matcher::equal(NAME, "log")], ALL).await.unwrap();
    drop(store);
    let meta = |partition: &[u8]| {
        let mut rows = patient.rows(Table::Meta).into_iter();
        rows.find(|row| row.partition == partition).unwrap()
    };
    let series: Vec<Row> = patient.rows(Table::Series);
    let group = series.iter().find(|row| row.clustering[0] == Kind::Sample as u8).unwrap();
    patient.damage(group, Wound::Lost);
    patient.damage(&meta(b"tombstones"), Wound::Flipped(3));
    let store = patient.bench.open().await;
    assert_eq!(store.find(Kind::Sample, &[]).len(), 0);
    let lacks = |kind| {
        let damages: Vec<String> = store.lacks(kind).named().iter().map(|d| d.reason.to_string()).collect();
        damages
    };
    let (samples_lack, entries_lack) = (lacks(Kind::Sample), lacks(Kind::Entry));
    assert_eq!((samples_lack.len(), entries_lack.len()), (2, 1));
    assert!(samples_lack[0].starts_with("the row with the labels of group "), "{samples_lack:?}");
    assert!(entries_lack[0].starts_with("deleted records may reappear: "), "{entries_lack:?}");
    // A deletion stays pending while the labels of some series are unreadable, because it may match these series.
    store.delete(&[Matcher::equal(NAME, "log")], ALL).await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!(store.stats().upkeep.tombstones, 1);
    // When a sender sends the series again, the older records of the series become readable.
    three(&store).await;
    assert_eq!(lacks(Kind::Sample).len(), 1);
    let (values, told) = read(&store, &["a", "b"]).await;
    assert_eq!((values[0].len(), told), (60, vec![]));
    let names: BTreeSet<String> =
        store.find(Kind::Sample, &[]).iter().map(|(_, l)| l.get(NAME).unwrap().to_owned()).collect();
    assert_eq!(names.len(), 2);
    assert_eq!(labels("a").id(), id("a"));
}

#[tokio::test]
async fn missing_metadata_rows_are_not_guessed() {
    let patient = Patient::new();
    let store = patient.bench.open().await;
    three(&store).await;
    drop(store);
    let facts: Vec<Row> =
        patient.rows(Table::Meta).into_iter().filter(|row| *row.partition == *b"store").collect();
    assert!(facts.len() >= 3);
    for (number, row) in facts.iter().enumerate() {
        patient.damage(row, Wound::Lost);
        // The store opens if the fact has a second copy. It also opens without the fact about statistics, which restart at 0,
        // and without the fact about the clock, which is then trusted.
        match patient.bench.try_open().await {
            Ok(store) => {
                let (values, told) = read(&store, &["a"]).await;
                assert_eq!((values[0].len(), told), (60 + number, vec![]), "{row:?}");
                store.append(samples("a", &[(5_000 + number as i64, 1.0)]), None).await.unwrap();
                store.flush().await.unwrap();
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                patient.faulty.put(vec![row.clone()]).await.unwrap();
                let store = patient.bench.open().await;
                store.append(samples("a", &[(5_000 + number as i64, 1.0)]), None).await.unwrap();
                store.flush().await.unwrap();
            }
        }
        if let Some(held) =
            patient.rows(Table::Meta).into_iter().find(|held| held.clustering == row.clustering)
        {
            patient.faulty.put(vec![held]).await.unwrap();
        }
    }
}
