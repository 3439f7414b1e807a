//! The few things the journal and the embedded driver ask of a disk, so that a test can take them away.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub trait Disk: Send + Sync + 'static {
    /// Opens for appending; makes the file if it is not there.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Makes the file this long and syncs it.
    fn cut(&self, path: &Path, length: u64) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes creations and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

pub trait DiskFile: Send {
    /// Appends all of it, or fails having appended any part.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// All that was appended is on disk when this returns.
    fn sync(&mut self) -> io::Result<()>;
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(OpenOptions::new().create(true).append(true).open(path)?))
    }

    fn cut(&self, path: &Path, length: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(length)?;
        file.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A disk with faults that a test switches: little space, syncs that fail, cuts that fail.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Switches>);

#[derive(Debug)]
struct Switches {
    space: AtomicU64,
    sync_fails: AtomicBool,
    cut_fails: AtomicBool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            space: AtomicU64::new(u64::MAX),
            sync_fails: AtomicBool::new(false),
            cut_fails: AtomicBool::new(false),
        }
    }
}

impl FaultyDisk {
    /// Bytes that may still be appended; then writes end in the middle, as on a full disk.
    pub fn set_space(&self, bytes: u64) {
        self.0.space.store(bytes, Ordering::SeqCst);
    }

    pub fn set_sync_fails(&self, fails: bool) {
        self.0.sync_fails.store(fails, Ordering::SeqCst);
    }

    pub fn set_cut_fails(&self, fails: bool) {
        self.0.cut_fails.store(fails, Ordering::SeqCst);
    }
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path)?;
        Ok(Box::new(FaultyFile { file, switches: self.0.clone() }))
    }

    fn cut(&self, path: &Path, length: u64) -> io::Result<()> {
        if self.0.cut_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: cut failed"));
        }
        RealDisk.cut(path, length)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }
}

struct FaultyFile {
    file: Box<dyn DiskFile>,
    switches: Arc<Switches>,
}

impl DiskFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let space = self.switches.space.load(Ordering::SeqCst);
        let fits = usize::try_from(space).unwrap_or(usize::MAX).min(bytes.len());
        self.file.append(&bytes[..fits])?;
        if space != u64::MAX {
            self.switches.space.store(space - fits as u64, Ordering::SeqCst);
        }
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.switches.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: sync failed"));
        }
        self.file.sync()
    }
}
