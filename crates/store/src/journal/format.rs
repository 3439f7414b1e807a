//! Constants and low-level encoding of a journal file (`docs/format/journal.md`).

use std::path::{Path, PathBuf};

use tacho_model::Timestamp;

use crate::size::length_of;
use crate::{Error, ErrorKind, Result};

pub const MAGIC: [u8; 8] = *b"tachojnl";
pub const VERSION: u16 = 3;
/// Files up to this version have one header of 48 bytes, no marks, and no repeated definitions.
pub const VERSION_SINGLE: u16 = 2;
/// Files of this version have the labels of a series as one string.
pub const VERSION_WHOLE_LABELS: u16 = 1;
/// Length of the header part that all versions have, bytes. Its checksum shows whether its version can be trusted.
pub const HEADER_BYTES: usize = 48;
/// Limit on older generations in a header. With 30 minutes per generation, it is reached after a month of failed flushes.
pub const OLDER_MAX: usize = 1_440;
/// First bytes of every record, so that a reader finds the next intact record after a damaged one.
pub const RECORD_MAGIC: [u8; 4] = *b"\xf5rec";
pub const RECORD_HEAD_BYTES: usize = 12;
/// First bytes of a mark. All bytes before the mark were synced.
pub const MARK_MAGIC: [u8; 4] = *b"\xf5end";
pub const MARK_BYTES: usize = 16;
/// Largest payload, bytes. Bounds the memory that one record takes in a recovery. Far above usual batches (a frame of the wire
/// protocol has at most 4 MiB).
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Limit on the labels that one record defines, bytes. The record omits the labels that a series shares with the previous series;
/// these labels count in full. Bounds the time to read the definitions.
pub const DEFINITIONS_BYTES_MAX: usize = 1 << 30;
/// Limit on the memory of the labels that one record defines, bytes. If series differ only in their name, their other labels are
/// in memory once and count once. The limit prevents a small record from taking a lot of memory.
pub const DEFINITIONS_KEPT_BYTES_MAX: usize = 256 << 20;
/// Limit on the texts that a file defines. Further texts are written where they are used. Bounds the table against a hostile
/// sender.
pub const TEXTS_MAX: usize = 65_536;
/// Texts of more bytes than this are not defined, but written where they are used.
pub const TEXT_BYTES_MAX: usize = 256;

pub const FLAG_ORIGIN: u8 = 1;
/// The record only repeats definitions of an earlier record.
pub const FLAG_REPEATS: u8 = 2;
/// The origin covers several frames.
pub const FLAG_FRAMES: u8 = 4;
pub const BLOCK_SAMPLES: u8 = 1;
pub const BLOCK_ENTRIES: u8 = 2;
pub const BLOCK_EXECUTIONS: u8 = 3;
pub const BLOCK_COLUMNS: u8 = 4;
pub const TIMES_STEP: u8 = 0;
pub const TIMES_DELTAS: u8 = 1;
pub const FORM_TYPE_MASK: u8 = 3;
pub const FORM_CODING_SHIFT: u8 = 2;
/// Coding of a column with raw values. The codings 1, 2 and 3 are differences of 1, 2 and 4 bytes.
pub const CODING_RAW: u8 = 0;
pub const SEGMENT_PARENT: u8 = 1;
pub const SEGMENT_CARRIED: u8 = 2;
pub const SEGMENT_ATTRIBUTES: u8 = 4;
pub const CODE_EXIT: u64 = 0;
pub const CODE_EXIT_FAILED: u64 = 1;
/// Codes from this number on enter an operation.
pub const CODE_ENTER: u64 = 2;
pub const BODY_TEXT: u8 = 0;
pub const BODY_BYTES: u8 = 1;
pub const VALUE_TEXT: u8 = 0;
pub const VALUE_INTEGER: u8 = 1;

/// An earlier generation that was not in the driver when a journal file was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Older {
    pub generation: u64,
    /// Acknowledged bytes of its file; 0 if unknown.
    pub length: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub generation: u64,
    pub store: u128,
    pub created: Timestamp,
    /// Earlier generations that were not in the driver. Their files must exist, too, unless they were flushed later.
    pub older: Vec<Older>,
}

impl Header {
    /// Encodes two copies of the header, each with its own checksums.
    pub fn encode(&self) -> Vec<u8> {
        let older = self.older.get(self.older.len().saturating_sub(OLDER_MAX)..).unwrap_or_default();
        let mut out = Vec::with_capacity(2 * (HEADER_BYTES + 4 + 16 * older.len()));
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&u16::try_from(older.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.store.to_be_bytes());
        out.extend_from_slice(&self.created.to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        for older in older {
            out.extend_from_slice(&older.generation.to_le_bytes());
            out.extend_from_slice(&older.length.to_le_bytes());
        }
        out.extend_from_slice(&crc32c::crc32c(&out).to_le_bytes());
        out.extend_from_within(..);
        out
    }
}

pub type One = (Header, u16, usize);

pub const HEADERS_BYTES_MAX: usize = 2 * (HEADER_BYTES + 4 + 16 * OLDER_MAX);

pub fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    bytes.get(from..)?.windows(wanted.len()).position(|window| window == wanted).map(|at| from + at)
}

