//! Appends records to one journal file so that they are on disk, or not there at all.
//!
//! Path of one record: `commit.rs` hands over the records of all batches that wait; after this they are durable.

use std::io;
use std::path::{Path, PathBuf};

use super::format::{Header, file_path, mark};
use crate::disk::{Disk, DiskFile};
use crate::{Error, Result};

/// One open file. Its first `length` bytes are on disk.
pub struct Writer {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    length: u64,
    /// Where the next record is written: behind the mark of the commit before.
    end: u64,
    /// Half a mark stands at the end and could not be cut off.
    soiled: bool,
}

/// What is left of the file after a commit that failed. The records of that commit are not answered.
#[derive(Debug)]
pub enum Failure {
    /// The file is as it was before: the next commit may succeed.
    Undone(Error),
    /// Bytes behind `length` are unknown: the file must be cut there and takes no more records.
    Broken(Error),
}

impl Writer {
    /// Makes the file and its name durable. A rest of an attempt that failed is overwritten.
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
            file.sync()?;
            disk.sync_directory(directory)?;
            Ok((file, header.len() as u64))
        };
        match create() {
            Ok((file, length)) => Ok(Self { file, path, length, end: length, soiled: false }),
            Err(error) => {
                // What is left is empty or has half a header; recovery takes it for a file that never was.
                let _ = disk.remove(&path);
                Err(Error::io("create journal", &path, error))
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are on disk.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// Appends whole records and syncs once. Behind them a mark says that they are on disk: it is not waited for, and it is
    /// there when the process dies from now on.
    pub fn commit(&mut self, disk: &dyn Disk, records: &[u8]) -> Result<(), Failure> {
        if self.soiled
            && let Err(error) = self.clean(disk)
        {
            let error = Error::io("cut journal", &self.path, error).with("offset", self.length);
            return Err(Failure::Broken(error));
        }
        if let Err(error) = self.file.append(records) {
            let error = Error::io("write journal", &self.path, error).with("offset", self.end);
            return Err(match disk.cut(&self.path, self.end) {
                Ok(()) => Failure::Undone(error),
                Err(_) => Failure::Broken(error),
            });
        }
        if let Err(error) = self.file.sync() {
            // After a failed sync the kernel may have dropped the pages: nothing about them is known any more.
            let error = Error::io("sync journal", &self.path, error).with("offset", self.end);
            return Err(Failure::Broken(error));
        }
        self.length = self.end + records.len() as u64;
        self.end = self.length;
        let mark = mark(self.length);
        match self.file.append(&mark) {
            Ok(()) => self.end += mark.len() as u64,
            // What was asked for is done all the same.
            Err(_) => self.soiled = self.clean(disk).is_err(),
        }
        Ok(())
    }

    /// Cuts off what stands behind the last record.
    fn clean(&mut self, disk: &dyn Disk) -> io::Result<()> {
        disk.cut(&self.path, self.length)?;
        self.end = self.length;
        self.soiled = false;
        Ok(())
    }
}
