//! Damaged and hostile bytes never cause a panic. Errors name the value and its place, and counts are limited.

mod common;

use common::{block, logs, operations, segment, web};
use proptest::prelude::*;
use tacho_chunk::{
    Aggregate, Aggregation, CallSummary, Checked, Chunk, Encoding, Error, GroupColumn, Loss, Method, RowRef,
    Tolerance, Values, encode_entries, encode_executions, encode_group,
};
use tacho_model::{Body, Entry};

/// Decodes all records, according to the kind in the header.
fn decode(bytes: &[u8]) -> Result<(), Error> {
    let chunk = Chunk::open(bytes)?;
    let (samples, entries, executions) = (chunk.samples(), chunk.entries(), chunk.executions());
    assert!([samples.is_ok(), entries.is_ok(), executions.is_ok()].iter().filter(|ok| **ok).count() <= 1);
    match chunk.header().kind {
        tacho_model::Kind::Sample => {
            let times = chunk.times()?;
            assert!(times.to_vec().is_sorted_by(|a, b| a < b));
            for info in &chunk.header().members {
                let values = chunk.values(info.member)?.unwrap();
                assert_eq!((values.len(), values.value_type()), (times.len(), info.value_type));
            }
            Ok(())
        }
        tacho_model::Kind::Entry => entries.map(drop),
        tacho_model::Kind::Execution => {
            let block = executions?;
            for row in block.rows() {
                assert_eq!(row.to_segment().check(block.operations().len()), Ok(()));
            }
            let with_status = |row: RowRef<'_>| row.attributes().any(|a| &**a.key == "http.status");
            let with_status: Vec<bool> = block.rows().map(with_status).collect();
            let found = chunk.segments_with("http.status", &|_| true)?;
            assert!(found == with_status || found.is_empty() && !with_status.contains(&true));
            let kept: Vec<usize> = (0..block.len()).filter(|row| with_status[*row]).collect();
            let selected = chunk.selected_executions(&with_status)?;
            assert!(
                selected.rows().map(|row| row.to_segment()).eq(kept.iter().map(|row| block.segment(*row)))
            );
            chunk.filters()?;
            chunk.summary().map(drop)
        }
    }
}

/// Recomputes the checksum of the header, and in a chunk of entries or executions the checksum of all columns, so that damage
/// reaches the decoders. Does not change the checksums of filters, of a summary, or of a column of a group.
fn repair(bytes: &mut [u8]) {
    let of_group = bytes.get(4) == Some(&2);
    let prefix = if of_group { 16 } else { 20 };
    if bytes.len() < prefix {
        return;
    }
    let header = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
    let end = prefix.saturating_add(header).min(bytes.len());
    repair_header(bytes, prefix, end);
    if !of_group {
        let front = filter_bytes(bytes) + summary_bytes(bytes);
        let body = crc32c::crc32c(&bytes[end + front..]);
        bytes[12..16].copy_from_slice(&body.to_le_bytes());
        repair_header(bytes, prefix, end);
    }
}

fn repair_header(bytes: &mut [u8], prefix: usize, end: usize) {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&bytes[..prefix - 4]), &bytes[prefix..end]);
    bytes[prefix - 4..prefix].copy_from_slice(&checksum.to_le_bytes());
}

fn filter_bytes(chunk: &[u8]) -> usize {
    let filters = Chunk::open(chunk).ok().and_then(|chunk| chunk.header().filters);
    filters.map_or(0, |filters| filters.trace_bytes + filters.request_bytes)
}

fn summary_bytes(chunk: &[u8]) -> usize {
    let summary = Chunk::open(chunk).ok().and_then(|chunk| chunk.header().summary);
    summary.map_or(0, |summary| summary.bytes)
}

