//! The files of a store: one that grows, and those that are sealed. All writing happens here, one caller at a time.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tacho_store::disk::{Disk, DiskFile};
use tacho_store::{Error, Result};

use super::format::{
    BATCH_BYTES_MAX, Entry, HEADER_BYTES, IndexBuilder, KEY_BYTES_MAX, RowRef, VALUE_BYTES_MAX,
    encode_header, file_number, file_path, put_batch,
};
use super::index::Index;
use super::load::{Loaded, Scanned, entry_of, load};

/// The segment that grows.
struct Active {
    number: u32,
    path: PathBuf,
    file: Box<dyn DiskFile>,
    /// Bytes that are on disk.
    length: u64,
    index: IndexBuilder,
    /// A write failed: bytes behind `length` must be cut before the next one.
    cut: bool,
}

/// Read handles by number. A reader keeps the file alive after it was removed.
pub type Handles = BTreeMap<u32, Arc<File>>;

pub struct Segments {
    directory: PathBuf,
    disk: Arc<dyn Disk>,
    active: Option<Active>,
    next: u32,
    /// A segment is sealed when it has this many bytes.
    bytes_max: u64,
}

/// Where a written row lies.
pub struct Written {
    pub segment: u32,
    /// Offset of each row, in their order.
    pub offsets: Vec<u32>,
}

impl Segments {
    /// Opens all files of a directory and fills the index.
    pub fn open(
        directory: &Path,
        disk: Arc<dyn Disk>,
        bytes_max: u64,
        index: &mut Index,
        handles: &mut Handles,
    ) -> Result<Self> {
        let mut segments = Self { directory: directory.to_owned(), disk, active: None, next: 1, bytes_max };
        for number in segments.list()? {
            let path = file_path(directory, number);
            let file = File::open(&path).map_err(|e| Error::io("open segment", &path, e))?;
            segments.next = number + 1;
            match load(&path, &file, |entry| index.apply(number, &entry))? {
                Loaded::Empty => {
                    segments.remove(number)?;
                    continue;
                }
                Loaded::Sealed => {}
                Loaded::Scanned(scanned) => segments.resume(number, path, scanned)?,
            }
            handles.insert(number, Arc::new(file));
        }
        // Only the newest may grow: rows of an older one would be overruled by it after a restart.
        if segments.active.as_ref().is_some_and(|active| active.number + 1 != segments.next) {
            segments.retire();
        }
        Ok(segments)
    }

    /// Seals the growing segment, or, where the disk does not let it, leaves it as it is: it can be read without
    /// an index.
    fn retire(&mut self) {
        if let Err(error) = self.seal() {
            tracing::warn!(%error, "segment stays without an index");
            self.active = None;
        }
    }

