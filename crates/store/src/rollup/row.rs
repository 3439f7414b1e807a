//! The row of a roll-up: which chunks it sums up, and their summary (`docs/format/keys.md`, *Roll-ups*).
//!
//! The row has a head and a body, each with its own checksum. A reader first reads only the heads.

use std::ops::Range;

use bytes::Bytes;
use tacho_chunk::CallSummary;
use tacho_model::{SeriesId, TimeRange, Timestamp};

use crate::coding::{Cursor, Malformed, put_varint, put_zigzag};
use crate::driver::{Delete, Row, Scan, Table};
use crate::group::row::Replacement;
use crate::keys::{CHUNK_KEY_BYTES, ChunkKey, Span, VERSION, malformed, newer, shown};
use crate::{Error, Result};

/// Start of the partitions of roll-ups. The id of the series follows.
pub const ROLLUPS: &[u8] = b"rollups";
const MAGIC: &[u8; 4] = b"TRUP";
const VALUE_VERSION: u8 = 2;
/// Version of heads without the number of segments.
const UNCOUNTED_VERSION: u8 = 1;
/// Magic, version, and length of the head.
const PREFIX_BYTES: usize = 9;
/// Limit on the chunks of a roll-up.
pub const ROLLUP_CHUNKS_MAX: usize = 1 << 16;
/// A chunk takes at least four bytes in a head: four numbers.
const CHUNK_BYTES_MIN: usize = 4;
const DAY_NS: i64 = 86_400 * 1_000_000_000;

/// Level of the roll-up of a whole day. A roll-up of chunks has level 1, a roll-up of roll-ups of level `n` has level `n + 1`.
pub const DAY_LEVEL: u8 = u8::MAX;

/// Key of a roll-up in the partition of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RollupKey {
    /// The day (UTC) in which all its chunks begin, since the Unix epoch.
    pub day: i64,
    pub level: u8,
    /// The first of its chunks.
    pub first: ChunkKey,
}

/// A chunk of a roll-up, with the facts that decide which rows of the partition are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RolledChunk {
    pub key: ChunkKey,
    /// Of a chunk that a merge wrote.
    pub replacement: Option<Replacement>,
}

/// The head of a roll-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollup {
    pub key: RollupKey,
    /// Ascending by key.
    pub chunks: Vec<RolledChunk>,
    /// First and last time of the chunks, both inclusive.
    pub range: TimeRange,
    /// Number of segments of the chunks; 0 if it is not known.
    pub segments: u64,
}

pub const fn day_of(start: Timestamp) -> i64 {
    start.div_euclid(DAY_NS)
}

/// All times of a day.
pub const fn range_of(day: i64) -> TimeRange {
    let start = day.saturating_mul(DAY_NS);
    TimeRange::new(start, start.saturating_add(DAY_NS - 1))
}

pub fn partition(series: SeriesId) -> Vec<u8> {
    [ROLLUPS, &series.to_bytes()].concat()
}

/// The series of a partition; `None` if the partition is not one of roll-ups.
pub fn series_of(partition: &[u8]) -> Option<SeriesId> {
    let id = partition.strip_prefix(ROLLUPS)?.try_into().ok()?;
    Some(SeriesId(u128::from_be_bytes(id)))
}

impl RollupKey {
    pub fn encode(&self) -> Vec<u8> {
        let mut key = day_prefix(self.day);
        key.push(self.level);
        key.extend_from_slice(&self.first.encode());
        key
    }

    /// # Errors
    /// `Version` for a key of a newer version, `Corrupt` for a malformed key.
    pub fn decode(clustering: &[u8]) -> Result<Self> {
        let wrong = || {
            let message = format!("key of a roll-up has {} bytes and is malformed", clustering.len());
            Error::corrupt(message).with("key", shown(clustering))
        };
        let (version, rest) = clustering.split_first().ok_or_else(wrong)?;
        if *version > VERSION {
            let error = newer("key of a roll-up", (*version).into(), VERSION.into());
            return Err(error.with("key", shown(clustering)));
        }
        if *version != VERSION || rest.len() != 9 + CHUNK_KEY_BYTES {
            return Err(wrong());
        }
        let (day, rest) = rest.split_first_chunk().ok_or_else(wrong)?;
        let (level, first) = rest.split_first().ok_or_else(wrong)?;
        let day = (u64::from_be_bytes(*day) ^ SIGN).cast_signed();
        Ok(Self { day, level: *level, first: ChunkKey::decode(first)? })
    }
}

