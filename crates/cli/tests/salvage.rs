//! Tests `tacho check` and `tacho repair` where the journals show what `chunks/` lacks.

#[path = "support/checked.rs"]
mod checked;
#[path = "support/filled.rs"]
mod filled;
mod support;

use std::path::Path;

use checked::{check, contents, copy, damage_row, of, records, repair};
use filled::{directory, in_runtime};
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
