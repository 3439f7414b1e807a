//! Reads every object of backups and compares its hash with its name.

use std::collections::{BTreeMap, HashSet};

use tacho_store::{Error, ErrorKind, Result};

use crate::hash::Hash;
use crate::record::Id;
use crate::repository::{Lock, Repository, Work};

/// A record or an object that is damaged, missing or unreadable.
#[derive(Debug)]
pub struct Fault {
    /// The object; `None` for a record.
    pub object: Option<Hash>,
    /// Whether the repository does not have the object.
    pub is_absent: bool,
    pub reason: Error,
    /// The requested backups that cannot be restored because of this fault.
    pub backups: Vec<Id>,
}

#[derive(Debug, Default)]
pub struct Verified {
    pub backups: u64,
    pub objects: u64,
    pub bytes: u64,
    pub faults: Vec<Fault>,
    /// Number of objects that no backup needs, left by interrupted backups and prunes; the next prune removes them. `None` if a
    /// record is unreadable, because it may need any object.
    pub unused: Option<u64>,
}

impl Verified {
    /// The number of objects, if the repository has objects but no record of a backup: all records were removed, or the first
    /// backup was interrupted.
    pub fn objects_without_records(&self) -> Option<u64> {
        self.unused.filter(|unused| *unused > 0 && self.backups == 0 && self.faults.is_empty())
    }
}

/// Verifies the backups with the ids in `only`; all backups if it is empty.
///
/// # Errors
/// - `Invalid` if a backup or the repository does not exist.
/// - `Locked` while a backup is made or pruned.
/// - `Version` or `Corrupt` for the format file.
/// - `Io` or `Unavailable` if the repository cannot be listed or reached.
/// - The error of `work.check`.
///
/// The result states which records and objects are damaged or cannot be read.
pub fn verify(repository: &Repository, only: &[Id], work: &mut Work<'_>) -> Result<Verified> {
    let _lock = repository.lock(Lock::Shared)?;
    repository.check_format()?;
    let all = repository.ids()?;
    let mut verified = Verified::default();
    if let Some(absent) = only.iter().find(|id| !all.contains(id)) {
        return Err(Error::invalid(format!("no backup {absent} in {}", repository.location())));
    }
    let mut needed: BTreeMap<(Hash, u64), Vec<Id>> = BTreeMap::new();
    let (mut used, mut is_known) = (HashSet::new(), true);
    for id in &all {
        let is_wanted = only.is_empty() || only.contains(id);
        let record = match repository.record(id) {
            Ok(record) => record,
            Err(reason) if is_damage(&reason) || reason.kind() == ErrorKind::Io => {
                is_known = false;
                let fault = Fault { object: None, is_absent: false, reason, backups: vec![id.clone()] };
                verified.faults.extend(is_wanted.then_some(fault));
                continue;
            }
            Err(error) => return Err(error),
        };
        used.extend(record.files.iter().map(|file| file.sha256));
        if !is_wanted {
            continue;
        }
        verified.backups += 1;
        for file in &record.files {
            let backups = needed.entry((file.sha256, file.bytes)).or_default();
            // Records are read one after the other, so if the list has this backup already, it is the last item.
            if backups.last() != Some(id) {
                backups.push(id.clone());
            }
        }
    }
    let objects = repository.objects()?;
    verified.unused = is_known.then(|| objects.keys().filter(|hash| !used.contains(hash)).count() as u64);
    work.total = needed.keys().map(|(_, bytes)| bytes).fold(0, |sum, bytes| sum.saturating_add(*bytes));
    for ((hash, bytes), backups) in needed {
        verified.objects += 1;
        let before = work.done;
        let read = repository.read_object(hash, bytes, &mut |part| work.advance(part.len() as u64));
        verified.bytes += work.done - before;
        match read {
            Ok(()) => {}
            Err(reason) if is_damage(&reason) || reason.kind() == ErrorKind::Io => {
                let is_absent = !objects.contains_key(&hash);
                verified.faults.push(Fault { object: Some(hash), is_absent, reason, backups });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(verified)
}

fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Version)
}
