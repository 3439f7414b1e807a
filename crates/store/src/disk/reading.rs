//! Files open for reading.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A file open for reading. It stays readable after its name was removed.
pub trait ReadFile: Send + Sync {
    fn length(&self) -> io::Result<u64>;

    /// Reads bytes of the file from `offset` on, at most `bytes.len()`. Returns their number; 0 at the end of the file.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `bytes` with the bytes of the file from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is too short.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Like [`ReadFile::read_exact_at`], but also fails if some bytes are not in memory (`WouldBlock`), or if the system cannot
    /// tell whether they are.
    fn read_cached(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;
}

impl ReadFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, bytes, offset)
    }

    /// Calls `preadv2` with `RWF_NOWAIT`.
    #[cfg(target_os = "linux")]
    fn read_cached(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        use rustix::io::{ReadWriteFlags, preadv2};
        let wanted = bytes.len();
        match preadv2(self, &mut [io::IoSliceMut::new(bytes)], offset, ReadWriteFlags::NOWAIT) {
            Ok(read) if read == wanted => Ok(()),
            Ok(_) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn read_cached(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_from_memory_equal_reads_from_disk() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), (0..=255).collect::<Vec<u8>>()).unwrap();
        let file: &dyn ReadFile = &File::open(path.path()).unwrap();
        let mut bytes = [0; 100];
        file.read_exact_at(&mut bytes, 100).unwrap();
        assert!(bytes.iter().copied().eq(100..200));
        let mut again = [0; 100];
        // Some file systems cannot tell which pages are in memory.
        if file.read_cached(&mut again, 100).is_ok() {
            assert_eq!(again, bytes);
        }
        assert!(file.read_cached(&mut again, 200).is_err(), "a read beyond the end must fail");
    }
}
