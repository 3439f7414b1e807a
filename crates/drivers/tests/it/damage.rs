//! The embedded driver with files that are damaged, missing, left over, or from different times, and with full disks.

use std::path::Path;
use std::sync::Arc;

use tacho_drivers::embedded::Embedded;
use tacho_store::ErrorKind;
use tacho_store::driver::{Delete, Driver, Health, Row, Table};

use crate::common::{Bench, keys, noise, row, rows};

/// Writes batches of two rows. Enough batches give several sealed segments and a growing one.
async fn filled(bench: &Bench, batches: u32) {
    let driver = bench.open().await;
    for key in 0..batches {
        driver.put(vec![row(key, &noise(key, 1_000)), row(key + 1_000, b"small")]).await.unwrap();
    }
}

fn all_keys(batches: u32) -> Vec<u32> {
    (0..batches).chain(1_000..1_000 + batches).collect()
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// The position of `part` in a file.
fn place(path: &Path, part: &[u8]) -> usize {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

#[tokio::test]
async fn a_segment_with_a_damaged_header_is_kept_and_read() {
    for batches in [5, 20] {
        for (name, harm) in [("zero", 0), ("flipped", 1), ("other version", 2)] {
            let bench = Bench::new();
            filled(&bench, batches).await;
            let segments = bench.segments();
            for file in &segments {
                change(file, |bytes| match harm {
                    0 => bytes[..24].fill(0),
                    1 => bytes[3] ^= 0x20,
                    _ => bytes[8] = 9,
                });
            }
            let driver = bench.try_open().await.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(keys(&driver).await, all_keys(batches), "{name}");
            assert!(segments.iter().all(|file| file.exists()), "{name}");
        }
    }
}

/// The bytes of a row with key 7, which [`keys`] finds.
fn short_row() -> Vec<u8> {
    let row = [&[0, 1, 1, 0, 4, 0, 3, 0, 0, 0], &b"p"[..], &7u32.to_be_bytes(), b"abc"].concat();
    [&crc32c::crc32c(&row).to_le_bytes()[..], &row].concat()
}

/// The first start must not cut off the damaged end, because the second start would remove the rest as an unfinished file.
#[tokio::test]
async fn a_short_file_with_a_row_is_never_removed() {
    let row = short_row();
    // The head of a batch of one row shows that the bytes before it were on disk. The row of this batch is damaged.
    let head = [&b"\xf5bat"[..], &16u32.to_le_bytes(), &1u32.to_le_bytes()].concat();
    let batch = [&head[..], &crc32c::crc32c(&head).to_le_bytes(), &[b'y'; 16]].concat();
    let bench = Bench::new();
    let path = bench.directory.path().join("00000001.segment");
    std::fs::write(&path, [&[b'x'; 27], &row[..], &batch].concat()).unwrap();
    for start in 1..=3 {
        let driver = bench.open().await;
        assert_eq!(keys(&driver).await, [7], "start {start}");
        assert_ne!(driver.health(), Health::default(), "start {start}");
    }
    assert!(
        std::fs::metadata(&path).unwrap().len() < 54,
        "the file is too long for this test: it has space for a whole batch"
    );
}

/// The row begins where an intact file has its header.
#[tokio::test]
async fn a_row_in_place_of_the_header_is_read() {
    for before in 0..24 {
        let bench = Bench::new();
        let path = bench.directory.path().join("00000001.segment");
        std::fs::write(&path, [&[b'x'; 24][..before], &short_row()].concat()).unwrap();
        for start in 1..=2 {
            let driver = bench.open().await;
            assert_eq!(keys(&driver).await, [7], "{before} bytes before the row, start {start}");
            assert_eq!(driver.health().damaged, ["00000001.segment"], "{before} bytes, start {start}");
        }
    }
}

#[tokio::test]
async fn rows_after_a_damaged_batch_head_are_read() {
    for (batches, from_end) in [(5, false), (20, false), (20, true)] {
        let bench = Bench::new();
        filled(&bench, batches).await;
        let file = &bench.segments()[0];
        // The head is before the first row of the batch.
        let head = place(file, &noise(2, 1_000)) - 19 - 16;
        change(file, |bytes| {
            bytes[head + 5] ^= 1;
            if from_end {
                let at = bytes.len() - 40;
                bytes[at] ^= 1;
            }
        });
        assert_eq!(keys(&bench.open().await).await, all_keys(batches), "{batches} batches");
    }
}

#[tokio::test]
async fn damage_at_the_end_of_acknowledged_bytes_does_not_count_as_torn() {
    let bench = Bench::new();
    filled(&bench, 3).await;
    let file = &bench.segments()[0];
    let whole = bench.snapshot();
    let value = place(file, &noise(2, 1_000));
    for (at, lost) in [(value + 500, Some(2)), (value - 19 - 10, None), (value - 15, Some(2))] {
        change(file, |bytes| bytes[at] ^= 1);
        let damaged = std::fs::read(file).unwrap();
        let mut expect = all_keys(3);
        expect.retain(|key| Some(*key) != lost);
        for _ in 0..2 {
            let driver = bench.open().await;
            assert_eq!(keys(&driver).await, expect, "byte {at}");
            driver.put(vec![row(1_002, b"small")]).await.unwrap();
        }
        assert!(std::fs::read(file).unwrap().starts_with(&damaged), "byte {at}");
        bench.restore(&whole);
    }
}

/// Content of the copies of torn ends in the quarantine.
fn torn_ends(bench: &Bench) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(bench.directory.path().join("quarantine")) else { return Vec::new() };
    entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect()
}

#[tokio::test]
async fn doubtful_bytes_after_a_power_failure_are_copied_before_the_cut() {
    let value = noise(2, 1_000);
    // A batch has a head, a row with its value, and another row.
    let batch = 16 + 19 + value.len() + 19 + 5;
    // A power failure loses the last mark, which is not synced. A bit flips in the value, in the lengths of a row, or in
    // the head.
    for bit in [500, 16 + 8, 5] {
        let bench = Bench::new();
        filled(&bench, 3).await;
        bench.forget_end();
        let file = &bench.segments()[0];
        change(file, |bytes| {
            bytes.truncate(bytes.len() - 16);
            let at = bytes.len() - batch + bit;
            bytes[at] ^= 1;
        });
        let mut expect = std::fs::read(file).unwrap();
        let expect = expect.split_off(expect.len() - batch);
        for _ in 0..2 {
            let driver = bench.open().await;
            assert_eq!(keys(&driver).await, [0, 1, 1_000, 1_001], "byte {bit}");
            let Health { damaged, set_aside, torn_ends, .. } = driver.health();
            assert_eq!((damaged, set_aside, torn_ends.len()), (vec![], vec![], 1), "byte {bit}");
        }
        assert_eq!(torn_ends(&bench), [expect], "byte {bit}");
    }
}

/// The effect of a crash on the bytes of a segment.
type Tear<'a> = &'a dyn Fn(&mut Vec<u8>);

#[tokio::test]
async fn unsynced_bytes_that_a_start_recognises_are_not_copied() {
    let bench = Bench::new();
    filled(&bench, 3).await;
    bench.forget_end();
    let file = &bench.segments()[0];
    let whole = bench.snapshot();
    let batch = 16 + 19 + 1_000 + 19 + 5;
    let end = std::fs::read(file).unwrap().len() - 16;
    let tear: [Tear<'_>; 4] = [
        // The process died during the write, before the last byte of the batch or of its head.
        &|bytes| bytes.truncate(end - 1),
        &|bytes| bytes.truncate(end - batch + 15),
        // Only the length of the file reached the disk.
        &|bytes| bytes[end - batch..].fill(0),
        // Bytes that look like half of an index, but not of the index of this file. The start cannot know that they were not
        // synced, so it copies them, unlike the bytes of the other cases.
        &|bytes| {
            bytes.extend([0, 1, 1, 0, b'p', 4, 0, 0, 0, 0, 0].iter().chain(&[56, 0, 0, 0]).chain(&[0; 30]))
        },
    ];
    for (nth, tear) in tear.into_iter().enumerate() {
        bench.restore(&whole);
        change(file, tear);
        let driver = bench.open().await;
        let expect = if nth == 3 { all_keys(3) } else { vec![0, 1, 1_000, 1_001] };
        assert_eq!(keys(&driver).await, expect, "case {nth}");
        if nth < 3 {
            assert_eq!(torn_ends(&bench), Vec::<Vec<u8>>::new(), "case {nth}");
        }
    }
}

#[tokio::test]
async fn a_forged_batch_inside_a_torn_one_is_not_trusted() {
    // A value with the bytes of a segment in which the first row is deleted.
    let forged = {
        let bench = Bench::new();
        let driver = bench.open().await;
        driver.put(vec![row(0, b"old")]).await.unwrap();
        driver.delete(vec![Delete::row(Table::Chunks, b"p", 0u32.to_be_bytes())]).await.unwrap();
        driver.put(vec![row(7, b"forged")]).await.unwrap();
        drop(driver);
        std::fs::read(&bench.segments()[0]).unwrap()
    };
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(0, b"zero")]).await.unwrap();
    driver.put(vec![row(1, &[&forged[..], &noise(1, 100)].concat())]).await.unwrap();
    drop(driver);
    // The process died during the write.
    bench.forget_end();
    change(&bench.segments()[0], |bytes| bytes.truncate(bytes.len() - 16 - 50));
    let driver = bench.open().await;
    assert_eq!(keys(&driver).await, [0]);
    assert_eq!(driver.health().damaged, Vec::<String>::new());
}

