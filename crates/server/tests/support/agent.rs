//! A blocking client of the native record protocol.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tacho_ingest::wire::{
    ClientFrame, DataFrame, DictFrame, FrameDecoder, Hello, Ping, Probed, Probes, SegmentRecord, ServerFrame,
    TraceForm, Welcome,
};
use tacho_model::{Body, Entry, Event, EventKind, OperationKind, Sample, Value};

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ids of the series that [`dictionary`] defines.
pub const SERIES: u64 = 1;
pub const LOG: u64 = 2;
pub const OTHER: u64 = 3;

pub fn hello(session: u128) -> Hello {
    let pairs = [("service", "shop"), ("host", "h1"), ("instance", "")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    Hello { version_min: 1, version_max: 1, session, pairs, secret: None, token: None }
}

/// HELLO of an agent that supports PROBES.
pub fn controlled(session: u128, service: &str, instance: &str) -> Hello {
    let pairs = [("service", service), ("host", "h1"), ("instance", instance), ("control", "1")];
    let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    Hello { pairs, ..hello(session) }
}

/// A dictionary with two series of samples, a series of entries, and two operations. The series differ between sessions.
pub fn dictionary(session: u128) -> Vec<u8> {
    let mut frame = DictFrame::new();
    frame.text(1, "main");
    frame.operation(1, OperationKind::HttpServer, "GET /ads");
    frame.operation(2, OperationKind::Method, "board.Größe()");
    let session = session.to_string();
    frame.series(SERIES, [("__name__", "heap"), ("session", &session)].into_iter());
    frame.series(LOG, [("__name__", "log"), ("session", &session)].into_iter());
    frame.series(OTHER, [("__name__", "other"), ("session", &session)].into_iter());
    frame.finish()
}

pub struct Agent {
    stream: TcpStream,
    decoder: FrameDecoder,
    pub welcome: Welcome,
}

impl Agent {
    /// Connects, sends HELLO and waits for WELCOME. If the server sends another frame, that frame is the error. The error is
    /// `None` if the connection cannot be made or is closed.
    pub fn connect(at: SocketAddr, hello: &Hello) -> Result<Self, Option<ServerFrame>> {
        let mut raw = Raw::connect(at).map_err(|_| None)?;
        let mut bytes = Vec::new();
        ClientFrame::Hello(hello.clone()).encode(&mut bytes);
        raw.send(&bytes);
        match raw.receive() {
            Some(ServerFrame::Welcome(welcome)) => {
                Ok(Self { stream: raw.stream, decoder: raw.decoder, welcome })
            }
            other => Err(other),
        }
    }

    /// The same as [`Agent::connect`]. Also sends the dictionary.
    pub fn open(at: SocketAddr, session: u128) -> Self {
        let mut agent = Self::connect(at, &hello(session)).expect("server greets");
        agent.send(&dictionary(session));
        agent
    }

    /// Returns whether all bytes could be written.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub fn send_frames(&mut self, numbers: impl IntoIterator<Item = u64>) {
        for seq in numbers {
            self.send(&content::frame(seq));
        }
    }

    pub fn ping(&mut self, ping: Ping) {
        let mut bytes = Vec::new();
        ClientFrame::Ping(ping).encode(&mut bytes);
        self.send(&bytes);
    }

    pub fn probed(&mut self, probed: Probed) {
        let mut bytes = Vec::new();
        ClientFrame::Probed(probed).encode(&mut bytes);
        self.send(&bytes);
    }

    /// Receives the next list of rules. No other frame may come before it.
    pub fn probes(&mut self) -> Probes {
        match self.receive() {
            Some(ServerFrame::Probes(probes)) => probes,
            other => panic!("{other:?} instead of PROBES"),
        }
    }

    pub fn bye(&mut self) {
        let mut bytes = Vec::new();
        ClientFrame::Bye.encode(&mut bytes);
        self.send(&bytes);
    }

    /// `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<ServerFrame> {
        receive(&mut self.stream, &mut self.decoder)
    }

    /// Waits for the acknowledgement of `seq`. Returns the frames other than acknowledgements that came before it.
    pub fn wait_ack(&mut self, seq: u64) -> Vec<ServerFrame> {
        let mut others = Vec::new();
        loop {
            match self.receive() {
                Some(ServerFrame::Ack(acked)) if acked >= seq => return others,
                Some(ServerFrame::Ack(_)) => {}
                Some(other) => others.push(other),
                None => panic!("no acknowledgement of {seq}, but {others:?}"),
            }
        }
    }

    /// Splits the connection for two threads: one sends, the other receives.
    pub fn split(self) -> (TcpStream, Receiver) {
        let sender = self.stream.try_clone().expect("socket can be cloned");
        (sender, Receiver { stream: self.stream, decoder: self.decoder })
    }
}

