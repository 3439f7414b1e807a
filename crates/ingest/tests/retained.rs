//! How much memory does a decoder of the line protocol keep after invalid bodies?
//!
//! This is the only test in its process, because the allocator counts all threads.

use std::fmt::Write;

use peak_alloc::PeakAlloc;
use tacho_ingest::line_protocol::{DECODER_BYTES_MAX, Decoder, Precision};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

#[test]
fn memory_that_is_kept_after_refused_lines_is_limited() {
    for (name, body) in [("late times", late_times()), ("no time", no_times()), ("full", full())] {
        let mut decoder = Decoder::default();
        let before = MEMORY.current_usage();
        for _ in 0..12 {
            let decoded = decoder.decode(body.as_bytes(), Precision::Hours, 0);
            assert!(decoded.rejects.count > 0, "{name}");
        }
        let kept = MEMORY.current_usage().saturating_sub(before);
        assert!(
            kept <= DECODER_BYTES_MAX,
            "{name}: {kept} bytes are kept after bodies of {} bytes",
            body.len()
        );
    }
}

/// 40 lines of many fields. No two lines have a field in common, and the times are out of range.
fn late_times() -> String {
    let mut body = String::new();
    for line in 0..40 {
        body.push_str("m ");
        for field in 0..20_000 {
            let _ = write!(body, "{}{line}x{field:x}=1", if field == 0 { "" } else { "," });
        }
        body.push_str(" 9000000000000000\n");
    }
    body
}

/// The same lines, with invalid times.
fn no_times() -> String {
    late_times().replace("9000000000000000", "soon")
}

/// One line with more new series than the memory budget of a body allows.
fn full() -> String {
    let mut body = "m ".to_owned();
    for field in 0..400_000 {
        let _ = write!(body, "{}{field:x}=1", if field == 0 { "" } else { "," });
    }
    body.push_str(" 1\n");
    body
}
