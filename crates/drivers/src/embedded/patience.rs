//! Reads with or without waiting for the disk. Most requested rows are in the page cache. Reading them on the calling
//! thread takes a few microseconds; using another thread takes tens of microseconds.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Reads from the disk and waits for it.
    Disk,
    /// Fails with `WouldBlock` if some bytes are not in memory, or if the system cannot tell.
    Memory,
}

impl Patience {
    pub fn read(self, file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Disk => file.read_exact_at(bytes, offset),
            Self::Memory => read_cached(file, bytes, offset),
        }
    }
}

/// Calls `preadv2` with `RWF_NOWAIT`. May return only the part that is in memory.
#[cfg(target_os = "linux")]
fn read_cached(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let wanted = bytes.len();
    match preadv2(file, &mut [io::IoSliceMut::new(bytes)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) if read == wanted => Ok(()),
        Ok(_) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn read_cached(_: &File, _: &mut [u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::WouldBlock.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_from_memory_equal_reads_from_disk() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), (0..=255).collect::<Vec<u8>>()).unwrap();
        let file = File::open(path.path()).unwrap();
        let mut bytes = [0; 100];
        Patience::Disk.read(&file, &mut bytes, 100).unwrap();
        assert!(bytes.iter().copied().eq(100..200));
        let mut again = [0; 100];
        // Some file systems cannot tell which pages are in memory.
        if Patience::Memory.read(&file, &mut again, 100).is_ok() {
            assert_eq!(again, bytes);
        }
        assert!(Patience::Memory.read(&file, &mut again, 200).is_err(), "beyond the end");
    }
}
