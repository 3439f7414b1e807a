//! Finds the rows of a segment file, with their keys and positions. Reads the index of a sealed file. If there is no index,
//! or if it is damaged, reads the whole file.

use std::io;
use std::path::Path;

use tacho_store::disk::ReadFile;
use tacho_store::size::in_memory;
use tacho_store::{Error, Result};

use super::format::{Entry, HEADER_BYTES, TRAILER_BYTES, Trailer, WITH_ROW_BYTES_MIN, each_entry, is_header};
use super::manifest::{Known, State};
use super::scan::{Damage, Scanned, is_row, scan};

/// Result of loading a file.
pub enum Loaded {
    /// The file is shorter than a header and a batch with a row, and has neither an intact header nor an intact row, because
    /// the process died while it created the file.
    Unfinished,
    /// The file has no intact header, and no row that counts. An intact row does not count if nothing proves that it was on disk.
    /// The file is kept.
    Unknown,
    /// The file is sealed, and its index is sound.
    Sealed(Damage),
    Scanned(Scanned),
}

/// Facts about a file before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    pub number: u32,
    pub known: Option<Known>,
    /// Number of bytes to read. A growing file may have more bytes by now.
    pub length: u64,
    /// Whether the file no longer grows. Then all its bytes count as acknowledged.
    pub ended: bool,
}

/// Fills a buffer with bytes of a file, starting at an offset.
pub type ReadExactAt<'a> = &'a dyn Fn(&mut [u8], u64) -> io::Result<()>;

