//! Tests a small directory in three ways:
//! - Flips one bit in each byte of the segments and manifests. Only the row with this byte may be lost. No file may be deleted.
//!   Damage that the start reads must be reported.
//! - Ends the process at each operation. No acknowledged row may be lost.
//! - Copies the directory while it changes. The copy must be complete or refused.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tacho_drivers::embedded::Embedded;
use tacho_store::ErrorKind;
use tacho_store::disk::FaultyDisk;
use tacho_store::driver::{Delete, Driver, Health, Scan, Table};

use crate::common::{self, Bench, row, rows};

/// Size of segments, bytes. Small enough that few rows fill several segments.
const TINY_SEGMENT_BYTES: u64 = 250;
/// Bytes of a row before its value: head, partition, clustering.
const BEFORE_VALUE: usize = 14 + 1 + 4;
const MARK_BYTES: usize = 16;

async fn open(bench: &Bench) -> tacho_store::Result<Embedded> {
    Embedded::open_with(bench.directory.path(), Arc::new(bench.disk.clone()), TINY_SEGMENT_BYTES).await
}

fn value(key: u32) -> Vec<u8> {
    format!("value of {key}").into_bytes()
}

fn delete(key: u32) -> Delete {
    Delete::row(Table::Chunks, b"p", key.to_be_bytes())
}

/// Writes two sealed segments and a growing one. Row 3 is deleted. Returns the other rows.
async fn fill(bench: &Bench) -> BTreeMap<u32, Vec<u8>> {
    let driver = open(bench).await.unwrap();
    for key in 0..6 {
        driver.put(vec![row(key, &value(key)), row(key + 10, &value(key + 10))]).await.unwrap();
    }
    driver.delete(vec![delete(3)]).await.unwrap();
    driver.put(vec![row(20, &value(20))]).await.unwrap();
    [0, 1, 2, 4, 5, 10, 11, 12, 13, 14, 15, 20].into_iter().map(|key| (key, value(key))).collect()
}

/// Keys and positions of the rows of a file. The row that deletes key 3 is included.
fn places(bytes: &[u8]) -> Vec<(u32, Range<usize>)> {
    let find = |part: &[u8]| bytes.windows(part.len()).position(|window| window == part);
    let mut places = Vec::new();
    for key in (0..6).chain(10..16).chain([20]) {
        // The head of the row without its checksum, the partition and the key.
        let whole =
            [&[0, 1, 1, 0, 4, 0], &(value(key).len() as u32).to_le_bytes()[..], b"p", &u32::to_be_bytes(key)];
        if let Some(at) = find(&whole.concat()) {
            places.push((key, at - 4..at - 4 + BEFORE_VALUE + value(key).len()));
        }
    }
    if let Some(at) = find(&[&[1, 1, 1, 0, 4, 0, 0, 0, 0, 0], &b"p"[..], &3u32.to_be_bytes()].concat()) {
        places.push((3, at - 4..at - 4 + BEFORE_VALUE));
    }
    places
}

/// Whether the byte is between the header and the index of a sealed segment.
fn is_idle(bytes: &[u8], at: usize) -> bool {
    let Some(trailer) = bytes.strip_suffix(b"tachoend") else { return false };
    let index = u32::from_le_bytes(trailer[trailer.len() - 20..trailer.len() - 16].try_into().unwrap());
    (24..index as usize).contains(&at)
}

/// Reads each row separately, so that an error affects only one row. Unreadable and missing rows are not in the result.
async fn read_each(driver: &Embedded) -> BTreeMap<u32, Vec<u8>> {
    let mut found = BTreeMap::new();
    for key in 0..30u32 {
        let scan = Scan {
            from: std::ops::Bound::Included(key.to_be_bytes().to_vec()),
            to: std::ops::Bound::Included(key.to_be_bytes().to_vec()),
            ..Scan::all(Table::Chunks, *b"p")
        };
        let read = driver.read(vec![scan]).await.unwrap_or_default();
        found.extend(read.into_iter().flatten().flatten().map(|row| (key, row.value.to_vec())));
    }
    found
}

/// The path at which a file exists after the open: its original path, or a path in the quarantine.
fn kept(path: &Path) -> Option<PathBuf> {
    let aside = path.parent()?.join("quarantine").join(path.file_name()?);
    [path.to_owned(), aside].into_iter().find(|path| path.exists())
}

