//! Tests `tacho check` and `tacho repair`. An undamaged directory is clean, even while a server writes to it. A check reports a
//! changed bit of a file with a checksum, and a missing, short or foreign file. A repair loses only damaged records.

#[path = "support/checked.rs"]
mod checked;
#[path = "support/damaged.rs"]
mod damaged;
#[path = "support/filled.rs"]
mod filled;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use checked::{check, copy, files, is_segment, of, records, repair};
use damaged::{contents, damage_row};
use filled::{SECOND, START, directory, fill, in_runtime};
use serde_json::Value;
use support::{Server, run};
use tacho_model::{Kind, Labels, NAME};

/// Number of flipped bits; `TACHO_CHECK_FLIPS` sets another number.
const FLIPS: usize = 200;
/// Number of repairs, each after one flipped bit; `TACHO_REPAIR_FLIPS` sets another number.
const REPAIRS: usize = 30;

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

/// The next pseudo-random number of a seed.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Files without content that the check could compare.
const NOT_CHECKED: [&str; 4] = ["LOCK", "RESERVE", "tokens.lock", "audit.log"];
/// JSON files without a checksum. A changed bit is reported if the file is not readable any more.
const WITHOUT_CHECKSUM: [&str; 3] = ["probes.json", "record_types.json", "tokens"];

/// What the check must report about a changed bit of a file.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    Damage,
    /// Damage, or a note or warning about a place that includes the bit: the last write may not have been acknowledged.
    DamageOrEnd,
    /// A note: the file has no records.
    Note,
    /// The file is reported before and after the change.
    Quarantined,
    /// Damage, if the file is no JSON any more; a refusal, if it states a newer version.
    DamageIfUnreadable,
}

fn told(name: &str, newest: &[String]) -> Told {
    match name {
        "chunks/END" => Told::Note,
        _ if name.contains("quarantine/") => Told::Quarantined,
        _ if WITHOUT_CHECKSUM.contains(&name) => Told::DamageIfUnreadable,
        _ if newest.iter().any(|newest| newest == name) => Told::DamageOrEnd,
        _ => Told::Damage,
    }
}

/// Whether the place of a finding includes the byte.
fn includes(finding: &Value, byte: usize) -> bool {
    let number = |member: &str| finding[member].as_u64().map(|n| n as usize);
    let from = number("offset").unwrap_or(0);
    let to = number("bytes").map_or(usize::MAX, |bytes| from + bytes);
    (from..to).contains(&byte)
}

/// A directory with files of all kinds: also tokens, and files in `quarantine/`.
fn directory_with_all_files(data: &Path) {
    directory(data);
    let added = run(&["token", "add", "me", "--role", "read", "--data", data.to_str().unwrap()]);
    assert_eq!(added.0, Some(0), "{added:?}");
    let found = files(data);
    let newest = |extension: &str| {
        found.iter().rfind(|path| path.extension().is_some_and(|e| e == extension)).unwrap().clone()
    };
    for (folder, extension) in [("chunks", "segment"), ("journal", "journal")] {
        let quarantine = data.join(folder).join("quarantine");
        std::fs::create_dir(&quarantine).unwrap();
        let damaged = newest(extension);
        std::fs::copy(&damaged, quarantine.join(damaged.file_name().unwrap())).unwrap();
    }
}

