//! Tests `tacho check` and `tacho repair`. An undamaged directory is clean, even while a server writes to it. A check reports a
//! missing, short or foreign file. `flips.rs` changes bits.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tacho_model::{Kind, Labels, NAME};

use crate::support::checked::{check, copy, files, is_segment, of, records, repair};
use crate::support::damaged::{contents, damage_row};
use crate::support::filled::{SECOND, START, directory, fill, in_runtime};
use crate::support::{self, Server, run};

#[test]
fn a_directory_at_rest_is_clean_and_unchanged() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory(&data);
    let before = contents(&data);
    assert!(before.keys().filter(|path| is_segment(path)).count() > 2);
    let (code, findings, summary) = check(&data, &[]);
    assert_eq!((of(&findings, "damage"), of(&findings, "warning")), (vec![], vec![]), "{findings:?}");
    assert_eq!(code, 0);
    assert_eq!(summary["journal"]["records"]["samples"], 2 * 12 * 300);
    assert!(summary["records"]["entries"].as_u64() >= Some(900), "{summary}");
    let (code, _, quick) = check(&data, &["--quick"]);
    assert_eq!((code, &quick["rows"]), (0, &summary["rows"]));
    assert_eq!(contents(&data), before);
    let (code, stdout, stderr) = run(&["check", data.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains(" in the journal; "), "{stdout}");
}

/// Ends the writer when dropped, even if an assertion fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_directory_is_clean_while_a_server_writes_and_merges() {
    let place = tempfile::tempdir().unwrap();
    let config = place.path().join("tacho.toml");
    let merging = "merge_rows = 2\nmerge_cpu_percent = 100\nmerge_bytes_per_second = 1000000000\n";
    std::fs::write(&config, merging).unwrap();
    let data = place.path().join("data");
    let flags = ["--selfwatch-seconds", "0", "--config", config.to_str().unwrap()];
    let server = Server::start_with(&data, &flags);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            for n in 0i64.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let lines: String = (0..50)
                    .map(|host| format!("m,host=h{host} value={n} {}\n", START + n * SECOND))
                    .collect();
                assert_eq!(server.post("/write", &[], lines.as_bytes()).status, 204);
                if n % 20 == 19 {
                    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
                }
                if n % 100 == 99 {
                    assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200);
                }
            }
        });
        let mut rows = 0;
        for round in 0.. {
            let (code, findings, summary) = check(&data, &[]);
            assert_eq!((code, of(&findings, "damage")), (0, vec![]), "round {round}");
            assert_eq!(of(&findings, "warning"), Vec::<String>::new(), "round {round}");
            rows = summary["rows"].as_u64().unwrap().max(rows);
            if round >= 10 && rows > 200 {
                break;
            }
        }
    });
    server.kill();
    let (code, findings, _) = check(&data, &[]);
    assert_eq!((code, of(&findings, "damage")), (0, vec![]));
}

/// Segment files are so small that they are sealed, rewritten and removed continuously.
#[test]
fn a_directory_is_clean_while_files_are_removed() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    in_runtime(fill(&data, 0..2, false));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        scope.spawn(|| {
            for n in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                in_runtime(fill(&data, 2 * n..2 * n + 2, true));
            }
        });
        let newest = || files(&data).into_iter().filter(|path| is_segment(path)).max();
        let first = newest();
        for round in 0.. {
            let (code, findings, _) = check(&data, &[]);
            assert_eq!((code, of(&findings, "damage")), (0, vec![]), "round {round}");
            assert_eq!(of(&findings, "warning"), Vec::<String>::new(), "round {round}");
            if round >= 20 && newest() > first && !data.join("chunks/00000001.segment").exists() {
                break;
            }
        }
    });
}

