//! Tests `testdata/wire/*.vec`: the keys of each case are encoded and must give the bytes of its `hex`. These bytes are decoded
//! and must give the keys.

mod support;

use support::vector::{Case, read};
use tacho_ingest::wire::{ClientFrame, Frame, FrameDecoder, ServerFrame, Session};

#[test]
fn control_frames_equal_their_vectors() {
    for case in ["control.vec", "probes.vec", "welcome.vec", "token.vec"].into_iter().flat_map(read) {
        let bytes = support::control::encode(&case);
        case.expect("hex", &[&support::vector::hex(&bytes)]);
        let mut decoder = FrameDecoder::new();
        decoder.push(&case.bytes("hex"));
        let frame = decoder.pull().unwrap().unwrap();
        support::control::check(&case, frame);
        assert_eq!(decoder.pull(), Ok(None), "{}", case.name);
    }
}

#[test]
fn records_of_one_connection_equal_their_vectors() {
    check_connection("data.vec");
}

#[test]
fn declared_records_of_one_connection_equal_their_vectors() {
    check_connection("records.vec");
}

fn check_connection(file: &str) {
    let mut session = Session::new(&support::data::hello()).unwrap();
    let mut dictionary = support::data::Defined::default();
    for case in read(file) {
        let bytes = support::data::encode(&case);
        case.expect("hex", &[&support::vector::hex(&bytes)]);
        check_client_frame(&case, &mut session, &mut dictionary);
    }
}

fn check_client_frame(case: &Case, session: &mut Session, dictionary: &mut support::data::Defined) {
    let mut decoder = FrameDecoder::new();
    decoder.push(&case.bytes("hex"));
    let frame: Frame<'_> = decoder.pull().unwrap().unwrap();
    match ClientFrame::decode(frame).unwrap() {
        ClientFrame::Dict(body) => {
            session.define(body).unwrap();
            dictionary.add(case);
        }
        ClientFrame::Data(body) => {
            let data = session.data(body).unwrap();
            support::data::check(case, &data, dictionary);
        }
        other => panic!("{}: {other:?}", case.name),
    }
    assert!(ServerFrame::decode(frame).unwrap().is_none(), "{}: decoded as a frame of the server", case.name);
}
