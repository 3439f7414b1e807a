//! Tests `tacho check`, `tacho repair` and the start of the server on damaged data directories.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tacho_drivers::embedded::Embedded;
use tacho_model::Kind;
use tacho_store::{Driver, Table};

use crate::support::checked::{check, copy, files, is_segment, of, records, repair, unlocked};
use crate::support::damaged::{contents, damage_row};
use crate::support::filled::{SECOND, START, directory, in_runtime};
use crate::support::{Server, run, run_refused, wait_for};

/// Keys of the rows of `Table::Series` for samples, one row for each group. A key is the partition, then the clustering.
fn groups_of_samples(data: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    in_runtime(async {
        let driver = unlocked(|| async { Embedded::open_read_only(&data.join("chunks")).await }).await;
        let mut each = |partition: &[u8], clustering: &[u8]| {
            if clustering.first() == Some(&(Kind::Sample as u8)) {
                found.push([partition, clustering].concat());
            }
        };
        driver.keys(Table::Series, &mut each).await.unwrap();
    });
    found
}

/// The segment file has a torn end, and the journal has records, so a successful start changes files.
#[test]
fn a_start_that_is_refused_because_of_rules_or_a_port_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    for round in 0..2 {
        assert_eq!(server.post("/write", &[], format!("m value={round} {START}").as_bytes()).status, 204);
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    assert_eq!(server.post("/write", &[], format!("m value=3 {}", START + SECOND).as_bytes()).status, 204);
    server.kill();
    std::fs::File::options().append(true).open(data.join(SEGMENT)).unwrap().write_all(&[7; 700]).unwrap();
    let found = || {
        let is_lock = |path: &PathBuf| path.file_name().is_some_and(|name| name == "LOCK");
        let contents = contents(&data).into_iter().filter(|(path, _)| !is_lock(path));
        (tree(&data), contents.collect::<Vec<_>>())
    };
    let probes = data.join("probes.json");
    std::fs::write(&probes, "{").unwrap();
    let before = found();
    let (code, stderr) = refused_start(&data);
    assert!(code == Some(1) && stderr.contains("cannot use the rules for probes in"), "{stderr}");
    assert!(found() == before, "{stderr}");
    std::fs::remove_file(&probes).unwrap();

    let before = found();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, free) = (taken.local_addr().unwrap().to_string(), "127.0.0.1:0");
    for [http, records, key] in [[&address, free, "http"], [free, &address, "records"]] {
        let at = ["serve", "--http", http, "--records", records, "--data"];
        let (code, _, stderr) = run(&[&at[..], &[data.to_str().unwrap()]].concat());
        assert!(code == Some(1) && stderr.contains(&format!("cannot listen on {key} {address}")), "{stderr}");
        assert!(found() == before, "{stderr}");
    }
    let at = ["serve", "--http", &address, "--records", &address, "--data", data.to_str().unwrap()];
    let (code, _, stderr) = run(&at);
    assert!(
        code == Some(2) && stderr.contains(&format!("both {address}: each needs its own port")),
        "{stderr}"
    );
    assert!(found() == before, "{stderr}");
    // The server is stopped before the comparison, because it could remove a file during the comparison.
    assert_eq!(Server::start(&data).stop().code(), Some(0));
    assert!(found() != before, "the start changed nothing");
}

