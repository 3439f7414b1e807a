//! A repository: objects, and the records of backups. `docs/format/backup.md` describes its files.
//!
//! ```text
//!   repository.json            version of the layout
//!   backups/ID                 one record for each backup
//!   objects/ab/ab12..          bytes of a file, under their SHA-256
//! ```
//! A [`Place`] keeps the files. It may list names of any form; this module accepts only the names above.

mod directory;
#[cfg(test)]
mod read_back_tests;
#[cfg(feature = "s3")]
mod s3;
#[cfg(feature = "s3")]
mod s3_http;
#[cfg(feature = "s3")]
mod s3_lock;
#[cfg(feature = "s3")]
mod s3_refusal;

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tacho_store::{Error, ErrorKind, Result};

use crate::hash::{Hash, Hasher};
use crate::record::{Id, RECORD_BYTES_MAX, Record, VERSION, newer};
use crate::{FILES_MAX, PART_BYTES};
use directory::Directory;

const FORMAT_FILE: &str = "repository.json";
const FORMAT_BYTES_MAX: u64 = 4_096;
const BACKUPS: &str = "backups";
const OBJECTS: &str = "objects";

/// The files of a repository. Names are relative, with `/` between their parts.
pub trait Place: Send + Sync {
    /// The address, for messages.
    fn location(&self) -> String;

    /// Names and lengths of all files below a folder. Empty if there is no such folder. With the empty name, the list has only
    /// the files and folders directly in the repository.
    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>>;

    /// Opens a file. Returns its length and its content; `None` if there is no such file.
    fn open(&self, name: &str) -> Result<Option<(u64, Box<dyn Read + Send>)>>;

    /// Begins a new file, which has no name yet.
    fn begin(&self) -> Result<Box<dyn Incoming + '_>>;

    /// Removes a file. A missing file is no error.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes the names in these folders durable, and the names of the folders. Ignores missing folders.
    fn settle(&self, folders: &[String]) -> Result<()>;

    /// Removes the unfinished files that interrupted writes left. The caller holds the exclusive lock.
    fn clean(&self) -> Result<()>;

    /// Locks the repository until the guard is dropped or this process ends. A lock in a bucket counts for some minutes more
    /// if the process ends without dropping the guard. An exclusive lock creates the repository's place if it is missing.
    fn lock(&self, lock: Lock) -> Result<Guard>;
}

/// A file that is being written. It is removed if it is dropped without [`Incoming::finish`].
pub trait Incoming {
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the file durable, reads it back, compares its hash, and gives it its name. An existing file is replaced.
    fn finish(self: Box<Self>, name: &str, hash: Hash) -> Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// For readers. While it is held, no object is removed.
    Shared,
    /// For one writer. While it is held, no other process gets a lock.
    Exclusive,
}

pub type Guard = Box<dyn Send>;

/// The progress of work that takes long, and a check that can end the work.
pub struct Work<'a> {
    /// Receives the amount of work done and the total amount, in bytes. A prune counts objects instead.
    pub progress: &'a mut dyn FnMut(u64, u64),
    /// Called often. Its error ends the work.
    pub check: &'a dyn Fn() -> Result<()>,
    pub done: u64,
    pub total: u64,
}

impl<'a> Work<'a> {
    pub fn new(progress: &'a mut dyn FnMut(u64, u64), check: &'a dyn Fn() -> Result<()>) -> Self {
        Self { progress, check, done: 0, total: 0 }
    }

    pub(crate) fn advance(&mut self, amount: u64) -> Result<()> {
        self.done += amount;
        (self.progress)(self.done, self.total);
        (self.check)()
    }
}

#[derive(Serialize, Deserialize)]
struct Format {
    version: u32,
}

pub struct Repository {
    place: Box<dyn Place>,
}

impl Repository {
    /// The repository at an address: the path of a directory, or `s3://BUCKET/PREFIX`. Reads nothing yet.
    ///
    /// # Errors
    /// `Invalid` for an unusable address; for a bucket also for unusable variables of the environment.
    pub fn at(address: &str) -> Result<Self> {
        if address.is_empty() {
            return Err(Error::invalid("address of the backup repository is empty"));
        }
        let place: Box<dyn Place> = match address.split_once("://") {
            None => Box::new(Directory::new(PathBuf::from(address))),
            #[cfg(feature = "s3")]
            Some(("s3", _)) => Box::new(s3::S3::new(address)?),
            #[cfg(not(feature = "s3"))]
            Some(("s3", _)) => {
                let message =
                    "this tacho was built without S3: build it with --features s3, or give a directory";
                return Err(Error::invalid(message));
            }
            Some((scheme, _)) => {
                let message = format!(
                    "unsupported scheme {scheme:?} of a backup repository: give a directory or s3://BUCKET/PREFIX"
                );
                return Err(Error::invalid(message));
            }
        };
        Ok(Self { place })
    }

