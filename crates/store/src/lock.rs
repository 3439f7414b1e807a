//! Locks a directory, for one process that writes or for any number of processes that only read. A process that is refused
//! gets an error with the id and the command of a process that holds the lock, if the system or the lock file has them.
//!
//! This file and `disk.rs` use each other: a disk can lock a directory, and a lock file is opened with the
//! permissions that `disk.rs` sets.

use std::ffi::OsStr;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{major, minor};

use crate::disk::{
    FILE_MODE, irregular_or_link, make_directory, open_no_link, open_no_link_with, private_file, restrict,
};
use crate::{Error, Result};

const FILE: &str = "LOCK";

/// Limit on the bytes of a lock file that are read. A process id has at most ten digits.
const BYTES_READ_MAX: u64 = 16;

/// Limit on the bytes of a word of a command in a message.
const WORD_BYTES_MAX: usize = 32;

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

/// A process that holds a lock of the file, in the kernel's list of locks. `None` if the list is not available or lacks the file.
fn holder_in_kernel(file: &File) -> Option<u32> {
    let found = file.metadata().ok()?;
    let place = format!("{:02x}:{:02x}:{}", major(found.dev()), minor(found.dev()), found.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    // `1: FLOCK  ADVISORY  READ 14620 fe:00:10051587 0 EOF`. The line of a waiting process has `->` before the kind.
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [_, "FLOCK", _, _, process, at, ..] if at == place => process.parse().ok(),
            _ => None,
        }
    };
    // A process of another container has no id here, and is listed as 0.
    locks.lines().filter_map(holder).find(|process| *process > 0)
}

/// Name and subcommand of a process, such as `tacho backup create`. Only words of letters, digits, `-` and `_`, because another
/// user may have chosen the arguments.
fn command(process: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0);
    let program = Path::new(OsStr::from_bytes(words.next()?)).file_name()?.as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let is_word = |word: &&[u8]| {
        (1..=WORD_BYTES_MAX).contains(&word.len()) && !word.starts_with(b"-") && word.iter().all(is_plain)
    };
    let words: Vec<_> = std::iter::once(program).chain(words.take(2)).take_while(is_word).collect();
    (!words.is_empty()).then(|| String::from_utf8_lossy(&words.join(&b' ')).into_owned())
}

/// Lock of a directory, held until it is dropped. The operating system also releases it when the process ends.
#[derive(Debug)]
pub struct DirectoryLock(File);

impl Drop for DirectoryLock {
    /// Closing the file is not enough: a child process that another thread has just started has a copy of the open file until
    /// it executes its program, and the lock lasts as long as any copy. Unlocking releases it for all copies (flock(2)).
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "directory not unlocked: it stays locked until the file is closed");
        }
    }
}

impl DirectoryLock {
    /// Creates the directory if it is missing.
    ///
    /// # Errors
    /// `Locked` when another process uses the directory ([`Error::is_of_reader`]); `Io` when the directory or its lock file
    /// cannot be created or locked.
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
    // Only readers permit a shared lock. Closing the file releases it. If a writer has ended since the failed attempt, the
    // message is about a reader, and the next attempt succeeds.
    let is_read = file.try_lock_shared().is_ok();
    if is_read {
        let _ = file.unlock();
    }
    let in_kernel = holder_in_kernel(file);
    // The lock file has the id of the last writer, which is not a reader.
    let noted = || holder(file).filter(|process| !is_read && is_running(*process));
    let process = in_kernel.or_else(noted);
    let holder = process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
    let error = match is_read {
        true => Error::of_reader(format!("directory is being read by {holder}")),
        false => Error::new(crate::ErrorKind::Locked, format!("directory is in use by {holder}")),
    };
    let error = error.with("path", directory.display());
    match process.and_then(command) {
        Some(command) => error.with("command", command),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On some file systems, such as btrfs, the device number in the kernel's list differs from that of the file. Then the
    /// holder is not known.
    fn is_by(error: &Error, begin: &str) {
        let pid = std::process::id();
        let holders = [format!("{begin}process {pid} (path "), format!("{begin}another process (path ")];
        let said = error.to_string();
        assert!(holders.iter().any(|holder| said.starts_with(&**holder)), "{said:?}");
    }

    #[test]
    fn commands_are_named_by_their_plain_words() {
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};

        let place = tempfile::tempdir().unwrap();
        // The shell runs the file that its first argument names. The script waits for its input.
        std::fs::write(place.path().join("backup"), "read line\n").unwrap();
        let named = |name: &str, more: &[&str]| {
            let mut shell = Command::new("sh");
            shell.arg0(name).arg("backup").args(more).current_dir(place.path()).stdin(Stdio::piped());
            let mut process = shell.spawn().unwrap();
            // The kernel sets the arguments shortly after the start. Only a machine that hangs exceeds the limit.
            let line = format!("/proc/{}/cmdline", process.id());
            for _ in 0..30_000 {
                if !std::fs::read(&line).unwrap().is_empty() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            let command = command(process.id());
            process.kill().unwrap();
            process.wait().unwrap();
            command
        };
        for (name, more, expect) in [
            ("/usr/bin/tacho", &["create", "word"][..], Some("tacho backup create")),
            ("tacho", &["/var/lib/tacho", "word"], Some("tacho backup")),
            ("tacho", &["--json", "word"], Some("tacho backup")),
            ("tacho", &["\u{1b}[2J", "word"], Some("tacho backup")),
            ("\u{1b}[2J", &["create"], None),
            (&"t".repeat(WORD_BYTES_MAX), &[], Some(&*format!("{} backup", "t".repeat(WORD_BYTES_MAX)))),
            (&"t".repeat(WORD_BYTES_MAX + 1), &[], None),
        ] {
            assert_eq!(named(name, more).as_deref(), expect, "{name:?} {more:?}");
        }
        assert_eq!(command(u32::MAX), None);
    }

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
        assert!(!error.is_of_reader());
        let readers = [(); 2].map(|()| DirectoryLock::share(&directory).unwrap().unwrap());
        for noted in ["4000000000\n", "1\n"] {
            // The id of the last writer is not that of a reader.
            std::fs::write(directory.join("LOCK"), noted).unwrap();
            let error = DirectoryLock::acquire(&directory).unwrap_err();
            assert!(error.is_of_reader(), "{error}");
            is_by(&error, "directory is being read by ");
        }
        // The attempts have left no lock of their own, and a copy of the open file in a child process does not keep the lock.
        let copies = readers.each_ref().map(|reader| reader.0.try_clone().unwrap());
        drop(readers);
        assert!(DirectoryLock::share(place.path()).unwrap().is_none());
        DirectoryLock::acquire(&directory).unwrap();
        drop(copies);
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
        let error = DirectoryLock::acquire(place.path()).unwrap_err();
        is_by(&error, "directory is in use by ");
        assert!(!error.to_string().contains(['\u{1b}', '[']), "{error:?}");
    }
}
