//! What does a segment file hold? By its index when it was sealed, by reading all of it when not.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tacho_store::{Error, Result};

use super::format::{
    BATCH_HEAD_BYTES, BATCH_MAGIC, Entry, HEADER_BYTES, IndexBuilder, RowRef, TRAILER_BYTES, Taken, Trailer,
    check_header, each_entry, take_batch_head, take_row,
};

/// What was found out about a file.
pub enum Loaded {
    /// The process died while it made the file.
    Empty,
    /// Sealed: `index` was handed out.
    Sealed,
    /// Never sealed, or its index is damaged.
    Scanned(Scanned),
}

/// A file that was read row by row.
pub struct Scanned {
    pub index: IndexBuilder,
    /// Where the good part ends.
    pub length: u64,
    /// Bytes behind it.
    pub torn: u64,
    /// Offsets of rows or batches that were on disk once and are damaged.
    pub damaged: Vec<u64>,
}

/// Reads a segment; hands out its rows in order.
pub fn load(path: &Path, file: &File, mut each: impl FnMut(Entry<'_>)) -> Result<Loaded> {
    let failed = |e| Error::io("read segment", path, e);
    let length = file.metadata().map_err(failed)?.len();
    let mut header = vec![0; HEADER_BYTES.min(length as usize)];
    file.read_exact_at(&mut header, 0).map_err(failed)?;
    if !check_header(&header, path)? {
        return Ok(Loaded::Empty);
    }
    if let Some(index) = read_index(file, length).map_err(failed)? {
        if each_entry(&index, |_| ()).is_some() {
            each_entry(&index, each);
            return Ok(Loaded::Sealed);
        }
        tracing::warn!(path = %path.display(), "segment index is malformed, rows are read instead");
    }
    let bytes = std::fs::read(path).map_err(failed)?;
    let scanned = scan(&bytes, &mut each);
    Ok(Loaded::Scanned(scanned))
}

/// The index of a sealed segment; `None` when there is none or its checksum is wrong.
pub fn read_index(file: &File, length: u64) -> std::io::Result<Option<Vec<u8>>> {
    let Some(at) = length.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
    let mut last = [0; TRAILER_BYTES];
    file.read_exact_at(&mut last, at)?;
    let Some(trailer) = Trailer::decode(&last, length) else { return Ok(None) };
    let mut index = vec![0; trailer.index_bytes as usize];
    file.read_exact_at(&mut index, trailer.offset.into())?;
    Ok(trailer.fits(&index, &last).then_some(index))
}

/// Goes through batches. A batch with a damaged row is torn when it is the last one: a `put` ends with a sync, so a
/// batch behind it proves that it was on disk once. Then only the row itself is lost.
fn scan(bytes: &[u8], each: &mut impl FnMut(Entry<'_>)) -> Scanned {
    let mut scanned = Scanned { index: IndexBuilder::default(), length: 0, torn: 0, damaged: Vec::new() };
    let mut at = HEADER_BYTES;
    while at < bytes.len() {
        let rows = take_batch_head(&bytes[at..])
            .and_then(|length| bytes.get(at + BATCH_HEAD_BYTES..at + BATCH_HEAD_BYTES + length));
        let Some(rows) = rows else {
            let Some(next) = next_batch(bytes, at + 1) else { break };
            scanned.damaged.push(at as u64);
            at = next;
            continue;
        };
        let (begin, end) = (at + BATCH_HEAD_BYTES, at + BATCH_HEAD_BYTES + rows.len());
        let (sound, damaged) = split_rows(rows);
        if !damaged.is_empty() && next_batch(bytes, end).is_none() {
            break;
        }
        for (offset, row) in sound {
            let entry = entry_of(&row, begin + offset);
            scanned.index.push(&entry);
            each(entry);
        }
        scanned.damaged.extend(damaged.iter().map(|offset| (begin + offset) as u64));
        at = end;
    }
    scanned.length = at as u64;
    scanned.torn = (bytes.len() - at) as u64;
    scanned
}

pub fn entry_of<'a>(row: &RowRef<'a>, offset: usize) -> Entry<'a> {
    Entry {
        action: row.action,
        table: row.table,
        partition: row.partition,
        clustering: row.clustering,
        offset: offset as u32,
        value_bytes: row.value.len() as u32,
    }
}

type Offset = usize;

/// Sound rows of a batch and the offsets of damaged ones.
fn split_rows(rows: &[u8]) -> (Vec<(Offset, RowRef<'_>)>, Vec<Offset>) {
    let (mut sound, mut damaged) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < rows.len() {
        match take_row(&rows[at..]) {
            Taken::Row(row) => {
                sound.push((at, row));
                at += row.bytes();
            }
            Taken::Damaged(bytes) => {
                damaged.push(at);
                at += bytes;
            }
            Taken::Nothing => {
                // Lengths cannot be trusted any more: the rest of the batch is lost.
                damaged.push(at);
                break;
            }
        }
    }
    (sound, damaged)
}

/// Where the next sound batch head stands.
fn next_batch(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.windows(BATCH_MAGIC.len()).position(|w| w == BATCH_MAGIC)?;
        if take_batch_head(&bytes[at..]).is_some() {
            return Some(at);
        }
        at += 1;
    }
}
