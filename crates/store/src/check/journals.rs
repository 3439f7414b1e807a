//! Do the journals have every acknowledged record that is not flushed? Opens all journals and keeps them open, because a
//! server may flush and remove them at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::ErrorKind as IoErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::finding::{Finding, FindingKind, Loss, Place, unusable_lock};
use super::known::Known;
use crate::arrival::Arrival;
use crate::disk;
use crate::disk::{RealDisk, irregular, irregular_or_link, open_regular};
use crate::evidence::{EMPTIED, Gap, gaps, prove_flush, rename_remedy};
use crate::journal::format::{
    HEADER_BYTES, HEADERS_BYTES_MAX, Header, file_name, lost_name, named_generation,
};
use crate::journal::{self, Contents, Found, Front, Lack};
use crate::sectors::{ReadAt, Readable, read_sectors};
use crate::size::in_memory;
use crate::{Error, ErrorKind, Result};

struct Held {
    path: PathBuf,
    file: File,
    length: u64,
    front: Option<Front>,
    /// The generation in the header; in the file name if no header can be read.
    generation: u64,
    /// Why the journal is not read; `None` if it is read.
    alien: Option<Alien>,
}

/// Why a journal is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alien {
    /// Its header names another store.
    Store(u128),
    /// Both of its headers are damaged, and no other file names it.
    Unknown,
    /// Its name has another generation than its header.
    Misnamed,
}

impl Held {
    fn is_read(&self) -> bool {
        self.alien.is_none()
    }

    fn is_of_store(&self) -> bool {
        matches!(self.alien, None | Some(Alien::Misnamed))
    }

    fn has_begun(&self) -> bool {
        self.front != Some(Front::Unborn)
    }

    fn header(&self) -> Option<&Header> {
        self.front.as_ref()?.header()
    }
}

pub struct Journals {
    directory: PathBuf,
    prefix: String,
    /// The journals by the generation in their file name.
    held: BTreeMap<u64, Held>,
    /// Objects that have the name of a journal but are not files: what they are, by the generation in their name.
    irregular: BTreeMap<u64, &'static str>,
}

#[derive(Debug, Default)]
pub struct JournalChecked {
    pub findings: Vec<Finding>,
    pub bytes: u64,
    pub batches: u64,
    /// Numbers of samples, entries and completed calls in the batches.
    pub records: [u64; 3],
}

impl Journals {
    /// Opens the journals of a directory. The directory may be absent. `prefix` is the directory's name in findings, with
    /// a slash.
    pub fn hold(directory: &Path, prefix: &str) -> Result<Self> {
        let mut journals = Self {
            directory: directory.to_owned(),
            prefix: prefix.to_owned(),
            held: BTreeMap::new(),
            irregular: BTreeMap::new(),
        };
        journals.renew()?;
        Ok(journals)
    }

    /// Also opens the journals that were created since the last call, and reads the lengths and headers of all journals.
    pub fn renew(&mut self) -> Result<()> {
        let failed = |path: &Path, error| Error::io("read journal", path, error);
        if self.directory.is_dir() {
            self.irregular.clear();
            for Found { generation, path } in journal::list(&RealDisk, &self.directory)? {
                if self.held.contains_key(&generation) {
                    continue;
                }
                if let Some(why) = irregular(&path) {
                    self.irregular.insert(generation, why);
                    continue;
                }
                match open_regular(&path) {
                    Ok(file) => {
                        let held = Held { path, file, length: 0, front: None, generation, alien: None };
                        self.held.insert(generation, held);
                    }
                    // The server has flushed and removed the journal since it was listed.
                    Err(error) if error.kind() == IoErrorKind::NotFound => {}
                    Err(error) => return Err(failed(&path, error)),
                }
            }
        }
        for (named, held) in &mut self.held {
            held.length = held.file.metadata().map_err(|e| failed(&held.path, e))?.len();
            let mut bytes = vec![0; HEADERS_BYTES_MAX.min(in_memory(held.length))];
            held.front = match held.file.read_exact_at(&mut bytes, 0) {
                Ok(()) => match Front::decode(&bytes, &held.path) {
                    Ok(front) => Some(front),
                    Err(error) if error.kind() == ErrorKind::Version => return Err(error),
                    // `check` reads the records behind the damaged header later.
                    Err(_) => None,
                },
                Err(_) => None,
            };
            held.generation = held.header().map_or(*named, |header| header.generation);
        }
        Ok(())
    }

