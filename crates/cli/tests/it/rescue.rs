//! Follows the remedies of `tacho check`, of a refused start and of `tacho repair`. Files of another store are skipped unless
//! the user names them. All records that a repair saves are visible at once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use serde_json::Value;
use tacho_drivers::embedded::Embedded;
use tacho_store::driver::{Driver, Scan};
use tacho_store::{Row, Table};

use crate::support::checked::{check, copy, files, is_segment, of, records, repair, unlocked};
use crate::support::filled::{SECOND, START, directory, in_runtime};
use crate::support::{Server, run};

const QUIET: [&str; 2] = ["--selfwatch-seconds", "0"];

fn serve(data: &Path) -> Server {
    Server::start_with(data, &QUIET)
}

fn write(server: &Server, value: i64, second: i64) {
    let line = format!("m value={value} {}\n", START + second * SECOND);
    assert_eq!(server.post("/write", &[], line.as_bytes()).status, 204);
}

fn flush(server: &Server) {
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
}

/// Starts a server that refuses the directory. Returns its message.
fn refused(data: &Path) -> String {
    let serve = ["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--data"];
    let (code, stdout, stderr) = run(&[&serve[..], &[data.to_str().unwrap()]].concat());
    assert_eq!(code, Some(1), "{stdout}{stderr}");
    stderr
}

/// Writes a directory with `flushes` flushed samples and one in a journal, all with times from `START` on. The values are `base`,
/// `base` + 1 and so on.
fn store(data: &Path, base: i64, flushes: i64) -> BTreeSet<String> {
    let server = serve(data);
    for n in 0..flushes {
        write(&server, base + n, n);
        flush(&server);
    }
    write(&server, base + flushes, flushes);
    server.kill();
    records(data)
}

fn only(data: &Path, extension: &str) -> PathBuf {
    let is = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let found: Vec<PathBuf> = files(data).into_iter().filter(is).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].strip_prefix(data).unwrap().to_owned()
}

fn foreign<'a>(findings: &'a [Value], file: &Path) -> &'a Value {
    let is = |found: &&Value| found["kind"] == "file-foreign" && found["file"] == file.to_str().unwrap();
    findings.iter().find(is).unwrap_or_else(|| panic!("{file:?} is not foreign: {findings:?}"))
}

#[test]
fn a_journal_of_another_store_is_read_only_if_the_user_names_it() {
    let place = tempfile::tempdir().unwrap();
    let [data, other, into] = ["data", "other", "new"].map(|name| place.path().join(name));
    let own = store(&data, 10, 1);
    store(&other, 90, 3);
    let journal = only(&other, "journal");
    std::fs::copy(other.join(&journal), data.join(&journal)).unwrap();

    assert!(refused(&data).contains("journal belongs to another store"));
    let (code, findings, _) = check(&data, &[]);
    let finding = foreign(&findings, &journal);
    assert_eq!(code, 1, "{findings:?}");
    assert!(finding["reason"].as_str().unwrap().starts_with("it belongs to another store"), "{finding}");
    let remedy =
        "move it back to the directory of its store; tacho repair excludes it unless --accept names it";
    assert_eq!(finding["remedy"], remedy);

    let (code, losses, _) = repair(&data, &into);
    assert_eq!((code, losses.len()), (1, 1), "{losses:?}");
    assert_eq!(records(&into), own);
    let accept = ["repair", data.to_str().unwrap(), "--accept", journal.to_str().unwrap()];
    let accepted = place.path().join("accepted");
    let (_, _, stderr) = run(&[&accept[..], &["--into", accepted.to_str().unwrap()]].concat());
    assert_eq!(records(&accepted).len(), own.len() + 1, "{stderr}");

    std::fs::rename(data.join(&journal), place.path().join("moved")).unwrap();
    assert_eq!(serve(&data).stop().code(), Some(0));
    assert_eq!(records(&data), own);
}

/// Renames a journal to the name of the first generation, which was flushed. Returns the old name and the new one.
fn rename_to_first(data: &Path) -> [PathBuf; 2] {
    let journal = only(data, "journal");
    let first = journal.with_file_name("00000000000000000001.journal");
    assert_ne!(journal, first);
    std::fs::rename(data.join(&journal), data.join(&first)).unwrap();
    [journal, first]
}

