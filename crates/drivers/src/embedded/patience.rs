//! Reads with or without waiting for the disk. Most requested rows are in the page cache. To read such a row on the
//! calling thread takes a few microseconds. To pass the read to another thread takes tens of microseconds.

use std::io;

use tacho_store::disk::ReadFile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Reads from the disk and waits for it.
    Disk,
    /// Fails if some bytes are not in memory, or if the system cannot show whether they are.
    Memory,
}

impl Patience {
    pub fn read(self, file: &dyn ReadFile, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Disk => file.read_exact_at(bytes, offset),
            Self::Memory => file.read_cached(bytes, offset),
        }
    }
}