#[tokio::test]
async fn a_damaged_row_with_correct_lengths_is_not_searched_for_rows() {
    let forged = {
        let bench = Bench::new();
        let driver = bench.open().await;
        driver.put(vec![row(7, b"forged")]).await.unwrap();
        drop(driver);
        std::fs::read(&bench.segments()[0]).unwrap()[56..].to_vec()
    };
    let bench = Bench::new();
    let driver = bench.open().await;
    driver.put(vec![row(1, &forged), row(2, b"beside")]).await.unwrap();
    drop(driver);
    let file = &bench.segments()[0];
    let at = place(file, &forged);
    // Damages the head of the batch, and the last byte of the key of the first row.
    change(file, |bytes| {
        bytes[at - 19 - 10] ^= 1;
        bytes[at - 1] ^= 1;
    });
    assert_eq!(keys(&bench.open().await).await, [2]);
}

#[tokio::test]
async fn a_copy_with_a_growing_file_older_than_a_compaction_is_refused() {
    let bench = Bench::new();
    filled(&bench, 23).await;
    let driver = bench.open().await;
    let growing = bench.segments().pop().unwrap();
    let early = std::fs::read(&growing).unwrap();
    let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
    // Deletes more than half of the first segment. The next writes copy the other rows to the growing segment.
    let first = bench.segments().remove(0);
    driver.delete((0..7).map(gone).collect()).await.unwrap();
    for _ in 0..3 {
        driver.put(vec![row(2_000, b"small")]).await.unwrap();
    }
    assert!(!first.exists() && bench.segments().pop() == Some(growing.clone()));
    let expect = keys(&driver).await;
    drop(driver);
    let live = bench.snapshot();
    std::fs::write(&growing, early).unwrap();
    let error = bench.try_open().await.err().expect("opens without the rows that were copied");
    assert!(error.to_string().contains("a copy that was made while a server used the original"), "{error}");
    bench.restore(&live);
    assert_eq!(keys(&bench.open().await).await, expect);
}

