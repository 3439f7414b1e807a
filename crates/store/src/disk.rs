//! Disk operations of the journal and the embedded driver, behind a trait so that tests can inject failures and keep files
//! in memory. Also sets file permissions: only the user of the server may read the data.

mod faulty;
mod irregular;
mod point;
mod reading;

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::lock::DirectoryLock;
use crate::{Error, ErrorKind, Result};

pub use faulty::FaultyDisk;
pub use irregular::{irregular, irregular_or_link};
pub use point::{Need, SyncPoint};
pub use reading::ReadFile;

/// Permissions of the files that are created below the data directory.
pub const FILE_MODE: u32 = 0o600;
pub const DIRECTORY_MODE: u32 = 0o700;

/// A file system. The provided methods use the file system of the operating system. Each sync has a name, by which the simulation
/// omits it.
pub trait Disk: Send + Sync + 'static {
    /// Opens a file for appending. Creates it if it does not exist.
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Cuts a file and syncs it.
    fn cut(&self, path: &Path, length: u64, point: SyncPoint) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Rewrites the bytes of a file from the offset `from` on, unchanged, and syncs the file. After a failed sync of an earlier
    /// process, these bytes may exist only in memory, and a sync alone may not write them.
    fn renew(&self, path: &Path, from: u64, _point: SyncPoint) -> io::Result<()> {
        let file = open_without_wait(OpenOptions::new().read(true).write(true), OFlags::empty(), path)?;
        let mut part = vec![0; RENEW_BYTES];
        let mut at = from;
        loop {
            let bytes = FileExt::read_at(&file, &mut part, at)?;
            if bytes == 0 {
                return file.sync_all();
            }
            file.write_all_at(part.get(..bytes).unwrap_or_default(), at)?;
            at += bytes as u64;
        }
    }

    /// Renames a file within its file system. An existing file of the new name is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    /// Makes creations, removals and renames in a directory durable.
    fn sync_directory(&self, path: &Path, point: SyncPoint) -> io::Result<()>;

    /// Creates a file that occupies `bytes`. The caller removes it when the disk is full and other files need the space.
    fn reserve(&self, path: &Path, bytes: u64) -> io::Result<()> {
        // A link, a FIFO or a directory in its place is refused. The length is cut only after this check, so that no other file
        // changes.
        let mut file = open_no_link_with(private_file().write(true).create(true), path)?;
        file.set_len(0)?;
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes) {
            Ok(()) => Ok(()),
            // The file system does not support allocation. A file of zeros occupies the same space unless the file system
            // compresses it.
            Err(rustix::io::Errno::NOTSUP) => {
                io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
                file.sync_all()
            }
            Err(error) => {
                let _ = std::fs::remove_file(path);
                Err(error.into())
            }
        }
    }

    /// Whether a file that [`Self::reserve`] made with `bytes` exists. A link to such a file does not count.
    fn is_reserved(&self, path: &Path, bytes: u64) -> bool {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes)
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(open_regular(path)?))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_regular(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(std::fs::metadata(path)?.len())
    }

    /// The reason why the object with this name is no file that can be read ([`irregular`]).
    fn irregular(&self, path: &Path) -> Option<&'static str> {
        irregular(path)
    }

    /// Names in a directory, in any order.
    fn list(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    /// Creates a directory that only its owner can enter, and its missing parents. On return they are durable.
    fn make_directory(&self, directory: &Path) -> io::Result<()> {
        make_directory(directory)
    }

    /// Locks a directory against other processes. Creates it if it is missing. Removes the rights of other users from it and its
    /// files. `None` means that no other process can use the disk.
    ///
    /// # Errors
    /// `Locked` when another process uses the directory; `Io` when it cannot be created or locked.
    fn lock(&self, directory: &Path) -> Result<Option<DirectoryLock>> {
        let lock = DirectoryLock::acquire(directory)?;
        make_private(directory);
        Ok(Some(lock))
    }

    /// Bytes that this user may still write to the file system that holds `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(path)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

const RENEW_BYTES: usize = 1 << 20;

pub trait DiskFile: Send {
    /// Appends all bytes. On failure, some of them may have been appended.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// When this returns, all appended bytes are on disk.
    fn sync(&mut self, point: SyncPoint) -> io::Result<()>;
}

/// Names in a directory, in any order. `what` is the verb phrase of an error ([`Error::io`]).
///
/// # Errors
/// `Corrupt` if another object has the name of the directory; `Io`.
pub fn list_in(disk: &dyn Disk, what: &'static str, directory: &Path) -> Result<Vec<OsString>> {
    disk.list(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => {
            let message = format!("cannot {what}: it is not a directory: put the directory back");
            Error::corrupt(message).with("path", directory.display())
        }
        _ => Error::io(what, directory, error),
    })
}

