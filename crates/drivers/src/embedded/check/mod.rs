//! Which bytes of a directory are damaged? Used by `tacho check` and `tacho repair`.
//!
//! Opens the existing segment files, compares them with the newest manifest, takes no lock, and keeps the files open. A server
//! may append rows, and create and remove files, at the same time; the image keeps the state of one moment. Undamaged files are
//! read row by row (`stream.rs`), damaged files with the code of a server start (`load.rs`, `scan.rs`).
//!
//! ```text
//!   Image::open -> index of all rows -> driver()     for the rows of the Series and Meta tables
//!   check_file  -> each row with its place           for tacho_store::check, which decodes the rows
//! ```

mod file;
mod names;
mod removed;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use tacho_store::check::{Finding, FindingKind, Loss, Place};
use tacho_store::disk::{self, RealDisk, exists, open_regular};
use tacho_store::driver::Health;
use tacho_store::{Error, ErrorKind, Result};

use super::end;
use super::format::{WITH_ROW_BYTES_MIN, file_path};
use super::identity::{Identities, Match, NamedBy, match_manifest};
use super::load::{Expected, Loaded};
use super::manifest::{BACKUP, FILE, Found, Known, Manifest, State};
use super::survey::{Mismatch, Present, last_begun, list, mismatches, unlike_older};
use super::{Directory, Embedded, Inner, quarantine};
use file::Opened;
use removed::Removed;

/// Limit on attempts to find the files of one manifest while a server removes files.
const ATTEMPTS_MAX: usize = 1_000;

/// The state of a directory at one moment.
pub struct Image {
    driver: Arc<Embedded>,
    files: Vec<Opened>,
    findings: Vec<Finding>,
    removed: Removed,
}

/// The existing files, open, and how they differ from the newest manifest.
struct Held {
    found: Found,
    manifest: Manifest,
    end: io::Result<end::Found>,
    files: BTreeMap<u32, (Arc<File>, u64)>,
    irregular: BTreeMap<u32, &'static str>,
    wrong: Vec<(u32, Mismatch)>,
}

impl Image {
    /// Opens a directory. An absent directory has no files. `prefix` is the directory's name in findings, with a slash. `stores`
    /// are the identities of the store according to other files. The files in `accepted` are read although they do not seem to be
    /// files of this store.
    ///
    /// # Errors
    /// `Version` when a newer version wrote the directory; `Io` when the directory cannot be listed or a file cannot be opened.
    pub fn open(
        directory: &Path,
        prefix: &str,
        stores: &BTreeSet<u128>,
        accepted: &BTreeSet<String>,
    ) -> Result<Self> {
        let names = names::Names { directory, prefix };
        if directory.exists() && !directory.is_dir() {
            let place = Place::file(prefix.trim_end_matches('/'));
            let finding = Finding::new(FindingKind::FileUnreadable, place, "it is not a directory")
                .effect("all its records are lost; the server refuses to open the directory");
            let inner = Inner::new(directory, Directory::default(), Health::default(), None);
            let driver = Arc::new(Embedded(Arc::new(inner)));
            return Ok(Self {
                driver,
                files: Vec::new(),
                findings: vec![finding],
                removed: Removed::default(),
            });
        }
        let held = hold(directory)?;
        let is_accepted = |number: u32| accepted.contains(&*names.of(number).file);
        let mut foreign = BTreeMap::new();
        loop {
            let (mut image, identities) = Self::load(&names, &held, &foreign, &is_accepted)?;
            let found = identities.foreign(stores).into_iter();
            let found: BTreeMap<u32, u128> = found.filter(|(number, _)| !is_accepted(*number)).collect();
            // The rows of a foreign file may have replaced other rows in the index, so all files are loaded again.
            if found.is_empty() || !foreign.is_empty() {
                image.removed = Removed::find(&mut image.files)?;
                return Ok(image);
            }
            foreign = found;
        }
    }