#[test]
fn a_journal_under_the_name_of_a_flushed_generation_is_saved_by_each_remedy() {
    let place = tempfile::tempdir().unwrap();
    let [data, into, accepted] = ["data", "new", "accepted"].map(|name| place.path().join(name));
    let all = store(&data, 10, 2);
    let [journal, first] = rename_to_first(&data);
    let message = refused(&data);
    assert!(message.contains(&format!("rename it to {}", data.join(&journal).display())), "{message}");
    let (code, findings, _) = check(&data, &[]);
    let finding = foreign(&findings, &first);
    assert_eq!(code, 1, "{findings:?}");
    assert_eq!(finding["effect"], "its records are not read; the server does not start");
    let remedy = format!(
        "rename it to {}; tacho repair excludes it unless --accept names it",
        journal.to_str().unwrap()
    );
    assert_eq!(finding["remedy"], remedy);

    let (code, losses, _) = repair(&data, &into);
    foreign(&losses, &first);
    assert_eq!((code, records(&into).len()), (1, all.len() - 1), "{losses:?}");
    let arguments = ["repair", data.to_str().unwrap(), "--into", accepted.to_str().unwrap()];
    let (code, stdout, stderr) = run(&[&arguments[..], &["--accept", first.to_str().unwrap()]].concat());
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert_eq!(records(&accepted), all);
    std::fs::rename(data.join(&first), data.join(&journal)).unwrap();
    assert_eq!(serve(&data).stop().code(), Some(0));
    assert_eq!(records(&data), all);
}

#[test]
fn a_journal_under_another_name_is_kept_by_a_start_that_is_permitted() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    store(&data, 10, 2);
    let [journal, first] = rename_to_first(&data);
    let whole = std::fs::read(data.join(&first)).unwrap();
    let permit = |journal: &Path| std::fs::write(data.join(journal).with_extension("lost"), "").unwrap();
    permit(&journal);
    assert!(refused(&data).contains("rename it to "));
    permit(&first);
    let (_, findings, _) = check(&data, &[]);
    let effect = "its records are not read; the next start of the server moves it to journal/quarantine/";
    assert_eq!(foreign(&findings, &first)["effect"], effect);
    assert_eq!(serve(&data).stop().code(), Some(0));
    assert!(!data.join(&first).exists());
    let kept = data.join("journal/quarantine").join(journal.file_name().unwrap());
    assert_eq!(std::fs::read(kept).unwrap(), whole);
    let (_, findings, _) = check(&data, &[]);
    assert!(findings.iter().any(|finding| finding["kind"] == "quarantined"), "{findings:?}");
}

#[test]
fn a_journal_and_its_copy_under_another_name_are_not_both_read() {
    let place = tempfile::tempdir().unwrap();
    let [data, into] = ["data", "new"].map(|name| place.path().join(name));
    let all = store(&data, 10, 2);
    let journal = only(&data, "journal");
    let first = journal.with_file_name("00000000000000000001.journal");
    std::fs::copy(data.join(&journal), data.join(&first)).unwrap();
    let (_, findings, _) = check(&data, &[]);
    let effect = foreign(&findings, &first)["effect"].as_str().unwrap();
    assert!(effect.ends_with("the server does not start"), "{effect}");
    assert!(refused(&data).contains("is of the same generation: keep the larger one"));
    assert!(data.join(&first).exists());
    let saved = || {
        let (_, losses, summary) = repair(&data, &into);
        foreign(&losses, &first);
        summary["saved"]["records"]["samples"].as_u64().unwrap()
    };
    assert_eq!(saved(), all.len() as u64);
    // Without the flushed records, no journal counts as flushed.
    let chunks = place.path().join("chunks");
    std::fs::rename(data.join("chunks"), &chunks).unwrap();
    assert_eq!(saved(), 1);
    std::fs::rename(&chunks, data.join("chunks")).unwrap();
    std::fs::remove_file(data.join(&first)).unwrap();
    assert_eq!(serve(&data).stop().code(), Some(0));
    assert_eq!(records(&data), all);
}

/// The segment of the other store is shorter or longer than the missing segment.
#[test]
fn a_segment_of_another_store_is_not_taken_for_a_missing_one() {
    let place = tempfile::tempdir().unwrap();
    let [data, damaged, into] = ["data", "damaged", "new"].map(|name| place.path().join(name));
    let own = store(&data, 10, 6);
    let in_journal = BTreeSet::from([own.last().unwrap().clone()]);
    for (name, flushes) in [("shorter", 2), ("longer", 12)] {
        let other = place.path().join(name);
        store(&other, 90, flushes);
        let segment = only(&other, "segment");
        copy(&data, &damaged);
        std::fs::copy(other.join(&segment), damaged.join(&segment)).unwrap();
        refused(&damaged);
        let (code, findings, _) = check(&damaged, &[]);
        assert_eq!(code, 1, "{name}: {findings:?}");
        let remedy = foreign(&findings, &segment)["remedy"].as_str().unwrap();
        assert!(remedy.contains("excludes this file unless --accept names it"), "{name}: {remedy}");
        let (code, losses, _) = repair(&damaged, &into);
        assert_eq!(code, 1, "{name}: {losses:?}");
        assert_eq!(records(&into), in_journal, "{name}: {losses:?}");
    }
}

