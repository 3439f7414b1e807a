//! The segment files of a store: one growing file and ended files. Only [`Segments`] writes them, for one caller at a time.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_store::ErrorKind::StorageFull;
use tacho_store::disk::{Disk, DiskFile, ReadFile, SyncPoint, exists};
use tacho_store::driver::Health;
use tacho_store::mutation::Mutation;
use tacho_store::{Error, Result};

use super::end::{self, End};
use super::format::{
    BATCH_BYTES_MAX, Entry, IndexBuilder, KEY_BYTES_MAX, RowRef, VALUE_BYTES_MAX, WITH_ROW_BYTES_MIN,
    encode_header, file_path, mark, put_batch,
};
use super::health::health;
use super::manifest::{Known, Manifest, State};
use super::scan::Damage;
use super::scan::entry_of;

/// A file that reserves disk space. Its size is one 64th of the size of a segment: 4 MiB for segments of 256 MiB. [`Segments`]
/// removes it if the disk is full during a write that helps to free space or has only rows of the Meta table. 4 MiB are enough
/// for tens of thousands of deletes.
const RESERVE: &str = "RESERVE";
const RESERVE_OF_SEGMENT: u64 = 64;
/// When rows are copied, the heads of their batches and the manifest take at most 1/`HEADS_OF_ROWS` of the bytes of the rows.
const HEADS_OF_ROWS: u64 = 16;
/// After the reserve is released, rows of the Meta table may use 1/`META_OF_RESERVE` of it, until the reserve exists again.
const META_OF_RESERVE: u64 = 4;

pub struct Active {
    pub number: u32,
    pub path: PathBuf,
    pub file: Box<dyn DiskFile>,
    /// Acknowledged bytes, including the mark after them.
    pub length: u64,
    /// Synced bytes, which survive a power failure. Excludes a mark that is not synced.
    pub synced: u64,
    /// CRC-32C of all `length` bytes.
    pub crc: u32,
    pub index: IndexBuilder,
    /// Whether a write failed. The bytes after `length` must then be cut before the next write.
    pub cut: bool,
}

/// Read handles by segment number. A reader keeps the file open after its removal.
pub type Handles = BTreeMap<u32, Arc<dyn ReadFile>>;

pub struct Segments {
    pub(super) directory: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) manifest: Manifest,
    /// Whether the manifest must be written before the next row, because its copies on disk may be out of date.
    pub(super) unwritten: bool,
    /// Copies of the manifest that were damaged when the directory was opened.
    pub(super) manifest_damaged: Vec<&'static str>,
    pub(super) active: Option<Active>,
    /// States the synced bytes of the growing segment.
    pub(super) end: end::Writer,
    pub(super) damage: BTreeMap<u32, Damage>,
    /// Bytes that were cut off when the directory was opened.
    pub(super) torn_bytes: u64,
    /// Size at which a segment is sealed, bytes.
    bytes_max: u64,
    /// While the reserve is released: bytes of it that rows of the Meta table may still use.
    released: Option<u64>,
}

/// Position of the written rows.
pub struct Written {
    pub segment: u32,
    /// Offset of each row, in the order of the rows.
    pub offsets: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Never uses the reserve.
    Put,
    /// A caller puts rows of the Meta table. They are small, and space cannot be freed without some of them. They may release
    /// the reserve, and use a part of it.
    Meta,
    /// The compaction copies rows for which there is enough space. They do not release the reserve.
    Copy,
    /// The write helps to free space, so it may use the reserve.
    Freeing,
}

impl Segments {
    pub(super) fn new(directory: &Path, disk: Arc<dyn Disk>, bytes_max: u64, manifest: Manifest) -> Self {
        Self {
            directory: directory.to_owned(),
            disk,
            manifest,
            unwritten: false,
            manifest_damaged: Vec::new(),
            active: None,
            end: end::Writer::default(),
            damage: BTreeMap::new(),
            torn_bytes: 0,
            bytes_max,
            released: None,
        }
    }

