//! The bytes of a group's row in the Series table, and of the prefix of a merged row.

use std::borrow::Cow;
use std::io;

use bytes::Bytes;
pub use tacho_chunk::limits::GROUP_MEMBERS_MAX;
use tacho_model::{Families, Kind, LabelError, Labels, SeriesId, TimeRange};

use super::resent::Overhang;
use crate::coding::{Cursor, Malformed, put_string, put_varint};
use crate::driver::{Row, Scan, Table};
use crate::keys::{ChunkKey, newer};
use crate::{Error, Result};

/// The version of series rows that is written. Version 1 can be read.
const VERSION: u8 = 2;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;
const COMPRESS_BYTES_MIN: usize = 128;
const ZSTD_LEVEL: i32 = 3;
/// Limit on the decompressed labels of one group, bytes. Older versions of the server did not limit the bytes of all labels of
/// one series (`LABELS_BYTES_MAX` in model). A row that they wrote may have 17 MiB: 64 series with 64 labels of maximum length.
const LABELS_BYTES_MAX: usize = 32 << 20;

/// The id of a group. For a single member, this is the member's id.
pub fn group_id(members: &[SeriesId]) -> SeriesId {
    if let [one] = members {
        return *one;
    }
    let bytes: Vec<u8> = members.iter().flat_map(|id| id.to_bytes()).collect();
    SeriesId(xxhash_rust::xxh3::xxh3_128(&bytes))
}

/// The series row of a group. For entries and executions, the group has one member.
pub fn series_row(kind: Kind, group: SeriesId, members: &[&Labels]) -> Row {
    let id = group.to_bytes();
    let mut clustering = vec![kind as u8];
    clustering.extend_from_slice(&id);
    let mut labels = Vec::new();
    let mut before = Cow::Borrowed(&[][..]);
    for member in members {
        let canonical = member.canonical();
        let shared = before.iter().zip(&*canonical).take_while(|(a, b)| a == b).count();
        put_varint(&mut labels, shared as u64);
        put_string(&mut labels, canonical.get(shared..).unwrap_or_default());
        before = canonical;
    }
    let mut value = vec![VERSION];
    put_varint(&mut value, members.len() as u64);
    match compressed(&labels) {
        Some(frame) => {
            value.push(ZSTD);
            value.extend_from_slice(&frame);
        }
        None => {
            value.push(PLAIN);
            value.extend_from_slice(&labels);
        }
    }
    Row { table: Table::Series, partition: vec![id[0]], clustering, value: value.into() }
}

/// The compressed labels; `None` if they are short or compression does not make them smaller.
fn compressed(labels: &[u8]) -> Option<Vec<u8>> {
    let frame = (labels.len() >= COMPRESS_BYTES_MIN).then(|| zstd::bulk::compress(labels, ZSTD_LEVEL))?;
    frame.ok().filter(|frame| frame.len() < labels.len())
}

pub fn series_scan(shard: u8) -> Scan {
    Scan::all(Table::Series, [shard])
}

#[derive(Debug, PartialEq)]
pub struct SeriesRow {
    pub kind: Kind,
    pub group: SeriesId,
    /// Labels of the members, ordered by member number; at least one.
    pub members: Vec<Labels>,
}

/// Kind and group in the key of a row of the Series table.
pub fn series_key(clustering: &[u8]) -> Result<(Kind, SeriesId)> {
    let kind = clustering.first().copied().and_then(Kind::from_byte);
    let kind = kind.ok_or_else(|| Error::corrupt("series row of an unknown kind"))?;
    let group = clustering.get(1..).and_then(|id| id.try_into().ok());
    let group = group.ok_or_else(|| Error::corrupt("series row without an id of 16 bytes"))?;
    Ok((kind, SeriesId(u128::from_be_bytes(group))))
}

