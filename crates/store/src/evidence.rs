//! Finds the highest generation number in all files, and checks that all required files and facts exist.
//!
//! A reused number would mask or overwrite existing data. The next number is therefore above every number found in any
//! row or file. Missing files and facts, and journals with wrong names, are reported before anything is changed, all in one
//! message (`refusal.rs`). The message describes how to open the store without the missing parts.
//!
//! Path after a crash: `recover.rs` calls this module first, then reads the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, RealDisk, exists};
use crate::driver::{Driver, Table};
use crate::journal::format::{Header, Older, file_path, lost_name, named_generation};
use crate::journal::{self, Found, Front, Lack};
use crate::keys::{ChunkKey, Journals};
use crate::refusal::Refusal;
use crate::upkeep::row_sequence;
use crate::{Error, ErrorKind, Result};

/// Name of an empty file in the journal's directory. The file permits opening a store that lacks its identity, or all data
/// that was flushed.
const IDENTITY_LOST: &str = "identity.lost";

#[derive(Debug, Default)]
pub struct Keys {
    pub generations: BTreeSet<u64>,
    /// The highest sequence number of a row that a merge wrote.
    pub last_sequence: u64,
}

impl Keys {
    /// Reads the keys if the driver can list them without values. Otherwise returns no generations and 0.
    pub async fn read(driver: &dyn Driver) -> Result<Self> {
        let mut keys = Self::default();
        let mut each = |_: &[u8], clustering: &[u8]| {
            // A key that cannot be decoded does not name a chunk of this store.
            let Ok(key) = ChunkKey::decode(clustering) else { return };
            keys.generations.insert(key.generation);
            keys.last_sequence = keys.last_sequence.max(row_sequence(key.number));
        };
        driver.keys(Table::Chunks, &mut each).await?;
        Ok(keys)
    }
}

/// Files of the journal's directory and the generations in them.
pub struct Files {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The journals that can be read.
    pub journals: Vec<Found>,
    /// Journals of which nothing can be read, by generation, and the reasons.
    unusable: BTreeMap<u64, String>,
    /// The highest generation number in any file name or header.
    pub highest: u64,
    /// Journals whose header names another generation than their file name, by the generation in the file name.
    pub misnamed: BTreeMap<u64, Misnamed>,
    /// Bytes of each journal, without `misnamed` ones and without those whose creation was interrupted, which never had a record.
    lengths: BTreeMap<u64, u64>,
    headers: Vec<(Found, Header)>,
}

/// A journal under the name of another generation. It is never read or removed as the journal of that other generation.
#[derive(Clone, Copy, Debug)]
pub struct Misnamed {
    /// The generation in its header.
    pub generation: u64,
    bytes: u64,
    /// Describes all its records as missing.
    pub lack: Lack,
}

/// What to do with a journal of this generation that has the name of another generation. `right` is the name that it must have.
/// `other` is the generation in the header of the file that has the name `right` now; `None` if there is no such file.
pub fn rename_remedy(generation: u64, right: &dyn fmt::Display, other: Option<u64>) -> String {
    match other {
        None => format!("rename it to {right}"),
        Some(other) if other != generation => {
            format!("rename it to {right}, after that file has got the name of its own generation, {other}")
        }
        // A journal only grows, so the larger one has all records of both.
        Some(_) => format!(
            "{right} is of the same generation: keep the larger one of the two files under that name, and move the other \
             one out of the directory"
        ),
    }
}

/// A required journal that is missing or incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Another file or the Meta table names the journal, but it does not exist. Perhaps it was flushed, and the last rows of the
    /// driver are missing.
    Missing { generation: u64 },
    /// The journal has fewer bytes than were acknowledged.
    Short { generation: u64, found: u64, length: u64 },
    /// The generation has chunks and no journal, but only the generations up to `flushed` are complete in the driver.
    Unfinished { generation: u64, flushed: u64 },
}

impl Gap {
    pub const fn generation(self) -> u64 {
        let (Self::Missing { generation }
        | Self::Short { generation, .. }
        | Self::Unfinished { generation, .. }) = self;
        generation
    }

    pub fn what(self, path: &dyn fmt::Display) -> String {
        match self {
            // A flush puts the records of the journal, then the row that marks the generation as flushed. After these
            // puts, it removes the journal.
            Self::Missing { .. } => format!(
                "journal {path} does not exist, and chunks/ does not show that it was flushed: the file was removed, or the \
                 newest segment file lacks its end"
            ),
            Self::Short { found, length, .. } => format!("journal {path} has {found} bytes of {length}"),
            Self::Unfinished { generation, flushed } => format!(
                "chunks of generation {generation} exist, but its journal is missing and it is not marked as complete \
                 (last complete generation: {flushed})"
            ),
        }
    }
}

/// Message about a journal of a later generation next to an empty driver.
pub const EMPTIED: &str = "journals exist, but the data flushed before them is missing";

