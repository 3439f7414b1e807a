//! A layer that retries failed puts, scans, reads and deletes if a retry may help.
//!
//! The number of attempts is limited. Waits double up to a limit. Each wait is shortened by a seeded jitter of up to one
//! half, so that several servers do not retry at the same moment ("equal jitter", M. Brooker, AWS, 2015). An interrupted
//! scan continues after the last row that it returned.

use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::driver::{
    Capabilities, Cut, Damaged, Delete, Driver, EachClustering, EachKey, Health, Info, Order, Parts,
    PinnedFile, Row, RowStream, Scan, Scanned, Table, Verified,
};
use crate::{Error, Result};
use tacho_model::Random;

#[derive(Clone, Debug)]
pub struct Policy {
    /// Limit on the calls for one request, including the first one. 0 means 1.
    pub attempts: u32,
    pub wait_first: Duration,
    pub wait_max: Duration,
    pub seed: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { attempts: 5, wait_first: Duration::from_millis(50), wait_max: Duration::from_secs(5), seed: 0 }
    }
}

#[derive(Debug)]
pub struct Backoff {
    random: Random,
    next: Duration,
    max: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, max: Duration, seed: u64) -> Self {
        Self { random: Random::new(seed), next: first, max }
    }

    /// The waits of a store. The seed is the low half of its id, so that stores do not retry at the same time.
    #[expect(clippy::cast_possible_truncation, reason = "takes the low half")]
    pub const fn of_store(first: Duration, max: Duration, id: u128) -> Self {
        Self::new(first, max, id as u64)
    }

    /// Returns a random wait between half of the current wait and all of it. Then doubles the current wait.
    pub fn next_wait(&mut self) -> Duration {
        let wait = self.next.min(self.max);
        self.next = wait.saturating_mul(2);
        let half = wait / 2;
        half + Duration::from_nanos(
            self.random.below(1 + u64::try_from(half.as_nanos()).unwrap_or(u64::MAX - 1)),
        )
    }
}

pub struct Retry<D> {
    inner: Arc<D>,
    policy: Policy,
    seeds: Mutex<Random>,
}

impl<D: Driver> Retry<D> {
    pub fn new(inner: D, policy: Policy) -> Self {
        let seeds = Mutex::new(Random::new(policy.seed));
        Self { inner: Arc::new(inner), policy, seeds }
    }

    fn attempts(&self) -> Attempts {
        let seed = self.seeds.lock().unwrap_or_else(PoisonError::into_inner).next();
        let backoff = Backoff::new(self.policy.wait_first, self.policy.wait_max, seed);
        Attempts { left: self.policy.attempts, backoff }
    }
}

struct Attempts {
    left: u32,
    backoff: Backoff,
}

impl Attempts {
    /// Waits if an attempt is left and may help. Otherwise returns the error.
    async fn after(&mut self, error: Error) -> Result<()> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || !error.retryable() {
            return Err(error);
        }
        tokio::time::sleep(self.backoff.next_wait()).await;
        Ok(())
    }
}

#[async_trait]
impl<D: Driver> Driver for Retry<D> {
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
        let mut attempts = self.attempts();
        loop {
            // Cloning is cheap compared with a put, because values are shared and keys are short.
            match self.inner.put(rows.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => attempts.after(error).await?,
            }
        }
    }

    async fn put_to_free(&self, rows: Vec<Row>) -> Result<()> {
        let mut attempts = self.attempts();
        loop {
            match self.inner.put_to_free(rows.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => attempts.after(error).await?,
            }
        }
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        let resume = Resume { driver: self.inner.clone(), scan, stream: None, attempts: self.attempts() };
        // The first row is read here, so that an error at the start is an error of the call.
        let Some((first, rest)) = resume.next().await? else { return Ok(stream::empty().boxed()) };
        let rest = stream::try_unfold(rest, Resume::next);
        Ok(stream::iter([Ok(first)]).chain(rest).boxed())
    }

    async fn read(&self, scans: Vec<Scan>) -> Result<Vec<Vec<Scanned>>> {
        let mut attempts = self.attempts();
        loop {
            match self.inner.read(scans.clone()).await {
                Ok(rows) => return Ok(rows),
                Err(error) => attempts.after(error).await?,
            }
        }
    }

    async fn read_parts(&self, scans: Vec<Scan>, parts: Parts) -> Result<Vec<Vec<Scanned<Cut>>>> {
        let mut attempts = self.attempts();
        loop {
            match self.inner.read_parts(scans.clone(), parts.clone()).await {
                Ok(rows) => return Ok(rows),
                Err(error) => attempts.after(error).await?,
            }
        }
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        self.inner.keys(table, each).await
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        self.inner.keys_of(scan, each).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        let mut attempts = self.attempts();
        loop {
            match self.inner.delete(deletes.clone()).await {
                Ok(()) => return Ok(()),
                Err(error) => attempts.after(error).await?,
            }
        }
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

struct Resume<D> {
    driver: Arc<D>,
    /// The part of the scan that was not read yet.
    scan: Scan,
    stream: Option<RowStream>,
    attempts: Attempts,
}

impl<D: Driver> Resume<D> {
    async fn next(mut self) -> Result<Option<(Scanned, Self)>> {
        loop {
            match self.step().await {
                Ok(None) => return Ok(None),
                Ok(Some(row)) => {
                    self.advance(&row);
                    return Ok(Some((row, self)));
                }
                Err(error) => {
                    self.stream = None;
                    self.attempts.after(error).await?;
                }
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Scanned>> {
        if self.scan.limit == Some(0) {
            return Ok(None);
        }
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(self.driver.scan(self.scan.clone()).await?),
        };
        stream.try_next().await
    }

    fn advance(&mut self, row: &Scanned) {
        let (Ok(Row { clustering, .. }) | Err(Damaged { clustering, .. })) = row;
        let after = Bound::Excluded(clustering.clone());
        match self.scan.order {
            Order::Ascending => self.scan.from = after,
            Order::Descending => self.scan.to = after,
        }
        self.scan.limit = self.scan.limit.map(|limit| limit - 1);
    }
}