/// # Errors
/// `Version` for a row of a newer version, `Corrupt` for a malformed row.
pub fn decode_series(row: &Row, families: &mut Families) -> Result<SeriesRow> {
    let mut all = Vec::new();
    let (kind, group) = each_member(row, &mut Unfolding::default(), |_, canonical| {
        all.push(families.read(canonical)?);
        Ok(())
    })?;
    Ok(SeriesRow { kind, group, members: all })
}

/// The state of the decompression. Creating the state takes longer than decompressing one row, so callers use it for many rows.
#[derive(Default)]
pub struct Unfolding(Option<zstd::bulk::Decompressor<'static>>);

impl Unfolding {
    fn decompress(&mut self, frame: &[u8]) -> io::Result<Vec<u8>> {
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        decompressor.decompress(frame, LABELS_BYTES_MAX)
    }
}

/// Decodes a row of the Series table. Passes the kind and the canonical labels of each member to `each`, in order.
///
/// # Errors
/// Like [`decode_series`].
pub fn each_member(
    row: &Row,
    unfolding: &mut Unfolding,
    mut each: impl FnMut(Kind, &[u8]) -> Result<(), LabelError>,
) -> Result<(Kind, SeriesId)> {
    let (kind, group) = series_key(&row.clustering)?;
    match row.value.split_first() {
        Some((1, canonical)) => {
            each(kind, canonical).map_err(|e| Error::corrupt("series row").caused_by(e))?;
        }
        Some((&VERSION, rest)) => {
            let each = |canonical: &[u8]| each(kind, canonical);
            members(rest, unfolding, each).map_err(|e| Error::corrupt("series row").caused_by(e))?;
        }
        _ => {
            check_series_version(row)?;
            return Err(Error::corrupt("series row is malformed"));
        }
    }
    Ok((kind, group))
}

/// # Errors
/// `Version` for a row of the Series table with a newer version.
pub fn check_series_version(row: &Row) -> Result<()> {
    match row.value.first() {
        Some(&version) if version > VERSION => Err(newer("series row", version.into(), VERSION.into())),
        _ => Ok(()),
    }
}

fn members(
    bytes: &[u8],
    unfolding: &mut Unfolding,
    mut each: impl FnMut(&[u8]) -> Result<(), LabelError>,
) -> Result<(), Malformed> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.varint("number of members")?;
    let count = usize::try_from(count).ok().filter(|count| (1..=GROUP_MEMBERS_MAX).contains(count));
    let count = count.ok_or(cursor.malformed("number of members"))?;
    let compression = cursor.byte("compression")?;
    let unfolded = match compression {
        PLAIN => None,
        ZSTD => {
            let frame = cursor.rest();
            let bytes = unfolding.decompress(frame);
            Some(bytes.map_err(|_| cursor.malformed("frame of labels"))?)
        }
        _ => return Err(cursor.malformed("compression")),
    };
    let mut cursor = unfolded.as_deref().map_or(cursor, Cursor::new);
    let mut last = Vec::new();
    for _ in 0..count {
        let shared = cursor.count_up_to(last.len(), "shared bytes of labels")?;
        last.truncate(shared);
        last.extend_from_slice(cursor.string("labels")?);
        each(&last).map_err(|_| cursor.malformed("canonical labels"))?;
    }
    if cursor.is_empty() { Ok(()) } else { Err(cursor.malformed("end of the row")) }
}

/// The prefix of a row that a merge wrote. It describes the range of rows in the same partition that this row replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replacement {
    /// Sequence number of the merge (`upkeep/sequence.rs`). It is above the merge numbers of the replaced rows. A row without a
    /// prefix has merge number 0.
    pub merge: u64,
    /// The replaced rows start in this range.
    pub starts: TimeRange,
    /// The newest generation of the replaced rows.
    pub through: u64,
}

const MAGIC: &[u8; 4] = b"TREP";
/// The version that is written without an overhang. Version 1, which has no checksum, can be read.
const REPLACEMENT_VERSION: u8 = 2;
/// The version that is written with an overhang.
const OVERHANG_VERSION: u8 = 3;
/// First bytes of a chunk, and so of a row without a prefix.
const CHUNK_MAGIC: &[u8; 4] = b"TCHK";

