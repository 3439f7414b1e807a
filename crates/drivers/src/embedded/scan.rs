//! Where are the rows of a segment, when some of its bytes are damaged?
//!
//! Batch heads and rows have checksums of their own. Behind a damaged place reading goes on at the next sound one of either.

use super::format::{
    BATCH_HEAD_BYTES, BATCH_MAGIC, Entry, HEADER_BYTES, IndexBuilder, RowRef, Taken, take_batch_head,
    take_row,
};
use super::load::{Damage, Scanned};

/// Bytes that checksums of rows are tried on behind damaged places; a second or so. Then only batch heads are looked for:
/// values may be full of bytes that look like the heads of rows.
const TRIED_BYTES_MAX: u64 = 4 << 30;

/// Goes through the rows of a file. `ended`: everything in it was acknowledged; else a damaged batch is torn when no sound batch
/// is behind it, and all of it is left out. A `put` ends with a sync, so a batch behind another proves that the first was on
/// disk; so does the mark, a batch without rows.
pub fn scan(bytes: &[u8], ended: bool, damage: Damage, each: &mut impl FnMut(Entry<'_>)) -> Scanned {
    let mut walk = Walk { bytes, tried: 0, damage, last: (0, 0), index: IndexBuilder::default() };
    let (mut at, mut marked) = (HEADER_BYTES.min(bytes.len()), false);
    while at < bytes.len() {
        let Some((rows, end)) = walk.batch(at) else {
            if !ended && next_batch(bytes, at + 1).is_none() {
                break;
            }
            at = walk.salvage(at, each);
            continue;
        };
        let (sound, damaged) = walk.split(rows, end);
        if !damaged.is_empty() && !ended && next_batch(bytes, end).is_none() {
            break;
        }
        sound.iter().for_each(|(offset, row)| walk.found(row, *offset, each));
        damaged.iter().for_each(|(from, to)| walk.note(*from, *to));
        (at, marked) = (end, rows == end);
    }
    walk.forgive_index(at);
    let Walk { damage, index, .. } = walk;
    Scanned {
        index,
        length: at as u64,
        torn: (bytes.len() - at) as u64,
        marked,
        crc: crc32c::crc32c(&bytes[..at]),
        damage,
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    tried: u64,
    damage: Damage,
    /// The last damaged place.
    last: (Offset, Offset),
    index: IndexBuilder,
}

type Offset = usize;
/// Sound rows of a batch and where they stand, and the places of damaged ones.
type Split<'a> = (Vec<(Offset, RowRef<'a>)>, Vec<(Offset, Offset)>);

impl<'a> Walk<'a> {
    /// Where the rows of the batch at `at` begin and end, if a sound head stands there and the file is long enough.
    fn batch(&self, at: Offset) -> Option<(Offset, Offset)> {
        let rows = at + BATCH_HEAD_BYTES;
        let end = rows + take_batch_head(&self.bytes[at..])?;
        (end <= self.bytes.len()).then_some((rows, end))
    }

    /// The row at `at`, ending before `end`.
    fn row(&mut self, at: Offset, end: Offset) -> Taken<'a> {
        if self.tried > TRIED_BYTES_MAX {
            return Taken::Nothing;
        }
        let taken = take_row(&self.bytes[at..end]);
        if let Taken::Damaged(bytes) = taken {
            self.tried += bytes as u64;
        }
        taken
    }

    fn found(&mut self, row: &RowRef<'_>, offset: Offset, each: &mut impl FnMut(Entry<'_>)) {
        let entry = entry_of(row, offset);
        self.index.push(&entry);
        each(entry);
    }

    fn note(&mut self, from: Offset, to: Offset) {
        self.damage.note(from, to);
        self.last = (from, to);
    }

    /// Is the last damaged place just an index, as long as it must be for these rows? It costs no row.
    fn forgive_index(&mut self, end: Offset) {
        let index_bytes = self.index.finish(0).len();
        if self.damage.places > 0 && self.last == (end.saturating_sub(index_bytes), end) {
            self.damage.index = true;
            self.damage.places -= 1;
            self.damage.bytes -= index_bytes as u64;
        }
    }

    /// Hands out the rows behind the damaged batch head at `at`; returns where the next sound head stands, or the end.
    fn salvage(&mut self, at: Offset, each: &mut impl FnMut(Entry<'_>)) -> Offset {
        let end = self.bytes.len();
        let (mut damaged, mut next) = (at, at + 1);
        while next < end {
            if self.batch(next).is_some() {
                break;
            }
            match self.row(next, end) {
                Taken::Row(row) => {
                    if damaged < next {
                        self.note(damaged, next);
                    }
                    self.found(&row, next, each);
                    next += row.bytes();
                    damaged = next;
                }
                Taken::Damaged(_) | Taken::Nothing => next += 1,
            }
        }
        if damaged < next {
            self.note(damaged, next);
        }
        next
    }

    fn split(&mut self, rows: Offset, end: Offset) -> Split<'a> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        let mut at = rows;
        while at < end {
            let bytes = match self.row(at, end) {
                Taken::Row(row) => {
                    sound.push((at, row));
                    at += row.bytes();
                    continue;
                }
                Taken::Damaged(bytes) => bytes,
                Taken::Nothing => 1,
            };
            // Are its lengths right? Else the next sound row is looked for.
            let by_length = at + bytes;
            let fits = bytes > 1 && (by_length == end || matches!(self.row(by_length, end), Taken::Row(_)));
            let mut next = if fits { by_length } else { at + 1 };
            while next < end && !matches!(self.row(next, end), Taken::Row(_)) {
                next += 1;
            }
            damaged.push((at, next));
            at = next;
        }
        (sound, damaged)
    }
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
