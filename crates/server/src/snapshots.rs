//! Snapshots for backups: hard links to the files of the store at one moment. Then the server links or copies the side files of
//! the data directory (`SIDE_FILES`).
//!
//! `snapshots/ID/` has the layout of a data directory. A client reads its files and then releases the snapshot. If merges,
//! retention or deletions remove a file of the store, the link keeps its bytes. Each snapshot has a lease, because a client may
//! die. A start of the server removes all snapshots.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tacho_model::{Clock, Timestamp};
use tacho_store::disk::{Disk, RealDisk, names_in, open_no_link, open_regular, private_file};
use tacho_store::pin::{SIDE_FILES, is_wanted, link, refused_link};
use tacho_store::{Error, ErrorKind as Kind, PinnedFile, Result, Store, draw_id};
use tokio::time::Instant;

pub const DIRECTORY: &str = "snapshots";
/// Limit on snapshots at one time. Each may keep the space of all files of the store.
pub const SNAPSHOTS_MAX: usize = 2;
/// A snapshot that is not renewed for this long is removed. Clients renew it several times in this time.
pub const LEASE: Duration = Duration::from_secs(60);
/// The only side file that users change in place, and the only one that may be a symbolic link. The other side files are
/// replaced as a whole, so the bytes behind a hard link to them do not change.
const SETTINGS: &str = "tacho.toml";

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub id: String,
    pub directory: PathBuf,
    /// Every record that was acknowledged before this time is in the snapshot, unless a deletion, retention or downsampling
    /// has removed it.
    pub begun: Timestamp,
    /// The newest generation in memory; 0 if there is none.
    pub generation: u64,
    /// The acknowledged bytes in the journal of `generation`.
    pub offset: u64,
    /// Paths relative to `directory`, with the bytes that belong to the snapshot. Files may be longer.
    pub files: Vec<PinnedFile>,
}

#[derive(Debug)]
pub enum Refused {
    TooMany,
    Failed(Error),
}

pub struct Snapshots {
    data: PathBuf,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    leases: Mutex<Vec<Lease>>,
}

struct Lease {
    id: String,
    begun: Timestamp,
    until: Instant,
}

impl Snapshots {
    pub fn new(data: &Path, store: Arc<Store>, clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Self { data: data.to_owned(), store, clock, leases: Mutex::default() })
    }

    /// Makes a snapshot, which exists until its release or the end of its lease.
    pub async fn create(self: &Arc<Self>) -> Result<Snapshot, Refused> {
        let begun = self.clock.now();
        let id = format!("{:016x}", draw_id() as u64);
        {
            let mut leases = self.leases();
            if leases.len() >= SNAPSHOTS_MAX {
                return Err(Refused::TooMany);
            }
            leases.push(Lease { id: id.clone(), begun, until: Instant::now() + LEASE });
        }
        match self.make(id.clone(), begun).await {
            // The client's full lease begins when the links exist.
            Ok(snapshot) if self.renew(&id) => {
                tokio::spawn(self.clone().expire(id));
                Ok(snapshot)
            }
            Ok(snapshot) => {
                remove(&snapshot.directory);
                let message = "snapshot was released while it was made";
                Err(Refused::Failed(Error::new(Kind::Unavailable, message)))
            }
            Err(error) => {
                self.release(&id).await;
                Err(Refused::Failed(error))
            }
        }
    }

    async fn make(&self, id: String, begun: Timestamp) -> Result<Snapshot> {
        let directory = self.data.join(DIRECTORY).join(&id);
        let pinned = self.store.pin(&directory.join("chunks"), &directory.join("journal")).await?;
        let mut files = Vec::with_capacity(pinned.driver.len() + pinned.journal.len());
        for (folder, some) in [("chunks", pinned.driver), ("journal", pinned.journal)] {
            let file = |PinnedFile { name, bytes }| PinnedFile { name: format!("{folder}/{name}"), bytes };
            files.extend(some.into_iter().map(file));
        }
        // The side files are linked after the journals, so that `record_types.json` has the types of all records in the journals.
        files.extend(link_side_files(&self.data, &directory)?);
        tracing::info!(snapshot = %id, files = files.len(), "snapshot made for a backup");
        let (generation, offset) = (pinned.generation, pinned.offset);
        Ok(Snapshot { id, directory, begun, generation, offset, files })
    }

    /// Begins the lease again. Returns whether the snapshot exists.
    pub fn renew(&self, id: &str) -> bool {
        let mut leases = self.leases();
        let found = leases.iter_mut().find(|lease| lease.id == id);
        found.map(|lease| lease.until = Instant::now() + LEASE).is_some()
    }

    /// Removes a snapshot. Returns whether it existed.
    pub async fn release(&self, id: &str) -> bool {
        if !self.leases().iter().any(|lease| lease.id == id) {
            return false;
        }
        let directory = self.data.join(DIRECTORY).join(id);
        let removed = tokio::task::spawn_blocking(move || remove(&directory)).await;
        if removed.is_err() {
            tracing::warn!(snapshot = id, "snapshot was not removed");
        }
        // The snapshot counts toward `SNAPSHOTS_MAX` until its links are removed.
        self.leases().retain(|lease| lease.id != id);
        true
    }

    pub fn list(&self) -> Vec<(String, Timestamp, Duration)> {
        let now = Instant::now();
        let shown =
            |lease: &Lease| (lease.id.clone(), lease.begun, lease.until.saturating_duration_since(now));
        self.leases().iter().map(shown).collect()
    }

    async fn expire(self: Arc<Self>, id: String) {
        loop {
            let until = self.leases().iter().find(|lease| lease.id == id).map(|lease| lease.until);
            match until {
                None => return,
                Some(until) if Instant::now() >= until => break,
                Some(until) => tokio::time::sleep_until(until).await,
            }
        }
        tracing::warn!(snapshot = %id, "snapshot removed: its client did not renew it");
        self.release(&id).await;
    }

    fn leases(&self) -> MutexGuard<'_, Vec<Lease>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn link_side_files(data: &Path, directory: &Path) -> Result<Vec<PinnedFile>> {
    let mut files = Vec::new();
    for name in SIDE_FILES {
        let (path, to) = (data.join(name), directory.join(name));
        if name == SETTINGS {
            if !path.is_file() {
                continue;
            }
            copy(open_regular(&path), &path, &to)?;
        } else if !is_wanted(&path) {
            continue;
        } else if path.is_symlink() {
            return Err(refused_link(&path));
        } else if link(&path, directory, name).is_err() {
            // The copy also fails if a symbolic link replaced the file after the check.
            copy(open_no_link(&path), &path, &to)?;
        }
        let bytes = RealDisk.length(&to).map_err(|e| Error::io("read length", &to, e))?;
        files.push(PinnedFile { name: name.to_owned(), bytes });
    }
    Ok(files)
}