#[test]
fn every_flipped_bit_is_reported_with_its_file() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory_with_all_files(&data);
    let (_, clean, _) = check(&data, &[]);
    let name_of = |path: &Path| path.strip_prefix(&data).unwrap().to_str().unwrap().to_owned();
    let is_checked = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !NOT_CHECKED.contains(&name) && std::fs::metadata(path).unwrap().len() > 0
    };
    let quarantined = ["chunks", "journal"].map(|folder| data.join(folder).join("quarantine"));
    let in_quarantine = quarantined
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let newest = ["segment", "journal"].map(|extension| {
        let of_kind = |path: &&PathBuf| path.extension().is_some_and(|e| e == extension);
        name_of(files(&data).iter().rfind(of_kind).unwrap())
    });
    let files: Vec<PathBuf> = files(&data).into_iter().filter(is_checked).chain(in_quarantine).collect();
    for name in ["tokens", "probes.json", "record_types.json", "chunks/END", "chunks/MANIFEST"] {
        assert!(files.iter().any(|path| name_of(path) == name), "{name} is missing: {files:?}");
    }
    let flips = support::number_from("TACHO_CHECK_FLIPS", FLIPS);
    let (mut state, mut missed, mut kinds) = (20_261_124, Vec::new(), BTreeMap::new());
    for n in 0..flips {
        let path = &files[n % files.len()];
        let whole = std::fs::read(path).unwrap();
        let bit = draw(&mut state) as usize % (whole.len() * 8);
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, &changed).unwrap();
        let (code, stdout, stderr) = run(&["check", data.to_str().unwrap(), "--json"]);
        std::fs::write(path, whole).unwrap();
        let name = name_of(path);
        if told(&name, &newest) == Told::DamageIfUnreadable && stderr.contains(" has version ") {
            assert_eq!(code, Some(2), "{stderr}");
            continue;
        }
        let findings: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let findings = &findings[..findings.len().saturating_sub(1)];
        let new: Vec<&Value> = findings.iter().filter(|finding| !clean.contains(finding)).collect();
        let of_file: Vec<&&Value> = new.iter().filter(|finding| finding["file"] == *name).collect();
        let is_damage = of_file.iter().any(|finding| finding["severity"] == "damage");
        let is_at_end = of_file.iter().any(|finding| {
            matches!(finding["kind"].as_str(), Some("unacknowledged" | "end-doubtful"))
                && includes(finding, bit / 8)
        });
        let is_told = match told(&name, &newest) {
            Told::Damage => is_damage,
            Told::DamageOrEnd => is_damage || is_at_end,
            Told::Note => of_file.iter().any(|finding| finding["kind"] == "unacknowledged"),
            Told::Quarantined => {
                findings.iter().any(|finding| finding["file"] == *name && finding["severity"] == "damage")
            }
            Told::DamageIfUnreadable => {
                is_damage || serde_json::from_slice::<Value>(&changed).is_ok() && new.is_empty()
            }
        };
        // The files in quarantine/ are damage, so the exit code is 1 in all cases.
        if !is_told || code != Some(1) {
            missed.push(format!("{name}, byte {}, bit {}: exit {code:?}, {new:?}", bit / 8, bit % 8));
        }
        let first = new.iter().find(|finding| finding["severity"] != "note");
        *kinds.entry(first.map_or("note", |f| f["kind"].as_str().unwrap()).to_owned()).or_insert(0) += 1;
    }
    println!("{flips} flips of {} files: {kinds:?}", files.len());
    assert_eq!(missed, Vec::<String>::new(), "of {flips} flips");
}

/// The exit code is 1 because of the flipped bit alone.
#[test]
fn a_flipped_bit_of_an_undamaged_directory_changes_the_exit_code() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    directory(&data);
    assert_eq!(check(&data, &[]).0, 0);
    let found = files(&data);
    let first = |extension: &str| {
        found.iter().find(|path| path.extension().is_some_and(|e| e == extension)).unwrap().clone()
    };
    let side = ["chunks/MANIFEST", "chunks/MANIFEST.backup"].map(|name| data.join(name));
    for path in [first("segment"), first("journal")].into_iter().chain(side) {
        let whole = std::fs::read(&path).unwrap();
        for at in [whole.len() / 3, whole.len() / 2] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            std::fs::write(&path, changed).unwrap();
            let (code, findings, _) = check(&data, &[]);
            let name = path.strip_prefix(&data).unwrap().to_str().unwrap();
            let is_it = |finding: &&Value| finding["file"] == name && finding["severity"] == "damage";
            assert!(
                code == 1 && findings.iter().any(|finding| is_it(&finding)),
                "{name}, byte {at}: {findings:?}"
            );
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(check(&data, &[]).0, 0);
}

/// Maximum number of records of one row or one journal batch. The test assumes this number if the real number is unreadable.
const UNIT_RECORDS: usize = 12 * 600;

/// The time in a record of [`records`], which is the first word after the labels that is a number.
fn time_of(record: &str) -> i64 {
    let mut numbers = record.split(' ').filter_map(|word| word.parse().ok());
    numbers.find(|at| *at >= START).unwrap_or_else(|| panic!("{record}"))
}

/// Number of the batch with the record.
fn round_of(record: &str) -> i64 {
    (time_of(record) - START) / (600 * SECOND)
}

