//! All work of a store can run on one thread, so that a simulation repeats exactly.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{ThreadId, current};
use std::time::Duration;

use tacho_model::{Batch, Labels, ManualClock, Sample, SampleSeries, TimeRange, Value};
use tacho_store::disk::{Disk, DiskFile, RealDisk, SyncPoint};
use tacho_store::threads::Threads;
use tacho_store::{MemoryDriver, Options, Origin, Store};

/// A disk that notes the threads that use it.
#[derive(Default)]
struct Watched(Mutex<BTreeSet<String>>);

impl Watched {
    fn note(&self) {
        let id: ThreadId = current().id();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(format!("{id:?}"));
    }
}

impl Disk for Watched {
    fn open(&self, path: &std::path::Path) -> std::io::Result<Box<dyn DiskFile>> {
        self.note();
        RealDisk.open(path)
    }

    fn cut(&self, path: &std::path::Path, length: u64, point: SyncPoint) -> std::io::Result<()> {
        self.note();
        RealDisk.cut(path, length, point)
    }

    fn remove(&self, path: &std::path::Path) -> std::io::Result<()> {
        self.note();
        RealDisk.remove(path)
    }

    fn sync_directory(&self, path: &std::path::Path, point: SyncPoint) -> std::io::Result<()> {
        self.note();
        RealDisk.sync_directory(path, point)
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_with_one_thread_stores_merges_and_reads_samples() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Arc::new(Watched::default());
    let options = Options {
        disk: disk.clone(),
        threads: Threads::One,
        seal_age: Duration::from_secs(60),
        draw_id: || 7,
        ..Options::default()
    };
    let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
    let store = Store::open(driver, directory.path(), options, clock).await.unwrap();
    let labels = Arc::new(Labels::new([("name", "m")]).unwrap());
    for seq in 1..=20 {
        let samples = vec![Sample { at: seq as i64, value: Value::U64(seq) }];
        let series = SampleSeries { labels: labels.clone(), samples };
        let batch = Batch { samples: vec![series], ..Batch::default() };
        store.append(batch, Some(Origin::one(1, seq))).await.unwrap();
        // The paused clock advances while this task sleeps, so generations reach `seal_age`.
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    store.flush().await.unwrap();
    store.merge_all().await.unwrap();
    assert!(store.stats().seals_by_age > 2, "{:?}", store.stats());
    assert_eq!(store.samples(labels.id(), TimeRange::ALL).await.unwrap().len(), 20);
    store.ready().unwrap();
    let threads = disk.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(threads, BTreeSet::from([format!("{:?}", current().id())]));
}
