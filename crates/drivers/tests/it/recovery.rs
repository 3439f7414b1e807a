//! The embedded driver with torn ends, damage, full disks, newer versions and dead rows.

use std::path::Path;
use std::sync::Arc;

use tacho_store::ErrorKind;
use tacho_store::driver::{Delete, Driver, Parts, Scan, Table};

use crate::common::{Bench, SMALL_SEGMENT_BYTES, damaged, keys, noise, row, rows};

#[tokio::test]
async fn a_batch_torn_at_any_byte_is_cut_off_completely() {
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, b"one"), row(2, b"two")]).await.unwrap();
    let good = bench.bytes() as usize;
    let before = bench.snapshot();
    driver.put(vec![row(3, b"three"), row(4, b"four")]).await.unwrap();
    drop(driver);
    let file = &bench.segments()[0];
    // Removes the mark, which the driver writes after each synced batch. The snapshot has an `END` without this batch, so nothing
    // proves that the batch was acknowledged.
    let mut whole = std::fs::read(file).unwrap();
    whole.truncate(whole.len() - 16);
    for end in good..whole.len() {
        bench.restore(&before);
        std::fs::write(file, &whole[..end]).unwrap();
        assert_eq!(keys(&bench.open().await).await, [1, 2], "cut at {end}");
        // Sectors reach the disk in any order: here the end of the batch is written, but its beginning has zeros.
        let mut holey = whole.clone();
        holey[good..end].fill(0);
        bench.restore(&before);
        std::fs::write(file, &holey).unwrap();
        let expect: &[u32] = if end == good { &[1, 2, 3, 4] } else { &[1, 2] };
        assert_eq!(keys(&bench.open().await).await, expect, "zeros up to {end}");
    }
    let driver = bench.open().await;
    driver.put(vec![row(5, b"five")]).await.unwrap();
    drop(driver);
    assert_eq!(keys(&bench.open().await).await, [1, 2, 5]);
}

#[tokio::test]
async fn the_first_batch_of_a_file_torn_at_any_byte_is_not_damage() {
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, b"one")]).await.unwrap();
    drop(driver);
    bench.forget_end();
    let (file, before) = (&bench.segments()[0], bench.snapshot());
    let whole = std::fs::read(file).unwrap();
    // The header of the file and a mark were synced before the first batch.
    for end in 40..whole.len() - 16 {
        bench.restore(&before);
        std::fs::write(file, &whole[..end]).unwrap();
        for _ in 0..2 {
            let driver = bench.open().await;
            assert_eq!(keys(&driver).await, [] as [u32; 0], "cut at {end}");
            assert_eq!(driver.health().damaged, [] as [&str; 0], "cut at {end}");
        }
        bench.open().await.put(vec![row(2, b"two")]).await.unwrap();
        assert_eq!(keys(&bench.open().await).await, [2], "cut at {end}");
        assert_eq!(bench.segments().len(), 1, "the row must be appended to the existing file");
    }
}

#[tokio::test]
async fn damage_in_the_middle_loses_only_its_rows() {
    for sealed in [false, true] {
        let bench = Bench::new();
        let driver = bench.open().await;
        for key in 0..4 {
            driver.put(vec![row(key, &noise(key, 1_000)), row(key + 10, b"small")]).await.unwrap();
        }
        if sealed {
            driver.put(vec![row(30, &noise(30, 8_000))]).await.unwrap();
            driver.put(vec![row(31, b"next file")]).await.unwrap();
        }
        drop(driver);
        let file = &bench.segments()[0];
        let mut bytes = std::fs::read(file).unwrap();
        let value = noise(1, 1_000);
        let at = bytes.windows(value.len()).position(|w| w == value).unwrap();
        bytes[at + 500] ^= 1;
        std::fs::write(file, &bytes).unwrap();
        let mut expect = vec![0, 2, 3, 10, 11, 12, 13];
        expect.extend_from_slice(if sealed { &[30, 31] } else { &[] });
        let driver = bench.open().await;
        assert_eq!(keys(&driver).await, expect, "sealed: {sealed}");
        if sealed {
            let told = damaged(&driver).await;
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].0 == 1 && told[0].1.starts_with("checksum mismatch (segment 1, "), "{told:?}");
        }
    }
}

