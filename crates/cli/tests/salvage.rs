//! Tests `tacho check` and `tacho repair` where the journals show what `chunks/` lacks.

#[path = "support/checked.rs"]
mod checked;
#[path = "support/filled.rs"]
mod filled;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use checked::{check, contents, copy, damage_row, files, is_segment, of, records, repair};
use filled::{directory, in_runtime};
use serde_json::Value;
use support::run;
use tacho_drivers::embedded::Embedded;
use tacho_model::Kind;
use tacho_store::{Driver, Table};

/// Partition and clustering of the series rows of samples.
fn groups_of_samples(data: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    in_runtime(async {
        let driver = Embedded::open_read_only(&data.join("chunks")).await.unwrap();
        let mut each = |partition: &[u8], clustering: &[u8]| {
            if clustering.first() == Some(&(Kind::Sample as u8)) {
                found.push([partition, clustering].concat());
            }
        };
        driver.keys(Table::Series, &mut each).await.unwrap();
    });
    found
}

#[test]
fn lost_labels_of_a_group_are_restored_from_a_journal() {
    let place = tempfile::tempdir().unwrap();
    let (data, damaged, into) =
        (place.path().join("data"), place.path().join("damaged"), place.path().join("new"));
    directory(&data);
    let groups = groups_of_samples(&data);
    assert!(groups.len() < 12, "a group has several members");
    copy(&data, &damaged);
    groups.iter().for_each(|key| damage_row(&damaged, key));
    let before = contents(&damaged);
    let (code, findings, summary) = check(&damaged, &[]);
    assert_eq!(code, 1, "{findings:?}");
    let unknown = of(&findings, "damage").into_iter().filter(|found| found.contains("series-unknown"));
    assert_eq!(unknown.count(), groups.len(), "{findings:?}");
    assert_eq!(summary["findings"]["lost"]["samples"], 0, "{findings:?}");
    let (code, losses, _) = repair(&damaged, &into);
    assert_eq!((code, losses), (0, vec![]));
    assert_eq!(records(&into), records(&data));
    assert_eq!(contents(&damaged), before);
    let (code, findings, _) = check(&into, &[]);
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
}

/// The directory has a journal of a later generation than the first one, so records were flushed to `chunks/` before.
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
    // Like the start of an earlier version, which refused the directory after it had created `chunks/`.
    let empty = |at: &Path| {
        remove_all(at);
        in_runtime(async { drop(Embedded::open(&at.join("chunks")).await.unwrap()) });
    };
    let cases: [(&str, &dyn Fn(&Path)); 3] =
        [("no chunks", &remove_all), ("no segments", &remove_segments), ("new chunks", &empty)];
    for (name, remove) in cases {
        copy(&data, &damaged);
        remove(&damaged);
        let before = tree(&damaged);
        let serve = ["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--data"];
        let (code, stdout, stderr) = run(&[&serve[..], &[damaged.to_str().unwrap()]].concat());
        assert_eq!(code, Some(1), "{name}: {stdout}{stderr}");
        assert!(stderr.contains("the data flushed before them is missing"), "{name}: {stderr}");
        assert_eq!(tree(&damaged), before, "{name}: a refused start changes nothing");
        let (code, findings, _) = check(&damaged, &[]);
        let missing: Vec<&Value> = findings.iter().filter(|found| found["kind"] == "file-missing").collect();
        assert_eq!((code, missing.len()), (1, 1), "{name}: {findings:?}");
        assert_eq!(missing[0]["file"], "chunks", "{name}: {findings:?}");
        let (code, losses, summary) = repair(&damaged, &into);
        assert_eq!((code, losses.len()), (1, 1), "{name}: {losses:?}");
        assert_eq!(summary["findings"]["lost"]["unknown"], 1, "{name}: {summary}");
        assert!(in_journal.is_subset(&records(&into)), "{name}");
        assert_eq!(tree(&damaged), before, "{name}");
        let (code, findings, _) = check(&into, &[]);
        assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]), "{name}");
    }
}

/// Path and length of every file and directory, except of lock files.
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
