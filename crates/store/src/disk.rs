//! Disk operations of the journal and the embedded driver, behind a trait so that tests can inject failures. Also sets
//! file permissions: only the user of the server may read the data.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Error, ErrorKind, Result};

/// Permissions of every file below the data directory.
pub const FILE_MODE: u32 = 0o600;
pub const DIRECTORY_MODE: u32 = 0o700;

pub trait Disk: Send + Sync + 'static {
    /// Opens a file for appending. Creates it if it does not exist.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Cuts the file to this length and syncs it.
    fn cut(&self, path: &Path, length: u64) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Renames a file within its file system. An existing file of the new name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    /// Makes creations and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;

    /// Creates a file that occupies `bytes`. It is removed when the disk is full and other files need the space.
    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let file = private_file().write(true).create(true).truncate(true).open(path)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // The file system does not support allocation. A file of zeros occupies the same space unless the file system
            // compresses it.
            Err(rustix::io::Errno::NOTSUP) => {
                io::copy(&mut io::repeat(0).take(bytes), &mut &file)?;
                file.sync_all()
            }
            Err(error) => {
                let _ = std::fs::remove_file(path);
                Err(error.into())
            }
        }
    }

    /// Bytes that this user may still write to the file system that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

pub trait DiskFile: Send {
    /// Appends all bytes. On failure, some of them may have been appended.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// When this returns, all appended bytes are on disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// Sorted names of the files in a directory; empty if the directory does not exist. `what` names the directory in errors.
pub fn names_in(what: &'static str, directory: &Path) -> Result<Vec<String>> {
    let failed = |error| Error::io(what, directory, error);
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Options for a file that only its owner can access. The caller adds the access mode.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Creates a directory that only its owner can enter, and its missing parents. Syncs the parents, because a file is
/// durable only when its path is durable.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_directory(above)?;
    match DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Err(error) if !directory.is_dir() => Err(error),
        _ => File::open(above)?.sync_all(),
    }
}

/// An unused path in a directory: this name, or this name with a number appended. Creates the directory.
pub fn free_path(directory: &Path, name: &str) -> io::Result<PathBuf> {
    make_directory(directory)?;
    let mut path = directory.join(name);
    let mut again = 1u64;
    while path.try_exists()? {
        path = directory.join(format!("{name}.{again}"));
        again += 1;
    }
    Ok(path)
}

/// Removes the rights of other users from a directory that is used only by the store, and from its files. Older versions
/// left these rights to the umask. Failures are logged.
pub fn make_private(directory: &Path) {
    restrict(directory, DIRECTORY_MODE);
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_file()) {
            restrict(&entry.path(), FILE_MODE);
        }
    }
}

/// Logs a warning when other users may enter a directory. Does not change its rights, because other programs may use it.
pub fn warn_if_shared(directory: &Path) {
    let mode = std::fs::metadata(directory).map_or(0, |found| found.permissions().mode() & 0o7777);
    if mode & 0o077 != 0 {
        let mode = format!("{mode:o}");
        tracing::warn!(path = %directory.display(), mode, "other users may enter the data directory: chmod 700 it");
    }
}

/// Removes the rights of group and others from one file or directory.
pub fn restrict(path: &Path, mode: u32) {
    let change = || {
        let found = std::fs::symlink_metadata(path)?.permissions().mode();
        if found & 0o077 == 0 {
            return Ok(());
        }
        std::fs::set_permissions(path, Permissions::from_mode(mode))
    };
    if let Err(error) = change() {
        tracing::warn!(path = %path.display(), %error, "other users may read it: cannot change permissions");
    }
}

/// Disk space kept free so that deletion and expiry still work when the disk is full.
#[derive(Clone)]
pub struct Space {
    disk: Arc<dyn Disk>,
    path: Arc<Path>,
    reserve_bytes: u64,
}

impl Space {
    /// Checks the file system that holds `path`.
    pub fn new(disk: Arc<dyn Disk>, path: &Path, reserve_bytes: u64) -> Self {
        Self { disk, path: path.into(), reserve_bytes }
    }

