//! The memory driver: an ordered map without configuration, for tests and trials.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;

use crate::driver::{
    Capabilities, Delete, Driver, EachClustering, EachKey, Info, Order, Row, RowStream, Scan, Table,
};
use crate::{Error, Result};

type Partition = BTreeMap<Vec<u8>, Bytes>;

/// Keeps rows until it is dropped.
#[derive(Debug)]
pub struct MemoryDriver {
    capabilities: Capabilities,
    partitions: Mutex<BTreeMap<(Table, Vec<u8>), Partition>>,
}

impl Default for MemoryDriver {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDriver {
    /// Limit on a value, bytes. Only a defective caller exceeds it.
    pub const VALUE_BYTES_MAX: usize = 64 << 20;

    pub fn new() -> Self {
        let capabilities = Capabilities {
            durable: false,
            atomic_put: true,
            reverse: true,
            value_bytes_max: Self::VALUE_BYTES_MAX,
            put_rows_hint: 1_000,
        };
        Self { capabilities, partitions: Mutex::default() }
    }

    /// All rows in order. Tests compare them, and [`MemoryDriver::restore`] accepts them.
    pub fn dump(&self) -> Vec<Row> {
        let row = |table: Table, partition: &[u8], (clustering, value): (&Vec<u8>, &Bytes)| Row {
            table,
            partition: partition.to_vec(),
            clustering: clustering.clone(),
            value: value.clone(),
        };
        let partitions = self.lock();
        partitions.iter().flat_map(|((t, p), rows)| rows.iter().map(move |r| row(*t, p, r))).collect()
    }

    pub fn restore(rows: Vec<Row>) -> Self {
        let driver = Self::new();
        insert(&mut driver.lock(), rows);
        driver
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(Table, Vec<u8>), Partition>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn insert(partitions: &mut BTreeMap<(Table, Vec<u8>), Partition>, rows: Vec<Row>) {
    for row in rows {
        partitions.entry((row.table, row.partition)).or_default().insert(row.clustering, row.value);
    }
}

#[async_trait]
impl Driver for MemoryDriver {
    fn info(&self) -> Info {
        Info { name: "memory", version: "1".into(), location: "this process".into() }
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        if let Some(row) = rows.iter().find(|r| r.value.len() > Self::VALUE_BYTES_MAX) {
            let bytes = row.value.len();
            return Err(Error::invalid(format!("value of {bytes} bytes is over {}", Self::VALUE_BYTES_MAX)));
        }
        insert(&mut self.lock(), rows);
        Ok(())
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        if scan.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let (table, partition) = (scan.table, scan.partition);
        let limit = scan.limit.unwrap_or(usize::MAX);
        let found: Vec<Row> = match self.lock().get(&(table, partition.clone())) {
            None => Vec::new(),
            Some(rows) => {
                let range = rows.range((scan.from, scan.to));
                let row = |(clustering, value): (&Vec<u8>, &Bytes)| Row {
                    table,
                    partition: partition.clone(),
                    clustering: clustering.clone(),
                    value: value.clone(),
                };
                match scan.order {
                    Order::Ascending => range.take(limit).map(row).collect(),
                    Order::Descending => range.rev().take(limit).map(row).collect(),
                }
            }
        };
        Ok(stream::iter(found.into_iter().map(|row| Ok(Ok(row)))).boxed())
    }

    async fn keys(&self, table: Table, each: EachKey<'_>) -> Result<bool> {
        for ((of, partition), rows) in self.lock().iter() {
            if *of == table {
                rows.keys().for_each(|clustering| each(partition, clustering));
            }
        }
        Ok(true)
    }

    async fn keys_of(&self, scan: &Scan, each: EachClustering<'_>) -> Result<bool> {
        let partitions = self.lock();
        let rows = partitions.get(&(scan.table, scan.partition.clone())).filter(|_| !scan.is_empty());
        let bounds = (scan.from.as_ref().map(Vec::as_slice), scan.to.as_ref().map(Vec::as_slice));
        rows.into_iter().flat_map(|rows| rows.range::<[u8], _>(bounds)).for_each(|(key, _)| each(key));
        Ok(true)
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        let mut partitions = self.lock();
        for delete in deletes.into_iter().filter(|d| !d.is_empty()) {
            let Delete { table, partition, from, to } = delete;
            let key = (table, partition);
            let Some(rows) = partitions.get_mut(&key) else { continue };
            let doomed: Vec<Vec<u8>> = rows.range((from, to)).map(|(k, _)| k.clone()).collect();
            for clustering in doomed {
                rows.remove(&clustering);
            }
            if rows.is_empty() {
                partitions.remove(&key);
            }
        }
        Ok(())
    }
}
