//! Finds the bytes of a file that the disk can still return, for reports and copies of damaged files. The store itself
//! never skips a bad sector when it reads.

use std::io;
use std::ops::Range;

use crate::size::in_memory;

/// System errors for a bad sector (`EIO`) and for a sector with a wrong checksum (Linux: `EBADMSG`).
const BAD_SECTOR: [i32; 2] = [5, 74];
/// The smallest unit that a disk can lose.
const SECTOR_BYTES: usize = 4_096;
/// Bytes per read. If a part has a bad sector, each of its sectors is read separately.
const PART_BYTES: usize = 1 << 20;

/// Whether a repeated read would fail in the same way: because of a bad sector, or because the file is too short.
pub fn is_damage(error: &io::Error) -> bool {
    is_bad_sector(error) || error.kind() == io::ErrorKind::UnexpectedEof
}

fn is_bad_sector(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| BAD_SECTOR.contains(&code))
}

/// Reads at an offset, like `FileExt::read_at`.
pub type ReadAt<'a> = &'a dyn Fn(&mut [u8], u64) -> io::Result<usize>;

#[derive(Debug, Default)]
pub struct Readable {
    /// Number of requested bytes that are before the end of the file.
    pub length: usize,
    pub bad: Vec<Range<u64>>,
    pub error: Option<io::Error>,
}

impl Readable {
    fn note(&mut self, place: Range<u64>, error: io::Error) {
        match self.bad.last_mut().filter(|last| last.end == place.start) {
            Some(last) => last.end = place.end,
            None => self.bad.push(place),
        }
        self.error.get_or_insert(error);
    }
}

/// Fills `bytes` from `offset` on. Unreadable sectors and bytes after the end of the file become zeros.
///
/// # Errors
/// All errors that are not caused by a bad sector or an interrupted call.
pub fn read_sectors(read: ReadAt<'_>, bytes: &mut [u8], offset: u64) -> io::Result<Readable> {
    let mut readable = Readable::default();
    let total = bytes.len();
    // Sectors before this position in `bytes` are read one by one.
    let mut careful_to = 0;
    while readable.length < total {
        let from = readable.length;
        let at = offset + from as u64;
        let is_careful = from < careful_to;
        let unit = if is_careful { SECTOR_BYTES } else { PART_BYTES };
        let to = total.min(from + unit - in_memory(at % unit as u64));
        let part = bytes.get_mut(from..to).unwrap_or_default();
        match read(part, at) {
            Ok(0) => break,
            Ok(read) => readable.length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_bad_sector(&error) && !is_careful => careful_to = to,
            Err(error) if is_bad_sector(&error) => {
                part.fill(0);
                readable.note(at..offset + to as u64, error);
                readable.length = to;
            }
            Err(error) => return Err(error),
        }
    }
    bytes.get_mut(readable.length..).unwrap_or_default().fill(0);
    Ok(readable)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk with `contents`. Its sectors at `bad` return `EIO`.
    fn disk<'a>(contents: &'a [u8], bad: &'a [usize]) -> impl Fn(&mut [u8], u64) -> io::Result<usize> + 'a {
        move |bytes, at| {
            let at = at as usize;
            let rest = contents.get(at..).unwrap_or_default();
            let length = rest.len().min(bytes.len());
            let touches = |sector: &usize| {
                at < (sector + 1) * SECTOR_BYTES && at + length > sector * SECTOR_BYTES && length > 0
            };
            if bad.iter().any(touches) {
                return Err(io::Error::from_raw_os_error(5));
            }
            bytes[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        }
    }

    #[test]
    fn only_bad_sectors_are_lost() {
        let contents: Vec<u8> = (0..3 * PART_BYTES).map(|n| (n % 251) as u8 + 1).collect();
        let bad = [2, 3, 256, 700];
        for offset in [0, 100, 5 * SECTOR_BYTES] {
            let mut bytes = vec![9; contents.len() - offset];
            let readable = read_sectors(&disk(&contents, &bad), &mut bytes, offset as u64).unwrap();
            let is_bad = |at: usize| bad.contains(&(at / SECTOR_BYTES));
            let expected = |at: usize| if is_bad(at) { 0 } else { contents[at] };
            assert!((offset..contents.len()).all(|at| bytes[at - offset] == expected(at)));
            assert_eq!((readable.length, readable.error.is_some()), (bytes.len(), true));
            let lost: u64 = readable.bad.iter().map(|place| place.end - place.start).sum();
            let expected = (offset..contents.len()).filter(|at| is_bad(*at)).count();
            assert_eq!(lost as usize, expected);
        }
    }

    #[test]
    fn a_shorter_file_ends_with_zeros() {
        let mut bytes = vec![9; 100];
        let readable = read_sectors(&disk(&[7; 60], &[]), &mut bytes, 20).unwrap();
        assert_eq!((readable.length, readable.bad.len()), (40, 0));
        assert_eq!(bytes, [[7; 40].to_vec(), vec![0; 60]].concat());
    }

    #[test]
    fn other_errors_are_returned() {
        let denied = |_: &mut [u8], _| Err(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = read_sectors(&denied, &mut [0; 8], 0).unwrap_err();
        assert!(!is_damage(&error));
    }
}
