//! A layer that injects faults of a network, a disk or a crash, determined by a seed.
//!
//! The seed and the order of calls determine which calls fail and how. A failing run can therefore be repeated.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::driver::{
    Capabilities, Damaged, Delete, Driver, EachClustering, EachKey, Health, Info, PinnedFile, Row, RowStream,
    Scan, Scanned, Table, Verified,
};
use crate::{Error, ErrorKind, Result};
use tacho_model::Random;

/// A number other than `seed` is the frequency of a fault: one in this many calls on average; 0 means never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    pub seed: u64,
    /// The call fails without an effect.
    pub error_before: u64,
    /// The call takes effect and then reports a failure. A scan only fails.
    pub error_after: u64,
    /// The call is performed only in part and then fails. The part is the first rows of a `put`, the first of several
    /// deletes, or the first row of a scan.
    pub torn: u64,
    /// Whether puts are never torn, so that a driver with atomic puts stays atomic.
    pub whole_puts: bool,
    /// A `put` or a delete takes effect twice.
    pub duplicate: u64,
    /// The call first waits up to `delay_max`.
    pub delay: u64,
    pub delay_max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    ErrorBefore,
    ErrorAfter,
    /// With `Torn(n)`, a `put` or a delete of `items` items performs only the first `n % items` of them. A scan returns one row.
    Torn(u64),
    Duplicate,
}

pub struct Faulty<D> {
    inner: D,
    faults: Faults,
    random: Mutex<Random>,
    capabilities: Capabilities,
    frozen: tokio::sync::watch::Sender<bool>,
    /// Calls until the driver freezes; `u64::MAX` means never.
    calls_left: AtomicU64,
    /// While set, every put, scan and delete fails with this kind of error.
    broken: Mutex<Option<ErrorKind>>,
    quiet: AtomicBool,
    damaged: Mutex<DamagedRows>,
}

type Place = (Table, Vec<u8>, Vec<u8>);

#[derive(Clone, Default)]
struct DamagedRows(Arc<BTreeMap<Place, Wound>>);

/// The damage of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wound {
    /// No byte of the value can be read.
    Lost,
    /// One bit of the value is flipped. The number, modulo the number of bits of the value, is the position of the bit.
    Flipped(usize),
    /// Like `Flipped`, but the driver does not report the damage. A back end that reads parts of a value without a checksum
    /// behaves in this way.
    Unnoticed(usize),
}

impl<D: Driver> Faulty<D> {
    pub fn new(inner: D, faults: Faults) -> Self {
        let mut capabilities = inner.capabilities().clone();
        capabilities.atomic_put &= faults.torn == 0 || faults.whole_puts;
        let random = Mutex::new(Random::new(faults.seed));
        let frozen = tokio::sync::watch::Sender::new(false);
        Self {
            inner,
            faults,
            random,
            capabilities,
            frozen,
            calls_left: AtomicU64::new(u64::MAX),
            broken: Mutex::default(),
            quiet: AtomicBool::new(false),
            damaged: Mutex::default(),
        }
    }

    /// Damages the row of this key until it is put again or deleted.
    pub fn damage(&self, (table, partition, clustering): (Table, &[u8], &[u8]), wound: Wound) {
        let place = (table, partition.to_vec(), clustering.to_vec());
        Arc::make_mut(&mut self.damaged_rows().0).insert(place, wound);
    }

    fn damaged_rows(&self) -> MutexGuard<'_, DamagedRows> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear_put_rows(&self, rows: &[Row]) {
        let mut damaged_rows = self.damaged_rows();
        if !damaged_rows.0.is_empty() {
            let damaged_rows = Arc::make_mut(&mut damaged_rows.0);
            for Row { table, partition, clustering, .. } in rows {
                damaged_rows.remove(&(*table, partition.clone(), clustering.clone()));
            }
        }
    }

    fn clear_deleted_rows(&self, deletes: &[Delete]) {
        let mut damaged_rows = self.damaged_rows();
        if !damaged_rows.0.is_empty() {
            let gone = |(table, partition, clustering): &Place| {
                deletes.iter().any(|delete| {
                    let range = (delete.from.as_ref(), delete.to.as_ref());
                    (delete.table, &delete.partition) == (*table, partition) && range.contains(&clustering)
                })
            };
            Arc::make_mut(&mut damaged_rows.0).retain(|place, _| !gone(place));
        }
    }

    /// Makes all puts, scans and deletes wait until [`Faulty::thaw`].
    pub fn freeze(&self) {
        self.frozen.send_replace(true);
    }

    pub fn thaw(&self) {
        self.calls_left.store(u64::MAX, Ordering::SeqCst);
        self.frozen.send_replace(false);
    }

    /// Lets this many more calls return. The next call and all later ones wait.
    pub fn freeze_after(&self, calls: u64) {
        self.calls_left.store(calls, Ordering::SeqCst);
    }

    pub async fn wait_frozen(&self) {
        // `self` holds the sender, so waiting cannot fail.
        let _ = self.frozen.subscribe().wait_for(|frozen| *frozen).await;
    }

    fn count_call(&self) {
        let one_less = |left: u64| if left == u64::MAX { None } else { Some(left.saturating_sub(1)) };
        if self.calls_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less) == Ok(0) {
            self.freeze();
        }
    }

    /// Makes every put, scan and delete fail with this kind of error without an effect, as with a full disk or a
    /// stopped server. `None` ends the failures.
    pub fn set_broken(&self, kind: Option<ErrorKind>) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = kind;
    }

    /// While `quiet` is true, no random faults are injected.
    pub fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }

    /// Delays the call, and returns its error or its fault.
    async fn next_fault(&self) -> Result<Fault> {
        self.count_call();
        let mut frozen = self.frozen.subscribe();
        // `self` holds the sender, so waiting cannot fail.
        let _ = frozen.wait_for(|frozen| !frozen).await;
        if let Some(kind) = *self.broken.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(Error::new(kind, "injected: driver is broken"));
        }
        if self.quiet.load(Ordering::Relaxed) {
            return Ok(Fault::None);
        }
        let (wait, fault) = self.draw();
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        if fault == Fault::ErrorBefore { Err(injected("before")) } else { Ok(fault) }
    }

    fn draw(&self) -> (Duration, Fault) {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = if random.one_in(self.faults.delay) {
            let ns = u64::try_from(self.faults.delay_max.as_nanos()).unwrap_or(u64::MAX);
            Duration::from_nanos(random.below(ns))
        } else {
            Duration::ZERO
        };
        let fault = if random.one_in(self.faults.error_before) {
            Fault::ErrorBefore
        } else if random.one_in(self.faults.error_after) {
            Fault::ErrorAfter
        } else if random.one_in(self.faults.torn) {
            Fault::Torn(random.next())
        } else if random.one_in(self.faults.duplicate) {
            Fault::Duplicate
        } else {
            Fault::None
        };
        (wait, fault)
    }
}

