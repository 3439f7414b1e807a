//! Surveys a directory: lists its files and checks whether it is complete. Only reads; `opening.rs` acts on the result.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use tacho_store::disk::{Disk, exists, list_in};
use tacho_store::driver::Health;
use tacho_store::{Error, Refusal, Result, shortened};

use super::end::{self, End};
use super::format::{
    HEADER_BYTES, IndexBuilder, WITH_ROW_BYTES_MIN, file_name, file_number, file_path, mark,
};
use super::health::health;
use super::identity::{Identities, Match, NamedBy, match_manifest};
use super::index::Index;
use super::load::{Expected, Loaded, load};
use super::manifest::{BACKUP, FILE, Found, Known, LOST, Manifest, State};
use super::quarantine::{self, Missing};
use super::scan::{Damage, Scanned};
use super::segments::Handles;

/// The objects that have names of segments.
#[derive(Debug, Default)]
pub struct Present {
    /// Lengths of the segment files.
    pub files: BTreeMap<u32, u64>,
    /// Other objects, and what they are.
    pub irregular: BTreeMap<u32, &'static str>,
}

pub struct Survey {
    /// The manifest that was read, or an empty one.
    pub manifest: Manifest,
    /// Whether both copies of the manifest exist, are intact and equal, and `is_accepted` is false.
    pub is_complete: bool,
    /// Whether an operator has permitted opening the directory without the missing files.
    pub is_accepted: bool,
    pub manifest_damaged: Vec<&'static str>,
    /// Segments that were read, ordered by number.
    pub files: Vec<(u32, Loaded)>,
    /// Segments that were not read because they are no longer needed.
    pub unread: Vec<u32>,
    pub quarantine: Vec<String>,
    /// Segments of which no file exists. Empty unless an operator has permitted that parts are missing, or a start refuses the
    /// directory.
    pub absent: Vec<Missing>,
    /// Bytes of the growing segment that were on disk according to `END`.
    end: Option<End>,
    /// Why a start refuses the directory. If there is a reason, the files were read as if an operator had permitted
    /// that parts are missing.
    pub refusal: Refusal,
    identities: Identities,
    /// Files whose bytes show that they are not the files that the manifest describes, each with the reason.
    refuted: Vec<(u32, String)>,
    /// For each segment, the bytes that were on disk according to the manifest and `END`. Empty unless an operator has permitted
    /// that parts are missing.
    permitted: BTreeMap<u32, u64>,
}

impl Survey {
    /// Reads all segments of a directory and fills the index. The caller must check the [`Survey::refusal`].
    ///
    /// # Errors
    /// `Version` when a newer version wrote the directory; `Io` when a file cannot be read.
    pub fn read(disk: &dyn Disk, directory: &Path, index: &mut Index, handles: &mut Handles) -> Result<Self> {
        let mut survey = Self::read_without(disk, directory, &BTreeMap::new(), index, handles)?;
        let foreign: BTreeMap<u32, u128> = survey.identities.foreign(&BTreeSet::new()).into_iter().collect();
        if !foreign.is_empty() {
            // Rows of a file of another store may have replaced other rows, and would be compared with the journals.
            (*index, *handles) = (Index::default(), Handles::default());
            survey = Self::read_without(disk, directory, &foreign, index, handles)?;
        }
        survey.refuse_foreign(directory, &foreign);
        Ok(survey)
    }