#[tokio::test]
async fn a_repaired_segment_can_be_put_back() {
    let bench = Bench::new();
    filled(&bench, 20).await;
    let file = bench.segments()[0].clone();
    let sound = std::fs::read(&file).unwrap();
    change(&file, |bytes| *bytes = noise(9, bytes.len()));
    assert_eq!(bench.open().await.health().set_aside, ["00000001.segment"]);
    std::fs::write(&file, &sound).unwrap();
    for aside in [true, false] {
        for _ in 0..2 {
            let driver = bench.open().await;
            assert_eq!(keys(&driver).await, all_keys(20));
            assert_eq!(std::fs::read(&file).unwrap(), sound);
            assert_eq!(driver.health().set_aside.is_empty(), !aside);
            drop(driver);
            assert!(
                keys(&Embedded::open_read_only(bench.directory.path()).await.unwrap()).await == all_keys(20)
            );
        }
        let _ = std::fs::remove_dir_all(bench.directory.path().join("quarantine"));
    }
}

#[tokio::test]
async fn a_compaction_that_does_not_fit_leaves_the_reserve_to_deletes() {
    let segment_bytes = 1 << 20;
    let bench = Bench::new();
    let open = || Embedded::open_with(bench.directory.path(), Arc::new(bench.disk.clone()), segment_bytes);
    let driver = open().await.unwrap();
    for key in 0..150 {
        driver.put(vec![row(key, &noise(key, 10_000))]).await.unwrap();
    }
    let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
    // Starts to rewrite the first segment, which still has 450 kB of needed rows.
    driver.delete((0..60).map(gone).collect()).await.unwrap();
    bench.disk.set_space(300);
    let meta = |key| Row { table: Table::Meta, ..row(key, b"what the store remembers") };
    driver.put(vec![meta(1)]).await.unwrap();
    let reserve = bench.directory.path().join("RESERVE");
    assert!(reserve.exists(), "the reserve was released for rows that do not fit");
    driver.put(vec![row(1_000, &noise(1, 10_000))]).await.unwrap_err();
    bench.disk.set_space(0);
    // Deletes the other rows of the segment, so that none of its rows is needed.
    driver.delete((60..110).map(gone).collect()).await.unwrap();
    driver.settle().await.unwrap();
    driver.put(vec![row(1_000, &noise(1, 10_000))]).await.unwrap();
    assert!(reserve.exists(), "the reserve was not created again");
}