#[tokio::test]
async fn a_flipped_bit_loses_only_its_row() {
    let bench = Bench::quick();
    let expect = fill(&bench).await;
    let mut files = bench.snapshot();
    files.retain(|path, _| !["LOCK", "RESERVE", "END"].iter().any(|name| path.ends_with(name)));
    assert_eq!(files.keys().filter(|path| path.extension().is_some_and(|e| e == "segment")).count(), 3);
    for (path, whole) in &files {
        let places = places(whole);
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            bench.restore(&files);
            std::fs::write(path, &damaged).unwrap();
            let place = format!("byte {at} of {}", path.display());
            let driver = open(&bench).await.unwrap_or_else(|error| panic!("{place}: {error}"));
            let hit: Vec<u32> =
                places.iter().filter(|(_, range)| range.contains(&at)).map(|(key, _)| *key).collect();
            let mut found = read_each(&driver).await;
            // If the delete is unreadable, the row is not deleted.
            if hit == [3] {
                found.remove(&3);
            }
            let lost: Vec<u32> = expect.keys().filter(|key| !found.contains_key(key)).copied().collect();
            assert!(lost.iter().all(|key| hit.contains(key)), "{place}: lost {lost:?}, hit {hit:?}");
            assert!(found.iter().all(|(key, value)| expect.get(key) == Some(value)), "{place}: {found:?}");
            // The head of a batch is not read if the index has all rows.
            let is_read = hit.is_empty() && !is_idle(whole, at);
            assert!(driver.health() != Health::default() || !is_read, "{place}: no damage is reported");
            assert!(
                driver.health() != Health::default() || hit.is_empty() || hit == [3] || lost == hit,
                "{place}"
            );
            // A damaged mark at the very end is cut off as a torn end, because it does not prove that the bytes before it
            // were synced.
            if let Some(left) = kept(path).map(|path| std::fs::read(path).unwrap())
                && path.extension().is_some_and(|e| e == "segment")
            {
                let least = damaged.len() - if at + MARK_BYTES >= damaged.len() { MARK_BYTES } else { 0 };
                assert!(left.len() >= least && left[..least] == damaged[..least], "{place}: bytes are lost");
            } else {
                assert!(path.exists(), "{place}: removed");
            }
            driver.put(vec![row(21, b"goes on")]).await.unwrap();
            drop(driver);
            let again = read_each(&open(&bench).await.unwrap()).await;
            assert!(found.iter().all(|(key, value)| again.get(key) == Some(value)), "{place}: {again:?}");
            assert!(again.contains_key(&21), "{place}");
        }
    }
}

/// The visible rows at the beginning, and after each requested put or delete.
type History = Vec<Vec<(u32, Bytes)>>;

/// Puts, replaces and deletes rows and frees space, one operation for each of the `steps`. Stops when an operation fails.
/// Returns whether all operations succeeded. If a put or a delete failed, the last two states in `history` are the acknowledged
/// state and the requested state.
async fn work(driver: &Embedded, history: &mut History, steps: Range<u32>) -> bool {
    let mut model: BTreeMap<u32, Bytes> = history.last().cloned().unwrap_or_default().into_iter().collect();
    for step in steps {
        let done = match step % 5 {
            4 => {
                model.remove(&(step % 7));
                let after = model.clone().into_iter().collect();
                history.push(after);
                driver.delete(vec![delete(step % 7)]).await
            }
            3 if step % 10 == 3 => driver.settle().await,
            _ => {
                let put = vec![row(step % 7, &value(step)), row(10 + step % 3, &value(step + 100))];
                model.extend(put.iter().map(|row| {
                    (u32::from_be_bytes(row.clustering.as_slice().try_into().unwrap()), row.value.clone())
                }));
                history.push(model.clone().into_iter().collect());
                driver.put(put).await
            }
        };
        if done.is_err() {
            return false;
        }
    }
    true
}

#[tokio::test]
async fn acknowledged_rows_survive_a_crash_at_any_operation() {
    end_everywhere(false).await;
}

#[tokio::test]
async fn acknowledged_rows_survive_a_power_failure_at_any_operation() {
    end_everywhere(true).await;
}

/// Ends the process at each of its operations. If `power_fails`, unsynced bytes are also lost.
async fn end_everywhere(power_fails: bool) {
    let mut operations = 0;
    loop {
        let bench = Bench::quick();
        bench.disk.set_operations(operations);
        let mut history: History = vec![Vec::new()];
        let is_done = match open(&bench).await {
            Ok(driver) => work(&driver, &mut history, 0..40).await,
            Err(_) => false,
        };
        bench.disk.set_operations(u64::MAX);
        for attempt in 0..4 {
            // In the even attempts, the next process ends while it opens the directory or right after that. The power fails only
            // in the odd attempts.
            if attempt % 2 == 0 {
                bench.disk.set_operations(operations % 16);
                let opened = open(&bench).await;
                bench.disk.set_operations(0);
                drop(opened);
                bench.disk.set_operations(u64::MAX);
                continue;
            }
            if power_fails {
                bench.disk.lose_unsynced().unwrap();
            }
            let driver = open(&bench).await.unwrap_or_else(|e| panic!("after {operations} operations: {e}"));
            let found = rows(&driver).await;
            let allowed = &history[history.len().saturating_sub(2)..];
            assert!(
                allowed.contains(&found),
                "after {operations} operations: {found:?} is not one of {allowed:?}"
            );
            let Health { damaged, set_aside, .. } = driver.health();
            assert!(damaged.is_empty(), "after {operations} operations: {damaged:?}");
            assert!(power_fails || set_aside.is_empty(), "after {operations} operations: {set_aside:?}");
        }
        if is_done {
            break;
        }
        operations += 1;
    }
    assert!(operations > 100, "only {operations} operations");
}

