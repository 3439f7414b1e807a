//! The back end that ADR 0001 rejected: fjall, an LSM tree. It is kept so that the comparison can be repeated.
//!
//! Calls of fjall block when its buffers are full, so each call runs on a blocking thread.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tacho_store::driver::{Capabilities, Delete, Driver, Info, Order, Row, RowStream, Scan, Table};
use tacho_store::{Error, ErrorKind, Result};

/// Rows that a scan holds in memory at a time.
const PAGE_ROWS: usize = 256;

struct Inner {
    path: PathBuf,
    database: Database,
    tables: [Keyspace; 3],
    capabilities: Capabilities,
}

pub struct Fjall(Arc<Inner>);

impl Fjall {
    pub async fn open(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        let inner = blocking(move || Inner::open(path)).await?;
        Ok(Self(Arc::new(inner)))
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            Err(Error::new(ErrorKind::Closed, "driver's task was cancelled or panicked").caused_by(error))
        }
    }
}

fn failed(error: fjall::Error) -> Error {
    let kind = match &error {
        fjall::Error::Locked => ErrorKind::Locked,
        fjall::Error::InvalidVersion(_) => ErrorKind::Version,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, "fjall failed").caused_by(error)
}

/// `u16 length, partition, clustering`. The rows of a partition are adjacent and ordered by clustering.
#[expect(clippy::cast_possible_truncation, reason = "the partitions of a store have few bytes")]
fn key(partition: &[u8], clustering: &[u8]) -> Vec<u8> {
    debug_assert!(partition.len() <= usize::from(u16::MAX));
    let mut key = Vec::with_capacity(2 + partition.len() + clustering.len());
    key.extend_from_slice(&(partition.len() as u16).to_be_bytes());
    key.extend_from_slice(partition);
    key.extend_from_slice(clustering);
    key
}

fn bounds(partition: &[u8], from: &Bound<Vec<u8>>, to: &Bound<Vec<u8>>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let from = match from {
        Bound::Included(from) => Bound::Included(key(partition, from)),
        Bound::Excluded(from) => Bound::Excluded(key(partition, from)),
        Bound::Unbounded => Bound::Included(key(partition, &[])),
    };
    let to = match to {
        Bound::Included(to) => Bound::Included(key(partition, to)),
        Bound::Excluded(to) => Bound::Excluded(key(partition, to)),
        Bound::Unbounded => after(key(partition, &[])).map_or(Bound::Unbounded, Bound::Excluded),
    };
    (from, to)
}

/// The first key after all keys with the prefix `prefix`; `None` if there is none.
fn after(mut prefix: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = prefix.pop() {
        if last < u8::MAX {
            prefix.push(last + 1);
            return Some(prefix);
        }
    }
    None
}

impl Inner {
    fn open(path: PathBuf) -> Result<Self> {
        let database = Database::builder(&path).open().map_err(failed)?;
        let table =
            |table: Table| database.keyspace(table.name(), KeyspaceCreateOptions::default).map_err(failed);
        let tables = [table(Table::Chunks)?, table(Table::Series)?, table(Table::Meta)?];
        let capabilities = Capabilities {
            durable: true,
            atomic_put: true,
            reverse: true,
            value_bytes_max: 64 << 20,
            put_rows_hint: 1_000,
        };
        Ok(Self { path, database, tables, capabilities })
    }

    fn table(&self, table: Table) -> &Keyspace {
        let [chunks, series, meta] = &self.tables;
        match table {
            Table::Chunks => chunks,
            Table::Series => series,
            Table::Meta => meta,
        }
    }

    fn put(&self, rows: Vec<Row>) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for row in rows {
            batch.insert(self.table(row.table), key(&row.partition, &row.clustering), &*row.value);
        }
        batch.commit().map_err(failed)
    }

    fn delete(&self, deletes: &[Delete]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for delete in deletes.iter().filter(|d| !d.is_empty()) {
            let table = self.table(delete.table);
            for guard in table.range(bounds(&delete.partition, &delete.from, &delete.to)) {
                batch.remove(table, guard.key().map_err(failed)?);
            }
        }
        batch.commit().map_err(failed)
    }

    fn page(&self, scan: &Scan) -> Result<Vec<Row>> {
        if scan.is_empty() {
            return Ok(Vec::new());
        }
        let range = self.table(scan.table).range(bounds(&scan.partition, &scan.from, &scan.to));
        let count = scan.limit.unwrap_or(usize::MAX).min(PAGE_ROWS);
        let row = |guard: fjall::Guard| {
            let (key, value) = guard.into_inner().map_err(failed)?;
            Ok(Row {
                table: scan.table,
                partition: scan.partition.clone(),
                clustering: key.get(2 + scan.partition.len()..).unwrap_or_default().to_vec(),
                value: Bytes::copy_from_slice(&value),
            })
        };
        match scan.order {
            Order::Ascending => range.take(count).map(row).collect(),
            Order::Descending => range.rev().take(count).map(row).collect(),
        }
    }
}

#[async_trait]
impl Driver for Fjall {
    fn info(&self) -> Info {
        Info { name: "fjall", version: "3".into(), location: self.0.path.display().to_string() }
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        let inner = self.0.clone();
        blocking(move || inner.put(rows)).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        let pages = stream::try_unfold(Some((self.0.clone(), scan)), |state| async {
            let Some((inner, mut scan)) = state else { return Ok(None) };
            let (inner, page) = {
                let scan = scan.clone();
                blocking(move || inner.page(&scan).map(|page| (inner, page))).await?
            };
            let Some(last) = page.last() else { return Ok(None) };
            let after = Bound::Excluded(last.clustering.clone());
            match scan.order {
                Order::Ascending => scan.from = after,
                Order::Descending => scan.to = after,
            }
            scan.limit = scan.limit.map(|limit| limit - page.len());
            let next = (page.len() == PAGE_ROWS).then_some((inner, scan));
            Ok::<_, Error>(Some((stream::iter(page.into_iter().map(|row| Ok(Ok(row)))), next)))
        });
        Ok(pages.try_flatten().boxed())
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        let inner = self.0.clone();
        blocking(move || inner.delete(&deletes)).await
    }
}