const SIGN: u64 = 1 << 63;

fn day_prefix(day: i64) -> Vec<u8> {
    let mut key = vec![VERSION];
    key.extend_from_slice(&(day.cast_unsigned() ^ SIGN).to_be_bytes());
    key
}

/// Scan for the roll-ups of these days, both inclusive.
pub fn days_scan(series: SeriesId, (first, last): (i64, i64)) -> Scan {
    use std::ops::Bound;
    let to = last.checked_add(1).map_or(Bound::Unbounded, |after| Bound::Excluded(day_prefix(after)));
    Scan { from: Bound::Included(day_prefix(first)), to, ..Scan::all(Table::Meta, partition(series)) }
}

pub fn row_scan(series: SeriesId, key: &RollupKey) -> Scan {
    use std::ops::Bound;
    let key = key.encode();
    let (from, to) = (Bound::Included(key.clone()), Bound::Included(key));
    Scan { from, to, ..Scan::all(Table::Meta, partition(series)) }
}

/// Deletes the row with this clustering.
pub fn delete_row(series: SeriesId, clustering: &[u8]) -> Delete {
    Delete::row(Table::Meta, partition(series), clustering)
}

/// The row of a roll-up with this head.
pub fn row(series: SeriesId, rollup: &Rollup, summary: &CallSummary) -> Row {
    let head = encode_head(rollup);
    let mut value = MAGIC.to_vec();
    value.push(VALUE_VERSION);
    value.extend_from_slice(&u32::try_from(head.len()).unwrap_or(u32::MAX).to_le_bytes());
    value.extend_from_slice(&head);
    put_checksum(&mut value, 0);
    let body = value.len();
    value.extend_from_slice(&summary.encode_with_names());
    put_checksum(&mut value, body);
    let (partition, clustering) = (partition(series), rollup.key.encode());
    Row { table: Table::Meta, partition, clustering, value: value.into() }
}

/// Appends the checksum of the bytes from `from` on.
fn put_checksum(value: &mut Vec<u8>, from: usize) {
    let checksum = crc32c::crc32c(value.get(from..).unwrap_or_default());
    value.extend_from_slice(&checksum.to_le_bytes());
}

fn encode_head(rollup: &Rollup) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, rollup.chunks.len() as u64);
    let (mut start, mut generation) = (0i64, 0i64);
    for RolledChunk { key, replacement } in &rollup.chunks {
        put_zigzag(&mut out, key.start.wrapping_sub(std::mem::replace(&mut start, key.start)));
        let own = key.generation.cast_signed();
        put_zigzag(&mut out, own.wrapping_sub(std::mem::replace(&mut generation, own)));
        put_varint(&mut out, key.number.into());
        let Some(replacement) = replacement else {
            put_varint(&mut out, 0);
            continue;
        };
        put_varint(&mut out, 1);
        put_varint(&mut out, replacement.merge);
        put_zigzag(&mut out, replacement.starts.start.wrapping_sub(start));
        put_zigzag(&mut out, replacement.starts.end.wrapping_sub(start));
        put_zigzag(&mut out, replacement.through.cast_signed().wrapping_sub(own));
    }
    put_zigzag(&mut out, rollup.range.start.wrapping_sub(start));
    put_zigzag(&mut out, rollup.range.end.wrapping_sub(start));
    put_varint(&mut out, rollup.segments);
    out
}

