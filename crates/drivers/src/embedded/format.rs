//! Encodes and decodes a segment file (`docs/format/segment.md`): header, batches of rows, index, trailer.

use std::path::{Path, PathBuf};

use tacho_store::size::length_of;
use tacho_store::{Error, ErrorKind, Result, Table};

pub const MAGIC: [u8; 8] = *b"tachoseg";
pub const VERSION: u16 = 1;
pub const HEADER_BYTES: usize = 24;
pub const BATCH_MAGIC: [u8; 4] = *b"\xf5bat";
pub const BATCH_HEAD_BYTES: usize = 16;
pub const ROW_HEAD_BYTES: usize = 14;
/// The checksum at the beginning of a row.
const CRC_BYTES: usize = 4;
pub const TRAILER_MAGIC: [u8; 8] = *b"tachoend";
pub const TRAILER_BYTES: usize = 28;

/// Largest partition or clustering, bytes. Its length is a u16.
pub const KEY_BYTES_MAX: usize = u16::MAX as usize;
pub const VALUE_BYTES_MAX: usize = 64 << 20;
/// Largest size of all rows of one `put`, bytes. Offsets in a segment are u32.
pub const BATCH_BYTES_MAX: usize = 512 << 20;

const DELETE: u8 = 1;
/// Used in the index only: the row has the same table and partition as the previous row.
const SAME_PARTITION: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Put,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRef<'a> {
    pub action: Action,
    pub table: Table,
    pub partition: &'a [u8],
    pub clustering: &'a [u8],
    pub value: &'a [u8],
}

impl RowRef<'_> {
    /// Size of the row in the file, bytes.
    pub const fn bytes(&self) -> usize {
        ROW_HEAD_BYTES + self.partition.len() + self.clustering.len() + self.value.len()
    }

    fn put(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&[0; CRC_BYTES]);
        out.push(if self.action == Action::Delete { DELETE } else { 0 });
        out.push(self.table as u8);
        out.extend_from_slice(&key_bytes(self.partition).to_le_bytes());
        out.extend_from_slice(&key_bytes(self.clustering).to_le_bytes());
        out.extend_from_slice(&length_of(self.value).to_le_bytes());
        out.extend_from_slice(self.partition);
        out.extend_from_slice(self.clustering);
        out.extend_from_slice(self.value);
        if let Some((crc, row)) = out.get_mut(begin..).and_then(<[u8]>::split_first_chunk_mut::<CRC_BYTES>) {
            *crc = crc32c::crc32c(row).to_le_bytes();
        }
    }
}

/// The head of a row, with the lengths of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RowHead {
    crc: u32,
    action: Action,
    table: Table,
    partition: usize,
    clustering: usize,
    value: usize,
}

impl RowHead {
    fn decode(bytes: &[u8]) -> Option<Self> {
        let [c0, c1, c2, c3, flags, table, p0, p1, k0, k1, v0, v1, v2, v3] =
            *bytes.first_chunk::<ROW_HEAD_BYTES>()?;
        Some(Self {
            crc: u32::from_le_bytes([c0, c1, c2, c3]),
            action: match flags {
                0 => Action::Put,
                DELETE => Action::Delete,
                _ => return None,
            },
            table: Table::from_byte(table)?,
            partition: u16::from_le_bytes([p0, p1]).into(),
            clustering: u16::from_le_bytes([k0, k1]).into(),
            value: u32::from_le_bytes([v0, v1, v2, v3]) as usize,
        })
    }

    const fn bytes(&self) -> usize {
        ROW_HEAD_BYTES + self.partition + self.clustering + self.value
    }

