//! Segment files of version 1 stay readable (`docs/format/segment.md`). The golden file is never made anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_drivers::embedded::Embedded;
use tacho_store::disk::RealDisk;
use tacho_store::driver::{Delete, Driver, Row, Scan, Table};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/segment/v1.segment")
}

fn row(table: Table, clustering: &[u8], value: &'static [u8]) -> Row {
    let value = Bytes::from_static(value);
    Row { table, partition: b"p".to_vec(), clustering: clustering.to_vec(), value }
}

#[tokio::test]
async fn the_golden_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(golden(), directory.path().join("00000001.segment")).unwrap();
    let driver = Embedded::open(directory.path()).await.unwrap();
    for (table, expect) in [
        (Table::Chunks, vec![row(Table::Chunks, b"\x00", b"one"), row(Table::Chunks, b"\xff", b"three")]),
        (Table::Series, vec![]),
        (Table::Meta, vec![row(Table::Meta, b"", b"")]),
    ] {
        let found: Vec<Row> =
            driver.scan(Scan::all(table, *b"p")).await.unwrap().try_collect().await.unwrap();
        assert_eq!(found, expect);
    }
}

#[tokio::test]
async fn today_the_same_bytes_are_written() {
    let directory = tempfile::tempdir().unwrap();
    // Full with the third write, so that it is sealed.
    let driver = Embedded::open_with(directory.path(), Arc::new(RealDisk), 150).await.unwrap();
    driver.put(vec![row(Table::Chunks, b"\x00", b"one"), row(Table::Chunks, b"\x01", b"two")]).await.unwrap();
    driver.delete(vec![Delete::row(Table::Chunks, *b"p", [1])]).await.unwrap();
    driver.put(vec![row(Table::Chunks, b"\xff", b"three"), row(Table::Meta, b"", b"")]).await.unwrap();
    drop(driver);
    let written = std::fs::read(directory.path().join("00000001.segment")).unwrap();
    assert_eq!(written, std::fs::read(golden()).unwrap());
}