fn some_chunks() -> Vec<Vec<u8>> {
    let at: Vec<i64> = (0..300).map(|n| n * n + n).collect();
    let floats: Vec<f64> = (0..300).map(|n| (f64::from(n) / 10.0).sin()).collect();
    let ids: Vec<u64> = (0..300).map(|n| tacho_model::mix64(n << 20)).collect();
    let states: Vec<i64> = (0..300).map(|n| [3, 900_000_007, -4][n % 3]).collect();
    let body = |n: usize| match n % 3 {
        0 => Body::Text("again and again the same".into()),
        1 => Body::Text(format!("line {n} of a log").into()),
        _ => Body::Bytes(vec![n as u8; n].into()),
    };
    let entries: Vec<Entry> = (0..100).map(|n| Entry { at: n as i64, body: body(n) }).collect();
    let lines: Vec<Entry> = logs::ALL.iter().flat_map(|log| logs::entries(&log.lines(1, 60))).collect();
    let column = |member, values| GroupColumn { member, values, loss: None };
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/chunk/samples-pco-delta.chunk");
    vec![
        group(&at, &[column(0, Values::F64(&floats))]),
        group(&at, &[column(3, Values::U64(&ids)), column(9, Values::I64(&states))]),
        group(&at, &[column(0, Values::F64(&[0.25; 300])), column(1, Values::F64(&floats)), LOSSY]),
        encode_entries(&entries, &Encoding::default()),
        encode_entries(&lines, &Encoding::default()),
        encode_executions(&block(&web::with_tasks(&web::requests(60, 3), 5), &web::operations())),
        std::fs::read(old).unwrap(),
    ]
}

const LOSSY: GroupColumn<'_> = GroupColumn {
    member: 63,
    values: Values::F64(&[0.5; 300]),
    loss: Some(Loss {
        aggregation: Some(Aggregation { step: 60_000_000_000, how: Aggregate::Max }),
        method: Some(Method::Rounding),
        bound: Tolerance::Relative(0.01),
        achieved: 0.005,
    }),
};

fn group(at: &[i64], columns: &[GroupColumn<'_>]) -> Vec<u8> {
    encode_group(at, 0, columns, &Encoding::default())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_changed_summary_is_refused_or_valid(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let summary = CallSummary::of(&block(&web::requests(20, 3), &web::operations())).unwrap();
        let mut bytes = summary.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(read) = CallSummary::decode(&bytes, summary.operations.clone(), summary.callers.clone()) {
            prop_assert_eq!(&CallSummary::decode(&read.encode(), summary.operations.clone(), summary.callers.clone()), &Ok(read));
        }
    }

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
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.1, any::<prop::sample::Index>()),
    ) {
        thread_local!(static CHUNKS: Vec<Vec<u8>> = some_chunks());
        let mut bytes = CHUNKS.with(|chunks| which.get(chunks).clone());
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
fn every_flipped_bit_is_detected() {
    let numbers = GroupColumn { member: 0, values: Values::F64(&[1.0, 2.5, -0.0]), loss: None };
    let same = GroupColumn { member: 7, values: Values::I64(&[3; 3]), loss: None };
    let lossy = GroupColumn { values: Values::U64(&[5, 9, 1 << 40]), ..LOSSY };
    let good = group(&[1, 2, 4], &[numbers, same, lossy]);
    assert_eq!(decode(&good), Ok(()));
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "the flipped bit {bit} was not detected");
        repair(&mut bytes);
        let _ = decode(&bytes);
    }
    for length in 0..good.len() {
        assert!(decode(&good[..length]).is_err(), "a cut to {length} bytes was not detected");
    }
}

#[test]
fn every_flipped_bit_of_executions_is_detected_and_damaged_filters_do_not_hide_records() {
    let good = encode_executions(&block(&web::requests(2, 3), &web::operations()));
    let whole = Chunk::open(&good).unwrap();
    assert_eq!((decode(&good), whole.check()), (Ok(()), Ok(Checked::default())));
    let mut readable = 0;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&bytes).is_err(), "the flipped bit {bit} was not detected");
        let Ok(chunk) = Chunk::open(&bytes) else { continue };
        let Ok(Checked { members, filters: Some(_), summary: None }) = chunk.check() else { continue };
        assert!(members.is_empty() && chunk.executions() == whole.executions());
        assert_eq!(chunk.with_new_front().as_ref(), Ok(&good));
        readable += 1;
    }
    assert_eq!(readable, filter_bytes(&good) * 8);
    for length in 0..good.len() {
        assert!(decode(&good[..length]).is_err(), "a cut to {length} bytes was not detected");
        let front = Chunk::open_front(&good[..length], good.len());
        let is_long_enough = Chunk::front_bytes(&good).is_some_and(|front| front <= length);
        assert_eq!(front.is_ok(), is_long_enough, "front of {length} bytes");
    }
}

