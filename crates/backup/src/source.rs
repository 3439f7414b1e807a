//! The files of a data directory at one moment.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tacho_store::disk::{RealDisk, names_in};
use tacho_store::lock::DirectoryLock;
use tacho_store::{Error, Result};

use crate::record::{FILES_MAX, FOLDERS, is_data_file};

/// A file to back up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Path relative to the directory.
    pub name: String,
    /// Bytes to copy. The file may be longer.
    pub bytes: u64,
}

/// The files of a data directory at one moment, and the locks that prevent changes to them.
pub struct Source {
    pub directory: PathBuf,
    pub files: Vec<SourceFile>,
    /// Names of files that are not part of a data directory and are not copied.
    pub ignored: Vec<String>,
    pub live: bool,
    /// The moment. Records that were acknowledged before it are in the files.
    pub time: Timestamp,
    pub generation: u64,
    pub offset: u64,
    /// Prevents a server from opening a directory at rest.
    _locks: Vec<DirectoryLock>,
}

impl Source {
    /// A directory that no server uses. It cannot be opened for writing until the source is dropped.
    ///
    /// # Errors
    /// `Locked` when a server uses it; `Invalid` if it has more than [`FILES_MAX`] files; `Io`.
    pub fn at_rest(data: &Path) -> Result<Self> {
        let mut locks = Vec::new();
        for folder in ["", "chunks", "journal"] {
            locks.extend(DirectoryLock::share(&data.join(folder))?);
        }
        let time = Timestamp::now();
        let (mut files, mut ignored) = (Vec::new(), Vec::new());
        for folder in [""].into_iter().chain(FOLDERS) {
            for name in names_in(&RealDisk, "list data directory", &data.join(folder))? {
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let path = data.join(&name);
                let found = std::fs::metadata(&path).map_err(|e| Error::io("read", &path, e))?;
                if is_data_file(&name) && found.is_file() {
                    files.push(SourceFile { name, bytes: found.len() });
                } else if !is_left_out(&name) {
                    ignored.push(name);
                }
            }
        }
        let newest =
            files.iter().filter_map(|file| Some((journal_generation(&file.name)?, file.bytes))).max();
        let (generation, offset) = newest.unwrap_or_default();
        let directory = data.to_owned();
        Self { directory, files, ignored, live: false, time, generation, offset, _locks: locks }.checked()
    }

    /// A snapshot that a server made: hard links in `directory`.
    ///
    /// # Errors
    /// `Invalid` if a file has a name that no data directory has, or if there are more than [`FILES_MAX`] files.
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
        let (ignored, locks) = (Vec::new(), Vec::new());
        Self { directory, files, ignored, live: true, time, generation, offset, _locks: locks }.checked()
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
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Opens a file, and reads the facts by which a later backup recognises it.
    pub(crate) fn open(&self, file: &SourceFile) -> Result<OpenFile> {
        let path = self.directory.join(&file.name);
        let open = || {
            let opened = File::open(&path)?;
            let found = opened.metadata()?;
            Ok((opened, found))
        };
        let (opened, found) = open().map_err(|e| Error::io("open", &path, e))?;
        let mtime_ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
        let facts = Facts { bytes: file.bytes, mtime_ns, device: found.dev(), inode: found.ino() };
        Ok(OpenFile { path, file: opened, facts, left: file.bytes })
    }
}

/// Facts about a file. Equal facts show that a file in `chunks/` has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Facts {
    pub bytes: u64,
    pub mtime_ns: i64,
    pub device: u64,
    pub inode: u64,
}

/// A file that is being read.
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
    /// `Corrupt` if the file became shorter; `Io`.
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

fn journal_generation(name: &str) -> Option<u64> {
    name.strip_prefix("journal/")?.strip_suffix(".journal")?.parse().ok()
}

/// Files and directories of a data directory that a backup leaves out on purpose.
fn is_left_out(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.ends_with(".new")
        || matches!(last, "LOCK" | "RESERVE" | "quarantine")
        // An older copy of the audit log would lack entries after a restore.
        || name.starts_with("audit.log")
        || name == "tokens.lock"
        || matches!(name, "chunks" | "journal" | "snapshots" | "INCOMPLETE")
}