/// A sealed segment that has only chunks has no row that names its store. After the exchange, the lengths of both segments differ
/// from the lengths in the manifest.
#[test]
fn segments_with_exchanged_names_are_named_and_can_be_renamed_back() {
    let place = tempfile::tempdir().unwrap();
    let [data, damaged] = ["data", "damaged"].map(|name| place.path().join(name));
    directory(&data);
    copy(&data, &damaged);
    let segments: Vec<PathBuf> = files(&damaged).into_iter().filter(|path| is_segment(path)).collect();
    let exchange = || {
        let aside = place.path().join("aside");
        std::fs::rename(&segments[0], &aside).unwrap();
        std::fs::rename(&segments[1], &segments[0]).unwrap();
        std::fs::rename(&aside, &segments[1]).unwrap();
    };
    exchange();
    let names = [0, 1].map(|n| segments[n].file_name().unwrap().to_str().unwrap().to_owned());
    let (_, findings, _) = check(&damaged, &[]);
    let number = |name: &str| name[..8].trim_start_matches('0').to_owned();
    for (name, other) in [(&names[0], &names[1]), (&names[1], &names[0])] {
        let finding = foreign(&findings, &Path::new("chunks").join(name));
        let why = format!("its header says that it is segment {}", number(other));
        assert_eq!(finding["reason"], why);
        assert!(finding["remedy"].as_str().unwrap().contains("give them their original names"), "{finding}");
    }
    // One of the two segments is shorter than the manifest states, so the start is refused before it reads the headers.
    refused(&damaged);
    exchange();
    let (code, findings, _) = check(&damaged, &[]);
    assert_eq!((code, of(&findings, "damage")), (0, vec![]));
}

async fn facts(driver: &Embedded) -> Vec<Row> {
    let rows = driver.scan(Scan::all(Table::Meta, *b"store")).await.unwrap();
    rows.try_collect::<Vec<_>>().await.unwrap().into_iter().map(Result::unwrap).collect()
}

/// A directory with a flushed record, and another one in the journal of generation 2. Returns the facts about the store.
fn with_unflushed(data: &Path) -> Vec<Row> {
    let server = serve(data);
    write(&server, 1, 1);
    flush(&server);
    assert_eq!(server.stop().code(), Some(0));
    // A killed server leaves the journal of the second record to the next start.
    let server = serve(data);
    write(&server, 2, 2);
    server.kill();
    let mut before = Vec::new();
    let chunks = data.join("chunks");
    in_runtime(async {
        before = facts(&unlocked(|| async { Embedded::open_read_only(&chunks).await }).await).await;
    });
    before
}

/// Whether the list of required journals names one: its header has 33 bytes, and each journal has 16 (`docs/format/keys.md`).
fn names_a_journal(facts: &[Row]) -> bool {
    facts.iter().any(|row| row.clustering == b"journals" && row.value.len() >= 33 + 16)
}

/// A flush put the chunks of a generation, and then its journal was lost before the generation was marked as flushed.
#[test]
fn chunks_of_an_interrupted_flush_are_visible_after_a_repair() {
    let place = tempfile::tempdir().unwrap();
    let [mut data, into] = ["data", "new"].map(|name| place.path().join(name));
    let mut before = with_unflushed(&data);
    // The list of journals is stored before the first chunk, but not always before the kill.
    for again in 0..100 {
        if names_a_journal(&before) {
            break;
        }
        data = place.path().join(format!("data-{again}"));
        before = with_unflushed(&data);
    }
    let chunks = data.join("chunks");
    let server = serve(&data);
    flush(&server);
    assert_eq!(server.stop().code(), Some(0));
    let all = records(&data);
    assert_eq!(all.len(), 2);
    in_runtime(async {
        let driver = unlocked(|| async { Embedded::open(&chunks).await }).await;
        driver.put(before).await.unwrap();
    });
    for path in files(&data).into_iter().filter(|path| path.extension().is_some_and(|e| e == "journal")) {
        std::fs::remove_file(path).unwrap();
    }
    assert!(refused(&data).contains("journal"));
    let (_, losses, _) = repair(&data, &into);
    assert_eq!(records(&into), all, "{losses:?}");
    let (code, findings, _) = check(&into, &[]);
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
    let (code, exported, stderr) = run(&["export", "--all", "--data", into.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(exported.contains("\"values\":[1,2]"), "{exported}");
}
