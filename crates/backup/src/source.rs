//! The files of a data directory at one moment.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tacho_store::disk::{RealDisk, names_in, open_no_link, open_regular};
use tacho_store::lock::DirectoryLock;
use tacho_store::pin::refused_link;
use tacho_store::{Error, ErrorKind, Result, file_generation};

use crate::record::{FILES_MAX, FOLDERS, is_data_file};

/// A file of settings, which users edit.
const SETTINGS: &str = "tacho.toml";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path relative to the directory.
    pub name: String,
    /// Bytes to copy. The file may be longer.
    pub bytes: u64,
}

/// The files of a data directory at one moment; for a directory at rest also the locks that prevent changes to them.
pub struct Source {
    pub directory: PathBuf,
    pub files: Vec<SourceFile>,
    /// Names of files and directories that are unknown in a data directory, and of dangling links. They are not copied.
    pub ignored: Vec<String>,
    pub live: bool,
    /// The moment. Samples, entries and executions that were acknowledged before it are in the files.
    pub time: Timestamp,
    pub generation: u64,
    pub offset: u64,
    /// Prevents a server from opening a directory at rest.
    _locks: Vec<DirectoryLock>,
    /// In a directory at rest: the folders without a lock file, for example after a restore.
    unlocked: Vec<PathBuf>,
}

impl Source {
    /// A directory that no server uses. Its lock files prevent that a server opens it before the source is dropped. If it has no
    /// lock files, `check_at_rest` detects at the end of the backup that a server has used it.
    ///
    /// # Errors
    /// `Locked` when a server uses it; `Invalid` if it has more than [`FILES_MAX`] files, or a symbolic link that is not
    /// permitted; `Io` if it cannot be read.
    pub fn at_rest(data: &Path) -> Result<Self> {
        let (mut locks, mut unlocked) = (Vec::new(), Vec::new());
        for folder in ["", "chunks", "journal"].map(|name| data.join(name)) {
            if std::fs::symlink_metadata(&folder).is_ok() && !folder.is_dir() {
                return Err(Error::corrupt("it is not a directory").with("path", folder.display()));
            }
            match DirectoryLock::share(&folder)? {
                Some(lock) => locks.push(lock),
                None => unlocked.push(folder),
            }
        }
        let time = Timestamp::now();
        let (files, ignored) = listed(data, false)?;
        let generation_of = |file: &SourceFile| file_generation(file.name.strip_prefix("journal/")?);
        let newest = files.iter().filter_map(|file| Some((generation_of(file)?, file.bytes))).max();
        let (generation, offset) = newest.unwrap_or_default();
        let directory = data.to_owned();
        Self { directory, files, ignored, live: false, time, generation, offset, _locks: locks, unlocked }
            .checked()
    }

    /// The ignored names ([`Source::ignored`]) in the data directory of a running server.
    ///
    /// # Errors
    /// `Invalid` if the directory has a symbolic link that is not permitted; `Io` if it cannot be read.
    pub fn ignored_in(data: &Path) -> Result<Vec<String>> {
        listed(data, true).map(|(_, ignored)| ignored)
    }

    /// A snapshot that a server made: hard links in `directory`.
    ///
    /// # Errors
    /// `Invalid` if the name of a file is unknown in a data directory, or if there are more than [`FILES_MAX`] files.
    pub fn snapshot(
        directory: &Path,
        files: Vec<SourceFile>,
        (generation, offset): (u64, u64),
        time: Timestamp,
    ) -> Result<Self> {
        if let Some(file) = files.iter().find(|file| !is_data_file(&file.name)) {
            let message = format!("server names the file {:?}, which no data directory has", file.name);
            return Err(Error::invalid(message));
        }
        let directory = directory.to_owned();
        let (ignored, locks, unlocked) = (Vec::new(), Vec::new(), Vec::new());
        Self { directory, files, ignored, live: true, time, generation, offset, _locks: locks, unlocked }
            .checked()
    }

