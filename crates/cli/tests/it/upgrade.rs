//! Tests that this version uses the data directories of older versions, and refuses those of newer ones without changing them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_chunk::Chunk;
use tacho_model::{Kind, MatchOp, Matcher, SeriesId, TimeRange};
use tacho_server::clock::SystemClock;
use tacho_store::driver::Scan;
use tacho_store::{Driver, ErrorKind, Options, Row, Store, Table};

use crate::support::agent::content;
use crate::support::checked::records;
use crate::support::{Server, filled, run};

/// Number of frames of session 77, which is in each golden directory (`crates/server/examples/golden_directory.rs`).
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

/// Files that differ, with their lengths before and after.
fn changed(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<String> {
    let names: BTreeSet<&PathBuf> = before.keys().chain(after.keys()).collect();
    let differ = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let length = |files: &BTreeMap<PathBuf, Vec<u8>>, name| files.get(name).map(Vec::len);
    differ.map(|name| format!("{name:?}: {:?} -> {:?}", length(before, name), length(after, name))).collect()
}

/// The golden directories of a kind, `directory` or `repository`, in `testdata`.
/// A copy of the newest golden directory, without its tokens, so that a server answers every request.
pub fn newest_without_tokens(place: &Path) -> PathBuf {
    let data = place.join("data");
    copy(golden("directory").last().unwrap(), &data);
    ["tokens", "tokens.used"].iter().for_each(|name| fs::remove_file(data.join(name)).unwrap());
    data
}

fn golden(kind: &str) -> Vec<PathBuf> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(kind);
    let entries = fs::read_dir(all).unwrap().map(|entry| entry.unwrap().path());
    let mut directories: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    directories.sort();
    directories
}

#[test]
fn directories_of_older_versions_are_checked_backed_up_and_served() {
    let directories = golden("directory");
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
        read_by_commands(&data, place.path());
        assert!(contents(&data) == before, "a command that only reads changes {}", directory.display());
        let bearer = token(&directory).map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = bearer.iter().map(|bearer| ("Authorization", &**bearer)).collect();
        for data in [&data, &out, &place.path().join("repaired")] {
            let server = Server::start(data);
            let ask = |path: &str| server.request("GET", path, &headers, b"").text();
            let rules = ask("/api/v1/probes");
            assert!(rules.contains("com.shop..*") && rules.contains("aggregate"), "{rules}");
            if bearer.is_some() {
                compare_newer(&ask);
            }
            assert_eq!(
                server.post("/write", &headers, b"line,host=b value=1 1700000000000000000").status,
                204
            );
            assert_eq!(server.stop().code(), Some(0));
            compare(data);
            let checked = run(&["check", &path(data)]);
            assert_eq!(checked.0, Some(0), "{checked:?}");
        }
    }
}

/// The token in the file next to a golden directory. Older directories have none.
fn token(directory: &Path) -> Option<String> {
    let path = format!("{}.token", directory.display());
    fs::read_to_string(path).ok().map(|token| token.trim().to_owned())
}

