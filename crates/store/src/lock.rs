//! One process, one directory: a second one gets an error that names the first.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::disk::{FILE_MODE, make_directory, private_file, restrict};
use crate::{Error, ErrorKind, Result};

const FILE: &str = "LOCK";

/// Holds a directory as long as it lives; the operating system lets go when the process dies, however it dies.
#[derive(Debug)]
pub struct DirectoryLock(#[expect(dead_code, reason = "the lock is held by the open file")] File);

impl DirectoryLock {
    /// Locks `directory`, which is made if it is not there.
    pub fn acquire(directory: &Path) -> Result<Self> {
        make_directory(directory).map_err(|e| Error::io("make directory", directory, e))?;
        let path = directory.join(FILE);
        let open = private_file().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(|e| Error::io("open lock file", &path, e))?;
        restrict(&path, FILE_MODE);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(directory, &mut file)),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", &path, e)),
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The number only helps people; on a full disk the lock itself still holds.
        if let Err(error) = write(&mut file) {
            tracing::warn!(path = %path.display(), %error, "process id not written to lock file");
        }
        Ok(Self(file))
    }
}

fn in_use(directory: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    let holder = match file.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    };
    Error::new(ErrorKind::Locked, format!("directory is in use by {holder}"))
        .with("path", directory.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_is_told_who_holds_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("made").join("as needed");
        let first = DirectoryLock::acquire(&directory).unwrap();
        let error = DirectoryLock::acquire(&directory).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        let pid = std::process::id();
        assert!(error.to_string().contains(&format!("in use by process {pid} (path ")), "{error}");
        drop(first);
        DirectoryLock::acquire(&directory).unwrap();
        DirectoryLock::acquire(&directory.join("LOCK")).unwrap_err();
    }
}
