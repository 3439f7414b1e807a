//! Tests that this version uses the data directories of older versions, and refuses those of newer ones without changing them.

#[path = "../../server/tests/support/agent.rs"]
mod agent;
#[path = "support/filled.rs"]
mod filled;
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::content;
use support::{Server, run};
use tacho_model::{Kind, MatchOp, Matcher, SeriesId, TimeRange};
use tacho_server::clock::SystemClock;
use tacho_store::{Options, Store};

/// Number of frames in each golden directory (`crates/server/examples/golden_directory.rs`).
const FRAMES: u64 = 60;
/// The samples of the series `line` that were not deleted have these numbers.
const LINES: std::ops::RangeInclusive<i64> = 11..=60;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// All files below a directory except locks, with their contents.
fn contents(data: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![data.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "LOCK" {
                all.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    all
}

fn golden() -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/directory");
    let entries = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
}

#[test]
fn directories_of_older_versions_are_checked_backed_up_and_served() {
    let directories = golden();
    assert!(!directories.is_empty());
    for directory in directories {
        let place = tempfile::tempdir().unwrap();
        let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
        copy(&directory, &data);
        let before = contents(&data);
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let checked = run(&["check", &path(&data)]);
        assert_eq!(checked.0, Some(0), "{}: {checked:?}", directory.display());
        let saved = run(&["backup", "create", &path(&data), &path(&at)]);
        assert_eq!(saved.0, Some(0), "{saved:?}");
        assert!(contents(&data) == before, "a check or a backup changes {}", directory.display());
        let restored = run(&["restore", &path(&at), &path(&out)]);
        assert_eq!(restored.0, Some(0), "{restored:?}");
        for data in [&data, &out] {
            let server = Server::start(data);
            let rules = server.get("/api/v1/probes").text();
            assert!(rules.contains("com.shop..*") && rules.contains("aggregate"), "{rules}");
            assert_eq!(server.post("/write", &[], b"line,host=b value=1 1700000000000000000").status, 204);
            assert_eq!(server.stop().code(), Some(0));
            compare(data);
            let checked = run(&["check", &path(data)]);
            assert_eq!(checked.0, Some(0), "{checked:?}");
        }
    }
}

/// Compares the records of a golden directory with the sent records. Of calls and of the series `line`, compares only the times.
fn compare(data: &Path) {
    filled::in_runtime(async {
        let driver =
            tacho_drivers::open(&format!("embedded:{}", data.join("chunks").display())).await.unwrap();
        let clock = Arc::new(SystemClock);
        let store = Store::open(driver, &data.join("journal"), Options::default(), clock).await.unwrap();
        assert_eq!(store.session_acked(77), FRAMES);
        let heap = find(&store, Kind::Sample, &[("__name__", "heap")]);
        let expect: Vec<_> = (1..=FRAMES).flat_map(content::samples).collect();
        assert_eq!(store.samples(heap, TimeRange::ALL).await.unwrap(), expect);
        let log = find(&store, Kind::Entry, &[("__name__", "log")]);
        let expect: Vec<_> = (1..=FRAMES).flat_map(content::entries).collect();
        assert_eq!(store.entries(log, TimeRange::ALL).await.unwrap(), expect);
        let calls = find(&store, Kind::Execution, &[("__name__", "executions")]);
        let blocks = store.executions(calls, TimeRange::ALL).await.unwrap();
        let mut starts: Vec<i64> =
            blocks.iter().flat_map(|block| block.rows().map(|row| row.to_segment().start)).collect();
        starts.sort_unstable();
        assert_eq!(starts, (1..=FRAMES).map(content::base).collect::<Vec<_>>());
        let line = find(&store, Kind::Sample, &[("__name__", "line"), ("host", "a")]);
        let samples = store.samples(line, TimeRange::ALL).await.unwrap();
        let times: Vec<i64> = samples.iter().map(|sample| sample.at).collect();
        let expect: Vec<i64> = LINES.map(|n| 1_700_000_000_000_000_000 + n * 1_000_000_000).collect();
        assert_eq!(times, expect);
        store.close().await.unwrap();
    });
}

fn find(store: &Store, kind: Kind, labels: &[(&str, &str)]) -> SeriesId {
    let equal = |(label, value): &(&str, &str)| Matcher::new(label, MatchOp::Equal, value).unwrap();
    let found = store.find(kind, &labels.iter().map(equal).collect::<Vec<_>>());
    let [(id, _)] = &found[..] else { panic!("{labels:?}: {found:?}") };
    *id
}

/// A change that turns a file into one of a newer version.
type Change = dyn Fn(&mut Vec<u8>);

/// Increments the version at `version`, and corrects the CRC-32C at `end` over the bytes before it.
fn newer_header(bytes: &mut [u8], version: usize, end: usize) {
    bytes[version] += 1;
    let crc = crc32c::crc32c(&bytes[..end]);
    bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
}

fn newer_manifest(bytes: &mut Vec<u8>) {
    let text = String::from_utf8(bytes.clone()).unwrap().replace("manifest 1\n", "manifest 2\n");
    let body = &text[..text.find("crc32c ").unwrap()];
    *bytes = format!("{body}crc32c {:08x}\n", crc32c::crc32c(body.as_bytes())).into_bytes();
}

fn newer_json(bytes: &mut Vec<u8>) {
    *bytes =
        String::from_utf8(bytes.clone()).unwrap().replace("\"version\": 1", "\"version\": 2").into_bytes();
}

/// The path, relative to `data`, of the last file in `folder` with this extension, in the order of names.
fn newest(data: &Path, folder: &str, extension: &str) -> String {
    let files = fs::read_dir(data.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(|path| path.extension().is_some_and(|e| e == extension)).max().unwrap();
    newest.strip_prefix(data).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_directory_of_a_newer_version_is_refused_and_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    filled::directory(&original);
    let journal = newest(&original, "journal", "journal");
    // The driver may have removed the first segment file, so the last one is changed.
    let segment = newest(&original, "chunks", "segment");
    let changes: [(&[&str], &str, &Change); 5] = [
        (&[&journal], "journal has version 4, this program reads up to 3", &|bytes| {
            newer_header(bytes, 8, 44);
        }),
        (&[&segment], "segment has version 2, this program reads up to 1", &|bytes| {
            newer_header(bytes, 8, 20);
        }),
        (
            &["chunks/MANIFEST", "chunks/MANIFEST.backup"],
            "manifest has version 2, this program reads up to 1",
            &newer_manifest,
        ),
        (&["probes.json"], "probes.json has version 2, this program reads up to 1", &newer_json),
        (&["record_types.json"], "record_types.json has version 2, this program reads up to 1", &newer_json),
    ];
    for (number, (files, expect, change)) in changes.into_iter().enumerate() {
        let data = place.path().join(number.to_string());
        copy(&original, &data);
        for file in files {
            let path = data.join(file);
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
        let before = contents(&data);
        let (status, log) =
            Server::try_start(&data, &[]).err().unwrap_or_else(|| panic!("{files:?} is accepted"));
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains(expect) && log.contains("hint: use the newer tacho that wrote it"), "{log}");
        assert!(contents(&data) == before, "{files:?}: the refused start has changed the directory");
    }
}
