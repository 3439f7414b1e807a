//! If the acknowledged end of the growing segment was cut off, each start reports the missing bytes. This is also true if a
//! crash stopped the first start, or if an operator permitted the loss. If a crash left a torn end, no bytes are reported as
//! missing. The tests use each state in which a power failure can leave the file `END`, which states how many bytes of the
//! growing segment were synced.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_drivers::embedded::Embedded;
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::{Driver, Health};

use crate::common::{Bench, keys, noise, row};

const MARK_BYTES: usize = 16;
const HEADER_BYTES: usize = 24;
const RECORD_BYTES: usize = 20;
const SEGMENT: &str = "00000001.segment";
/// Limit on the operations of a start and a put.
const OPERATIONS_MAX: u64 = 200;

/// The files of a directory with three batches in one segment. Also the lengths of the segment file after its creation and after
/// each batch, including the mark that the driver writes after it (a batch without rows).
async fn three_batches(bench: &Bench) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<usize>) {
    let driver = bench.open().await;
    let mut ends = vec![HEADER_BYTES + MARK_BYTES];
    for key in 1..=3 {
        driver.put(vec![row(key, &noise(key, 20)), row(10 + key, &noise(key, 30))]).await.unwrap();
        ends.push(bench.bytes() as usize);
    }
    drop(driver);
    let mut files = bench.snapshot();
    files.retain(|path, _| !path.ends_with("LOCK") && !path.ends_with("RESERVE"));
    (files, ends)
}

fn cut(bench: &Bench, files: &BTreeMap<PathBuf, Vec<u8>>, length: usize) {
    bench.restore(files);
    let file = std::fs::File::options().write(true).open(&bench.segments()[0]).unwrap();
    file.set_len(length as u64).unwrap();
}

