//! The decoder of a group's chunk never panics. Decoded values are valid, and can be encoded and decoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_chunk::{Chunk, Encoding, Error, GroupColumn, Times, ValueColumn, encode_group};

/// Limit on values that are encoded again. More values would only slow down the search.
const VALUES_MAX: usize = 4_096;
/// Limit on columns of a chunk (64 members and the times), and therefore on repairs. Without a limit the loop could be endless,
/// because a repair may replace other bytes that happen to equal the wrong checksum.
const COLUMNS_MAX: usize = 65;
/// Bytes before the header.
const PREFIX: usize = 16;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    // The fuzzer cannot guess correct checksums. With repaired checksums it reaches the code after the check.
    repair(&mut bytes);
    for _ in 0..COLUMNS_MAX {
        let Err(Error::Column { source, .. }) = read(&bytes) else { return };
        let Error::ColumnChecksum { expected, got } = *source else { return };
        if !replace(&mut bytes, expected, got) {
            return;
        }
        repair(&mut bytes);
    }
});

fn read(bytes: &[u8]) -> Result<(), Error> {
    let chunk = Chunk::open(bytes)?;
    let times = chunk.times()?;
    let mut members = vec![];
    for info in &chunk.header().members {
        let Some(values) = chunk.values(info.member)? else { panic!("member {} is missing", info.member) };
        assert_eq!((values.len(), values.value_type()), (times.len(), info.value_type));
        assert!(info.value_error_max() >= 0.0);
        members.push((info.member, values));
    }
    assert_eq!((times.first(), times.last()), (Some(chunk.header().start), Some(chunk.header().end)));
    if times.len().saturating_mul(members.len()) <= VALUES_MAX {
        write(&times, &members);
    }
    Ok(())
}

fn write(times: &Times, members: &[(u16, ValueColumn)]) {
    let column = |(member, values): &'_ (u16, ValueColumn)| (*member, values.clone());
    let owned: Vec<(u16, ValueColumn)> = members.iter().map(column).collect();
    let columns: Vec<GroupColumn<'_>> = owned
        .iter()
        .map(|(member, values)| GroupColumn { member: *member, values: values.as_values(), loss: None })
        .collect();
    let bytes = encode_group(&times.to_vec(), 0, &columns, &Encoding::default());
    let chunk = Chunk::open(&bytes).unwrap();
    assert_eq!(chunk.times().as_ref(), Ok(times));
    for (member, values) in members {
        assert_eq!(chunk.values(*member).unwrap().as_ref(), Some(values));
    }
}

/// Makes the prefix valid: magic bytes, version, kind, reserved bytes, header length and checksum (`docs/format/chunk.md`).
fn repair(bytes: &mut [u8]) {
    let Some((prefix, rest)) = bytes.split_first_chunk_mut::<PREFIX>() else { return };
    prefix[..8].copy_from_slice(b"TCHK\x02\x01\x00\x00");
    let header = u32::from_le_bytes([prefix[8], prefix[9], 0, 0]) as usize % (rest.len() + 1);
    prefix[8..12].copy_from_slice(&(header as u32).to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&prefix[..12]), &rest[..header]);
    prefix[12..].copy_from_slice(&checksum.to_le_bytes());
}

/// Replaces a wrong checksum of a column with the correct checksum. Returns false if the wrong checksum was not found.
fn replace(bytes: &mut [u8], wrong: u32, right: u32) -> bool {
    let header = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    let fields = &mut bytes[PREFIX..][..header];
    let place = fields.windows(4).position(|four| four == wrong.to_le_bytes());
    let Some(place) = place else { return false };
    fields[place..][..4].copy_from_slice(&right.to_le_bytes());
    true
}
