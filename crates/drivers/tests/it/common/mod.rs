//! A directory of the embedded driver with small segments, on a disk with injected faults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_drivers::embedded::Embedded;
use tacho_model::Random;
use tacho_store::Result;
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::{Damaged, Driver, Row, Scan, Scanned, Table};

/// Size of segments, bytes. Small, so that a test has many segments.
pub const SMALL_SEGMENT_BYTES: u64 = 10_000;

pub struct Bench {
    pub directory: tempfile::TempDir,
    pub disk: FaultyDisk,
}

impl Bench {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), disk: FaultyDisk::default() }
    }

    /// A bench for tests that often open a directory. The directory is in a file system in memory if there is one, and the real
    /// disk is not synced. Simulated power failures work as usual.
    pub fn quick() -> Self {
        let bench = match tempfile::tempdir_in("/dev/shm") {
            Ok(directory) => Self { directory, disk: FaultyDisk::default() },
            Err(_) => Self::new(),
        };
        bench.disk.set_sync_skipped(true);
        bench
    }

    pub async fn try_open(&self) -> Result<Embedded> {
        Embedded::open_with(self.directory.path(), Arc::new(self.disk.clone()), SMALL_SEGMENT_BYTES).await
    }

    pub async fn open(&self) -> Embedded {
        self.try_open().await.unwrap()
    }

    /// Opens the driver and puts a row, on a disk that stops after a number of operations. Returns whether both succeeded. If one
    /// failed, simulates a power failure, after which the disk works again.
    pub async fn starts_within(&self, operations: u64) -> bool {
        self.disk.set_operations(operations);
        // A start may succeed on a stopped disk, for example if only the manifest was not written. Then the put fails.
        let put = match self.try_open().await {
            Ok(driver) => driver.put(vec![row(50, b"after")]).await,
            Err(error) => Err(error),
        };
        if put.is_err() {
            self.disk.set_operations(u64::MAX);
            self.disk.lose_unsynced().unwrap();
        }
        put.is_ok()
    }

    pub fn segments(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|f| f.unwrap().path());
        let mut files: Vec<_> = files.filter(|f| f.extension().is_some_and(|e| e == "segment")).collect();
        files.sort();
        files
    }

    pub fn snapshot(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = std::fs::read_dir(self.directory.path()).unwrap().map(|f| f.unwrap().path());
        files
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
            .collect()
    }

    /// Replaces the content of the directory with the files of a snapshot.
    pub fn restore(&self, files: &BTreeMap<PathBuf, Vec<u8>>) {
        std::fs::remove_dir_all(self.directory.path()).unwrap();
        std::fs::create_dir(self.directory.path()).unwrap();
        files.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    }

    /// Removes `END`. A power failure may do this, because the name of the file is not synced. Then only the mark after the last
    /// batch shows that the batch was acknowledged.
    pub fn forget_end(&self) {
        std::fs::remove_file(self.directory.path().join("END")).unwrap();
    }

    pub fn bytes(&self) -> u64 {
        self.segments().iter().map(|f| f.metadata().unwrap().len()).sum()
    }
}

pub fn row(key: u32, value: &[u8]) -> Row {
    Row {
        table: Table::Chunks,
        partition: b"p".to_vec(),
        clustering: key.to_be_bytes().to_vec(),
        value: Bytes::copy_from_slice(value),
    }
}

pub fn noise(seed: u32, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(seed.into());
    (0..bytes).map(|_| random.next() as u8).collect()
}

pub async fn keys(driver: &Embedded) -> Vec<u32> {
    rows(driver).await.into_iter().map(|(key, _)| key).collect()
}

async fn found(driver: &Embedded) -> Vec<Scanned> {
    driver.scan(Scan::all(Table::Chunks, *b"p")).await.unwrap().try_collect().await.unwrap()
}

/// Keys of unreadable rows, and the reasons.
pub async fn damaged(driver: &Embedded) -> Vec<(u32, String)> {
    let damaged = found(driver).await.into_iter().filter_map(Result::err);
    let key = |row: &Damaged| u32::from_be_bytes(row.clustering.as_slice().try_into().unwrap());
    damaged.map(|row| (key(&row), row.reason.to_string())).collect()
}

pub async fn rows(driver: &Embedded) -> Vec<(u32, Bytes)> {
    let found = found(driver).await.into_iter().flatten();
    found.map(|r| (u32::from_be_bytes(r.clustering.try_into().unwrap()), r.value)).collect()
}