#[test]
fn check_and_log_agree_that_a_damaged_header_of_a_journal_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    assert_eq!(server.post("/write", &[], format!("m value=1 {START}").as_bytes()).status, 204);
    server.kill();
    let path = journal(&data);
    spoil(&path);
    let (code, findings, _) = check(&data, &[]);
    let name = path.file_name().unwrap().to_str().unwrap();
    let expect = format!(
        "\"header-damaged\" \"journal/{name}\" \"one of two headers is damaged: not a journal file\""
    );
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (1, vec![expect], vec![]));
    assert_eq!(findings[0]["remedy"], "nothing is lost; tacho repair writes new files");
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    let shown = server.get(&format!("/api/v1/query?query=m&time={}", START / SECOND)).text();
    assert!(shown.contains("\"1\"") && !shown.contains("warnings"), "{shown}");
    let (_, log) = server.stop_with_log();
    assert!(log.contains("one of two headers of the journal is damaged, nothing is lost"), "{log}");
    assert!(!log.contains("record skipped"), "{log}");
    let (code, findings, _) = check(&data, &[]);
    assert_eq!(
        (code, of(&findings, "damage"), of(&findings, "warning")),
        (0, vec![], vec![]),
        "{findings:?}"
    );
    let kept = findings.iter().find(|found| found["kind"] == "leftover").unwrap();
    assert!(kept["file"].as_str().unwrap().starts_with("journal/quarantine/"), "{kept}");
    assert_eq!(kept["remedy"], "nothing is lost: remove the file from quarantine/");
}

#[test]
fn lost_labels_of_a_group_are_restored_from_a_journal() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged, into) =
        (place.path().join("data"), place.path().join("damaged"), place.path().join("new"));
    directory(&data);
    let groups = groups_of_samples(&data);
    assert!(groups.len() < 12, "no group has several members");
    copy(&data, &damaged);
    groups.iter().for_each(|key| damage_row(&damaged, key));
    let before = contents(&damaged);
    let (code, findings, summary) = check(&damaged, &[]);
    assert_eq!(code, 1, "{findings:?}");
    let unknown = of(&findings, "damage").into_iter().filter(|found| found.contains("series-unknown"));
    assert_eq!(unknown.count(), groups.len(), "{findings:?}");
    let remedies = remedies(&findings, "series-unknown");
    assert_eq!(remedies, BTreeSet::from(["use tacho repair: it writes the labels again"]));
    assert_eq!(summary["findings"]["lost"]["samples"], 0, "{findings:?}");
    let (code, losses, _) = repair(&damaged, &into);
    assert_eq!((code, losses), (0, vec![]));
    assert_eq!(records(&into), records(&data));
    assert_eq!(contents(&damaged), before);
    let (code, findings, _) = check(&into, &[]);
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
}

/// Keys of the rows of `Table::Chunks`.
fn keys_of_chunks(data: &Path) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    in_runtime(async {
        let driver = unlocked(|| async { Embedded::open_read_only(&data.join("chunks")).await }).await;
        let mut each = |partition: &[u8], clustering: &[u8]| {
            found.insert([partition, clustering].concat());
        };
        driver.keys(Table::Chunks, &mut each).await.unwrap();
    });
    found
}

/// The segment file grows, so it has no index that would confirm the keys of damaged rows.
#[test]
fn a_damaged_row_that_a_merge_has_replaced_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let [data, into] = ["data", "new"].map(|name| place.path().join(name));
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    let flush = |lines: String| {
        assert_eq!(server.post("/write", &[], lines.as_bytes()).status, 204);
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    };
    let mut state = 1u64;
    let mut noise = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let merge = |server: &Server| assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200);
    // The file has so many needed bytes that the server does not replace it after the last merge.
    flush((0..8_000).map(|n| format!("noise value={} {}\n", noise(), START + n * SECOND)).collect());
    merge(&server);
    for round in 0..2 {
        let line = |n: i64| format!("m value={} {}\n", n * n % 97, START + (round * 100 + n) * SECOND);
        flush((0..100).map(line).collect());
    }
    server.kill();
    let before = keys_of_chunks(&data);
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    merge(&server);
    server.kill();
    let after = keys_of_chunks(&data);
    let replaced: Vec<&Vec<u8>> = before.difference(&after).collect();
    assert!(!replaced.is_empty(), "{before:?}");
    let all = records(&data);
    assert_eq!(all.len(), 8_200);
    let segment = files(&data).into_iter().rfind(|path| is_segment(path)).unwrap();
    let whole = std::fs::read(&segment).unwrap();
    for key in replaced {
        let mut bytes = whole.clone();
        let at = bytes.windows(key.len()).position(|window| window == key.as_slice()).unwrap();
        // The length of the value is before the key.
        let value_bytes = u32::from_le_bytes(bytes[at - 4..at].try_into().unwrap()) as usize;
        bytes[at + key.len() + value_bytes - 1] ^= 1;
        std::fs::write(&segment, &bytes).unwrap();
        let (code, findings, summary) = check(&data, &[]);
        let damage = of(&findings, "damage");
        assert_eq!((code, damage.len()), (1, 1), "{findings:?}");
        assert!(damage[0].starts_with("\"row-damaged\" "), "{damage:?}");
        assert!(damage[0].contains("the row was replaced or deleted, nothing is lost"), "{damage:?}");
        let lost = &summary["findings"]["lost"];
        assert_eq!((&lost["samples"], &lost["unknown"]), (&Value::from(0), &Value::from(0)), "{summary}");
        let (code, losses, _) = repair(&data, &into);
        assert_eq!((code, losses), (0, vec![]));
        assert_eq!(records(&into), all);
    }
}

