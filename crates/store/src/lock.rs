//! Locks a directory, for one process that writes or for any number of processes that only read. A process that is refused
//! because of a writer gets an error with the id of the writer, if the lock file has it.
//!
//! This file and `disk.rs` use each other: a disk can lock a directory, and a lock file is opened with the
//! permissions that `disk.rs` sets.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;

use crate::disk::{
    FILE_MODE, irregular_or_link, make_directory, open_no_link, open_no_link_with, private_file, restrict,
};
use crate::{Error, Result};

const FILE: &str = "LOCK";

/// Limit on the bytes of a lock file that are read. A process id has at most ten digits.
const BYTES_READ_MAX: u64 = 16;

/// Whether a process with this id exists; `true` if the system cannot tell.
fn is_running(process: u32) -> bool {
    let all = Path::new("/proc");
    !all.join("self").exists() || all.join(process.to_string()).exists()
}

/// The process id in a lock file. `None` for other content, which the message must not repeat.
fn holder(file: &mut impl Read) -> Option<u32> {
    let mut text = String::new();
    file.take(BYTES_READ_MAX).read_to_string(&mut text).ok()?;
    text.trim_ascii_end().parse().ok()
}

/// Lock of a directory, held until it is dropped. The operating system also releases it when the process ends.
#[derive(Debug)]
pub struct DirectoryLock(#[expect(dead_code, reason = "the lock is held by the open file")] File);

impl DirectoryLock {
    /// Creates the directory if it is missing.
    ///
    /// # Errors
    /// `Locked` when another process uses the directory; `Io` when the directory or its lock file cannot be created or locked.
    pub fn acquire(directory: &Path) -> Result<Self> {
        make_directory(directory).map_err(|e| Error::io("make directory", directory, e))?;
        let path = directory.join(FILE);
        // Through a symbolic link, another user could make this process overwrite the file that the link names.
        let mut options = private_file();
        let file = open_no_link_with(options.read(true).write(true).create(true).truncate(false), &path);
        let mut file = file.map_err(|e| not_opened(&path, e))?;
        restrict(&path, FILE_MODE);
        match file.try_lock() {
            Ok(()) => {}
            Err(error) => return Err(refused(directory, &mut file, error)),
        }
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The process id only helps operators. On a full disk it cannot be written, but the lock still works.
        if let Err(error) = write(&mut file) {
            tracing::warn!(path = %path.display(), %error, "process id not written to lock file");
        }
        Ok(Self(file))
    }

    /// Prevents other processes from writing to `directory` while it is read. Changes nothing in the directory. Returns
    /// `None` if there is no lock file, because then no process has written to the directory yet.
    ///
    /// # Errors
    /// `Locked` when another process writes to the directory; `Io` when its lock file cannot be opened or locked.
    pub fn share(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        let mut file = match open_no_link(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(not_opened(&path, error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self(file))),
            Err(error) => Err(refused(directory, &mut file, error)),
        }
    }
}

fn not_opened(path: &Path, error: std::io::Error) -> Error {
    match irregular_or_link(path) {
        Some(_) => {
            let message = "cannot open lock file: remove it while no server uses the directory, the next start creates it again";
            Error::corrupt(message).with("path", path.display()).caused_by(error)
        }
        None => Error::io("open lock file", path, error),
    }
}

fn refused(directory: &Path, file: &mut File, error: TryLockError) -> Error {
    match error {
        TryLockError::WouldBlock => in_use(directory, file),
        TryLockError::Error(error) => Error::io("lock", &directory.join(FILE), error),
    }
}

fn in_use(directory: &Path, file: &mut File) -> Error {
    let process = holder(file).filter(|process| is_running(*process));
    let holder = process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
    Error::new(crate::ErrorKind::Locked, format!("directory is in use by {holder}"))
        .with("path", directory.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_process_gets_the_id_of_the_first() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("made").join("as needed");
        let first = DirectoryLock::acquire(&directory).unwrap();
        let error = DirectoryLock::acquire(&directory).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Locked);
        DirectoryLock::share(&directory).unwrap_err();
        let pid = std::process::id();
        assert!(error.to_string().contains(&format!("in use by process {pid} (path ")), "{error}");
        drop(first);
        // Readers exclude writers but not other readers, and do not write their id.
        let readers = [(); 2].map(|()| DirectoryLock::share(&directory).unwrap().unwrap());
        std::fs::write(directory.join("LOCK"), "4000000000\n").unwrap();
        let error = DirectoryLock::acquire(&directory).unwrap_err();
        assert!(error.to_string().starts_with("directory is in use by another process ("), "{error}");
        drop(readers);
        assert!(DirectoryLock::share(place.path()).unwrap().is_none());
        DirectoryLock::acquire(&directory).unwrap();
        DirectoryLock::acquire(&directory.join("LOCK")).unwrap_err();
    }

    #[test]
    fn a_link_or_fifo_is_refused_as_the_lock_file() {
        let place = tempfile::tempdir().unwrap();
        let [other, linked, piped] = ["other", "linked", "piped"].map(|name| place.path().join(name));
        std::fs::write(&other, "kept").unwrap();
        for directory in [&linked, &piped] {
            std::fs::create_dir(directory).unwrap();
        }
        std::os::unix::fs::symlink(&other, linked.join(FILE)).unwrap();
        let made = std::process::Command::new("mkfifo").arg(piped.join(FILE)).status().unwrap();
        assert!(made.success());
        for (directory, why) in [(&linked, "it is a symbolic link"), (&piped, "it is not a regular file")] {
            let shared = DirectoryLock::share(directory).unwrap_err();
            for error in [DirectoryLock::acquire(directory).unwrap_err(), shared] {
                assert!(error.to_string().ends_with(why), "{error}");
            }
        }
        assert_eq!(std::fs::read(&other).unwrap(), b"kept");
    }

    #[test]
    fn the_message_never_repeats_other_content_of_the_lock_file() {
        let zeros = "0".repeat(1 << 20) + "7";
        for (content, expect) in [
            ("7\n", Some(7)),
            ("4294967296\n", None),
            ("", None),
            ("\u{1b}[2J", None),
            ("../etc", None),
            ("7\n8\n", None),
            (&zeros, Some(0)),
        ] {
            assert_eq!(holder(&mut content.as_bytes()), expect, "{content:.20?}");
        }
        let place = tempfile::tempdir().unwrap();
        let _first = DirectoryLock::acquire(place.path()).unwrap();
        std::fs::write(place.path().join(FILE), "\u{1b}[2J../proc/self").unwrap();
        let error = DirectoryLock::acquire(place.path()).unwrap_err().to_string();
        assert!(error.starts_with("directory is in use by another process (path "), "{error:?}");
    }
}
