//! While a flush fails, its chunks are not merged, but deletions still free space. Failed merges are repeated ever less often.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tacho_chunk::{Aggregate, Aggregation};
use tacho_model::{Kind, ManualClock, Matcher, NAME, TimeRange};
use tacho_store::driver::{Capabilities, Delete, Info, Row, RowStream, Scan, Table};
use tacho_store::policy::{Downsampling, Policies, Rule};
use tacho_store::threads::Threads;
use tacho_store::{Driver, Error, ErrorKind, MemoryDriver, Options, Result, Store};

use crate::common::{self, Bench, samples};

const HOUR: Duration = Duration::from_secs(3_600);

/// The calls that a driver refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refuses {
    Nothing,
    /// Puts into the Meta table, with which every flush ends.
    Meta,
    /// Puts into the Series table, with which the flush of a new series begins.
    Series,
    /// The put that marks a generation as flushed.
    Flushed,
    /// Puts of chunks, because the disk is full.
    Chunks,
    /// Puts of series and of chunks with `put`, because the disk is full. `put_to_free` succeeds.
    Growth,
    Scans,
}

/// A driver that refuses some calls and counts scans.
struct Refusing {
    inner: MemoryDriver,
    refuses: Mutex<Refuses>,
    scans: AtomicU64,
}

impl Refusing {
    fn new() -> Arc<Self> {
        let (inner, refuses) = (MemoryDriver::new(), Mutex::new(Refuses::Nothing));
        Arc::new(Self { inner, refuses, scans: AtomicU64::new(0) })
    }

    fn set(&self, refuses: Refuses) {
        *self.refuses.lock().unwrap_or_else(PoisonError::into_inner) = refuses;
    }

    fn check(&self, call: Refuses) -> Result<()> {
        if *self.refuses.lock().unwrap_or_else(PoisonError::into_inner) == call {
            let is_full = matches!(call, Refuses::Chunks | Refuses::Growth);
            let kind = if is_full { ErrorKind::StorageFull } else { ErrorKind::Unavailable };
            return Err(Error::new(kind, "injected: not now"));
        }
        Ok(())
    }