    fn headers(&self) -> impl Iterator<Item = &Header> {
        self.held.values().filter(|held| held.is_of_store()).filter_map(Held::header)
    }

    /// Determines which journals are not read, and why ([`Alien`]). A journal in `accepted` (`--accept` of `tacho repair`) is
    /// read anyway, unless another journal of its generation is read.
    pub fn identify(&mut self, known: &Known, accepted: &BTreeSet<String>) {
        self.held.values_mut().for_each(|held| held.alien = None);
        let facts = &known.facts;
        let of_facts = facts.id.or(facts.journals.as_ref().map(|journals| journals.store));
        let own = of_facts.or(self.store());
        let prefix = self.prefix.clone();
        let is_accepted = |named: u64| accepted.contains(&format!("{prefix}{}", file_name(named)));
        for (named, held) in &mut self.held {
            let store = held.header().map(|header| header.store);
            let other = store.filter(|store| own.is_some_and(|own| own != *store));
            held.alien = other.filter(|_| !is_accepted(*named)).map(Alien::Store);
        }
        let live = facts.journals.iter().flat_map(|journals| &journals.live);
        let named: BTreeSet<u64> =
            live.chain(self.headers().flat_map(|h| &h.older)).map(|older| older.generation).collect();
        for (generation, held) in &mut self.held {
            let is_nameless = matches!(held.front, Some(Front::Damaged { header: None, .. }));
            // If no fact in the driver names a store, the driver has no rows that the records of this journal could replace.
            if is_nameless && of_facts.is_some() && !named.contains(generation) && !is_accepted(*generation) {
                held.alien = Some(Alien::Unknown);
            }
        }
        // Of each generation, one file is read, because several files of it have the same records.
        let of_name = self.held.iter().filter(|(named, held)| **named == held.generation);
        let mut read: BTreeSet<u64> =
            of_name.filter(|(_, held)| held.is_read() && held.has_begun()).map(|(named, _)| *named).collect();
        for (named, held) in self.held.iter_mut().filter(|(named, held)| **named != held.generation) {
            let is_read = is_accepted(*named) && read.insert(held.generation);
            if held.is_read() && !is_read {
                held.alien = Some(Alien::Misnamed);
            }
        }
    }

    /// All generations in the names and headers of the journals, and in the names of quarantined files.
    pub fn generations(&self) -> Vec<u64> {
        let in_headers =
            self.headers().flat_map(|h| h.older.iter().map(|older| older.generation).chain([h.generation]));
        let mut all: Vec<u64> = self.held.keys().copied().chain(in_headers).collect();
        for place in [self.directory.clone(), self.directory.join(journal::QUARANTINE)] {
            let Ok(entries) = std::fs::read_dir(&place) else { continue };
            let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            all.extend(names.filter_map(|name| named_generation(&name)));
        }
        all
    }

    /// The identity of the store: the one that most readable headers have. If several identities are equally frequent, the one
    /// that the first of these journals has.
    pub fn store(&self) -> Option<u128> {
        let mut counts: BTreeMap<u128, usize> = BTreeMap::new();
        self.headers().for_each(|header| *counts.entry(header.store).or_default() += 1);
        let most = counts.values().copied().max()?;
        self.headers().map(|header| header.store).find(|store| counts.get(store) == Some(&most))
    }

    /// The generation in the file name of the journal that is read as this generation.
    fn name_of(&self, generation: u64) -> Option<u64> {
        let mut begun = self.held.iter().filter(|(_, held)| held.is_read() && held.has_begun());
        begun.find(|(_, held)| held.generation == generation).map(|(named, _)| *named)
    }

    /// The time when a generation began; `None` if the generation has no journal with a readable header.
    pub(super) fn created(&self, generation: u64) -> Option<tacho_model::Timestamp> {
        Some(self.held.get(&self.name_of(generation)?)?.header()?.created)
    }

    /// Generations of the journals that are read and may have records. A journal whose creation was interrupted has none.
    pub(super) fn begun(&self) -> impl Iterator<Item = u64> {
        let begun = self.held.values().filter(|held| held.is_read() && held.has_begun());
        begun.map(|held| held.generation)
    }

