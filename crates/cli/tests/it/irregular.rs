//! Tests data directories that have a FIFO, a directory, a link or a device in place of a file. Each command names the file, and
//! does not wait. A check and a repair go on with the other files.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tacho_model::ManualClock;
use tacho_server::check::Source;
use tacho_server::repair::repair;
use tacho_server::{control, data_directory};
use tacho_store::check::{Depth, Finding, Severity};
use tacho_store::{Error, ErrorKind};

use crate::support::checked::{copy, files, is_segment, records};
use crate::support::filled::{directory, in_runtime};

/// Name, and a function that makes the object.
type Object = (&'static str, fn(&Path));

const FIFO: Object = ("FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()));
const DANGLING: Object = ("dangling link", |path| symlink("nowhere", path).unwrap());
const DEVICE: Object = ("link to a device", |path| symlink("/dev/zero", path).unwrap());
const FOLDER: Object = ("directory", |path| std::fs::create_dir(path).unwrap());
const FILE: Object = ("file", |path| std::fs::write(path, "{\"a\": 1}").unwrap());

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It fails, and the message has this part of the path.
    Names(&'static str),
    Works,
}

use Outcome::{Names, Works};

struct Case {
    /// Path in the data directory; `SEGMENT` and `JOURNAL` stand for the last sealed segment and the newest journal.
    file: &'static str,
    objects: &'static [Object],
    start: Outcome,
    /// The kind of a finding about the file.
    check: &'static str,
    repair: Outcome,
    /// A command that opens the directory read-only, such as `tacho export --data`.
    read: Outcome,
    /// Whether the repair loses the records of the file.
    is_loss: bool,
}

const ALL: &[Object] = &[FIFO, FOLDER, DANGLING, DEVICE];
const FOLDERS: &[Object] = &[FIFO, FILE, DANGLING, DEVICE];

const fn case(file: &'static str, start: Outcome, check: &'static str) -> Case {
    Case { file, objects: ALL, start, check, repair: Works, read: start, is_loss: false }
}

const CASES: [Case; 17] = [
    Case { is_loss: true, ..case("SEGMENT", Names(".segment"), "file-unreadable") },
    Case { is_loss: true, ..case("JOURNAL", Names(".journal"), "file-unreadable") },
    case("chunks/MANIFEST", Names("chunks/MANIFEST)"), "manifest-damaged"),
    case("chunks/MANIFEST.backup", Names("chunks/MANIFEST.backup)"), "manifest-damaged"),
    case("chunks/END", Works, "file-unreadable"),
    case("chunks/RESERVE", Works, "unknown-file"),
    Case { repair: Names("LOCK"), ..case("LOCK", Names("LOCK"), "file-unreadable") },
    case("chunks/LOCK", Names("chunks/LOCK"), "file-unreadable"),
    case("journal/LOCK", Names("journal/LOCK"), "file-unreadable"),
    Case { objects: FOLDERS, is_loss: true, ..case("chunks", Names("chunks"), "") },
    Case { objects: FOLDERS, is_loss: true, ..case("journal", Names("journal"), "") },
    case("probes.json", Works, "side-file-damaged"),
    case("record_types.json", Works, "side-file-damaged"),
    case("tacho.toml", Works, "side-file-damaged"),
    case("tokens", Works, "side-file-damaged"),
    case("tokens.used", Works, "side-file-damaged"),
    case("audit.log", Works, "side-file-damaged"),
];

async fn retried<T, F: Future<Output = Result<T, Error>>>(mut run: impl FnMut() -> F) -> Result<T, Error> {
    loop {
        match run().await {
            // The process `mkfifo` inherits a lock of another test until it executes its program.
            Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
            done => return done,
        }
    }
}

fn check_outcome(place: &str, outcome: Outcome, result: Result<(), Error>) {
    match (outcome, result) {
        (Works, Ok(())) => {}
        (Names(part), Err(error)) => assert!(error.to_string().contains(part), "{place}: {error}"),
        (_, result) => panic!("{place}: expected {outcome:?}, got {result:?}"),
    }
}

/// The findings of a check. Asserts that the check has also read other files.
async fn checked(data: &Path) -> Vec<Finding> {
    let mut source = Source::open(data, Depth::Quick).await.unwrap();
    let report = source.run(&mut |_, _| ()).unwrap();
    assert!(report.amounts.files > 0, "no file was read");
    report.findings.kept
}

#[test]
fn each_command_names_another_object_in_place_of_a_file() {
    let place = tempfile::tempdir().unwrap();
    let [data, damaged, into] = ["data", "damaged", "new"].map(|name| place.path().join(name));
    directory(&data);
    let whole = records(&data);
    let names: Vec<String> = files(&data)
        .iter()
        .map(|path| path.strip_prefix(&data).unwrap().to_str().unwrap().to_owned())
        .collect();
    let segment = names.iter().filter(|name| is_segment(Path::new(name))).rev().nth(1).unwrap();
    let journal = names.iter().rfind(|name| name.ends_with(".journal")).unwrap();
    let clock = || Arc::new(ManualClock::new(0));
    for case in &CASES {
        let file = match case.file {
            "SEGMENT" => segment,
            "JOURNAL" => journal,
            file => file,
        };
        for (object, make) in case.objects {
            let at = format!("{object} in place of {file}");
            copy(&data, &damaged);
            let path = damaged.join(file);
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            make(&path);
            let _ = std::fs::remove_dir_all(&into);
            in_runtime(async {
                let findings = checked(&damaged).await;
                let is = |finding: &&Finding| &*finding.place.file == file || file == "journal";
                let found = findings.iter().filter(is).find(|found| found.severity() != Severity::Note);
                let found = found.unwrap_or_else(|| panic!("{at}: {findings:?}"));
                assert!(case.check.is_empty() || found.kind.name() == case.check, "{at}: {findings:?}");
                assert!(!found.remedy.is_empty(), "{at}");
                let read = retried(|| data_directory::open_read_only(&damaged, clock())).await;
                check_outcome(&format!("{at}: read"), case.read, read.map(drop));
                let accepted = BTreeSet::new();
                let repaired =
                    retried(|| async { repair(&damaged, &into, &accepted, &mut |_, _| ()).await.map(drop) });
                check_outcome(&format!("{at}: repair"), case.repair, repaired.await);
                let backed_up = tacho_backup::Source::at_rest(&damaged).map(|source| source.ignored);
                match backed_up {
                    Ok(ignored) => {
                        let is_excluded = ["chunks/RESERVE", "audit.log"].contains(&file);
                        assert!(is_excluded || ignored.iter().any(|name| name == file), "{at}: {ignored:?}");
                    }
                    Err(error) => assert!(error.to_string().contains(file), "{at}: backup: {error}"),
                }
            });
            if case.repair == Works {
                let saved = records(&into);
                assert!(!saved.is_empty() && saved.is_subset(&whole), "{at}");
                assert_eq!(saved == whole, !case.is_loss, "{at}: {} of {} records", saved.len(), whole.len());
            }
            // The start is last, because it may change the directory.
            in_runtime(async {
                let start = retried(|| data_directory::open(&damaged, clock())).await;
                check_outcome(&format!("{at}: start"), case.start, start.map(drop));
                assert_eq!(control::check(&damaged).is_err(), file == "probes.json", "{at}");
            });
        }
    }
}

/// If a file was moved, for example to another disk, and a symbolic link to it is in its old place, commands read the file
/// through the link. Only a backup refuses the link.
#[test]
fn a_link_to_the_file_is_read() {
    let place = tempfile::tempdir().unwrap();
    let [data, damaged] = ["data", "damaged"].map(|name| place.path().join(name));
    directory(&data);
    let whole = records(&data);
    for path in files(&data) {
        let name = path.strip_prefix(&data).unwrap();
        if name.ends_with("LOCK") || name.ends_with("RESERVE") {
            continue;
        }
        copy(&data, &damaged);
        let aside = place.path().join("aside");
        std::fs::rename(damaged.join(name), &aside).unwrap();
        symlink(&aside, damaged.join(name)).unwrap();
        assert_eq!(records(&damaged), whole, "{name:?}");
        in_runtime(async {
            let findings = checked(&damaged).await;
            assert!(
                findings.iter().all(|found| found.severity() == Severity::Note),
                "{name:?}: {findings:?}"
            );
            let error = tacho_backup::Source::at_rest(&damaged).err().unwrap().to_string();
            assert!(error.contains("symbolic link") && error.contains(name.to_str().unwrap()), "{error}");
        });
    }
}
