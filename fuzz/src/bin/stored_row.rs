//! The decoders of stored rows never panic, whatever bytes a value has. A decoded row
//! can be encoded, and is then decoded with the same result.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use tacho_model::{Families, Kind, SeriesId};
use tacho_store::group::row::{Split, decode_series, remains, replacement_bytes, series_row, split_value};
use tacho_store::{Row, Table};

/// Bytes of the longest replacement prefix (`docs/format/keys.md`), without its checksum: all variable-length fields have their
/// maximum length.
const PREFIX_BYTES_MAX: usize = 5 + 10 + 24 + 2 * 10;

fuzz_target!(|bytes: &[u8]| {
    let value = Bytes::copy_from_slice(bytes);
    prefix(&value);
    // The fuzzer cannot guess a correct checksum. With a repaired checksum it reaches the code after the check.
    for before in (29..=PREFIX_BYTES_MAX).filter(|before| before + 4 <= bytes.len()) {
        let mut repaired = bytes.to_vec();
        let checksum = crc32c::crc32c(&repaired[..before]);
        repaired[before..before + 4].copy_from_slice(&checksum.to_le_bytes());
        prefix(&repaired.into());
    }
    let row = Row {
        table: Table::Series,
        partition: vec![0],
        clustering: [[1].as_slice(), &[0; 16]].concat(),
        value,
    };
    if let Ok(read) = decode_series(&row, &mut Families::default()) {
        let members: Vec<_> = read.members.iter().collect();
        let again = series_row(Kind::Sample, SeriesId(0), &members);
        assert_eq!(decode_series(&again, &mut Families::default()).expect("row that was just encoded"), read);
    }
});

fn prefix(value: &Bytes) {
    let left = remains(value);
    let Ok(split) = split_value(value) else {
        assert_eq!(left.merge, None);
        return;
    };
    let Split { replacement, overhang, chunk } = &split;
    assert_eq!(replacement_bytes(value), Some(value.len() - chunk.len()));
    assert_eq!(left.chunk, chunk);
    let Some(replacement) = replacement else { return };
    assert_eq!(
        split_value(&replacement.encode(*overhang, chunk)).expect("value that was just encoded"),
        split
    );
}
