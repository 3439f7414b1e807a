//! The constants and the frames of a journal file (`docs/format/journal.md`).

use std::path::{Path, PathBuf};

use tacho_model::Timestamp;

use crate::{Error, ErrorKind, Result};

pub const MAGIC: [u8; 8] = *b"tachojnl";
pub const VERSION: u16 = 2;
/// Files of this version tell the labels of a series as one string.
pub const VERSION_WHOLE_LABELS: u16 = 1;
pub const HEADER_BYTES: usize = 48;
/// Begins every record, so that the next sound one can be found behind a damaged one.
pub const RECORD_MAGIC: [u8; 4] = *b"\xf5rec";
pub const RECORD_HEAD_BYTES: usize = 12;
/// Longest payload: bounds what recovery must hold, and far above any batch (a frame of the wire has 4 MiB).
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Labels that one record defines, bytes when written out: sharing must not make a small record a huge one.
pub const DEFINITIONS_BYTES_MAX: usize = 256 << 20;
/// Texts a file defines; more are written in place. Bounds the table of a hostile sender.
pub const TEXTS_MAX: usize = 65_536;
/// A text longer than this is written in place.
pub const TEXT_BYTES_MAX: usize = 256;

pub const FLAG_ORIGIN: u8 = 1;
pub const BLOCK_SAMPLES: u8 = 1;
pub const BLOCK_ENTRIES: u8 = 2;
pub const BLOCK_EXECUTIONS: u8 = 3;
pub const BLOCK_COLUMNS: u8 = 4;
pub const TIMES_STEP: u8 = 0;
pub const TIMES_DELTAS: u8 = 1;
pub const FORM_TYPE_MASK: u8 = 3;
pub const FORM_CODING_SHIFT: u8 = 2;
/// Codings of a column: this, or differences of 1, 2 and 4 bytes.
pub const CODING_RAW: u8 = 0;
pub const SEGMENT_PARENT: u8 = 1;
pub const SEGMENT_CARRIED: u8 = 2;
pub const SEGMENT_ATTRIBUTES: u8 = 4;
pub const CODE_EXIT: u64 = 0;
pub const CODE_EXIT_FAILED: u64 = 1;
/// Codes from here on enter an operation.
pub const CODE_ENTER: u64 = 2;
pub const BODY_TEXT: u8 = 0;
pub const BODY_BYTES: u8 = 1;
pub const VALUE_TEXT: u8 = 0;
pub const VALUE_INTEGER: u8 = 1;

/// What a file says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub generation: u64,
    pub store: u128,
    pub created: Timestamp,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.store.to_be_bytes());
        out.extend_from_slice(&self.created.to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&out);
        header
    }

    /// `Ok(None)`: the file was being created when the process died, and holds nothing.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Option<Self>> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let zeros = header.iter().chain(rest).all(|b| *b == 0);
        if zeros {
            return Ok(None);
        }
        if header[..8] != MAGIC {
            return Err(Error::corrupt("not a journal file").with("path", path.display()));
        }
        let version = u16::from_le_bytes([header[8], header[9]]);
        if version > VERSION {
            let message = format!("journal has version {version}, this program reads up to {VERSION}");
            return Err(Error::new(ErrorKind::Version, message).with("path", path.display()));
        }
        let stored = u32::from_le_bytes([header[44], header[45], header[46], header[47]]);
        let crc = crc32c::crc32c(&header[..44]);
        if stored != crc {
            let message =
                format!("journal header checksum mismatch: expected 0x{stored:08x}, got 0x{crc:08x}");
            return Err(Error::corrupt(message).with("path", path.display()));
        }
        Ok(Some(Self {
            generation: u64::from_le_bytes(field(header, 12)),
            store: u128::from_be_bytes(field(header, 20)),
            created: i64::from_le_bytes(field(header, 36)),
        }))
    }
}

/// The version that a sound header names.
pub fn version(bytes: &[u8]) -> u16 {
    bytes.get(8..10).map_or(VERSION, |version| u16::from_le_bytes([version[0], version[1]]))
}

fn field<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header[at + i])
}

/// Appends a record with this payload.
pub fn put_record(out: &mut Vec<u8>, payload: &[u8]) {
    let length = (payload.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c(&length), payload);
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
}

/// The payload of the record at the start of `bytes`, if a sound one begins there.
pub fn take_record(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<RECORD_HEAD_BYTES>()?;
    let [m0, m1, m2, m3, l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    let length = usize::try_from(u32::from_le_bytes([l0, l1, l2, l3])).ok()?;
    if [m0, m1, m2, m3] != RECORD_MAGIC || length > RECORD_BYTES_MAX {
        return None;
    }
    let payload = rest.get(..length)?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&[l0, l1, l2, l3]), payload);
    (crc == u32::from_le_bytes([c0, c1, c2, c3])).then_some(payload)
}

pub fn file_name(generation: u64) -> String {
    format!("{generation:020}.journal")
}

pub fn file_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(file_name(generation))
}

/// The generation a file name stands for, if it is a journal's.
pub fn file_generation(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".journal")?;
    if digits.len() == 20 { digits.parse().ok() } else { None }
}