#[test]
fn a_damaged_summary_is_detected_and_does_not_hide_records() {
    let good = encode_executions(&block(&web::requests(60, 3), &web::operations()));
    let (whole, summary) = (Chunk::open(&good).unwrap(), summary_bytes(&good));
    assert!(summary > 100 && whole.summary().unwrap().is_some(), "{summary} bytes");
    let parts = Chunk::summary_parts(&good).unwrap();
    let cut: Vec<u8> = parts.iter().flat_map(|part| &good[part.clone()]).copied().collect();
    assert_eq!(Chunk::open_summary(&cut, good.len()), whole.summary());
    assert_eq!(Chunk::open_summary(&good, good.len()), whole.summary());
    for place in parts[1].start..parts[1].start + summary {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (place % 8);
        let chunk = Chunk::open(&bytes).unwrap();
        let error = chunk.summary().unwrap_err();
        assert!(matches!(error, Error::SummaryChecksum { .. }), "{error}");
        assert!(Chunk::open_summary(&bytes, bytes.len()).is_err());
        assert_eq!(chunk.executions(), whole.executions());
        let found = Checked { summary: Some(error), ..Checked::default() };
        assert_eq!((chunk.check(), chunk.with_new_front().as_ref()), (Ok(found), Ok(&good)));
    }
    for length in 0..cut.len() {
        assert!(
            Chunk::open_summary(&cut[..length], good.len()).is_err(),
            "a cut to {length} bytes was not detected"
        );
    }
}

/// The chunk `good` with a changed summary of the same length, and valid checksums.
fn with_summary(good: &[u8], change: impl Fn(&mut CallSummary), version: u8) -> Vec<u8> {
    let mut summary = Chunk::open(good).unwrap().summary().unwrap().unwrap();
    change(&mut summary);
    let mut encoded = summary.encode();
    encoded[0] = version;
    let part = Chunk::summary_parts(good).unwrap().remove(1);
    let old = crc32c::crc32c(&good[part.clone()]).to_le_bytes();
    assert_eq!(encoded.len(), summary_bytes(good));
    let mut bytes = good.to_vec();
    bytes[part.start..part.start + encoded.len()].copy_from_slice(&encoded);
    let new = crc32c::crc32c(&bytes[part.clone()]).to_le_bytes();
    let at = good[..part.start].windows(4).position(|four| four == old).unwrap();
    bytes[at..at + 4].copy_from_slice(&new);
    repair(&mut bytes);
    bytes
}

#[test]
fn a_summary_with_valid_checksums_that_contradicts_the_chunk_does_not_hide_records() {
    let good = encode_executions(&block(&web::requests(60, 3), &web::operations()));
    let whole = Chunk::open(&good).unwrap();
    assert_eq!(with_summary(&good, |_| (), 4), good);
    let later = |summary: &mut CallSummary| {
        summary.points.iter_mut().for_each(|point| point.slot += 5);
        summary.requests.iter_mut().for_each(|requests| requests.slot += 5);
    };
    let bytes = with_summary(&good, later, 4);
    let chunk = Chunk::open(&bytes).unwrap();
    let error = chunk.summary().unwrap_err();
    assert!(matches!(error, Error::SummarySlot { .. }), "{error}");
    assert_eq!(Chunk::open_summary(&bytes, bytes.len()), Err(error.clone()));
    assert_eq!(chunk.executions(), whole.executions());
    assert_eq!(chunk.check(), Ok(Checked { summary: Some(error), ..Checked::default() }));

    let bytes = with_summary(&good, |_| (), 5);
    let chunk = Chunk::open(&bytes).unwrap();
    let newer = Error::SummaryVersion { got: 5, known: 4 };
    assert_eq!((chunk.summary(), chunk.executions()), (Err(newer.clone()), whole.executions()));
    assert_eq!(chunk.check(), Ok(Checked { summary: Some(newer), ..Checked::default() }));
}