/// Runs the commands that read the records of a directory without a server. `tacho repair` writes to `repaired` in `place`.
fn read_by_commands(data: &Path, place: &Path) {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (data_text, into) = (text(data), place.join("repaired"));
    let inspected = run(&["inspect", &data_text]);
    assert!(inspected.0 == Some(0) && inspected.1.contains("heap"), "{inspected:?}");
    let repaired = run(&["repair", &data_text, "--into", &text(&into)]);
    assert_eq!(repaired.0, Some(0), "{repaired:?}");
    assert!(records(&into) == records(data), "a repair of {data_text} has other records");
    let exported = |data: &str| {
        let file = place.join("exported");
        let exported = run(&["export", "--all", "--data", data, "--output", &text(&file)]);
        assert_eq!(exported.0, Some(0), "{exported:?}");
        let mut lines: Vec<String> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let lines = exported(&data_text);
    for name in ["heap", "log", "line"] {
        assert!(lines.iter().any(|line| line.contains(&format!("\"{name}\""))), "{name}: {lines:?}");
    }
    assert_eq!(exported(&text(&into)), lines);
}

/// Compares the answers about records that only newer golden directories have.
fn compare_newer(ask: &dyn Fn(&str) -> String) {
    let range = "start=1699999990&end=1700000100";
    // 640 calls, half of them outermost. The merged chunk has a summary of them.
    let operations: serde_json::Value =
        serde_json::from_str(&ask(&format!("/api/operations?service=web&{range}"))).unwrap();
    let counts: Vec<u64> =
        operations["operations"].as_array().unwrap().iter().filter_map(|of| of["count"].as_u64()).collect();
    assert_eq!(counts, [320, 320], "{operations}");
    let types = ask("/api/v1/records");
    assert!(types.contains("order_placed") && types.contains("EUR"), "{types}");
    let placed = ask(&format!("/api/v1/entries?match[]=order_placed&{range}"));
    assert!(placed.contains("ada"), "{placed}");
    let deleted = ask(&format!("/api/v1/query_range?query=gone&step=1&{range}"));
    assert!(deleted.contains("\"result\":[]"), "{deleted}");
}

#[test]
fn the_newest_golden_directory_has_the_formats_of_this_version() {
    let directories = golden("directory");
    let newest = directories.last().unwrap();
    for name in ["chunks/END", "chunks/MANIFEST", "tokens", "tokens.used", "record_types.json", "probes.json"]
    {
        assert!(newest.join(name).is_file(), "{name}");
    }
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    copy(newest, &data);
    let all = with_driver(&data, async |driver| rows(&*driver).await);
    assert!(all.iter().any(has_summary), "no chunk of executions with a summary");
    assert!(all.iter().any(has_callers), "no chunk of version 5 with callers");
    let is_tombstone = |row: &&Row| row.table == Table::Meta && row.partition == b"tombstones";
    let versions: Vec<u8> = all.iter().filter(is_tombstone).map(|row| row.value[0]).collect();
    assert!(versions.contains(&2), "tombstones of versions {versions:?}");
}

#[test]
fn repositories_of_older_versions_are_verified_restored_and_continued() {
    let repositories = golden("repository");
    assert!(!repositories.is_empty());
    for repository in repositories {
        let place = tempfile::tempdir().unwrap();
        let [at, data, out] = ["repository", "data", "out"].map(|name| place.path().join(name));
        copy(&repository, &at);
        let directory = repository.parent().unwrap().with_file_name("directory");
        copy(&directory.join(repository.file_name().unwrap()), &data);
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let (at_text, out_text) = (text(&at), text(&out));
        for args in [
            &["backup", "list", &at_text][..],
            &["backup", "verify", &at_text],
            &["restore", &at_text, &out_text],
            &["backup", "create", &text(&data), &at_text],
            &["backup", "prune", &at_text, "--keep-last", "1"],
            &["backup", "verify", &at_text],
        ] {
            let done = run(args);
            assert_eq!(done.0, Some(0), "{args:?}: {done:?}");
        }
        assert!(records(&out) == records(&data), "{} has other records", repository.display());
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
        let calls = find(&store, Kind::Execution, &[("__name__", "executions"), ("service", "shop")]);
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

/// A part of a data directory that is changed to a newer version.
struct Newer {
    /// The file or the row, as the failures of this test name it.
    what: &'static str,
    expect: &'static str,
    change: Box<dyn Fn(&Path)>,
}

fn of_files(
    what: &'static str,
    files: impl Fn(&Path) -> Vec<String> + 'static,
    expect: &'static str,
    change: impl Fn(&mut Vec<u8>) + 'static,
) -> Newer {
    let change = move |data: &Path| {
        for file in files(data) {
            let path = data.join(file);
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
    };
    Newer { what, expect, change: Box::new(change) }
}

/// Sets the byte at `at` in the value of the first row with this table, partition and clustering key to `version`. An empty
/// partition or clustering key matches all.
fn of_row(
    (what, expect): (&'static str, &'static str),
    (table, partition, clustering): (Table, &'static [u8], &'static [u8]),
    (at, version): (usize, u8),
) -> Newer {
    let change = move |data: &Path| {
        let is_it = |row: &Row| {
            let is_in = partition.is_empty() || row.partition == partition;
            row.table == table && is_in && (clustering.is_empty() || row.clustering == clustering)
        };
        change_row(what, data, &is_it, &|value| value[at] = version);
    };
    Newer { what, expect, change: Box::new(change) }
}

/// A file or row of each kind that a start reads and that it refuses if a newer version wrote it.
fn read_at_start() -> Vec<Newer> {
    let named = |name: &'static str| move |_: &Path| vec![name.to_owned()];
    let manifests = |_: &Path| ["chunks/MANIFEST", "chunks/MANIFEST.backup"].map(str::to_owned).to_vec();
    let json = |bytes: &mut Vec<u8>| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let (content, _) = text.rsplit_once(",\n  \"crc32c\": ").unwrap();
        let newer = content.replace("\"version\": 2", "\"version\": 3");
        assert_ne!(content, newer);
        let crc = crc32c::crc32c(newer.as_bytes());
        *bytes = format!("{newer},\n  \"crc32c\": \"{crc:08x}\"\n}}\n").into_bytes();
    };
    let (meta, series) = (Table::Meta, Table::Series);
    vec![
        of_files(
            "journal",
            |data| vec![newest(data, "journal", "journal")],
            "journal has version 4, this program reads up to 3",
            |bytes| newer_header(bytes, 8, 44),
        ),
        of_files(
            "segment",
            // The driver may have removed the first segment file, so the last one is changed.
            |data| vec![newest(data, "chunks", "segment")],
            "segment has version 2, this program reads up to 1",
            |bytes| newer_header(bytes, 8, 20),
        ),
        of_files("manifest", manifests, "manifest has version 2, this program reads up to 1", newer_manifest),
        of_files(
            "probes.json",
            named("probes.json"),
            "probes.json has version 3, this program reads up to 2",
            json,
        ),
        of_files(
            "record_types.json",
            named("record_types.json"),
            "record_types.json has version 3, this program reads up to 2",
            json,
        ),
        of_files("tokens", named("tokens"), "tokens has version 3, this program reads up to 2", json),
        of_row(
            ("store", "store has version 3, this program reads up to 2"),
            (meta, b"store", b"identity"),
            (1, 3),
        ),
        of_row(
            ("flushed", "meta row has version 2, this program reads up to 1"),
            (meta, b"store", b"flushed"),
            (0, 2),
        ),
        of_row(
            ("session", "session row has version 2, this program reads up to 1"),
            (meta, b"sessions", b""),
            (0, 2),
        ),
        of_row(
            ("tombstone", "tombstone has version 3, this program reads up to 2"),
            (meta, b"tombstones", b""),
            (0, 3),
        ),
        of_row(
            ("series", "series row has version 3, this program reads up to 2"),
            (series, b"", b""),
            (0, 3),
        ),
    ]
}

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

/// The path, relative to `data`, of the last file in `folder` with this extension, in the order of names.
fn newest(data: &Path, folder: &str, extension: &str) -> String {
    let files = fs::read_dir(data.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(|path| path.extension().is_some_and(|e| e == extension)).max().unwrap();
    newest.strip_prefix(data).unwrap().to_str().unwrap().to_owned()
}

/// Runs `work` with the driver of a data directory that no process uses.
fn with_driver<T>(data: &Path, work: impl AsyncFnOnce(Arc<dyn Driver>) -> T) -> T {
    let url = format!("embedded:{}", data.join("chunks").display());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let driver = loop {
            // A process that another test starts inherits the lock of an earlier opening, and holds it until it executes its
            // program.
            match tacho_drivers::open(&url).await {
                Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
                opened => break opened.unwrap(),
            }
        };
        work(driver).await
    })
}

async fn rows(driver: &dyn Driver) -> Vec<Row> {
    let mut partitions = BTreeSet::new();
    for table in [Table::Meta, Table::Series, Table::Chunks] {
        let mut each = |partition: &[u8], _: &[u8]| {
            partitions.insert((table, partition.to_vec()));
        };
        assert!(driver.keys(table, &mut each).await.unwrap());
    }
    let mut all = Vec::new();
    for (table, partition) in partitions {
        let found = driver.read(vec![Scan::all(table, partition)]).await.unwrap();
        all.extend(found.into_iter().flatten().map(|row| row.unwrap()));
    }
    all
}

/// Changes the value of the first row that `is_it` accepts. `what` describes this row in a message. Returns the row before and
/// after the change.
fn change_row(
    what: &str,
    data: &Path,
    is_it: &dyn Fn(&Row) -> bool,
    change: &dyn Fn(&mut [u8]),
) -> (Row, Row) {
    with_driver(data, async |driver| {
        let old = rows(&*driver).await.into_iter().find(|row| is_it(row));
        let old = old.unwrap_or_else(|| panic!("the directory has no row of {what}"));
        let mut value = old.value.to_vec();
        change(&mut value);
        let new = Row { value: value.into(), ..old.clone() };
        driver.put(vec![new.clone()]).await.unwrap();
        (old, new)
    })
}

/// Fills a directory with the files and rows that [`read_at_start`] changes.
fn filled_with_tokens(data: &Path) {
    filled::directory(data);
    let added = run(&["token", "add", "me", "--role", "read", "--data", data.to_str().unwrap()]);
    assert_eq!(added.0, Some(0), "{added:?}");
}

/// Runs the commands `names` on a data directory in which `what` is newer. Checks that each fails with `expect` and changes
/// nothing.
fn each_reader_refuses(what: &str, data: &Path, place: &Path, names: &[&str], expect: &str) {
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (data_text, into) = (text(data), text(&place.join("into")));
    let output = text(&place.join("exported"));
    let before = contents(data);
    let commands: [(&str, Vec<&str>); 4] = [
        ("check", vec![]),
        ("repair", vec!["--into", &into]),
        ("inspect", vec![]),
        ("export", vec!["--all", "--output", &output, "--data"]),
    ];
    for (name, flags) in commands.into_iter().filter(|(name, _)| names.contains(name)) {
        let _ = fs::remove_dir_all(&into);
        let mut args = vec![name];
        match name {
            "export" => args.extend(flags.into_iter().chain([&*data_text])),
            _ => args.extend([&*data_text].into_iter().chain(flags)),
        }
        let (code, stdout, stderr) = run(&args);
        let code_expected = if name == "check" { 2 } else { 1 };
        assert_eq!(code, Some(code_expected), "{what}, {args:?}: {stdout}{stderr}");
        assert!(stderr.contains(expect), "{what}, {args:?}, expected {expect:?}: {stderr}");
        assert!(contents(data) == before, "{what}, {args:?} has changed the directory");
    }
}

#[test]
fn a_directory_of_a_newer_version_is_refused_by_each_reader_and_not_changed() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    filled_with_tokens(&original);
    for Newer { what, expect, change } in read_at_start() {
        let [data, at, out] = ["data", "repository", "out"].map(|name| place.path().join(name));
        for path in [&data, &at] {
            let _ = fs::remove_dir_all(path);
        }
        copy(&original, &data);
        change(&data);
        each_reader_refuses(what, &data, place.path(), &["check", "repair", "inspect", "export"], expect);
        // A backup copies files of any version. A restore checks them.
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let saved = run(&["backup", "create", &path(&data), &path(&at)]);
        assert_eq!(saved.0, Some(0), "{what}: {saved:?}");
        let (code, _, stderr) = run(&["restore", &path(&at), &path(&out)]);
        assert!(code == Some(1) && stderr.contains(expect) && !out.exists(), "{what}: {stderr}");
        let before = contents(&data);
        let (status, log) =
            Server::try_start(&data, &[]).err().unwrap_or_else(|| panic!("{what} is accepted"));
        assert_eq!(status.code(), Some(1), "{what}: {log}");
        assert!(log.contains(expect), "{what}, expected {expect:?}: {log}");
        assert!(log.contains("hint: use the newer tacho that wrote it"), "{what}: {log}");
        assert_eq!(changed(&before, &contents(&data)), Vec::<String>::new(), "{what}: {log}");
    }
}

/// The position of the chunk in the value of a row of the Chunks table, after the prefix of a merge.
fn chunk_at(value: &[u8]) -> usize {
    value.windows(4).position(|four| four == b"TCHK").expect("the row has a chunk")
}

fn newer_chunk(value: &mut [u8]) {
    let at = chunk_at(value);
    value[at + 4] = 6;
}

/// Changes the version of the summary of a chunk, with valid checksums (`docs/format/chunk.md`).
fn newer_summary(value: &mut [u8]) {
    let at = chunk_at(value);
    let chunk = &mut value[at..];
    let part = Chunk::summary_parts(chunk).unwrap().remove(1);
    let old = crc32c::crc32c(&chunk[part.clone()]).to_le_bytes();
    chunk[part.start] = 5;
    let new = crc32c::crc32c(&chunk[part.clone()]).to_le_bytes();
    let crc = chunk[..part.start].windows(4).rposition(|four| four == old).unwrap();
    chunk[crc..crc + 4].copy_from_slice(&new);
    let header = u32::from_le_bytes(chunk[8..12].try_into().unwrap()) as usize;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&chunk[..16]), &chunk[20..20 + header]);
    chunk[16..20].copy_from_slice(&crc.to_le_bytes());
}