/// Whether the records that a loss states include the record. A loss without stated records includes all records: the test then
/// compares only their number.
fn covers(loss: &Value, record: &str) -> bool {
    let lost = &loss["lost"];
    if lost.is_null() {
        return loss["kind"] != "series-unknown";
    }
    let kind = match lost["kind"].as_str() {
        Some("execution") => "call",
        Some(kind) => kind,
        None => panic!("{loss}"),
    };
    let series = lost["series"].as_array().unwrap();
    assert_eq!(lost["series_more"], 0, "{loss}");
    let is_of = |series: &Value| record.starts_with(&format!("{kind} {} ", series.as_str().unwrap()));
    let is_in = |member: &str, contains: &dyn Fn(i64) -> bool| {
        let at = lost[member].as_str().map(|text| text.parse::<jiff::Timestamp>().unwrap());
        at.is_none_or(|at| contains(at.as_nanosecond() as i64))
    };
    let time = time_of(record);
    let named = series.is_empty() && record.starts_with(kind) || series.iter().any(is_of);
    named && is_in("start", &|start| start <= time) && is_in("end", &|end| time <= end)
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

#[test]
fn a_repair_loses_only_damaged_records() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged, into) =
        (place.path().join("data"), place.path().join("damaged"), place.path().join("new"));
    directory(&data);
    copy(&data, &damaged);
    let whole = records(&data);
    let is_checked = |path: &PathBuf| path.extension().is_some_and(|e| e == "segment" || e == "journal");
    let files: Vec<PathBuf> = files(&damaged).into_iter().filter(is_checked).collect();
    let flips = support::number_from("TACHO_REPAIR_FLIPS", REPAIRS);
    let (mut state, mut lost_all, mut partly) = (4_711, 0, 0);
    for n in 0..flips {
        let path = &files[n % files.len()];
        let bytes = std::fs::read(path).unwrap();
        let bit = draw(&mut state) as usize % (bytes.len() * 8);
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(path, changed).unwrap();
        let (code, losses, summary) = repair(&damaged, &into);
        std::fs::write(path, bytes).unwrap();
        let at = format!("{}, bit {bit}: {losses:?}", path.display());
        let saved = records(&into);
        let lost = whole.difference(&saved).count();
        let stated = &summary["findings"]["lost"];
        let number = |name: &str| stated[name].as_u64().unwrap() as usize;
        let stated =
            number("samples") + number("entries") + number("calls") + number("unknown") * UNIT_RECORDS;
        assert!(lost <= stated, "{lost} records are lost, the repair states at most {stated}: {at}");
        let groups = usize::from(losses.iter().any(|loss| loss["kind"] == "series-unknown"));
        assert!(groups == 1 || lost <= UNIT_RECORDS, "{lost} records are lost by one bit: {at}");
        // Each lost record is of the damaged row or batch.
        let name = path.strip_prefix(&damaged).unwrap().to_str().unwrap();
        for loss in losses.iter().filter(|loss| loss["kind"] != "series-unknown") {
            assert_eq!(loss["file"], name, "a loss in another file: {at}");
        }
        let all_lost: Vec<&String> = whole.difference(&saved).collect();
        for record in &all_lost {
            assert!(losses.iter().any(|loss| covers(loss, record)), "{record} is not in the damage: {at}");
        }
        let rounds: BTreeSet<i64> = all_lost.iter().map(|record| round_of(record)).collect();
        if name.ends_with(".journal") {
            assert!(rounds.len() <= 1, "one bit of a journal loses records of the batches {rounds:?}: {at}");
        }
        let reappear = losses.iter().any(|loss| loss["effect"].as_str().unwrap().contains("reappear"));
        assert!(reappear || saved.is_subset(&whole), "new records: {at}");
        assert_eq!(code, i32::from(!losses.is_empty()), "{at}");
        let (code, findings, _) = check(&into, &[]);
        assert_eq!((code, of(&findings, "damage")), (0, vec![]), "{at}");
        assert_eq!(of(&findings, "warning"), Vec::<String>::new(), "{at}");
        lost_all += lost;
        partly += usize::from(
            lost > 0 && losses.iter().any(|loss| loss["lost"]["records"].as_u64() == Some(lost as u64)),
        );
    }
    println!(
        "{flips} repairs: {lost_all} of {} records lost; {partly} repairs state the exact number",
        flips * whole.len()
    );
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

/// Damages the headers of all chunks of samples in a file. Some of them have nine series.
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

/// Number of repairs of which one is interrupted before it ends.
const INTERRUPTIONS_MAX: usize = 200;

/// Interrupts a repair after it has begun the new directory. The repair is stopped while the test looks at the directory, so it
/// cannot end in between. A repair that ends before is repeated.
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
    refused(&place.path().join("absent"), "is not a data directory");
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