#[test]
fn a_summary_of_other_calls_is_detected() {
    let blocks = [3, 4].map(|seed| block(&web::requests(60, seed), &web::operations()));
    let summaries = blocks.each_ref().map(|block| CallSummary::of(block).unwrap());
    let [a, b] = &summaries;
    assert_ne!(a, b);
    let bytes = b.encode();
    assert_eq!(CallSummary::decode(&bytes, b.operations.clone(), b.callers.clone()).as_ref(), Ok(b));
    for length in 0..bytes.len() {
        assert!(
            CallSummary::decode(&bytes[..length], b.operations.clone(), b.callers.clone()).is_err(),
            "a cut to {length} bytes was not detected"
        );
    }
    let version = |version: u8| {
        CallSummary::decode(&[version], b.operations.clone(), b.callers.clone()).unwrap_err().to_string()
    };
    assert_eq!(version(5), "summary version 5 is newer than this program knows (at most 4)");
    assert_eq!(version(0), "version of the summary is 0, which is invalid");
}

/// A read of one member needs only the columns of the times and of this member.
#[test]
fn a_member_is_readable_although_another_is_damaged() {
    let column = |member, values| GroupColumn { member, values, loss: None };
    let mut bytes =
        group(&[1, 2, 4], &[column(0, Values::U64(&[5, 9, 8])), column(1, Values::U64(&[7, 1, 3]))]);
    *bytes.last_mut().unwrap() ^= 1;
    let chunk = Chunk::open(&bytes).unwrap();
    assert_eq!(chunk.times().unwrap().to_vec(), [1, 2, 4]);
    assert_eq!(chunk.values(0).unwrap(), Some(tacho_chunk::ValueColumn::U64(vec![5, 9, 8])));
    assert!(chunk.values(1).unwrap_err().to_string().starts_with("column 3 (value): checksum mismatch: "));
    assert_eq!(chunk.values(2), Ok(None));
}

/// Damages a chunk of three samples and returns the error.
fn say(damage: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut bytes =
        group(&[1, 2, 4], &[GroupColumn { member: 0, values: Values::I64(&[7, 9, 8]), loss: None }]);
    damage(&mut bytes);
    decode(&bytes).unwrap_err().to_string()
}

#[test]
fn errors_name_value_and_place() {
    assert_eq!(say(|b| b[0] = b'X'), "not a chunk: begins with [58, 43, 48, 4b], expected \"TCHK\"");
    assert_eq!(say(|b| b[4] = 6), "chunk version 6 is newer than this program knows (at most 5)");
    assert_eq!(say(|b| b.truncate(11)), "header length: 4 bytes are needed, 3 are left");
    assert_eq!(say(|b| b.push(0)), "body: 1 trailing bytes");
    let header = say(|b| b[17] ^= 1);
    assert!(header.starts_with("chunk header checksum mismatch: expected 0x"), "{header}");
    let body = say(|b| *b.last_mut().unwrap() ^= 1);
    assert!(body.starts_with("column 2 (value): checksum mismatch: expected 0x"), "{body}");
    let codec = say(|b| {
        b[36] = 5;
        repair(b);
    });
    assert!(codec.starts_with("column 2 (value): zstd data is damaged: "), "{codec}");
    let kind = say(|b| {
        b[5] = 2;
        repair(b);
    });
    assert_eq!(kind, "kind of a group is 2, which is invalid");
    let member = say(|b| {
        b[34] = 64;
        repair(b);
    });
    assert_eq!(member, "member is 64, at most 63 is allowed");
    let count = say(|b| {
        b.splice(16..17, [0xff, 0xff, 0xff, 0x7f]);
        b[8] += 3;
        repair(b);
    });
    assert_eq!(count, "records is 268435455, at most 1048576 is allowed");
}