#[tokio::test]
async fn a_missing_file_is_detected() {
    let bench = Bench::new();
    filled(&bench, 20).await;
    let file = bench.segments()[0].clone();
    std::fs::remove_file(&file).unwrap();
    let error = bench.try_open().await.err().expect("opens without its first segment");
    assert!(error.to_string().contains("00000001.segment is missing"), "{error}");
    // An operator permits opening the directory without the file.
    let accept = bench.directory.path().join("MANIFEST.lost");
    std::fs::write(&accept, "").unwrap();
    let read_only = Embedded::open_read_only(bench.directory.path()).await.unwrap();
    let left = keys(&read_only).await;
    assert!(left.len() > 15 && left.len() < 40 && accept.exists());
    drop(read_only);
    let driver = bench.open().await;
    assert_eq!(keys(&driver).await, left);
    assert!(!accept.exists());
    for key in 100..120 {
        driver.put(vec![row(key, &noise(key, 1_000))]).await.unwrap();
    }
    drop(driver);
    assert!(!file.exists(), "the number of the missing file was reused");
    std::fs::remove_file(&bench.segments()[0]).unwrap();
    assert!(bench.try_open().await.is_err(), "the permission also covered a file that was removed later");
}

#[tokio::test]
async fn the_error_for_a_link_to_itself_has_the_path_and_a_remedy() {
    let bench = Bench::new();
    filled(&bench, 20).await;
    let kept = bench.snapshot();
    for name in ["00000001.segment", "MANIFEST"] {
        let path = bench.directory.path().join(name);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(name, &path).unwrap();
        for opened in [bench.try_open().await, Embedded::open_read_only(bench.directory.path()).await] {
            let error = opened.err().expect("opens without the file").to_string();
            assert!(error.contains(&format!("(path {})", path.display())), "{error}");
            assert!(error.contains("leads back to itself: replace it by the file"), "{error}");
        }
        bench.restore(&kept);
        assert_eq!(keys(&bench.open().await).await, all_keys(20));
    }
}

#[tokio::test]
async fn an_incomplete_directory_is_not_taken_for_one_of_an_older_version() {
    let bench = Bench::new();
    filled(&bench, 20).await;
    let copy = Bench::new();
    std::fs::copy(&bench.segments()[1], copy.directory.path().join("00000002.segment")).unwrap();
    let error = copy.try_open().await.err().expect("opens a part of a directory");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains("neither MANIFEST nor MANIFEST.backup can be read"), "{error}");
    assert_eq!(
        Embedded::open_read_only(copy.directory.path()).await.err().unwrap().kind(),
        ErrorKind::Corrupt
    );
}

