//! A repository in a directory, on this machine or on a mounted file system. Symbolic links and other special files in the
//! directory are refused, so nothing outside of the directory is read or written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Advice, fadvise};
use tacho_store::disk::{self, make_directory, open_no_link, private_file};
use tacho_store::lock::DirectoryLock;
use tacho_store::{Error, Result, draw_id};

use super::{Guard, Incoming, Lock, Place};
use crate::PART_BYTES;
use crate::hash::{Hash, Hasher};

/// Folder of unfinished files. A later backup or prune removes them.
const INCOMING: &str = "incoming";
/// Limit on the depth of folders below a listed folder. `objects/ab/` is at depth 1.
const DEPTH_MAX: usize = 3;

pub struct Directory {
    path: PathBuf,
}

impl Directory {
    pub const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Checks that a folder, and each folder above it in the repository, is a real directory. Returns `false` if one is missing.
    fn has_folder(&self, folder: &str) -> Result<bool> {
        let mut path = self.path.clone();
        for part in folder.split('/').filter(|part| !part.is_empty()) {
            path.push(part);
            match std::fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => {}
                Ok(_) => {
                    let message = "not a directory: the backup repository was changed by another program";
                    return Err(Error::corrupt(message).with("path", path.display()));
                }
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(Error::io("read", &path, error)),
            }
        }
        Ok(true)
    }

    /// Creates a folder if it is missing.
    fn make_folder(&self, folder: &str) -> Result<PathBuf> {
        let path = self.path.join(folder);
        if !self.has_folder(folder)? {
            make_directory(&path).map_err(|e| Error::io("make directory", &path, e))?;
        }
        Ok(path)
    }

    fn list_below(&self, folder: &str, depth: usize, found: &mut Vec<(String, u64)>) -> Result<()> {
        let path = self.path.join(folder);
        let failed = |error| Error::io("list", &path, error);
        let entries = match std::fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(failed)?,
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            // Names of a repository's files are ASCII. A name that is not UTF-8 is from another program.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() && !folder.is_empty() && depth < DEPTH_MAX {
                self.list_below(&name, depth + 1, found)?;
            } else {
                let length = if kind.is_file() { entry.metadata().map_err(failed)?.len() } else { 0 };
                found.push((name, length));
            }
        }
        Ok(())
    }
}

impl Place for Directory {
    fn location(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        if self.has_folder(folder)? {
            self.list_below(folder, 0, &mut found)?;
        }
        Ok(found)
    }

    fn open(&self, name: &str) -> Result<Option<(u64, Box<dyn Read + Send>)>> {
        let path = self.path.join(name);
        if !self.has_folder(name.rsplit_once('/').map_or("", |(folder, _)| folder))? {
            return Ok(None);
        }
        let opened = open_no_link(&path).and_then(|file| Ok((file.metadata()?.len(), file)));
        match opened {
            Ok((length, file)) => Ok(Some((length, Box::new(file)))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                let message = format!("{error}: the backup repository was changed by another program");
                Err(Error::io("open", &path, io::Error::new(ErrorKind::InvalidInput, message)))
            }
            Err(error) => Err(Error::io("open", &path, error)),
        }
    }

    fn begin(&self) -> Result<Box<dyn Incoming + '_>> {
        let path = self.make_folder(INCOMING)?.join(format!("{:032x}", draw_id()));
        let file = private_file().write(true).create_new(true).open(&path);
        let file = file.map_err(|e| Error::io("create", &path, e))?;
        Ok(Box::new(NewFile { directory: self, path, file }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        if !self.has_folder(name.rsplit_once('/').map_or("", |(folder, _)| folder))? {
            return Ok(());
        }
        let path = self.path.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", &path, error)),
            _ => Ok(()),
        }
    }

    fn settle(&self, folders: &[String]) -> Result<()> {
        let mut paths = BTreeSet::new();
        for folder in folders {
            // Before the first complete backup the folder does not exist.
            if self.has_folder(folder)? {
                let path = self.path.join(folder);
                paths
                    .extend(path.ancestors().take_while(|at| at.starts_with(&self.path)).map(Path::to_owned));
            }
        }
        paths.iter().try_for_each(|path| sync_directory(path))
    }

    fn clean(&self) -> Result<()> {
        self.list(INCOMING)?.iter().try_for_each(|(name, _)| self.remove(name))
    }

    fn lock(&self, lock: Lock) -> Result<Guard> {
        match lock {
            Lock::Exclusive => Ok(Box::new(DirectoryLock::acquire(&self.path)?)),
            // A shared lock writes no file, because the repository may be on a read-only medium.
            Lock::Shared => Ok(Box::new(DirectoryLock::share(&self.path)?)),
        }
    }
}

fn sync_directory(path: &Path) -> Result<()> {
    disk::sync_directory(path).map_err(|e| Error::io("sync directory", path, e))
}

struct NewFile<'a> {
    directory: &'a Directory,
    path: PathBuf,
    file: File,
}

impl NewFile<'_> {
    /// The hash of the bytes on disk.
    fn read_back(&self) -> io::Result<Hash> {
        let mut file = open_no_link(&self.path)?;
        // Asks the system to drop the cached pages, so that the bytes come from the disk. This may have no effect.
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
        let (mut hasher, mut part) = (Hasher::default(), vec![0; PART_BYTES]);
        loop {
            match file.read(&mut part)? {
                0 => return Ok(hasher.finish()),
                read => hasher.update(&part[..read]),
            }
        }
    }
}

impl Incoming for NewFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io("write", &self.path, e))
    }

    fn finish(self: Box<Self>, name: &str, hash: Hash) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io("sync", &self.path, e))?;
        let found = self.read_back().map_err(|e| Error::io("read back", &self.path, e))?;
        if found != hash {
            let message = format!(
                "wrote bytes with the hash {hash}, read back bytes with the hash {found}: check the disk"
            );
            return Err(Error::corrupt(message).with("path", self.path.display()));
        }
        let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let folder = self.directory.make_folder(folder)?;
        let to = self.directory.path.join(name);
        std::fs::rename(&self.path, &to).map_err(|e| Error::io("rename", &to, e))?;
        sync_directory(&folder)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // After the rename the file does not exist under this name.
        let _ = std::fs::remove_file(&self.path);
    }
}
