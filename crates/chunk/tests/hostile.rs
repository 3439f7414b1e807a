//! Damaged and hostile bytes: an error that says where, never a panic, and never more memory than a bound.

mod common;

use common::{block, operations, segment, web};
use proptest::prelude::*;
use tacho_chunk::{Chunk, Error, Values, encode_entries, encode_executions, encode_samples};
use tacho_model::{Body, Entry};

/// Decodes as whatever it says it is.
fn decode(bytes: &[u8]) -> Result<(), Error> {
    let chunk = Chunk::open(bytes)?;
    let (samples, entries, executions) = (chunk.samples(), chunk.entries(), chunk.executions());
    assert!([samples.is_ok(), entries.is_ok(), executions.is_ok()].iter().filter(|ok| **ok).count() <= 1);
    match chunk.header().kind {
        tacho_model::Kind::Sample => samples.map(drop),
        tacho_model::Kind::Entry => entries.map(drop),
        tacho_model::Kind::Execution => {
            let block = executions?;
            for row in block.rows() {
                assert_eq!(row.to_segment().check(block.operations().len()), Ok(()));
            }
            Ok(())
        }
    }
}

/// Makes both checksums right, so that damage reaches the decoders.
fn repair(bytes: &mut [u8]) {
    if bytes.len() < 20 {
        return;
    }
    let header = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    let end = 20usize.saturating_add(header).min(bytes.len());
    let body = crc32c::crc32c(&bytes[end..]);
    bytes[12..16].copy_from_slice(&body.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..16]), &bytes[20..end]);
    bytes[16..20].copy_from_slice(&checksum.to_le_bytes());
}

fn some_chunks() -> Vec<Vec<u8>> {
    let at: Vec<i64> = (0..300).map(|n| n * n).collect();
    let floats: Vec<f64> = (0..300).map(|n| (f64::from(n) / 10.0).sin()).collect();
    let ids: Vec<u64> = (0..300).map(|n| tacho_model::mix64(n << 20)).collect();
    let states: Vec<i64> = (0..300).map(|n| [3, 900_000_007, -4][n % 3]).collect();
    let body = |n: usize| match n % 3 {
        0 => Body::Text("again and again the same".into()),
        1 => Body::Text(format!("line {n} of a log").into()),
        _ => Body::Bytes(vec![n as u8; n].into()),
    };
    let entries: Vec<Entry> = (0..100).map(|n| Entry { at: n as i64, body: body(n) }).collect();
    vec![
        encode_samples(&at, Values::F64(&floats)),
        encode_samples(&at, Values::U64(&ids)),
        encode_samples(&at, Values::I64(&states)),
        encode_entries(&entries),
        encode_executions(&block(&web::requests(60, 3), &web::operations())),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0u8..4) {
        let _ = decode(&bytes);
        for (at, byte) in b"TCHK\x01".iter().chain([&kind, &0, &0, &40, &0, &0, &0]).enumerate() {
            if let Some(slot) = bytes.get_mut(at) {
                *slot = *byte;
            }
        }
        repair(&mut bytes);
        let _ = decode(&bytes);
    }

    #[test]
    fn damaged_chunks_never_panic(
        which in 0usize..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        thread_local!(static CHUNKS: Vec<Vec<u8>> = some_chunks());
        let mut bytes = CHUNKS.with(|chunks| chunks[which].clone());
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] ^= byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = decode(&bytes);
        repair(&mut bytes);
        let _ = decode(&bytes);
    }

    #[test]
    fn damaged_segments_never_panic(
        segments in prop::collection::vec(segment(3), 1..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let mut bytes = encode_executions(&block(&segments, &operations(3)));
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        repair(&mut bytes);
        let _ = decode(&bytes);
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let good = encode_samples(&[1, 2, 4], Values::F64(&[1.0, 2.5, -0.0]));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "bit {bit} flipped");
    }
    for length in 0..good.len() {
        assert!(decode(&good[..length]).is_err(), "cut to {length} bytes");
    }
}

/// Damages the chunk of three samples and returns what the reader says.
fn say(damage: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes = encode_samples(&[1, 2, 3], Values::I64(&[7, 7, 7]));
    damage(&mut bytes);
    decode(&bytes).unwrap_err().to_string()
}

#[test]
fn errors_name_value_and_place() {
    assert_eq!(say(|b| b[0] = b'X'), "not a chunk: begins with [58, 43, 48, 4b], expected \"TCHK\"");
    assert_eq!(say(|b| b[4] = 2), "chunk version 2 is newer than this program knows (at most 1)");
    assert_eq!(say(|b| b.truncate(11)), "header length: 4 bytes are needed, 3 are left");
    assert_eq!(say(|b| b.push(0)), "body: 1 bytes too many");
    let header = say(|b| b[21] ^= 1);
    assert!(header.starts_with("chunk header checksum mismatch: expected 0x"), "{header}");
    let body = say(|b| *b.last_mut().unwrap() ^= 1);
    assert!(body.starts_with("chunk checksum mismatch: expected 0x"), "{body}");
    let codec = say(|b| {
        let columns = b.len() - 3 - 6;
        b[columns + 4] = 5;
        repair(b);
    });
    assert!(codec.starts_with("column 2 (value): zstd data is damaged: "), "{codec}");
    let count = say(|b| {
        b.splice(20..21, [0xff, 0xff, 0xff, 0x7f]);
        b[8] += 3;
        repair(b);
    });
    assert_eq!(count, "records is 268435455, at most 1048576 is allowed");
}
