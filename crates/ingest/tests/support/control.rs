//! Control frames from keys, and back.

use tacho_ingest::wire::{ClientFrame, Frame, Hello, Ping, Reject, ServerFrame, Welcome};

use super::vector::Case;

enum Message {
    Client(ClientFrame<'static>),
    Server(ServerFrame),
}

fn message(case: &Case) -> Message {
    match case.text("frame") {
        "HELLO" => Message::Client(ClientFrame::Hello(Hello {
            version_min: case.number("version_min"),
            version_max: case.number("version_max"),
            session: u128::from_str_radix(case.text("session"), 16).unwrap(),
            pairs: case.all("pair").into_iter().map(pair).collect(),
        })),
        "PING" => Message::Client(ClientFrame::Ping(Ping {
            executions_dropped: case.number("executions_dropped"),
            samples_dropped: case.number("samples_dropped"),
            entries_dropped: case.number("entries_dropped"),
            bytes_buffered: case.number("bytes_buffered"),
        })),
        "BYE" => Message::Client(ClientFrame::Bye),
        "WELCOME" => Message::Server(ServerFrame::Welcome(Welcome {
            version: case.number("version"),
            acked: case.number("acked"),
            frame_body_bytes_max: case.number("frame_body_bytes_max"),
            heartbeat_ms: case.number("heartbeat_ms"),
        })),
        "ACK" => Message::Server(ServerFrame::Ack(case.number("seq"))),
        "REJECT" => Message::Server(ServerFrame::Reject(Reject {
            seq: case.number("seq"),
            record: case.number("record"),
            reason: case.text("reason").to_owned(),
        })),
        "WAIT" => Message::Server(ServerFrame::Wait(case.number("ms"))),
        "PONG" => Message::Server(ServerFrame::Pong(case.number("time"))),
        "ERROR" => Message::Server(ServerFrame::Error {
            code: case.number("code"),
            message: case.text("message").to_owned(),
        }),
        other => panic!("{}: frame {other}", case.name),
    }
}

pub fn pair(text: &str) -> (String, String) {
    let (key, value) = text.split_once('=').unwrap();
    (key.to_owned(), value.to_owned())
}

pub fn encode(case: &Case) -> Vec<u8> {
    let mut out = Vec::new();
    match message(case) {
        Message::Client(frame) => frame.encode(&mut out),
        Message::Server(frame) => frame.encode(&mut out),
    }
    out
}

pub fn check(case: &Case, frame: Frame<'_>) {
    match message(case) {
        Message::Client(expect) => assert_eq!(ClientFrame::decode(frame).unwrap(), expect, "{}", case.name),
        Message::Server(expect) => {
            assert_eq!(ServerFrame::decode(frame).unwrap(), Some(expect), "{}", case.name);
        }
    }
}
