//! Makes a backup: copies the files that the repository does not have yet, then writes the record.
//!
//! The record is written last. A backup that ends early leaves objects without a record. The next backup uses the objects that
//! it needs, and a prune removes the others.

use std::collections::HashMap;

use jiff::Timestamp;
use tacho_store::{Error, Result, draw_id};

use crate::PART_BYTES;
use crate::hash::{Hash, Hasher};
use crate::record::{Id, Record, SavedFile, VERSION};
use crate::repository::{Lock, Repository, Work};
use crate::source::{Facts, OpenFile, Source};

/// The machine and the data directory that are backed up, and the program that makes the backup.
#[derive(Clone, Debug)]
pub struct Host {
    pub name: String,
    pub data: String,
    /// Version of this program.
    pub tacho: String,
}

#[derive(Debug)]
pub struct Created {
    pub record: Record,
    /// Number of objects that were written, and the sum of their bytes.
    pub objects: u64,
    pub bytes: u64,
}

/// Backs up `source`. Holds the exclusive lock of the repository until it returns.
///
/// # Errors
/// - `Locked` when another process uses the repository, or a server has begun to use a directory at rest.
/// - `Invalid` if the place of the repository has other files.
/// - `Version` if a newer version made the repository.
/// - `StorageFull` if the place has no space left.
/// - `Corrupt` if written bytes differ when they are read back, a file became shorter, the format file is damaged, or the id
///   exists already.
/// - `Io` if a file cannot be read or written.
/// - `Unavailable` if the place cannot be reached, a bucket refuses a request, or the lock was lost.
/// - The error of `work.check`.
///
/// After an error, the record is absent or may not be durable.
pub fn create(repository: &Repository, source: &Source, host: &Host, work: &mut Work<'_>) -> Result<Created> {
    // Fails if the place has other files. The lock is taken later, because it creates a file and a refused place must not change.
    repository.is_begun()?;
    let _lock = repository.lock(Lock::Exclusive)?;
    repository.prepare()?;
    work.total = source.bytes();
    let mut copier = Copier {
        repository,
        saved: saved_before(repository, host)?,
        objects: repository.objects()?,
        part: vec![0; PART_BYTES],
        written: (0, 0),
    };
    let mut files = Vec::with_capacity(source.files.len());
    for file in &source.files {
        let open = source.open(file)?;
        let Facts { bytes, mtime_ns, device, inode } = open.facts;
        let sha256 = copier.save(&file.name, open, work)?;
        files.push(SavedFile { name: file.name.clone(), bytes, sha256, mtime_ns, device, inode });
    }
    let (objects, bytes) = copier.written;
    let record = Record {
        version: VERSION,
        id: Id::new(source.time, draw_id() as u16),
        time: source.time,
        ended: Timestamp::now(),
        tacho: host.tacho.clone(),
        host: host.name.clone(),
        data: host.data.clone(),
        live: source.live,
        generation: source.generation,
        offset: source.offset,
        files,
    };
    if repository.record(&record.id).is_ok() {
        return Err(Error::corrupt("id of the backup exists already: retry").with("backup", &record.id));
    }
    (work.check)()?;
    source.check_at_rest()?;
    repository.settle_objects(record.files.iter().map(|file| file.sha256))?;
    repository.put_record(&record)?;
    Ok(Created { record, objects, bytes })
}

/// The files of the newest readable backup of the same directory.
fn saved_before(repository: &Repository, host: &Host) -> Result<HashMap<(String, Facts), Hash>> {
    for id in repository.ids()?.iter().rev() {
        // An unreadable record is skipped, so files may be read again. `list` and `verify` report it.
        let Ok(record) = repository.record(id) else { continue };
        if record.origin() == (&host.name, &host.data) {
            return Ok(record.files.into_iter().map(known).collect());
        }
    }
    Ok(HashMap::new())
}

fn known(SavedFile { name, bytes, sha256, mtime_ns, device, inode }: SavedFile) -> ((String, Facts), Hash) {
    ((name, Facts { bytes, mtime_ns, device, inode }), sha256)
}

struct Copier<'a> {
    repository: &'a Repository,
    saved: HashMap<(String, Facts), Hash>,
    /// The objects in the repository, and their lengths.
    objects: HashMap<Hash, u64>,
    part: Vec<u8>,
    /// Objects and bytes that were written.
    written: (u64, u64),
}

impl Copier<'_> {
    /// Saves one file. Returns the name of its object.
    fn save(&mut self, name: &str, mut file: OpenFile, work: &mut Work<'_>) -> Result<Hash> {
        let bytes = file.facts.bytes;
        // Segment files are only appended to, so equal facts mean equal bytes. All other files are read again.
        let is_segment = name.starts_with("chunks/") && name.ends_with(".segment");
        let unchanged = is_segment.then(|| self.saved.get(&(name.to_owned(), file.facts)));
        if let Some(hash) = unchanged.flatten()
            && self.objects.get(hash) == Some(&bytes)
        {
            work.advance(bytes)?;
            return Ok(*hash);
        }
        let mut object = self.repository.begin_object()?;
        let mut hasher = Hasher::default();
        loop {
            let read = file.read(&mut self.part)?;
            if read == 0 {
                break;
            }
            hasher.update(&self.part[..read]);
            object.write(&self.part[..read])?;
            work.advance(read as u64)?;
        }
        let hash = hasher.finish();
        if self.objects.get(&hash) != Some(&bytes) {
            self.repository.finish_object(object, hash)?;
            self.objects.insert(hash, bytes);
            self.written.0 += 1;
            self.written.1 += bytes;
        }
        Ok(hash)
    }
}