/// The journal in the directory is not of the first generation. This shows that earlier generations were flushed to `chunks/`.
#[test]
fn a_directory_without_its_flushed_records_is_not_clean() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged, into) =
        (place.path().join("data"), place.path().join("damaged"), place.path().join("new"));
    directory(&data);
    let in_journal: BTreeSet<String> =
        records(&data).into_iter().filter(|record| record.contains(" of round 10 took ")).collect();
    assert_eq!(in_journal.len(), 100);
    let is_of_chunks = |path: &PathBuf| {
        is_segment(path) || path.file_name().unwrap().to_str().unwrap().starts_with("MANIFEST")
    };
    let remove_all = |at: &Path| std::fs::remove_dir_all(at.join("chunks")).unwrap();
    let remove_segments = |at: &Path| {
        files(at).into_iter().filter(is_of_chunks).for_each(|path| std::fs::remove_file(path).unwrap());
    };
    // `chunks/` was lost, and is empty again.
    let empty = |at: &Path| {
        remove_all(at);
        in_runtime(async { drop(Embedded::open(&at.join("chunks")).await.unwrap()) });
    };
    for name in ["no chunks", "no segments", "new chunks"] {
        copy(&data, &damaged);
        match name {
            "no chunks" => remove_all(&damaged),
            "no segments" => remove_segments(&damaged),
            _ => empty(&damaged),
        }
        let before = tree(&damaged);
        let (code, stderr) = refused_start(&damaged);
        assert_eq!(code, Some(1), "{name}: {stderr}");
        assert!(stderr.contains("the data flushed before them is missing"), "{name}: {stderr}");
        assert_eq!(tree(&damaged), before, "{name}: a refused start has changed the directory");
        let (code, findings, _) = check(&damaged, &[]);
        let missing: Vec<&Value> = findings.iter().filter(|found| found["kind"] == "file-missing").collect();
        assert_eq!((code, missing.len()), (1, 1), "{name}: {findings:?}");
        assert_eq!(missing[0]["file"], "chunks", "{name}: {findings:?}");
        let (code, losses, summary) = repair(&damaged, &into);
        assert_eq!((code, losses.len()), (1, 1), "{name}: {losses:?}");
        assert_eq!(summary["findings"]["lost"]["unknown"], 1, "{name}: {summary}");
        assert!(in_journal.is_subset(&records(&into)), "{name}");
        std::fs::remove_dir_all(&into).unwrap();
        let (_, stdout, _) = run(&["repair", damaged.to_str().unwrap(), "--into", into.to_str().unwrap()]);
        let saved = stdout.lines().find(|line| line.starts_with("saved: ")).unwrap();
        assert!(saved.ends_with(" calls, all from the journals and none from chunks/"), "{name}: {saved}");
        assert_eq!(tree(&damaged), before, "{name}");
        let (code, findings, _) = check(&into, &[]);
        assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]), "{name}");
    }
}