    /// The row with this head. `bytes` begin with the head and have the length of the row.
    fn row<'a>(&self, bytes: &'a [u8]) -> Option<RowRef<'a>> {
        let (partition, rest) = bytes.get(ROW_HEAD_BYTES..)?.split_at_checked(self.partition)?;
        let (clustering, value) = rest.split_at_checked(self.clustering)?;
        Some(RowRef { action: self.action, table: self.table, partition, clustering, value })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    Row(RowRef<'a>),
    /// The checksum is wrong. According to its lengths, the row has this many bytes.
    Damaged(usize),
    /// The bytes do not begin with the head of a row, or end before the end of this row.
    Nothing,
}

/// Size of the row at the start of `bytes` according to its head. The row may be damaged.
pub fn row_bytes(bytes: &[u8]) -> Option<usize> {
    RowHead::decode(bytes).map(|head| head.bytes())
}

/// Key and value of the row at the start of `bytes`, according to the lengths in its head. The checksum is not compared.
pub fn take_unproven(bytes: &[u8]) -> Option<RowRef<'_>> {
    let head = RowHead::decode(bytes)?;
    head.row(bytes.get(..head.bytes())?)
}

pub fn take_row(bytes: &[u8]) -> Taken<'_> {
    let Some(head) = RowHead::decode(bytes) else { return Taken::Nothing };
    let Some(row) = bytes.get(..head.bytes()) else { return Taken::Nothing };
    match row.get(CRC_BYTES..).filter(|checked| crc32c::crc32c(checked) == head.crc) {
        Some(_) => head.row(row).map_or(Taken::Nothing, Taken::Row),
        None => Taken::Damaged(head.bytes()),
    }
}

/// Whether the bytes are a row in which only one of the three lengths is damaged. The number of bytes gives the correct length.
/// With this length, the checksum is correct.
pub fn is_row_with_wrong_length(bytes: &[u8]) -> bool {
    let (Some(head), Some((fields, keys))) = (RowHead::decode(bytes), bytes.split_first_chunk()) else {
        return false;
    };
    let fields: &[u8; ROW_HEAD_BYTES] = fields;
    let fits = |length: usize, place: std::ops::Range<usize>| {
        let others = head.bytes() - length;
        bytes.len().checked_sub(others).is_some_and(|correct| {
            let correct = (correct as u64).to_le_bytes();
            let (low, high) = correct.split_at(place.len());
            let mut fields = *fields;
            let Some(field) = fields.get_mut(place.clone()) else { return false };
            field.copy_from_slice(low);
            high.iter().all(|byte| *byte == 0)
                && crc32c::crc32c_append(crc32c::crc32c(&fields[CRC_BYTES..]), keys) == head.crc
        })
    };
    fits(head.partition, 6..8) || fits(head.clustering, 8..10) || fits(head.value, 10..14)
}

