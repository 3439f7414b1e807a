//! The file `END`: how many bytes of the growing segment are on disk (`docs/format/segment.md`).
//!
//! A segment that was cut off at its end looks like a segment whose last append did not finish. `END` shows the difference.
//! After each synced batch, the driver appends a record to `END`. The record states the length of the growing segment up to the
//! end of the batch. This append is not synced, so a `put` costs no additional sync. After a power failure `END` may state
//! fewer bytes than were on disk, but never more.

use std::io;
use std::path::Path;

use tacho_store::disk::{Disk, DiskFile, SyncPoint};
use tacho_store::mutation::Mutation;

use super::manifest::{Known, State};

pub const FILE: &str = "END";
/// Includes the version.
const MAGIC: [u8; 4] = *b"end\x01";
pub const RECORD_BYTES: usize = 20;
/// Size at which the file is begun again, bytes. It bounds the time to read the file.
pub const END_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a segment that are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub number: u32,
    pub bytes: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// The last intact record.
    pub end: Option<End>,
    /// Bytes that are not intact records. A power failure can leave such bytes, because the file is not synced.
    pub damaged: u64,
}

impl End {
    fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(RECORD_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.bytes.to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let [_, _, _, _, n0, n1, n2, n3, b0, b1, b2, b3, b4, b5, b6, b7, ..] = *record else { return None };
        let number = u32::from_le_bytes([n0, n1, n2, n3]);
        let end = Self { number, bytes: u64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]) };
        // The comparison includes the magic and the checksum.
        (end.encode() == record).then_some(end)
    }
}

/// Reads the file. The result is empty if the file does not exist, as in a directory of an older version.
pub fn read(disk: &dyn Disk, directory: &Path) -> io::Result<Found> {
    let path = directory.join(FILE);
    if let Some(why) = disk.irregular(&path) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    match disk.length(&path) {
        // No version writes such a file.
        Ok(length) if length > END_BYTES_MAX => return Ok(Found { end: None, damaged: length }),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::default()),
        Err(error) => return Err(error),
    }
    Ok(decode(&disk.read(&path)?))
}

fn decode(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    for record in bytes.chunks(RECORD_BYTES) {
        match End::decode(record) {
            Some(end) => found.end = Some(end),
            None => found.damaged += record.len() as u64,
        }
    }
    found
}

impl Known {
    /// The facts about segment `number` with the minimum length that `END` states. `END` states a length only for the growing
    /// segment.
    pub fn with_end(self, number: u32, end: Option<End>) -> Self {
        let stated = end.filter(|end| end.number == number && self.state == State::Growing);
        Self { bytes: self.bytes.max(stated.map_or(0, |end| end.bytes)), ..self }
    }
}

#[derive(Default)]
pub struct Writer {
    /// `None` before the first record, and after a failed append.
    file: Option<Box<dyn DiskFile>>,
    length: u64,
    /// Whether the file was renamed, so that its name may be lost in a power failure.
    is_renamed: bool,
}

impl Writer {
    /// Appends a record without a sync. If the file is not open, or would become too long, [`Self::begin`] replaces it. All
    /// `end.bytes` must be on disk. A failure does not affect the rows. The file may then state fewer bytes, and a start may not
    /// detect that the end of the segment is missing.
    pub fn append(&mut self, disk: &dyn Disk, directory: &Path, end: End) {
        let record = end.encode();
        let fits = self.length + record.len() as u64 <= END_BYTES_MAX;
        let stated = match self.file.as_mut().filter(|_| fits) {
            Some(file) => file.append(&record).inspect(|()| self.length += record.len() as u64),
            None => self.begin(disk, directory, end),
        };
        if let Err(error) = stated {
            self.file = None;
            tracing::debug!(path = %directory.join(FILE).display(), %error, "synced length of segment not written");
        }
    }

    /// Replaces the file with a file that has only this record. On return the bytes are durable, the renaming may not be.
    pub fn begin(&mut self, disk: &dyn Disk, directory: &Path, end: End) -> io::Result<()> {
        let (path, new) = (directory.join(FILE), directory.join(format!("{FILE}.new")));
        self.file = None;
        if Mutation::EndNotStated.is_on() {
            return Ok(());
        }
        match disk.remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = disk.open(&new)?;
        let record = end.encode();
        file.append(&record)?;
        file.sync(SyncPoint::EndReplaced)?;
        disk.rename(&new, &path)?;
        self.is_renamed = true;
        self.file = Some(file);
        self.length = record.len() as u64;
        Ok(())
    }

    /// Makes the last record and the name of the file durable. A failure does not affect the rows.
    pub fn sync(&mut self, disk: &dyn Disk, directory: &Path) {
        if let Some(file) = &mut self.file {
            let _ = file.sync(SyncPoint::EndAtStop);
        }
        if self.is_renamed {
            let _ = disk.sync_directory(directory, SyncPoint::EndNameAtStop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_intact_record_applies() {
        let ends: Vec<End> = (1..=3).map(|n| End { number: 7, bytes: 1_000 * n }).collect();
        let whole: Vec<u8> = ends.iter().flat_map(|end| end.encode()).collect();
        assert_eq!(decode(&whole), Found { end: Some(ends[2]), damaged: 0 });
        assert_eq!(decode(&[]), Found::default());
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let last = if at < 2 * RECORD_BYTES { ends[2] } else { ends[1] };
                assert_eq!(decode(&damaged), Found { end: Some(last), damaged: 20 }, "byte {at}");
            }
            let found = decode(&whole[..at]);
            assert_eq!(found.end, (at / RECORD_BYTES).checked_sub(1).map(|last| ends[last]), "cut at {at}");
            assert_eq!(found.damaged, (at % RECORD_BYTES) as u64, "cut at {at}");
        }
    }

    #[test]
    fn the_bytes_match_the_format() {
        let end = End { number: 3, bytes: 447 };
        let drawn = "65 6e 64 01 03 00 00 00 bf 01 00 00 00 00 00 00";
        let bytes: Vec<u8> = drawn.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        assert_eq!(end.encode()[..16], bytes);
    }

    #[test]
    fn only_a_growing_segment_has_the_stated_end() {
        let end = Some(End { number: 3, bytes: 500 });
        let known = |state, bytes| Known { state, bytes, crc: None };
        let growing = known(State::Growing, 40);
        assert_eq!(growing.with_end(3, end), known(State::Growing, 500));
        assert_eq!(growing.with_end(3, None), growing);
        assert_eq!(growing.with_end(4, end), growing);
        assert_eq!(known(State::Growing, 700).with_end(3, end).bytes, 700);
        assert_eq!(known(State::Ended, 40).with_end(3, end).bytes, 40);
    }
}