    fn list(&self) -> Result<Vec<u32>> {
        let failed = |e| Error::io("list segments", &self.directory, e);
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(&self.directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            numbers.extend(name.to_str().and_then(file_number));
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Goes on writing to a file that was not sealed, behind its good part.
    fn resume(&mut self, number: u32, path: PathBuf, scanned: Scanned) -> Result<()> {
        let shown = path.display();
        if scanned.torn > 0 {
            let (offset, bytes) = (scanned.length, scanned.torn);
            tracing::warn!(path = %shown, offset, bytes, "torn end of segment cut off, good part kept");
            self.disk.cut(&path, scanned.length).map_err(|e| Error::io("cut torn segment", &path, e))?;
        }
        for offset in &scanned.damaged {
            tracing::error!(path = %shown, offset, "damaged row of segment stepped over");
        }
        // An older unsealed one is left by a seal that failed.
        self.retire();
        let file = self.disk.open(&path).map_err(|e| Error::io("open segment", &path, e))?;
        let (length, index) = (scanned.length, scanned.index);
        self.active = Some(Active { number, path, file, length, index, cut: false });
        Ok(())
    }

    /// Appends rows as one batch and syncs. After an error nothing of it is there.
    pub fn append(&mut self, rows: &[RowRef<'_>], handles: &mut Handles) -> Result<Written> {
        check(rows)?;
        let bytes: usize = rows.iter().map(RowRef::bytes).sum();
        if self.active.as_ref().is_some_and(|a| a.length + bytes as u64 > u64::from(u32::MAX)) {
            self.seal()?;
        }
        let disk = self.disk.clone();
        let active = self.active(handles)?;
        if active.cut {
            active.repair(&*disk)?;
        }
        let mut batch = Vec::with_capacity(bytes + 64);
        let mut offsets = Vec::with_capacity(rows.len());
        put_batch(&mut batch, rows.iter().copied(), |_, offset| {
            offsets.push((active.length as usize + offset) as u32)
        });
        let written = active.file.append(&batch).and_then(|()| active.file.sync());
        if let Err(error) = written {
            active.cut = true;
            let error = Error::io("write segment", &active.path, error).with("offset", active.length);
            let _ = active.repair(&*disk);
            return Err(error);
        }
        for (row, offset) in rows.iter().zip(&offsets) {
            active.index.push(&entry_of(row, *offset as usize));
        }
        active.length += batch.len() as u64;
        let (segment, full) = (active.number, active.length >= self.bytes_max);
        if full && let Err(error) = self.seal() {
            // The rows are safe; the next write tries again.
            tracing::warn!(%error, segment, "segment not sealed");
        }
        Ok(Written { segment, offsets })
    }

    fn active(&mut self, handles: &mut Handles) -> Result<&mut Active> {
        if self.active.is_none() {
            self.active = Some(self.create(handles)?);
        }
        match &mut self.active {
            Some(active) => Ok(active),
            None => Err(Error::corrupt("no active segment")),
        }
    }

    fn create(&mut self, handles: &mut Handles) -> Result<Active> {
        let number = self.next;
        let path = file_path(&self.directory, number);
        let create = || {
            let mut file = self.disk.open(&path)?;
            file.append(&encode_header(number))?;
            file.sync()?;
            self.disk.sync_directory(&self.directory)?;
            Ok((file, File::open(&path)?))
        };
        match create() {
            Ok((file, reader)) => {
                self.next += 1;
                handles.insert(number, Arc::new(reader));
                let (length, index) = (HEADER_BYTES as u64, IndexBuilder::default());
                Ok(Active { number, path, file, length, index, cut: false })
            }
            Err(error) => {
                let _ = self.disk.remove(&path);
                Err(Error::io("create segment", &path, error))
            }
        }
    }

    /// Writes index and trailer behind the rows; a segment without rows is left open.
    pub fn seal(&mut self) -> Result<()> {
        let Some(active) = self.active.as_mut().filter(|a| a.length > HEADER_BYTES as u64) else {
            return Ok(());
        };
        if active.cut {
            active.repair(&*self.disk)?;
        }
        let Ok(offset) = u32::try_from(active.length) else { return Ok(()) };
        let index = active.index.finish(offset);
        if let Err(error) = active.file.append(&index).and_then(|()| active.file.sync()) {
            active.cut = true;
            let _ = active.repair(&*self.disk);
            return Err(Error::io("seal segment", &active.path, error));
        }
        self.active = None;
        Ok(())
    }

    /// The number of the last segment that was made; 0 before the first.
    pub fn newest(&self) -> u32 {
        self.next - 1
    }

    /// The number of the segment that grows.
    pub fn growing(&self) -> Option<u32> {
        self.active.as_ref().map(|active| active.number)
    }

    pub fn remove(&self, number: u32) -> Result<()> {
        let path = file_path(&self.directory, number);
        let removed = self.disk.remove(&path).and_then(|()| self.disk.sync_directory(&self.directory));
        removed.map_err(|e| Error::io("remove segment", &path, e))
    }
}

impl Active {
    fn repair(&mut self, disk: &dyn Disk) -> Result<()> {
        disk.cut(&self.path, self.length).map_err(|e| Error::io("cut segment", &self.path, e))?;
        self.cut = false;
        Ok(())
    }
}

fn check(rows: &[RowRef<'_>]) -> Result<()> {
    let long = rows.iter().find(|row| {
        row.partition.len().max(row.clustering.len()) > KEY_BYTES_MAX || row.value.len() > VALUE_BYTES_MAX
    });
    if let Some(row) = long {
        let lengths = [row.partition.len(), row.clustering.len(), row.value.len()];
        let message =
            format!("row of {lengths:?} bytes is over {KEY_BYTES_MAX} a key or {VALUE_BYTES_MAX} a value");
        return Err(Error::invalid(message));
    }
    let bytes: usize = rows.iter().map(RowRef::bytes).sum();
    if bytes > BATCH_BYTES_MAX {
        return Err(Error::invalid(format!("put of {bytes} bytes is over {BATCH_BYTES_MAX}")));
    }
    Ok(())
}

/// What a written row means for the index.
pub fn entries<'a>(rows: &'a [RowRef<'a>], written: &'a Written) -> impl Iterator<Item = Entry<'a>> {
    rows.iter().zip(&written.offsets).map(|(row, offset)| entry_of(row, *offset as usize))
}