#[test]
fn a_repair_of_an_undamaged_directory_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (data, into) = (place.path().join("data"), place.path().join("new"));
    directory(&data);
    let before = contents(&data);
    let (code, losses, summary) = repair(&data, &into);
    assert_eq!((code, losses), (0, vec![]));
    assert_eq!(contents(&data), before);
    assert_eq!(records(&into), records(&data));
    let (code, findings, _) = check(&into, &[]);
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
    assert_eq!(summary["saved"]["series"], serde_json::json!({"samples": 12, "entries": 1, "calls": 1}));
    let (code, _, stderr) = run(&["repair", data.to_str().unwrap(), "--into", into.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("is not an empty directory"), "{stderr}");
    // A server starts with the repaired directory and keeps its records.
    let server = Server::start_with(&into, &["--selfwatch-seconds", "0"]);
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    drop(server);
    assert_eq!(records(&into), records(&data));
}

/// A merge writes its rows together with a row that holds the last sequence. There is no other copy of the sequence until the
/// next flush writes one into the list of journals.
#[test]
fn merged_rows_are_kept_if_the_row_of_the_sequence_is_damaged() {
    let place = tempfile::tempdir().unwrap();
    let (data, into) = (place.path().join("data"), place.path().join("new"));
    in_runtime(fill(&data, 0..4, true));
    in_runtime(fill(&data, 4..8, true));
    let whole = records(&data);
    damage_row(&data, b"storenamed");
    let (_, findings, _) = check(&data, &[]);
    let of_merge = of(&findings, "warning");
    assert!(of_merge.len() == 1 && of_merge[0].contains("sequence-unknown"), "{findings:?}");
    let (code, losses, _) = repair(&data, &into);
    assert_eq!((code, losses), (0, vec![]));
    assert_eq!(records(&into), whole);
    let (code, findings, _) = check(&into, &[]);
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
}

#[test]
fn lost_labels_are_restored_from_a_journal() {
    let place = tempfile::tempdir().unwrap();
    let (data, into) = (place.path().join("data"), place.path().join("new"));
    directory(&data);
    let whole = records(&data);
    let id = Labels::new([(NAME, "log"), ("host", "h0")]).unwrap().id().to_bytes();
    damage_row(&data, &[&[id[0], Kind::Entry as u8], &id[..]].concat());
    let (code, findings, _) = check(&data, &[]);
    assert_eq!(code, 1, "{findings:?}");
    let (code, losses, _) = repair(&data, &into);
    assert_eq!((code, losses), (0, vec![]));
    assert_eq!(records(&into), whole);
}