    pub fn location(&self) -> String {
        self.place.location()
    }

    /// Locks the repository.
    ///
    /// # Errors
    /// `Locked` if another process holds a lock, unless both locks are shared.
    pub fn lock(&self, lock: Lock) -> Result<Guard> {
        self.place.lock(lock).map_err(|error| match error.kind() {
            ErrorKind::Locked => Error::new(
                ErrorKind::Locked,
                format!(
                    "another backup, restore, verify or prune uses the backup repository {}",
                    self.location()
                ),
            ),
            _ => error,
        })
    }

    /// Checks that this is a backup repository of a known version.
    ///
    /// # Errors
    /// `Invalid` if there is no repository; `Version` if a newer version made it; `Corrupt` if the format file is damaged.
    pub fn check_format(&self) -> Result<()> {
        match self.format()? {
            Some(()) => Ok(()),
            None => Err(Error::invalid(format!(
                "{} is not a backup repository: it has no {FORMAT_FILE}",
                self.location()
            ))),
        }
    }

    fn format(&self) -> Result<Option<()>> {
        let Some(bytes) = self.read_whole(FORMAT_FILE, FORMAT_BYTES_MAX)? else { return Ok(None) };
        let format: Format = serde_json::from_slice(&bytes).map_err(|e| {
            Error::corrupt(format!("cannot read {FORMAT_FILE} of {}", self.location())).caused_by(e)
        })?;
        if format.version == VERSION { Ok(Some(())) } else { Err(newer(format.version)) }
    }

    /// Whether there is a repository. Otherwise the place is empty or absent, and can become one.
    ///
    /// # Errors
    /// `Invalid` if the place has other files; `Version` if a newer version made the repository; `Corrupt` if the format file
    /// is damaged.
    pub fn is_begun(&self) -> Result<bool> {
        if self.format()?.is_some() {
            return Ok(true);
        }
        let names = self.place.list("")?.into_iter().map(|(name, _)| name);
        // An interrupted first backup leaves `LOCK` and `incoming`.
        match names.filter(|name| name != "LOCK" && name != "incoming").min() {
            None => Ok(false),
            Some(name) => Err(Error::invalid(format!(
                "{} is not a backup repository and not empty, it has for example {name:?}",
                self.location()
            ))),
        }
    }

    /// Makes an empty place a repository, and removes the unfinished files of interrupted backups. The caller holds the
    /// exclusive lock.
    ///
    /// # Errors
    /// Those of [`Repository::is_begun`]; also `Io` or `Unavailable` if the place cannot be changed.
    pub fn prepare(&self) -> Result<()> {
        if !self.is_begun()? {
            self.put(FORMAT_FILE, format!("{{\"version\":{VERSION}}}\n").as_bytes())?;
        }
        self.place.clean()
    }

    /// Removes the unfinished files of interrupted backups. The caller holds the exclusive lock.
    pub fn clean(&self) -> Result<()> {
        self.place.clean()
    }

