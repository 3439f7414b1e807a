//! Recovery never panics, whatever bytes a file has. Recovered batches are valid, can be encoded, and are recovered
//! again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tacho_model::Value;
use tacho_store::journal::format::{HEADER_BYTES, Header, Older, RECORD_HEAD_BYTES, RECORD_MAGIC, mark};
use tacho_store::journal::{Encoder, read_bytes};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    copy(&bytes);
    // The fuzzer cannot guess correct checksums. With repaired checksums it reaches the code after the check.
    repair(&mut bytes);
    let Some(first) = copy(&bytes) else { return };
    let second = copy(&first.file).expect("a file that was just written");
    assert_eq!(first.records, second.records);
    // The first copy merges blocks of one series and operations of one name. A further copy changes nothing.
    let third = copy(&second.file).expect("a file that was just written");
    assert_eq!(second.executions, third.executions);
});

/// The recovered batches, and a file with the same batches.
struct Copy {
    file: Vec<u8>,
    records: Vec<String>,
    executions: Vec<String>,
}

fn copy(bytes: &[u8]) -> Option<Copy> {
    let mut copy = Copy { file: header().encode(), records: vec![], executions: vec![] };
    let mut encoder = Encoder::default();
    let contents = read_bytes(bytes, Path::new("fuzz"), |arrival| {
        copy.records.push(format!("{:?} {:?}", arrival.origin, arrival.counts()));
        for (id, series) in arrival.samples() {
            let word = |value| if let Value::F64(value) = value { value.to_bits() } else { 0 };
            let sample = |sample: &tacho_model::Sample| (sample.at, sample.value, word(sample.value));
            let all = series.samples.iter().map(|each| format!("{id:?} {:?}", sample(each)));
            copy.records.extend(all);
        }
        for (id, series) in arrival.entries() {
            copy.records.extend(series.entries.iter().map(|entry| format!("{id:?} {entry:?}")));
        }
        copy.executions.extend(arrival.executions().map(|series| format!("{series:?}")));
        let synced = copy.file.len() as u64;
        encoder.encode(&arrival, synced, &mut copy.file).expect("no larger than the decoded record");
        encoder.end_group(synced, &mut copy.file);
        encoder.committed();
        let synced = copy.file.len() as u64;
        copy.file.extend_from_slice(&mark(synced));
    });
    let contents = contents.ok()?;
    assert!(!contents.never_begun || contents.records == 0);
    assert_eq!(contents.length + contents.torn, bytes.len() as u64);
    Some(copy)
}

fn header() -> Header {
    Header { generation: 1, store: 2, created: 3, older: vec![Older { generation: 4, length: 5 }] }
}

/// Sets the header, and the lengths and checksums of all records, to valid values (`docs/format/journal.md`).
fn repair(bytes: &mut [u8]) {
    let Some((header, mut rest)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let version = u16::from(header[8] % 3) + 1;
    let of_all = self::header().encode();
    header.copy_from_slice(&of_all[..HEADER_BYTES]);
    header[8..10].copy_from_slice(&version.to_le_bytes());
    // Sets the number of older generations to 0. The bytes after the header may be its second copy, damaged or not.
    header[10..12].fill(0);
    let checksum = crc32c::crc32c(&header[..44]);
    header[44..].copy_from_slice(&checksum.to_le_bytes());
    // Bytes between records stay damaged, so that the code that skips them is tested too.
    while let Some(start) = rest.windows(RECORD_MAGIC.len()).position(|bytes| bytes == RECORD_MAGIC) {
        let Some((head, behind)) = rest[start..].split_first_chunk_mut::<RECORD_HEAD_BYTES>() else { return };
        let length = usize::from(u16::from_le_bytes([head[4], head[5]])) % (behind.len() + 1);
        let (payload, next) = behind.split_at_mut(length);
        let length = (length as u32).to_le_bytes();
        head[4..8].copy_from_slice(&length);
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&length), payload);
        head[8..].copy_from_slice(&checksum.to_le_bytes());
        rest = next;
    }
}
