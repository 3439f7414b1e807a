//! Keys of chunks, series and facts about the store (`docs/format/keys.md`).

use std::ops::Bound;

use bytes::Bytes;
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use crate::driver::{Row, Scan, Table};
use crate::journal::format::Older;
use crate::sessions::Session;
use crate::stats::Stored;
use crate::{Error, ErrorKind, Result};

pub const VERSION: u8 = 1;
/// Version of the whole store: its keys, its rows and their meaning.
pub const STORE_VERSION: u16 = 2;
const DAY_NS: u64 = 86_400 * 1_000_000_000;
/// The longest time that a chunk of span class `Short` covers, ns: two days. A scan for chunks begins this much before the range
/// of the read.
pub const CHUNK_SPAN_MAX_NS: u64 = 2 * DAY_NS;
/// The longest time that a chunk of span class `Wide` covers, ns.
pub const CHUNK_WIDE_SPAN_MAX_NS: u64 = 32 * DAY_NS;

/// Span class of a chunk. It determines how far before the range of a read the chunk may start and still overlap the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Span {
    /// At most [`CHUNK_SPAN_MAX_NS`].
    Short = 0,
    /// Of any length. Only few chunks of executions have this class: chunks of segments that last more than a day. The duration
    /// of a segment begins with the oldest call that it carries.
    Long = 1,
    /// At most [`CHUNK_WIDE_SPAN_MAX_NS`]: only chunks of samples and entries that a merge wrote.
    Wide = 2,
}