/// The bytes after the head and the key at the start of `bytes`: the value of `row`, or its beginning. `None` if the head or the
/// key is that of another row, or if the head states another length of the value than `value`.
pub fn take_head<'a>(bytes: &'a [u8], (row, value): (RowRef<'_>, usize)) -> Option<&'a [u8]> {
    let head = RowHead::decode(bytes)?;
    let same = (head.action, head.table, head.value) == (row.action, row.table, value)
        && (head.partition, head.clustering) == (row.partition.len(), row.clustering.len());
    let (partition, rest) = bytes.get(ROW_HEAD_BYTES..)?.split_at_checked(head.partition)?;
    let (clustering, front) = rest.split_at_checked(head.clustering)?;
    (same && partition == row.partition && clustering == row.clustering).then_some(front)
}

/// Appends one batch. `each` receives every row and its offset in the batch.
pub fn put_batch<'a>(
    out: &mut Vec<u8>,
    rows: impl Iterator<Item = RowRef<'a>>,
    mut each: impl FnMut(&RowRef<'a>, usize),
) {
    let begin = out.len();
    out.extend_from_slice(&[0; BATCH_HEAD_BYTES]);
    let mut count = 0u32;
    for row in rows {
        each(&row, out.len() - begin);
        row.put(out);
        count += 1;
    }
    let Some((head, rows)) = out.get_mut(begin..).and_then(<[u8]>::split_first_chunk_mut) else { return };
    let head: &mut [u8; BATCH_HEAD_BYTES] = head;
    head[..4].copy_from_slice(&BATCH_MAGIC);
    head[4..8].copy_from_slice(&length_of(rows).to_le_bytes());
    head[8..12].copy_from_slice(&count.to_le_bytes());
    let crc = crc32c::crc32c(&head[..12]);
    head[12..].copy_from_slice(&crc.to_le_bytes());
}

/// The length of a key, for a field of 16 bits.
#[expect(clippy::cast_possible_truncation, reason = "longer keys are refused when they are put")]
const fn key_bytes(key: &[u8]) -> u16 {
    debug_assert!(key.len() <= KEY_BYTES_MAX);
    key.len() as u16
}

/// Size of all rows of the batch at the start of `bytes`; `None` if the head of the batch is damaged.
pub fn take_batch_head(bytes: &[u8]) -> Option<usize> {
    let head = bytes.first_chunk::<BATCH_HEAD_BYTES>()?;
    let crc = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
    let sound = head[..4] == BATCH_MAGIC && crc32c::crc32c(&head[..12]) == crc;
    sound.then(|| u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize)
}

/// A batch without rows. After the rows of a batch are on disk, a mark is written without a sync. Damage before a mark
/// therefore affects acknowledged rows.
pub fn mark() -> Vec<u8> {
    let mut out = Vec::with_capacity(BATCH_HEAD_BYTES);
    put_batch(&mut out, std::iter::empty(), |_, _| ());
    out
}

pub fn encode_header(number: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&u64::from(number).to_le_bytes());
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Whether the file starts with the header of this segment. Returns `false` if the header is damaged. The file can then still be
/// read, because the number is also in the file name.
///
/// # Errors
/// `Version` for a segment of a newer version.
pub fn is_header(bytes: &[u8], number: u32, path: &Path) -> Result<bool> {
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(false) };
    if header[..] == *encode_header(number) {
        return Ok(true);
    }
    let version = u16::from_le_bytes([header[8], header[9]]);
    // The checksum distinguishes a newer version from a damaged version number.
    let mut today = *header;
    today[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let is_damaged = crc32c::crc32c(&today[..20]).to_le_bytes() == header[20..];
    if header[..8] == MAGIC && version > VERSION && !is_damaged {
        let message = format!("segment has version {version}, this program reads up to {VERSION}");
        return Err(Error::new(ErrorKind::Version, message).with("path", path.display()));
    }
    Ok(false)
}

/// One row in the index of a segment: its key and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub action: Action,
    pub table: Table,
    pub partition: &'a [u8],
    pub clustering: &'a [u8],
    /// Offset of the row's head in the file, bytes.
    pub offset: u32,
    pub value_bytes: u32,
}

/// Builds the index of a segment. The rows must be pushed in file order.
#[derive(Clone, Debug, Default)]
pub struct IndexBuilder {
    bytes: Vec<u8>,
    rows: u32,
    last: Option<(Table, Box<[u8]>)>,
}

impl IndexBuilder {
    pub fn push(&mut self, entry: &Entry<'_>) {
        let same = self.last.as_ref().is_some_and(|(t, p)| *t == entry.table && **p == *entry.partition);
        let flags = if entry.action == Action::Delete { DELETE } else { 0 };
        self.bytes.push(if same { flags | SAME_PARTITION } else { flags });
        if !same {
            self.bytes.push(entry.table as u8);
            self.bytes.extend_from_slice(&key_bytes(entry.partition).to_le_bytes());
            self.bytes.extend_from_slice(entry.partition);
            self.last = Some((entry.table, entry.partition.into()));
        }
        self.bytes.extend_from_slice(&key_bytes(entry.clustering).to_le_bytes());
        self.bytes.extend_from_slice(entry.clustering);
        self.bytes.extend_from_slice(&entry.offset.to_le_bytes());
        self.bytes.extend_from_slice(&entry.value_bytes.to_le_bytes());
        self.rows += 1;
    }

