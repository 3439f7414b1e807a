//! The quarantine: unreadable files, and unreadable parts of files, that may still have records. The server never removes
//! them.

use std::path::{Path, PathBuf};

use tacho_store::disk::{self, Disk, free_path};
use tacho_store::{Error, Result};

use super::format::{file_name, file_number, file_path};

pub const DIRECTORY: &str = "quarantine";
/// Part of the file name of a copied end of a segment.
const TORN: &str = ".segment.torn-";
/// Bytes copied per step.
const PART_BYTES: usize = 1 << 20;

pub fn path(directory: &Path) -> PathBuf {
    directory.join(DIRECTORY)
}

/// Sorted names of the quarantined files.
pub fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<String>> {
    disk::names_in(disk, "list quarantine", &path(directory))
}

/// The number of the segment that was moved to the quarantine under this name.
pub fn number(name: &str) -> Option<u32> {
    file_number(name.get(..file_name(0).len())?).filter(|_| !is_torn_end(name))
}

/// Whether the file is a copy of an end that was cut off a segment.
pub fn is_torn_end(name: &str) -> bool {
    name.contains(TORN)
}

/// Moves a segment to the quarantine. Returns its new path.
pub fn set_aside(disk: &dyn Disk, directory: &Path, number: u32) -> Result<PathBuf> {
    let from = file_path(directory, number);
    let moved = || {
        let to = free_path(disk, &path(directory), &file_name(number))?;
        disk.rename(&from, &to)?;
        disk.sync_directory(&path(directory))?;
        disk.sync_directory(directory)?;
        Ok(to)
    };
    moved().map_err(|e| Error::io("quarantine segment", &from, e))
}

/// Copies the bytes of a segment that begin at `offset` to the quarantine. Returns the path of the copy.
pub fn keep_end(disk: &dyn Disk, directory: &Path, number: u32, offset: u64) -> Result<PathBuf> {
    let from = file_path(directory, number);
    let copy = || {
        let to = free_path(disk, &path(directory), &format!("{number:08}{TORN}{offset}"))?;
        let source = disk.open_to_read(&from)?;
        let mut file = disk.open(&to)?;
        let mut part = vec![0; PART_BYTES];
        let mut at = offset;
        loop {
            let bytes = source.read_at(&mut part, at)?;
            if bytes == 0 {
                break;
            }
            file.append(&part[..bytes])?;
            at += bytes as u64;
        }
        file.sync()?;
        disk.sync_directory(&path(directory))?;
        Ok(to)
    };
    copy().map_err(|e| Error::io("copy torn end of segment", &from, e).with("offset", offset))
}
