//! No file makes recovery panic, and the batches that it reads can be trusted, written, and read again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tacho_model::Value;
use tacho_store::journal::format::{HEADER_BYTES, Header, RECORD_HEAD_BYTES, RECORD_MAGIC};
use tacho_store::journal::{Encoder, read_bytes};

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    copy(&bytes);
    // No search finds right checksums; it shall reach what is behind them.
    repair(&mut bytes);
    let Some(first) = copy(&bytes) else { return };
    let second = copy(&first.file).expect("a file that was just written");
    assert_eq!(first.records, second.records);
    // Blocks of one series and operations of one name are put together once, and stay so.
    let third = copy(&second.file).expect("a file that was just written");
    assert_eq!(second.executions, third.executions);
});

/// What was read, and a file of the same.
struct Copy {
    file: Vec<u8>,
    records: Vec<String>,
    executions: Vec<String>,
}

fn copy(bytes: &[u8]) -> Option<Copy> {
    let header = Header { generation: 1, store: 2, created: 3 }.encode();
    let mut copy = Copy { file: header.to_vec(), records: vec![], executions: vec![] };
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
        encoder.encode(&arrival, synced, &mut copy.file).expect("no larger than what was read");
        encoder.committed();
    });
    let contents = contents.ok()?;
    assert!(contents.header.is_some() || contents.records == 0);
    assert_eq!(contents.length + contents.torn, bytes.len() as u64);
    Some(copy)
}

/// Makes the header and the lengths and checksums of all records right (`docs/format/journal.md`).
fn repair(bytes: &mut [u8]) {
    let Some((header, mut rest)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() else { return };
    let version = u16::from(header[8] % 2) + 1;
    *header = Header { generation: 1, store: 2, created: 3 }.encode();
    header[8..10].copy_from_slice(&version.to_le_bytes());
    let checksum = crc32c::crc32c(&header[..44]);
    header[44..].copy_from_slice(&checksum.to_le_bytes());
    // What is between records stays broken, so that stepping over it is tried, too.
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