    /// Like [`Self::read`], but does not read the files in `foreign`, which belong to other stores, and does not refuse them.
    fn read_without(
        disk: &dyn Disk,
        directory: &Path,
        foreign: &BTreeMap<u32, u128>,
        index: &mut Index,
        handles: &mut Handles,
    ) -> Result<Self> {
        let present = list(disk, directory)?;
        let found = Manifest::read(disk, directory)?;
        let end = stated_end(disk, directory);
        for (name, why) in &found.damaged {
            tracing::error!(path = %directory.join(name).display(), why, "manifest is damaged");
        }
        let quarantine = quarantine::list(disk, directory)?;
        let is_accepted = exists(disk, &directory.join(LOST)).unwrap_or(false);
        let permitted = match is_accepted {
            true => lengths(found.manifest.as_ref(), end),
            false => BTreeMap::new(),
        };
        let refusal = refusal_of(disk, directory, &found, &present, (&quarantine, is_accepted))?;
        let mut manifest = found.manifest.unwrap_or_default();
        let absent = match is_accepted || !refusal.is_empty() {
            true => accept_files((directory, is_accepted), &mut manifest, end, &present.files, &quarantine),
            false => Vec::new(),
        };
        // The manifest lists the file as set aside, but the file exists. The move to the quarantine failed, or an operator
        // repaired the file and put it back. The file is read like a file that the manifest does not name.
        let is_aside = |number: &u32, known: &Known| {
            known.state == State::SetAside && present.files.contains_key(number)
        };
        manifest.files.retain(|number, known| !is_aside(number, known));
        let mut survey = Self {
            manifest,
            is_complete: found.complete && !is_accepted,
            is_accepted,
            manifest_damaged: found.damaged.into_iter().map(|(name, _)| name).collect(),
            files: Vec::new(),
            unread: Vec::new(),
            quarantine,
            absent,
            end,
            refusal,
            identities: Identities::default(),
            refuted: Vec::new(),
            permitted,
        };
        let lengths = present.files.iter().map(|(number, bytes)| (*number, *bytes));
        let newest = last_begun(&survey.manifest, lengths);
        for number in present.files.into_keys().filter(|number| !foreign.contains_key(number)) {
            survey.file(disk, directory, number, newest == Some(number), index, handles)?;
        }
        Ok(survey)
    }

    pub fn health(&self, disk: &dyn Disk, directory: &Path) -> Health {
        let damage =
            self.files.iter().filter_map(|(number, loaded)| Some((*number, loaded.damage()?.clone())));
        let mut damage = damage.collect();
        add_missing(&mut damage, &self.manifest, &self.quarantine);
        add_absent(&mut damage, &self.absent);
        let torn = |loaded: &Loaded| match loaded {
            Loaded::Scanned(scanned) => scanned.torn,
            _ => 0,
        };
        let torn_bytes = self.files.iter().map(|(_, loaded)| torn(loaded)).sum();
        let mut health = health(disk, directory, &damage, &self.manifest_damaged, torn_bytes);
        let unknown = self.files.iter().filter(|(_, loaded)| matches!(loaded, Loaded::Unknown));
        health.set_aside.extend(unknown.map(|(number, _)| file_name(*number)));
        health
    }

    /// Missing bytes of the files that are too short for a row, although rows of them were on disk. Empty unless an operator has
    /// permitted that parts are missing.
    pub fn unfinished(&self, disk: &dyn Disk, directory: &Path) -> Result<Vec<Missing>> {
        let mut lost = Vec::new();
        for (number, _) in self.files.iter().filter(|(_, loaded)| matches!(loaded, Loaded::Unfinished)) {
            let stated = self.permitted.get(number).copied().unwrap_or(0);
            if stated >= WITH_ROW_BYTES_MIN {
                let path = file_path(directory, *number);
                let offset = disk.length(&path).map_err(|e| Error::io("read segment", &path, e))?;
                lost.push(Missing { number: *number, offset, bytes: stated.saturating_sub(offset) });
            }
        }
        Ok(lost)
    }

    /// Adds files that are not part of this store to the refusal. If an operator has permitted that parts are missing, a file
    /// that is not the one in the manifest is quarantined instead.
    fn refuse_foreign(&mut self, directory: &Path, foreign: &BTreeMap<u32, u128>) {
        let mut wrong: Vec<String> = foreign
            .iter()
            .map(|(number, store)| {
                format!("{}: it belongs to another store, {store:032x}", file_name(*number))
            })
            .collect();
        if !self.is_accepted {
            let refuted = self.refuted.iter();
            wrong.extend(refuted.map(|(number, why)| format!("{}: {why}", file_name(*number))));
        }
        if wrong.is_empty() {
            return;
        }
        let message = format!(
            "segment files are not those of this store: {}. Put the right files back under these names (a file that has the name \
             of another one: rename it). If a file is lost, move the wrong one out of this directory, and make an empty file {} \
             to start without the lost one",
            shortened(wrong, ", "),
            directory.join(LOST).display()
        );
        self.refusal.fault(Error::corrupt(message).with("path", directory.display()));
    }

