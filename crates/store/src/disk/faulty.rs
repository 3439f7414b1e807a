//! A disk for tests. Its operations fail when a test requests it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile, RealDisk, SyncPoint};
use crate::size::in_memory;

/// Limits the space of files. To cut, remove or replace a file frees space.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk(Arc<Switches>);

#[derive(Debug)]
struct Switches {
    space: AtomicU64,
    sync_fails: AtomicBool,
    cut_fails: AtomicBool,
    remove_fails: Mutex<Option<String>>,
    rename_fails: AtomicBool,
    sync_skipped: AtomicBool,
    operations: AtomicU64,
    half_done: AtomicBool,
    /// Number of synced bytes of each file.
    synced: Mutex<HashMap<PathBuf, u64>>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            space: AtomicU64::new(u64::MAX),
            sync_fails: AtomicBool::new(false),
            cut_fails: AtomicBool::new(false),
            remove_fails: Mutex::default(),
            rename_fails: AtomicBool::new(false),
            sync_skipped: AtomicBool::new(false),
            operations: AtomicU64::new(u64::MAX),
            half_done: AtomicBool::new(false),
            synced: Mutex::default(),
        }
    }
}

impl FaultyDisk {
    /// Sets the number of bytes that may still be appended. The append that exceeds it writes only a part, as on a full disk.
    pub fn set_space(&self, bytes: u64) {
        self.0.space.store(bytes, Ordering::SeqCst);
    }

    pub fn set_sync_fails(&self, fails: bool) {
        self.0.sync_fails.store(fails, Ordering::SeqCst);
    }

    pub fn set_cut_fails(&self, fails: bool) {
        self.0.cut_fails.store(fails, Ordering::SeqCst);
    }

    /// Makes the removal of files with `name_part` in their name fail.
    pub fn set_remove_fails(&self, name_part: Option<&str>) {
        *self.0.remove_fails.lock().unwrap_or_else(PoisonError::into_inner) =
            name_part.map(ToOwned::to_owned);
    }

    pub fn set_rename_fails(&self, fails: bool) {
        self.0.rename_fails.store(fails, Ordering::SeqCst);
    }

    /// Makes syncs faster: they are only noted for [`Self::lose_unsynced`], and not done on the real disk.
    pub fn set_sync_skipped(&self, skipped: bool) {
        self.0.sync_skipped.store(skipped, Ordering::SeqCst);
    }

    /// Cuts off the unsynced bytes of all files, like a power failure.
    pub fn lose_unsynced(&self) -> io::Result<()> {
        let synced = self.0.synced();
        for (path, bytes) in synced.iter().filter(|(path, bytes)| length(path) > **bytes) {
            RealDisk.cut(path, *bytes, SyncPoint::JournalFailedWrite)?;
        }
        Ok(())
    }

    /// Sets the number of writing operations after which all further ones fail, as if the process had ended. Reads still work.
    /// The first append that fails writes half of its bytes.
    pub fn set_operations(&self, operations: u64) {
        self.0.half_done.store(false, Ordering::SeqCst);
        self.0.operations.store(operations, Ordering::SeqCst);
    }
}

impl Switches {
    fn synced(&self) -> MutexGuard<'_, HashMap<PathBuf, u64>> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation. Fails when no operation is left.
    fn operation(&self) -> io::Result<()> {
        let less = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        match self.operations.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) {
            Ok(_) => Ok(()),
            Err(_) => Err(io::Error::other("injected: the process has ended")),
        }
    }

    /// Takes up to `wanted` bytes of the space. Returns the bytes taken.
    fn take(&self, wanted: u64) -> u64 {
        let left = |space: u64| Some(if space == u64::MAX { space } else { space.saturating_sub(wanted) });
        let before = self.space.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        before.unwrap_or(u64::MAX).min(wanted)
    }

    fn give_back(&self, bytes: u64) {
        let more = |space: u64| Some(if space == u64::MAX { space } else { space.saturating_add(bytes) });
        let _ = self.space.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
    }
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |found| found.len())
}

impl Disk for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.0.operation()?;
        let before = length(path);
        let file = RealDisk.open(path)?;
        self.0.synced().entry(path.to_owned()).or_insert(before);
        Ok(Box::new(FaultyFile { file, path: path.to_owned(), switches: self.0.clone() }))
    }

    fn cut(&self, path: &Path, length: u64, point: SyncPoint) -> io::Result<()> {
        self.0.operation()?;
        if self.0.cut_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: cut failed"));
        }
        let before = self::length(path);
        RealDisk.cut(path, length, point)?;
        self.0.synced().insert(path.to_owned(), length);
        self.0.give_back(before.saturating_sub(length));
        Ok(())
    }

    fn renew(&self, path: &Path, from: u64, point: SyncPoint) -> io::Result<()> {
        self.0.operation()?;
        if self.0.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: sync failed"));
        }
        if !self.0.sync_skipped.load(Ordering::SeqCst) {
            RealDisk.renew(path, from, point)?;
        }
        self.0.synced().insert(path.to_owned(), length(path));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.operation()?;
        let fails = self.0.remove_fails.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if fails.is_some_and(|part| name.contains(&part)) {
            return Err(io::Error::other("injected: remove failed"));
        }
        let before = self::length(path);
        RealDisk.remove(path)?;
        self.0.synced().remove(path);
        self.0.give_back(before);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.operation()?;
        if self.0.rename_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: rename failed"));
        }
        let before = self::length(to);
        RealDisk.rename(from, to)?;
        let mut synced = self.0.synced();
        if let Some(bytes) = synced.remove(from) {
            synced.insert(to.to_owned(), bytes);
        }
        self.0.give_back(before);
        Ok(())
    }

    fn sync_directory(&self, path: &Path, point: SyncPoint) -> io::Result<()> {
        self.0.operation()?;
        if self.0.sync_skipped.load(Ordering::SeqCst) { Ok(()) } else { RealDisk.sync_directory(path, point) }
    }

    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.0.operation()?;
        if self.0.take(bytes) < bytes {
            return Err(io::ErrorKind::StorageFull.into());
        }
        RealDisk.reserve(path, bytes)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        match self.0.space.load(Ordering::SeqCst) {
            u64::MAX => RealDisk.free_bytes(path),
            space => Ok(space),
        }
    }
}

struct FaultyFile {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    switches: Arc<Switches>,
}

impl DiskFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(ended) = self.switches.operation() {
            if self.switches.half_done.swap(true, Ordering::SeqCst) {
                return Err(ended);
            }
            self.file.append(bytes.split_at(bytes.len() / 2).0)?;
            return Err(ended);
        }
        let fits = in_memory(self.switches.take(bytes.len() as u64));
        self.file.append(bytes.get(..fits).unwrap_or(bytes))?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self, point: SyncPoint) -> io::Result<()> {
        if self.switches.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: sync failed"));
        }
        self.switches.operation()?;
        if !self.switches.sync_skipped.load(Ordering::SeqCst) {
            self.file.sync(point)?;
        }
        self.switches.synced().insert(self.path.clone(), length(&self.path));
        Ok(())
    }
}
