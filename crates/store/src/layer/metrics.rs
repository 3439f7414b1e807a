//! A layer that counts calls, failures, rows and bytes, and measures latency.
//!
//! The counts are plain data ([`Measured`]). The caller chooses the metric names.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::StreamExt;

use crate::Result;
use crate::driver::{
    Capabilities, Cut, Delete, Driver, EachClustering, EachKey, Health, Info, Parts, PinnedFile, Row,
    RowStream, Scan, Scanned, Table, Verified,
};

/// Number of latency buckets. Their bounds double from 2^10 ns (about 1 us). The last bucket holds all calls above 2^35
/// ns (34 s).
pub const BUCKETS: usize = 27;
const BUCKET_FIRST_LOG2: u32 = 10;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    pub calls: u64,
    pub errors: u64,
    /// Rows that were passed to `put`, or read; for deletes, the number of rows and ranges to delete.
    pub rows: u64,
    pub bytes: u64,
    /// Unreadable rows. A row counts each time it is read.
    pub damaged: u64,
    pub latency_ns_sum: u64,
    /// Number of calls by latency. Each call is counted once, in the first bucket `i` whose bound (`bucket_bound_ns(i)`) it does
    /// not exceed. The last bucket has no bound.
    pub latency: [u64; BUCKETS],
}

/// Upper bound of a latency bucket, ns. The last bucket has none.
pub const fn bucket_bound_ns(bucket: usize) -> Option<u64> {
    if bucket + 1 < BUCKETS { Some(1 << (BUCKET_FIRST_LOG2 as usize + bucket)) } else { None }
}

/// Measurements of the layer so far. A `read` or `read_parts` counts as one scan. The latency of a streamed scan is the time
/// until it is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    pub put: Call,
    pub scan: Call,
    pub delete: Call,
}

#[derive(Default)]
struct Counter {
    calls: AtomicU64,
    errors: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    damaged: AtomicU64,
    latency_ns_sum: AtomicU64,
    latency: [AtomicU64; BUCKETS],
}

impl Counter {
    fn observe<T>(&self, took: Duration, result: &Result<T>) {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let log2 = ns.max(1).next_power_of_two().trailing_zeros();
        let bucket = (log2.saturating_sub(BUCKET_FIRST_LOG2) as usize).min(BUCKETS - 1);
        if let Some(count) = self.latency.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.latency_ns_sum.fetch_add(ns, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.errors.fetch_add(u64::from(result.is_err()), Ordering::Relaxed);
    }

    fn row(&self, row: &Row) {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(row.value.len() as u64, Ordering::Relaxed);
    }

    fn damaged(&self) {
        self.damaged.fetch_add(1, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Call {
        let get = |n: &AtomicU64| n.load(Ordering::Relaxed);
        Call {
            calls: get(&self.calls),
            errors: get(&self.errors),
            rows: get(&self.rows),
            bytes: get(&self.bytes),
            damaged: get(&self.damaged),
            latency_ns_sum: get(&self.latency_ns_sum),
            latency: self.latency.each_ref().map(get),
        }
    }
}

pub struct Metrics<D> {
    inner: D,
    put: Counter,
    scan: Arc<Counter>,
    delete: Counter,
}

impl<D: Driver> Metrics<D> {
    pub fn new(inner: D) -> Self {
        Self { inner, put: Counter::default(), scan: Arc::default(), delete: Counter::default() }
    }

    pub fn measured(&self) -> Measured {
        Measured { put: self.put.snapshot(), scan: self.scan.snapshot(), delete: self.delete.snapshot() }
    }
}

#[async_trait]
impl<D: Driver> Driver for Metrics<D> {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        rows.iter().for_each(|row| self.put.row(row));
        let begin = Instant::now();
        let result = self.inner.put(rows).await;
        self.put.observe(begin.elapsed(), &result);
        result
    }

    async fn put_to_free(&self, rows: Vec<Row>) -> Result<()> {
        rows.iter().for_each(|row| self.put.row(row));
        let begin = Instant::now();
        let result = self.inner.put_to_free(rows).await;
        self.put.observe(begin.elapsed(), &result);
        result
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        let begin = Instant::now();
        let result = self.inner.scan(scan).await;
        self.scan.observe(begin.elapsed(), &result);
        let counter = self.scan.clone();
        Ok(result?
            .inspect(move |row| match row {
                Ok(Ok(row)) => counter.row(row),
                Ok(Err(_)) => counter.damaged(),
                Err(_) => {
                    counter.errors.fetch_add(1, Ordering::Relaxed);
                }
            })
            .boxed())
    }

    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        let begin = Instant::now();
        let result = self.inner.read(scans).await;
        self.scan.observe(begin.elapsed(), &result);
        result.iter().flatten().flatten().for_each(|row| match row {
            Ok(row) => self.scan.row(row),
            Err(_) => self.scan.damaged(),
        });
        result
    }

    async fn read_parts(&self, scans: Vec<Scan>, parts: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        let begin = Instant::now();
        let result = self.inner.read_parts(scans, parts).await;
        self.scan.observe(begin.elapsed(), &result);
        result.iter().flatten().flatten().for_each(|cut| match cut {
            Ok(cut) => self.scan.row(&cut.row),
            Err(_) => self.scan.damaged(),
        });
        result
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        self.inner.keys(table, each).await
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        self.inner.keys_of(scan, each).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.delete.rows.fetch_add(deletes.len() as u64, Ordering::Relaxed);
        let begin = Instant::now();
        let result = self.inner.delete(deletes).await;
        self.delete.observe(begin.elapsed(), &result);
        result
    }

    async fn verify(&self) -> Result<Verified> {
        self.inner.verify().await
    }

    async fn settle(&self) -> Result<()> {
        self.inner.settle().await
    }

    async fn pin(&self, into: &Path) -> Result<Vec<PinnedFile>> {
        self.inner.pin(into).await
    }
}