#[tokio::test]
async fn damage_outside_of_the_parts_that_are_read_is_ignored() {
    let bench = Bench::new();
    let driver = bench.open().await;
    let values = [noise(1, 100_000), noise(2, 100_000)];
    driver.put(vec![row(0, &values[0]), row(1, &values[1])]).await.unwrap();
    drop(driver);
    let path = &bench.segments()[0];
    let mut bytes = std::fs::read(path).unwrap();
    let place = |part: &[u8]| bytes.windows(part.len()).position(|window| window == part).unwrap();
    let (begins, head) = (place(&values[0]), place(&values[1]) - 1);
    let driver = bench.open().await;
    bytes[begins + 50_000] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    let parts: Parts = Arc::new(|_, _| Some(vec![0..10, 30_000..40_000]));
    let read = || driver.read_parts(vec![Scan::all(Table::Chunks, *b"p")], parts.clone());
    let cut = |value: &[u8]| [&value[..10], &value[30_000..40_000]].concat();
    let found = read().await.unwrap().remove(0);
    let found: Vec<&[u8]> = found.iter().map(|cut| &*cut.as_ref().unwrap().row.value).collect();
    assert_eq!(found, [cut(&values[0]), cut(&values[1])]);
    // Damages the key of the second row. A row with another key is not accepted as this row.
    bytes[head] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    let found = read().await.unwrap().remove(0);
    let lengths: Vec<_> = found.iter().map(|cut| cut.as_ref().map(|cut| cut.row.value.len())).collect();
    assert_eq!(lengths[0].ok(), Some(10_010));
    let other = lengths[1].unwrap_err();
    assert!(other.reason.starts_with("its place holds other bytes"), "{other}");
    assert!(other.value.is_empty(), "bytes of unknown origin were returned");
}

#[tokio::test]
async fn a_file_cut_while_it_is_open_loses_only_its_rows() {
    let bench = Bench::new();
    let driver = bench.open().await;
    for key in 0..40 {
        driver.put(vec![row(key, &noise(key, 1_000))]).await.unwrap();
    }
    let files = bench.segments();
    let file = std::fs::OpenOptions::new().write(true).open(&files[1]).unwrap();
    file.set_len(2_500).unwrap();
    let (told, left) = (damaged(&driver).await, keys(&driver).await);
    assert_eq!(told.len() + left.len(), 40);
    assert!((5..10).contains(&told.len()), "{told:?}");
    assert!(told.iter().all(|(_, reason)| reason.contains("(segment 2, offset ")), "{told:?}");
}

#[tokio::test]
async fn a_damaged_index_is_rebuilt_from_the_rows() {
    let bench = Bench::new();
    let driver = bench.open().await;
    for key in 0..50 {
        driver.put(vec![row(key % 20, &noise(key, 1_000))]).await.unwrap();
    }
    let expect = rows(&driver).await;
    drop(driver);
    assert!(bench.segments().len() > 2);
    for file in bench.segments() {
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.len() - 40;
        bytes[at] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        for _ in 0..2 {
            let driver = bench.open().await;
            driver.put(vec![row(100, b"after")]).await.unwrap();
            let mut found = rows(&driver).await;
            found.retain(|(key, _)| *key != 100);
            assert_eq!(found.len(), expect.len());
            let differ = found.iter().zip(&expect).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 0, "{}", file.display());
        }
    }
}

#[tokio::test]
async fn puts_are_refused_on_a_full_disk_and_accepted_when_there_is_space() {
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, b"one")]).await.unwrap();
    for space in [0, 5, 100, 1_500] {
        bench.disk.set_space(space);
        let error = driver.put(vec![row(2, &noise(2, 2_000))]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
        assert_eq!(keys(&driver).await, [1]);
        assert_eq!(keys(&driver).await, [1]);
    }
    bench.disk.set_cut_fails(true);
    driver.put(vec![row(2, &noise(2, 2_000))]).await.unwrap_err();
    bench.disk.set_space(u64::MAX);
    driver.put(vec![row(2, b"two")]).await.unwrap_err();
    bench.disk.set_cut_fails(false);
    driver.put(vec![row(2, b"two")]).await.unwrap();
    bench.disk.set_sync_fails(true);
    assert_eq!(driver.put(vec![row(3, b"three")]).await.unwrap_err().kind(), ErrorKind::Io);
    bench.disk.set_sync_fails(false);
    drop(driver);
    assert_eq!(keys(&bench.open().await).await, [1, 2]);
}

