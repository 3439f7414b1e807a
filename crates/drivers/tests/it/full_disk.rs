//! On a full disk, ordinary rows do not use the reserve (the space that the file `RESERVE` keeps for deletions and other writes
//! that free space), and a segment is rewritten only if the copy fits.

use std::sync::Arc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tacho_drivers::embedded::Embedded;
use tacho_store::ErrorKind;
use tacho_store::driver::{Delete, Driver, Row, Table};

use crate::common::{Bench, keys, noise, row};

/// A reserve that is no regular file takes no space, and opening a FIFO would wait for its reader.
#[tokio::test]
async fn another_object_in_place_of_the_reserve_is_neither_used_nor_changed() {
    let bench = Bench::new();
    let path = bench.directory.path().join("RESERVE");
    let aside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(aside.path(), vec![7; 156]).unwrap();
    for name in ["FIFO", "link", "directory"] {
        drop(bench.open().await);
        std::fs::remove_file(&path).unwrap();
        match name {
            // Not with the program `mkfifo`: its process would inherit the locks of other tests until it executes the program.
            "FIFO" => mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
            "link" => std::os::unix::fs::symlink(aside.path(), &path).unwrap(),
            _ => std::fs::create_dir(&path).unwrap(),
        }
        let driver = bench.open().await;
        driver.put(vec![row(1, b"one")]).await.unwrap();
        bench.disk.set_space(0);
        let error = driver.delete(vec![Delete::row(Table::Chunks, b"p", 1u32.to_be_bytes())]).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::StorageFull, "{name}");
        bench.disk.set_space(u64::MAX);
        assert_eq!(keys(&driver).await, [1], "{name}");
        drop(driver);
        assert!(!path.is_file() || name == "link", "{name}");
        if name == "directory" { std::fs::remove_dir(&path) } else { std::fs::remove_file(&path) }.unwrap();
        assert_eq!(std::fs::read(aside.path()).unwrap(), [7; 156], "{name}");
    }
}

#[tokio::test]
async fn ordinary_rows_do_not_use_the_released_reserve() {
    let segment_bytes = 1 << 20;
    let bench = Bench::new();
    let disk = Arc::new(bench.disk.clone());
    let driver = Embedded::open_with(bench.directory.path(), disk, segment_bytes).await.unwrap();
    for key in 0..150 {
        driver.put(vec![row(key, &noise(key, 10_000))]).await.unwrap();
    }
    bench.disk.set_space(0);
    let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
    driver.delete(vec![gone(0)]).await.unwrap();
    // The reserve of 16 KiB is released. Ordinary rows do not use it, and rows of the Meta table use a quarter of it.
    assert_eq!(driver.put(vec![row(200, b"x")]).await.unwrap_err().kind(), ErrorKind::StorageFull);
    let meta = |key| Row { table: Table::Meta, ..row(key, &[1; 1_000]) };
    let mut put = 0;
    while driver.put(vec![meta(put)]).await.is_ok() {
        put += 1;
        assert!(put < 10, "rows of the Meta table use up the reserve");
    }
    assert_eq!(put, 4);
    driver.put_to_free(vec![row(1, b"less")]).await.unwrap();
    // Nearly all rows of the sealed segment are deleted, so its rest fits into the reserve.
    driver.delete((2..106).map(gone).collect()).await.unwrap();
    driver.settle().await.unwrap();
    driver.put(vec![row(200, b"x")]).await.unwrap();
    assert!(bench.directory.path().join("RESERVE").exists(), "the reserve was not created again");
}

/// Half of the rows of a segment are needed, and there is space for a part of them only.
#[tokio::test]
async fn a_segment_is_rewritten_only_if_the_copy_fits() {
    let segment_bytes = 1 << 20;
    let bench = Bench::new();
    let disk = Arc::new(bench.disk.clone());
    let driver = Embedded::open_with(bench.directory.path(), disk, segment_bytes).await.unwrap();
    for key in 0..150 {
        driver.put(vec![row(key, &noise(key, 10_000))]).await.unwrap();
    }
    let gone = |key: u32| Delete::row(Table::Chunks, b"p", key.to_be_bytes());
    bench.disk.set_space(300_000);
    driver.delete((0..50).map(gone).collect()).await.unwrap();
    let before = bench.bytes();
    driver.settle().await.unwrap();
    assert_eq!(bench.bytes(), before, "a copy was begun that does not fit");
    assert!(bench.directory.path().join("RESERVE").exists());
    bench.disk.set_space(700_000);
    driver.settle().await.unwrap();
    assert!(bench.bytes() + 400_000 < before, "{} of {before} bytes", bench.bytes());
    assert_eq!(keys(&driver).await, (50..150).collect::<Vec<_>>());
}