impl Span {
    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Short),
            1 => Some(Self::Long),
            2 => Some(Self::Wide),
            _ => None,
        }
    }

    /// The longest time from first to last record, ns.
    pub const fn span_max_ns(self) -> u64 {
        match self {
            Self::Short => CHUNK_SPAN_MAX_NS,
            Self::Wide => CHUNK_WIDE_SPAN_MAX_NS,
            Self::Long => u64::MAX,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkKey {
    pub span: Span,
    pub start: Timestamp,
    pub generation: u64,
    pub number: u32,
}

pub const CHUNK_KEY_BYTES: usize = 22;
const SHOWN_BYTES_MAX: usize = 32;

impl ChunkKey {
    pub fn encode(&self) -> Vec<u8> {
        let mut key = start_prefix(self.span, self.start);
        key.extend_from_slice(&self.generation.to_be_bytes());
        key.extend_from_slice(&self.number.to_be_bytes());
        key
    }

    pub fn decode(clustering: &[u8]) -> Result<Self> {
        let malformed = || {
            let message = format!("chunk key of {} bytes is malformed", clustering.len());
            Error::corrupt(message).with("key", shown(clustering))
        };
        let (&version, rest) = clustering.split_first().ok_or_else(malformed)?;
        if version > VERSION {
            return Err(newer("chunk key", version.into(), VERSION.into()).with("key", shown(clustering)));
        }
        if version != VERSION || clustering.len() != CHUNK_KEY_BYTES {
            return Err(malformed());
        }
        let (&span, rest) = rest.split_first().ok_or_else(malformed)?;
        let (start, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (generation, rest) = rest.split_first_chunk().ok_or_else(malformed)?;
        let (number, _) = rest.split_first_chunk().ok_or_else(malformed)?;
        Ok(Self {
            span: Span::from_byte(span).ok_or_else(malformed)?,
            start: (u64::from_be_bytes(*start) ^ SIGN).cast_signed(),
            generation: u64::from_be_bytes(*generation),
            number: u32::from_be_bytes(*number),
        })
    }
}

const SIGN: u64 = 1 << 63;

fn start_prefix(span: Span, start: Timestamp) -> Vec<u8> {
    let mut key = Vec::with_capacity(CHUNK_KEY_BYTES);
    key.extend_from_slice(&[VERSION, span as u8]);
    key.extend_from_slice(&(start.cast_unsigned() ^ SIGN).to_be_bytes());
    key
}

/// Partition of a chunk. For samples, `group` is the id of the group; for other kinds, the id of the series.
pub fn chunk_partition(kind: Kind, group: SeriesId) -> Vec<u8> {
    let mut partition = Vec::with_capacity(17);
    partition.push(kind as u8);
    partition.extend_from_slice(&group.to_bytes());
    partition
}

/// Kind and group of a partition; `None` if it is not a partition of the Chunks table.
pub fn chunk_place(partition: &[u8]) -> Option<(Kind, SeriesId)> {
    let (kind, group) = partition.split_first()?;
    Some((Kind::from_byte(*kind)?, SeriesId(u128::from_be_bytes(group.try_into().ok()?))))
}

/// Scan for the chunks of one span class that may overlap `range`.
pub fn chunk_scan(kind: Kind, group: SeriesId, span: Span, range: TimeRange) -> Scan {
    let first = range.start.saturating_sub_unsigned(span.span_max_ns());
    let to = match range.end.checked_add(1) {
        Some(after) => start_prefix(span, after),
        None => vec![VERSION, span as u8 + 1],
    };
    let (from, to) = (Bound::Included(start_prefix(span, first)), Bound::Excluded(to));
    Scan { from, to, ..Scan::all(Table::Chunks, chunk_partition(kind, group)) }
}

pub fn chunk_row_scan(kind: Kind, group: SeriesId, key: &ChunkKey) -> Scan {
    let (from, to) = (Bound::Included(key.encode()), Bound::Included(key.encode()));
    Scan { from, to, ..Scan::all(Table::Chunks, chunk_partition(kind, group)) }
}

/// Span classes that a kind uses. Only a call can have any duration, so only executions use `Long`.
pub const fn spans(kind: Kind) -> &'static [Span] {
    match kind {
        Kind::Sample | Kind::Entry => &[Span::Short, Span::Wide],
        Kind::Execution => &[Span::Short, Span::Long],
    }
}

pub const STORE: &[u8] = b"store";
pub const SESSIONS: &[u8] = b"sessions";
pub const IDENTITY: &[u8] = b"identity";
pub const FLUSHED: &[u8] = b"flushed";
pub const STORED: &[u8] = b"stored";
pub const SEQUENCE: &[u8] = b"named";
pub const JOURNALS: &[u8] = b"journals";
pub const CLOCK: &[u8] = b"clock";

pub fn store_scan() -> Scan {
    Scan::all(Table::Meta, STORE)
}

pub fn sessions_scan() -> Scan {
    Scan::all(Table::Meta, SESSIONS)
}

fn meta(partition: &[u8], clustering: &[u8], value: Vec<u8>) -> Row {
    let value = Bytes::from(value);
    Row { table: Table::Meta, partition: partition.to_vec(), clustering: clustering.to_vec(), value }
}

pub fn identity_row(store: u128) -> Row {
    let value = [&STORE_VERSION.to_be_bytes()[..], &store.to_be_bytes()[..]].concat();
    meta(STORE, IDENTITY, value)
}

pub fn flushed_row(generation: u64) -> Row {
    let value = [&[VERSION][..], &generation.to_be_bytes()[..]].concat();
    meta(STORE, FLUSHED, value)
}

pub fn stored_row(stored: &[Stored; 3]) -> Row {
    let mut value = vec![VERSION];
    for n in stored.iter().flat_map(|s| [s.chunks, s.bytes, s.records]) {
        value.extend_from_slice(&n.to_be_bytes());
    }
    meta(STORE, STORED, value)
}

/// The last assigned sequence number of a merge or of a row that a merge wrote (`upkeep/sequence.rs`).
pub fn sequence_row(last: u64) -> Row {
    meta(STORE, SEQUENCE, [&[VERSION][..], &last.to_be_bytes()[..]].concat())
}

/// The journal files that must exist, and a second copy of other facts. A running store writes the first copies with other
/// `put`s, so that damage of one `put` does not affect both copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journals {
    pub store: u128,
    pub flushed: u64,
    pub sequence: u64,
    /// Journals that must exist. The length of the active one is unknown (0).
    pub live: Vec<Older>,
}

impl Journals {
    /// The highest generation that this row names.
    pub fn last(&self) -> u64 {
        self.live.last().map_or(self.flushed, |last| last.generation.max(self.flushed))
    }

    pub fn row(&self) -> Row {
        let mut value = vec![VERSION];
        value.extend_from_slice(&self.store.to_be_bytes());
        for number in [self.flushed, self.sequence] {
            value.extend_from_slice(&number.to_be_bytes());
        }
        for journal in &self.live {
            value.extend_from_slice(&journal.generation.to_be_bytes());
            value.extend_from_slice(&journal.length.to_be_bytes());
        }
        meta(STORE, JOURNALS, value)
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (store, rest) = value.split_first_chunk()?;
        let (numbers, more) = rest.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_be_bytes(*number)).collect();
        let (pairs, odd) = numbers.as_chunks::<2>();
        let ([flushed, sequence], live) = pairs.split_first()?;
        let live = live.iter().map(|[generation, length]| Older { generation: *generation, length: *length });
        let store = u128::from_be_bytes(*store);
        let journals = Self { store, flushed: *flushed, sequence: *sequence, live: live.collect() };
        (more.is_empty() && odd.is_empty()).then_some(journals)
    }
}