#[tokio::test]
async fn compaction_does_not_remove_the_only_copy_of_a_damaged_row() {
    // A sealed segment has the key of the damaged row in its index. If the segment was read row by row, the key is
    // unknown.
    for (batches, is_known) in [(20, true), (8, false)] {
        let bench = Bench::new();
        filled(&bench, batches).await;
        let file = bench.segments()[0].clone();
        let at = place(&file, &noise(2, 1_000));
        change(&file, |bytes| bytes[at + 500] ^= 1);
        let driver = bench.open().await;
        for key in (0..batches).filter(|key| *key != 2) {
            driver.put(vec![row(key, b"new")]).await.unwrap();
        }
        for _ in 0..2 {
            driver.settle().await.unwrap();
        }
        assert!(file.exists());
        let mut expect = all_keys(batches);
        expect.retain(|key| *key != 2);
        assert_eq!(keys(&driver).await, expect);
        driver.put(vec![row(2, b"new")]).await.unwrap();
        driver.settle().await.unwrap();
        assert_eq!(file.exists(), !is_known);
        drop(driver);
        assert_eq!(keys(&bench.open().await).await, all_keys(batches));
    }
}

#[tokio::test]
async fn deleted_rows_stay_deleted_when_a_file_cannot_be_removed() {
    let bench = Bench::new();
    filled(&bench, 20).await;
    let driver = bench.open().await;
    let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
    driver.delete((0..18).map(gone).collect()).await.unwrap();
    bench.disk.set_remove_fails(Some("00000001"));
    for round in 0..20 {
        driver.put(vec![row(2_000, &noise(round, 1_000))]).await.unwrap();
        driver.settle().await.unwrap();
    }
    let expect = rows(&driver).await;
    drop(driver);
    assert!(rows(&bench.open().await).await == expect, "deleted rows have reappeared");
    bench.disk.set_remove_fails(None);
    let driver = bench.open().await;
    assert!(rows(&driver).await == expect);
    driver.settle().await.unwrap();
    assert!(bench.bytes() < 60_000, "{} bytes", bench.bytes());
}

#[tokio::test]
async fn a_segment_with_deletes_damaged_since_the_start_is_kept() {
    let bench = Bench::new();
    let driver = bench.open().await;
    for key in 0..10 {
        driver.put(vec![row(key, &noise(key, 1_000))]).await.unwrap();
    }
    driver.put(vec![row(50, &noise(50, 8_000))]).await.unwrap();
    driver.delete(vec![Delete::row(Table::Chunks, b"p", 0u32.to_be_bytes())]).await.unwrap();
    driver.put(vec![row(51, &noise(51, 2_000))]).await.unwrap();
    let second = bench.segments()[1].clone();
    // Damages the index and the row of the delete. Before this row are the value of 8,000 bytes, the mark after it, and the
    // head of the batch of the delete.
    let at = place(&second, &noise(50, 8_000)) + 8_000 + 2 * 16 + 15;
    change(&second, |bytes| {
        let in_index = bytes.len() - 40;
        bytes[at] ^= 1;
        bytes[in_index] ^= 1;
    });
    assert_eq!(driver.health(), Health::default());
    driver.put(vec![row(50, b"replaced"), row(51, b"replaced")]).await.unwrap();
    driver.settle().await.unwrap();
    assert_eq!(keys(&driver).await, (1..10).chain([50, 51]).collect::<Vec<_>>());
    assert!(second.exists(), "the file was removed with an unread delete");
    let Health { damaged, damaged_places, .. } = driver.health();
    assert_eq!((damaged, damaged_places), (vec!["00000002.segment".to_owned()], 1));
}

/// Fills nine sealed segments, so that the next put creates another one.
async fn full(bench: &Bench) {
    let driver = bench.open().await;
    for key in 0..9 {
        driver.put(vec![row(key, &noise(key, 10_000))]).await.unwrap();
    }
}