    fn load(
        names: &names::Names<'_>,
        held: &Held,
        foreign: &BTreeMap<u32, u128>,
        is_accepted: &dyn Fn(u32) -> bool,
    ) -> Result<(Self, Identities)> {
        let mut findings = names.findings(&held.manifest)?;
        findings.extend(irregular_findings(names, held));
        let Held { found, manifest, end, files: held, wrong, .. } = held;
        findings.extend(manifest_findings(names, found, held));
        findings.extend(end_finding(names, end));
        let end = end.as_ref().ok().and_then(|found| found.end);
        findings.extend(wrong.iter().map(|(number, mismatch)| names.mismatch(*number, *mismatch)));
        let (mut files, mut state, mut identities) =
            (Vec::new(), Directory::default(), Identities::default());
        let newest = newest(manifest, held);
        for (&number, (file, length)) in held {
            // A file that the manifest does not name is not part of the store. Its rows must not replace other rows.
            if wrong.contains(&(number, Mismatch::Unnamed)) && !is_accepted(number) {
                continue;
            }
            let known = known(found, manifest, number, end);
            if known.is_some_and(|known| !known.state.is_live()) {
                findings.push(Finding::new(FindingKind::Leftover, names.of(number), "segment is not needed"));
                continue;
            }
            if let Some(store) = foreign.get(&number) {
                findings.push(names.foreign(number, &format!("it belongs to another store, {store:032x}")));
                continue;
            }
            let read = |bytes: &mut [u8], at: u64| file.read_exact_at(bytes, at);
            // The load reports an error of the disk.
            let matched = match_manifest(&read, *length, number, known).unwrap_or(Match::Open);
            if let Match::Refuted(why) = &matched
                && !is_accepted(number)
            {
                findings.push(names.foreign(number, why));
                continue;
            }
            let ended = newest != Some(number) || known.is_some_and(|known| known.state != State::Growing);
            let expected = Expected { number, known, length: *length, ended };
            let path = file_path(names.directory, number);
            let mut opened = Opened::new(names.of(number).file, path, expected, file.clone());
            let mut named = NamedBy::default();
            let loaded = opened.load(|entry| {
                named.note(&entry);
                state.index.apply(number, &entry);
            });
            let (loaded, of_file) = match loaded {
                Ok(loaded) => loaded,
                Err(error) if error.kind() == ErrorKind::Version => return Err(error),
                Err(error) => {
                    findings.push(Finding::new(FindingKind::FileUnreadable, names.of(number), error));
                    continue;
                }
            };
            findings.extend(of_file);
            if let Loaded::Sealed(_) | Loaded::Scanned(_) = loaded {
                identities.add(number, matched == Match::Proven, named.store(&read));
                state.handles.insert(number, file.clone());
                files.push(opened);
            }
        }
        let inner = Inner::new(names.directory, state, Health::default(), None);
        let inner = Inner { surveyed: manifest.files.clone(), ..inner };
        let driver = Arc::new(Embedded(Arc::new(inner)));
        Ok((Self { driver, files, findings, removed: Removed::default() }, identities))
    }

    /// Takes the findings about whole files. A second call returns an empty list.
    pub fn take_findings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings)
    }

    /// A read-only driver over the image.
    pub fn driver(&self) -> Arc<Embedded> {
        self.driver.clone()
    }

    /// Numbers and lengths of the readable files, in order of number.
    pub fn files(&self) -> impl Iterator<Item = (u32, u64)> {
        self.files.iter().map(|opened| (opened.number(), opened.length()))
    }
}

/// Opens the existing files and reads the newest manifest. If a server removed a file after the manifest was read, a newer
/// manifest lists the file as removed, or does not name it any more. The next attempt reads this newer manifest. If the next
/// attempt finds the same manifest, the file is really missing.
fn hold(directory: &Path) -> Result<Held> {
    let mut last: Option<Held> = None;
    for _ in 0..ATTEMPTS_MAX {
        let held = try_hold(directory)?;
        let is_settled = |last: &Held| last.manifest.sequence == held.manifest.sequence;
        if held.wrong.is_empty() || last.as_ref().is_some_and(is_settled) {
            return Ok(held);
        }
        last = Some(held);
    }
    last.ok_or_else(|| Error::corrupt("directory changes too fast").with("path", directory.display()))
}

fn try_hold(directory: &Path) -> Result<Held> {
    let found = Manifest::read(&RealDisk, directory)?;
    let mut manifest = found.manifest.clone().unwrap_or_default();
    // `END` is read before the lengths of the files. Otherwise a server could append rows in between, and the file would seem
    // shorter than `END` states.
    let end = end::read(&RealDisk, directory);
    let mut files = BTreeMap::new();
    let is_there = exists(&RealDisk, directory).map_err(|e| Error::io("list segments", directory, e))?;
    let Present { files: numbers, mut irregular } =
        if is_there { list(&RealDisk, directory)? } else { Present::default() };
    for number in numbers.into_keys() {
        let path = file_path(directory, number);
        let opened = open_regular(&path).and_then(|file| {
            let length = file.metadata()?.len();
            Ok((Arc::new(file), length))
        });
        match opened {
            Ok(opened) => drop(files.insert(number, opened)),
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::InvalidInput].contains(&error.kind()) => {
                // If no irregular object has the name, a server removed the file.
                irregular.extend(disk::irregular(&path).map(|why| (number, why)));
            }
            Err(error) => return Err(Error::io("open segment", &path, error)),
        }
    }
    // A file that an operator put back from quarantine is read without its manifest entry, in the same way as at a start.
    let is_back = |number: &u32, state: State| state == State::SetAside && files.contains_key(number);
    manifest.files.retain(|number, known| !is_back(number, known.state));
    let lengths = files.iter().map(|(number, (_, length))| (*number, *length)).collect();
    let present = Present { files: lengths, irregular };
    let wrong = match &found.manifest {
        Some(_) => mismatches(&manifest, &present, &quarantine::list(&RealDisk, directory)?),
        None => Vec::new(),
    };
    Ok(Held { found, manifest, end, files, irregular: present.irregular, wrong })
}