/// The latest trusted time (`upkeep/clock.rs`).
pub fn clock_row(at: Timestamp) -> Row {
    meta(STORE, CLOCK, [&[VERSION][..], &at.to_be_bytes()[..]].concat())
}

fn decode_stored(value: &[u8]) -> Option<[Stored; 3]> {
    let (numbers, rest) = value.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().map(|n| u64::from_be_bytes(*n)).collect();
    let (kinds, more) = numbers.as_chunks::<3>();
    let kinds: &[[u64; 3]; 3] = kinds.try_into().ok()?;
    let whole = rest.is_empty() && more.is_empty();
    whole.then(|| kinds.map(|[chunks, bytes, records]| Stored { chunks, bytes, records }))
}

pub fn session_row(id: u128, seq: u64, generation: u64) -> Row {
    let value = [&[VERSION][..], &seq.to_be_bytes()[..], &generation.to_be_bytes()[..]].concat();
    meta(SESSIONS, &id.to_be_bytes(), value)
}

pub fn session_delete(id: u128) -> crate::driver::Delete {
    crate::driver::Delete::row(Table::Meta, SESSIONS, id.to_be_bytes())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFact {
    Identity {
        id: u128,
        /// Whether an older version wrote the row. If so, the row must be rewritten before any
        /// other row is put.
        old: bool,
    },
    Flushed(u64),
    Stored([Stored; 3]),
    Sequence(u64),
    Journals(Journals),
    Clock(Timestamp),
    /// A fact of a newer version that this version may ignore.
    Unknown,
}

pub fn decode_store_fact(row: &Row) -> Result<StoreFact> {
    let malformed = || malformed("meta row", row);
    match &*row.clustering {
        IDENTITY => {
            let (version, id) = row.value.split_first_chunk().ok_or_else(malformed)?;
            let version = u16::from_be_bytes(*version);
            if version > STORE_VERSION {
                return Err(newer("store", version, STORE_VERSION));
            }
            if version == 0 {
                return Err(malformed());
            }
            let id = u128::from_be_bytes(id.try_into().map_err(|_| malformed())?);
            Ok(StoreFact::Identity { id, old: version < STORE_VERSION })
        }
        FLUSHED | SEQUENCE => {
            let number = versioned("meta row", row)?.try_into().map_err(|_| malformed())?;
            let number = u64::from_be_bytes(number);
            let is_sequence = *row.clustering == *SEQUENCE;
            Ok(if is_sequence { StoreFact::Sequence(number) } else { StoreFact::Flushed(number) })
        }
        STORED => {
            let stored = decode_stored(versioned("meta row", row)?);
            stored.map(StoreFact::Stored).ok_or_else(malformed)
        }
        CLOCK => {
            let at = versioned("meta row", row)?.try_into().map_err(|_| malformed())?;
            Ok(StoreFact::Clock(Timestamp::from_be_bytes(at)))
        }
        JOURNALS => {
            let journals = Journals::decode(versioned("meta row", row)?);
            journals.map(StoreFact::Journals).ok_or_else(malformed)
        }
        _ => Ok(StoreFact::Unknown),
    }
}

pub fn decode_session(row: &Row) -> Result<(u128, Session)> {
    let malformed = || malformed("session row", row);
    let id = row.clustering.as_slice().try_into().map_err(|_| malformed())?;
    let (seq, rest) = versioned("session row", row)?.split_first_chunk().ok_or_else(malformed)?;
    let generation = rest.try_into().map_err(|_| malformed())?;
    let (seq, generation) = (u64::from_be_bytes(*seq), u64::from_be_bytes(generation));
    Ok((u128::from_be_bytes(id), Session::new(seq, generation)))
}

fn versioned<'a>(what: &str, row: &'a Row) -> Result<&'a [u8]> {
    match row.value.split_first() {
        Some((&VERSION, rest)) => Ok(rest),
        Some((&version, _)) if version > VERSION => {
            Err(newer(what, version.into(), VERSION.into()).with("key", shown(&row.clustering)))
        }
        _ => Err(malformed(what, row)),
    }
}