#[tokio::test]
async fn a_failed_seal_loses_no_row() {
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, &noise(1, 9_000))]).await.unwrap();
    // There is space for the row, but not for the index.
    bench.disk.set_space(2_100);
    driver.put(vec![row(2, &noise(2, 2_000))]).await.unwrap();
    bench.disk.set_space(u64::MAX);
    driver.put(vec![row(3, b"three")]).await.unwrap();
    driver.put(vec![row(4, b"four")]).await.unwrap();
    drop(driver);
    assert_eq!(keys(&bench.open().await).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn dead_segments_are_removed_and_deleted_rows_stay_deleted() {
    let bench = Bench::new();
    let driver = bench.open().await;
    for round in 0..60u32 {
        let put = (0..10).map(|key| row(key, &noise(round * 10 + key, 500)));
        driver.put(put.collect()).await.unwrap();
        driver.put(vec![row(1_000 + round, b"stays"), row(2_000 + round, b"goes")]).await.unwrap();
        driver.delete(vec![Delete::row(Table::Chunks, *b"p", (2_000 + round).to_be_bytes())]).await.unwrap();
    }
    let expect = rows(&driver).await;
    assert_eq!(expect.len(), 10 + 60);
    let live = 10 * 520 + 60 * 40;
    assert!(bench.bytes() < live + 6 * SMALL_SEGMENT_BYTES, "{} bytes for {live}", bench.bytes());
    drop(driver);
    let driver = bench.open().await;
    assert!(rows(&driver).await == expect, "after reopening");
}

#[tokio::test]
async fn settle_frees_space_immediately() {
    let bench = Bench::new();
    let value = noise(1, 300);
    for (written, replaced, deleted) in
        [(20, 0..0, 5..20), (400, 100..300, 0..0), (400, 0..50, 40..80), (5, 0..0, 0..5)]
    {
        let driver = bench.open().await;
        for keys in [0..written, replaced] {
            for key in keys {
                driver.put(vec![row(key, &value)]).await.unwrap();
            }
        }
        let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
        driver.delete(deleted.map(gone).collect()).await.unwrap();
        let before = rows(&driver).await;
        driver.settle().await.unwrap();
        assert_eq!(rows(&driver).await, before);
        // Up to an eighth of each segment may be dead. A row takes less than 80 bytes in addition to its value, including its
        // part of the index, the batch head and the mark.
        let live = before.len() as u64 * (300 + 80);
        assert!(bench.bytes() <= live * 8 / 7 + 1_000, "{} bytes for {} rows", bench.bytes(), before.len());
        drop(driver);
        assert_eq!(rows(&bench.open().await).await, before);
    }
}

#[tokio::test]
async fn a_segment_with_a_damaged_index_or_header_is_rewritten() {
    for from_end in [true, false] {
        let bench = Bench::new();
        let driver = bench.open().await;
        for key in 0..40 {
            driver.put(vec![row(key, &noise(key, 500))]).await.unwrap();
        }
        let first = bench.segments()[0].clone();
        let mut bytes = std::fs::read(&first).unwrap();
        // Damages the index or the magic.
        let at = if from_end { bytes.len() - 40 } else { 0 };
        bytes[at] ^= 1;
        std::fs::write(&first, bytes).unwrap();
        for round in 1..100u32 {
            let keys = (round % 4) * 10..(round % 4) * 10 + 10;
            driver.put(keys.map(|key| row(key, &noise(round * 40 + key, 500))).collect()).await.unwrap();
        }
        assert!(!first.exists());
        let live = 40 * 540;
        assert!(bench.bytes() < live + 7 * SMALL_SEGMENT_BYTES, "{} bytes for {live}", bench.bytes());
        assert_eq!(rows(&driver).await.len(), 40);
    }
}

#[tokio::test]
async fn a_directory_in_use_or_of_a_newer_version_is_refused() {
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, b"one")]).await.unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Locked);
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(driver);
    let file = &bench.segments()[0];
    let mut bytes = std::fs::read(file).unwrap();
    bytes[8] = 9;
    let crc = crc32c::crc32c(&bytes[..20]);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(file, bytes).unwrap();
    let error = bench.try_open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Version);
    let path = file.display().to_string();
    let expect = format!("segment has version 9, this program reads up to 1 (path {path})");
    assert_eq!(error.to_string(), expect);
}

#[tokio::test]
async fn a_stray_file_with_a_high_number_or_another_name_is_no_obstacle() {
    let bench = Bench::new();
    bench.open().await.put(vec![row(1, b"one")]).await.unwrap();
    for name in ["+0000001.segment", "000000001.segment", "99999999.segment"] {
        std::fs::write(bench.directory.path().join(name), "").unwrap();
    }
    for key in 2..=4 {
        let driver = bench.open().await;
        driver.put(vec![row(key, &noise(key, SMALL_SEGMENT_BYTES as usize))]).await.unwrap();
        assert_eq!(keys(&driver).await, (1..=key).collect::<Vec<_>>());
    }
    assert_eq!(keys(&bench.open().await).await, [1, 2, 3, 4]);
    assert!(bench.directory.path().join("100000000.segment").exists());
}

#[tokio::test]
async fn a_url_with_an_unknown_scheme_or_without_a_directory_is_refused() {
    for (url, says) in [
        ("cassandra://x", "no driver for \"cassandra://x\", known are memory:, embedded:DIRECTORY"),
        ("embedded:", "\"embedded:\" names no directory"),
    ] {
        let error = tacho_drivers::open(url).await.err().unwrap();
        assert!(error.to_string().starts_with(says), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let url = format!("embedded://{}", directory.path().display());
    let driver = tacho_drivers::open(&url).await.unwrap();
    assert_eq!(Path::new(&driver.info().location), directory.path());
}