pub struct Receiver {
    stream: TcpStream,
    decoder: FrameDecoder,
}

impl Receiver {
    pub fn receive(&mut self) -> Option<ServerFrame> {
        receive(&mut self.stream, &mut self.decoder)
    }
}

/// A connection that may violate the protocol.
pub struct Raw {
    pub stream: TcpStream,
    decoder: FrameDecoder,
}

impl Raw {
    pub fn connect(at: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(at)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, decoder: FrameDecoder::new() })
    }

    /// Returns whether all bytes could be written.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    pub fn receive(&mut self) -> Option<ServerFrame> {
        receive(&mut self.stream, &mut self.decoder)
    }
}

fn receive(stream: &mut TcpStream, decoder: &mut FrameDecoder) -> Option<ServerFrame> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(frame) = decoder.pull().expect("server's frames are whole") {
            return ServerFrame::decode(frame).expect("server's frames are well formed");
        }
        match stream.read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => decoder.push(&buffer[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("no frame from the server within {PATIENCE:?}")
            }
            Err(_) => return None,
        }
    }
}

/// The records of frame `seq` of any session: three samples, two entries and a segment of two calls. Times and texts differ
/// between frames.
pub mod content {
    use super::*;

    /// 2023-11-14, in nanoseconds.
    pub const BASE: i64 = 1_700_000_000_000_000_000;
    /// Distance between the bases of consecutive frames, ns.
    const STEP: i64 = 1_000_000;
    pub const SAMPLES: u64 = 3;
    pub const ENTRIES: u64 = 2;
    pub const CALLS: u64 = 2;

    pub fn base(seq: u64) -> i64 {
        BASE + STEP * i64::try_from(seq).unwrap()
    }

    pub fn samples(seq: u64) -> Vec<Sample> {
        let sample = |i: u64| Sample { at: base(seq) + 10 * i as i64, value: Value::U64(seq * 10 + i) };
        (0..SAMPLES).map(sample).collect()
    }

    pub fn entries(seq: u64) -> Vec<Entry> {
        let entry = |i: u64| Entry {
            at: base(seq) + i as i64,
            body: Body::Text(format!("entry {seq}.{i} ö漢🚀").into()),
        };
        (0..ENTRIES).map(entry).collect()
    }

    /// The events of the segment. Operations are ids of the dictionary.
    pub fn events(seq: u64) -> Vec<Event> {
        let event = |delta, kind| Event { delta, kind };
        vec![
            event(0, EventKind::Enter(1)),
            event(seq % 1_000, EventKind::Enter(2)),
            event(50, if seq.is_multiple_of(7) { EventKind::ExitFailed } else { EventKind::Exit }),
            event(9, EventKind::Exit),
        ]
    }

    pub fn frame(seq: u64) -> Vec<u8> {
        let mut frame = DataFrame::new(seq, base(seq));
        frame.samples(SERIES, &samples(seq));
        for entry in entries(seq) {
            frame.entry(LOG, &entry);
        }
        frame.segment(&SegmentRecord {
            number: seq,
            trace: TraceForm::Own,
            parent: None,
            thread: 1,
            start: base(seq),
            continued: None,
            events: &events(seq),
            attributes: &[],
        });
        frame.finish()
    }
}
