//! Tests full disks, frames out of order, failing deletes and verifications, and jumping clocks. The store refuses or
//! waits, reports the condition, and recovers without a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tacho_model::{Kind, ManualClock, Matcher, NAME, TimeRange};
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::{Capabilities, Delete, Info, Row, RowStream, Scan, Verified};
use tacho_store::policy::{Policies, Retention, Rule};
use tacho_store::{
    Appended, ClockBounds, Driver, Error, ErrorKind, MemoryDriver, Options, Origin, Result, Store, Table,
};

use crate::common::{self, Bench, entries, origin, samples, values};

const ALL: TimeRange = TimeRange::ALL;

#[tokio::test]
async fn a_nearly_full_disk_refuses_records_and_permits_deletion() {
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), disk_reserve_bytes: 10_000, ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    disk.set_space(9_000);
    let error = store.append(samples("m", &[(2, 2.0)]), None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    assert_eq!(store.ready().unwrap_err().kind(), ErrorKind::StorageFull);
    let stats = store.stats();
    assert!(stats.disk_full && stats.batches_disk_full == 1, "{stats:?}");

    store.delete(&[Matcher::equal(NAME, "m")], ALL).await.unwrap();
    store.flush().await.unwrap();
    store.sweep().await.unwrap();
    assert_eq!((values(&store, "m", ALL).await.len(), store.stats().upkeep.tombstones), (0, 0));
    assert!(store.ready().is_err(), "ready, although the sweep frees no space on the disk of the journal");
    disk.set_space(20_000);
    store.ready().unwrap();
    store.append(samples("m", &[(3, 3.0)]), None).await.unwrap();
    assert_eq!(values(&store, "m", ALL).await, [(3, 3.0)]);
}

#[tokio::test]
async fn a_merge_on_a_full_disk_only_completes_deletions_and_gives_the_reason() {
    let disk = FaultyDisk::default();
    let options = Options {
        disk: Arc::new(disk.clone()),
        disk_reserve_bytes: 10_000,
        merge_in_background: false,
        ..Options::default()
    };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    for at in 1..=2 {
        for name in ["kept", "deleted"] {
            store.append(samples(name, &[(at, 1.0)]), None).await.unwrap();
            store.flush().await.unwrap();
        }
    }
    let chunks = async |name: &str| store.chunks(Kind::Sample, common::id(name)).await.unwrap().len();
    assert_eq!((chunks("kept").await, chunks("deleted").await), (2, 2));
    disk.set_space(9_000);
    store.delete(&[Matcher::equal(NAME, "deleted")], ALL).await.unwrap();
    store.flush().await.unwrap();
    let error = store.merge_all().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    for part in [" are reserved so that deletion works", ": delete old records or free disk space"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert_eq!((chunks("kept").await, chunks("deleted").await), (2, 0));
    disk.set_space(u64::MAX);
    store.merge_all().await.unwrap();
    assert_eq!(chunks("kept").await, 1);
}

#[tokio::test]
async fn a_batch_with_some_stored_frames_is_refused_entirely() {
    let bench = Bench::new();
    let store = bench.open().await;
    let append = async |first: u64, seq: u64| {
        let all: Vec<(i64, f64)> = (first..=seq).map(|n| (n as i64, n as f64)).collect();
        store.append(samples("m", &all), Some(Origin { session: 1, first, seq })).await
    };
    // The batches may or may not share a group commit.
    for round in 0..50 {
        let from = round * 10;
        let (whole, part, inner) =
            tokio::join!(append(from + 4, from + 6), append(from + 4, from + 9), append(from + 5, from + 5));
        assert_eq!(whole.unwrap(), Appended::Stored);
        let error = part.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("send them one by one"), "{error}");
        assert_eq!(inner.unwrap(), Appended::Repeated);
        for n in 4..=9 {
            let expect = if n <= 6 { Appended::Repeated } else { Appended::Stored };
            assert_eq!(append(from + n, from + n).await.unwrap(), expect);
        }
    }
    let expect: Vec<(i64, f64)> = (0..500).filter(|n| n % 10 > 3).map(|n| (n, n as f64)).collect();
    assert_eq!(values(&store, "m", ALL).await, expect);
    assert_eq!(store.stats().samples_replaced, 0);
}

