//! The quarantine of the journal. Files that may contain an unreadable record are moved there and never deleted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{file_name, named_generation};
use super::lack::{Lack, is_lack};
use super::reader::read;
use crate::disk::{Disk, SyncPoint, free_path};

pub const QUARANTINE: &str = "quarantine";

fn files(disk: &dyn Disk, directory: &Path) -> impl Iterator<Item = PathBuf> {
    let quarantine = directory.join(QUARANTINE);
    let names = disk.list(&quarantine).unwrap_or_default();
    names.into_iter().map(move |name| quarantine.join(name)).filter(|path| !is_lack(path))
}

/// Number of files in the quarantine, without the lack files. A lack file describes the unreadable parts of one journal
/// (`lack.rs`).
pub fn quarantined(disk: &dyn Disk, directory: &Path) -> u64 {
    files(disk, directory).count() as u64
}

/// Losses of the quarantined files: one reason for each file with missing batches. They are reported until an operator
/// removes the file.
pub fn lost_in(disk: &dyn Disk, directory: &Path) -> Vec<Arc<str>> {
    // The name need not end with `.journal`: the name of a second file of the same generation has a
    // number appended.
    let journal = |path: PathBuf| {
        let name = path.file_name()?.to_str().filter(|name| name.contains(".journal"))?;
        Some((named_generation(name)?, path))
    };
    let mut journals: Vec<(u64, PathBuf)> = files(disk, directory).filter_map(journal).collect();
    journals.sort_unstable();
    let lost = journals.into_iter().filter_map(|(generation, path)| match Lack::read(disk, &path) {
        Some(lack) => lack.reason(generation),
        // The lack file (`NAME.lack`) is damaged or missing. It is missing if it could not be written, or if an older
        // version quarantined the journal.
        None => match read(disk, &path, |_| {}) {
            Ok(contents) => contents.lack().reason(generation),
            Err(error) => Some(format!("{} cannot be read: {error}", file_name(generation)).into()),
        },
    });
    lost.collect()
}

/// Moves the journal of a generation to the quarantine, under the name of this generation, and writes its lack file. Returns the
/// new path of the file.
pub fn set_aside(
    disk: &dyn Disk,
    directory: &Path,
    (path, generation): (&Path, u64),
    lack: &Lack,
) -> io::Result<PathBuf> {
    let quarantine = directory.join(QUARANTINE);
    let kept = free_path(disk, &quarantine, &file_name(generation))?;
    let written = disk.length(path).and_then(|bytes| lack.write(disk, &kept, bytes));
    if let Err(error) = written {
        tracing::warn!(path = %kept.display(), %error, "cannot write the lack file: each start reads this journal again");
    }
    disk.rename(path, &kept)?;
    disk.sync_directory(&quarantine, SyncPoint::JournalSetAside)?;
    disk.sync_directory(directory, SyncPoint::JournalSetAsideGone)?;
    Ok(kept)
}