    fn file(
        &mut self,
        disk: &dyn Disk,
        directory: &Path,
        number: u32,
        is_newest: bool,
        index: &mut Index,
        handles: &mut Handles,
    ) -> Result<()> {
        let known = self.manifest.files.get(&number).copied();
        if known.is_some_and(|known| !known.state.is_live()) {
            self.unread.push(number);
            return Ok(());
        }
        let path = file_path(directory, number);
        let file = disk.open_to_read(&path).map_err(|e| Error::io("open segment", &path, e))?;
        let ended = !is_newest || known.is_some_and(|known| known.state != State::Growing);
        let length = file.length().map_err(|e| Error::io("read segment", &path, e))?;
        let known = known.map(|known| known.with_end(number, self.end));
        let read = |bytes: &mut [u8], at: u64| file.read_exact_at(bytes, at);
        // The load reports an error of the disk.
        let matched = match_manifest(&read, length, number, known).unwrap_or(Match::Open);
        if let Match::Refuted(why) = matched {
            tracing::error!(path = %path.display(), why, "not the segment file of the manifest");
            self.refuted.push((number, why));
            self.files.push((number, Loaded::Unknown));
            return Ok(());
        }
        let mut named = NamedBy::default();
        let expected = Expected { number, known, length, ended };
        let mut loaded = load(&path, &*file, expected, |entry| {
            named.note(&entry);
            index.apply(number, &entry);
        })?;
        self.identities.add(number, matched == Match::Proven, named.store(&read));
        if ended && let Loaded::Scanned(scanned) = &mut loaded {
            // Only the growing segment needs its index in memory, and there may be many other segments.
            scanned.index = IndexBuilder::default();
        }
        if let Loaded::Scanned(scanned) = &mut loaded {
            // The start cuts off the torn bytes. If the manifest or `END` states that some of them were on disk, the start
            // keeps a copy.
            let stated = self.permitted.get(&number).copied().unwrap_or(0);
            scanned.doubtful |= scanned.torn > 0 && stated > scanned.length;
        }
        if let Some(damage) = loaded.damage() {
            damage.log(&path);
        }
        if !matches!(loaded, Loaded::Unfinished | Loaded::Unknown) {
            handles.insert(number, file);
        }
        self.files.push((number, loaded));
        Ok(())
    }
}

impl Loaded {
    pub fn damage(&self) -> Option<&Damage> {
        let (Self::Sealed(damage) | Self::Scanned(Scanned { damage, .. })) = self else {
            return None;
        };
        damage.is_some().then_some(damage)
    }
}

/// The end of the growing segment according to `END`. If `END` cannot be read, a missing end is not detected.
fn stated_end(disk: &dyn Disk, directory: &Path) -> Option<End> {
    let path = directory.join(end::FILE);
    match end::read(disk, directory) {
        Ok(found) => found.end,
        Err(error) => {
            let path = path.display();
            tracing::warn!(%path, %error, "not read: if the end of the growing segment is missing, this is not detected");
            None
        }
    }
}

/// The bytes of each segment that were on disk, according to the manifest and `END`.
fn lengths(manifest: Option<&Manifest>, end: Option<End>) -> BTreeMap<u32, u64> {
    let files = manifest.into_iter().flat_map(|manifest| &manifest.files);
    let mut lengths: BTreeMap<u32, u64> = files.map(|(number, known)| (*number, known.bytes)).collect();
    if let Some(End { number, bytes }) = end {
        let length = lengths.entry(number).or_default();
        *length = bytes.max(*length);
    }
    lengths
}

/// Adds the missing ends of segments, according to the notes of earlier starts in the quarantine.
pub fn add_missing(damage: &mut BTreeMap<u32, Damage>, manifest: &Manifest, quarantine: &[String]) {
    let applies = |missing: &Missing| match manifest.files.get(&missing.number) {
        Some(known) => known.state.is_live(),
        // The whole file was missing.
        None => missing.offset == 0,
    };
    let missing = quarantine.iter().filter_map(|name| quarantine::missing(name));
    for Missing { number, bytes, .. } in missing.filter(applies) {
        damage.entry(number).or_default().missing = bytes;
    }
}

/// Adds the segments of which no file exists.
pub fn add_absent(damage: &mut BTreeMap<u32, Damage>, absent: &[Missing]) {
    for Missing { number, bytes, .. } in absent {
        damage.entry(*number).or_default().missing = *bytes;
    }
}

/// Whether the manifest of a directory names a segment that is part of the store, or a segment file is long enough for a row.
///
/// # Errors
/// `Version` when a newer version wrote the manifest; `Io` when a file cannot be read.
pub fn has_segments(disk: &dyn Disk, directory: &Path) -> Result<bool> {
    let is_there = exists(disk, directory).map_err(|e| Error::io("list segments", directory, e))?;
    // A link to a directory that is missing may lead to a disk that is not mounted.
    if !is_there && disk.irregular(directory).is_none() {
        return Ok(false);
    }
    let present = list(disk, directory)?;
    let manifest = Manifest::read(disk, directory)?.manifest.unwrap_or_default();
    let with_rows = |bytes: u64| bytes >= WITH_ROW_BYTES_MIN;
    Ok(manifest.files.values().any(|known| known.state.is_live())
        || present.files.into_values().any(with_rows))
}