    /// The generations in the names of all journals, and their lengths.
    pub fn files(&self) -> impl Iterator<Item = (u64, u64)> {
        self.held.iter().map(|(named, held)| (*named, held.length))
    }

    /// Required journals that are missing, or that have fewer bytes than were acknowledged.
    pub fn gaps(&self, known: &Known) -> Vec<Gap> {
        let begun = self.held.values().filter(|held| held.is_read() && held.has_begun());
        let lengths = begun.map(|held| (held.generation, held.length)).collect();
        let live = known.facts.journals.iter().flat_map(|journals| &journals.live);
        let named = live.chain(self.headers().flat_map(|header| &header.older));
        let mut gaps = gaps(known.flushed(), named, &known.keys.generations, &lengths);
        // [`Self::names`] reports these.
        gaps.retain(|gap| !self.irregular.contains_key(&gap.generation()));
        gaps
    }

    /// The finding about an empty driver that has lost its data, according to the journals.
    pub fn emptied(&self, known: &Known) -> Option<Finding> {
        let own = self.held.values().filter(|held| held.is_of_store());
        let is_lost = known.is_empty() && prove_flush(own.map(|held| held.generation));
        let finding = || {
            Finding::new(FindingKind::FileMissing, Place::file("chunks"), EMPTIED)
                .effect("an unknown number of flushed records is lost; the server refuses to open the directory")
                .remedy(
                    "put the whole directory chunks/ back, restore the data directory from a backup, or use tacho repair to \
                     keep the journals",
                )
        };
        is_lost.then(finding)
    }

    fn name(&self, generation: u64) -> Arc<str> {
        format!("{}{}", self.prefix, file_name(generation)).into()
    }

    pub fn gap(&self, gap: Gap) -> Finding {
        let name = self.name(gap.generation());
        let kind = match gap {
            Gap::Short { .. } => FindingKind::FileShort,
            Gap::Missing { .. } | Gap::Unfinished { .. } => FindingKind::FileMissing,
        };
        Finding::new(kind, Place::file(name.clone()), gap.what(&name))
            .effect("its records are lost; the server refuses to open the directory")
            .remedy(JOURNAL_GAP_REMEDY)
    }