#[tokio::test]
async fn frames_out_of_order_are_each_stored_once() {
    let bench = Bench::new();
    let store = bench.open().await;
    let frame = |seq: u64| common::executions("svc", seq.into(), 1);
    // The first two frames reach the journal together, the second frame first.
    let (second, first) = tokio::join!(
        store.append(frame(2), common::origin(7, 2)),
        store.append(frame(1), common::origin(7, 1))
    );
    assert_eq!((second.unwrap(), first.unwrap()), (Appended::Stored, Appended::Stored));
    for (seq, expect) in [
        (5, Appended::Stored),
        (3, Appended::Stored),
        (5, Appended::Repeated),
        (4, Appended::Stored),
        (3, Appended::Repeated),
        (1, Appended::Repeated),
        (9, Appended::Stored),
    ] {
        assert_eq!(store.append(frame(seq), common::origin(7, seq)).await.unwrap(), expect, "{seq}");
    }
    assert_eq!(store.session_acked(7), 9);
    store.flush().await.unwrap();
    assert_eq!(
        store.append(frame(6), common::origin(7, 6)).await.unwrap(),
        Appended::Stored,
        "after a flush"
    );
    drop(store);
    let store = bench.open().await;
    assert_eq!(common::traces(&store, "svc").await, [1, 2, 3, 4, 5, 6, 9]);
    store.flush().await.unwrap();
    drop(store);
    let store = bench.open().await;
    assert_eq!((common::traces(&store, "svc").await.len(), store.session_acked(7)), (7, 9));
    assert_eq!(store.append(frame(12), common::origin(7, 12)).await.unwrap(), Appended::Stored);
    drop(store);
    let store = bench.open().await;
    for expect in [Appended::Stored, Appended::Repeated] {
        assert_eq!(store.append(frame(11), common::origin(7, 11)).await.unwrap(), expect, "after a crash");
    }
}

/// A driver that fails all deletes and verifications while `keeps` is set.
struct Keeping {
    inner: MemoryDriver,
    keeps: AtomicBool,
    /// Number of calls of `verify`.
    verified: AtomicU64,
}

impl Keeping {
    fn new() -> Self {
        let (keeps, verified) = (AtomicBool::new(true), AtomicU64::new(0));
        Self { inner: MemoryDriver::new(), keeps, verified }
    }

    fn check(&self) -> Result<()> {
        if self.keeps.load(Ordering::SeqCst) {
            return Err(tacho_store::Error::new(ErrorKind::Unavailable, "injected: not now"));
        }
        Ok(())
    }
}