#[tokio::test]
async fn a_segment_that_only_one_copy_of_the_manifest_lists_is_kept() {
    let bench = Bench::new();
    full(&bench).await;
    let before = bench.snapshot();
    let mut refused = 0;
    for space in (0..1_000).step_by(5) {
        bench.restore(&before);
        let driver = bench.open().await;
        std::fs::remove_file(bench.directory.path().join("RESERVE")).unwrap();
        bench.disk.set_space(space);
        refused += u32::from(driver.put(vec![row(9, b"one more")]).await.is_err());
        bench.disk.set_space(u64::MAX);
        let stopped = bench.snapshot();
        // First, the same driver continues. Then the files as they were after the failure are opened again.
        driver.put(vec![row(9, b"one more")]).await.unwrap();
        drop(driver);
        let expect: Vec<u32> = (0..10).collect();
        assert_eq!(keys(&bench.open().await).await, expect, "space for {space} bytes");
        bench.restore(&stopped);
        let driver = bench.try_open().await.unwrap_or_else(|e| panic!("space for {space} bytes: {e}"));
        driver.put(vec![row(9, b"one more")]).await.unwrap();
        assert_eq!(keys(&driver).await, expect, "space for {space} bytes");
    }
    assert!(refused > 50, "only {refused} puts met a full disk");
}

#[tokio::test]
async fn ordinary_puts_leave_the_reserve_to_deletes() {
    let bench = Bench::new();
    full(&bench).await;
    let reserve = bench.directory.path().join("RESERVE");
    let before = bench.snapshot();
    for space in (0..1_000).step_by(20) {
        bench.restore(&before);
        let driver = bench.open().await;
        bench.disk.set_space(space);
        // The first put creates a segment if there is space. The second put does not fit. With enough space, the third put
        // fills the segment, so that it is sealed.
        let _ = driver.put(vec![row(9, b"one more")]).await;
        let _ = driver.put(vec![row(10, &noise(10, 10_000))]).await;
        bench.disk.set_space(10_200 + space);
        let _ = driver.put(vec![row(10, &noise(10, 10_000))]).await;
        assert!(reserve.exists(), "space for {space} bytes");
        bench.disk.set_space(u64::MAX);
    }
}

#[tokio::test]
async fn a_file_left_by_a_failed_attempt_is_not_extended() {
    let bench = Bench::new();
    let driver = bench.open().await;
    // Creating the first segment fails in the middle, and cleaning up fails, too.
    bench.disk.set_space(10);
    bench.disk.set_remove_fails(Some("00000001"));
    let error = driver.put(vec![row(1, b"one")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    bench.disk.set_space(u64::MAX);
    bench.disk.set_remove_fails(None);
    driver.put(vec![row(1, b"one")]).await.unwrap();
    assert_eq!(keys(&driver).await, [1]);
    drop(driver);
    assert_eq!(keys(&bench.open().await).await, [1]);
}

#[tokio::test]
async fn space_can_be_freed_on_a_full_disk() {
    let segment_bytes = 1 << 20;
    let bench = Bench::new();
    let open = || Embedded::open_with(bench.directory.path(), Arc::new(bench.disk.clone()), segment_bytes);
    let driver = open().await.unwrap();
    for key in 0..300 {
        driver.put(vec![row(key, &noise(key, 10_000))]).await.unwrap();
    }
    let before = bench.bytes();
    bench.disk.set_space(0);
    let error = driver.put(vec![row(300, &noise(300, 10_000))]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    driver.put(vec![Row { table: Table::Meta, ..row(1, b"what the store remembers") }]).await.unwrap();
    let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
    // The first segment has more needed rows than there is space for.
    driver.delete((0..70).chain(100..210).map(gone).collect()).await.unwrap();
    for _ in 0..3 {
        driver.settle().await.unwrap();
    }
    assert!(bench.bytes() < before * 3 / 4, "{} of {before} bytes remain", bench.bytes());
    driver.delete((70..100).map(gone).collect()).await.unwrap();
    driver.settle().await.unwrap();
    assert!(bench.bytes() < before / 2, "{} of {before} bytes remain", bench.bytes());
    // New rows fit again. A start on a disk with space creates the reserve again, so that deletes work on the next full disk.
    driver.put(vec![row(300, &noise(300, 10_000))]).await.unwrap();
    drop(driver);
    bench.disk.set_space(100_000);
    let driver = open().await.unwrap();
    bench.disk.set_space(0);
    driver.delete((210..220).map(gone).collect()).await.unwrap();
    assert_eq!(keys(&driver).await, (220..301).collect::<Vec<_>>());
}