/// The existing segments.
pub fn list(disk: &dyn Disk, directory: &Path) -> Result<Present> {
    let mut present = Present::default();
    for name in list_in(disk, "list segments", directory)? {
        let Some(number) = name.to_str().and_then(file_number) else { continue };
        let path = directory.join(&name);
        if let Some(why) = disk.irregular(&path) {
            present.irregular.insert(number, why);
            continue;
        }
        match disk.length(&path) {
            Ok(bytes) => drop(present.files.insert(number, bytes)),
            // A server removed the file in the meantime.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io("read segment", &path, error)),
        }
    }
    Ok(present)
}

/// Number of the last file that accepted rows: the manifest names it as growing, or it is long enough for a row. A growing file
/// may have no row yet, or may have lost it in a power failure. A later file that is too short for a row and not listed as
/// growing is ignored: the process died while it created that file.
pub fn last_begun(manifest: &Manifest, files: impl DoubleEndedIterator<Item = (u32, u64)>) -> Option<u32> {
    let is_growing = |number| manifest.files.get(&number).is_some_and(|known| known.state == State::Growing);
    let mut files = files;
    files
        .rfind(|(number, bytes)| *bytes >= WITH_ROW_BYTES_MIN || is_growing(*number))
        .map(|(number, _)| number)
}

/// A difference between a file and the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    Missing,
    /// Another object has the name of the file. The text states what it is.
    Irregular(&'static str),
    /// Length of the file, and the length that the manifest states.
    Short(u64, u64),
    /// The file has rows, but the manifest does not list it.
    Unnamed,
}

/// Files that do not match the manifest.
pub fn mismatches(
    manifest: &Manifest,
    Present { files: present, irregular }: &Present,
    set_aside: &[String],
) -> Vec<(u32, Mismatch)> {
    let set_aside: BTreeSet<u32> = set_aside.iter().filter_map(|name| quarantine::number(name)).collect();
    let mut wrong = Vec::new();
    for (number, known) in manifest.files.iter().filter(|(_, known)| known.state.is_live()) {
        match present.get(number) {
            None if irregular.contains_key(number) => {
                wrong.extend(irregular.get(number).map(|why| (*number, Mismatch::Irregular(why))));
            }
            None if set_aside.contains(number) => {}
            None => wrong.push((*number, Mismatch::Missing)),
            Some(bytes) if *bytes < known.bytes => {
                wrong.push((*number, Mismatch::Short(*bytes, known.bytes)));
            }
            Some(_) => {}
        }
    }
    let unnamed = present
        .iter()
        .filter(|(number, bytes)| !manifest.files.contains_key(number) && **bytes >= WITH_ROW_BYTES_MIN);
    wrong.extend(unnamed.map(|(number, _)| (*number, Mismatch::Unnamed)));
    wrong
}

/// The differences between the files and the manifest, as text; `None` if there are none. A directory that lacks files or
/// their ends, or whose files are from different times, is usually a copy that was made while a server wrote the original. A
/// crash cannot cause such differences: the driver creates a file, then lists it in the manifest, and only then writes rows to
/// it. It removes a file only after the manifest marks the file as removed.
fn unlike(directory: &Path, manifest: &Manifest, present: &Present, set_aside: &[String]) -> Option<String> {
    let describe = |(number, mismatch): (u32, Mismatch)| match (file_name(number), mismatch) {
        (name, Mismatch::Missing) => format!("{name} is missing"),
        (_, Mismatch::Irregular(why)) => irregular_segment(directory, number, why),
        (name, Mismatch::Short(bytes, of)) => format!("{name} has {bytes} of {of} bytes"),
        (name, Mismatch::Unnamed) => format!("{name} is not in the manifest"),
    };
    let wrong: Vec<String> = mismatches(manifest, present, set_aside).into_iter().map(describe).collect();
    let listed = || format!("segment files do not match the manifest: {}", shortened(wrong.clone(), ", "));
    (!wrong.is_empty()).then(listed)
}