/// The segment file ends after the row that lists a journal as required, and before the rows of the flush that removed the
/// journal.
#[test]
fn a_segment_that_ends_early_is_reported_besides_a_removed_journal() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let segment = data.join("chunks/00000001.segment");
    let length = || std::fs::metadata(&segment).map_or(0, |metadata| metadata.len());
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    let mut named = 0;
    for round in 0..3 {
        let before = length();
        let line = format!("m,host=a value={round} {}\n", START + round * SECOND);
        assert_eq!(server.post("/write", &[], line.as_bytes()).status, 204);
        named = wait_for("the list of required journals", || Some(length()).filter(|now| *now > before));
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    server.kill();
    assert!(length() > named);
    std::fs::File::options().write(true).open(&segment).unwrap().set_len(named).unwrap();
    let (code, findings, _) = check(&data, &[]);
    let damage = of(&findings, "damage");
    assert_eq!((code, damage.len()), (1, 2), "{findings:?}");
    assert!(damage[0].starts_with("\"file-short\" \"chunks/00000001.segment\""), "{damage:?}");
    let short = findings.iter().find(|finding| finding["kind"] == "file-short").unwrap();
    assert!(short["effect"].as_str().unwrap().starts_with("unless another finding prevents it"), "{short}");
    assert!(damage[1].starts_with("\"file-missing\" \"journal/00000000000000000003.journal\""), "{damage:?}");
    assert!(damage[1].contains("the newest segment file lacks its end"), "{damage:?}");
    let (code, stderr) = refused_start(&data);
    assert!(code == Some(1) && stderr.contains("the newest segment file lacks its end"), "{stderr}");
}

/// Overwrites the first four bytes of a file.
fn spoil(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[..4].fill(b'#');
    std::fs::write(path, bytes).unwrap();
}

const SEGMENT: &str = "chunks/00000001.segment";

/// The only journal of a directory.
fn journal(data: &Path) -> PathBuf {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "journal");
    files(data).into_iter().find(is_journal).unwrap()
}

/// Damage that makes the server refuse the directory.
struct Refused {
    name: &'static str,
    damage: fn(&Path),
    /// A part of the server's message.
    message: &'static str,
    /// The kind of a finding of the check.
    kind: &'static str,
    /// The remedy that the finding names.
    remedy: &'static str,
}

const RENAMED: &str = "journal/00000000000000000099.journal";

const REFUSED: [Refused; 6] = [
    Refused {
        name: "journal missing",
        damage: |data| std::fs::remove_file(journal(data)).unwrap(),
        message: "does not exist, and chunks/ does not show that it was flushed",
        kind: "file-missing",
        remedy: "if the whole file still exists elsewhere, put it back; else restore the data directory from a backup, or use \
                 tacho repair to keep the rest",
    },
    Refused {
        name: "journal under another name",
        damage: |data| std::fs::rename(journal(data), data.join(RENAMED)).unwrap(),
        message: "has the name of another generation: rename it",
        kind: "file-foreign",
        remedy: "rename it to journal/00000000000000000002.journal; tacho repair excludes it unless --accept names it",
    },
    Refused {
        name: "copy of a journal under another name",
        damage: |data| {
            std::fs::copy(journal(data), data.join(RENAMED)).unwrap();
        },
        message: "is of the same generation: keep the larger one",
        kind: "file-foreign",
        remedy: "journal/00000000000000000002.journal is of the same generation: keep the larger one of the two files under \
                 that name, and move the other one out of the directory",
    },
    Refused {
        name: "segment missing",
        damage: |data| std::fs::remove_file(data.join(SEGMENT)).unwrap(),
        message: "segment files do not match the manifest",
        kind: "file-missing",
        remedy: "put the file back from a backup, or use tacho repair",
    },
    Refused {
        name: "directory in place of a segment",
        damage: |data| {
            std::fs::remove_file(data.join(SEGMENT)).unwrap();
            std::fs::create_dir(data.join(SEGMENT)).unwrap();
        },
        message: "it is not a regular file",
        kind: "file-unreadable",
        remedy: "put the file back from a backup, or use tacho repair",
    },
    Refused {
        name: "both copies of the manifest damaged",
        damage: |data| {
            spoil(&data.join("chunks/MANIFEST"));
            spoil(&data.join("chunks/MANIFEST.backup"));
        },
        message: "neither MANIFEST nor MANIFEST.backup can be read",
        kind: "manifest-damaged",
        remedy: "use tacho repair to keep the records of all segment files that exist, or restore the data directory from a \
                 backup",
    },
];

