//! Connections of agents to the recorder, on a network that delays and loses bytes, and cuts connections.
//!
//! The recorder is the listener of the server (`tacho_server::listen`): frames, sessions, acknowledgements. An agent opens
//! a connection for each round of frames and keeps each frame until its ACK (`docs/format/wire.md`). The network cuts some
//! connections after any byte, in either direction. The recorder sees the end of some connections late. A later connection of
//! the session then supersedes the old one.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::wire::{
    ClientFrame, DataFrame, DictFrame, FrameDecoder, Hello, SegmentRecord, ServerFrame, TraceForm, VERSION,
};
use tacho_model::{Batch, Event, EventKind, ManualClock, NAME, OperationKind, Random};
use tacho_server::control::Control;
use tacho_server::listen::native::{Native, serve_stream};
use tacho_server::metrics::Metrics;
use tacho_server::shutdown::{self, Shutdown, Trigger};
use tacho_store::Store;
use tacho_store::conformance::simulation::model::SENDER;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::agent::Frame;
use crate::check::names;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Limit on the bytes that are on the way in each direction.
const ON_THE_WAY_BYTES: usize = 16 << 10;
/// An agent gives up a connection after this time.
const PATIENCE: Duration = Duration::from_millis(400);
/// Limit on connections whose end the recorder does not see.
const SILENT_MAX: usize = 6;
/// Operations in the dictionary of a connection: all that the model uses.
const OPERATIONS: u64 = 9;
/// Id of the name of the only thread.
const THREAD: u64 = 1;

/// The recorder of one process, and the connections of the recorder.
#[derive(Default)]
pub struct Network {
    recorder: Option<Recorder>,
    connections: JoinSet<()>,
    /// Connections that an agent no longer uses, and whose end the recorder does not see.
    silent: Vec<DuplexStream>,
}

struct Recorder {
    native: Arc<Native>,
    shutdown: Shutdown,
    /// Dropping it would stop the recorder.
    _trigger: Trigger,
}

impl Network {
    /// Starts the recorder of a store.
    pub fn open(&mut self, store: Arc<Store>, clock: Arc<ManualClock>) {
        let metrics = Arc::new(Metrics::default());
        let control = Arc::new(Control::new(metrics.clone()));
        let native = Arc::new(Native::new(store, metrics, clock, control));
        let (trigger, shutdown) = shutdown::channel();
        self.recorder = Some(Recorder { native, shutdown, _trigger: trigger });
    }

    /// A new connection; `None` without a recorder.
    pub fn connect(&mut self) -> Option<DuplexStream> {
        let Recorder { native, shutdown, .. } = self.recorder.as_ref()?;
        let (here, there) = tokio::io::duplex(ON_THE_WAY_BYTES);
        let (native, shutdown) = (native.clone(), shutdown.clone());
        self.connections
            .spawn(async move { serve_stream(&native, Box::new(there), ADDRESS, shutdown).await });
        Some(here)
    }

    /// Takes a connection that an agent no longer uses. A silent connection stays open until `SILENT_MAX` newer ones are
    /// silent, so the recorder does not see its end at once. Other connections are closed.
    pub fn leave(&mut self, heard: Heard) {
        if heard.is_silent {
            self.silent.push(heard.stream);
        }
        if self.silent.len() > SILENT_MAX {
            self.silent.remove(0);
        }
    }

    /// Ends all connections. Returns when the recorder has stored or refused what it has read of them.
    ///
    /// # Errors
    /// The message of a panic.
    pub async fn close(&mut self) -> Result<(), String> {
        self.silent.clear();
        while let Some(ended) = self.connections.join_next().await {
            ended.map_err(|error| format!("the recorder panics: {error}"))?;
        }
        Ok(())
    }

    /// Ends the recorder as a crash does, so that the store is dropped.
    pub async fn end(&mut self) {
        self.silent.clear();
        self.connections.shutdown().await;
        self.recorder = None;
    }
}

