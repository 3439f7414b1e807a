//! Surveys a directory: lists its files and checks whether it is complete. Only reads; `opening.rs` acts on the result.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

use tacho_store::disk::{Disk, exists};
use tacho_store::driver::Health;
use tacho_store::{Error, Result};

use super::end::{self, End};
use super::format::{
    HEADER_BYTES, IndexBuilder, WITH_ROW_BYTES_MIN, file_name, file_number, file_path, mark,
};
use super::health::health;
use super::index::Index;
use super::load::{Expected, Loaded, load};
use super::manifest::{BACKUP, FILE, Known, LOST, Manifest, State};
use super::quarantine::{self, Missing};
use super::scan::{Damage, Scanned};
use super::segments::Handles;

/// Limit on files listed in a message.
const NAMED_MAX: usize = 10;

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
    /// Bytes of the growing segment that were on disk according to `END`. `None` if `is_accepted`.
    end: Option<End>,
    /// For each segment, the bytes that were on disk according to the manifest and `END`. Empty unless an operator has permitted
    /// that parts are missing.
    permitted: BTreeMap<u32, u64>,
}

impl Survey {
    /// Reads all segments of a directory and fills the index.
    ///
    /// # Errors
    /// `Corrupt` when files are missing, too short, or not in the manifest, or no copy of the manifest can be read; `Version`
    /// when a newer version wrote the directory; `Io` when a file cannot be read.
    pub fn read(disk: &dyn Disk, directory: &Path, index: &mut Index, handles: &mut Handles) -> Result<Self> {
        let mut found = Manifest::read(disk, directory)?;
        let end = stated_end(disk, directory);
        for (name, why) in &found.damaged {
            tracing::error!(path = %directory.join(name).display(), why, "manifest is damaged");
        }
        let present = list(disk, directory)?;
        let quarantine = quarantine::list(disk, directory)?;
        let is_accepted = exists(disk, &directory.join(LOST)).unwrap_or(false);
        let permitted = match is_accepted {
            true => lengths(found.manifest.as_ref(), end),
            false => BTreeMap::new(),
        };
        match &mut found.manifest {
            Some(manifest) if is_accepted => accept_files(directory, manifest, &present),
            Some(manifest) => check_whole(directory, manifest, &present, &quarantine)?,
            None if present.is_empty() => {}
            None => {
                if !is_accepted {
                    check_older(disk, directory, &present)?;
                }
                tracing::warn!(
                    path = %directory.display(), segments = present.len(),
                    "no manifest: it is made from the existing files, missing ones cannot be detected"
                );
            }
        }
        let mut manifest = found.manifest.unwrap_or_default();
        // The manifest lists the file as set aside, but the file exists. The move to the quarantine failed, or an operator
        // repaired the file and put it back. The file is read like a file that the manifest does not name.
        let is_aside =
            |number: &u32, known: &Known| known.state == State::SetAside && present.contains_key(number);
        manifest.files.retain(|number, known| !is_aside(number, known));
        let mut survey = Self {
            manifest,
            is_complete: found.complete && !is_accepted,
            is_accepted,
            manifest_damaged: found.damaged.into_iter().map(|(name, _)| name).collect(),
            files: Vec::new(),
            unread: Vec::new(),
            quarantine,
            end: end.filter(|_| !is_accepted),
            permitted,
        };
        let newest = last_begun(&survey.manifest, present.iter().map(|(number, bytes)| (*number, *bytes)));
        for number in present.into_keys() {
            survey.file(disk, directory, number, newest == Some(number), index, handles)?;
        }
        Ok(survey)
    }