    /// Findings about names of files, about objects that are no files, and about the quarantine. `flushed` is the last flushed
    /// generation.
    pub fn names(&self, flushed: u64) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if self.directory.exists() && !self.directory.is_dir() {
            let place = Place::file(self.prefix.trim_end_matches('/'));
            let finding = Finding::new(FindingKind::FileUnreadable, place, "it is not a directory");
            return Ok(vec![finding.effect("the server does not start")]);
        }
        let lock = irregular_or_link(&self.directory.join("LOCK"));
        findings.extend(lock.map(|why| unusable_lock(Place::file(format!("{}LOCK", self.prefix)), why)));
        findings.extend(self.irregular.iter().map(|(generation, why)| {
            let finding = |kind| Finding::new(kind, Place::file(self.name(*generation)), why);
            match *generation > flushed {
                true => finding(FindingKind::FileUnreadable)
                    .effect("its records are lost; the server refuses to open the directory")
                    .remedy(JOURNAL_GAP_REMEDY),
                false => finding(FindingKind::UnknownFile),
            }
        }));
        for name in disk::names_in(&RealDisk, "list journal", &self.directory)? {
            let place = Place::file(format!("{}{name}", self.prefix));
            let is_journal = name.ends_with(".journal") && named_generation(&name).is_some();
            let is_known = is_journal || ["LOCK", journal::QUARANTINE].contains(&name.as_str());
            if name.ends_with(".lost") {
                let why = "the server opens this directory even if a part is missing";
                findings.push(Finding::new(FindingKind::Permission, place, why));
            } else if !is_known {
                findings.push(Finding::new(FindingKind::UnknownFile, place, "not a file of this store"));
            }
        }
        let quarantine = self.directory.join(journal::QUARANTINE);
        for name in disk::names_in(&RealDisk, "list journal", &quarantine)? {
            let path = quarantine.join(&name);
            let place = Place::file(format!("{}{}/{name}", self.prefix, journal::QUARANTINE));
            if journal::is_lack(&path) {
                continue;
            }
            findings.push(match named_generation(&name) {
                Some(generation) => quarantined(&path, place, generation),
                None => Finding::new(FindingKind::UnknownFile, place, "not a file of this store"),
            });
        }
        Ok(findings)
    }

    /// Reads the journal with the name of this generation completely, and calls `each` with its batches in order.
    ///
    /// # Errors
    /// `Version` if a newer version wrote the journal.
    pub fn check(&self, named: u64, known: &Known, each: impl FnMut(Arrival)) -> Result<JournalChecked> {
        let Some(held) = self.held.get(&named) else { return Ok(JournalChecked::default()) };
        self.check_from(&|bytes, at| held.file.read_at(bytes, at), (named, held), known, each)
    }

    /// Calls `each` with the batches of the journal that is read as this generation.
    ///
    /// # Errors
    /// Like [`Self::check`].
    pub(super) fn read(
        &self,
        generation: u64,
        known: &Known,
        each: impl FnMut(Arrival),
    ) -> Result<JournalChecked> {
        match self.name_of(generation) {
            Some(named) => self.check(named, known, each),
            None => Ok(JournalChecked::default()),
        }
    }

    fn check_from(
        &self,
        read: ReadAt<'_>,
        (named, held): (u64, &Held),
        known: &Known,
        mut each: impl FnMut(Arrival),
    ) -> Result<JournalChecked> {
        let mut checked = JournalChecked { bytes: held.length, ..JournalChecked::default() };
        let name = self.name(named);
        let whole = Place::range(&name, 0, held.length);
        if let Some(alien) = held.alien {
            checked.findings.push(self.alien(alien, (named, held), whole));
            return Ok(checked);
        }
        let mut bytes = vec![0; in_memory(held.length)];
        let readable = match read_sectors(read, &mut bytes, 0) {
            Ok(readable) => readable,
            Err(error) => {
                checked.findings.push(Finding::new(FindingKind::FileUnreadable, whole, error));
                return Ok(checked);
            }
        };
        // A server may have truncated the journal since its length was read.
        bytes.truncate(readable.length);
        let (mut batches, mut records) = (0, [0; 3]);
        let read = journal::read_bytes(&bytes, &held.path, |arrival| {
            batches += 1;
            records.iter_mut().zip(arrival.counts()).for_each(|(sum, more)| *sum += more as u64);
            each(arrival);
        });
        (checked.batches, checked.records) = (batches, records);
        match read {
            Ok(contents) => {
                checked.findings = self.contents((named, held.generation), known, &contents, &name);
                checked.findings.extend(unreadable(&readable, &contents, &name));
                Ok(checked)
            }
            Err(error) if error.kind() == ErrorKind::Version => Err(error),
            Err(error) => {
                let finding = Finding::new(FindingKind::FileUnreadable, whole, error);
                checked.findings.push(finding.effect("the server does not start"));
                Ok(checked)
            }
        }
    }

    fn contents(
        &self,
        (named, generation): (u64, u64),
        known: &Known,
        contents: &Contents,
        name: &Arc<str>,
    ) -> Vec<Finding> {
        let at = |offset: u64| Place { offset: Some(offset), ..Place::file(name.clone()) };
        let mut findings = Vec::new();
        if contents.never_begun {
            let (kind, why) = if contents.torn <= HEADER_BYTES as u64 {
                (FindingKind::Leftover, "unfinished journal without records")
            } else {
                (FindingKind::EndDoubtful, "neither a header nor a record can be read")
            };
            return vec![Finding::new(kind, Place::range(name, 0, contents.torn), why)];
        }
        for (offset, why) in &contents.damaged {
            findings.push(if contents.is_one_header(*offset) {
                let why = format!("one of two headers is damaged: {why}");
                Finding::new(FindingKind::HeaderDamaged, at(*offset), why)
            } else {
                Finding::new(FindingKind::JournalDamaged, at(*offset), why)
                    .effect("every answer warns that records may be missing")
            });
        }
        for (offset, why) in &contents.harmless {
            findings.push(Finding::new(FindingKind::FrameDamaged, at(*offset), why));
        }
        let live = known.facts.journals.iter().flat_map(|journals| &journals.live);
        let older = self.headers().flat_map(|header| &header.older).chain(live);
        let acknowledged =
            older.filter(|older| older.generation == generation).map(|older| older.length).max();
        let missing = acknowledged.unwrap_or(0).saturating_sub(contents.length).min(contents.torn);
        if contents.torn > 0 {
            let place = Place::range(name, contents.length, contents.torn);
            findings.push(if missing > 0 {
                let why = format!("{missing} acknowledged bytes at the end cannot be read");
                Finding::new(FindingKind::JournalDamaged, place, why)
            } else if contents.doubtful {
                let why = "the end cannot be read, and nothing shows that it was acknowledged";
                Finding::new(FindingKind::EndDoubtful, place, why)
            } else {
                Finding::new(FindingKind::Unacknowledged, place, "bytes of a write that has not ended")
            });
        }
        if let Some(header) = &contents.header {
            // An accepted file is read although it has a wrong name or belongs to another store.
            if header.generation != named {
                let why = format!("its header says that it is generation {}", header.generation);
                let finding = Finding::new(FindingKind::FileForeign, at(0), why).loss(Loss::Nothing);
                findings.push(finding.effect("the server does not start"));
            }
            let store = known.facts.id.or(known.facts.journals.as_ref().map(|journals| journals.store));
            if store.is_some_and(|store| store != header.store) {
                let why = format!("it belongs to another store, {:032x}", header.store);
                let finding = Finding::new(FindingKind::FileForeign, at(0), why).loss(Loss::Nothing);
                findings.push(finding.effect("the server does not start"));
            }
        }
        findings
    }

    fn alien(&self, alien: Alien, (named, held): (u64, &Held), place: Place) -> Finding {
        let finding = |why: &str| Finding::new(FindingKind::FileForeign, place.clone(), why);
        match alien {
            Alien::Store(store) => finding(&format!("it belongs to another store, {store:032x}"))
                .effect("its records are not read; the server does not start")
                .remedy(ALIEN_REMEDY),
            Alien::Unknown => {
                finding("both of its headers are damaged, and no other file names it: its store is unknown")
                    .effect("a repair does not read its records")
                    .remedy(UNKNOWN_REMEDY)
            }
            Alien::Misnamed => {
                let generation = held.generation;
                let other = self.held.get(&generation).map(|other| other.generation);
                let remedy = rename_remedy(generation, &self.name(generation), other);
                let is_permitted = self.directory.join(lost_name(named)).exists();
                let finding = finding(&format!("its header says that it is generation {generation}"));
                let finding = finding.effect(match is_permitted {
                    true => "its records are not read; the next start of the server moves it to journal/quarantine/",
                    false => "its records are not read; the server does not start",
                });
                // If the right file exists, a repair reads that one.
                match other {
                    Some(other) if other == generation => finding.remedy(remedy),
                    _ => finding.remedy(format!("{remedy}; {OMITTED_BY_REPAIR}")),
                }
            }
        }
    }
}