impl DamagedRows {
    fn apply_damage(&self, row: Row) -> Scanned {
        let Row { table, partition, clustering, value } = row;
        let place = (table, partition, clustering);
        let wound = self.0.get(&place).copied();
        let (table, partition, clustering) = place;
        let value = match wound {
            None => return Ok(Row { table, partition, clustering, value }),
            Some(Wound::Flipped(bit) | Wound::Unnoticed(bit)) if !value.is_empty() => {
                let mut bytes = value.to_vec();
                let bit = bit % (bytes.len() * 8);
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
                bytes.into()
            }
            Some(_) => Bytes::new(),
        };
        if let Some(Wound::Unnoticed(_)) = wound {
            return Ok(Row { table, partition, clustering, value });
        }
        Err(Damaged { table, partition, clustering, value, reason: "injected damage".into() })
    }
}

fn injected(moment: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("injected: failed {moment} the effect"))
}

/// `keep` modulo the number of items, so that at least one item is lost.
fn part(keep: u64, items: usize) -> usize {
    usize::try_from(keep % (items.max(1) as u64)).unwrap_or(0)
}

#[async_trait]
impl<D: Driver> Driver for Faulty<D> {
    fn info(&self) -> Info {
        self.inner.info()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn health(&self) -> Health {
        self.inner.health()
    }

    async fn put(&self, mut rows: Vec<Row>) -> Result<()> {
        let fault = self.next_fault().await?;
        self.clear_put_rows(&rows);
        match fault {
            Fault::ErrorAfter => {
                self.inner.put(rows).await?;
                Err(injected("after"))
            }
            Fault::Torn(_) if self.faults.whole_puts => Err(injected("before")),
            Fault::Torn(keep) => {
                rows.truncate(part(keep, rows.len()));
                self.inner.put(rows).await?;
                Err(injected("in the middle of"))
            }
            Fault::Duplicate => {
                self.inner.put(rows.clone()).await?;
                self.inner.put(rows).await
            }
            Fault::None | Fault::ErrorBefore => self.inner.put(rows).await,
        }
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        let rows = match self.next_fault().await? {
            Fault::ErrorAfter => return Err(injected("after")),
            Fault::Torn(_) => {
                let first = self.inner.scan(scan).await?.take(1);
                first.chain(stream::iter([Err(injected("in the middle of"))])).boxed()
            }
            _ => self.inner.scan(scan).await?,
        };
        let damaged_rows = self.damaged_rows().clone();
        if damaged_rows.0.is_empty() {
            return Ok(rows);
        }
        Ok(rows.map_ok(move |row| row.and_then(|row| damaged_rows.apply_damage(row))).boxed())
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        self.inner.keys(table, each).await
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        self.inner.keys_of(scan, each).await
    }

    async fn delete(&self, mut deletes: Vec<Delete>) -> Result<()> {
        let fault = self.next_fault().await?;
        self.clear_deleted_rows(&deletes);
        match fault {
            Fault::ErrorAfter => {
                self.inner.delete(deletes).await?;
                Err(injected("after"))
            }
            Fault::Torn(keep) => {
                deletes.truncate(part(keep, deletes.len()));
                self.inner.delete(deletes).await?;
                Err(injected("in the middle of"))
            }
            Fault::Duplicate => {
                self.inner.delete(deletes.clone()).await?;
                self.inner.delete(deletes).await
            }
            Fault::None | Fault::ErrorBefore => self.inner.delete(deletes).await,
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
