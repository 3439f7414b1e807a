//! The decoders of chunk keys and of rows of the Meta table never panic. The memory for a fact of the store or for a tombstone
//! has a bound that depends on the bytes of the row. A decoded row is encoded to a row with the same content. An error of a
//! session, a life (a row of `lives` in `docs/format/keys.md`) or a tombstone names the row.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tacho_fuzz::bounded;
use tacho_model::MatchOp;
use tacho_store::fuzzing::{
    ChunkKey, KeptKey, Lives, Rollup, RollupKey, StoreFact, Tombstone, clock_row, decode_life, decode_session,
    decode_store_fact, decode_until, flushed_row, identity_row, kept_summary, rollup_summary, sequence_row,
    session_row, stored_row,
};
use tacho_store::{Error, ErrorKind, Row, Table};

/// Limit on the length of an error message.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// Limit on the memory of the automata of one pattern, bytes.
const PATTERN_BYTES_MAX: usize = 64 << 20;
const FACTS: [&str; 7] = ["identity", "flushed", "stored", "named", "journals", "clock", "other"];

fuzz_target!(|bytes: &[u8]| {
    chunk_key(bytes);
    for fact in FACTS {
        store_fact(&row("store", fact.as_bytes(), bytes));
    }
    rollup(bytes);
    kept(bytes);
    let Some((id, value)) = bytes.split_first_chunk::<16>() else { return };
    session(&row("sessions", id, value));
    life(&row("lives", id, value));
    // A tombstone has an id of eight bytes.
    let (id, _) = id.split_at(8);
    for version in 1..=2 {
        tombstone(&row("tombstones", id, &[&[version], value].concat()));
    }
    tombstone(&row("tombstones", id, value));
});

fn row(partition: &str, clustering: &[u8], value: &[u8]) -> Row {
    Row {
        table: Table::Meta,
        partition: partition.into(),
        clustering: clustering.to_vec(),
        value: Bytes::copy_from_slice(value),
    }
}

fn chunk_key(bytes: &[u8]) {
    match ChunkKey::decode(bytes) {
        Ok(key) => assert_eq!(key.encode(), bytes),
        Err(error) => check(&error, ""),
    }
}

fn store_fact(row: &Row) {
    let fact = bounded(4_096 + 16 * row.value.len(), || decode_store_fact(row));
    let again = match fact {
        Err(error) => return check(&error, ""),
        // A row of an older version is not compared: it is encoded with the current version.
        Ok(StoreFact::Identity { old: true, .. }) => return,
        Ok(StoreFact::Unknown) => return assert_eq!(row.clustering, b"other"),
        Ok(StoreFact::Identity { id, .. }) => identity_row(id),
        Ok(StoreFact::Flushed(generation)) => flushed_row(generation),
        Ok(StoreFact::Stored(stored)) => stored_row(&stored),
        Ok(StoreFact::Sequence(last)) => sequence_row(last),
        Ok(StoreFact::Journals(journals)) => journals.row(),
        Ok(StoreFact::Clock(at)) => clock_row(at),
    };
    assert_eq!(&again, row);
}

fn session(row: &Row) {
    match decode_session(row) {
        Ok((id, session)) => assert_eq!(&session_row(id, session.seq, session.generation), row),
        Err(error) => check(&error, &shown(&row.clustering)),
    }
}

fn life(row: &Row) {
    match decode_life(row) {
        Ok(life) => {
            let rows = Lives::default().rows([life].iter());
            let [again] = &rows[..] else { panic!("{} rows of one series", rows.len()) };
            assert_eq!(decode_life(again).expect("a row that was just encoded"), life);
            assert!(again.value.len() <= row.value.len());
        }
        Err(error) => check(&error, &shown(&row.clustering)),
    }
}

/// A roll-up with this key, or with the key of its first chunk, and with correct checksums.
fn rollup(bytes: &[u8]) {
    let Some((key, head)) = bytes.split_first_chunk::<32>() else { return };
    let length = u32::try_from(head.len()).expect("a short input");
    let mut value = [&b"TRUP\x02"[..], &length.to_le_bytes(), head].concat();
    value.extend_from_slice(&crc32c::crc32c(&value).to_le_bytes());
    let row = row("rollups", key, &value);
    match bounded(4_096 + 64 * head.len(), || Rollup::decode(&row)) {
        Ok(rollup) => assert_eq!(rollup.key, RollupKey::decode(&row.clustering).expect("a decoded row")),
        Err(error) => check(&error, ""),
    }
    if let Err(error) = rollup_summary(&row) {
        check(&error, "");
    }
}

/// A kept summary with correct magic and checksum, and the end of summed days.
fn kept(bytes: &[u8]) {
    let mut value = [&b"TKEP\x01"[..], bytes].concat();
    value.extend_from_slice(&crc32c::crc32c(&value).to_le_bytes());
    let row = row("kept", bytes, &value);
    for error in [KeptKey::decode(bytes).err(), kept_summary(&row).err()].into_iter().flatten() {
        check(&error, "");
    }
    let mut value = bytes.to_vec();
    value.extend_from_slice(&crc32c::crc32c(bytes).to_le_bytes());
    if let Err(error) = decode_until(&self::row("summed-until", &[0; 16], &value)) {
        check(&error, "");
    }
}

fn tombstone(row: &Row) {
    let memory = 4_096 + (PATTERN_BYTES_MAX + 64) * row.value.len().min(64);
    let tombstone = match bounded(memory, || Tombstone::decode(row)) {
        Ok(tombstone) => tombstone,
        Err(error) => return check(&error, &tombstone_id(row).to_string()),
    };
    assert_eq!(tombstone.id, tombstone_id(row));
    let is_pattern = |op| matches!(op, MatchOp::Regex | MatchOp::NotRegex);
    let has_pattern = tombstone.matchers.iter().any(|matcher| is_pattern(matcher.op()));
    let version = row.value.first().copied();
    // Patterns of version 1 have another syntax. Version 2 is not written without patterns.
    if has_pattern == (version == Some(2)) {
        let again = tombstone.row();
        assert!(again.value.len() <= row.value.len());
        assert_eq!(Tombstone::decode(&again).expect("a row that was just encoded"), tombstone);
    }
}

fn tombstone_id(row: &Row) -> u64 {
    u64::from_be_bytes(row.clustering.as_slice().try_into().expect("eight bytes"))
}

/// A key as messages show it: as text if all bytes are printable ASCII, otherwise in hex.
fn shown(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(name) if name.bytes().all(|byte| byte.is_ascii_graphic()) => name.to_owned(),
        _ => key.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

fn check(error: &Error, place: &str) {
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Version), "{error}");
    let message = error.to_string();
    assert!(message.contains(place), "{place:?} is not in {message:.200}");
    assert!(message.len() <= MESSAGE_BYTES_MAX, "{} bytes: {message:.200}", message.len());
}
