//! The decoder of the line protocol never panics. The number of records and refused lines together is at most the number of
//! bytes. The column of a refused line is at most one after the last byte of the input.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_ingest::line_protocol::{Precision, decode};

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode(bytes, Precision::Milliseconds, 0);
    let kept: usize = decoded.batch.counts().iter().sum();
    // The shortest record is `a b=1`, and a refused line has at least one byte.
    assert!(kept + decoded.rejects.count as usize <= bytes.len());
    assert!(decoded.rejects.named.len() as u64 <= decoded.rejects.count);
    for refused in &decoded.rejects.named {
        assert!(refused.line >= 1 && refused.column >= 1 && refused.column <= bytes.len() + 1);
    }
});