/// Finds the rows of a segment, and passes their entries to `each` in file order.
pub fn load(
    path: &Path,
    file: &dyn ReadFile,
    expected: Expected,
    each: impl FnMut(Entry<'_>),
) -> Result<Loaded> {
    load_from(path, &|bytes, at| file.read_exact_at(bytes, at), expected, each)
}

/// Like [`load`], but reads with the function `read`. A check passes a function that returns zeros for bad sectors.
pub fn load_from(
    path: &Path,
    read: ReadExactAt<'_>,
    expected: Expected,
    mut each: impl FnMut(Entry<'_>),
) -> Result<Loaded> {
    let Expected { number, known, length, ended } = expected;
    let failed = |e| Error::io("read segment", path, e);
    let mut header = vec![0; HEADER_BYTES.min(in_memory(length))];
    read(&mut header, 0).map_err(failed)?;
    let mut damage = Damage { header: !is_header(&header, number, path)?, ..Damage::default() };
    let end = known.filter(|known| known.state != State::Growing).map_or(length, |k| k.bytes.min(length));
    damage.excess = length - end;
    // A start refuses a directory with a short ended file, unless an operator permits it.
    damage.missing = known.map_or(0, |known| known.bytes.saturating_sub(length));
    let has_ended = ended || known.is_some_and(|known| known.state != State::Growing);
    let rows_end = match read_index(read, end).map_err(failed)? {
        Sealing::Sound(index) if each_entry(&index, |_| ()).is_some() => {
            each_entry(&index, each);
            return Ok(Loaded::Sealed(damage));
        }
        Sealing::Damaged { rows_end } => {
            // A process or the machine may have stopped while the file was sealed, so that only a part of the index is on disk.
            // The rows were synced before.
            damage.index = has_ended;
            rows_end
        }
        Sealing::Sound(_) | Sealing::Missing => {
            damage.index = known.is_some_and(|known| known.state == State::Sealed);
            end
        }
    };
    let mut bytes = vec![0; in_memory(rows_end)];
    read(&mut bytes, 0).map_err(failed)?;
    let has_header = !damage.header;
    let acknowledged = match known {
        _ if ended || rows_end < end => usize::MAX,
        known => known.map_or(0, |known| in_memory(known.bytes)),
    };
    let mut scanned = scan(&bytes, acknowledged, damage, &mut each);
    if !has_ended {
        // Without the incomplete index, the file can grow again.
        scanned.torn += end - rows_end;
    }
    if !has_header && scanned.index.is_empty() {
        // The scan may regard a row as a torn end.
        let is_too_short = length < WITH_ROW_BYTES_MIN && !(0..bytes.len()).any(|at| is_row(&bytes, at));
        return Ok(if is_too_short { Loaded::Unfinished } else { Loaded::Unknown });
    }
    Ok(Loaded::Scanned(scanned))
}

/// The bytes after the rows.
enum Sealing {
    Sound(Vec<u8>),
    /// The file has a trailer, and an index that does not match it.
    Damaged {
        rows_end: u64,
    },
    Missing,
}

fn read_index(read: ReadExactAt<'_>, end: u64) -> io::Result<Sealing> {
    let Some(at) = end.checked_sub(TRAILER_BYTES as u64) else { return Ok(Sealing::Missing) };
    let mut last = [0; TRAILER_BYTES];
    read(&mut last, at)?;
    let Some(trailer) = Trailer::decode(&last, end) else { return Ok(Sealing::Missing) };
    let mut index = vec![0; in_memory(trailer.index_bytes)];
    read(&mut index, trailer.offset.into())?;
    if trailer.fits(&index, &last) {
        return Ok(Sealing::Sound(index));
    }
    Ok(Sealing::Damaged { rows_end: trailer.offset.into() })
}

/// CRC-32C of a whole file.
pub fn checksum(file: &dyn ReadFile, length: u64) -> io::Result<u32> {
    const PART_BYTES: u64 = 1 << 20;
    let (mut crc, mut at) = (0, 0);
    let mut part = Vec::new();
    while at < length {
        let bytes = PART_BYTES.min(length - at);
        part.resize(in_memory(bytes), 0);
        file.read_exact_at(&mut part, at)?;
        crc = crc32c::crc32c_append(crc, &part);
        at += bytes;
    }
    Ok(crc)
}

#[cfg(test)]
mod tests {
    use tacho_store::Table;

    use super::*;
    use crate::embedded::format::{Action, BATCH_HEAD_BYTES, IndexBuilder, RowRef, encode_header, put_batch};
    use crate::embedded::scan::entry_of;

    /// Loads a growing file of which 24 bytes were on disk.
    fn load(bytes: &[u8]) -> Loaded {
        let known = Some(Known { state: State::Growing, bytes: 24, crc: None });
        let expected = Expected { number: 1, known, length: bytes.len() as u64, ended: false };
        let read = |into: &mut [u8], at: u64| {
            into.copy_from_slice(&bytes[at as usize..][..into.len()]);
            Ok(())
        };
        load_from(Path::new("segment"), &read, expected, |_| ()).unwrap()
    }

    #[test]
    fn a_short_file_with_an_intact_row_is_not_unfinished() {
        let row = RowRef {
            action: Action::Put,
            table: Table::Meta,
            partition: b"p",
            clustering: b"c",
            value: b"v",
        };
        let mut batch = Vec::new();
        put_batch(&mut batch, [row].into_iter(), |_, _| ());
        let row = &batch[BATCH_HEAD_BYTES..];
        for before in 0..24 {
            let bytes = [&[b'x'; 24][..before], row].concat();
            assert!(matches!(load(&bytes), Loaded::Unknown), "{before} bytes before the row");
            let damaged = [&[b'x'; 24][..before], &row[1..]].concat();
            assert!(matches!(load(&damaged), Loaded::Unfinished), "{before} bytes before a damaged row");
        }
    }

    /// The machine stopped while the file was sealed. Of the index, the trailer is on disk and another part is not.
    #[test]
    fn an_incomplete_index_of_a_growing_file_is_a_torn_end() {
        let row = |clustering| RowRef {
            action: Action::Put,
            table: Table::Meta,
            partition: b"p",
            clustering,
            value: b"v",
        };
        let mut bytes = encode_header(1).to_vec();
        let mut index = IndexBuilder::default();
        for clustering in [b"c", b"d"] {
            let at = bytes.len();
            put_batch(&mut bytes, [row(clustering)].into_iter(), |row, offset| {
                let position = u32::try_from(at + offset).unwrap();
                index.push(&entry_of(row, position));
            });
        }
        put_batch(&mut bytes, [].into_iter(), |_, _| ());
        let rows_end = bytes.len();
        bytes.extend(index.finish(u32::try_from(rows_end).unwrap()));
        assert!(matches!(load(&bytes), Loaded::Sealed(damage) if !damage.is_some()));
        bytes[rows_end + 2] ^= 1;
        let Loaded::Scanned(scanned) = load(&bytes) else { panic!("not scanned") };
        let torn = (bytes.len() - rows_end) as u64;
        assert_eq!((scanned.length, scanned.torn, scanned.doubtful), (rows_end as u64, torn, false));
        assert!(!scanned.damage.is_some() && !scanned.index.is_empty());
    }
}