/// The course of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    /// Limit on the frames that the agent sends.
    pub frames: usize,
    wait: Duration,
    /// Pause before each frame.
    pause: Duration,
    /// Bytes after which the network delivers nothing more to the recorder.
    up_bytes: u64,
    /// Bytes after which the network delivers nothing more to the agent.
    down_bytes: u64,
    /// Whether the agent sends its frames before it has read WELCOME.
    is_eager: bool,
    is_silent: bool,
}

impl Fate {
    pub const fn draw(random: &mut Random) -> Self {
        Self {
            frames: [1, 4, 40][random.below(3) as usize],
            wait: Duration::from_millis(random.below(4)),
            pause: Duration::from_millis(random.below(8).saturating_sub(5)),
            up_bytes: if random.one_in(4) { random.below(20_000) } else { u64::MAX },
            down_bytes: if random.one_in(4) { random.below(80) } else { u64::MAX },
            is_eager: random.one_in(3),
            is_silent: random.one_in(2),
        }
    }
}

/// An agent's side of one connection.
pub struct Talk {
    /// Index of the agent.
    pub at: usize,
    pub session: u128,
    pub frames: Vec<Frame>,
    pub fate: Fate,
    pub stream: DuplexStream,
}

/// What an agent has read on one connection.
pub struct Heard {
    pub at: usize,
    /// All frames up to this number are acknowledged.
    pub acked: u64,
    /// Whether all frames that the agent wanted to send are acknowledged.
    pub is_complete: bool,
    /// The reason of a REJECT, or the error of bytes that are not a frame. The recorder must refuse no record of the model.
    pub refused: Option<String>,
    is_silent: bool,
    stream: DuplexStream,
}

impl Talk {
    pub async fn run(self) -> Heard {
        let Self { at, session, frames, fate, mut stream } = self;
        let mut ears = Ears { acked: 0, last: frames.last().map_or(0, |(seq, _)| *seq), refused: None };
        tokio::time::sleep(fate.wait).await;
        let (read, write) = tokio::io::split(&mut stream);
        let (welcome, welcomed) = oneshot::channel();
        tokio::select! {
            biased;
            () = ears.hear(read, fate.down_bytes, welcome) => {}
            () = send(write, session, &frames, fate, welcomed) => {}
            () = tokio::time::sleep(PATIENCE) => {}
        }
        let Ears { acked, last, refused } = ears;
        Heard { at, acked, is_complete: acked >= last, refused, is_silent: fate.is_silent, stream }
    }
}

/// Sends frames, as far as the network delivers them. Does not end, because an agent waits for ACKs.
async fn send(
    mut write: impl AsyncWrite + Unpin,
    session: u128,
    frames: &[Frame],
    fate: Fate,
    welcomed: oneshot::Receiver<u64>,
) {
    let mut left = fate.up_bytes;
    deliver(&mut write, &hello(session), &mut left).await;
    let acked = if fate.is_eager { 0 } else { welcomed.await.unwrap_or(0) };
    deliver(&mut write, &dictionary(session), &mut left).await;
    for (seq, batch) in frames.iter().filter(|(seq, _)| *seq > acked) {
        if !fate.pause.is_zero() {
            tokio::time::sleep(fate.pause).await;
        }
        deliver(&mut write, &data(*seq, batch), &mut left).await;
    }
    std::future::pending().await
}

/// Writes as many bytes as the network delivers.
async fn deliver(write: &mut (impl AsyncWrite + Unpin), bytes: &[u8], left: &mut u64) {
    let count = (bytes.len() as u64).min(*left);
    *left -= count;
    // Fails if the recorder has ended the connection. The agent reads the reason.
    let _ = write.write_all(&bytes[..count as usize]).await;
}

struct Ears {
    acked: u64,
    /// The last frame that the agent wants to send.
    last: u64,
    refused: Option<String>,
}

