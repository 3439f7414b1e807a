//! Finds the rows of a segment file without its index. The file may have damaged bytes.
//!
//! Batch heads and rows have separate checksums. After a damaged place, the scan continues at the next intact batch head
//! or row.

use std::path::Path;

use tacho_store::size::length_of;

use super::format::{
    BATCH_HEAD_BYTES, BATCH_MAGIC, Entry, HEADER_BYTES, IndexBuilder, ROW_HEAD_BYTES, RowRef, Taken,
    is_row_with_wrong_length, take_batch_head, take_row,
};

/// Limit on the bytes over which the scan computes checksums without finding a row. So many bytes take about one second. Above
/// the limit, the scan searches only for batch heads. Values may be full of bytes that look like heads of rows.
const TRIED_BYTES_MAX: u64 = 4 << 30;

/// A shorter batch cannot contain a row.
const BATCH_WITH_ROW_BYTES_MIN: usize = BATCH_HEAD_BYTES + ROW_HEAD_BYTES;

pub struct Scanned {
    pub index: IndexBuilder,
    /// End of the valid part.
    pub length: u64,
    /// Number of bytes after the valid part. Nothing proves that they were acknowledged.
    pub torn: u64,
    /// Whether the torn bytes may have been acknowledged. A copy of them is then kept.
    pub doubtful: bool,
    /// Whether the valid part ends with a mark, a batch without rows. May be wrong if the valid part has damage.
    pub marked: bool,
    /// Position of the last mark of the valid part. All bytes before it were synced.
    pub proven: u64,
    /// CRC-32C of the valid part.
    pub crc: u32,
    pub damage: Damage,
    /// Start and end of each damaged place among the rows.
    pub places: Vec<(Offset, Offset)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    pub header: bool,
    pub index: bool,
    /// Whether the bytes of the file do not match the checksum in the manifest.
    pub changed: bool,
    /// Number of bytes after the end that the manifest states.
    pub excess: u64,
    /// Number of bytes that the file lacks at its end. They were on disk before the file was cut off.
    pub missing: u64,
    /// Number of damaged places among the rows, and of their bytes. A file with an intact index is not scanned, so both are 0.
    /// Damaged rows of such a file are found when they are read.
    pub places: u64,
    pub bytes: u64,
    /// Offset of the first damaged place.
    pub first: u64,
}

impl Damage {
    pub const fn is_some(&self) -> bool {
        self.header || self.index || self.changed || self.excess > 0 || self.missing > 0 || self.places > 0
    }

    pub fn note(&mut self, from: usize, to: usize) {
        if self.places == 0 {
            self.first = from as u64;
        }
        self.places += 1;
        self.bytes += (to - from) as u64;
    }

    /// Logs one line per file, because a line per damaged place would be too many lines.
    pub fn log(&self, path: &Path) {
        let Self { header, index, changed: _, excess, missing, places, bytes, first } = self;
        let path = path.display();
        tracing::error!(
            %path, header, index, excess, missing, places, bytes, first,
            "segment is damaged: its other parts are read, the file is kept"
        );
    }
}

