//! Removes old backups, and the objects that no backup needs any more.

use std::collections::{BTreeMap, HashSet};

use jiff::tz::TimeZone;
use tacho_store::{Error, Result};

use crate::record::{Id, Record};
use crate::repository::{Lock, Repository, Work};

/// Which backups to keep. A backup is kept if at least one of the two rules keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// For each data directory, this number of its newest backups is kept.
    pub last: usize,
    /// Number of days (in UTC) for each data directory: the last days with a backup. The newest backup of each of these days is
    /// kept.
    pub daily: usize,
}

#[derive(Debug, Default)]
pub struct Pruned {
    pub kept: Vec<Id>,
    pub removed: Vec<Id>,
    /// Number of objects that were removed, or that a dry run would remove, and the sum of their bytes.
    pub objects: u64,
    pub bytes: u64,
}

/// The backups to keep. The rules apply to each data directory separately.
pub fn choose(records: &[Record], keep: Keep) -> HashSet<&Id> {
    let mut by_origin: BTreeMap<(&str, &str), Vec<&Record>> = BTreeMap::new();
    for record in records {
        by_origin.entry(record.origin()).or_default().push(record);
    }
    let mut kept = HashSet::new();
    for backups in by_origin.values_mut() {
        backups.sort_by_key(|record| std::cmp::Reverse((record.time, &record.id)));
        kept.extend(backups.iter().take(keep.last).map(|record| &record.id));
        let mut days = HashSet::new();
        for record in backups {
            let day = record.time.to_zoned(TimeZone::UTC).date();
            if days.len() < keep.daily && days.insert(day) {
                kept.insert(&record.id);
            }
        }
    }
    kept
}

/// Removes the backups that `keep` does not keep, and all objects that no kept backup needs. With `dry_run` nothing is
/// removed.
///
/// # Errors
/// - `Invalid` if `keep` keeps nothing or there is no repository.
/// - `Locked` if another process uses the repository.
/// - `Corrupt` or `Version` if a record is damaged or newer. Then nothing is removed, because the objects of the record are
///   unknown.
/// - `Corrupt` if there are objects, but no record: the records may be lost, and all objects would be removed.
/// - `Io` or `Unavailable` if the place cannot be read or changed.
/// - The error of `work.check`.
///
/// An error while objects are removed leaves some of them.
pub fn prune(repository: &Repository, keep: Keep, dry_run: bool, work: &mut Work<'_>) -> Result<Pruned> {
    if keep == Keep::default() {
        return Err(Error::invalid("no backup would be kept"));
    }
    repository.check_format()?;
    let _lock = repository.lock(Lock::Exclusive)?;
    let ids = repository.ids()?;
    let records = ids.iter().map(|id| repository.record(id)).collect::<Result<Vec<Record>>>()?;
    let chosen = choose(&records, keep);
    let (kept, removed): (Vec<Id>, Vec<Id>) = ids.iter().cloned().partition(|id| chosen.contains(id));
    let needed: HashSet<_> = records
        .iter()
        .filter(|record| chosen.contains(&record.id))
        .flat_map(|record| record.files.iter().map(|file| file.sha256))
        .collect();
    let objects = repository.objects()?;
    if records.is_empty() && !objects.is_empty() {
        return Err(Error::corrupt(format!(
            "{} has objects, but no record of a backup: nothing is removed, because the records may be lost",
            repository.location()
        )));
    }
    let unused: Vec<_> = objects.into_iter().filter(|(hash, _)| !needed.contains(hash)).collect();
    if !dry_run {
        // The records are removed first, so that a record never names a removed object.
        repository.remove_records(&removed)?;
        repository.clean()?;
        work.total = unused.len() as u64;
        for (hash, _) in &unused {
            repository.remove_object(*hash)?;
            work.advance(1)?;
        }
    }
    let bytes = unused.iter().map(|(_, bytes)| bytes).sum();
    Ok(Pruned { kept, removed, objects: unused.len() as u64, bytes })
}