fn notes(bench: &Bench) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(bench.directory.path().join("quarantine")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn end_of(directory: &Path) -> Vec<u8> {
    std::fs::read(directory.join("END")).unwrap()
}

/// Expects that the health reports the missing bytes.
fn check_reported(health: &Health, missing: usize, note: &str, place: &str) {
    assert_eq!(health.damaged, [SEGMENT], "{place}");
    assert_eq!(health.places_in, [SEGMENT], "{place}");
    assert_eq!(health.set_aside, [note], "{place}");
    assert!(health.damaged_places > 0 && health.damaged_bytes >= missing as u64, "{place}: {health:?}");
    assert_eq!((health.torn_bytes, health.torn_ends.len()), (0, 0), "{place}");
}

#[tokio::test]
async fn an_end_cut_off_at_any_byte_is_reported_by_each_start() {
    let bench = Bench::quick();
    let (files, ends) = three_batches(&bench).await;
    let acknowledged = ends[3] - MARK_BYTES;
    for length in ends[0]..ends[3] {
        cut(&bench, &files, length);
        let missing = acknowledged.saturating_sub(length);
        let place = format!("{length} of {acknowledged} bytes");
        let note = format!("00000001.missing-{length}-{missing}");
        let batches = ends.iter().filter(|end| **end <= length + MARK_BYTES).count() as u32 - 1;
        let whole: Vec<u32> = (1..=batches).chain((1..=batches).map(|key| 10 + key)).collect();
        let check = |found: &[u32], health: &Health, start: &str| {
            assert!(whole.iter().all(|key| found.contains(key)), "{place}, {start}: {found:?}");
            if missing == 0 {
                assert_eq!((&health.damaged[..], &health.set_aside[..]), (&[][..], &[][..]), "{place}");
            } else {
                check_reported(health, missing, &note, &format!("{place}, {start}"));
            }
        };
        if missing > 0 {
            let driver = Embedded::open_read_only(bench.directory.path()).await.unwrap();
            assert!(driver.health().damaged_bytes >= missing as u64, "{place}");
        }
        for start in ["first start", "second start"] {
            let driver = bench.open().await;
            check(&keys(&driver).await, &driver.health(), start);
            driver.put(vec![row(50, b"after")]).await.unwrap();
        }
        let driver = Embedded::open_read_only(bench.directory.path()).await.unwrap();
        check(&keys(&driver).await, &driver.health(), "read-only start");
        drop(driver);
        if missing > 0 {
            let left = std::fs::read(bench.directory.path().join(SEGMENT)).unwrap();
            assert!(left == files[&bench.segments()[0]][..length], "{place}: the file changed");
            let path = bench.directory.path().join("quarantine").join(&note);
            let text = std::fs::read_to_string(&path).unwrap();
            let expect = format!("tachograph missing 1\nsegment 1\noffset {length}\nbytes {missing}\n");
            assert_eq!(text, expect);
            // An operator removes the note. The driver then reports only an incomplete batch at the end of the file, if any.
            std::fs::remove_file(path).unwrap();
            let health = bench.open().await.health();
            assert_eq!(health.set_aside, [] as [&str; 0], "{place}");
            assert!(health.damaged_bytes < (ends[1] - ends[0]) as u64, "{place}: {health:?}");
        }
    }
}

#[tokio::test]
async fn a_start_that_finds_a_missing_end_may_stop_at_each_operation() {
    let mut bench = Bench::quick();
    let (files, ends) = three_batches(&bench).await;
    for length in [ends[2], ends[3] - MARK_BYTES - 10] {
        let mut stop = 0;
        loop {
            bench.disk = FaultyDisk::default();
            bench.disk.set_sync_skipped(true);
            cut(&bench, &files, length);
            if bench.starts_within(stop).await {
                break;
            }
            for start in ["first", "second"] {
                let place = format!("{start} start after a stop at operation {stop}");
                let driver = bench.try_open().await.unwrap_or_else(|error| panic!("{place}: {error}"));
                let missing = ends[3] - MARK_BYTES - length;
                let note = format!("00000001.missing-{length}-{missing}");
                check_reported(&driver.health(), missing, &note, &place);
                assert!(keys(&driver).await.starts_with(&[1, 2]), "{place}");
            }
            stop += 1;
            assert!(stop < OPERATIONS_MAX, "the start never ends");
        }
        assert_eq!(notes(&bench).len(), 1);
    }
}

/// The driver appends each new length to `END` without a sync: a power failure may leave an earlier state of this file,
/// garbage, or no file.
#[tokio::test]
async fn a_torn_end_is_not_reported_as_missing() {
    let bench = Bench::quick();
    let driver = bench.open().await;
    driver.put(vec![row(1, &noise(1, 50))]).await.unwrap();
    driver.put(vec![row(2, &noise(2, 50))]).await.unwrap();
    let old = end_of(bench.directory.path());
    driver.put(vec![row(3, &noise(3, 50))]).await.unwrap();
    drop(driver);
    let files = bench.snapshot();
    let length = bench.bytes() as usize - MARK_BYTES - 40;
    let whole = end_of(bench.directory.path());
    assert!(whole.starts_with(&old) && whole.len() == old.len() + RECORD_BYTES);
    let garbage: Vec<u8> = old.iter().copied().chain(noise(9, RECORD_BYTES)).collect();
    let half = whole[..whole.len() - RECORD_BYTES / 2].to_vec();
    let empty = Vec::new();
    for end in [None, Some(&old), Some(&garbage), Some(&half), Some(&empty)] {
        cut(&bench, &files, length);
        let path = bench.directory.path().join("END");
        match end {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        for _ in 0..2 {
            let driver = bench.open().await;
            assert_eq!(keys(&driver).await, [1, 2], "{end:?}");
            let health = driver.health();
            assert_eq!((health.damaged.len(), health.set_aside.len()), (0, 0), "{end:?}: {health:?}");
        }
        let driver = bench.open().await;
        driver.put(vec![row(4, &noise(4, 50))]).await.unwrap();
        drop(driver);
        assert_eq!(keys(&bench.open().await).await, [1, 2, 4], "{end:?}");
    }
}

/// A loss that an operator permits, and what a start must keep and note.
struct Permitted {
    name: &'static str,
    /// Length of the segment file; `None` if the file is missing.
    length: fn(ends: &[usize]) -> Option<usize>,
    /// Whether no copy of the manifest exists.
    is_without_manifest: bool,
    /// Keys of the rows that the start must keep.
    keys: &'static [u32],
}

const PERMITTED: [Permitted; 7] = [
    Permitted {
        name: "a batch is missing",
        length: |ends| Some(ends[2]),
        is_without_manifest: false,
        keys: &[1, 2, 11, 12],
    },
    Permitted {
        name: "the last row of a batch is incomplete",
        length: |ends| Some(ends[3] - MARK_BYTES - 1),
        is_without_manifest: false,
        keys: &[1, 2, 3, 11, 12],
    },
    Permitted {
        name: "the last row of a batch is incomplete, and there is no manifest",
        length: |ends| Some(ends[3] - MARK_BYTES - 1),
        is_without_manifest: true,
        keys: &[1, 2, 3, 11, 12],
    },
    Permitted {
        name: "a part of the header",
        length: |_| Some(HEADER_BYTES - 4),
        is_without_manifest: false,
        keys: &[],
    },
    Permitted { name: "no byte", length: |_| Some(0), is_without_manifest: true, keys: &[] },
    Permitted { name: "no file", length: |_| None, is_without_manifest: false, keys: &[] },
    Permitted { name: "neither file nor manifest", length: |_| None, is_without_manifest: true, keys: &[] },
];

impl Permitted {
    /// Restores the files with this loss and the permission.
    fn prepare(&self, bench: &Bench, files: &BTreeMap<PathBuf, Vec<u8>>, ends: &[usize]) {
        bench.restore(files);
        match (self.length)(ends) {
            Some(length) => cut(bench, files, length),
            None => std::fs::remove_file(&bench.segments()[0]).unwrap(),
        }
        if self.is_without_manifest {
            for name in ["MANIFEST", "MANIFEST.backup"] {
                std::fs::remove_file(bench.directory.path().join(name)).unwrap();
            }
        }
        std::fs::write(bench.directory.path().join("MANIFEST.lost"), "").unwrap();
    }

    /// Expects that a driver has the rows that are left, and reports the missing bytes.
    async fn check(&self, driver: &Embedded, ends: &[usize], place: &str) {
        let found: Vec<u32> = keys(driver).await.into_iter().filter(|key| *key != 50).collect();
        assert_eq!(found, self.keys, "{}, {place}", self.name);
        let length = (self.length)(ends).unwrap_or(0);
        let note = format!("00000001.missing-{length}-{}", ends[3] - MARK_BYTES - length);
        let health = driver.health();
        assert!(health.set_aside.contains(&note), "{}, {place}: {health:?}", self.name);
    }
}

#[tokio::test]
async fn a_start_that_an_operator_permits_keeps_all_intact_rows_and_notes_the_loss() {
    for case in &PERMITTED {
        let bench = Bench::quick();
        let (files, ends) = three_batches(&bench).await;
        case.prepare(&bench, &files, &ends);
        let left = std::fs::read(bench.directory.path().join(SEGMENT)).ok();
        for start in 0..3 {
            let driver = bench.open().await;
            case.check(&driver, &ends, &format!("start {start}")).await;
            driver.put(vec![row(50, b"after")]).await.unwrap();
        }
        let driver = Embedded::open_read_only(bench.directory.path()).await.unwrap();
        case.check(&driver, &ends, "read-only start").await;
        assert!(!bench.directory.path().join("MANIFEST.lost").exists(), "{}", case.name);
        let found = [SEGMENT, "quarantine/00000001.segment"].map(|name| bench.directory.path().join(name));
        let found = found.iter().find_map(|path| std::fs::read(path).ok());
        assert!(found == left, "{}: the file changed", case.name);
    }
}

#[tokio::test]
async fn a_start_that_an_operator_permits_may_stop_at_each_operation() {
    for case in &PERMITTED {
        let mut bench = Bench::quick();
        let (files, ends) = three_batches(&bench).await;
        let mut stop = 0;
        loop {
            bench.disk = FaultyDisk::default();
            bench.disk.set_sync_skipped(true);
            case.prepare(&bench, &files, &ends);
            if bench.starts_within(stop).await {
                break;
            }
            let place = format!("stop at operation {stop}");
            let driver = bench.try_open().await.unwrap_or_else(|e| panic!("{}, {place}: {e}", case.name));
            case.check(&driver, &ends, &place).await;
            stop += 1;
            assert!(stop < OPERATIONS_MAX, "the start never ends");
        }
    }
}

/// A sealed segment is shorter than the manifest states. The index, which has its number of rows, is in the missing part, so the
/// rows that are left are found one by one.
#[tokio::test]
async fn a_short_ended_segment_keeps_its_rows_and_is_noted() {
    let bench = Bench::quick();
    let driver = bench.open().await;
    for key in 0..30 {
        driver.put(vec![row(key, &noise(key, 1_000))]).await.unwrap();
    }
    drop(driver);
    let path = bench.directory.path().join(SEGMENT);
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
    let error = bench.try_open().await.err().expect("opens with a short segment").to_string();
    assert!(error.contains(&format!("{SEGMENT} has {} of {length} bytes", length / 2)), "{error}");
    std::fs::write(bench.directory.path().join("MANIFEST.lost"), "").unwrap();
    for start in 0..3 {
        let driver = bench.open().await;
        let found = keys(&driver).await;
        assert!(found.starts_with(&[0, 1, 2, 3]) && found.ends_with(&[28, 29]), "start {start}: {found:?}");
        let note = format!("00000001.missing-{}-{}", length / 2, length - length / 2);
        assert_eq!(driver.health().set_aside, [note], "start {start}");
        assert_eq!(driver.health().damaged, [SEGMENT], "start {start}");
    }
}

#[tokio::test]
async fn a_failed_write_of_an_end_record_does_not_affect_rows() {
    let bench = Bench::quick();
    let driver = bench.open().await;
    driver.put(vec![row(1, b"one")]).await.unwrap();
    let before = bench.bytes();
    driver.put(vec![row(2, b"two")]).await.unwrap();
    let batch = bench.bytes() - before;
    let records = end_of(bench.directory.path()).len();
    // There is space for the batch with its mark, and for half of the record of `END`.
    bench.disk.set_space(batch + RECORD_BYTES as u64 / 2);
    driver.put(vec![row(3, b"six")]).await.unwrap();
    assert_eq!(end_of(bench.directory.path()).len(), records + RECORD_BYTES / 2);
    bench.disk.set_space(u64::MAX);
    driver.put(vec![row(4, b"ten")]).await.unwrap();
    assert_eq!(
        end_of(bench.directory.path()).len(),
        RECORD_BYTES,
        "END must be written again from its beginning"
    );
    let length = bench.bytes();
    drop(driver);
    let file = std::fs::File::options().write(true).open(&bench.segments()[0]).unwrap();
    file.set_len(length - 20).unwrap();
    let health = bench.open().await.health();
    assert_eq!(health.set_aside, [format!("00000001.missing-{}-4", length - 20)]);
}

#[tokio::test]
async fn the_file_with_the_end_is_bounded() {
    const BYTES_MAX: usize = 64 << 10;
    let bench = Bench::quick();
    let disk = Arc::new(bench.disk.clone());
    let driver = Embedded::open_with(bench.directory.path(), disk, 256 << 20).await.unwrap();
    let (mut longest, mut before) = (0, 0);
    for key in 0..2 * BYTES_MAX / RECORD_BYTES {
        driver.put(vec![row(key as u32 % 100, b"x")]).await.unwrap();
        let length = std::fs::metadata(bench.directory.path().join("END")).unwrap().len() as usize;
        assert!(length == before + RECORD_BYTES || length == RECORD_BYTES, "{length} after {before}");
        longest = longest.max(length);
        before = length;
    }
    assert_eq!(longest, BYTES_MAX / RECORD_BYTES * RECORD_BYTES);
}