impl Ears {
    /// Reads until all frames are acknowledged, the connection ends, or the network delivers nothing more.
    async fn hear(&mut self, mut read: impl AsyncRead + Unpin, mut left: u64, welcome: oneshot::Sender<u64>) {
        let (mut decoder, mut buffer, mut welcome) = (FrameDecoder::new(), [0; 512], Some(welcome));
        while self.acked < self.last && left > 0 {
            let Ok(count @ 1..) = read.read(&mut buffer).await else { return };
            let count = (count as u64).min(left);
            left -= count;
            decoder.push(&buffer[..count as usize]);
            loop {
                let frame = match decoder.pull().map(|frame| frame.map(ServerFrame::decode)) {
                    Ok(None) => break,
                    Ok(Some(Ok(None))) => continue,
                    Ok(Some(Ok(Some(frame)))) => frame,
                    Ok(Some(Err(error))) | Err(error) => {
                        self.refused.get_or_insert(error.to_string());
                        return;
                    }
                };
                match frame {
                    ServerFrame::Welcome(found) => {
                        self.acked = self.acked.max(found.acked);
                        // An eager agent does not wait for this answer.
                        let _ = welcome.take().map(|welcome| welcome.send(found.acked));
                    }
                    ServerFrame::Ack(seq) => self.acked = self.acked.max(seq),
                    ServerFrame::Reject(reject) => {
                        self.refused.get_or_insert(reject.reason);
                    }
                    ServerFrame::Error { .. } => return,
                    ServerFrame::Wait(_) | ServerFrame::Pong(_) | ServerFrame::Probes(_) => {}
                }
            }
        }
    }
}

fn hello(session: u128) -> Vec<u8> {
    let pairs = vec![(SENDER.to_owned(), session.to_string())];
    let hello =
        Hello { version_min: VERSION, version_max: VERSION, session, pairs, secret: None, token: None };
    let mut bytes = Vec::new();
    ClientFrame::Hello(hello).encode(&mut bytes);
    bytes
}

/// The series of samples and entries, in the order of their ids.
fn series() -> impl Iterator<Item = (u64, &'static str)> {
    (1..).zip(names().chain(["entries"]))
}

fn id_of(name: &str) -> u64 {
    series().find(|(_, known)| *known == name).map_or(0, |(id, _)| id)
}

/// All definitions of a connection.
fn dictionary(session: u128) -> Vec<u8> {
    let mut frame = DictFrame::new();
    frame.text(THREAD, "main");
    (0..OPERATIONS).for_each(|n| frame.operation(n + 1, OperationKind::Method, &format!("m{n}")));
    let sender = session.to_string();
    series().for_each(|(id, name)| frame.series(id, [(NAME, name), (SENDER, &*sender)].into_iter()));
    frame.finish()
}

/// A batch of the model as a DATA frame.
fn data(seq: u64, batch: &Batch) -> Vec<u8> {
    let mut frame = DataFrame::new(seq, 0);
    batch.samples.iter().for_each(|series| frame.samples(id_of(series.labels.name()), &series.samples));
    for series in &batch.entries {
        series.entries.iter().for_each(|entry| frame.entry(id_of("entries"), entry));
    }
    for series in &batch.executions {
        let id = |index: u32| {
            let operation = series.operations.get(index as usize);
            let number =
                operation.and_then(|operation| operation.name.strip_prefix('m')?.parse::<u32>().ok());
            number.unwrap_or(0) + 1
        };
        for segment in &series.segments {
            let event = |event: &Event| match event.kind {
                EventKind::Enter(index) => Event { kind: EventKind::Enter(id(index)), ..*event },
                EventKind::Exit | EventKind::ExitFailed => *event,
            };
            let events: Vec<Event> = segment.events.iter().map(event).collect();
            frame.segment(&SegmentRecord {
                number: segment.base,
                trace: TraceForm::Full(segment.trace),
                parent: segment.parent,
                thread: THREAD,
                start: segment.start,
                continued: None,
                events: &events,
                attributes: &[],
            });
        }
    }
    frame.finish()
}