/// Decodes one copy of the header. The inner error is the reason why it cannot be read.
///
/// # Errors
/// `Version` for a journal of a newer version.
pub fn decode_one(bytes: &[u8], path: &Path) -> Result<Result<One, String>> {
    let Some(fixed) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(Err("journal without a header".into()));
    };
    if fixed[..8] != MAGIC {
        return Ok(Err("not a journal file".into()));
    }
    let mismatch = |stored: u32, crc: u32| {
        format!("journal header checksum mismatch: expected 0x{stored:08x}, got 0x{crc:08x}")
    };
    let stored = u32::from_le_bytes(field(fixed, 44));
    let crc = crc32c::crc32c(&fixed[..44]);
    if stored != crc {
        return Ok(Err(mismatch(stored, crc)));
    }
    let version = version_bytes(fixed);
    if version > VERSION {
        let message = format!("journal has version {version}, this program reads up to {VERSION}");
        return Err(Error::new(ErrorKind::Version, message).with("path", path.display()));
    }
    let mut header = Header {
        generation: u64::from_le_bytes(field(fixed, 12)),
        store: u128::from_be_bytes(field(fixed, 20)),
        created: i64::from_le_bytes(field(fixed, 36)),
        older: Vec::new(),
    };
    if version <= VERSION_SINGLE {
        return Ok(Ok((header, version, HEADER_BYTES)));
    }
    let end = HEADER_BYTES + 16 * usize::from(u16::from_le_bytes(field(fixed, 10)));
    let Some((checked, rest)) = bytes.split_at_checked(end) else {
        return Ok(Err("journal without a header".into()));
    };
    let Some(stored) = rest.first_chunk().map(|stored| u32::from_le_bytes(*stored)) else {
        return Ok(Err("journal without a header".into()));
    };
    let crc = crc32c::crc32c(checked);
    if stored != crc {
        return Ok(Err(mismatch(stored, crc)));
    }
    let (pairs, _) = checked.get(HEADER_BYTES..).unwrap_or_default().as_chunks::<8>();
    let pairs: Vec<u64> = pairs.iter().map(|word| u64::from_le_bytes(*word)).collect();
    header.older = pairs
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[generation, length]| Older { generation: *generation, length: *length })
        .collect();
    Ok(Ok((header, version, end + 4)))
}

pub fn version_bytes(bytes: &[u8]) -> u16 {
    let version = bytes.get(8..).and_then(|rest| rest.first_chunk());
    version.map_or(VERSION, |version| u16::from_le_bytes(*version))
}

fn field<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    std::array::from_fn(|i| header.get(at + i).copied().unwrap_or(0))
}

pub fn put_record(out: &mut Vec<u8>, payload: &[u8]) {
    let length = length_of(payload).to_le_bytes();
    let crc = record_checksum(length, payload);
    out.extend_from_slice(&RECORD_MAGIC);
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(payload);
}

/// The payload of the record at the start of `bytes`; `None` if no intact record starts there.
pub fn take_record(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<RECORD_HEAD_BYTES>()?;
    let [_, _, _, _, l0, l1, l2, l3, c0, c1, c2, c3] = *head;
    let payload = rest.get(..claimed_bytes(bytes)?)?;
    let crc = record_checksum([l0, l1, l2, l3], payload);
    (crc == u32::from_le_bytes([c0, c1, c2, c3])).then_some(payload)
}

/// Length of the payload of the record at the start of `bytes`, from its head. The record may be damaged or incomplete. `None` if
/// no record starts there, or if the length is above the limit.
pub fn claimed_bytes(bytes: &[u8]) -> Option<usize> {
    let [m0, m1, m2, m3, l0, l1, l2, l3] = *bytes.first_chunk()?;
    let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    ([m0, m1, m2, m3] == RECORD_MAGIC && length <= RECORD_BYTES_MAX).then_some(length)
}

pub fn record_checksum(length: [u8; 4], payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&length), payload)
}

/// A mark after a commit. It states that the file was synced up to this position.
pub fn mark(synced: u64) -> [u8; MARK_BYTES] {
    let mut mark = [0; MARK_BYTES];
    mark[..4].copy_from_slice(&MARK_MAGIC);
    mark[4..12].copy_from_slice(&synced.to_le_bytes());
    let crc = crc32c::crc32c(&mark[..12]);
    mark[12..].copy_from_slice(&crc.to_le_bytes());
    mark
}

/// The synced position in the mark at the start of `bytes`; `None` if no intact mark starts there.
pub fn take_mark(bytes: &[u8]) -> Option<u64> {
    let (said, crc) = bytes.first_chunk::<MARK_BYTES>()?.split_first_chunk::<12>()?;
    let crc = u32::from_le_bytes(*crc.first_chunk()?);
    let (magic, synced) = said.split_first_chunk::<4>()?;
    let sound = *magic == MARK_MAGIC && crc == crc32c::crc32c(said);
    sound.then_some(u64::from_le_bytes(*synced.first_chunk()?))
}

pub fn file_name(generation: u64) -> String {
    format!("{generation:020}.journal")
}

pub fn file_path(directory: &Path, generation: u64) -> PathBuf {
    directory.join(file_name(generation))
}

/// The generation in the name of a journal file; `None` for other names.
pub fn file_generation(name: &str) -> Option<u64> {
    name.strip_suffix(".journal").and_then(digits)
}

/// The generation in a file name of a journal, of a quarantined journal, or of an operator's permission to continue
/// without the journal.
pub fn named_generation(name: &str) -> Option<u64> {
    name.split('.').next().and_then(digits)
}

/// Name of the file by which an operator permits the store to open without this generation's journal, or with the
/// readable part of the journal.
pub fn lost_name(generation: u64) -> String {
    format!("{generation:020}.lost")
}

fn digits(name: &str) -> Option<u64> {
    if name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit()) { name.parse().ok() } else { None }
}
