//! Sends traces as agents do: one connection of the native protocol for each process (`docs/format/wire.md`).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tacho_ingest::wire::{
    AttributeForm, ClientFrame, DataFrame, DictFrame, FrameDecoder, Hello, Ping, SegmentRecord, ServerFrame,
    TraceForm, VERSION,
};

use super::fleet::Service;
use super::rows::host;
use super::trace::{
    AttributeKey, AttributeText, EXCEPTIONS, INSTANCES, Process, Segment, THREADS, Trace, Traces,
};

/// A frame is sent when its body has this many bytes; agents do the same.
const FRAME_BYTES: usize = 64 << 10;
/// Limit on the frames of a connection that are not acknowledged.
const UNACKED_MAX: u64 = 16;
/// A heartbeat is sent after this time without a frame. The server ends a connection after 15 s without a byte.
const IDLE_MAX: Duration = Duration::from_secs(4);
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Ids of texts: threads from 1, exceptions from 101, keys from 201.
const EXCEPTION_IDS: u64 = 101;
const KEYS: [(AttributeKey, u64, &str); 3] = [
    (AttributeKey::Status, 201, "http.status"),
    (AttributeKey::RequestId, 202, "request.id"),
    (AttributeKey::Exception, 203, "exception"),
];

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("cannot send to {target}: {source}")]
    Io { target: String, source: std::io::Error },
    #[error("the server did not acknowledge all calls: {0}")]
    Refused(String),
}

/// One connection for each process.
pub struct Sender {
    links: Vec<Link>,
    checked: Instant,
}

impl Sender {
    /// `target`: `HOST:PORT` of the listener for records.
    pub fn connect(target: &str, traces: &Traces) -> Result<Self, SendError> {
        let links = traces.processes.iter().enumerate().map(|(number, process)| {
            let service = &traces.fleet.services[number / INSTANCES];
            Link::connect(target, service, (number % INSTANCES, process))
        });
        Ok(Self { links: links.collect::<Result<_, _>>()?, checked: Instant::now() })
    }

    pub fn send(&mut self, trace: &Trace) -> Result<(), SendError> {
        for (index, segment) in trace.segments.iter().enumerate() {
            let form = if index == 0 && trace.is_own { TraceForm::Own } else { TraceForm::Full(trace.id) };
            let link = segment.service * INSTANCES + segment.instance;
            if self.links[link].add(segment, form) {
                self.links[link].flush()?;
                self.wait(link, UNACKED_MAX)?;
            }
        }
        if self.checked.elapsed() >= CHECK_INTERVAL { self.beat() } else { Ok(()) }
    }

    /// Sends the frames that are not full, and waits until the server has acknowledged all frames.
    pub fn finish(mut self) -> Result<(), SendError> {
        self.links.iter_mut().try_for_each(Link::flush)?;
        (0..self.links.len()).try_for_each(|link| self.wait(link, 0))
    }

    /// Waits until a connection has at most `unacked` unacknowledged frames.
    fn wait(&mut self, link: usize, unacked: u64) -> Result<(), SendError> {
        while !self.links[link].is_acked(unacked)? {
            self.beat()?;
        }
        Ok(())
    }

    /// Sends heartbeats on idle connections.
    fn beat(&mut self) -> Result<(), SendError> {
        self.checked = Instant::now();
        self.links.iter_mut().filter(|link| link.written.elapsed() >= IDLE_MAX).try_for_each(Link::ping)
    }
}

/// The answers of the server on a connection.
#[derive(Default)]
struct Answers {
    acked: u64,
    failure: Option<String>,
}

struct Link {
    target: String,
    stream: TcpStream,
    answers: Arc<(Mutex<Answers>, Condvar)>,
    seq: u64,
    frame: Option<DataFrame>,
    /// When the last frame was sent.
    written: Instant,
}

impl Link {
    fn connect(
        target: &str,
        service: &Service,
        (instance, process): (usize, &Process),
    ) -> Result<Self, SendError> {
        let io = |source| SendError::Io { target: target.to_owned(), source };
        let stream = TcpStream::connect(target).map_err(io)?;
        let reader = stream.try_clone().map_err(io)?;
        let answers = Arc::<(Mutex<Answers>, Condvar)>::default();
        let shared = Arc::clone(&answers);
        std::thread::spawn(move || receive(reader, &shared));
        let mut link =
            Self { target: target.to_owned(), stream, answers, seq: 0, frame: None, written: Instant::now() };
        link.write(&greeting(service, instance, process))?;
        Ok(link)
    }