/// Whether journals of these generations prove that an empty driver has lost its data. The identity is
/// written before the first journal, so an empty driver has lost at least the identity. The journal of
/// generation 1 alone proves no other loss, because it has all records. The journal of a later generation
/// shows that generation 1 was sealed. The records of generation 1 may then have been flushed, and lost with
/// the driver's data.
pub fn prove_flush(generations: impl IntoIterator<Item = u64>) -> bool {
    generations.into_iter().any(|generation| generation > 1)
}

/// The gaps after generation `flushed`. `named` are the required journals, with the bytes that each must have. `chunks`
/// are the generations of the chunks in the driver. `lengths` are the existing journals, with their bytes.
pub fn gaps<'a>(
    flushed: u64,
    named: impl Iterator<Item = &'a Older>,
    chunks: &BTreeSet<u64>,
    lengths: &BTreeMap<u64, u64>,
) -> Vec<Gap> {
    let mut wanted: BTreeMap<u64, u64> = BTreeMap::new();
    for older in named.filter(|older| older.generation > flushed) {
        let length = wanted.entry(older.generation).or_default();
        *length = older.length.max(*length);
    }
    let gap = |(generation, length): (u64, u64)| match lengths.get(&generation) {
        None => Some(Gap::Missing { generation }),
        Some(found) if *found < length => Some(Gap::Short { generation, found: *found, length }),
        Some(_) => None,
    };
    let is_unnamed =
        |generation: &&u64| !lengths.contains_key(generation) && !wanted.contains_key(generation);
    let unfinished = chunks.range(flushed.saturating_add(1)..).filter(is_unnamed);
    let unfinished: Vec<Gap> =
        unfinished.map(|generation| Gap::Unfinished { generation: *generation, flushed }).collect();
    wanted.into_iter().filter_map(gap).chain(unfinished).collect()
}

