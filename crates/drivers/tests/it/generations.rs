//! The store on the embedded driver. One flipped bit near the end of the growing segment must not hide a generation, and
//! no generation number may be reused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_drivers::embedded::Embedded;
use tacho_model::{Batch, Kind, Labels, ManualClock, NAME, Sample, SampleSeries, TimeRange, Value};
use tacho_store::{ErrorKind, Options, Result, Store};

async fn open(directory: &Path) -> Result<Arc<Store>> {
    let driver = loop {
        match Embedded::open(&directory.join("segments")).await {
            // A task of the previous store may hold the lock a little longer.
            Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
            driver => break Arc::new(driver?),
        }
    };
    let clock = Arc::new(ManualClock::new(1_000));
    Store::open(driver, &directory.join("journal"), Options::default(), clock).await
}

fn labels() -> Arc<Labels> {
    Arc::new(Labels::new([(NAME, "m")]).unwrap())
}

/// Stores a generation with one sample.
async fn keep(store: &Store, at: i64) {
    let samples = vec![Sample { at, value: Value::I64(at) }];
    let batch = Batch { samples: vec![SampleSeries { labels: labels(), samples }], ..Batch::default() };
    store.append(batch, None).await.unwrap();
    store.flush().await.unwrap();
}

async fn times(store: &Store) -> Vec<i64> {
    store.samples(labels().id(), TimeRange::ALL).await.unwrap().into_iter().map(|sample| sample.at).collect()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            std::fs::copy(&entry, target).unwrap();
        }
    }
}

fn last_segment(directory: &Path) -> PathBuf {
    let files = std::fs::read_dir(directory.join("segments")).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|e| e == "segment")).max().unwrap()
}

#[tokio::test]
async fn a_flipped_bit_at_the_end_of_the_growing_segment_loses_no_generation() {
    let place = tempfile::tempdir().unwrap();
    let store = open(place.path()).await.unwrap();
    keep(&store, 1).await;
    keep(&store, 2).await;
    drop(store);
    let bytes = std::fs::metadata(last_segment(place.path())).unwrap().len() as usize;
    for back in (1..200).step_by(9) {
        let damaged = tempfile::tempdir().unwrap();
        copy(place.path(), damaged.path());
        let segment = last_segment(damaged.path());
        let mut file = std::fs::read(&segment).unwrap();
        file[bytes - back] ^= 4;
        std::fs::write(&segment, file).unwrap();

        let store =
            open(damaged.path()).await.unwrap_or_else(|error| panic!("{back} bytes before the end: {error}"));
        assert_eq!(times(&store).await, [1, 2], "{back} bytes before the end");
        keep(&store, 3).await;
        drop(store);
        let store = open(damaged.path()).await.unwrap();
        assert_eq!(times(&store).await, [1, 2, 3], "{back} bytes before the end");
        let chunks = store.chunks(Kind::Sample, labels().id()).await.unwrap();
        let mut generations: Vec<u64> = chunks.iter().map(|chunk| chunk.generation).collect();
        generations.dedup();
        assert_eq!(
            generations.len(),
            3,
            "{back} bytes before the end: a number was used twice: {generations:?}"
        );
    }
}