    pub fn health(&self, disk: &dyn Disk, directory: &Path) -> Health {
        let damage =
            self.files.iter().filter_map(|(number, loaded)| Some((*number, loaded.damage()?.clone())));
        let mut damage = damage.collect();
        add_missing(&mut damage, &self.manifest, &self.quarantine);
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
        let expected =
            Expected { number, known: known.map(|known| known.with_end(number, self.end)), length, ended };
        let mut loaded = load(&path, &*file, expected, |entry| index.apply(number, &entry))?;
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
    let is_live = |number: u32| manifest.files.get(&number).is_some_and(|known| known.state.is_live());
    let missing = quarantine.iter().filter_map(|name| quarantine::missing(name));
    for Missing { number, bytes, .. } in missing.filter(|missing| is_live(missing.number)) {
        damage.entry(number).or_default().missing = bytes;
    }
}

/// Whether the manifest of a directory names a segment that is part of the store, or a segment file is long enough for a row.
///
/// # Errors
/// `Version` when a newer version wrote the manifest; `Io` when a file cannot be read.
pub fn has_segments(disk: &dyn Disk, directory: &Path) -> Result<bool> {
    if !exists(disk, directory).map_err(|e| Error::io("list segments", directory, e))? {
        return Ok(false);
    }
    let manifest = Manifest::read(disk, directory)?.manifest.unwrap_or_default();
    let with_rows = |bytes: u64| bytes >= WITH_ROW_BYTES_MIN;
    Ok(manifest.files.values().any(|known| known.state.is_live())
        || list(disk, directory)?.into_values().any(with_rows))
}

/// The existing segments and their lengths, by number.
pub fn list(disk: &dyn Disk, directory: &Path) -> Result<BTreeMap<u32, u64>> {
    let mut present = BTreeMap::new();
    for name in disk.list(directory).map_err(|e| Error::io("list segments", directory, e))? {
        let Some(number) = name.to_str().and_then(file_number) else { continue };
        let path = directory.join(&name);
        match disk.length(&path) {
            Ok(bytes) => drop(present.insert(number, bytes)),
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
    /// Length of the file, and the length that the manifest states.
    Short(u64, u64),
    /// The file has rows, but the manifest does not list it.
    Unnamed,
}

/// Files that do not match the manifest. `present` has the lengths of the existing files.
pub fn mismatches(
    manifest: &Manifest,
    present: &BTreeMap<u32, u64>,
    set_aside: &[String],
) -> Vec<(u32, Mismatch)> {
    let set_aside: BTreeSet<u32> = set_aside.iter().filter_map(|name| quarantine::number(name)).collect();
    let mut wrong = Vec::new();
    for (number, known) in manifest.files.iter().filter(|(_, known)| known.state.is_live()) {
        match present.get(number) {
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

/// Refuses a directory that lacks files or their ends, or whose files are from different times. Such a
/// directory is usually a copy that was made while a server wrote the original. A crash cannot cause such differences: the
/// driver creates a file, then lists it in the manifest, and only then writes rows to it. It removes a file only after the
/// manifest marks the file as removed.
fn check_whole(
    directory: &Path,
    manifest: &Manifest,
    present: &BTreeMap<u32, u64>,
    set_aside: &[String],
) -> Result<()> {
    let describe = |(number, mismatch): (u32, Mismatch)| match (file_name(number), mismatch) {
        (name, Mismatch::Missing) => format!("{name} is missing"),
        (name, Mismatch::Short(bytes, of)) => format!("{name} has {bytes} of {of} bytes"),
        (name, Mismatch::Unnamed) => format!("{name} is not in the manifest"),
    };
    let mut wrong: Vec<String> = mismatches(manifest, present, set_aside).into_iter().map(describe).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let more = match wrong.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    wrong.truncate(NAMED_MAX);
    let message = format!(
        "segment files do not match the manifest: {}{more}. Put the files back, or, if this directory is a copy that was made \
         while a server used the original, copy it again while no server runs. To start without the missing parts, make an \
         empty file {}",
        wrong.join(", "),
        directory.join(LOST).display()
    );
    Err(Error::corrupt(message).with("path", directory.display()))
}

/// Removes the missing or short files from the manifest, as an operator permitted.
fn accept_files(directory: &Path, manifest: &mut Manifest, present: &BTreeMap<u32, u64>) {
    let is_there =
        |number: &u32, known: &Known| present.get(number).is_some_and(|bytes| *bytes >= known.bytes);
    let wrong = |(number, known): &(&u32, &Known)| known.state.is_live() && !is_there(number, known);
    let names: Vec<String> =
        manifest.files.iter().filter(wrong).map(|(number, _)| file_name(*number)).collect();
    let path = directory.join(LOST);
    tracing::error!(path = %path.display(), ?names, "opened without the missing parts of these segments, as this file permits");
    manifest.files.retain(|number, known| !known.state.is_live() || is_there(number, known));
}

/// Checks that the directory was written by a version without a manifest. These versions wrote no marks, and later versions
/// write a mark after the header of each segment.
pub fn check_older(disk: &dyn Disk, directory: &Path, present: &BTreeMap<u32, u64>) -> Result<()> {
    for (number, _) in present.iter().filter(|(_, bytes)| **bytes >= WITH_ROW_BYTES_MIN) {
        let path = file_path(directory, *number);
        let mut found = mark();
        let read =
            disk.open_to_read(&path).and_then(|file| file.read_exact_at(&mut found, HEADER_BYTES as u64));
        read.map_err(|e| Error::io("read segment", &path, e))?;
        if found == mark() {
            let message = format!(
                "neither {FILE} nor {BACKUP} can be read. If this directory is a copy, copy all of the original again while no \
                 server runs. To start with the existing segment files, make an empty file {}",
                directory.join(LOST).display()
            );
            return Err(Error::corrupt(message).with("path", directory.display()));
        }
    }
    Ok(())
}