    /// Adds a segment to the frame. Returns whether the frame is full.
    fn add(&mut self, segment: &Segment, trace: TraceForm) -> bool {
        let attributes: Vec<(u32, u64, AttributeForm<'_>)> =
            segment.attributes.iter().map(|(call, key, value)| (*call, key_id(*key), form(*value))).collect();
        let record = SegmentRecord {
            number: segment.number,
            trace,
            parent: segment.parent,
            thread: 1 + segment.thread,
            start: segment.start,
            continued: None,
            events: &segment.events,
            attributes: &attributes,
        };
        let next = self.seq + 1;
        let frame = self.frame.get_or_insert_with(|| DataFrame::new(next, segment.start));
        frame.segment(&record);
        frame.body_bytes() >= FRAME_BYTES
    }

    fn flush(&mut self) -> Result<(), SendError> {
        let Some(frame) = self.frame.take() else { return Ok(()) };
        self.seq += 1;
        self.write(&frame.finish())
    }

    fn ping(&mut self) -> Result<(), SendError> {
        let mut bytes = Vec::new();
        ClientFrame::Ping(Ping::default()).encode(&mut bytes);
        self.write(&bytes)
    }

    /// Whether at most `unacked` frames are unacknowledged. Waits up to a second for acknowledgements.
    fn is_acked(&self, unacked: u64) -> Result<bool, SendError> {
        let (lock, changed) = &*self.answers;
        let answers = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let is_waiting = |answers: &Answers| answers.failure.is_none() && self.seq - answers.acked > unacked;
        let waited = changed.wait_timeout_while(answers, CHECK_INTERVAL, |answers| is_waiting(answers));
        let (answers, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &answers.failure {
            Some(failure) => Err(SendError::Refused(failure.clone())),
            None => Ok(!is_waiting(&answers)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.written = Instant::now();
        self.stream.write_all(bytes).map_err(|source| SendError::Io { target: self.target.clone(), source })
    }
}

/// HELLO and DICT.
fn greeting(service: &Service, instance: usize, process: &Process) -> Vec<u8> {
    let pairs = [("service", service.name.to_owned()), ("host", host(instance)), ("instance", String::new())];
    let hello = Hello {
        version_min: VERSION,
        version_max: VERSION,
        session: process.session,
        pairs: pairs.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        secret: Some(process.secret),
        token: None,
    };
    let mut bytes = Vec::new();
    ClientFrame::Hello(hello).encode(&mut bytes);
    let mut dict = DictFrame::new();
    (0..THREADS).for_each(|thread| dict.text(1 + thread, &format!("http-{thread}")));
    (EXCEPTION_IDS..).zip(EXCEPTIONS).for_each(|(id, text)| dict.text(id, text));
    KEYS.iter().for_each(|(_, id, name)| dict.text(*id, name));
    (1..).zip(&service.operations).for_each(|(id, (kind, name))| dict.operation(id, *kind, name));
    bytes.extend(dict.finish());
    bytes
}

fn key_id(key: AttributeKey) -> u64 {
    KEYS.iter().find(|(known, ..)| *known == key).map_or(0, |(_, id, _)| *id)
}

const fn form(value: AttributeText) -> AttributeForm<'static> {
    match value {
        AttributeText::Integer(number) => AttributeForm::Integer(number),
        AttributeText::Uuid(bytes) => AttributeForm::Uuid(bytes),
        AttributeText::Exception(index) => AttributeForm::TextId(EXCEPTION_IDS + index as u64),
    }
}

/// Reads the answers of the server until the connection ends or the server refuses a frame or a record.
fn receive(mut stream: TcpStream, (lock, changed): &(Mutex<Answers>, Condvar)) {
    let mut decoder = FrameDecoder::new();
    let mut bytes = vec![0; 4_096];
    let failure = loop {
        match stream.read(&mut bytes) {
            Ok(0) => break "the connection was closed".to_owned(),
            Ok(count) => decoder.push(&bytes[..count]),
            Err(error) => break error.to_string(),
        }
        if let Some(failure) = take(&mut decoder, lock) {
            break failure;
        }
        changed.notify_all();
    };
    lock.lock().unwrap_or_else(PoisonError::into_inner).failure = Some(failure);
    changed.notify_all();
}

/// Stores the number of the last acknowledged frame. If the server refused a frame or a record, or sent an invalid frame, returns
/// the reason.
fn take(decoder: &mut FrameDecoder, lock: &Mutex<Answers>) -> Option<String> {
    loop {
        let frame = match decoder.pull() {
            Ok(frame) => frame?,
            Err(error) => return Some(error.to_string()),
        };
        match ServerFrame::decode(frame) {
            Ok(Some(ServerFrame::Ack(seq))) => {
                lock.lock().unwrap_or_else(PoisonError::into_inner).acked = seq
            }
            Ok(Some(refused @ (ServerFrame::Error { .. } | ServerFrame::Reject(_)))) => {
                return Some(format!("{refused:?}"));
            }
            Ok(_) => {}
            Err(error) => return Some(error.to_string()),
        }
    }
}
