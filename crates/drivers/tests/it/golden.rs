//! Segment files of version 1 stay readable, and so do directories with and without a manifest
//! (`docs/format/segment.md`). The golden files are never regenerated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_drivers::embedded::Embedded;
use tacho_store::disk::RealDisk;
use tacho_store::driver::{Delete, Driver, Health, Row, Scan, Table};

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
        let found: Vec<Row> = driver
            .scan(Scan::all(table, *b"p"))
            .await
            .unwrap()
            .map_ok(Result::unwrap)
            .try_collect()
            .await
            .unwrap();
        assert_eq!(found, expect);
    }
}

/// Expects the content of `testdata/segment/with-manifest` and `without-manifest`: rows 0 to 13 except 3. Row 4 was put
/// twice.
async fn check_rows(directory: &Path) {
    let driver = Embedded::open(directory).await.unwrap();
    let found: Vec<Row> = driver
        .scan(Scan::all(Table::Chunks, *b"p"))
        .await
        .unwrap()
        .map_ok(Result::unwrap)
        .try_collect()
        .await
        .unwrap();
    let text = |key: u8| match (key, key / 2) {
        (4, _) => "again".to_owned(),
        (key, half) if key % 2 == 0 => format!("value {half}, {}", "x".repeat(20)),
        (_, half) => format!("beside {half}"),
    };
    let expect = (0..14).filter(|key| *key != 3).map(|key| (vec![key], Bytes::from(text(key))));
    let found = found.into_iter().map(|row| (row.clustering, row.value));
    assert_eq!(found.collect::<Vec<_>>(), expect.collect::<Vec<_>>());
    assert_eq!(driver.health(), Health::default());
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/segment").join(name)
}

/// Files of a directory by name, without `LOCK`, `RESERVE` and `END`.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let files = entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap()));
    files.filter(|(name, _)| !["LOCK", "RESERVE", "END"].contains(&&**name)).collect()
}

#[tokio::test]
async fn directories_with_and_without_a_manifest_are_read() {
    for name in ["without-manifest", "with-manifest"] {
        let directory = tempfile::tempdir().unwrap();
        for (name, bytes) in files(&testdata(name)) {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        }
        for _ in 0..2 {
            check_rows(directory.path()).await;
            let manifest = std::fs::read_to_string(directory.path().join("MANIFEST")).unwrap();
            for line in ["segment 1 sealed ", "segment 2 sealed ", "segment 3 growing "] {
                assert!(manifest.contains(line), "{line:?} in {manifest}");
            }
        }
    }
}

#[tokio::test]
async fn the_golden_bytes_are_still_written() {
    let directory = tempfile::tempdir().unwrap();
    let driver = Embedded::open_with(directory.path(), Arc::new(RealDisk), 300).await.unwrap();
    let put = |key: u8, value: String| Row { value: value.into(), ..row(Table::Chunks, &[key], b"") };
    for key in 0..7 {
        let value = put(2 * key, format!("value {key}, {}", "x".repeat(20)));
        driver.put(vec![value, put(2 * key + 1, format!("beside {key}"))]).await.unwrap();
    }
    driver.delete(vec![Delete::row(Table::Chunks, *b"p", [3])]).await.unwrap();
    driver.put(vec![put(4, "again".into())]).await.unwrap();
    drop(driver);
    let expect = files(&testdata("with-manifest"));
    assert!(expect.len() == 5 && files(directory.path()) == expect);
}