/// Passes the rows of a file to `each`. The first `acknowledged` bytes of the file are known to have been on disk. After
/// them, the valid part ends before a damaged batch that no intact batch follows. A `put` ends with a sync, so an intact
/// batch proves that the batches before it were on disk. A mark, which is a batch without rows, proves the same.
pub fn scan(bytes: &[u8], acknowledged: usize, damage: Damage, each: &mut impl FnMut(Entry<'_>)) -> Scanned {
    scan_within(TRIED_BYTES_MAX, bytes, acknowledged, damage, each)
}

fn scan_within(
    tried_max: u64,
    bytes: &[u8],
    acknowledged: usize,
    damage: Damage,
    each: &mut impl FnMut(Entry<'_>),
) -> Scanned {
    let mut walk =
        Walk { bytes, tried: 0, tried_max, damage, places: Vec::new(), index: IndexBuilder::default() };
    let (mut at, mut marked, mut proven) = (walk.begin(), false, 0);
    while at < bytes.len() {
        let is_proven = at + BATCH_WITH_ROW_BYTES_MIN <= acknowledged;
        let Some((rows, end)) = walk.batch(at) else {
            // If the head is intact, the file ends inside this batch, so no bytes were written after the batch. Apparent
            // batches after the head are parts of values.
            let is_cut_short = take_batch_head(rest(bytes, at)).is_some();
            if !is_proven && (is_cut_short || next_batch(bytes, at + 1).is_none()) {
                break;
            }
            at = walk.salvage(at, each);
            continue;
        };
        let Split { sound, damaged, end } = walk.split(rows, end);
        if !damaged.is_empty() && !is_proven && next_batch(bytes, end).is_none() {
            break;
        }
        sound.iter().for_each(|(offset, row)| walk.found(row, *offset, each));
        damaged.iter().for_each(|(from, to)| walk.note(*from, *to));
        if rows == end {
            proven = at;
        }
        (at, marked) = (end, rows == end);
    }
    walk.count_as_index(at);
    let Walk { damage, index, places, .. } = walk;
    Scanned {
        doubtful: is_doubtful(rest(bytes, at), &index, at),
        index,
        length: at as u64,
        torn: (bytes.len() - at) as u64,
        marked,
        proven: proven as u64,
        crc: crc32c::crc32c(bytes.get(..at).unwrap_or(bytes)),
        damage,
        places,
    }
}

/// Whether the torn end at `at` may be an acknowledged batch that was damaged. The mark after the last batch is not synced, so
/// a power failure may lose it. The batch is then acknowledged, but nothing after it proves this. A batch with fewer bytes than
/// its head states was never synced.
fn is_doubtful(tail: &[u8], index: &IndexBuilder, at: Offset) -> bool {
    match take_batch_head(tail) {
        Some(length) => BATCH_HEAD_BYTES + length <= tail.len(),
        None => {
            tail.len() >= BATCH_WITH_ROW_BYTES_MIN
                && tail.iter().any(|byte| *byte != 0)
                && !u32::try_from(at).is_ok_and(|at| index.finish(at).starts_with(tail))
        }
    }
}

struct Walk<'a> {
    bytes: &'a [u8],
    /// Bytes over which checksums were computed without finding a row, and the limit on them ([`TRIED_BYTES_MAX`]).
    tried: u64,
    tried_max: u64,
    damage: Damage,
    places: Vec<(Offset, Offset)>,
    index: IndexBuilder,
}

pub type Offset = usize;

/// The bytes of a batch: intact rows with their offsets, damaged places, and the end.
struct Split<'a> {
    sound: Vec<(Offset, RowRef<'a>)>,
    damaged: Vec<(Offset, Offset)>,
    end: Offset,
}

impl<'a> Walk<'a> {
    /// The offset after the header. If the header is damaged, a batch or a row may begin in its place, and the result is then
    /// its offset.
    fn begin(&mut self) -> Offset {
        let after = HEADER_BYTES.min(self.bytes.len());
        if !self.damage.header {
            return after;
        }
        let begins = |at: &Offset| {
            take_batch_head(rest(self.bytes, *at)).is_some() || matches!(self.search(*at), Taken::Row(_))
        };
        (0..after).find(begins).unwrap_or(after)
    }

    /// Start and end of the rows of the batch at `at`. `None` if its head is damaged or the file is too short.
    fn batch(&self, at: Offset) -> Option<(Offset, Offset)> {
        let rows = at + BATCH_HEAD_BYTES;
        let end = rows + take_batch_head(rest(self.bytes, at))?;
        (end <= self.bytes.len()).then_some((rows, end))
    }

    /// The row at any offset `at`. `Nothing` if `tried` is above its limit.
    fn search(&mut self, at: Offset) -> Taken<'a> {
        if self.tried > self.tried_max {
            return Taken::Nothing;
        }
        let taken = take_row(rest(self.bytes, at));
        if let Taken::Damaged(bytes) = taken {
            self.tried += bytes as u64;
        }
        taken
    }

    fn found(&mut self, row: &RowRef<'_>, offset: Offset, each: &mut impl FnMut(Entry<'_>)) {
        // No index can name a row after 4 GiB, and the driver writes none there.
        let Ok(position) = u32::try_from(offset) else { return self.note(offset, offset + row.bytes()) };
        let entry = entry_of(row, position);
        self.index.push(&entry);
        each(entry);
    }

    fn note(&mut self, from: Offset, to: Offset) {
        self.damage.note(from, to);
        self.places.push((from, to));
    }

    /// Counts the last damaged place as a damaged index instead of damaged rows if the lengths agree: the found rows would have
    /// an index and a trailer of this length.
    fn count_as_index(&mut self, end: Offset) {
        let index_bytes = self.index.finish(0).len();
        if self.places.last() == Some(&(end.saturating_sub(index_bytes), end)) {
            self.places.pop();
            self.damage.index = true;
            self.damage.places -= 1;
            self.damage.bytes -= index_bytes as u64;
        }
    }

    /// Passes the rows after the damaged batch head at `at` to `each`. Returns the position of the next intact head, or the
    /// end.
    fn salvage(&mut self, at: Offset, each: &mut impl FnMut(Entry<'_>)) -> Offset {
        let end = self.bytes.len();
        let (mut damaged, mut next) = (at, at);
        // The position where the next row must start if only the batch head is damaged.
        let mut expected = at + BATCH_HEAD_BYTES;
        while next < end {
            if self.batch(next).is_some() {
                break;
            }
            match self.search(next) {
                Taken::Row(row) => {
                    // A row without a batch head is damage, too.
                    if damaged < next || next == at {
                        self.note(damaged, next);
                    }
                    self.found(&row, next, each);
                    next += row.bytes();
                    (damaged, expected) = (next, next);
                }
                // The bytes start directly after a row or a batch head. By the lengths in their head, they end at a row, at a
                // batch or at the end of the file. So they are a damaged row. Intact rows inside it may be parts of its value.
                Taken::Damaged(bytes) if next == expected && self.is_next(next + bytes) => {
                    next = self.end_of_damaged(next, next + bytes);
                    expected = next;
                }
                Taken::Damaged(_) | Taken::Nothing => next += 1,
            }
        }
        if damaged < next {
            self.note(damaged, next);
        }
        next
    }

    /// Whether a row or a batch starts at `at`, or the file ends at `at`.
    fn is_next(&self, at: Offset) -> bool {
        at == self.bytes.len() || self.batch(at).is_some() || is_row(self.bytes, at)
    }

    /// Splits a batch into intact rows and damaged places. If a later batch overwrote the
    /// rows of this batch, the last row may end after `end`. Such a row counts as intact.
    fn split(&mut self, rows: Offset, end: Offset) -> Split<'a> {
        let (mut sound, mut damaged) = (Vec::new(), Vec::new());
        let mut at = rows;
        while at < end {
            let bytes = match take_row(rest(self.bytes, at)) {
                Taken::Row(row) => {
                    sound.push((at, row));
                    at += row.bytes();
                    continue;
                }
                Taken::Damaged(bytes) => bytes,
                Taken::Nothing => 1,
            };
            // If the lengths of the damaged row are wrong, searches for the next intact row.
            let by_length = at + bytes;
            let fits = bytes > 1 && (by_length == end || (by_length < end && is_row(self.bytes, by_length)));
            let mut next = if fits { self.end_of_damaged(at, by_length) } else { at + 1 };
            while next < end && !matches!(self.search(next), Taken::Row(_)) {
                next += 1;
            }
            damaged.push((at, next));
            at = next;
        }
        Split { sound, damaged, end: at }
    }

    /// The end of the damaged row at `at`. By its lengths the row ends at `by_length`, where an intact row or batch starts, or
    /// the batch ends. If one of the lengths is too large, intact rows before `by_length` follow the damaged row. But such
    /// intact rows may also be parts of the damaged row's value. An intact row counts as the next row in two cases:
    /// - The intact row ends after `by_length`.
    /// - The checksum of the damaged row is correct if one of its lengths is changed so that the row ends where the intact row
    ///   begins.
    fn end_of_damaged(&mut self, at: Offset, by_length: Offset) -> Offset {
        let mut next = at + ROW_HEAD_BYTES;
        while next < by_length && self.tried <= self.tried_max {
            if let Taken::Row(row) = self.search(next) {
                self.tried += (next - at) as u64;
                if next + row.bytes() > by_length
                    || self.bytes.get(at..next).is_some_and(is_row_with_wrong_length)
                {
                    return next;
                }
            }
            next += 1;
        }
        by_length
    }
}

