//! Tests `tacho check` and `tacho repair` with changed bits. A check reports the file of each changed bit. A repair loses only
//! records of the damaged row or batch.

#[path = "support/checked.rs"]
mod checked;
#[path = "support/filled.rs"]
mod filled;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use checked::{check, copy, files, of, records, repair};
use filled::{SECOND, START, directory};
use serde_json::Value;
use support::run;
use tacho_model::Random;

/// Number of flipped bits; `TACHO_CHECK_FLIPS` sets another number.
const FLIPS: usize = 200;
/// Number of repairs, each after one flipped bit; `TACHO_REPAIR_FLIPS` sets another number.
const REPAIRS: usize = 30;

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
    let (mut random, mut missed, mut kinds) = (Random::new(20_261_124), Vec::new(), BTreeMap::new());
    for n in 0..flips {
        let path = &files[n % files.len()];
        let whole = std::fs::read(path).unwrap();
        let bit = random.next() as usize % (whole.len() * 8);
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

/// The time in a record of [`records`]: the first word after the labels that is a number.
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
    let (mut random, mut lost_all, mut partly) = (Random::new(4_711), 0, 0);
    for n in 0..flips {
        let path = &files[n % files.len()];
        let bytes = std::fs::read(path).unwrap();
        let bit = random.next() as usize % (bytes.len() * 8);
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