    /// Appends rows as one batch and syncs. After an error, no row of the batch is stored: bytes that reached the file are cut
    /// off immediately, or else before the next write.
    pub fn append(
        &mut self,
        rows: &[RowRef<'_>],
        purpose: Purpose,
        handles: &mut Handles,
    ) -> Result<Written> {
        check(rows)?;
        self.admit(rows.iter().map(RowRef::bytes).sum::<usize>() as u64, purpose)?;
        self.for_purpose(purpose, |segments| segments.try_append(rows, purpose, handles))
    }

    /// While the reserve is released, refuses a write that must not use it. Otherwise such writes would use up the space that
    /// deletions need.
    fn admit(&mut self, bytes: u64, purpose: Purpose) -> Result<()> {
        if self.released.is_some() {
            self.refill_reserve();
        }
        let Some(left) = &mut self.released else { return Ok(()) };
        let is_admitted = match purpose {
            Purpose::Put => false,
            Purpose::Meta => bytes <= *left,
            Purpose::Copy | Purpose::Freeing => true,
        };
        if !is_admitted {
            let error = Error::new(StorageFull, "disk is full: its last bytes are kept for deletions");
            return Err(error.with("path", self.directory.display()));
        }
        if purpose == Purpose::Meta {
            *left -= bytes;
        }
        Ok(())
    }

    /// Runs a write. If the disk is full and the purpose is `Freeing` or `Meta`, releases the reserve and retries.
    pub(super) fn for_purpose<T>(
        &mut self,
        purpose: Purpose,
        mut work: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        match work(self) {
            Err(error)
                if matches!(purpose, Purpose::Freeing | Purpose::Meta)
                    && error.kind() == StorageFull
                    && self.release_reserve() =>
            {
                work(self)
            }
            done => done,
        }
    }

    fn try_append(
        &mut self,
        rows: &[RowRef<'_>],
        purpose: Purpose,
        handles: &mut Handles,
    ) -> Result<Written> {
        let bytes: usize = rows.iter().map(RowRef::bytes).sum();
        let fits = |active: &Active| active.length + bytes as u64 + 64 <= u64::from(u32::MAX);
        if self.active.as_ref().is_some_and(|active| !fits(active)) {
            self.seal(purpose)?;
        }
        if self.unwritten && !Mutation::ManifestNotRewritten.is_on() {
            self.write_manifest(purpose)?;
        }
        let disk = self.disk.clone();
        let active = self.active(purpose, handles)?;
        if !fits(active) {
            let message = format!("segment of {} bytes cannot take {bytes} more", active.length);
            return Err(Error::corrupt(message).with("path", active.path.display()));
        }
        if active.cut {
            active.repair(&*disk)?;
        }
        let mut batch = Vec::with_capacity(bytes + 64);
        let mut offsets = Vec::with_capacity(rows.len());
        put_batch(&mut batch, rows.iter().copied(), |_, offset| {
            offsets.push(position(active.length, offset));
        });
        if Mutation::EndStatedFirst.is_on() {
            let end = End { number: active.number, bytes: active.length + batch.len() as u64 };
            self.end.append(&*disk, &self.directory, end);
        }
        let Some(active) = &mut self.active else { return Err(Error::corrupt("no active segment")) };
        let written = active.file.append(&batch).and_then(|()| active.file.sync(SyncPoint::SegmentRows));
        if let Err(error) = written {
            active.cut = true;
            let error = Error::io("write segment", &active.path, error).with("offset", active.length);
            let _ = active.repair(&*disk);
            return Err(error);
        }
        for (row, offset) in rows.iter().zip(&offsets) {
            active.index.push(&entry_of(row, *offset));
        }
        active.on_disk(&batch);
        active.synced = active.length;
        let end = End { number: active.number, bytes: active.synced };
        active.mark();
        self.end.append(&*disk, &self.directory, end);
        let (segment, full) = (active.number, active.length >= self.bytes_max);
        if full && let Err(error) = self.seal(purpose) {
            // The rows are safe. The next write tries to seal the segment again.
            tracing::warn!(%error, segment, "segment not sealed");
        }
        Ok(Written { segment, offsets })
    }

    fn active(&mut self, purpose: Purpose, handles: &mut Handles) -> Result<&mut Active> {
        if self.active.is_none() {
            self.active = Some(self.create(purpose, handles)?);
        }
        match &mut self.active {
            Some(active) => Ok(active),
            None => Err(Error::corrupt("no active segment")),
        }
    }

    /// Creates the next file. The file accepts rows when it is durable and listed in the manifest.
    fn create(&mut self, purpose: Purpose, handles: &mut Handles) -> Result<Active> {
        let number = self.manifest.next;
        let path = file_path(&self.directory, number);
        let next = number
            .checked_add(1)
            .ok_or_else(|| Error::corrupt("no segment number is left").with("path", path.display()))?;
        self.quarantine_leftover(number, &path)?;
        let begin = [encode_header(number), mark()].concat();
        let create = || {
            let mut file = self.disk.open(&path)?;
            file.append(&begin)?;
            file.sync(SyncPoint::SegmentHeader)?;
            self.disk.sync_directory(&self.directory, SyncPoint::SegmentName)?;
            Ok((file, self.disk.open_to_read(&path)?))
        };
        let (file, reader) = create().map_err(|e| {
            // The unfinished file is too short for a row. If it cannot be removed now, the next attempt removes it.
            let _ = self.disk.remove(&path);
            Error::io("create segment", &path, e)
        })?;
        let known = Known { state: State::Growing, bytes: begin.len() as u64, crc: None };
        self.manifest.files.insert(number, known);
        self.manifest.next = next;
        self.write_manifest(purpose).inspect_err(|_| {
            // One copy of the manifest may already list the file. The file is kept until both copies are written again.
            self.manifest.files.remove(&number);
            self.manifest.next = number;
            self.unwritten = true;
        })?;
        handles.insert(number, reader);
        let (length, crc) = (begin.len() as u64, crc32c::crc32c(&begin));
        Ok(Active {
            number,
            path,
            file,
            length,
            synced: length,
            crc,
            index: IndexBuilder::default(),
            cut: false,
        })
    }

    /// Clears the path of a new file. Removes an existing file if it is too short for a row, and quarantines it otherwise.
    fn quarantine_leftover(&mut self, number: u32, path: &Path) -> Result<()> {
        match self.disk.length(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Ok(bytes) if bytes >= WITH_ROW_BYTES_MIN => {
                self.set_aside(number);
                self.manifest.files.remove(&number);
                if exists(&*self.disk, path).unwrap_or(true) {
                    Err(Error::corrupt("file exists at the path of a new segment")
                        .with("path", path.display()))
                } else {
                    Ok(())
                }
            }
            _ => self.disk.remove(path).map_err(|e| Error::io("remove segment", path, e)),
        }
    }

    /// Writes index and trailer after the rows. A segment without rows stays open.
    pub fn seal(&mut self, purpose: Purpose) -> Result<()> {
        self.for_purpose(purpose, |segments| segments.try_seal(purpose))
    }

    fn try_seal(&mut self, purpose: Purpose) -> Result<()> {
        let Some(active) = self.active.as_mut().filter(|a| !a.index.is_empty()) else {
            return Ok(());
        };
        if active.cut {
            active.repair(&*self.disk)?;
        }
        let Ok(offset) = u32::try_from(active.length) else { return Ok(()) };
        let index = active.index.finish(offset);
        let written = active.file.append(&index).and_then(|()| active.file.sync(SyncPoint::SegmentIndex));
        if let Err(error) = written {
            active.cut = !Mutation::FailedSealNotCut.is_on();
            if active.cut {
                let _ = active.repair(&*self.disk);
            }
            return Err(Error::io("seal segment", &active.path, error));
        }
        active.on_disk(&index);
        let known = Known { state: State::Sealed, bytes: active.length, crc: Some(active.crc) };
        let number = active.number;
        self.manifest.files.insert(number, known);
        self.active = None;
        // If this fails, the next start recognises the sealed segment by its trailer.
        if let Err(error) = self.write_manifest(purpose) {
            tracing::warn!(%error, segment = number, "manifest not written");
        }
        Ok(())
    }

    /// Writes the manifest, including the synced length of the growing segment. Before the driver removes a segment, it copies
    /// the needed rows to the growing segment. With the length, an open detects a copy of the directory whose growing file is
    /// older than its manifest and therefore lacks these rows.
    pub(super) fn write_manifest(&mut self, purpose: Purpose) -> Result<()> {
        if let Some(active) = &self.active
            && let Some(known) = self.manifest.files.get_mut(&active.number)
        {
            known.bytes = active.synced;
        }
        self.for_purpose(purpose, |segments| segments.manifest.write(&*segments.disk, &segments.directory))?;
        self.unwritten = false;
        Ok(())
    }

    /// The number of the newest segment; 0 before the first.
    pub fn newest(&self) -> u32 {
        self.manifest.next.saturating_sub(1)
    }

    pub fn growing(&self) -> Option<u32> {
        self.active.as_ref().map(|active| active.number)
    }

    /// Whether an older file may have rows that are masked by deletes in file `number`. Quarantined files and files
    /// that could not be removed are included.
    pub fn has_older(&self, number: u32) -> bool {
        self.manifest.files.keys().any(|other| *other < number)
    }

    /// The oldest file that is quarantined or could not be removed.
    pub fn oldest_stuck(&self) -> Option<u32> {
        self.manifest.files.iter().find(|(_, known)| !known.state.is_live()).map(|(number, _)| *number)
    }

    /// Whether all rows in the file of a segment are known. Only such a segment may be removed when none of its rows is needed.
    pub fn is_accounted_for(&self, number: u32) -> bool {
        self.damage.get(&number).is_none_or(|damage| damage.places == 0 && damage.excess == 0)
    }

    /// Marks a segment in the manifest as no longer needed. After an error, the manifest in memory is unchanged.
    pub fn retire(&mut self, number: u32) -> Result<()> {
        if Mutation::SegmentNotRetired.is_on() {
            return Ok(());
        }
        let before = self.manifest.files.get(&number).copied();
        let removed = Known { state: State::Removed, bytes: 0, crc: None };
        self.manifest
            .files
            .insert(number, before.map_or(removed, |known| Known { state: State::Removed, ..known }));
        self.write_manifest(Purpose::Freeing).inspect_err(|_| {
            match before {
                Some(known) => self.manifest.files.insert(number, known),
                None => self.manifest.files.remove(&number),
            };
            self.unwritten = true;
        })
    }

    pub fn remove(&mut self, number: u32) {
        self.damage.remove(&number);
        self.unlink(number);
        self.refill_reserve();
    }

    pub const fn known(&self) -> &BTreeMap<u32, Known> {
        &self.manifest.files
    }

    /// Notes that the bytes of a segment do not match the checksum in the manifest.
    pub fn note_wrong(&mut self, number: u32) {
        self.damage.entry(number).or_default().changed = true;
    }

    /// Notes damage of a segment. Returns whether there is more damage than before.
    pub fn note_damage(&mut self, number: u32, found: Damage) -> bool {
        let known = self.damage.entry(number).or_default();
        let is_more = found.bytes > known.bytes;
        if is_more {
            found.log(&file_path(&self.directory, number));
            let Damage { changed, excess, missing, .. } = *known;
            *known = Damage { changed, excess, missing, ..found };
        }
        is_more
    }

    pub fn health(&self) -> Health {
        health(&*self.disk, &self.directory, &self.damage, &self.manifest_damaged, self.torn_bytes)
    }

    /// Releases the reserve. Returns whether there was one.
    fn release_reserve(&mut self) -> bool {
        let path = self.directory.join(RESERVE);
        let bytes = self.reserve_bytes();
        let released = self.disk.is_reserved(&path, bytes) && self.disk.remove(&path).is_ok();
        if released {
            self.released = Some(bytes / META_OF_RESERVE);
            tracing::warn!(path = %self.directory.display(), "disk is full: reserve released so that space can be freed");
        }
        released
    }

    pub(super) const fn reserve_bytes(&self) -> u64 {
        self.bytes_max / RESERVE_OF_SEGMENT
    }

    /// Whether rows of this size fit on the disk, with space for the heads of batches and the manifest.
    pub fn fits(&self, bytes: u64) -> bool {
        let with_heads = bytes.saturating_add(bytes / HEADS_OF_ROWS);
        self.disk.free_bytes(&self.directory).is_ok_and(|free| free >= with_heads)
    }

    /// Whether rows of this size fit into the space that is reserved.
    pub fn fits_reserve(&self, bytes: u64) -> bool {
        let reserve = self.reserve_bytes();
        bytes <= reserve && self.disk.is_reserved(&self.directory.join(RESERVE), reserve)
    }

    /// Creates the reserve again when there is ample space.
    pub(super) fn refill_reserve(&mut self) {
        let path = self.directory.join(RESERVE);
        let bytes = self.reserve_bytes();
        let is_ample = |free: u64| free >= 4 * bytes;
        if !self.disk.is_reserved(&path, bytes) {
            if !self.disk.free_bytes(&self.directory).is_ok_and(is_ample) {
                return;
            }
            if let Err(error) = self.disk.reserve(&path, bytes) {
                tracing::warn!(path = %path.display(), %error, "no space reserved for deletion on a full disk");
                if error.kind() == ErrorKind::StorageFull {
                    return;
                }
            }
        }
        if self.released.take().is_some() {
            tracing::info!(path = %self.directory.display(), "disk has space again: reserve made");
        }
    }
}

/// Syncs the last mark and the last record of `END`. They show the next start that all bytes before them were acknowledged.
impl Drop for Segments {
    fn drop(&mut self) {
        if let Some(active) = &mut self.active {
            let _ = active.file.sync(SyncPoint::SegmentLastMark);
        }
        self.end.sync(&*self.disk, &self.directory);
    }
}

impl Active {
    fn repair(&mut self, disk: &dyn Disk) -> Result<()> {
        if Mutation::FailedAppendNotCut.is_on() {
            self.cut = false;
            return Ok(());
        }
        let cut = disk.cut(&self.path, self.length, SyncPoint::SegmentFailedWrite);
        cut.map_err(|e| Error::io("cut segment", &self.path, e))?;
        self.cut = false;
        Ok(())
    }

    fn on_disk(&mut self, bytes: &[u8]) {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.length += bytes.len() as u64;
    }

    /// Writes a mark without a sync. It shows that all bytes before it were acknowledged.
    pub fn mark(&mut self) {
        let mark = mark();
        match self.file.append(&mark) {
            Ok(()) => self.on_disk(&mark),
            Err(_) => self.cut = !Mutation::FailedSegmentMarkNotCut.is_on(),
        }
    }
}

/// The position of a row in a segment, by its position in the batch that begins at `begin`.
#[expect(clippy::cast_possible_truncation, reason = "a segment ends before it has 4 GiB")]
fn position(begin: u64, offset: usize) -> u32 {
    let at = begin + offset as u64;
    debug_assert!(at <= u64::from(u32::MAX), "{at}");
    at as u32
}

fn check(rows: &[RowRef<'_>]) -> Result<()> {
    let long = rows.iter().find(|row| {
        row.partition.len().max(row.clustering.len()) > KEY_BYTES_MAX || row.value.len() > VALUE_BYTES_MAX
    });
    if let Some(row) = long {
        let lengths = [row.partition.len(), row.clustering.len(), row.value.len()];
        let message = format!(
            "row has {lengths:?} bytes (partition, clustering, value), at most {KEY_BYTES_MAX} are allowed for a key and \
             {VALUE_BYTES_MAX} for a value"
        );
        return Err(Error::invalid(message));
    }
    let bytes: usize = rows.iter().map(RowRef::bytes).sum();
    if bytes > BATCH_BYTES_MAX {
        return Err(Error::invalid(format!("put of {bytes} bytes is over {BATCH_BYTES_MAX}")));
    }
    Ok(())
}

pub fn entries<'a>(rows: &'a [RowRef<'a>], written: &'a Written) -> impl Iterator<Item = Entry<'a>> {
    rows.iter().zip(&written.offsets).map(|(row, offset)| entry_of(row, *offset))
}