impl Files {
    /// # Errors
    /// `Io`; `Version` when a newer version wrote a journal; `Corrupt` if another object has the name of the directory.
    pub fn read(disk: &Arc<dyn Disk>, directory: &Path) -> Result<Self> {
        let is_there = exists(&**disk, directory).map_err(|e| Error::io("list journal", directory, e))?;
        let mut files = Self {
            disk: disk.clone(),
            directory: directory.to_owned(),
            // A store that is opened read-only may have no journal directory.
            journals: if is_there { journal::list(&**disk, directory)? } else { Vec::new() },
            unusable: BTreeMap::new(),
            highest: 0,
            misnamed: BTreeMap::new(),
            lengths: BTreeMap::new(),
            headers: Vec::new(),
        };
        for place in [directory.to_owned(), directory.join(journal::QUARANTINE)] {
            let Ok(names) = disk.list(&place) else { continue };
            let names = names.into_iter().filter_map(|name| name.into_string().ok());
            files.highest = names.filter_map(|name| named_generation(&name)).fold(files.highest, u64::max);
        }
        for found in std::mem::take(&mut files.journals) {
            if let Some(why) = disk.irregular(&found.path) {
                let why = format!("journal {} cannot be read: {why}: move it away", found.path.display());
                files.unusable.insert(found.generation, why);
                continue;
            }
            match journal::read_front(&**disk, &found.path) {
                Ok((front, bytes)) => {
                    let header = front.header();
                    if let Some(header) = header.filter(|header| header.generation != found.generation) {
                        let (generation, lack) = (header.generation, Lack::of_whole(header, bytes));
                        files.misnamed.insert(found.generation, Misnamed { generation, bytes, lack });
                    } else if front != Front::Unborn {
                        files.lengths.insert(found.generation, bytes);
                    }
                    files.headers.extend(header.map(|header| (found.clone(), header.clone())));
                    files.journals.push(found);
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    files.unusable.insert(found.generation, error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        let headers = files
            .headers
            .iter()
            .flat_map(|(_, h)| h.older.iter().map(|older| older.generation).chain([h.generation]));
        files.highest = headers.fold(files.highest, u64::max);
        Ok(files)
    }

    pub fn store(&self) -> Option<u128> {
        self.headers.first().map(|(_, header)| header.store)
    }

    /// Whether an operator permitted opening the store without the missing part. Calls `permitted` with the file that permits it.
    fn is_accepted(&self, name: &str, permitted: fn(&Path)) -> bool {
        let path = self.directory.join(name);
        let accepted = exists(&*self.disk, &path).unwrap_or(false);
        if accepted {
            permitted(&path);
        }
        accepted
    }

    /// Checks every generation that is missing from the driver or only partly in it: its journal must exist in full length. The
    /// journals must belong to this store, and the name of each file must have the generation of its header. These last two
    /// conditions also apply to files with the name of a generation up to `flushed`, because a start removes such files.
    pub fn check(
        &self,
        flushed: u64,
        id: Option<u128>,
        (known, chunks): (&[Older], &BTreeSet<u64>),
        permitted: fn(&Path),
    ) -> Refusal {
        let mut refusal = Refusal::default();
        for (generation, why) in self.unusable.range(flushed.saturating_add(1)..) {
            let permission = lost_name(*generation);
            if !self.is_accepted(&permission, permitted) {
                refusal.missing(why.clone(), self.directory.join(permission));
            }
        }
        let id = id.or(self.store());
        let is_own = |header: &Header| id.is_none_or(|id| id == header.store);
        let mut lengths = self.lengths.clone();
        for (found, _) in self.headers.iter().filter(|(_, header)| !is_own(header)) {
            lengths.remove(&found.generation);
            let error = Error::invalid("journal belongs to another store").with("path", found.path.display());
            let remedy = std::io::Error::other("move it back to the directory of its store");
            refusal.fault(error.caused_by(remedy));
        }
        let own = || self.headers.iter().filter(|(_, header)| is_own(header));
        for (found, _) in own() {
            let Some(Misnamed { generation, bytes, .. }) = self.misnamed.get(&found.generation) else {
                continue;
            };
            if !self.is_accepted(&lost_name(found.generation), permitted) {
                lengths.entry(*generation).or_insert(*bytes);
                refusal.fault(self.wrong_name(found, *generation, flushed));
            }
        }
        let named = known.iter().chain(own().flat_map(|(_, header)| &header.older));
        for gap in gaps(flushed, named, chunks, &lengths) {
            let (generation, permission) = (gap.generation(), lost_name(gap.generation()));
            if !self.unusable.contains_key(&generation) && !self.is_accepted(&permission, permitted) {
                let path = file_path(&self.directory, generation);
                refusal.missing(gap.what(&path.display()), self.directory.join(permission));
            }
        }
        refusal
    }

    /// The generation of the journal with this name.
    fn generation(&self, found: &Found) -> u64 {
        self.misnamed.get(&found.generation).map_or(found.generation, |misnamed| misnamed.generation)
    }

    fn wrong_name(&self, found: &Found, generation: u64, flushed: u64) -> Error {
        let other = self.journals.iter().find(|other| other.generation == generation);
        let right = file_path(&self.directory, generation);
        let remedy = rename_remedy(generation, &right.display(), other.map(|other| self.generation(other)));
        let mut permissions = vec![found.generation];
        // If this file is moved away, the journal of its generation is missing.
        permissions.extend((generation > flushed && other.is_none()).then_some(generation));
        let files = if permissions.len() == 1 { "an empty file" } else { "the empty files" };
        let path = |generation: &u64| self.directory.join(lost_name(*generation)).display().to_string();
        let message = format!(
            "journal of generation {generation} has the name of another generation: {remedy}. To move it to {}/ and start \
             without its records, make {files} {}",
            journal::QUARANTINE,
            permissions.iter().map(path).collect::<Vec<_>>().join(" and ")
        );
        Error::invalid(message).with("path", found.path.display())
    }

    /// The identity of a store without an identity row; `None` for a new store. `forgets` means that the driver loses all
    /// data when its process ends. Adds to `refusal` that the store has data but no identity, or that it has a journal of a later
    /// generation than 1 but no data, unless an operator permitted opening the store without the missing part.
    pub fn identity(
        &self,
        journals: Option<&Journals>,
        is_empty: bool,
        forgets: bool,
        (permitted, refusal): (fn(&Path), &mut Refusal),
    ) -> Option<u128> {
        let id = journals.map(|journals| journals.store).or(self.store());
        let emptied =
            is_empty && !forgets && prove_flush(self.journals.iter().map(|found| self.generation(found)));
        if id.is_some() && !emptied {
            if !is_empty {
                tracing::error!(
                    "identity of the store was missing and is taken from the list of journals or a journal"
                );
            }
            return id;
        }
        if (emptied || !is_empty) && !self.is_accepted(IDENTITY_LOST, permitted) {
            let what = if emptied { EMPTIED } else { "store has data, but no identity" };
            refusal.missing(what.to_owned(), self.directory.join(IDENTITY_LOST));
        }
        id
    }
}

/// Finds out whether journals next to an empty driver prove that it has lost its data. A start calls this function before it
/// creates the driver's files. Otherwise a store that has lost its data would look like a new store. `directory` is the directory
/// of the journals.
///
/// # Errors
/// Like [`Files::read`].
pub fn emptied(directory: &Path) -> Result<Refusal> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let (files, mut refusal) = (Files::read(&disk, directory)?, Refusal::default());
    let id = files.identity(None, true, false, (|_| (), &mut refusal));
    if !refusal.is_empty() {
        // If an operator permits the loss, the next start checks the journals with the same result.
        refusal.merge(files.check(0, id, (&[], &BTreeSet::new()), |_| ()));
    }
    Ok(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_journal_is_reported_once() {
        let named = [Older { generation: 9, length: 100 }];
        let (chunks, lengths) = (BTreeSet::from([7, 9, 10]), BTreeMap::from([(10, 50)]));
        let found = gaps(8, named.iter(), &chunks, &lengths);
        assert_eq!(found, [Gap::Missing { generation: 9 }]);
        let found = gaps(8, [].iter(), &chunks, &lengths);
        assert_eq!(found, [Gap::Unfinished { generation: 9, flushed: 8 }]);
    }
}