    fn checked(self) -> Result<Self> {
        if self.files.len() > FILES_MAX {
            let message =
                format!("directory has {} files, at most {FILES_MAX} fit into a backup", self.files.len());
            return Err(Error::invalid(message).with("path", self.directory.display()));
        }
        Ok(self)
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).fold(0, u64::saturating_add)
    }

    /// Checks that no server has begun to use a directory that had no lock files.
    ///
    /// # Errors
    /// `Locked` when a server has used or uses the directory; `Io` when a lock file cannot be opened.
    pub(crate) fn check_at_rest(&self) -> Result<()> {
        for folder in &self.unlocked {
            if DirectoryLock::share(folder)?.is_some() {
                let message = "a server has used the directory during the backup: retry";
                return Err(Error::new(ErrorKind::Locked, message).with("path", folder.display()));
            }
        }
        Ok(())
    }

    /// Opens a file, and reads the facts by which a later backup recognises it.
    pub(crate) fn open(&self, file: &SourceFile) -> Result<OpenFile> {
        let path = self.directory.join(&file.name);
        let failed = |e| Error::io("open", &path, e);
        let may_be_link = file.name == SETTINGS && !self.live;
        let opened = if may_be_link { open_regular(&path) } else { open_no_link(&path) }.map_err(failed)?;
        let found = opened.metadata().map_err(failed)?;
        let mtime_ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        let facts = Facts { bytes: file.bytes, mtime_ns, device: found.dev(), inode: found.ino() };
        Ok(OpenFile { path, file: opened, facts, left: file.bytes })
    }
}

/// Facts about a file. Equal facts show that a segment file has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    pub bytes: u64,
    pub mtime_ns: i64,
    pub device: u64,
    pub inode: u64,
}

pub struct OpenFile {
    path: PathBuf,
    file: File,
    pub facts: Facts,
    left: u64,
}

impl OpenFile {
    /// Reads the next bytes of the file into `part`. Returns their number; 0 at the end.
    ///
    /// # Errors
    /// `Corrupt` if the file became shorter; `Io` if it cannot be read.
    pub fn read(&mut self, part: &mut [u8]) -> Result<usize> {
        let wanted = usize::try_from(self.left).map_or(part.len(), |left| left.min(part.len()));
        if wanted == 0 {
            return Ok(0);
        }
        let read = self.file.read(&mut part[..wanted]).map_err(|e| Error::io("read", &self.path, e))?;
        if read == 0 {
            let message = format!("file has {} bytes less than expected: it was changed", self.left);
            return Err(Error::corrupt(message).with("path", self.path.display()));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// The files of a data directory that a backup contains, and the names that it ignores. A running server may remove files while
/// they are listed: such files are in neither list.
fn listed(data: &Path, is_running: bool) -> Result<(Vec<SourceFile>, Vec<String>)> {
    let (mut files, mut ignored) = (Vec::new(), Vec::new());
    let is_gone = |name: &str| {
        let found = std::fs::symlink_metadata(data.join(name));
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    for folder in [""].into_iter().chain(FOLDERS) {
        for name in names_in(&RealDisk, "list data directory", &data.join(folder))? {
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            match length_of_data_file(data, &name) {
                Ok(Some(bytes)) => files.push(SourceFile { name, bytes }),
                Ok(None) if is_excluded(&name) => {}
                Ok(None) => ignored.push(name),
                Err(_) if is_running && is_gone(&name) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok((files, ignored))
}

/// The length of a file that a backup contains; `None` for any other file or directory.
///
/// # Errors
/// `Invalid` if a file that a backup contains is a symbolic link. This process would follow the link with its own rights, which
/// may be more than those of the server. Exceptions: `tacho.toml`, because administrators make such links, and dangling links,
/// which count as other files.
fn length_of_data_file(data: &Path, name: &str) -> Result<Option<u64>> {
    let path = data.join(name);
    let failed = |e| Error::io("read", &path, e);
    let found = std::fs::symlink_metadata(&path).map_err(failed)?;
    if is_excluded(name) || !is_data_file(name) {
        return Ok(None);
    }
    if !found.is_symlink() {
        return Ok(found.is_file().then_some(found.len()));
    }
    match std::fs::metadata(&path) {
        Ok(found) if name == SETTINGS => Ok(found.is_file().then_some(found.len())),
        // A dangling link, which the server cannot use either.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => Err(refused_link(&path)),
    }
}

/// Whether a name in a data directory is neither copied nor reported as ignored: a backup excludes it, or it is a directory whose
/// files are listed separately.
fn is_excluded(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    let is_kept = name.contains("/quarantine/");
    // A file `*.lost` permits a server to start although a file is missing. A restored directory needs its own permission.
    !is_kept && (last.ends_with(".new") || last.ends_with(".lost"))
        || matches!(last, "LOCK" | "RESERVE" | "quarantine")
        // An older copy of the audit log would lack entries after a restore.
        || name.starts_with("audit.log")
        || name == "tokens.lock"
        || matches!(name, "chunks" | "journal" | "snapshots" | "INCOMPLETE")
}
