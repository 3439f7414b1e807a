//! Tests `tacho check` and `tacho repair` with changed bits. A check names the file of each changed bit, and the row or the
//! journal record. A repair loses only records of this row or journal record, and names it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tacho_drivers::embedded::Embedded;
use tacho_drivers::embedded::check::Image;
use tacho_model::Random;
use tacho_store::check::PlacedRow;
use tacho_store::driver::Delete;
use tacho_store::{Driver, Row, Table};

use crate::support::checked::{check, copy, files, is_segment, of, records, repair, unlocked};
use crate::support::filled::{ROUNDS_IN_JOURNAL, SECOND, START, directory, in_runtime};
use crate::support::{self, run};

/// Number of flipped bits; `TACHO_CHECK_FLIPS` sets another number.
const FLIPS: usize = 200;
/// Number of repairs, each after one flipped bit; `TACHO_REPAIR_FLIPS` sets another number.
const REPAIRS: usize = 30;

/// Files without content that the check could compare.
const NOT_CHECKED: [&str; 4] = ["LOCK", "RESERVE", "tokens.lock", "audit.log"];
/// Files that state a version in clear text.
const JSON_FILES: [&str; 3] = ["probes.json", "record_types.json", "tokens"];

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
    /// Damage. The command refuses the directory if the changed file states a newer version.
    DamageOrRefusal,
}

fn told(name: &str, newest: &[String]) -> Told {
    match name {
        "chunks/END" => Told::Note,
        _ if name.contains("quarantine/") => Told::Quarantined,
        _ if JSON_FILES.contains(&name) => Told::DamageOrRefusal,
        _ if newest.iter().any(|newest| newest == name) => Told::DamageOrEnd,
        _ => Told::Damage,
    }
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "journal")
}

/// Calls `run` while one bit of a file is flipped. Then writes the old bytes again.
fn flip<T>(path: &Path, bit: usize, run: impl FnOnce() -> T) -> T {
    let whole = std::fs::read(path).unwrap();
    let mut changed = whole.clone();
    changed[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, changed).unwrap();
    let result = run();
    std::fs::write(path, whole).unwrap();
    result
}

/// The index of a random bit of the file, from 0.
fn draw_bit(random: &mut Random, path: &Path) -> usize {
    random.next() as usize % (std::fs::metadata(path).unwrap().len() as usize * 8)
}

fn number(finding: &Value, member: &str) -> Option<usize> {
    finding[member].as_u64().map(|n| n as usize)
}

/// Whether the place of a finding includes the byte.
fn includes(finding: &Value, byte: usize) -> bool {
    let from = number(finding, "offset").unwrap_or(0);
    let to = number(finding, "bytes").map_or(usize::MAX, |bytes| from + bytes);
    (from..to).contains(&byte)
}

/// A part of a file that a repair keeps or loses: a row of a segment, or a record of a journal.
struct Unit {
    file: String,
    bytes: Range<usize>,
    content: Content,
}

enum Content {
    /// A row that readers get, here without its value.
    Row(Row),
    /// The batch of this round.
    Batch(usize),
    /// A row that was replaced, or a journal record that only repeats definitions.
    Nothing,
}

impl Unit {
    fn includes(&self, file: &str, byte: usize) -> bool {
        self.file == file && self.bytes.contains(&byte)
    }

    /// Whether the finding names the file and this unit. The finding about a journal record has only its begin.
    fn is_place_of(&self, finding: &Value) -> bool {
        let is_length = |bytes: usize| bytes == self.bytes.len();
        finding["file"] == *self.file
            && number(finding, "offset") == Some(self.bytes.start)
            && number(finding, "bytes").is_none_or(is_length)
    }

    /// The records that only this unit has. `whole` has all records of the directory. The labels in rows of the Series table are
    /// also in the journal.
    fn records(&self, data: &Path, whole: &BTreeSet<String>) -> BTreeSet<String> {
        match &self.content {
            Content::Row(row) if row.table == Table::Chunks => {
                let without = data.with_file_name("without");
                copy(data, &without);
                in_runtime(async {
                    let driver = unlocked(|| async { Embedded::open(&without.join("chunks")).await }).await;
                    let delete = Delete::row(row.table, row.partition.clone(), row.clustering.clone());
                    driver.delete(vec![delete]).await.unwrap();
                });
                whole - &records(&without)
            }
            Content::Batch(round) => {
                whole.iter().filter(|record| round_of(record) == *round).cloned().collect()
            }
            Content::Row(_) | Content::Nothing => BTreeSet::new(),
        }
    }
}