/// Before each damage, the segment file gets a torn end, which only a successful start cuts off.
#[test]
fn a_refused_start_changes_nothing_and_remedies_fit_the_damage() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged, into) =
        (place.path().join("data"), place.path().join("damaged"), place.path().join("new"));
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    let write = |second: i64| {
        let line = format!("m,host=a value={second} {}\n", START + second * SECOND);
        assert_eq!(server.post("/write", &[], line.as_bytes()).status, 204);
    };
    write(1);
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    write(2);
    // The store lists a new journal as required after it has acknowledged the first records of the journal.
    wait_for("the list of required journals with the last one", || {
        copy(&data, &damaged);
        std::fs::remove_file(journal(&damaged)).unwrap();
        let (_, findings, _) = check(&damaged, &[]);
        findings.iter().any(|finding| finding["kind"] == "file-missing").then_some(())
    });
    server.kill();
    for Refused { name, damage, message, kind, remedy } in REFUSED {
        copy(&data, &damaged);
        let mut file = std::fs::File::options().append(true).open(damaged.join(SEGMENT)).unwrap();
        std::io::Write::write_all(&mut file, b"torn").unwrap();
        damage(&damaged);
        let before = tree(&damaged);
        let (code, stderr) = refused_start(&damaged);
        assert_eq!(code, Some(1), "{name}: {stderr}");
        assert!(stderr.contains(message), "{name}: {stderr}");
        // The message about a journal with a wrong name says to rename the file, and names no commands.
        let commands: &[&str] = if kind == "file-foreign" { &[] } else { &["check", "restore", "repair"] };
        for command in commands {
            assert!(stderr.contains(&format!("tacho {command}")), "{name}: {command} in {stderr}");
        }
        assert_eq!(tree(&damaged), before, "{name}");
        let (code, findings, _) = check(&damaged, &[]);
        assert_eq!(code, 1, "{name}: {findings:?}");
        assert!(remedies(&findings, kind).contains(remedy), "{name}: {findings:?}");
        let (_, losses, _) = repair(&damaged, &into);
        let (code, findings, _) = check(&into, &[]);
        assert_eq!((code, of(&findings, "damage")), (0, vec![]), "{name}: {losses:?}");
    }
}

#[test]
fn the_server_repairs_one_damaged_copy_of_the_manifest() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory(&data);
    spoil(&data.join("chunks/MANIFEST"));
    let (code, findings, _) = check(&data, &[]);
    assert_eq!(code, 1, "{findings:?}");
    assert_eq!(
        remedies(&findings, "manifest-damaged"),
        BTreeSet::from(["start the server: it writes both copies again"])
    );
    drop(Server::start(&data));
    let (_, findings, _) = check(&data, &[]);
    assert_eq!(remedies(&findings, "manifest-damaged"), BTreeSet::new(), "{findings:?}");
}

fn remedies<'a>(findings: &'a [Value], kind: &str) -> BTreeSet<&'a str> {
    let of_kind = findings.iter().filter(|finding| finding["kind"] == kind);
    of_kind.map(|finding| finding["remedy"].as_str().unwrap()).collect()
}

/// The exit code and the message of a server that refuses the directory.
fn refused_start(data: &Path) -> (Option<i32>, String) {
    let serve = ["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--data"];
    let (code, stdout, stderr) = run_refused(&[&serve[..], &[data.to_str().unwrap()]].concat());
    (code, format!("{stdout}{stderr}"))
}

/// All files with their lengths, except lock files, and all directories with 0.
fn tree(data: &Path) -> BTreeMap<PathBuf, u64> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap()) {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            found.extend(tree(&entry.path()));
        }
        if entry.file_name() != "LOCK" {
            found.insert(entry.path(), if metadata.is_dir() { 0 } else { metadata.len() });
        }
    }
    found
}
