//! The quarantine of unreadable segments, copies of torn ends of segments, and notes about missing ends. The segments and the
//! copies may still have intact rows, so the server never removes them.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use tacho_store::disk::{self, Disk, ReadFile, SyncPoint, free_path};
use tacho_store::size::in_memory;
use tacho_store::{Error, Result};

use super::format::{SUFFIX, file_name, file_number, file_path};

pub const DIRECTORY: &str = "quarantine";
/// Part of the file name of a copied end of a segment.
const TORN: &str = ".segment.torn-";
/// Part of the file name of a note about a missing end of a segment.
const MISSING: &str = ".missing-";
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
    let end = name.find(SUFFIX)? + SUFFIX.len();
    file_number(name.get(..end)?).filter(|_| !is_torn_end(name))
}

/// Whether the file is a copy of an end that was cut off a segment.
pub fn is_torn_end(name: &str) -> bool {
    name.contains(TORN)
}

/// Bytes that a segment lacks at its end. They were on disk, and the file was cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub number: u32,
    pub offset: u64,
    pub bytes: u64,
}

impl Missing {
    fn name(self) -> String {
        let Self { number, offset, bytes } = self;
        format!("{number:08}{MISSING}{offset}-{bytes}")
    }

    fn text(self) -> String {
        let Self { number, offset, bytes } = self;
        format!("tachograph missing 1\nsegment {number}\noffset {offset}\nbytes {bytes}\n")
    }
}

/// The missing end that a note with this file name states. `None` if the file is not a note.
pub fn missing(name: &str) -> Option<Missing> {
    let (number, range) = name.split_once(MISSING)?;
    let (offset, bytes) = range.split_once('-')?;
    let missing = Missing {
        number: file_number(&format!("{number}{SUFFIX}"))?,
        offset: offset.parse().ok()?,
        bytes: bytes.parse().ok()?,
    };
    (missing.name() == name).then_some(missing)
}

/// Notes the missing end of a segment in the quarantine, so that each start reports it until an operator removes the note.
/// On return the note is durable. It replaces an equal note of an earlier start.
pub fn note_missing(disk: &dyn Disk, directory: &Path, missing: Missing) -> Result<PathBuf> {
    let quarantine = path(directory);
    let to = quarantine.join(missing.name());
    let note = || {
        disk.make_directory(&quarantine)?;
        match disk.remove(&to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = disk.open(&to)?;
        file.append(missing.text().as_bytes())?;
        file.sync(SyncPoint::MissingNote)?;
        disk.sync_directory(&quarantine, SyncPoint::MissingNoteName)
    };
    note().map_err(|e| Error::io("note the missing end of a segment", &to, e))?;
    Ok(to)
}

/// Moves a segment to the quarantine. Returns its new path.
pub fn set_aside(disk: &dyn Disk, directory: &Path, number: u32) -> Result<PathBuf> {
    let from = file_path(directory, number);
    let moved = || {
        let to = free_path(disk, &path(directory), &file_name(number))?;
        disk.rename(&from, &to)?;
        disk.sync_directory(&path(directory), SyncPoint::SegmentSetAside)?;
        disk.sync_directory(directory, SyncPoint::SegmentSetAsideGone)?;
        Ok(to)
    };
    moved().map_err(|e| Error::io("quarantine segment", &from, e))
}

/// Copies the bytes of a segment from `offset` on into the quarantine. Returns the path of the copy. If an earlier
/// start ended before it cut the segment, its copy may be incomplete. This function then completes that copy.
pub fn keep_end(disk: &dyn Disk, directory: &Path, number: u32, offset: u64) -> Result<PathBuf> {
    let from = file_path(directory, number);
    let name = format!("{number:08}{TORN}{offset}");
    let copy = || {
        let source = disk.open_to_read(&from)?;
        let (to, copied) = match begun(disk, directory, &name, &*source, offset)? {
            Some(begun) => begun,
            None => (free_path(disk, &path(directory), &name)?, 0),
        };
        let mut file = disk.open(&to)?;
        let mut part = vec![0; PART_BYTES];
        let mut at = offset + copied;
        loop {
            let bytes = source.read_at(&mut part, at)?;
            if bytes == 0 {
                break;
            }
            file.append(part.get(..bytes).unwrap_or_default())?;
            at += bytes as u64;
        }
        // The earlier start may have failed to sync the bytes that it copied, and a later sync alone may not write them.
        if copied > 0 {
            disk.renew(&to, 0, SyncPoint::TornCopyCompleted)?
        } else {
            file.sync(SyncPoint::TornCopy)?
        }
        disk.sync_directory(&path(directory), SyncPoint::TornCopyName)?;
        Ok(to)
    };
    copy().map_err(|e| Error::io("copy torn end of segment", &from, e).with("offset", offset))
}

/// The path and length of an existing copy of the bytes of `source` from `offset` on. The copy may be incomplete. The copies of
/// one place have the same name, some with a number after it.
fn begun(
    disk: &dyn Disk,
    directory: &Path,
    name: &str,
    source: &dyn ReadFile,
    offset: u64,
) -> io::Result<Option<(PathBuf, u64)>> {
    let end = source.length()?.saturating_sub(offset);
    for found in disk.list(&path(directory)).or_else(none_if_missing)? {
        let to = path(directory).join(&found);
        let numbered =
            found.to_string_lossy().strip_prefix(name).map(|more| more.is_empty() || more.starts_with('.'));
        if numbered != Some(true) {
            continue;
        }
        let bytes = disk.length(&to)?;
        if bytes <= end && is_same(&*disk.open_to_read(&to)?, source, offset, bytes)? {
            return Ok(Some((to, bytes)));
        }
    }
    Ok(None)
}

fn none_if_missing(error: io::Error) -> io::Result<Vec<OsString>> {
    if error.kind() == io::ErrorKind::NotFound { Ok(Vec::new()) } else { Err(error) }
}

/// Whether the first `bytes` bytes of a copy equal those of `source` from `offset` on.
fn is_same(copy: &dyn ReadFile, source: &dyn ReadFile, offset: u64, bytes: u64) -> io::Result<bool> {
    let (mut one, mut other) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < bytes {
        let part = (bytes - at).min(PART_BYTES as u64);
        one.resize(in_memory(part), 0);
        other.resize(in_memory(part), 0);
        copy.read_exact_at(&mut one, at)?;
        source.read_exact_at(&mut other, offset + at)?;
        if one != other {
            return Ok(false);
        }
        at += part;
    }
    Ok(true)
}