const OMITTED_BY_REPAIR: &str = "tacho repair excludes it unless --accept names it";

const ALIEN_REMEDY: &str =
    "move it back to the directory of its store; tacho repair excludes it unless --accept names it";

const UNKNOWN_REMEDY: &str = "if it is a journal of this store, start the server, or name it with --accept of tacho repair; else \
                              move it away";

/// Does not advise to copy only the journal from a backup. In an earlier backup the file is shorter, and a later backup may lack
/// the file.
const JOURNAL_GAP_REMEDY: &str = "if the whole file still exists elsewhere, put it back; else restore the data directory from a \
                                  backup, or use tacho repair to keep the rest";

/// Findings about bytes that the disk cannot read.
fn unreadable(readable: &Readable, contents: &Contents, name: &Arc<str>) -> Vec<Finding> {
    let why = readable.error.as_ref().map_or_else(String::new, ToString::to_string);
    let found = |place: &Range<u64>| {
        // Other findings report the lost records in front of `contents.length`, the end of the valid part.
        let loss = if place.start < contents.length { Loss::Nothing } else { Loss::Records };
        let place = Place::range(name, place.start, place.end - place.start);
        Finding::new(FindingKind::FileUnreadable, place, &why).loss(loss)
    };
    readable.bad.iter().map(found).collect()
}

