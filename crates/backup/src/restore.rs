//! Restores a backup into a new directory. When all files are complete, verified and on disk, [`Restored::commit`] gives the
//! directory its name.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use tacho_store::disk::{DIRECTORY_MODE, Disk, RealDisk, make_directory, private_file, sync_directory};
use tacho_store::{Error, ErrorKind as Kind, Result};

use crate::record::{FOLDERS, Record, SavedFile};
use crate::repository::{Lock, Repository, Work};

/// Suffix of the directory's name while the directory is incomplete.
const SUFFIX: &str = ".restoring";

/// A restored directory that does not have its name yet. A drop before [`Restored::commit`] removes the directory.
pub struct Restored {
    directory: PathBuf,
    to: PathBuf,
    is_committed: bool,
}

/// Restores a backup to `to`, which must be absent or an empty directory.
///
/// # Errors
/// - `Invalid` if `to` cannot be replaced, another restore writes to it, or an interrupted restore left its directory.
/// - `Locked` while a backup is made or pruned.
/// - `StorageFull` if `to` has no space left.
/// - `Corrupt` if the record or an object is missing or has other bytes.
/// - `Version` if a newer version wrote the record.
/// - `Io` if a file cannot be read or written.
/// - `Unavailable` if a bucket cannot be reached.
/// - The error of `work.check`.
pub fn restore(repository: &Repository, record: &Record, to: &Path, work: &mut Work<'_>) -> Result<Restored> {
    let to = std::path::absolute(to).map_err(|e| Error::io("find", to, e))?;
    let directory = beside(&to)?;
    let _lock = repository.lock(Lock::Shared)?;
    // The record is read again, because a prune may have removed the backup before the lock.
    let record = &repository.record(&record.id).map_err(|error| match error.kind() {
        Kind::Invalid => Error::corrupt("backup was removed after it was chosen").with("backup", &record.id),
        _ => error,
    })?;
    let above = directory.parent().unwrap_or(Path::new("/")).to_owned();
    make_directory(&above).map_err(|e| Error::io("make directory", &above, e))?;
    check_space(&above, record.bytes())?;
    match DirBuilder::new().mode(DIRECTORY_MODE).create(&directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message = "another restore writes to this directory, or was interrupted: remove it if no restore is running";
            return Err(Error::invalid(message).with("path", directory.display()));
        }
        made => made.map_err(|e| Error::io("make directory", &directory, e))?,
    }
    let restored = Restored { directory, to, is_committed: false };
    work.total = record.bytes();
    for folder in ["chunks", "journal"] {
        restored.make_folder(folder)?;
    }
    for file in &record.files {
        restored.write(repository, file, work)?;
    }
    restored.sync_folders()?;
    Ok(restored)
}

/// The path of the incomplete directory. Checks that it can later replace `to`.
fn beside(to: &Path) -> Result<PathBuf> {
    let refused = |why: &str| Err(Error::invalid(why).with("path", to.display()));
    let (Some(name), Some(above)) = (to.file_name(), to.parent()) else {
        return refused("a backup cannot be restored to this path");
    };
    match std::fs::symlink_metadata(to) {
        Ok(found) if found.is_symlink() => return refused("path is a symbolic link: give its destination"),
        Ok(found) if !found.is_dir() => return refused("path exists and is not a directory"),
        Ok(found) => {
            let mut entries = std::fs::read_dir(to).map_err(|e| Error::io("list", to, e))?;
            if entries.next().is_some() {
                return refused("directory is not empty: restore to a new one");
            }
            if std::fs::metadata(above).is_ok_and(|above| above.dev() != found.dev()) {
                return refused("directory is a mount point: restore to a new directory in it");
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("read", to, error)),
    }
    let mut incomplete = OsString::from(name);
    incomplete.push(SUFFIX);
    Ok(above.join(incomplete))
}

fn check_space(above: &Path, bytes: u64) -> Result<()> {
    let Ok(free) = RealDisk.free_bytes(above) else { return Ok(()) };
    if free >= bytes {
        return Ok(());
    }
    let message = format!("backup has {bytes} bytes, and {free} are free on the disk");
    Err(Error::new(Kind::StorageFull, message).with("path", above.display()))
}

impl Restored {
    /// The directory with the files, under its temporary name.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn make_folder(&self, folder: &str) -> Result<()> {
        let path = self.directory.join(folder);
        make_directory(&path).map_err(|e| Error::io("make directory", &path, e))
    }

    fn write(&self, repository: &Repository, saved: &SavedFile, work: &mut Work<'_>) -> Result<()> {
        if let Some((folder, _)) = saved.name.rsplit_once('/') {
            self.make_folder(folder)?;
        }
        let path = self.directory.join(&saved.name);
        let failed = |e| Error::io("write", &path, e);
        let mut file = private_file().write(true).create_new(true).open(&path).map_err(failed)?;
        let read = repository.read_object(saved.sha256, saved.bytes, &mut |part| {
            file.write_all(part).map_err(failed)?;
            work.advance(part.len() as u64)
        });
        read.map_err(|error| error.with("file", &saved.name))?;
        file.sync_all().map_err(|e| Error::io("sync", &path, e))
    }

    fn sync_folders(&self) -> Result<()> {
        for folder in FOLDERS.into_iter().chain([""]) {
            let path = self.directory.join(folder);
            if path.is_dir() {
                sync_directory(&path).map_err(|e| Error::io("sync directory", &path, e))?;
            }
        }
        Ok(())
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    /// `Io` if the directory cannot be renamed, for example because `to` has files now.
    pub fn commit(mut self) -> Result<()> {
        std::fs::rename(&self.directory, &self.to).map_err(|e| Error::io("rename", &self.to, e))?;
        self.is_committed = true;
        let above = self.to.parent().unwrap_or(Path::new("/"));
        sync_directory(above).map_err(|e| Error::io("sync directory", above, e))
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        if !self.is_committed {
            // If the removal fails, the next restore to this path fails with an error that names this directory.
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}
