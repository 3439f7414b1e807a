//! The decoder of remote write never panics. It returns at most one sample per byte of the message, and no series without
//! labels.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_ingest::remote_write::decode;

const BYTES_MAX: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let _ = decode(bytes, BYTES_MAX);
    // The bytes become one literal of a snappy block, so that the fuzzer reaches the decoder of the message.
    if let Ok(decoded) = decode(&literal(bytes), BYTES_MAX) {
        assert!(decoded.batch.counts()[0] <= bytes.len());
        assert!(decoded.batch.samples.iter().all(|series| !series.labels.is_empty()));
    }
});

/// A snappy block of one literal with at most the first 16 KiB (format description of snappy, 2.1): the length, tag 61 with two
/// bytes of length, the bytes.
fn literal(bytes: &[u8]) -> Vec<u8> {
    let bytes = &bytes[..bytes.len().min(1 << 14)];
    let Some(last) = bytes.len().checked_sub(1) else { return vec![0] };
    let (length, last) = (bytes.len() as u32, last as u16);
    let mut block = vec![length as u8 | 0x80, (length >> 7) as u8 | 0x80, (length >> 14) as u8, 61 << 2];
    block.extend_from_slice(&last.to_le_bytes());
    block.extend_from_slice(bytes);
    block
}