#[async_trait]
impl Driver for Keeping {
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
        self.inner.scan(scan).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.check()?;
        self.inner.delete(deletes).await
    }

    async fn verify(&self) -> Result<Verified> {
        self.verified.fetch_add(1, Ordering::SeqCst);
        self.check()?;
        Ok(Verified { done: true, ..Verified::default() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_verification_is_retried_soon() {
    let hour = Duration::from_secs(3_600);
    for merge_in_background in [false, true] {
        let driver = Arc::new(Keeping::new());
        let options = Options {
            merge_in_background,
            sweep_every: hour,
            verify_first: hour,
            verify_every: 7 * 24 * hour,
            ..Options::default()
        };
        let bench = Bench::with(driver.clone(), options);
        let store = bench.open().await;
        let verified = || driver.verified.load(Ordering::SeqCst);
        tokio::time::sleep(hour + hour / 2).await;
        assert_eq!(verified(), 1);
        tokio::time::sleep(2 * hour).await;
        assert_eq!(verified(), 3);
        driver.keeps.store(false, Ordering::SeqCst);
        tokio::time::sleep(2 * hour).await;
        assert_eq!(verified(), 4, "after a complete verification, the next one must wait for a week");
        drop(store);
    }
}

/// The paused clock skips the waits between attempts.
#[tokio::test(start_paused = true)]
async fn failed_deletes_are_reported_and_done_later() {
    let driver = Arc::new(Keeping::new());
    let bench = Bench::with(driver.clone(), Options { merge_in_background: false, ..Options::default() });
    let store = bench.open().await;
    store.append(common::batch([samples("a", &[(1, 1.0)]), samples("b", &[(1, 1.0)])]), None).await.unwrap();
    store.flush().await.unwrap();
    store.delete(&[Matcher::equal(NAME, "a")], ALL).await.unwrap();
    let error = store.sweep().await.unwrap_err();
    assert!(error.to_string().contains("deleted"), "{error}");
    for round in 0..3 {
        assert_eq!(values(&store, "a", ALL).await.len(), 0, "round {round}");
        assert_eq!(values(&store, "b", ALL).await.len(), 1, "round {round}");
        assert_eq!(store.stats().upkeep.tombstones, 1 - round / 2);
        driver.keeps.store(round == 0, Ordering::SeqCst);
        let swept = store.sweep().await;
        assert_eq!(swept.is_err(), round == 0, "{swept:?}");
    }
}

#[tokio::test]
async fn a_clock_far_ahead_deletes_no_records_until_confirmed() {
    let day = 86_400_000_000_000i64;
    let keep = Rule { matchers: vec![Matcher::equal(NAME, "m")], then: Retention::of(30 * day as u64) };
    let policies = Policies { retention: vec![keep], ..Policies::default() };
    let clock = Arc::new(ManualClock::new(100 * day));
    let options = Options {
        policies: Arc::new(policies),
        clock_bounds: Some(ClockBounds::default()),
        merge_in_background: false,
        ..Options::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let driver = Arc::new(MemoryDriver::new());
    let open =
        async || Store::open(driver.clone(), directory.path(), options.clone(), clock.clone()).await.unwrap();
    let mut store = open().await;
    store.append(samples("m", &[(99 * day, 1.0)]), None).await.unwrap();
    store.flush().await.unwrap();
    for restart in [false, true] {
        if restart {
            clock.set(100 * day);
            drop(store);
            store = open().await;
        }
        clock.set(9_000 * day);
        store.sweep().await.unwrap();
        assert_eq!(values(&store, "m", ALL).await.len(), 1, "restart: {restart}");
        assert!(store.stats().clock_doubted && store.clock_jump().is_some());
    }
    drop(store);
    let store = open().await;
    store.sweep().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await.len(), 1, "the clock was ahead before the start");
    assert!(store.confirm_clock().await.unwrap().is_some());
    assert!(!store.stats().clock_doubted);
    store.sweep().await.unwrap();
    assert_eq!(values(&store, "m", ALL).await.len(), 0);
}

#[tokio::test]
async fn a_store_without_a_stored_clock_time_trusts_the_clock_once() {
    let day = 86_400_000_000_000i64;
    let keep = Rule { matchers: vec![Matcher::equal(NAME, "m")], then: Retention::of(30 * day as u64) };
    let policies = Policies { retention: vec![keep], ..Policies::default() };
    let options = Options {
        policies: Arc::new(policies),
        clock_bounds: Some(ClockBounds::default()),
        merge_in_background: false,
        ..Options::default()
    };
    // The machine was off for three weeks, or the clock of a sender is years ahead.
    for (newest, now) in [(99 * day, 121 * day), (9_000 * day, 101 * day)] {
        let clock = Arc::new(ManualClock::new(100 * day));
        let directory = tempfile::tempdir().unwrap();
        let open = async |driver: MemoryDriver| {
            Store::open(Arc::new(driver), directory.path(), options.clone(), clock.clone()).await.unwrap()
        };
        let written = Arc::new(MemoryDriver::new());
        let store =
            Store::open(written.clone(), directory.path(), options.clone(), clock.clone()).await.unwrap();
        store.append(samples("m", &[(newest, 1.0)]), None).await.unwrap();
        store.close().await.unwrap();
        drop(store);
        let older = written.dump().into_iter().filter(|row| row.clustering != b"clock");
        let store = open(MemoryDriver::restore(older.collect())).await;
        clock.set(now);
        assert!(!store.stats().clock_doubted, "newest chunk at {newest}");
        clock.set(now + 40 * day);
        assert!(store.stats().clock_doubted, "newest chunk at {newest}: a jump after the start");
    }
}

#[tokio::test]
async fn a_deletion_does_not_cover_a_refused_batch_that_is_sent_again() {
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    store.append(entries("log", &[(1, "deleted")]), origin(1, 1)).await.unwrap();
    disk.set_sync_fails(true);
    disk.set_cut_fails(true);
    store.append(entries("log", &[(2, "again")]), origin(1, 2)).await.unwrap_err();
    disk.set_sync_fails(false);
    // The journal may contain the refused batch. The next start would read this batch as older than the deletion, so the
    // deletion would cover it. The store would then not store the resent batch, because it would count as a repetition.
    let log = [Matcher::equal(NAME, "log")];
    let error = store.delete(&log, ALL).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot cut journal after a failed write"), "{error}");
    disk.set_cut_fails(false);
    store.delete(&log, ALL).await.unwrap();
    drop(store);
    let store = bench.open().await;
    store.append(entries("log", &[(2, "again")]), origin(1, 2)).await.unwrap();
    assert_eq!(common::texts(&store, "log").await, [(2, "again".to_owned())]);
}

/// A driver that checks that the list of journals names each generation before its chunks are put.
struct Listing {
    inner: MemoryDriver,
    /// The last generation on the list.
    listed: AtomicU64,
    chunks: AtomicU64,
    /// Whether puts of the list fail.
    fails: AtomicBool,
}

#[async_trait]
impl Driver for Listing {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        let number = |bytes: Option<&[u8]>| bytes.map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
        for row in &rows {
            if row.table == Table::Chunks {
                let generation = number(row.clustering.get(10..18)).unwrap();
                let listed = self.listed.load(Ordering::SeqCst);
                assert!(generation <= listed, "chunk of generation {generation}, the list ends at {listed}");
                self.chunks.fetch_add(1, Ordering::SeqCst);
            } else if row.clustering == b"journals" {
                if self.fails.load(Ordering::SeqCst) {
                    return Err(Error::new(ErrorKind::Io, "put refused by the test"));
                }
                // Each journal takes 16 bytes after the header of 33 bytes.
                let last = row.value.len().checked_sub(16).filter(|at| *at >= 33);
                let last = number(last.and_then(|at| row.value.get(at..at + 8)));
                self.listed.fetch_max(last.unwrap_or(0), Ordering::SeqCst);
            }
        }
        self.inner.put(rows).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        self.inner.scan(scan).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.inner.delete(deletes).await
    }
}

/// A process ended before it had stored the list with its generation. The next process flushes this generation at once.
#[tokio::test]
async fn a_generation_is_on_the_list_of_journals_before_its_chunks_are_put() {
    let driver = Arc::new(Listing {
        inner: MemoryDriver::new(),
        listed: AtomicU64::new(0),
        chunks: AtomicU64::new(0),
        fails: AtomicBool::new(true),
    });
    let bench = Bench::with(driver.clone(), Options { merge_in_background: false, ..Options::default() });
    let store = bench.open().await;
    store.append(samples("m", &[(1, 1.0)]), None).await.unwrap();
    drop(store);
    driver.fails.store(false, Ordering::SeqCst);
    let store = bench.open().await;
    store.flush().await.unwrap();
    assert_eq!(driver.chunks.load(Ordering::SeqCst), 1);
    assert_eq!(values(&store, "m", ALL).await.len(), 1);
}
