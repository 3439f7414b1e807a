//! A stop leaves small journals to the next start, and flushes otherwise.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tacho_model::{Batch, Kind, TimeRange};
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::{Capabilities, Delete, Info, Row, RowStream, Scan, Table};
use tacho_store::{Driver, Error, ErrorKind, MemoryDriver, Options, Result, Store};
use tokio::sync::Notify;

use crate::common::{Bench, batch, entries, executions, origin, samples, texts, traces, values};

const ALL: TimeRange = TimeRange::ALL;

/// A driver whose puts fail as on a full disk, or whose puts of chunks never end.
#[derive(Default)]
struct Failing {
    inner: MemoryDriver,
    is_full: AtomicBool,
    chunks_wait: AtomicBool,
    /// Notified when a put of chunks waits.
    waits: Notify,
}

#[async_trait]
impl Driver for Failing {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::StorageFull, "injected: disk is full"));
        }
        if self.chunks_wait.load(Ordering::SeqCst) && rows.iter().any(|row| row.table == Table::Chunks) {
            self.waits.notify_one();
            std::future::pending::<()>().await;
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

fn nth(n: i64) -> Batch {
    let trace = n.unsigned_abs().into();
    batch([samples("m", &[(n, n as f64)]), entries("log", &[(n, "text")]), executions("svc", trace, n)])
}

/// Appends the batches with these numbers, as frames of one session.
async fn append(store: &Store, numbers: std::ops::RangeInclusive<i64>) {
    for n in numbers {
        store.append(nth(n), origin(1, n.unsigned_abs())).await.unwrap();
    }
}

/// Asserts that the store has exactly the batches up to this number.
async fn assert_has(store: &Store, last: i64) {
    let expect: Vec<i64> = (1..=last).collect();
    let at = |found: Vec<(i64, f64)>| found.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    assert_eq!(at(values(store, "m", ALL).await), expect);
    assert_eq!(texts(store, "log").await.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expect);
    assert_eq!(traces(store, "svc").await.len(), expect.len());
    assert_eq!(store.session_acked(1), last.unsigned_abs());
}

#[tokio::test]
async fn a_stop_that_keeps_the_journals_succeeds_on_a_full_disk() {
    let driver = Arc::new(Failing::default());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    append(&store, 1..=3).await;
    driver.is_full.store(true, Ordering::SeqCst);
    store.stop().await.unwrap();
    drop(store);
    driver.is_full.store(false, Ordering::SeqCst);
    assert_has(&*bench.open().await, 3).await;
}

#[tokio::test]
async fn a_stop_that_must_flush_fails_on_a_full_disk() {
    let driver = Arc::new(Failing::default());
    let bench = Bench::with(driver.clone(), Options { stop_journal_bytes: 0, ..Options::default() });
    let store = bench.open().await;
    append(&store, 1..=3).await;
    driver.is_full.store(true, Ordering::SeqCst);
    assert_eq!(store.stop().await.unwrap_err().kind(), ErrorKind::StorageFull);
    drop(store);
    driver.is_full.store(false, Ordering::SeqCst);
    assert_has(&*bench.open().await, 3).await;
}

#[tokio::test]
async fn journals_stay_up_to_the_limit() {
    let bench = Bench::new();
    let store = bench.open().await;
    append(&store, 1..=2).await;
    let bytes = store.stats().journal_bytes;
    for (stop_journal_bytes, stays) in [(bytes, true), (bytes - 1, false)] {
        let options = Options { stop_journal_bytes, ..Options::default() };
        let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
        let store = bench.open().await;
        append(&store, 1..=2).await;
        assert_eq!(store.stats().journal_bytes, bytes);
        store.stop().await.unwrap();
        assert_eq!(bench.journals().len(), usize::from(stays), "{stop_journal_bytes} bytes");
        assert_eq!(store.append(nth(3), None).await.unwrap_err().kind(), ErrorKind::Closed);
        drop(store);
        assert_has(&*bench.open().await, 2).await;
    }
}

#[tokio::test]
async fn a_stop_during_a_flush_keeps_all_records() {
    let driver = Arc::new(Failing::default());
    let bench = Bench::with(driver.clone(), Options::default());
    let store = bench.open().await;
    append(&store, 1..=2).await;
    driver.chunks_wait.store(true, Ordering::SeqCst);
    let flushing = tokio::spawn({
        let store = store.clone();
        async move { store.flush().await }
    });
    driver.waits.notified().await;
    append(&store, 3..=4).await;
    store.stop().await.unwrap();
    flushing.abort();
    let _ = flushing.await;
    drop(store);
    driver.chunks_wait.store(false, Ordering::SeqCst);
    let store = bench.open().await;
    assert_has(&store, 4).await;
    store.flush().await.unwrap();
    assert_has(&store, 4).await;
}

#[tokio::test]
async fn a_damaged_journal_is_reported_after_a_stop_and_kept() {
    let bench = Bench::new();
    let store = bench.open().await;
    append(&store, 1..=3).await;
    drop(store);
    let path = bench.journals().remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let reasons = |store: &Store| {
        store.lacks(Kind::Sample).named().iter().map(|damage| damage.reason.to_string()).collect::<Vec<_>>()
    };
    let store = bench.open().await;
    let said = reasons(&store);
    assert_eq!(said.len(), 1);
    let found = texts(&store, "log").await;
    assert!(found.len() < 3, "{found:?}");
    store.stop().await.unwrap();
    drop(store);
    let store = bench.open().await;
    assert_eq!((reasons(&store), texts(&store, "log").await), (said.clone(), found.clone()));
    store.flush().await.unwrap();
    store.stop().await.unwrap();
    drop(store);
    let store = bench.open().await;
    assert_eq!((reasons(&store), texts(&store, "log").await), (said, found));
}

#[tokio::test]
async fn a_refused_batch_does_not_come_back_after_a_stop() {
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), ..Options::default() };
    let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
    let store = bench.open().await;
    append(&store, 1..=2).await;
    disk.set_sync_fails(true);
    disk.set_cut_fails(true);
    store.append(nth(3), origin(1, 3)).await.unwrap_err();
    disk.set_sync_fails(false);
    let error = store.stop().await.unwrap_err();
    assert!(error.to_string().starts_with("cannot cut journal"), "{error}");
    disk.set_cut_fails(false);
    store.stop().await.unwrap();
    drop(store);
    assert_has(&*bench.open().await, 2).await;
}
