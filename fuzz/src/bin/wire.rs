//! The decoders of the native protocol never panic. Accepted frames and records satisfy their invariants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_ingest::wire::{ClientFrame, Frame, FrameDecoder, Hello, ServerFrame, Session};
use tacho_model::Batch;
use tacho_model::limits::ENTRY_BYTES_MAX;

fuzz_target!(|bytes: &[u8]| {
    stream(bytes);
    control(bytes);
    dialogue(bytes);
});

/// The input as bytes of a connection, in two pieces.
fn stream(bytes: &[u8]) {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    let mut decoder = FrameDecoder::new();
    for piece in [first, second] {
        decoder.push(piece);
        while let Ok(Some(frame)) = decoder.pull() {
            let _ = (ClientFrame::decode(frame), ServerFrame::decode(frame));
        }
    }
}

/// The input as one frame, without length and checksum: a type byte, then the body. A decoded frame encodes to bytes that
/// decode to the same frame.
fn control(bytes: &[u8]) {
    let [type_byte, body @ ..] = bytes else { return };
    let frame = Frame { type_byte: *type_byte, body };
    let mut out = Vec::new();
    let mut decoder = FrameDecoder::new();
    if let Ok(client) = ClientFrame::decode(frame) {
        client.encode(&mut out);
        decoder.push(&out);
        let again = decoder.pull().expect("own frame is whole").expect("own frame is returned");
        assert_eq!(ClientFrame::decode(again), Ok(client));
    } else if let Ok(Some(server)) = ServerFrame::decode(frame) {
        server.encode(&mut out);
        decoder.push(&out);
        let again = decoder.pull().expect("own frame is whole").expect("own frame is returned");
        assert_eq!(ServerFrame::decode(again), Ok(Some(server)));
    }
}

/// The input as bodies of DICT and DATA frames, because the fuzzer cannot guess checksums. A byte for the type (even for DICT,
/// odd for DATA) and a length byte precede each body. Series 1 and record type 1 are predefined, so that the fuzzer uses them
/// soon.
fn dialogue(mut bytes: &[u8]) {
    let hello =
        Hello { version_min: 1, version_max: 1, session: 1, pairs: vec![], secret: None, token: None };
    let mut session = Session::new(&hello).expect("HELLO is within the limits");
    session.define(DEFINED).expect("definitions are right");
    while let [kind, length, rest @ ..] = bytes {
        let (body, rest) = rest.split_at((*length as usize).min(rest.len()));
        bytes = rest;
        if kind % 2 == 0 {
            let _ = session.define(body);
            session.take_record_types();
        } else if let Ok(data) = session.data(body) {
            check(&data.batch, body.len());
        }
    }
}

/// Defines text 1 `t`, series 1 `s`, and record type 1 `r`, which has a field of each type.
const DEFINED: &[u8] = b"\x01\x01\x01t\x03\x01\x01\x08__name__\x01s\x04\x01\x01r\x09\
    \x01\x01a\x00\x02\x01b\x00\x03\x01c\x00\x04\x01d\x00\x05\x01e\x00\x06\x01f\x00\x07\x01g\x00\x08\x01h\x00\x09\x01i\x00";

/// A record has at least one byte, an entry is within its limit, and a segment refers only to operations of its table.
fn check(batch: &Batch, bytes: usize) {
    assert!(batch.counts().iter().sum::<usize>() <= bytes);
    for entry in batch.entries.iter().flat_map(|series| &series.entries) {
        assert!(entry.body.as_bytes().len() <= ENTRY_BYTES_MAX);
    }
    for series in &batch.executions {
        for segment in &series.segments {
            assert_eq!(segment.check(series.operations.len()), Ok(()));
        }
    }
}
