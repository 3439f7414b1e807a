//! Ended segments (all except the growing one) are read again and compared with the manifest. This finds damage before a query
//! reads the rows.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tacho_drivers::embedded::Embedded;
use tacho_model::{Batch, Labels, ManualClock, NAME, Sample, SampleSeries, Value};
use tacho_store::driver::{Driver, Parts, Scan, Table};
use tacho_store::threads::Threads;
use tacho_store::{Options, Store};

use crate::common::{Bench, SMALL_SEGMENT_BYTES, damaged, noise, row};

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

/// The position of `part` in a file.
fn place(path: &Path, part: &[u8]) -> usize {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

/// Runs a whole round. Returns the bytes read and the keys of unreadable rows.
async fn verify(driver: &Embedded) -> (u64, Vec<u32>) {
    let (mut bytes, mut keys) = (0, Vec::new());
    loop {
        let verified = driver.verify().await.unwrap();
        bytes += verified.bytes;
        for row in verified.damaged {
            assert_eq!((row.table, row.partition.as_slice()), (Table::Chunks, &b"p"[..]));
            assert!(row.reason.starts_with("checksum mismatch (segment "), "{}", row.reason);
            keys.push(u32::from_be_bytes(row.clustering.try_into().unwrap()));
        }
        if verified.done {
            return (bytes, keys);
        }
    }
}

#[tokio::test]
async fn verification_finds_a_flipped_bit_of_an_ended_segment() {
    let bench = Bench::new();
    let driver = bench.open().await;
    for key in 0..30 {
        driver.put(vec![row(key, &noise(key, 1_000))]).await.unwrap();
    }
    driver.put(vec![row(3, b"replaced")]).await.unwrap();
    let segments = bench.segments();
    let ended: u64 = segments[..segments.len() - 1].iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(segments.len() >= 3);
    assert_eq!(verify(&driver).await, (ended, vec![]));
    assert!(driver.health().damaged.is_empty());

    // Damage of a batch head, or of a row that is no longer needed, is counted for the file, but no row is lost.
    let second = &segments[1];
    let batch_head = place(second, &noise(15, 1_000)) - 30;
    flip(second, batch_head);
    flip(&segments[0], place(&segments[0], &noise(3, 1_000)) + 77);
    assert_eq!(verify(&driver).await, (ended, vec![]));
    assert_eq!(driver.health().damaged, ["00000001.segment", "00000002.segment"]);
    flip(&segments[0], place(&segments[0], &noise(5, 1_000)) + 999);
    for _ in 0..2 {
        assert_eq!(verify(&driver).await.1, [5]);
    }
    assert_eq!(damaged(&driver).await.len(), 1);
    drop(driver);

    let driver = Embedded::open_read_only(bench.directory.path()).await.unwrap();
    assert_eq!(verify(&driver).await, (ended, vec![5]));
    assert_eq!(driver.health().damaged, ["00000001.segment", "00000002.segment"]);
}

#[tokio::test]
async fn a_row_that_was_found_to_be_damaged_is_not_read_in_parts() {
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, &noise(1, 40_000))]).await.unwrap();
    driver.put(vec![row(2, b"short")]).await.unwrap();
    let file = &bench.segments()[0];
    flip(file, place(file, &noise(1, 40_000)) + 7);
    let parts: Parts = Arc::new(|_, _| Some(vec![0..10, 30_000..30_010]));
    let read = async || {
        let scan = Scan::all(Table::Chunks, *b"p");
        driver.read_parts(vec![scan], parts.clone()).await.unwrap().remove(0).remove(0)
    };
    // The checksum covers the whole row, so it is not compared when parts are read.
    assert_eq!(read().await.unwrap().row.value.len(), 20);
    assert_eq!(verify(&driver).await.1, [1]);
    let damaged = read().await.unwrap_err();
    assert!(damaged.reason.starts_with("checksum mismatch"), "{damaged}");
    driver.put(vec![row(1, &noise(3, 40_000))]).await.unwrap();
    let parts = Bytes::from([&noise(3, 40_000)[..10], &noise(3, 40_000)[30_000..30_010]].concat());
    assert_eq!(read().await.unwrap().row.value, parts);
}

#[tokio::test(start_paused = true)]
async fn a_store_finds_damaged_rows_in_the_background() {
    let bench = Bench::new();
    let disk = Arc::new(bench.disk.clone());
    let driver =
        Embedded::open_on(bench.directory.path(), disk, SMALL_SEGMENT_BYTES, Threads::One).await.unwrap();
    let journal = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3_600);
    let options = Options {
        threads: Threads::One,
        merge_in_background: false,
        verify_first: hour,
        verify_every: hour,
        ..Options::default()
    };
    let clock = Arc::new(ManualClock::new(1_000));
    let store = Store::open(Arc::new(driver), journal.path(), options, clock).await.unwrap();
    let labels = Arc::new(Labels::new([(NAME, "m")]).unwrap());
    for round in 0..10i64 {
        let sample =
            |n: i64| Sample { at: round * 500 + n, value: Value::F64(((n * 7_919 + round) as f64).sin()) };
        let samples = vec![SampleSeries { labels: labels.clone(), samples: (0..500).map(sample).collect() }];
        store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
        store.flush().await.unwrap();
    }
    // The paused clock advances only while all tasks wait. The parts of a round take less than an hour.
    tokio::time::sleep(hour + hour / 2).await;
    assert!(store.stats().upkeep.verified_bytes > 2 * SMALL_SEGMENT_BYTES);
    assert_eq!(store.stats().chunks_unreadable, 0);
    let file = &bench.segments()[0];
    flip(file, place(file, b"TCHK") + 1_500);
    // No query has read the damaged row.
    tokio::time::sleep(hour).await;
    assert_eq!(store.stats().chunks_unreadable, 1);
    assert_eq!(store.driver_health().damaged, ["00000001.segment"]);
    let error = store.samples(labels.id(), tacho_model::TimeRange::ALL).await.unwrap_err();
    assert!(error.to_string().contains("of series m, samples between 1970-01-01T00:00:00Z and "), "{error}");
}