/// Sorted names in a directory; empty if the directory does not exist. `what` is the verb phrase of an error ([`Error::io`]).
///
/// # Errors
/// Like [`list_in`].
pub fn names_in(disk: &dyn Disk, what: &'static str, directory: &Path) -> Result<Vec<String>> {
    let entries = match list_in(disk, what, directory) {
        Ok(entries) => entries,
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names: Vec<String> =
        entries.into_iter().map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

pub fn exists(disk: &dyn Disk, path: &Path) -> io::Result<bool> {
    match disk.length(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file for reading, or the file that a symbolic link names. Never waits, although a plain
/// open of a FIFO waits for a writer.
///
/// # Errors
/// If the file cannot be opened, or is not a regular file. A device may have no end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_without_wait(OpenOptions::new().read(true), OFlags::empty(), path)
}

/// Opens a file as [`open_regular`] does, but does not follow a symbolic link, which another user of the directory may have
/// made.
///
/// # Errors
/// Those of [`open_regular`], and if the path is a symbolic link.
pub fn open_no_link(path: &Path) -> io::Result<File> {
    open_no_link_with(OpenOptions::new().read(true), path)
}

/// Opens a file with these options as [`open_no_link`] does.
///
/// # Errors
/// Those of [`open_no_link`].
pub fn open_no_link_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_without_wait(options, OFlags::NOFOLLOW, path).map_err(|error| match irregular_or_link(path) {
        Some(why) => io::Error::new(io::ErrorKind::InvalidInput, why),
        None => error,
    })
}

fn open_without_wait(options: &mut OpenOptions, flags: OFlags, path: &Path) -> io::Result<File> {
    let not_regular = || io::Error::new(io::ErrorKind::InvalidInput, irregular::NOT_REGULAR);
    let flags = (flags | OFlags::NONBLOCK).bits().cast_signed();
    let file = options.custom_flags(flags).open(path).map_err(|error| {
        // To open a directory, or a FIFO without a reader, for writing is an error of another kind.
        let is_other = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
        if is_other { not_regular() } else { error }
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// Opens a file as [`open_regular`] does, and reads it if it has at most `bytes_max` bytes.
///
/// # Errors
/// Those of [`open_regular`], and if the file is longer.
pub fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        let message = format!("it has {} bytes, at most {bytes_max} are read", length.max(bytes_max + 1));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(bytes)
}

/// Options for a file that only its owner can access. The caller adds the access mode. To open a FIFO is an error instead of a
/// wait.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    options
}

/// Creates a directory that only its owner can enter, and its missing parents. Syncs the parents, because a file is
/// durable only when its path is durable.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    let above = directory.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() {
        // The process that made the directory may have ended before this sync.
        return sync_directory(above).or_else(pass_if_of_others);
    }
    make_directory(above)?;
    match DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Err(error) if !directory.is_dir() => Err(error),
        _ => sync_directory(above),
    }
}

/// Makes creations, removals and renames in a directory of the operating system durable. Never waits for a FIFO in its place.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)?.sync_all()
}

/// Accepts the failed sync of a directory that this process need not sync. If this user may not read a directory, this user has
/// made no names in it. Some file systems, such as that of an automatic mount, cannot sync a directory.
fn pass_if_of_others(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    }
}

/// Makes the names in a directory durable, if the directory exists and this user may read it.
fn sync_if_exists(disk: &dyn Disk, directory: &Path, point: SyncPoint) -> Result<()> {
    let synced = disk.sync_directory(directory, point).or_else(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(()),
        _ => pass_if_of_others(error),
    });
    synced.map_err(|e| Error::io("sync directory", directory, e))
}

/// Makes the names in a directory and in its quarantine durable. The quarantine is first, so that a file which was moved there
/// has at least one name after a power failure. `points` are the syncs of the quarantine and of the directory.
pub fn sync_names(
    disk: &dyn Disk,
    (quarantine, directory): (&Path, &Path),
    points: [SyncPoint; 2],
) -> Result<()> {
    sync_if_exists(disk, quarantine, points[0])?;
    let synced = disk.sync_directory(directory, points[1]);
    synced.map_err(|e| Error::io("sync directory", directory, e))
}