/// The records of the last two of eleven rounds are in the journal, those of the other rounds in segment files.
#[test]
fn a_repair_without_one_file_keeps_the_other_files_and_states_the_loss() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged, into) =
        (place.path().join("data"), place.path().join("damaged"), place.path().join("new"));
    directory(&data);
    let is_needed = |path: &PathBuf| path.extension().is_some_and(|e| e == "segment" || e == "journal");
    let needed: Vec<PathBuf> = files(&data).into_iter().filter(is_needed).collect();
    assert!(needed.len() > 3, "{needed:?}");
    for path in &needed {
        copy(&data, &damaged);
        let name = path.strip_prefix(&data).unwrap();
        std::fs::remove_file(damaged.join(name)).unwrap();
        let before = contents(&damaged);
        let _ = std::fs::remove_dir_all(&into);
        let (code, stdout, stderr) =
            run(&["repair", damaged.to_str().unwrap(), "--into", into.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{stdout}{stderr}");
        assert_eq!(stdout.lines().filter(|line| Path::new(line) == name).count(), 1, "{stdout}");
        assert!(stdout.contains("of unknown content") && !stdout.contains("lost: no records"), "{stdout}");
        assert!(contents(&damaged) == before, "{} changed", damaged.display());
        let kept = if is_segment(path) { 9..11 } else { 0..9 };
        let is_kept =
            |record: &&String| kept.clone().any(|n| record.contains(&format!(" of round {n} took ")));
        let saved = records(&into).iter().filter(is_kept).count();
        assert_eq!(saved, 100 * kept.len(), "entries of rounds {kept:?} without {}", name.display());
        let (code, findings, _) = check(&into, &[]);
        assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
    }
}

/// Damages the headers of all chunks of samples. Some of these chunks have more than three series.
#[test]
fn a_finding_names_all_lost_series_as_json_and_three_of_them_as_text() {
    let place = tempfile::tempdir().unwrap();
    let (data, into) = (place.path().join("data"), place.path().join("new"));
    in_runtime(fill(&data, 0..2, false));
    for path in files(&data).into_iter().filter(|path| is_segment(path)) {
        let mut bytes = std::fs::read(&path).unwrap();
        for at in 0..bytes.len() - 8 {
            if bytes[at..].starts_with(b"TCHK\x02\x01") {
                bytes[at + 8] ^= 1;
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    let (_, findings, _) = check(&data, &[]);
    let (_, losses, _) = repair(&data, &into);
    for found in [&findings, &losses] {
        let named = |finding: &Value| finding["lost"]["series"].as_array().map_or(0, Vec::len);
        let most = found.iter().max_by_key(|finding| named(finding)).unwrap();
        assert!(named(most) > 3 && most["lost"]["series_more"] == 0, "{most}");
        let series = most["lost"]["series"].as_array().unwrap();
        let distinct: BTreeSet<&str> = series.iter().map(|series| series.as_str().unwrap()).collect();
        assert!(distinct.len() == series.len() && distinct.iter().all(|one| one.contains("host=")), "{most}");
        let (_, text, _) = run(&["check", data.to_str().unwrap()]);
        let shown: Vec<&str> = series[..3].iter().map(|series| series.as_str().unwrap()).collect();
        let expect = format!(" of {} and {} more series", shown.join(", "), series.len() - 3);
        assert!(text.contains(&expect), "{expect}: {text}");
    }
}

/// Sends a signal to a process that this test has started.
fn send(signal: &str, process: &std::process::Child) {
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
}

/// Limit on the attempts to interrupt a repair before it ends.
const INTERRUPTIONS_MAX: usize = 200;

/// Interrupts a repair after it has begun the new directory. SIGSTOP halts the repair while the test looks at the directory, so
/// that the repair cannot end before it gets SIGINT. If a repair ends earlier, the test starts another one.
fn interrupted(data: &Path, into: &Path) -> std::process::ExitStatus {
    for _ in 0..INTERRUPTIONS_MAX {
        let _ = std::fs::remove_dir_all(into);
        // A test in the background of a script ignores SIGINT, and so do its child processes. `env` restores the default.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", support::tacho(), "repair"]).arg(data).arg("--into").arg(into);
        let mut repairing = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        while repairing.try_wait().unwrap().is_none() {
            send("-STOP", &repairing);
            let has_begun = ["INCOMPLETE", "chunks"].iter().all(|name| into.join(name).exists());
            if has_begun {
                send("-INT", &repairing);
            }
            send("-CONT", &repairing);
            if has_begun {
                break;
            }
        }
        let status = repairing.wait().unwrap();
        if status.signal().is_some() {
            return status;
        }
    }
    panic!("{INTERRUPTIONS_MAX} repairs ended before a signal could interrupt them");
}

#[test]
fn a_repair_that_is_interrupted_leaves_a_directory_that_does_not_open() {
    let place = tempfile::tempdir().unwrap();
    let (data, into) = (place.path().join("data"), place.path().join("new"));
    directory(&data);
    let whole = records(&data);
    let before = contents(&data);
    let status = interrupted(&data, &into);
    assert_eq!(
        (status.code(), status.signal()),
        (None, Some(2)),
        "the repair must end by SIGINT, which a shell shows as exit code 130"
    );
    assert!(contents(&data) == before, "{} changed", data.display());

    assert!(into.join("INCOMPLETE").exists());
    for command in [&["check"][..], &["inspect"], &["serve", "--http", "127.0.0.1:0", "--data"]] {
        let (code, stdout, stderr) = run(&[command, &[into.to_str().unwrap()]].concat());
        assert!(code.is_some_and(|code| code > 0), "{command:?}: {stdout}");
        assert!(stderr.contains("unfinished result of tacho repair"), "{command:?}: {stderr}");
    }
    let (code, _, stderr) = run(&["repair", data.to_str().unwrap(), "--into", into.to_str().unwrap()]);
    assert_eq!(code, Some(2), "{stderr}");
    assert_eq!(repair(&data, &into).0, 0);
    assert_eq!(records(&into), whole);
}

#[test]
fn a_repair_into_a_directory_inside_its_source_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    in_runtime(fill(&data, 0..1, false));
    std::fs::write(data.join("tacho.toml"), "merge_rows = 4\n").unwrap();
    let before = contents(&data);
    for into in ["new", "chunks/new", "chunks/../new/deeper"] {
        let into = data.join(into);
        let (code, _, stderr) = run(&["repair", data.to_str().unwrap(), "--into", into.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(" is inside "), "{stderr}");
    }
    assert_eq!(contents(&data), before);
    let into = place.path().join("new");
    assert_eq!(repair(&data, &into).0, 0);
    assert_eq!(std::fs::read_to_string(into.join("tacho.toml")).unwrap(), "merge_rows = 4\n");
}

#[test]
fn wrong_files_are_reported() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged) = (place.path().join("data"), place.path().join("damaged"));
    directory(&data);
    let segments: Vec<PathBuf> = files(&data)
        .into_iter()
        .filter(|path| is_segment(path))
        .map(|path| path.strip_prefix(&data).unwrap().to_owned())
        .collect();
    let journal =
        files(&data).into_iter().find(|path| path.extension().is_some_and(|e| e == "journal")).unwrap();
    let journal = journal.strip_prefix(&data).unwrap().to_owned();
    let (first, second) = (segments[0].clone(), segments[1].clone());
    let case = |change: &dyn Fn(&Path), kind: &str, file: &Path| {
        copy(&data, &damaged);
        change(&damaged);
        let (code, findings, _) = check(&damaged, &[]);
        let is = |finding: &&Value| finding["kind"] == kind && finding["file"] == file.to_str().unwrap();
        let found = findings.iter().find(is).unwrap_or_else(|| panic!("{kind} of {file:?}: {findings:?}"));
        assert_eq!(code, i32::from(found["severity"] == "damage"), "{kind}: {findings:?}");
    };
    let edit = |path: PathBuf, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
    };
    case(&|at| edit(at.join(&first), &|bytes| bytes.truncate(bytes.len() / 2)), "file-short", &first);
    case(&|at| edit(at.join(&first), &|bytes| bytes[..24].fill(0)), "header-damaged", &first);
    case(&|at| edit(at.join(&first), &|bytes| bytes.fill(0)), "file-unreadable", &first);
    case(&|at| edit(at.join(&first), &|bytes| bytes.extend([7; 100])), "file-changed", &first);
    case(&|at| std::fs::remove_file(at.join(&first)).unwrap(), "file-missing", &first);
    let put = |from: PathBuf, to: PathBuf| assert!(std::fs::copy(from, to).unwrap() > 0);
    case(&|at| put(at.join(&second), at.join(&first)), "file-foreign", &first);
    let unnamed = Path::new("chunks/00000999.segment");
    case(&|at| put(at.join(&first), at.join(unnamed)), "file-foreign", unnamed);
    let swap = |at: &Path| {
        let aside = at.join("aside");
        std::fs::rename(at.join(&first), &aside).unwrap();
        std::fs::rename(at.join(&second), at.join(&first)).unwrap();
        std::fs::rename(&aside, at.join(&second)).unwrap();
    };
    case(&swap, "file-foreign", &second);
    case(&|at| std::fs::remove_file(at.join(&journal)).unwrap(), "file-missing", &journal);
    case(&|at| edit(at.join(&journal), &|bytes| bytes[..40].fill(0)), "header-damaged", &journal);
    let manifest = Path::new("chunks/MANIFEST");
    case(&|at| std::fs::remove_file(at.join(manifest)).unwrap(), "manifest-damaged", manifest);
    let notes = Path::new("journal/notes.txt");
    case(&|at| std::fs::write(at.join(notes), "mine").unwrap(), "unknown-file", notes);
    let lost = Path::new("chunks/MANIFEST.lost");
    case(&|at| std::fs::write(at.join(lost), "").unwrap(), "permission", lost);
    let probes = Path::new("probes.json");
    case(&|at| std::fs::write(at.join(probes), "{}").unwrap(), "side-file-damaged", probes);
}

#[test]
fn if_tokens_were_lost_a_repair_says_that_requests_that_need_a_token_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    in_runtime(fill(&data, 0..1, false));
    let repaired = |name: &str| {
        let into = place.path().join(name);
        let args = ["repair", data.to_str().unwrap(), "--into", into.to_str().unwrap()];
        let (_, stdout, stderr) = run(&args);
        assert!(stdout.contains("saved: "), "{stdout}{stderr}");
        (
            stdout.contains("refuses every request"),
            into.join("tokens").exists(),
            into.join("tokens.used").exists(),
        )
    };
    assert_eq!(repaired("open"), (false, false, false));
    assert_eq!(run(&["token", "add", "me", "--role", "read", "--data", data.to_str().unwrap()]).0, Some(0));
    assert_eq!(repaired("whole"), (false, true, true));
    std::fs::write(data.join("tokens"), "damaged").unwrap();
    assert_eq!(repaired("damaged"), (true, false, true));
    std::fs::remove_file(data.join("tokens.used")).unwrap();
    assert_eq!(repaired("without marker"), (true, false, true));
    std::fs::remove_file(data.join("tokens")).unwrap();
    std::os::unix::fs::symlink("nowhere", data.join("tokens")).unwrap();
    assert_eq!(repaired("dangling"), (true, false, true));
}