/// The rows of all segments, and the records of all journals, of an undamaged directory.
fn units(data: &Path) -> Vec<Unit> {
    let (stores, accepted) = (BTreeSet::new(), BTreeSet::new());
    let image = Image::open(&data.join("chunks"), "chunks/", &stores, &accepted).unwrap();
    let mut units = Vec::new();
    for (number, _) in image.files() {
        let mut each = |placed: PlacedRow| {
            let (from, bytes) = (placed.place.offset.unwrap() as usize, placed.place.bytes.unwrap() as usize);
            let row = Row { value: Default::default(), ..placed.row.unwrap() };
            let content = if placed.needed { Content::Row(row) } else { Content::Nothing };
            units.push(Unit { file: placed.place.file.to_string(), bytes: from..from + bytes, content });
        };
        image.check_file(number, &mut each).unwrap();
    }
    let mut rounds = ROUNDS_IN_JOURNAL;
    for path in files(data).into_iter().filter(|path| is_journal(path)) {
        let file = path.strip_prefix(data).unwrap().to_str().unwrap();
        for (bytes, is_batch) in journal_records(&std::fs::read(&path).unwrap()) {
            let content = match is_batch {
                true => Content::Batch(rounds.next().expect("the journal has more batches than rounds")),
                false => Content::Nothing,
            };
            units.push(Unit { file: file.to_owned(), bytes, content });
        }
    }
    assert_eq!(rounds.next(), None, "the journal lacks a round");
    units
}

