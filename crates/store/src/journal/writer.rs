//! Appends records to one journal file. A commit is durable as a whole, or has no effect.
//!
//! Path of one record: `commit.rs` passes the records of all waiting batches; after the commit they are durable.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{Header, file_path, mark};
use crate::disk::{Disk, DiskFile, SyncPoint};
use crate::mutation::Mutation;
use crate::{Error, Result};

/// An open journal file. Its first `length` bytes are on disk.
pub struct Writer {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    length: u64,
    /// Position of the next record: after the records of the last commit and their mark ([`Writer::commit`]).
    end: u64,
    /// Whether a part of a mark is at the end and could not be cut off.
    soiled: bool,
}

/// State of the file after a failed commit. The records of the commit are not acknowledged.
#[derive(Debug)]
pub enum Failure {
    Undone(Error),
    /// The bytes after `length` are unknown. The file must be cut there, and accepts no more records.
    Broken(Error),
}

impl Writer {
    /// Creates the file and makes its content and name durable. Overwrites the remains of a failed attempt.
    pub fn create(disk: &dyn Disk, directory: &Path, header: &Header) -> Result<Self> {
        let path = file_path(directory, header.generation);
        let create = || {
            match disk.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = disk.open(&path)?;
            let header = header.encode();
            file.append(&header)?;
            file.sync(SyncPoint::JournalHeader)?;
            disk.sync_directory(directory, SyncPoint::JournalName)?;
            Ok((file, header.len() as u64))
        };
        match create() {
            Ok((file, length)) => Ok(Self { file, path, length, end: length, soiled: false }),
            Err(error) => {
                // If the removal fails, the file has no record, and perhaps no whole header. A recovery reads no batch from it.
                let _ = disk.remove(&path);
                Err(Error::io("create journal", &path, error))
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Appends whole records and syncs once. Then writes a mark without a sync. The mark states that the records are on
    /// disk, and it survives a crash of the process.
    pub fn commit(&mut self, disk: &dyn Disk, records: &[u8]) -> Result<(), Failure> {
        if self.soiled
            && let Err(error) = self.clean(disk)
        {
            let error = Error::io("cut journal", &self.path, error).with("offset", self.length);
            return Err(Failure::Broken(error));
        }
        if let Err(error) = self.file.append(records) {
            let error = Error::io("write journal", &self.path, error).with("offset", self.end);
            if Mutation::FailedWriteNotCut.is_on() {
                return Err(Failure::Undone(error));
            }
            return Err(match disk.cut(&self.path, self.end, SyncPoint::JournalFailedWrite) {
                Ok(()) => Failure::Undone(error),
                Err(_) => Failure::Broken(error),
            });
        }
        if let Err(error) = self.file.sync(SyncPoint::JournalRecords)
            && !Mutation::FailedSyncAcknowledged.is_on()
        {
            // After a failed sync, the kernel may have dropped the pages, so their state is unknown.
            let error = Error::io("sync journal", &self.path, error).with("offset", self.end);
            return Err(Failure::Broken(error));
        }
        self.length = self.end + records.len() as u64;
        self.end = self.length;
        let mark = mark(self.length);
        match self.file.append(&mark) {
            Ok(()) => self.end += mark.len() as u64,
            // The records are committed even without the mark.
            Err(_) if Mutation::FailedMarkNotCut.is_on() => {}
            Err(_) => self.soiled = self.clean(disk).is_err(),
        }
        Ok(())
    }

    /// Cuts off the bytes after the last committed record.
    fn clean(&mut self, disk: &dyn Disk) -> io::Result<()> {
        disk.cut(&self.path, self.length, SyncPoint::JournalFailedMark)?;
        self.end = self.length;
        self.soiled = false;
        Ok(())
    }
}