fn copy(from: io::Result<File>, path: &Path, to: &Path) -> Result<()> {
    let copied = from
        .and_then(|mut from| io::copy(&mut from, &mut private_file().write(true).create_new(true).open(to)?));
    copied.map(drop).map_err(|e| Error::io("copy", path, e))
}

fn remove(directory: &Path) {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(path = %directory.display(), %error, "snapshot was not removed");
        }
        _ => {}
    }
}

/// Removes the snapshots of an earlier process. The caller holds the lock of the data directory.
pub fn remove_all(data: &Path) {
    let directory = data.join(DIRECTORY);
    if !std::fs::symlink_metadata(&directory).is_ok_and(|found| found.is_dir()) {
        return;
    }
    // A server does not make directories with other names.
    let is_id = |name: &String| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names = names_in(&RealDisk, "list snapshots", &directory).unwrap_or_default();
    for name in names.into_iter().filter(is_id) {
        tracing::info!(snapshot = %name, "snapshot of an earlier process removed");
        remove(&directory.join(name));
    }
    let _ = std::fs::remove_dir(&directory);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn settings_are_copied_because_users_change_them_in_place() {
        let place = tempfile::tempdir().unwrap();
        let (data, directory) = (place.path().join("data"), place.path().join("snapshot"));
        for path in [&data, &directory] {
            std::fs::create_dir(path).unwrap();
        }
        for name in [SETTINGS, "tokens"] {
            std::fs::write(data.join(name), "a long text").unwrap();
        }
        let files = link_side_files(&data, &directory).unwrap();
        std::fs::write(data.join(SETTINGS), "short").unwrap();
        for file in &files {
            assert_eq!(std::fs::read(directory.join(&file.name)).unwrap().len() as u64, file.bytes);
        }
        assert_eq!(files.len(), 2);
        let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
        assert_eq!(inode(&data.join("tokens")), inode(&directory.join("tokens")));
    }

    #[test]
    fn a_symbolic_link_is_refused_except_that_of_the_settings() {
        let place = tempfile::tempdir().unwrap();
        let [data, first, second, outside] =
            ["data", "first", "second", "outside"].map(|name| place.path().join(name));
        for path in [&data, &first, &second] {
            std::fs::create_dir(path).unwrap();
        }
        std::fs::write(&outside, "secret").unwrap();
        symlink(&outside, data.join(SETTINGS)).unwrap();
        symlink("absent", data.join("record_types.json")).unwrap();
        let files = link_side_files(&data, &first).unwrap();
        assert_eq!(files, [PinnedFile { name: SETTINGS.to_owned(), bytes: 6 }]);
        symlink(&outside, data.join("probes.json")).unwrap();
        let error = link_side_files(&data, &second).unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.to_string().contains("probes.json"), "{error}");
        assert!(!second.join("probes.json").exists());
    }
}