    fn scans(&self) -> u64 {
        self.scans.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Driver for Refusing {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        if rows.iter().any(|row| row.table == Table::Meta) {
            self.check(Refuses::Meta)?;
        }
        if rows.iter().any(|row| row.table == Table::Series) {
            self.check(Refuses::Series)?;
        }
        if rows.iter().any(|row| row.clustering == b"flushed") {
            self.check(Refuses::Flushed)?;
        }
        if rows.iter().any(|row| row.table != Table::Meta) {
            self.check(Refuses::Growth)?;
        }
        self.put_to_free(rows).await
    }

    async fn put_to_free(&self, rows: Vec<Row>) -> Result<()> {
        if rows.iter().any(|row| row.table == Table::Chunks) {
            self.check(Refuses::Chunks)?;
        }
        self.inner.put(rows).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        self.scans.fetch_add(1, Ordering::SeqCst);
        self.check(Refuses::Scans)?;
        self.inner.scan(scan).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.inner.delete(deletes).await
    }
}

/// Appends samples of one series, for more chunks than a merge needs.
async fn append(store: &Store, name: &str) {
    let points: Vec<(i64, f64)> = (0..100).map(|at| (at, at as f64)).collect();
    store.append(samples(name, &points), None).await.unwrap();
}

fn bench(driver: Arc<Refusing>) -> Bench {
    let options = Options { threads: Threads::One, chunk_values: 10, merge_rows: 2, ..Options::default() };
    let mut bench = Bench::with(driver, options);
    bench.options.flush_wait_first = Options::default().flush_wait_first;
    bench.options.flush_wait_max = Options::default().flush_wait_max;
    bench
}

#[tokio::test(start_paused = true)]
async fn chunks_of_an_unfinished_flush_are_not_read_again_and_again() {
    let driver = Refusing::new();
    let bench = bench(driver.clone());
    let store = bench.open().await;
    driver.set(Refuses::Meta);
    append(&store, "m").await;
    store.flush().await.unwrap_err();
    let before = driver.scans();
    // The paused clock advances only while all tasks rest. A task that does not rest would run in this loop.
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert!(driver.scans() - before < 100, "{} scans", driver.scans() - before);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert!(driver.scans() - before < 100, "{} scans in an hour", driver.scans() - before);
    assert_eq!(store.stats().upkeep.merges, 0);
    driver.set(Refuses::Nothing);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let upkeep = store.stats().upkeep;
    assert!(upkeep.merges > 0 && upkeep.chunks_due == 0, "{upkeep:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_merges_are_repeated_less_and_less_often() {
    let driver = Refusing::new();
    let bench = bench(driver.clone());
    let store = bench.open().await;
    let before = driver.scans();
    driver.set(Refuses::Scans);
    append(&store, "m").await;
    store.flush().await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let first = driver.scans() - before;
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let all = driver.scans() - before;
    assert!(first > 2 && all > first, "{first} scans, then {all}");
    // The waits double from 100 ms up to 30 s. Waits that do not double would permit 36,000 scans.
    assert!(all < 1_000, "{all} scans in an hour");
    driver.set(Refuses::Nothing);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(store.stats().upkeep.merges > 0);
}

/// The flusher must hold no lock during its retries. Otherwise the upkeep would wait for the lock and free no space on a full
/// disk.
#[tokio::test(start_paused = true)]
async fn a_deletion_frees_space_while_a_flush_fails() {
    for refuses in [Refuses::Series, Refuses::Flushed] {
        let driver = Refusing::new();
        let mut bench = bench(driver.clone());
        bench.options.merge_in_background = false;
        let store = bench.open().await;
        append(&store, "m").await;
        store.flush().await.unwrap();
        driver.set(refuses);
        append(&store, "other").await;
        store.flush().await.unwrap_err();
        let matchers = [Matcher::equal("__name__", "m")];
        let deleted = tokio::time::timeout(HOUR, store.delete(&matchers, TimeRange::ALL));
        deleted.await.unwrap().unwrap();
        tokio::time::timeout(HOUR, store.merge_all()).await.unwrap().unwrap();
        let left = store.chunks(Kind::Sample, common::id("m")).await.unwrap();
        assert!(left.is_empty(), "{refuses:?}: {} chunks", left.len());
        driver.set(Refuses::Nothing);
        store.close().await.unwrap();
        assert_eq!(common::values(&store, "other", TimeRange::ALL).await.len(), 100, "{refuses:?}");
    }
}

/// The flush needs space that only the deletion frees.
#[tokio::test(start_paused = true)]
async fn a_deletion_frees_space_in_the_background_while_a_flush_meets_a_full_disk() {
    let driver = Refusing::new();
    let bench = bench(driver.clone());
    let store = bench.open().await;
    append(&store, "m").await;
    store.flush().await.unwrap();
    driver.set(Refuses::Growth);
    append(&store, "m").await;
    append(&store, "other").await;
    store.flush().await.unwrap_err();
    store.delete(&[Matcher::equal(NAME, "m")], TimeRange::ALL).await.unwrap();
    tokio::time::sleep(Duration::from_secs(120)).await;
    let left = store.chunks(Kind::Sample, common::id("m")).await.unwrap();
    assert!(left.is_empty(), "{} chunks", left.len());
    assert_eq!(store.stats().upkeep.tombstones, 1, "the deletion still masks records of the journal");
    driver.set(Refuses::Nothing);
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(common::values(&store, "m", TimeRange::ALL).await, []);
    assert_eq!(common::values(&store, "other", TimeRange::ALL).await.len(), 100);
    assert_eq!((store.stats().upkeep.tombstones, bench.journals().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_downsampling_that_failed_on_a_full_disk_is_repeated_when_there_is_space() {
    const SECOND: i64 = 1_000_000_000;
    let to = Aggregation { step: 10 * SECOND, how: Aggregate::Max };
    let then = Downsampling { after: 100 * SECOND as u64, to };
    let rule = Rule { matchers: vec![Matcher::equal(NAME, "m")], then };
    let policies = Policies { downsampling: vec![rule], ..Policies::default() };
    let driver = Refusing::new();
    let options = Options { threads: Threads::One, policies: Arc::new(policies), ..Options::default() };
    let (wait, every) = (options.sweep_first + Duration::from_secs(60), options.sweep_every);
    let bench = Bench::with(driver.clone(), options);
    let clock = Arc::new(ManualClock::new(50 * SECOND));
    let directory = bench.directory.path();
    let store = Store::open(driver.clone(), directory, bench.options.clone(), clock.clone()).await.unwrap();
    let points: Vec<(i64, f64)> = (0..300).map(|n| (n * SECOND, n as f64)).collect();
    store.append(samples("m", &points), None).await.unwrap();
    store.flush().await.unwrap();
    tokio::time::sleep(wait).await;
    driver.set(Refuses::Chunks);
    clock.set(1_000 * SECOND);
    tokio::time::sleep(every).await;
    assert_eq!(common::values(&store, "m", TimeRange::ALL).await.len(), 300);
    driver.set(Refuses::Nothing);
    tokio::time::sleep(Duration::from_secs(120)).await;
    let left = common::values(&store, "m", TimeRange::ALL).await.len();
    assert!(left <= 31, "{left} samples");
}