/// The places of the records of an undamaged journal (`docs/format/journal.md`), each with whether it has a batch.
fn journal_records(bytes: &[u8]) -> Vec<(Range<usize>, bool)> {
    let older = usize::from(u16::from_le_bytes(bytes[10..12].try_into().unwrap()));
    // The header has two copies.
    let mut at = 2 * (48 + 16 * older + 4);
    let mut found = Vec::new();
    while at < bytes.len() {
        let next = &bytes[at..];
        match &next[..4] {
            b"\xf5rec" => {
                let length = u32::from_le_bytes(next[4..8].try_into().unwrap()) as usize;
                let repeats = 2;
                found.push((at..at + 12 + length, next[12] & repeats == 0));
                at += 12 + length;
            }
            b"\xf5end" => at += 16,
            other => panic!("neither a record nor a mark at byte {at}: {other:?}"),
        }
    }
    found
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
    let units = units(&data);
    let flips = support::number_from("TACHO_CHECK_FLIPS", FLIPS);
    let (mut random, mut missed, mut kinds) = (Random::new(20_261_124), Vec::new(), BTreeMap::new());
    for n in 0..flips {
        let path = &files[n % files.len()];
        let bit = draw_bit(&mut random, path);
        let (code, stdout, stderr) = flip(path, bit, || run(&["check", data.to_str().unwrap(), "--json"]));
        let name = name_of(path);
        let unit = units.iter().find(|unit| unit.includes(&name, bit / 8));
        if told(&name, &newest) == Told::DamageOrRefusal && stderr.contains(" has version ") {
            assert_eq!(code, Some(2), "{stderr}");
            continue;
        }
        let findings: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let findings = &findings[..findings.len().saturating_sub(1)];
        let new: Vec<&Value> = findings.iter().filter(|finding| !clean.contains(finding)).collect();
        let of_file: Vec<&&Value> = new.iter().filter(|finding| finding["file"] == *name).collect();
        let is_damage = of_file.iter().any(|finding| {
            finding["severity"] == "damage" && unit.is_none_or(|unit| unit.is_place_of(finding))
        });
        let is_at_end = of_file.iter().any(|finding| {
            matches!(finding["kind"].as_str(), Some("unacknowledged" | "end-doubtful"))
                && includes(finding, bit / 8)
        });
        let is_told = match told(&name, &newest) {
            Told::Damage | Told::DamageOrRefusal => is_damage,
            Told::DamageOrEnd => is_damage || is_at_end,
            Told::Note => of_file.iter().any(|finding| finding["kind"] == "unacknowledged"),
            Told::Quarantined => {
                findings.iter().any(|finding| finding["file"] == *name && finding["severity"] == "damage")
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
        let length = std::fs::metadata(&path).unwrap().len() as usize;
        for at in [length / 3, length / 2] {
            let (code, findings, _) = flip(&path, 8 * at, || check(&data, &[]));
            let name = path.strip_prefix(&data).unwrap().to_str().unwrap();
            let is_it = |finding: &&Value| finding["file"] == name && finding["severity"] == "damage";
            assert!(
                code == 1 && findings.iter().any(|finding| is_it(&finding)),
                "{name}, byte {at}: {findings:?}"
            );
        }
    }
    assert_eq!(check(&data, &[]).0, 0);
}

/// The time in a record of [`records`]: the first word after the labels that is a number.
fn time_of(record: &str) -> i64 {
    let mut numbers = record.split(' ').filter_map(|word| word.parse().ok());
    numbers.find(|at| *at >= START).unwrap_or_else(|| panic!("{record}"))
}

/// Number of the batch with the record.
fn round_of(record: &str) -> usize {
    ((time_of(record) - START) / (600 * SECOND)) as usize
}

/// Whether a loss that the repair states can include the lost record. The repair states series, times or a number of records
/// only as far as the damaged bytes permit this. If the key of the row may be damaged, the stated series and times may be wrong.
fn permits(loss: &Value, record: &str) -> bool {
    let lost = &loss["lost"];
    if lost.is_null() || loss["reason"].as_str().unwrap().ends_with("its key may be damaged too") {
        return true;
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

/// Asserts that a repair has named the changed unit, and has lost only records of this unit. `unit` is `None` if the changed byte
/// is in no unit, for example in an index. Then no record is lost.
fn assert_only_unit_is_lost(
    unit: Option<&Unit>,
    (file, byte): (&str, usize),
    losses: &[Value],
    lost: &BTreeSet<String>,
    own: &BTreeSet<String>,
) {
    for loss in losses {
        let is_place = match unit {
            Some(unit) => unit.is_place_of(loss),
            None => loss["file"] == file && includes(loss, byte),
        };
        assert!(is_place, "{file}, byte {byte}: a loss in another place: {loss}");
    }
    for record in lost {
        assert!(own.contains(record), "{file}, byte {byte}: {record} of another unit is lost: {losses:?}");
        let is_permitted = losses.iter().any(|loss| permits(loss, record));
        assert!(is_permitted, "{file}, byte {byte}: {record} is not in the stated losses: {losses:?}");
    }
}

#[test]
fn a_repair_loses_only_records_of_the_changed_row_or_batch() {
    let place = tempfile::tempdir().unwrap();
    let [data, damaged, into] = ["data", "damaged", "new"].map(|name| place.path().join(name));
    directory(&data);
    copy(&data, &damaged);
    let (whole, units) = (records(&data), units(&data));
    let is_checked = |path: &PathBuf| is_segment(path) || is_journal(path);
    let files: Vec<PathBuf> = files(&damaged).into_iter().filter(is_checked).collect();
    let flips = support::number_from("TACHO_REPAIR_FLIPS", REPAIRS);
    let (mut random, mut lost_all, mut partly) = (Random::new(4_711), 0, 0);
    for n in 0..flips {
        let path = &files[n % files.len()];
        let bit = draw_bit(&mut random, path);
        let (code, losses, summary) = flip(path, bit, || repair(&damaged, &into));
        let name = path.strip_prefix(&damaged).unwrap().to_str().unwrap();
        let at = format!("{name}, bit {bit}: {losses:?}");
        let saved = records(&into);
        let lost = &whole - &saved;
        let unit = units.iter().find(|unit| unit.includes(name, bit / 8));
        let own = match unit {
            Some(unit) if !lost.is_empty() => unit.records(&data, &whole),
            _ => BTreeSet::new(),
        };
        assert_only_unit_is_lost(unit, (name, bit / 8), &losses, &lost, &own);
        let stated = &summary["findings"]["lost"];
        let number = |name: &str| stated[name].as_u64().unwrap() as usize;
        let known = number("samples") + number("entries") + number("calls");
        assert!(
            number("unknown") > 0 || lost.len() <= known,
            "{} records are lost, the repair states {known}: {at}",
            lost.len()
        );
        let reappear = losses.iter().any(|loss| loss["effect"].as_str().unwrap().contains("reappear"));
        assert!(reappear || saved.is_subset(&whole), "new records: {at}");
        assert_eq!(code, i32::from(!losses.is_empty()), "{at}");
        let (code, findings, _) = check(&into, &[]);
        assert_eq!((code, of(&findings, "damage")), (0, vec![]), "{at}");
        assert_eq!(of(&findings, "warning"), Vec::<String>::new(), "{at}");
        lost_all += lost.len();
        let is_exact = |loss: &Value| loss["lost"]["records"].as_u64() == Some(lost.len() as u64);
        partly += usize::from(!lost.is_empty() && losses.iter().any(is_exact));
    }
    println!(
        "{flips} repairs: {lost_all} of {} records lost; {partly} repairs state the exact number",
        flips * whole.len()
    );
}