impl Replacement {
    /// Whether a row with this prefix replaces the row of the same partition with this `key` and the merge number `merge`.
    pub fn replaces(&self, key: &ChunkKey, merge: u64) -> bool {
        self.starts.contains(key.start) && key.generation <= self.through && merge < self.merge
    }

    /// The value of a row: this prefix, followed by the chunk.
    pub fn encode(&self, overhang: Overhang, chunk: &[u8]) -> Bytes {
        let hangs = overhang != Overhang::default();
        let mut out = Vec::with_capacity(68 + chunk.len());
        out.extend_from_slice(MAGIC);
        out.push(if hangs { OVERHANG_VERSION } else { REPLACEMENT_VERSION });
        put_varint(&mut out, self.merge);
        out.extend_from_slice(&self.starts.start.to_le_bytes());
        out.extend_from_slice(&self.starts.end.to_le_bytes());
        out.extend_from_slice(&self.through.to_le_bytes());
        if hangs {
            put_varint(&mut out, overhang.before);
            put_varint(&mut out, overhang.after);
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(chunk);
        out.into()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    pub replacement: Option<Replacement>,
    pub overhang: Overhang,
    pub chunk: Bytes,
}

/// # Errors
/// `Version` for a prefix of a newer version, `Corrupt` for a damaged prefix.
pub fn split_value(value: &Bytes) -> Result<Split> {
    let Prefix { replacement, overhang, bytes, .. } = take_prefix(value)?.sound()?;
    Ok(Split { replacement, overhang, chunk: value.slice(bytes..) })
}

/// The usable part of a value whose prefix or chunk is damaged.
pub struct Remains {
    /// The row's own merge number. `None` if it is not certain; then no row may replace this row.
    pub merge: Option<u64>,
    /// The bytes that may be a chunk. A chunk has its own checksums.
    pub chunk: Bytes,
}

pub fn remains(value: &Bytes) -> Remains {
    match take_prefix(value) {
        Ok(Prefix { replacement, bytes, sum, .. }) => {
            let merge = match (replacement, sum) {
                (Some(replacement), Sum::Right) => Some(replacement.merge),
                (None, _) if value.starts_with(CHUNK_MAGIC) => Some(0),
                _ => None,
            };
            Remains { merge, chunk: value.slice(bytes..) }
        }
        Err(_) => Remains { merge: None, chunk: Bytes::new() },
    }
}

/// Length of the prefix, from the first bytes of a row's value. `None` if these bytes are damaged or too few, or the prefix has a
/// newer version.
pub fn replacement_bytes(front: &[u8]) -> Option<usize> {
    take_prefix(front).and_then(Prefix::sound).ok().map(|prefix| prefix.bytes)
}

/// The bytes before a chunk.
struct Prefix {
    replacement: Option<Replacement>,
    overhang: Overhang,
    bytes: usize,
    sum: Sum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sum {
    Right,
    Wrong {
        stored: u32,
        computed: u32,
    },
    /// There is no prefix, or a prefix of version 1, which has no checksum.
    Absent,
}

impl Prefix {
    fn sound(self) -> Result<Self> {
        let Sum::Wrong { stored, computed } = self.sum else { return Ok(self) };
        let message = format!("replacement checksum mismatch: expected 0x{stored:08x}, got 0x{computed:08x}");
        Err(Error::corrupt(message))
    }
}

/// The caller decides about a wrong checksum.
fn take_prefix(value: &[u8]) -> Result<Prefix> {
    let Some(rest) = value.strip_prefix(MAGIC) else {
        if !value.starts_with(CHUNK_MAGIC) && !value.is_empty() {
            return Err(Error::corrupt("row begins with neither a chunk nor a replacement"));
        }
        return Ok(Prefix { replacement: None, overhang: Overhang::default(), bytes: 0, sum: Sum::Absent });
    };
    let mut cursor = Cursor::new(rest);
    let version = cursor.byte("version").unwrap_or(0);
    if version > OVERHANG_VERSION {
        return Err(newer("replacement", version.into(), OVERHANG_VERSION.into()));
    }
    if version == 0 {
        return Err(Error::corrupt("replacement has no version"));
    }
    let mut read = || -> Result<(Replacement, Overhang), Malformed> {
        let merge = cursor.varint("merge")?;
        let starts = TimeRange::new(
            i64::from_le_bytes(cursor.array("from")?),
            i64::from_le_bytes(cursor.array("to")?),
        );
        let replacement =
            Replacement { merge, starts, through: u64::from_le_bytes(cursor.array("through")?) };
        let mut overhang = Overhang::default();
        if version == OVERHANG_VERSION {
            overhang = Overhang { before: cursor.varint("before")?, after: cursor.varint("after")? };
        }
        Ok((replacement, overhang))
    };
    let malformed = |e: Malformed| Error::corrupt("replacement").caused_by(e);
    let (replacement, overhang) = read().map_err(malformed)?;
    let computed = crc32c::crc32c(value.get(..value.len() - cursor.rest().len()).unwrap_or_default());
    let sum = match version {
        REPLACEMENT_VERSION | OVERHANG_VERSION => {
            match u32::from_le_bytes(cursor.array("checksum").map_err(malformed)?) {
                stored if stored == computed => Sum::Right,
                stored => Sum::Wrong { stored, computed },
            }
        }
        // One flipped bit turns version 3 into version 1, which has no checksum. Then the overhang follows here and not a chunk,
        // so the value is refused below.
        _ if cursor.rest().is_empty() || cursor.rest().starts_with(CHUNK_MAGIC) => Sum::Absent,
        _ => return Err(Error::corrupt("replacement is followed by no chunk")),
    };
    Ok(Prefix { replacement: Some(replacement), overhang, bytes: value.len() - cursor.rest().len(), sum })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Span;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().copied()).unwrap()
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn the_row_equals_the_format_page() {
        let (cpu, mem) =
            (labels(&[("__name__", "cpu"), ("host", "a")]), labels(&[("__name__", "mem"), ("host", "a")]));
        let row = series_row(Kind::Sample, SeriesId(7), &[&cpu, &mem]);
        let first = "0014".to_owned() + "5f5f6e616d655f5fff637075ff686f7374ff61ff";
        assert_eq!(hex(&row.value), "020200".to_owned() + &first + "090b" + "6d656dff686f7374ff61ff");
        assert_eq!(
            decode_series(&row, &mut Families::default()).unwrap(),
            SeriesRow { kind: Kind::Sample, group: SeriesId(7), members: vec![cpu, mem] }
        );
    }

    #[test]
    fn many_members_are_compressed_and_version_one_is_read() {
        let members: Vec<Labels> = (0..64)
            .map(|n| labels(&[("__name__", &format!("metric_{n}")), ("host", "h-1"), ("zone", "z")]))
            .collect();
        let row = series_row(Kind::Sample, SeriesId(7), &members.iter().collect::<Vec<_>>());
        let plain: usize = members.iter().map(|m| m.canonical().len()).sum();
        assert!(row.value.len() * 3 < plain, "{} of {plain} bytes", row.value.len());
        assert_eq!(decode_series(&row, &mut Families::default()).unwrap().members, members);

        let old = Row { value: [&[1][..], &members[3].canonical()].concat().into(), ..row };
        assert_eq!(
            decode_series(&old, &mut Families::default()).unwrap(),
            SeriesRow { kind: Kind::Sample, group: SeriesId(7), members: vec![members[3].clone()] }
        );
    }

    #[test]
    fn broken_rows_are_refused() {
        let check = |value: &[u8], says: &str| {
            let row = series_row(Kind::Entry, SeriesId(1), &[&Labels::empty()]);
            let row = Row { value: value.to_vec().into(), ..row };
            let error = decode_series(&row, &mut Families::default()).unwrap_err();
            assert!(error.to_string().contains(says), "{error}");
        };
        check(&[], "series row is malformed");
        check(&[3, 1, 0, 0, 0], "series row has version 3, this program reads up to 2");
        check(&[2, 0, 0], "malformed number of members");
        check(&[2, 65, 0], "malformed number of members");
        check(&[2, 1, 7, 0, 0], "malformed compression");
        check(&[2, 1, 1, 9, 9], "malformed frame of labels");
        check(&[2, 1, 0, 1, 0], "malformed shared bytes of labels");
        check(&[2, 1, 0, 0, 5, b'a'], "malformed labels");
        check(&[2, 1, 0, 0, 1, b'a'], "malformed canonical labels");
        check(&[2, 1, 0, 0, 0, 9], "malformed end of the row");
    }

    /// The golden files are never regenerated.
    #[test]
    fn rows_of_all_versions_are_read() {
        let testdata = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        let read = |name: &str| Bytes::from(std::fs::read(testdata.join(name)).unwrap());
        let chunk = read("chunk/samples-step.chunk");
        let replacement = Replacement { merge: 1, starts: TimeRange::new(1, 9), through: 7 };
        let (none, overhang) = (Overhang::default(), Overhang { before: 2, after: 300 });
        for (version, overhang) in [(1, none), (2, none), (3, overhang)] {
            let split = Split { replacement: Some(replacement), overhang, chunk: chunk.clone() };
            let row = read(&format!("replacement/v{version}.row"));
            assert_eq!(split_value(&row).unwrap(), split, "version {version}");
            if version > 1 {
                assert_eq!(replacement.encode(overhang, &chunk), row);
            }
        }
    }

    #[test]
    fn a_replacement_replaces_older_rows_that_start_in_its_range() {
        let replacement = Replacement { merge: 1, starts: TimeRange::new(1, 9), through: 7 };
        let drawn = |version| {
            format!("54524550{version:02x}")
                + "01"
                + "0100000000000000"
                + "0900000000000000"
                + "0700000000000000"
        };
        let chunk = hex(b"chunk");
        let overhang = Overhang { before: 2, after: 300 };
        for (overhang, drawn) in [
            (Overhang::default(), drawn(2) + "383e6054" + &chunk),
            (overhang, drawn(3) + "02" + "ac02" + "5e5ad912" + &chunk),
        ] {
            let value = replacement.encode(overhang, b"chunk");
            assert_eq!(hex(&value), drawn);
            let split =
                Split { replacement: Some(replacement), overhang, chunk: Bytes::from_static(b"chunk") };
            assert_eq!(split_value(&value).unwrap(), split);
            for cut in 4..value.len() - 5 {
                assert!(split_value(&value.slice(..cut)).is_err(), "cut at {cut}");
            }
            let prefix = value.len() - b"chunk".len();
            for bit in 0..prefix * 8 {
                let mut damaged = value.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let damaged = Bytes::from(damaged);
                assert!(split_value(&damaged).is_err() && remains(&damaged).merge.is_none(), "bit {bit}");
            }
            assert_eq!(remains(&value).merge, Some(1));
        }
        let plain = Bytes::from_static(b"TCHK");
        let split = Split { replacement: None, overhang: Overhang::default(), chunk: plain.clone() };
        assert_eq!(split_value(&plain).unwrap(), split);
        let newer = Bytes::from_static(b"TREP\x04");
        assert_eq!(split_value(&newer).unwrap_err().kind(), crate::ErrorKind::Version);
        assert_eq!(remains(&Bytes::from_static(b"TCHK..")).merge, Some(0));

        let dead = |start, generation, merge| {
            let key = ChunkKey { span: Span::Short, start, generation, number: 0 };
            replacement.replaces(&key, merge)
        };
        assert_eq!([dead(1, 7, 0), dead(9, 1, 0), dead(0, 7, 0), dead(10, 7, 0)], [true, true, false, false]);
        assert_eq!([dead(1, 8, 0), dead(1, 7, 1)], [false, false]);
    }
}
