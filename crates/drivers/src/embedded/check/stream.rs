//! Reads a segment file from the beginning to the end, or to the first damage, and verifies all checksums. Holds only a part
//! of the file in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use tacho_store::size::in_memory;

use super::super::format::{
    BATCH_HEAD_BYTES, HEADER_BYTES, IndexBuilder, ROW_HEAD_BYTES, RowRef, Taken, encode_header, row_bytes,
    take_batch_head, take_row,
};
use super::super::scan::entry_of;

/// Number of bytes that are read at a time. A longer row is read in one piece.
const PART_BYTES: usize = 1 << 20;

/// The parts of a file, as offsets.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub number: u32,
    pub rows_end: u64,
    /// End of the bytes to check. In a sealed file, index and trailer are between `rows_end` and `end`.
    pub end: u64,
}

/// Result of reading a file from the beginning to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    /// All checksums match. Contains the CRC-32C of the bytes up to [`Extent::end`].
    Sound(u32),
    /// The bytes at this offset differ from the expected bytes. The rows before the offset were handed out.
    Stopped { at: u64 },
}

/// Calls `each` with every row and its offset, until the end or the first mismatch.
pub fn walk(
    file: &File,
    Extent { number, rows_end, end }: Extent,
    mut each: impl FnMut(u64, RowRef<'_>),
) -> io::Result<Walked> {
    let mut stream = Stream { file, end, held: Vec::new(), at: 0, offset: 0, crc: 0 };
    let stopped = |stream: &Stream<'_>| Ok(Walked::Stopped { at: stream.offset });
    if stream.peek(HEADER_BYTES)?.is_none_or(|header| header != encode_header(number)) {
        return stopped(&stream);
    }
    stream.pass(HEADER_BYTES);
    let mut index = IndexBuilder::default();
    while stream.offset < rows_end {
        let Some(length) = stream.peek(BATCH_HEAD_BYTES)?.and_then(take_batch_head) else {
            return stopped(&stream);
        };
        stream.pass(BATCH_HEAD_BYTES);
        let batch_end = stream.offset + length as u64;
        while stream.offset < batch_end {
            let head = stream.peek(ROW_HEAD_BYTES)?.and_then(row_bytes);
            let Some(bytes) = head.filter(|bytes| *bytes as u64 <= batch_end - stream.offset) else {
                return stopped(&stream);
            };
            let offset = stream.offset;
            let Some(Taken::Row(row)) = stream.peek(bytes)?.map(take_row) else {
                return stopped(&stream);
            };
            if end > rows_end {
                let Ok(offset) = u32::try_from(offset) else { return stopped(&stream) };
                index.push(&entry_of(&row, offset));
            }
            each(offset, row);
            stream.pass(bytes);
        }
    }
    if end > rows_end {
        let Ok(rows_end) = u32::try_from(rows_end) else { return stopped(&stream) };
        let expected = index.finish(rows_end);
        if stream.peek(expected.len())?.is_none_or(|found| found != expected) {
            return stopped(&stream);
        }
        stream.pass(expected.len());
    }
    if stream.offset == end { Ok(Walked::Sound(stream.crc)) } else { stopped(&stream) }
}

/// The part of a file that is in memory.
struct Stream<'a> {
    file: &'a File,
    end: u64,
    held: Vec<u8>,
    /// Number of processed bytes of `held`.
    at: usize,
    /// Offset in the file of the next byte to process.
    offset: u64,
    /// CRC-32C of all processed bytes.
    crc: u32,
}

impl Stream<'_> {
    /// The next bytes; `None` if fewer remain before `end`.
    fn peek(&mut self, bytes: usize) -> io::Result<Option<&[u8]>> {
        let left = self.held.len() - self.at;
        if left < bytes {
            let rest = self.end.saturating_sub(self.offset);
            if rest < bytes as u64 {
                return Ok(None);
            }
            self.held.drain(..self.at);
            self.at = 0;
            let wanted = bytes.max(PART_BYTES).min(in_memory(rest));
            self.held.resize(wanted, 0);
            self.file
                .read_exact_at(self.held.get_mut(left..).unwrap_or_default(), self.offset + left as u64)?;
        }
        Ok(self.held.get(self.at..self.at + bytes))
    }

    fn pass(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.held.len());
        let passed = self.held.get(self.at..end).unwrap_or_default();
        self.crc = crc32c::crc32c_append(self.crc, passed);
        self.offset += (end - self.at) as u64;
        self.at = end;
    }
}