fn quarantined(path: &Path, place: Place, generation: u64) -> Finding {
    let lack = match Lack::read(&RealDisk, path) {
        Some(lack) => Ok(lack),
        None => journal::read(&RealDisk, path, |_| {}).map(|contents| contents.lack()),
    };
    match lack.map(|lack| lack.reason(generation)) {
        Ok(None) if has_only_a_damaged_header(path) => Finding::new(
            FindingKind::Leftover,
            place,
            "kept because one of its two headers is damaged; none of its records is missing",
        )
        .remedy("nothing is lost: remove the file from quarantine/"),
        Ok(None) => Finding::new(
            FindingKind::EndDoubtful,
            place,
            "kept because its end cannot be read; none of its other records is missing",
        ),
        Ok(Some(why)) => Finding::new(FindingKind::Quarantined, place, why)
            .effect("every answer warns that records may be missing"),
        Err(error) => Finding::new(FindingKind::Quarantined, place, error)
            .effect("every answer warns that records may be missing"),
    }
}

/// Whether a journal was kept only because one of its two headers is damaged.
fn has_only_a_damaged_header(path: &Path) -> bool {
    let contents = journal::read(&RealDisk, path, |_| {});
    let is_header = |contents: &Contents| contents.damaged.iter().all(|(at, _)| contents.is_one_header(*at));
    contents.is_ok_and(|contents| !contents.doubtful && !contents.damaged.is_empty() && is_header(&contents))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::memory::MemoryDriver;
    use crate::{Options, Store};
    use tacho_model::{Batch, Body, Entry, EntrySeries, Labels, ManualClock, NAME};

    const BATCHES: usize = 10;
    const BATCH_BYTES: usize = 3_000;

    /// Writes a journal whose batches have one entry each.
    async fn journal(directory: &Path) -> Known {
        let driver = Arc::new(MemoryDriver::new());
        let clock = Arc::new(ManualClock::new(0));
        let store = Store::open(driver.clone(), directory, Options::default(), clock).await.unwrap();
        let labels = Arc::new(Labels::new([(NAME, "log")]).unwrap());
        for n in 0..BATCHES {
            let text: String =
                (0..BATCH_BYTES).map(|at| char::from(b'!' + ((at * at + n) % 89) as u8)).collect();
            let entries = vec![Entry { at: n as i64, body: Body::Text(text.into()) }];
            let entries = vec![EntrySeries { labels: labels.clone(), entries }];
            store.append(Batch { entries, ..Batch::default() }, None).await.unwrap();
        }
        drop(store);
        Known::read(&*driver).await.unwrap()
    }

    fn kinds(checked: &JournalChecked) -> Vec<FindingKind> {
        checked.findings.iter().map(|finding| finding.kind).collect()
    }

    #[tokio::test]
    async fn a_bad_sector_costs_only_the_records_in_it() {
        let directory = tempfile::tempdir().unwrap();
        let known = journal(directory.path()).await;
        let journals = Journals::hold(directory.path(), "journal/").unwrap();
        let (generation, held) = journals.held.iter().next().unwrap();
        let bad = |bytes: &mut [u8], at: u64| {
            let is_bad = at < 12_288 && at + bytes.len() as u64 > 8_192;
            if is_bad { Err(io::Error::from_raw_os_error(5)) } else { held.file.read_at(bytes, at) }
        };
        let checked = journals.check_from(&bad, (*generation, held), &known, |_| ()).unwrap();
        assert!((BATCHES - 3..BATCHES).contains(&(checked.batches as usize)), "{checked:?}");
        let found = kinds(&checked);
        assert!(found.contains(&FindingKind::JournalDamaged), "{checked:?}");
        let of_disk = checked.findings.iter().find(|finding| finding.kind == FindingKind::FileUnreadable);
        let Place { offset, bytes, .. } = of_disk.unwrap().place;
        assert_eq!((offset, bytes), (Some(8_192), Some(4_096)));
    }

    #[tokio::test]
    async fn a_journal_that_a_server_truncates_is_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let known = journal(directory.path()).await;
        let journals = Journals::hold(directory.path(), "journal/").unwrap();
        let (generation, held) = journals.held.iter().next().unwrap();
        let cut = File::options().write(true).open(&held.path).unwrap();
        cut.set_len(held.length - BATCH_BYTES as u64 / 2).unwrap();
        let checked = journals.check(*generation, &known, |_| ()).unwrap();
        assert_eq!(checked.batches as usize, BATCHES - 1, "{checked:?}");
        assert!(!kinds(&checked).contains(&FindingKind::FileUnreadable), "{checked:?}");
    }
}
