//! Encodes control frames from the keys of a case (a test vector in `testdata/wire`), and compares decoded control frames with
//! these keys.

use tacho_ingest::wire::{
    ClientFrame, Frame, Hello, Moved, Ping, ProbeRule, ProbeState, Probed, Probes, Reject, RuleOutcome,
    Secret, ServerFrame, Token, Welcome,
};

use super::vector::{Case, number};

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
            secret: case.all("secret").first().map(|text| secret(text)),
            token: case.all("token").first().and_then(|text| Token::new(text)),
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
            features: case.all("features").first().map_or(0, |text| number(text)),
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
        "PROBES" => Message::Server(ServerFrame::Probes(Probes {
            revision: case.number("revision"),
            rules: case.all("rule").into_iter().map(rule).collect(),
        })),
        "PROBED" => Message::Client(ClientFrame::Probed(probed(case))),
        other => panic!("{}: frame {other}", case.name),
    }
}

fn secret(text: &str) -> Secret {
    Secret(u128::from_str_radix(text, 16).unwrap().to_be_bytes())
}

fn rule(text: &str) -> ProbeRule {
    let (state, pattern) = text.split_once(' ').unwrap();
    ProbeRule { state: ProbeState::from_byte(number(state)).unwrap(), pattern: pattern.to_owned() }
}

fn probed(case: &Case) -> Probed {
    let outcome = |text: &str| {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        RuleOutcome { rule: number(word()), matched: number(word()), fault: word().to_owned() }
    };
    let (reasons, since) = (case.all("reason"), case.all("since"));
    let moved = case.all("moved").into_iter().zip(reasons).zip(since);
    Probed {
        revision: case.number("revision"),
        on: case.number("on"),
        aggregated: case.number("aggregated"),
        off: case.number("off"),
        rules: case.all("rule").into_iter().map(outcome).collect(),
        moved: moved
            .map(|((operation, reason), since)| Moved {
                operation: operation.to_owned(),
                reason: reason.to_owned(),
                since: number(since),
            })
            .collect(),
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