/// Why a start refuses the directory, as far as this is known before the rows are read. `is_accepted` means that an operator
/// permitted missing parts.
fn refusal_of(
    disk: &dyn Disk,
    directory: &Path,
    found: &Found,
    present: &Present,
    (set_aside, is_accepted): (&[String], bool),
) -> Result<Refusal> {
    let mut refusal = Refusal::default();
    for (name, why) in &found.irregular {
        refusal.fault(irregular_manifest(directory, name, why));
    }
    let missing = match &found.manifest {
        _ if is_accepted => None,
        Some(manifest) => unlike(directory, manifest, present, set_aside),
        None => unlike_older(disk, directory, present)?,
    };
    if found.manifest.is_none() && missing.is_none() && !present.files.is_empty() {
        tracing::warn!(
            path = %directory.display(), segments = present.files.len(),
            "no manifest: it is made from the existing files, missing ones cannot be detected"
        );
    }
    if let Some(what) = missing {
        refusal.missing(what, directory.join(LOST));
    }
    Ok(refusal)
}

fn irregular_segment(directory: &Path, number: u32, why: &str) -> String {
    let path = file_path(directory, number);
    format!("{} cannot be read (path {}): {why}", file_name(number), path.display())
}

fn irregular_manifest(directory: &Path, name: &str, why: &'static str) -> Error {
    let message =
        "cannot read this copy of the manifest: move it away, the next start writes both copies again";
    let error = Error::corrupt(message).with("path", directory.join(name).display());
    error.caused_by(std::io::Error::other(why))
}

/// Removes the missing files from the manifest. Returns them, except those that are in the quarantine. Either an operator
/// permitted this (`is_accepted`), or the start is refused anyway. A short file stays in the manifest with its stated length. So
/// its missing bytes are noted, and all its intact rows are read. If no manifest can be read, `END` states the length of the
/// growing segment.
fn accept_files(
    (directory, is_accepted): (&Path, bool),
    manifest: &mut Manifest,
    end: Option<End>,
    present: &BTreeMap<u32, u64>,
    set_aside: &[String],
) -> Vec<Missing> {
    if let Some(End { number, bytes }) = end.filter(|end| end.number >= manifest.next) {
        manifest.files.entry(number).or_insert(Known { state: State::Growing, bytes, crc: None });
        manifest.next = number.saturating_add(1);
    }
    let set_aside: BTreeSet<u32> = set_aside.iter().filter_map(|name| quarantine::number(name)).collect();
    let is_absent = |number: &u32, known: &Known| known.state.is_live() && !present.contains_key(number);
    let absent = manifest.files.iter().filter(|(number, known)| is_absent(number, known));
    let noted = |(number, known): (&u32, &Known)| {
        let bytes = known.with_end(*number, end).bytes;
        Missing { number: *number, offset: 0, bytes }
    };
    let noted: Vec<Missing> = absent.filter(|(number, _)| !set_aside.contains(number)).map(noted).collect();
    manifest.files.retain(|number, known| !is_absent(number, known));
    let is_short = |(number, known): &(&u32, &Known)| {
        known.state.is_live() && present.get(number).is_some_and(|bytes| *bytes < known.bytes)
    };
    let short: Vec<String> =
        manifest.files.iter().filter(is_short).map(|(number, _)| file_name(*number)).collect();
    let missing: Vec<String> = noted.iter().map(|missing| file_name(missing.number)).collect();
    if is_accepted {
        let path = directory.join(LOST);
        tracing::error!(
            path = %path.display(), ?missing, ?short,
            "opened without the missing parts of these segments, as this file permits"
        );
    }
    noted
}

/// Why a directory without a manifest is not a complete directory of a version that wrote no manifest; `None` if it may be one.
/// These versions wrote no marks, and later versions write a mark after the header of each segment.
pub fn unlike_older(disk: &dyn Disk, directory: &Path, present: &Present) -> Result<Option<String>> {
    let irregular = present.irregular.iter().map(|(number, why)| irregular_segment(directory, *number, why));
    let mut wrong: Vec<String> = irregular.collect();
    for (number, _) in present.files.iter().filter(|(_, bytes)| **bytes >= WITH_ROW_BYTES_MIN) {
        let path = file_path(directory, *number);
        let mut found = mark();
        let read =
            disk.open_to_read(&path).and_then(|file| file.read_exact_at(&mut found, HEADER_BYTES as u64));
        read.map_err(|e| Error::io("read segment", &path, e))?;
        if found == mark() {
            wrong.insert(0, format!("neither {FILE} nor {BACKUP} can be read"));
            break;
        }
    }
    Ok((!wrong.is_empty()).then(|| shortened(wrong, ", ")))
}