    fn read_whole(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        let Some((length, content)) = self.place.open(name)? else { return Ok(None) };
        if length > bytes_max {
            let message = format!("file has {length} bytes, at most {bytes_max} are expected");
            return Err(Error::corrupt(message).with("file", name));
        }
        let mut bytes = Vec::new();
        // The file may grow while it is read.
        let read = content.take(bytes_max).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("read", name.as_ref(), e))?;
        Ok(Some(bytes))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut incoming = self.place.begin()?;
        incoming.write(bytes)?;
        incoming.finish(name, Hash::of(bytes))
    }

    /// Begins an object. [`Repository::finish_object`] gives it its name.
    pub fn begin_object(&self) -> Result<Box<dyn Incoming + '_>> {
        self.place.begin()
    }

    pub fn finish_object(&self, incoming: Box<dyn Incoming + '_>, hash: Hash) -> Result<()> {
        incoming.finish(&object_name(hash), hash)
    }

    /// Makes the names of objects durable. A backup that was interrupted may have ended before it did this.
    pub fn settle_objects(&self, hashes: impl Iterator<Item = Hash>) -> Result<()> {
        let mut folders: Vec<String> = hashes.map(object_folder).collect();
        folders.sort_unstable();
        folders.dedup();
        self.place.settle(&folders)
    }

    pub fn objects(&self) -> Result<HashMap<Hash, u64>> {
        let found = self.place.list(OBJECTS)?.into_iter();
        Ok(found.filter_map(|(name, bytes)| Some((object_of(&name)?, bytes))).collect())
    }

    /// Reads an object to its end. Passes all parts to `each`, and checks length and hash.
    ///
    /// # Errors
    /// `Corrupt` if the object is missing or has other bytes; the error of `each`; the error of the place if the object cannot be
    /// read. After an error, `each` may have received some of the bytes.
    pub fn read_object(
        &self,
        hash: Hash,
        bytes: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let wrong = |why: String| Error::corrupt(why).with("object", object_name(hash));
        let Some((length, mut content)) = self.place.open(&object_name(hash))? else {
            return Err(wrong("object is missing".to_owned()));
        };
        if length != bytes {
            return Err(wrong(format!("object has {length} bytes instead of {bytes}")));
        }
        let (mut hasher, mut part, mut left) = (Hasher::default(), vec![0; PART_BYTES], bytes);
        loop {
            let read = content
                .read(&mut part)
                .map_err(|e| Error::io("read object", object_name(hash).as_ref(), e))?;
            if read == 0 {
                break;
            }
            left = left.checked_sub(read as u64).ok_or_else(|| wrong("object grows".to_owned()))?;
            hasher.update(&part[..read]);
            each(&part[..read])?;
        }
        let found = hasher.finish();
        if left > 0 || found != hash {
            return Err(wrong(format!("object has other bytes: their hash is {found}")));
        }
        Ok(())
    }

    pub fn remove_object(&self, hash: Hash) -> Result<()> {
        self.place.remove(&object_name(hash))
    }

    /// The ids of all backups, sorted. Ids of the same second have a random order.
    pub fn ids(&self) -> Result<Vec<Id>> {
        let found = self.place.list(BACKUPS)?.into_iter();
        let mut ids: Vec<Id> = found
            .filter_map(|(name, _)| name.strip_prefix(BACKUPS)?.strip_prefix('/')?.parse().ok())
            .collect();
        if ids.len() > FILES_MAX {
            return Err(Error::corrupt(format!("{} backups, at most {FILES_MAX} are expected", ids.len())));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// # Errors
    /// `Invalid` if there is no such backup; `Version` if a newer version wrote the record; `Corrupt` if it is damaged.
    pub fn record(&self, id: &Id) -> Result<Record> {
        match self.read_whole(&record_name(id), RECORD_BYTES_MAX)? {
            Some(bytes) => Record::decode(&bytes, id),
            None => Err(Error::invalid(format!("no backup {id} in {}", self.location()))),
        }
    }

    /// Writes the record of a backup. From then on the backup exists.
    pub fn put_record(&self, record: &Record) -> Result<()> {
        self.put(&record_name(&record.id), &record.encode()?)
    }

    /// Removes records durably.
    pub fn remove_records<'a>(&self, ids: impl IntoIterator<Item = &'a Id>) -> Result<()> {
        let settle = || self.place.settle(&[BACKUPS.to_owned()]);
        // The newest record may be of an interrupted backup that did not sync its name. It must be durable before older records
        // are removed.
        settle()?;
        for id in ids {
            self.place.remove(&record_name(id))?;
        }
        settle()
    }
}

fn record_name(id: &Id) -> String {
    format!("{BACKUPS}/{id}")
}

fn object_folder(hash: Hash) -> String {
    format!("{OBJECTS}/{}", &hash.to_string()[..2])
}

fn object_name(hash: Hash) -> String {
    format!("{}/{hash}", object_folder(hash))
}

/// The hash in the name of an object; `None` for any other name.
fn object_of(name: &str) -> Option<Hash> {
    let hash = name.rsplit('/').next()?.parse().ok()?;
    (object_name(hash) == name).then_some(hash)
}
