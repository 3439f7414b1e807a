//! Where do files go that may hold a record that cannot be read? Never away.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{file_name, named_generation};
use super::reader::{Contents, Lost, read};
use crate::disk::{Disk, free_path};

/// Directory of what was set aside, in the journal's directory.
pub const QUARANTINE: &str = "quarantine";

/// How many files were set aside and are still there.
pub fn quarantined(directory: &Path) -> u64 {
    std::fs::read_dir(directory.join(QUARANTINE)).map_or(0, |entries| entries.count() as u64)
}

/// What the files that were set aside lack: a reason for each of those that do. It is told until somebody takes the file away.
pub fn lost_in(directory: &Path) -> Vec<Arc<str>> {
    let Ok(entries) = std::fs::read_dir(directory.join(QUARANTINE)) else { return Vec::new() };
    // A second file of a generation has a number behind its name.
    let journal = |path: PathBuf| {
        let name = path.file_name()?.to_str().filter(|name| name.contains(".journal"))?;
        Some((named_generation(name)?, path))
    };
    let mut files: Vec<(u64, PathBuf)> =
        entries.flatten().filter_map(|entry| journal(entry.path())).collect();
    files.sort_unstable();
    let lost = files.into_iter().filter_map(|(generation, path)| match read(&path, |_| {}) {
        Ok(contents) => contents.lack(generation),
        Err(error) => Some(format!("{} cannot be read: {error}", file_name(generation)).into()),
    });
    lost.collect()
}

impl Contents {
    /// Why batches of this generation may be missing; `None` where none is.
    pub fn lack(&self, generation: u64) -> Option<Arc<str>> {
        let Lost { places, bytes } = self.lost;
        if places == 0 {
            return None;
        }
        let begun =
            self.header.as_ref().and_then(|h| jiff::Timestamp::from_nanosecond(h.created.into()).ok());
        let begun = begun.map_or_else(String::new, |begun| format!(", begun {begun}"));
        let (file, s) = (file_name(generation), if places == 1 { "" } else { "s" });
        let reason = format!(
            "{bytes} bytes at {places} place{s} of journal {file} (generation {generation}{begun}) cannot be read"
        );
        Some(reason.into())
    }
}

/// Moves a file out of the way.
pub fn set_aside(disk: &dyn Disk, directory: &Path, path: &Path) -> io::Result<PathBuf> {
    let quarantine = directory.join(QUARANTINE);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let kept = free_path(&quarantine, &name)?;
    disk.rename(path, &kept)?;
    disk.sync_directory(&quarantine)?;
    disk.sync_directory(directory)?;
    Ok(kept)
}