fn decode_head(bytes: &[u8], version: u8) -> Result<(Vec<RolledChunk>, TimeRange, u64), Malformed> {
    let mut cursor = Cursor::new(bytes);
    let count = cursor.count(CHUNK_BYTES_MIN, "number of chunks")?;
    if count == 0 || count > ROLLUP_CHUNKS_MAX {
        return Err(cursor.malformed("number of chunks"));
    }
    let (mut start, mut generation) = (0i64, 0i64);
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        start = start.wrapping_add(cursor.zigzag("start of a chunk")?);
        generation = generation.wrapping_add(cursor.zigzag("generation of a chunk")?);
        let number = cursor.varint_u32("number of a chunk")?;
        let replacement = match cursor.varint("replacement of a chunk")? {
            0 => None,
            1 => {
                let merge = cursor.varint("merge")?;
                let from = start.wrapping_add(cursor.zigzag("from")?);
                let to = start.wrapping_add(cursor.zigzag("to")?);
                let through = generation.wrapping_add(cursor.zigzag("through")?).cast_unsigned();
                Some(Replacement { merge, starts: TimeRange::new(from, to), through })
            }
            _ => return Err(cursor.malformed("replacement of a chunk")),
        };
        let key = ChunkKey { span: Span::Short, start, generation: generation.cast_unsigned(), number };
        chunks.push(RolledChunk { key, replacement });
    }
    let from = start.wrapping_add(cursor.zigzag("first time")?);
    let to = start.wrapping_add(cursor.zigzag("last time")?);
    let segments = if version > UNCOUNTED_VERSION { cursor.varint("number of segments")? } else { 0 };
    if cursor.is_empty() {
        Ok((chunks, TimeRange::new(from, to), segments))
    } else {
        Err(cursor.malformed("end of the head"))
    }
}

/// The parts of a value that [`Rollup::decode`] needs.
pub fn head_parts(front: &[u8]) -> Option<Vec<Range<usize>>> {
    let (_, end) = head_range(front)?;
    Some(std::iter::once(0..end).collect())
}

/// The end of the head, and the end of its checksum.
fn head_range(value: &[u8]) -> Option<(usize, usize)> {
    let length = value.get(PREFIX_BYTES - 4..PREFIX_BYTES)?.try_into().ok()?;
    let end = PREFIX_BYTES.checked_add(usize::try_from(u32::from_le_bytes(length)).ok()?)?;
    Some((end, end.checked_add(4)?))
}

/// Checks magic and version, and returns the version. The value may be cut after the head.
fn check_version(row: &Row) -> Result<u8> {
    match row.value.strip_prefix(MAGIC).and_then(<[u8]>::first) {
        Some(&version @ (UNCOUNTED_VERSION | VALUE_VERSION)) => Ok(version),
        Some(&version) if version > VALUE_VERSION => {
            let error = newer("roll-up", version.into(), VALUE_VERSION.into());
            Err(error.with("key", shown(&row.clustering)))
        }
        _ => Err(malformed("roll-up", row)),
    }
}

fn check(what: &str, bytes: &[u8], stored: &[u8]) -> Result<()> {
    let computed = crc32c::crc32c(bytes);
    if stored == computed.to_le_bytes() {
        return Ok(());
    }
    Err(Error::corrupt(format!("the checksum of the {what} of a roll-up does not match")))
}

impl Rollup {
    /// Decodes the head of a row.
    ///
    /// # Errors
    /// `Version` for a row of a newer version, `Corrupt` for a damaged or malformed head.
    pub fn decode(row: &Row) -> Result<Self> {
        let key = RollupKey::decode(&row.clustering)?;
        let version = check_version(row)?;
        let malformed = || malformed("roll-up", row);
        let (end, body) = head_range(&row.value).ok_or_else(malformed)?;
        let (head, checksum) = (row.value.get(..end).ok_or_else(malformed)?, row.value.get(end..body));
        check("head", head, checksum.ok_or_else(malformed)?)?;
        let decoded = decode_head(head.get(PREFIX_BYTES..).unwrap_or_default(), version);
        let (chunks, range, segments) = decoded.map_err(|e| malformed().caused_by(e))?;
        let is_of_day = |chunk: &RolledChunk| day_of(chunk.key.start) == key.day;
        let is_first = chunks.first().is_some_and(|chunk| chunk.key == key.first);
        let is_ordered = chunks.is_sorted_by(|a, b| order(&a.key) < order(&b.key));
        if !is_first || !is_ordered || !chunks.iter().all(is_of_day) {
            return Err(malformed());
        }
        Ok(Self { key, chunks, range, segments })
    }

    /// The first and the last generation of its chunks.
    pub fn generations(&self) -> (u64, u64) {
        let generations = || self.chunks.iter().map(|chunk| chunk.key.generation);
        (generations().min().unwrap_or(u64::MAX), generations().max().unwrap_or(u64::MAX))
    }
}