fn is_chunk_of(kind: Kind) -> impl Fn(&Row) -> bool {
    move |row| row.table == Table::Chunks && row.partition.first() == Some(&(kind as u8))
}

fn has_summary(row: &Row) -> bool {
    let is_summarized = |row: &Row| Chunk::open(&row.value[chunk_at(&row.value)..]).unwrap().header().summary;
    is_chunk_of(Kind::Execution)(row) && is_summarized(row).is_some_and(|summary| summary.bytes > 0)
}

fn has_callers(row: &Row) -> bool {
    let tables = |row: &Row| Chunk::open(&row.value[chunk_at(&row.value)..]).unwrap().header().tables;
    is_chunk_of(Kind::Execution)(row) && tables(row).is_some_and(|tables| tables.callers > 0)
}

/// A start does not read chunks.
#[test]
fn a_chunk_of_a_newer_version_is_refused_by_readers_and_stays_as_it_is_until_a_newer_version_reads_it() {
    let place = tempfile::tempdir().unwrap();
    let [original, data, config] = ["original", "data", "tacho.toml"].map(|name| place.path().join(name));
    filled::directory(&original);
    fs::write(&config, "merge_rows = 2\nmerge_cpu_percent = 100\nmerge_bytes_per_second = 1000000000\n")
        .unwrap();
    let flags = ["--selfwatch-seconds", "0", "--config", config.to_str().unwrap()];
    let whole = records(&original);
    let range = "start=1700000000&end=1700100000";
    let query = format!("/api/v1/query_range?query=count(count_over_time(exact[1h]))&step=3600&{range}");
    let traces = format!("/api/operations?{range}");
    let entries = format!("/api/v1/entries?match[]=log&{range}");
    let (all, of_calls) = (["check", "repair", "inspect", "export"], ["check", "repair", "inspect"]);
    let chunk = "version 6";
    type Case<'a> =
        (&'a str, &'a dyn Fn(&Row) -> bool, &'a dyn Fn(&mut [u8]), &'a [&'a str], &'a str, &'a str);
    let (samples, logged, calls) =
        (is_chunk_of(Kind::Sample), is_chunk_of(Kind::Entry), is_chunk_of(Kind::Execution));
    let merged = |row: &Row| is_chunk_of(Kind::Sample)(row) && row.value.starts_with(b"TREP");
    let prefix = "replacement has version 9, this program reads up to 3";
    let cases: [Case<'_>; 4] = [
        ("samples", &samples, &newer_chunk, &all, chunk, &query),
        ("entries", &logged, &newer_chunk, &all, chunk, &entries),
        ("executions", &calls, &newer_chunk, &of_calls, chunk, &traces),
        ("replacement", &merged, &|value| value[4] = 9, &all, prefix, &query),
    ];
    for (what, is_it, change, refusing, expect, path) in cases {
        let _ = fs::remove_dir_all(&data);
        copy(&original, &data);
        let (old, new) = change_row(what, &data, is_it, change);
        each_reader_refuses(what, &data, place.path(), refusing, expect);
        let (_, _, stderr) = run(&["check", data.to_str().unwrap()]);
        assert!(stderr.contains("file chunks/"), "{what}: {stderr}");
        let server = Server::start_with(&data, &flags);
        let answer = server.get(path);
        assert!(answer.status >= 400 && answer.text().contains(expect), "{what}: {}", answer.text());
        for _ in 0..2 {
            assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200, "{what}");
        }
        assert_eq!(server.stop().code(), Some(0), "{what}");
        let is_kept = with_driver(&data, async |driver| {
            let is_kept = rows(&*driver).await.contains(&new);
            driver.put(vec![old.clone()]).await.unwrap();
            is_kept
        });
        assert!(is_kept, "{what}: the row has changed");
        // No record was lost or doubled: the merges have changed only other rows.
        assert!(records(&data) == whole, "{what}: other records");
        let checked = run(&["check", data.to_str().unwrap()]);
        assert_eq!(checked.0, Some(0), "{what}: {checked:?}");
    }
}

/// A server reads the calls instead of the summary.
#[test]
fn a_summary_of_a_newer_version_is_refused_by_checks_and_not_needed_by_servers() {
    let place = tempfile::tempdir().unwrap();
    let data = newest_without_tokens(place.path());
    change_row("summary", &data, &has_summary, &newer_summary);
    let expect = "summary of calls has version 5, this program reads up to 4";
    each_reader_refuses("summary", &data, place.path(), &["check", "repair"], expect);
    let server = Server::start(&data);
    compare_newer(&|path| server.get(path).text());
}