/// An unused path in a directory: this name, or this name with a number appended. Creates the directory.
pub fn free_path(disk: &dyn Disk, directory: &Path, name: &str) -> io::Result<PathBuf> {
    disk.make_directory(directory)?;
    let mut path = directory.join(name);
    let mut again = 1u64;
    while exists(disk, &path)? || disk.irregular(&path).is_some() {
        path = directory.join(format!("{name}.{again}"));
        again += 1;
    }
    Ok(path)
}

/// Removes the rights of other users from a directory that is used only by the store, and from its files. Older versions
/// left these rights to the umask. Failures to remove rights are logged.
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

/// Sets the permissions of one file or directory to `mode`, if group or others have rights to it. A failure is logged.
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
    pub fn new(disk: Arc<dyn Disk>, path: &Path, reserve_bytes: u64) -> Self {
        Self { disk, path: path.into(), reserve_bytes }
    }

    /// Checks whether new records fit if flushing the journal takes `bytes`. Costs one system call without disk access.
    ///
    /// # Errors
    /// `StorageFull` when less than the reserve would be left. If the file system does not report its free space, the
    /// check passes.
    pub fn check(&self, bytes: u64) -> Result<()> {
        let Ok(free) = self.disk.free_bytes(&self.path) else { return Ok(()) };
        if free >= self.reserve_bytes.saturating_add(bytes) {
            return Ok(());
        }
        let needed = if bytes > 0 {
            format!(", and up to {bytes} are needed to flush the journal")
        } else {
            String::new()
        };
        let message = format!(
            "{free} bytes are free on the disk, {} are reserved so that deletion works{needed}: delete old records or free disk \
             space",
            self.reserve_bytes
        );
        Err(Error::new(ErrorKind::StorageFull, message).with("path", self.path.display()))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(open_without_wait(private_file().create(true).append(true), OFlags::empty(), path)?))
    }

    fn cut(&self, path: &Path, length: u64, _: SyncPoint) -> io::Result<()> {
        let file = open_without_wait(OpenOptions::new().write(true), OFlags::empty(), path)?;
        file.set_len(length)?;
        file.sync_all()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path, _: SyncPoint) -> io::Result<()> {
        sync_directory(path)
    }
}

impl DiskFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self, _: SyncPoint) -> io::Result<()> {
        self.sync_data()
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

    /// A disk that cannot sync directories.
    struct Unsynced(io::ErrorKind);

    impl Disk for Unsynced {
        fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
            RealDisk.open(path)
        }

        fn cut(&self, path: &Path, length: u64, point: SyncPoint) -> io::Result<()> {
            RealDisk.cut(path, length, point)
        }

        fn remove(&self, path: &Path) -> io::Result<()> {
            RealDisk.remove(path)
        }

        fn sync_directory(&self, _path: &Path, _point: SyncPoint) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn only_a_directory_in_which_this_user_made_names_must_be_synced() {
        let directory = Path::new("journal/quarantine");
        for (kind, passes) in [
            (io::ErrorKind::NotFound, true),
            (io::ErrorKind::NotADirectory, true),
            (io::ErrorKind::PermissionDenied, true),
            (io::ErrorKind::InvalidInput, true),
            (io::ErrorKind::Other, false),
        ] {
            let synced = sync_if_exists(&Unsynced(kind), directory, SyncPoint::JournalQuarantineAtStart);
            assert_eq!(synced.is_ok(), passes, "{kind:?}");
            if let Err(error) = synced {
                let message = "cannot sync directory (path journal/quarantine)";
                assert!(error.to_string().starts_with(message), "{error}");
            }
        }
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
        let message = "1100 bytes are free on the disk, 1000 are reserved so that deletion works, and up to 101 are needed";
        assert!(error.to_string().starts_with(message), "{error}");
        // Cutting or removing a file frees space.
        let path = place.path().join("x");
        let mut file = disk.open(&path).unwrap();
        file.append(&[0; 600]).unwrap();
        space.check(0).unwrap_err();
        disk.cut(&path, 500, SyncPoint::JournalFailedWrite).unwrap();
        disk.remove(&path).unwrap();
        space.check(100).unwrap();
        assert!(RealDisk.free_bytes(place.path()).unwrap() > 0);
    }
}