/// The facts about a file. Without a manifest, only `END` states how many bytes of the growing segment were on disk.
fn known(found: &Found, manifest: &Manifest, number: u32, end: Option<end::End>) -> Option<Known> {
    match &found.manifest {
        Some(_) => manifest.files.get(&number).map(|known| known.with_end(number, end)),
        None => {
            let stated = end.filter(|end| end.number == number);
            stated.map(|end| Known { state: State::Growing, bytes: end.bytes, crc: None })
        }
    }
}

/// Number of the last file that accepted rows. It may have no index and no trailer yet.
fn newest(manifest: &Manifest, files: &BTreeMap<u32, (Arc<File>, u64)>) -> Option<u32> {
    last_begun(manifest, files.iter().map(|(number, (_, bytes))| (*number, *bytes)))
}

/// Findings about objects that have names of segments, but are no regular files. Excludes objects that the manifest names:
/// `held.wrong` has them.
fn irregular_findings(names: &names::Names<'_>, held: &Held) -> Vec<Finding> {
    let is_named = |number: &u32| held.wrong.iter().any(|(wrong, _)| wrong == number);
    let finding = |(number, why): (&u32, &&'static str)| match held.found.manifest {
        Some(_) => names.needless(&names.of(*number), why),
        None => names.mismatch(*number, Mismatch::Irregular(why)),
    };
    held.irregular.iter().filter(|(number, _)| !is_named(number)).map(finding).collect()
}

/// A finding about damage of `END`. The server appends to this file without a sync, so a power failure may damage its last bytes.
fn end_finding(names: &names::Names<'_>, end: &io::Result<end::Found>) -> Option<Finding> {
    let place = names.file(end::FILE);
    match end {
        Ok(end::Found { damaged: 0, .. }) => None,
        Ok(end::Found { damaged, .. }) => {
            let why = format!(
                "{damaged} bytes match no checksum. The file states only the length of the growing segment: if the end of \
                 that segment is missing, too, a start may not detect the loss"
            );
            Some(Finding::new(FindingKind::Unacknowledged, place, why).remedy(END_REMEDY))
        }
        Err(error) => {
            let finding = Finding::new(FindingKind::FileUnreadable, place, error).loss(Loss::Nothing);
            Some(finding.remedy(IRREGULAR_END_REMEDY))
        }
    }
}

fn manifest_findings(
    names: &names::Names<'_>,
    found: &Found,
    held: &BTreeMap<u32, (Arc<File>, u64)>,
) -> Vec<Finding> {
    let has_rows = held.values().any(|(_, bytes)| *bytes >= WITH_ROW_BYTES_MIN);
    let files = held.iter().map(|(number, (_, bytes))| (*number, *bytes)).collect();
    let present = Present { files, ..Present::default() };
    let is_older = || unlike_older(&RealDisk, names.directory, &present).is_ok_and(|why| why.is_none());
    let is_refused = found.manifest.is_none() && !is_older();
    let finding = |name: &str, why: &str| {
        let finding = Finding::new(FindingKind::ManifestDamaged, names.file(name), why);
        if is_refused { finding.remedy(NO_MANIFEST_REMEDY) } else { finding }
    };
    let mut findings: Vec<Finding> = found.damaged.iter().map(|(name, why)| finding(name, why)).collect();
    findings.extend(found.irregular.iter().map(|(name, why)| {
        let finding = finding(name, why).effect("the server refuses to open the directory");
        if is_refused { finding } else { finding.remedy(IRREGULAR_MANIFEST_REMEDY) }
    }));
    // A directory of an older version has no manifest. This is not a finding.
    let is_older =
        found.manifest.is_none() && found.damaged.is_empty() && found.irregular.is_empty() && !is_refused;
    if !has_rows || is_older {
        return findings;
    }
    for name in [FILE, BACKUP] {
        let is_missing = std::fs::symlink_metadata(names.directory.join(name)).is_err();
        if is_missing && !found.damaged.iter().any(|(damaged, _)| *damaged == name) {
            findings.push(finding(name, "it is missing"));
        }
    }
    if found.manifest.is_none() {
        let effect = match is_refused {
            true => "missing segment files cannot be detected; the server refuses to open the directory",
            false => "missing segment files cannot be detected",
        };
        findings.push(finding(FILE, "no copy can be read").effect(effect));
    }
    findings
}

const END_REMEDY: &str = "nothing: the file has no records, and the next start of the server writes it again";

const IRREGULAR_END_REMEDY: &str =
    "move it away: the file has no records, and the next start of the server writes it again";

const IRREGULAR_MANIFEST_REMEDY: &str = "move it away, then start the server: it writes both copies again";

const NO_MANIFEST_REMEDY: &str = "use tacho repair to keep the records of all segment files that exist, or restore the data \
                                  directory from a backup";