/// Whether an intact row starts at `at`.
pub fn is_row(bytes: &[u8], at: Offset) -> bool {
    matches!(take_row(rest(bytes, at)), Taken::Row(_))
}

/// The bytes from `at` on; none after the end.
fn rest(bytes: &[u8], at: Offset) -> &[u8] {
    bytes.get(at..).unwrap_or_default()
}

pub fn entry_of<'a>(row: &RowRef<'a>, offset: u32) -> Entry<'a> {
    Entry {
        action: row.action,
        table: row.table,
        partition: row.partition,
        clustering: row.clustering,
        offset,
        value_bytes: length_of(row.value),
    }
}

/// The position of the next intact batch head.
fn next_batch(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.windows(BATCH_MAGIC.len()).position(|w| w == BATCH_MAGIC)?;
        if take_batch_head(rest(bytes, at)).is_some() {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::format::{Action, encode_header, mark, put_batch};
    use tacho_store::Table;

    /// Bytes in which four of sixteen offsets look like the head of a row. Each of these apparent rows has at most 782 bytes.
    fn worst(bytes: usize) -> Vec<u8> {
        [0, 1]
            .repeat(bytes / 2)
            .into_iter()
            .enumerate()
            .map(|(at, b)| if at % 16 < 8 { b } else { 0 })
            .collect()
    }

    fn file(parts: &[&[u8]]) -> Vec<u8> {
        let mut bytes = [encode_header(1), mark()].concat();
        for value in parts {
            let row = RowRef {
                action: Action::Put,
                table: Table::Chunks,
                partition: b"p",
                clustering: value,
                value,
            };
            put_batch(&mut bytes, [RowRef { clustering: &value[..1], ..row }].into_iter(), |_, _| ());
            bytes.extend(mark());
        }
        bytes
    }

    #[test]
    fn bytes_that_look_like_rows_are_searched_in_bounded_time() {
        let value = worst(200_000);
        let mut bytes = file(&[b"before", &value, b"last"]);
        let at = HEADER_BYTES + BATCH_HEAD_BYTES * 3 + 14 + 1 + 1 + 6;
        // Damages the head and the row of the second batch. The next intact item is after the value of this row.
        bytes[at] ^= 1;
        bytes[at + BATCH_HEAD_BYTES] ^= 1;
        for tried_max in [0, 1_000_000, u64::MAX] {
            let mut found = Vec::new();
            let scanned = scan_within(tried_max, &bytes, 0, Damage::default(), &mut |entry| {
                found.push(entry.clustering.to_vec());
            });
            assert_eq!(found, [b"b", b"l"], "{tried_max}");
            assert_eq!((scanned.torn, scanned.damage.places), (0, 1));
            assert_eq!(scanned.damage.bytes as usize, BATCH_HEAD_BYTES + 14 + 2 + value.len());
        }
    }

    /// Scans a file in which all bytes were acknowledged. Returns the clustering of each row, and the damaged places.
    fn scanned(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<(Offset, Offset)>) {
        let mut found = Vec::new();
        let scanned = scan(bytes, bytes.len(), Damage::default(), &mut |entry| {
            found.push(entry.clustering.to_vec());
        });
        (found, scanned.places)
    }

    fn row<'a>(clustering: &'a [u8], value: &'a [u8]) -> RowRef<'a> {
        RowRef { action: Action::Put, table: Table::Chunks, partition: b"p", clustering, value }
    }

    /// Each row has 64 bytes. A flipped bit in one of its lengths makes it as long as two rows.
    #[test]
    fn a_damaged_length_hides_no_other_row() {
        let value = [7; 64 - ROW_HEAD_BYTES - 2];
        let mut whole = [encode_header(1), mark()].concat();
        let begin = whole.len();
        let mut places = Vec::new();
        let rows = [b"a", b"b", b"c"].map(|key| row(key, &value));
        put_batch(&mut whole, rows.into_iter(), |_, offset| places.push(begin + offset));
        whole.extend(mark());
        for length in [6, 8, 10] {
            for is_head_damaged in [false, true] {
                let mut bytes = whole.clone();
                bytes[places[0] + length] ^= 64;
                bytes[begin] ^= u8::from(is_head_damaged);
                let from = if is_head_damaged { begin } else { places[0] };
                assert_eq!(scanned(&bytes), (vec![b"b".to_vec(), b"c".to_vec()], vec![(from, places[1])]));
            }
        }
    }

    /// The head of a batch is intact, but its rows were overwritten by other rows.
    #[test]
    fn an_intact_row_that_ends_after_its_batch_is_read() {
        let mut bytes = [encode_header(1), mark()].concat();
        let begin = bytes.len();
        put_batch(&mut bytes, [row(b"a", b"before")].into_iter(), |_, _| ());
        bytes.truncate(begin + BATCH_HEAD_BYTES);
        put_batch(&mut bytes, [row(b"b", b"after, and longer")].into_iter(), |_, _| ());
        bytes.extend(mark());
        let head = begin + BATCH_HEAD_BYTES;
        assert_eq!(scanned(&bytes), (vec![b"b".to_vec()], vec![(head, head + BATCH_HEAD_BYTES)]));
    }

    /// A row was cut off, and rows were written after it. According to its lengths, the cut row ends inside a later row.
    #[test]
    fn an_intact_row_that_ends_after_a_damaged_one_is_read() {
        let mut bytes = [encode_header(1), mark()].concat();
        let begin = bytes.len() + BATCH_HEAD_BYTES;
        put_batch(&mut bytes, [row(b"a", &[7; 50])].into_iter(), |_, _| ());
        bytes.truncate(begin + 40);
        put_batch(&mut bytes, [row(b"b", &[8; 50])].into_iter(), |_, _| ());
        let next = begin + 40 + BATCH_HEAD_BYTES;
        assert_eq!(scanned(&bytes), (vec![b"b".to_vec()], vec![(begin, next)]));
    }

    #[test]
    fn an_intact_row_at_the_place_of_a_batch_head_is_read() {
        let mut bytes = [encode_header(1), mark()].concat();
        let begin = bytes.len();
        put_batch(&mut bytes, [row(b"a", b"value")].into_iter(), |_, _| ());
        bytes.drain(begin..begin + BATCH_HEAD_BYTES);
        bytes.extend(mark());
        assert_eq!(scanned(&bytes), (vec![b"a".to_vec()], vec![(begin, begin)]));
    }
}