#[test]
fn a_file_of_tokens_that_other_users_may_change_is_reported() {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    in_runtime(fill(&data, 0..1, false));
    let data_text = data.to_str().unwrap();
    assert_eq!(run(&["token", "add", "me", "--role", "read", "--data", data_text]).0, Some(0));
    for (mode, is_reported) in [(0o600, false), (0o644, false), (0o666, true), (0o620, true)] {
        std::fs::set_permissions(data.join("tokens"), std::fs::Permissions::from_mode(mode)).unwrap();
        let (code, stdout, stderr) = run(&["check", data_text]);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert_eq!(stdout.contains("tokens"), is_reported, "{mode:o}: {stdout}");
        assert_eq!(
            stdout.contains(&format!("mode {mode:o}: other users may add tokens")),
            is_reported,
            "{stdout}"
        );
        let found = std::fs::metadata(data.join("tokens")).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "the check changed the mode of the file");
    }
}

#[test]
fn directories_that_cannot_be_read_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let refused = |data: &Path, says: &str| {
        let (code, _, stderr) = run(&["check", data.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    };
    refused(place.path(), "is not a data directory: it has no chunks/");
    refused(&place.path().join("absent"), "absent does not exist");
    let data = place.path().join("data");
    in_runtime(fill(&data, 0..1, false));
    for name in ["MANIFEST", "MANIFEST.backup"] {
        let path = data.join("chunks").join(name);
        let text = std::fs::read_to_string(&path).unwrap().replace("manifest 1", "manifest 9");
        let body = &text[..text.trim_end().rfind('\n').unwrap() + 1];
        std::fs::write(&path, format!("{body}crc32c {:08x}\n", crc32c(body.as_bytes()))).unwrap();
    }
    refused(&data, "manifest has version 9, this program reads up to 1");
    std::fs::write(data.join("INCOMPLETE"), "").unwrap();
    refused(&data, "unfinished result of tacho repair");
    let (code, _, stderr) = run(&["inspect", data.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("unfinished result of tacho repair"), "{stderr}");
}

/// The CRC-32C of manifests, computed bit by bit with 0x82F63B78, the bits of the polynomial 0x1EDC6F41 in reverse order.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(crc & 1)))
    };
    !bytes.iter().fold(u32::MAX, step)
}