pub fn malformed(what: &str, row: &Row) -> Error {
    let error = Error::corrupt(format!("{what} is malformed")).with("key", shown(&row.clustering));
    error.with("value_bytes", row.value.len())
}

/// The beginning of a key for messages: a name, or other bytes in hex.
pub fn shown(key: &[u8]) -> String {
    let shown = key.get(..SHOWN_BYTES_MAX).unwrap_or(key);
    match std::str::from_utf8(shown) {
        Ok(name) if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic()) => name.to_owned(),
        _ => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

pub fn newer(what: &str, version: u16, known: u16) -> Error {
    let message = format!("{what} has version {version}, this program reads up to {known}");
    Error::new(ErrorKind::Version, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_keys_sort_by_time_and_decode_unchanged() {
        let key = |start, generation, number| ChunkKey { span: Span::Short, start, generation, number };
        let keys = [key(i64::MIN, 9, 9), key(-1, 0, 0), key(0, 0, 1), key(0, 1, 0), key(i64::MAX, 0, 0)];
        let encoded: Vec<_> = keys.iter().map(ChunkKey::encode).collect();
        assert!(encoded.is_sorted());
        for (key, bytes) in keys.iter().zip(&encoded) {
            assert_eq!(ChunkKey::decode(bytes).unwrap(), *key);
        }
        let hex: String = key(1, 7, 2).encode().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, "0100800000000000000100000000000000070000".to_owned() + "0002");
    }

    #[test]
    fn a_scan_includes_exactly_the_chunks_that_may_overlap_its_range() {
        let (day, kind, id) = (86_400_000_000_000, Kind::Sample, SeriesId(1));
        let check_span = |span: Span, range: TimeRange, start: i64, expect: bool| {
            let scan = chunk_scan(kind, id, span, range);
            let key = ChunkKey { span, start, generation: 3, number: 4 }.encode();
            use std::ops::RangeBounds;
            assert_eq!((scan.from, scan.to).contains(&key), expect, "{range} {start}");
        };
        let check = |range, start, expect| check_span(Span::Short, range, start, expect);
        check_span(Span::Wide, TimeRange::new(0, 10), -32 * day, true);
        check_span(Span::Wide, TimeRange::new(0, 10), -32 * day - 1, false);
        check_span(Span::Long, TimeRange::new(0, 10), i64::MIN, true);
        check(TimeRange::ALL, i64::MIN, true);
        check(TimeRange::ALL, i64::MAX, true);
        check(TimeRange::new(0, 10), 10, true);
        check(TimeRange::new(0, 10), 11, false);
        check(TimeRange::new(0, 10), -2 * day, true);
        check(TimeRange::new(0, 10), -2 * day - 1, false);
    }

    #[test]
    fn rows_decode_unchanged_and_newer_versions_are_refused() {
        let identity = |old| StoreFact::Identity { id: 7, old };
        assert_eq!(decode_store_fact(&identity_row(7)).unwrap(), identity(false));
        let mut first = identity_row(7);
        first.value = Bytes::from([&[0, 1][..], &7u128.to_be_bytes()].concat());
        assert_eq!(decode_store_fact(&first).unwrap(), identity(true));
        assert_eq!(decode_store_fact(&flushed_row(8)).unwrap(), StoreFact::Flushed(8));
        let stored = [1, 4, 7].map(|n| Stored { chunks: n, bytes: n + 1, records: n + 2 });
        assert_eq!(decode_store_fact(&stored_row(&stored)).unwrap(), StoreFact::Stored(stored));
        assert_eq!(decode_store_fact(&sequence_row(9)).unwrap(), StoreFact::Sequence(9));
        assert_eq!(decode_store_fact(&clock_row(-9)).unwrap(), StoreFact::Clock(-9));
        let live = vec![Older { generation: 6, length: 700 }, Older { generation: 8, length: 0 }];
        let journals = Journals { store: 7, flushed: 5, sequence: 9, live };
        assert_eq!(decode_store_fact(&journals.row()).unwrap(), StoreFact::Journals(journals.clone()));
        for cut in 1..journals.row().value.len() {
            let row = Row { value: journals.row().value.slice(..cut), ..journals.row() };
            let fewer =
                Journals { live: journals.live[..cut.saturating_sub(33) / 16].to_vec(), ..journals.clone() };
            let whole = cut >= 33 && (cut - 33) % 16 == 0;
            let expect = whole.then_some(StoreFact::Journals(fewer));
            assert_eq!(decode_store_fact(&row).ok(), expect, "{cut}");
        }
        let (id, session) = decode_session(&session_row(1, 2, 3)).unwrap();
        assert_eq!((id, session.seq, session.generation), (1, 2, 3));

        let mut newer = identity_row(7);
        newer.value = Bytes::from([&[0, 3][..], &[0; 16]].concat());
        let error = decode_store_fact(&newer).unwrap_err();
        assert_eq!(error.to_string(), "store has version 3, this program reads up to 2");
        assert_eq!(error.kind(), ErrorKind::Version);
    }

    /// Found by the fuzz target `meta_row`: keys and rows of version 0 were accepted, and errors did not name the row.
    #[test]
    fn version_zero_is_refused_and_the_error_names_the_row() {
        let mut key = ChunkKey { span: Span::Short, start: 1, generation: 7, number: 2 }.encode();
        key[0] = 0;
        let error = ChunkKey::decode(&key).unwrap_err().to_string();
        let hex = "00008000000000000001000000000000000700000002";
        assert_eq!(error, format!("chunk key of 22 bytes is malformed (key {hex})"));
        let with_version = |row: Row, version: u8| {
            let at = if *row.clustering == *IDENTITY { 1 } else { 0 };
            let mut value = row.value.to_vec();
            value[at] = version;
            Row { value: value.into(), ..row }
        };
        for row in
            [identity_row(7), flushed_row(8), sequence_row(9), clock_row(-9), Journals::default().row()]
        {
            let name = String::from_utf8(row.clustering.clone()).unwrap();
            let error = decode_store_fact(&with_version(row, 0)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}");
            assert!(
                error.to_string().starts_with(&format!("meta row is malformed (key {name}, ")),
                "{error}"
            );
        }
        let error = decode_session(&with_version(session_row(1, 2, 3), 2)).unwrap_err().to_string();
        let id = "00000000000000000000000000000001";
        assert_eq!(error, format!("session row has version 2, this program reads up to 1 (key {id})"));
        assert_eq!(shown(b"\x1b[2J"), "1b5b324a");
    }
}
