//! No bytes make the native protocol's decoders panic, and what they let through keeps its promises.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tacho_ingest::wire::{ClientFrame, Frame, FrameDecoder, Hello, ServerFrame, Session};
use tacho_model::Batch;

fuzz_target!(|bytes: &[u8]| {
    stream(bytes);
    control(bytes);
    dialogue(bytes);
});

/// As bytes of a connection, in two pieces.
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

/// As a control frame, checksum aside: a byte of type, the body. What is read is written and read again as the same.
fn control(bytes: &[u8]) {
    let [type_byte, body @ ..] = bytes else { return };
    let frame = Frame { type_byte: *type_byte, body };
    let mut out = Vec::new();
    let mut decoder = FrameDecoder::new();
    if let Ok(client) = ClientFrame::decode(frame) {
        client.encode(&mut out);
        decoder.push(&out);
        let again = decoder.pull().expect("own frame is whole").expect("own frame is there");
        assert_eq!(ClientFrame::decode(again), Ok(client));
    } else if let Ok(Some(server)) = ServerFrame::decode(frame) {
        server.encode(&mut out);
        decoder.push(&out);
        let again = decoder.pull().expect("own frame is whole").expect("own frame is there");
        assert_eq!(ServerFrame::decode(again), Ok(Some(server)));
    }
}

/// As bodies of DICT and DATA frames, for no search finds right checksums: a byte of type, a byte of length, the body.
fn dialogue(mut bytes: &[u8]) {
    let hello = Hello { version_min: 1, version_max: 1, session: 1, pairs: vec![] };
    let mut session = Session::new(&hello).expect("HELLO is within the limits");
    while let [kind, length, rest @ ..] = bytes {
        let (body, rest) = rest.split_at((*length as usize).min(rest.len()));
        bytes = rest;
        if kind % 2 == 0 {
            let _ = session.define(body);
        } else if let Ok(data) = session.data(body) {
            check(&data.batch, body.len());
        }
    }
}

/// A record takes at least two bytes, and every segment stands on its table of operations.
fn check(batch: &Batch, bytes: usize) {
    assert!(batch.counts().iter().sum::<usize>() <= bytes);
    for series in &batch.executions {
        for segment in &series.segments {
            assert_eq!(segment.check(series.operations.len()), Ok(()));
        }
    }
}