/// The order of the chunks of a partition: that of their encoded keys.
pub const fn order(key: &ChunkKey) -> (u8, i64, u64, u32) {
    (key.span as u8, key.start, key.generation, key.number)
}

/// The summary in a whole row.
///
/// # Errors
/// `Version` for a row of a newer version, `Corrupt` for a damaged or malformed body.
pub fn summary(row: &Row) -> Result<CallSummary> {
    check_version(row)?;
    let malformed = || malformed("roll-up", row);
    let value: &Bytes = &row.value;
    let (_, body) = head_range(value).ok_or_else(malformed)?;
    let end = value.len().checked_sub(4).filter(|end| *end >= body).ok_or_else(malformed)?;
    let bytes = value.get(body..end).ok_or_else(malformed)?;
    check("body", bytes, value.get(end..).unwrap_or_default())?;
    CallSummary::decode_with_names(bytes).map_err(|error| match error {
        tacho_chunk::Error::SummaryVersion { got, known } => {
            newer("summary of a roll-up", got.into(), known.into()).with("key", shown(&row.clustering))
        }
        error => malformed().caused_by(error),
    })
}

/// A block with one call, for tests of rows with summaries.
#[cfg(test)]
pub fn block_of_one_call() -> tacho_chunk::ExecutionBlock {
    use tacho_model::{Event, EventKind, Operation, OperationKind, Segment, TraceId};
    let events = [(0, EventKind::Enter(0)), (7, EventKind::Exit)];
    let segment = Segment {
        trace: TraceId(1),
        base: 1,
        part: 0,
        parent: None,
        thread: "t".into(),
        start: 0,
        carried: vec![],
        first_call: 0,
        events: events.map(|(delta, kind)| Event { delta, kind }).to_vec(),
        attributes: vec![],
    };
    let mut block = tacho_chunk::ExecutionBlock::new();
    block.push(&segment, &[Operation { kind: OperationKind::Method, name: "m".into() }]);
    block
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ErrorKind;

    fn summary_of_one_call() -> CallSummary {
        CallSummary::of(&block_of_one_call()).unwrap()
    }

    fn rollup(chunks: Vec<RolledChunk>) -> Rollup {
        let first = chunks[0].key;
        let key = RollupKey { day: day_of(first.start), level: 1, first };
        Rollup {
            key,
            chunks,
            range: TimeRange::new(first.start, first.start.saturating_add(9)),
            segments: 300,
        }
    }

    fn chunk(start: i64, generation: u64, number: u32, merge: Option<u64>) -> RolledChunk {
        let replacement = merge.map(|merge| Replacement {
            merge,
            starts: TimeRange::new(start, start.saturating_add(merge.cast_signed())),
            through: generation,
        });
        RolledChunk { key: ChunkKey { span: Span::Short, start, generation, number }, replacement }
    }

    proptest! {
        #[test]
        fn rows_decode_unchanged(
            day in prop::sample::select(vec![i64::MIN / DAY_NS, -1, 0, 20_000, i64::MAX / DAY_NS - 1]),
            chunks in prop::collection::btree_map(
                (0..DAY_NS, any::<u64>(), any::<u32>()), prop::option::of(0u64..1 << 50), 1..40,
            ),
        ) {
            let start = range_of(day).start;
            let all = chunks.into_iter().map(|((at, generation, number), merge)| {
                chunk(start.saturating_add(at), generation, number, merge)
            });
            let written = rollup(all.filter(|chunk| day_of(chunk.key.start) == day).collect());
            let row = row(SeriesId(7), &written, &summary_of_one_call());
            prop_assert_eq!(RollupKey::decode(&row.clustering).unwrap(), written.key);
            prop_assert_eq!(&Rollup::decode(&row).unwrap(), &written);
            prop_assert_eq!(summary(&row).unwrap(), summary_of_one_call());
            let head = head_parts(&row.value).unwrap().remove(0);
            let cut = Row { value: row.value.slice(head), ..row };
            prop_assert_eq!(&Rollup::decode(&cut).unwrap(), &written);
        }
    }

    #[test]
    fn keys_sort_by_day_and_level() {
        let key = |day, level| RollupKey { day, level, first: chunk(day * DAY_NS, 1, 2, None).key }.encode();
        assert!([key(-2, 1), key(-1, 1), key(-1, 255), key(0, 1), key(0, 2)].is_sorted());
        use std::ops::RangeBounds;
        let scan = days_scan(SeriesId(1), (-1, 0));
        let is_in = |key: Vec<u8>| (scan.from.clone(), scan.to.clone()).contains(&key);
        assert_eq!([-2, -1, 0, 1].map(|day| is_in(key(day, 255))), [false, true, true, false]);
        assert_eq!(series_of(&partition(SeriesId(9))), Some(SeriesId(9)));
        assert_eq!([series_of(b"rollups"), series_of(b"lives")], [None, None]);
    }

    #[test]
    fn damaged_rows_are_refused() {
        let written = rollup(vec![chunk(5, 7, 1, None), chunk(9, 6, 0x8000_0001, Some(4))]);
        let row = row(SeriesId(7), &written, &summary_of_one_call());
        let (head, body) = head_range(&row.value).unwrap();
        for at in 0..row.value.len() {
            for bit in [1, 0x80] {
                let mut value = row.value.to_vec();
                value[at] ^= bit;
                let changed = Row { value: value.into(), ..row.clone() };
                let is_read = [Rollup::decode(&changed).is_ok(), summary(&changed).is_ok()];
                // Each checksum covers its part. A changed length shows in one of the parts.
                let expect = if at < 5 { [false, false] } else { [at >= body, at < body] };
                assert!(
                    is_read == expect || at < 9 && is_read == [false, false],
                    "{at} of {head}, {body}: {is_read:?}"
                );
            }
        }
        for cut in 0..row.value.len() {
            let changed = Row { value: row.value.slice(..cut), ..row.clone() };
            assert_eq!(
                (Rollup::decode(&changed).is_ok(), summary(&changed).is_ok()),
                (cut >= body, false),
                "{cut}"
            );
        }
        let newer = [b"TRUP\x03", &row.value[5..]].concat();
        let newer = Rollup::decode(&Row { value: newer.into(), ..row.clone() }).unwrap_err();
        assert_eq!(newer.kind(), ErrorKind::Version);
        assert!(
            newer.to_string().starts_with("roll-up has version 3, this program reads up to 2 (key "),
            "{newer}"
        );
        // Facts that contradict each other, with correct checksums.
        let wrong = |change: fn(&mut Rollup)| {
            let mut rollup = written.clone();
            change(&mut rollup);
            Rollup::decode(&super::row(SeriesId(7), &rollup, &summary_of_one_call())).unwrap_err().kind()
        };
        let changes: [fn(&mut Rollup); 5] = [
            |rollup| rollup.chunks.clear(),
            |rollup| rollup.chunks.swap(0, 1),
            |rollup| rollup.chunks[1] = rollup.chunks[0],
            |rollup| rollup.key.day = 1,
            |rollup| rollup.chunks[1].key.start += DAY_NS,
        ];
        assert!(changes.into_iter().all(|change| wrong(change) == ErrorKind::Corrupt));
    }

    #[test]
    fn heads_of_version_1_have_no_number_of_segments() {
        let written = rollup(vec![chunk(5, 7, 1, None)]);
        let row = row(SeriesId(7), &written, &summary_of_one_call());
        let (end, body) = head_range(&row.value).unwrap();
        // 300 takes two bytes.
        let head = &row.value[PREFIX_BYTES..end - 2];
        let length = u32::try_from(head.len()).unwrap().to_le_bytes();
        let mut value = [&b"TRUP\x01"[..], &length, head].concat();
        put_checksum(&mut value, 0);
        value.extend_from_slice(&row.value[body..]);
        let older = Row { value: value.into(), ..row };
        assert_eq!(Rollup::decode(&older).unwrap(), Rollup { segments: 0, ..written });
        assert_eq!(summary(&older).unwrap(), summary_of_one_call());
    }

    #[test]
    fn the_row_matches_the_format_page() {
        let written = rollup(vec![chunk(5, 7, 1, None), chunk(9, 6, 0x8000_0001, Some(4))]);
        let row = row(SeriesId(7), &written, &summary_of_one_call());
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (_, body) = head_range(&row.value).unwrap();
        let page = include_str!("../../../../docs/format/keys.md");
        let shown = hex(&row.value[..body]);
        assert!(page.contains(&shown), "the head of the example in docs/format/keys.md must be {shown}");
    }
}