    pub const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Encodes index and trailer of a segment. `offset` is the end of the rows.
    pub fn finish(&self, offset: u32) -> Vec<u8> {
        let mut out = self.bytes.clone();
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        trailer.extend_from_slice(&offset.to_le_bytes());
        trailer.extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        trailer.extend_from_slice(&self.rows.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&out), &trailer);
        trailer.extend_from_slice(&crc.to_le_bytes());
        trailer.extend_from_slice(&TRAILER_MAGIC);
        out.append(&mut trailer);
        out
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// End of the rows and start of the index.
    pub offset: u32,
    pub index_bytes: u64,
    pub rows: u32,
    crc: u32,
}

impl Trailer {
    /// Decodes the last bytes of a file of `length` bytes. `None` if they are not the trailer of such a file.
    pub fn decode(last: &[u8; TRAILER_BYTES], length: u64) -> Option<Self> {
        let [o0, o1, o2, o3, i0, i1, i2, i3, i4, i5, i6, i7, r0, r1, r2, r3, c0, c1, c2, c3, magic @ ..] =
            *last;
        let trailer = Self {
            offset: u32::from_le_bytes([o0, o1, o2, o3]),
            index_bytes: u64::from_le_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
            rows: u32::from_le_bytes([r0, r1, r2, r3]),
            crc: u32::from_le_bytes([c0, c1, c2, c3]),
        };
        let whole = u64::from(trailer.offset).checked_add(trailer.index_bytes)?;
        (magic == TRAILER_MAGIC && whole.checked_add(TRAILER_BYTES as u64)? == length).then_some(trailer)
    }

    /// Whether `index` and the trailer `last` have the checksum that the trailer states.
    pub fn fits(&self, index: &[u8], last: &[u8; TRAILER_BYTES]) -> bool {
        crc32c::crc32c_append(crc32c::crc32c(index), &last[..16]) == self.crc
    }
}

/// Visits the entries of an index. `None` if the bytes are not a valid index.
pub fn each_entry<'a>(index: &'a [u8], mut each: impl FnMut(Entry<'a>)) -> Option<()> {
    let mut rest = index;
    let (mut table, mut partition): (Table, &[u8]) = (Table::Chunks, &[]);
    while !rest.is_empty() {
        let [flags] = take_array(&mut rest)?;
        if flags & SAME_PARTITION == 0 {
            let [byte] = take_array(&mut rest)?;
            table = Table::from_byte(byte)?;
            partition = take_key(&mut rest)?;
        }
        let clustering = take_key(&mut rest)?;
        let offset = u32::from_le_bytes(take_array(&mut rest)?);
        let value_bytes = u32::from_le_bytes(take_array(&mut rest)?);
        let action = if flags & DELETE == 0 { Action::Put } else { Action::Delete };
        each(Entry { action, table, partition, clustering, offset, value_bytes });
    }
    Some(())
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(*taken)
}

fn take_key<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u16::from_le_bytes(take_array(rest)?);
    let (taken, left) = rest.split_at_checked(length.into())?;
    *rest = left;
    Some(taken)
}

pub const SUFFIX: &str = ".segment";

pub fn file_name(number: u32) -> String {
    format!("{number:08}{SUFFIX}")
}

pub fn file_path(directory: &Path, number: u32) -> PathBuf {
    directory.join(file_name(number))
}

/// Minimum length of a file that contains a row, bytes.
pub const WITH_ROW_BYTES_MIN: u64 = (HEADER_BYTES + BATCH_HEAD_BYTES + ROW_HEAD_BYTES) as u64;

/// The segment number in a file name. Numbers above 99,999,999 have more than eight digits.
pub fn file_number(name: &str) -> Option<u32> {
    let number = name.strip_suffix(SUFFIX)?.parse().ok()?;
    (file_name(number) == name).then_some(number)
}