    /// Whether new records may take `bytes` more. Costs one system call without disk access.
    ///
    /// # Errors
    /// `StorageFull` when less than the reserve would be left. If the file system does not report its free space, the
    /// check passes.
    pub fn check(&self, bytes: u64) -> Result<()> {
        let Ok(free) = self.disk.free_bytes(&self.path) else { return Ok(()) };
        if free >= self.reserve_bytes.saturating_add(bytes) {
            return Ok(());
        }
        let message = format!(
            "{free} bytes are free on the disk, {} are reserved so that deletion works: delete old records or free disk space",
            self.reserve_bytes
        );
        Err(Error::new(ErrorKind::StorageFull, message).with("path", self.path.display()))
    }
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(private_file().create(true).append(true).open(path)?))
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

/// A disk with injected faults for tests: little space, or operations that fail. Cutting or removing files frees space.
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
    /// Sets the bytes that may still be appended. After that, a write stops in the middle, as on a full disk.
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

    /// Makes syncs do nothing. For tests that kill processes but do not simulate power failures.
    pub fn set_sync_skipped(&self, skipped: bool) {
        self.0.sync_skipped.store(skipped, Ordering::SeqCst);
    }

    /// Cuts off the unsynced bytes of all files, like a power failure.
    pub fn lose_unsynced(&self) -> io::Result<()> {
        let synced = self.0.synced();
        for (path, bytes) in synced.iter().filter(|(path, bytes)| length(path) > **bytes) {
            RealDisk.cut(path, *bytes)?;
        }
        Ok(())
    }

    /// Sets the number of operations after which all operations fail, as if the process had ended. The next append writes
    /// half of its bytes.
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

    fn cut(&self, path: &Path, length: u64) -> io::Result<()> {
        self.0.operation()?;
        if self.0.cut_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: cut failed"));
        }
        let before = self::length(path);
        RealDisk.cut(path, length)?;
        self.0.synced().insert(path.to_owned(), length);
        self.0.give_back(before.saturating_sub(length));
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

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.operation()?;
        if self.0.sync_skipped.load(Ordering::SeqCst) { Ok(()) } else { RealDisk.sync_directory(path) }
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
            self.file.append(&bytes[..bytes.len() / 2])?;
            return Err(ended);
        }
        let fits = self.switches.take(bytes.len() as u64) as usize;
        self.file.append(&bytes[..fits])?;
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        if self.switches.sync_fails.load(Ordering::SeqCst) {
            return Err(io::Error::other("injected: sync failed"));
        }
        self.switches.operation()?;
        if !self.switches.sync_skipped.load(Ordering::SeqCst) {
            self.file.sync()?;
        }
        self.switches.synced().insert(self.path.clone(), length(&self.path));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_the_owner_can_access_files_and_directories() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("a/b");
        make_directory(&directory).unwrap();
        assert_eq!((mode(&directory), mode(&place.path().join("a"))), (0o700, 0o700));
        RealDisk.open(&directory.join("x")).unwrap();
        assert_eq!(mode(&directory.join("x")), 0o600);
        std::fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
        std::fs::set_permissions(directory.join("x"), Permissions::from_mode(0o644)).unwrap();
        make_private(&directory);
        assert_eq!((mode(&directory), mode(&directory.join("x"))), (0o700, 0o600));
    }

    #[test]
    fn new_records_are_refused_before_the_reserve_is_touched() {
        let place = tempfile::tempdir().unwrap();
        let disk = FaultyDisk::default();
        let space = Space::new(Arc::new(disk.clone()), place.path(), 1_000);
        space.check(1).unwrap();
        disk.set_space(1_100);
        space.check(100).unwrap();
        let error = space.check(101).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert!(
            error.to_string().starts_with("1100 bytes are free on the disk, 1000 are reserved"),
            "{error}"
        );
        // Removing a file frees its space.
        let path = place.path().join("x");
        let mut file = disk.open(&path).unwrap();
        file.append(&[0; 600]).unwrap();
        space.check(0).unwrap_err();
        disk.cut(&path, 500).unwrap();
        disk.remove(&path).unwrap();
        space.check(100).unwrap();
        assert!(RealDisk.free_bytes(place.path()).unwrap() > 0);
    }
}