#[tokio::test]
async fn a_copy_made_during_writes_is_complete_or_refused() {
    let bench = Bench::quick();
    let mut history: History = vec![Vec::new()];
    let driver = open(&bench).await.unwrap();
    assert!(work(&driver, &mut history, 0..20).await);
    let (begin, first) = (history.len() - 1, bench.snapshot());
    let mut refused = 0;
    for steps in 20..45 {
        assert!(work(&driver, &mut history, steps..steps + 1).await);
        let second = bench.snapshot();
        let names: Vec<&PathBuf> = first.keys().chain(second.keys()).collect();
        for cut in 0..=names.len() {
            for old_first in [false, true] {
                let copy = Bench::quick();
                for (number, path) in names.iter().enumerate() {
                    let from = if (number < cut) == old_first { &first } else { &second };
                    if let Some(bytes) = from.get(*path) {
                        std::fs::write(copy.directory.path().join(path.file_name().unwrap()), bytes).unwrap();
                    }
                }
                match open(&copy).await {
                    Ok(driver) => {
                        let found = rows(&driver).await;
                        assert!(history[begin..].contains(&found), "cut {cut} at step {steps}: {found:?}");
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                        assert!(
                            error
                                .to_string()
                                .contains("a copy that was made while a server used the original"),
                            "{error}"
                        );
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 20, "only {refused} copies were refused");
}

#[tokio::test]
async fn missing_and_damaged_copies_of_the_manifest_are_written_again() {
    for harm in [None, Some(vec![]), Some(b"tachograph manifest 1\nnothing".to_vec())] {
        for names in [&["MANIFEST"][..], &["MANIFEST.backup"], &["MANIFEST", "MANIFEST.backup"]] {
            let bench = Bench::quick();
            let lost = bench.directory.path().join("MANIFEST.lost");
            let expect = fill(&bench).await;
            for name in names {
                let path = bench.directory.path().join(name);
                match &harm {
                    Some(bytes) => std::fs::write(path, bytes).unwrap(),
                    None => std::fs::remove_file(path).unwrap(),
                }
            }
            if names.len() == 2 {
                let error = open(&bench).await.err().expect("opens without a manifest");
                let expect = format!("make an empty file {}", lost.display());
                assert!(error.to_string().contains(&expect), "{error}");
                std::fs::write(&lost, "").unwrap();
            }
            let driver = open(&bench).await.unwrap();
            assert!(!lost.exists());
            assert_eq!(read_each(&driver).await, expect);
            assert_eq!(driver.health().damaged, if harm.is_some() { names } else { &[] });
            drop(driver);
            let copies = ["MANIFEST", "MANIFEST.backup"]
                .map(|name| std::fs::read_to_string(bench.directory.path().join(name)).unwrap());
            assert_eq!(copies[0], copies[1]);
            assert!(copies[0].contains("segment 1 sealed "), "{}", copies[0]);
            assert_eq!(open(&bench).await.unwrap().health(), Health::default());
        }
    }
}

#[tokio::test]
async fn an_unreadable_file_is_quarantined_and_reported() {
    let bench = Bench::quick();
    fill(&bench).await;
    let path = bench.directory.path().join("00000001.segment");
    let noise = common::noise(1, std::fs::read(&path).unwrap().len());
    std::fs::write(&path, &noise).unwrap();
    let aside = bench.directory.path().join("quarantine/00000001.segment");
    let disk = FaultyDisk::default();
    for attempt in 0..4 {
        // The first attempt to move the file fails.
        disk.set_rename_fails(attempt == 0);
        let opened =
            Embedded::open_with(bench.directory.path(), Arc::new(disk.clone()), TINY_SEGMENT_BYTES).await;
        let driver = opened.unwrap();
        assert!(read_each(&driver).await.contains_key(&20));
        assert_eq!(driver.health().set_aside.is_empty(), attempt == 0);
        assert_eq!(std::fs::read(if attempt == 0 { &path } else { &aside }).unwrap(), noise);
    }
    std::fs::remove_file(&aside).unwrap();
    assert_eq!(open(&bench).await.unwrap().health(), Health::default());
}
