//! Where do files go that may hold a record that cannot be read? Never away.

use std::io;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, free_path};

/// Directory of what was set aside, in the journal's directory.
pub const QUARANTINE: &str = "quarantine";

/// How many files were set aside and are still there.
pub fn quarantined(directory: &Path) -> u64 {
    std::fs::read_dir(directory.join(QUARANTINE)).map_or(0, |entries| entries.count() as u64)
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
