//! Tests the native listener over a real socket and a real store.

#[path = "support/agent.rs"]
mod agent;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use agent::{Agent, Raw, content, hello};
use tacho_ingest::wire::{
    ClientFrame, DataFrame, ErrorCode, FRAME_BODY_BYTES_MAX, Ping, REJECTS_MAX, Secret, ServerFrame, VERSION,
};
use tacho_model::{Body, Entry, Kind, MatchOp, Matcher, Sample, TimeRange, Value};
use tacho_server::clock::SystemClock;
use tacho_server::control::Control;
use tacho_server::listen::Patience;
use tacho_server::listen::native::{self, Native};
use tacho_server::metrics::Metrics;
use tacho_server::shutdown::{self, Trigger};
use tacho_store::disk::FaultyDisk;
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::threads::Threads;
use tacho_store::{MemoryDriver, Options, Store};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// A listener with its own store. Faults of disk and driver can be injected.
struct Running {
    runtime: Runtime,
    at: SocketAddr,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    driver: Arc<Faulty<MemoryDriver>>,
    disk: FaultyDisk,
    trigger: Trigger,
    listener: JoinHandle<()>,
    _directory: tempfile::TempDir,
}

fn start() -> Running {
    start_with(64, Options::default())
}

fn start_with(connections_max: usize, options: Options) -> Running {
    start_patient(connections_max, options, Patience::default())
}

fn start_patient(connections_max: usize, options: Options, patience: Patience) -> Running {
    start_on(Runtime::new().unwrap(), connections_max, options, patience)
}

/// A server whose clock is advanced only by [`Running::pass`]. Clients run in [`Running::client`].
fn start_with_stopped_clock() -> Running {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let options = Options { threads: Threads::One, ..Options::default() };
    start_on(runtime.unwrap(), 64, options, Patience::default())
}

fn start_on(runtime: Runtime, connections_max: usize, options: Options, patience: Patience) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let disk = FaultyDisk::default();
    let options = Options { disk: Arc::new(disk.clone()), ..options };
    let metrics = Arc::new(Metrics::default());
    let clock = Arc::new(SystemClock);
    let (trigger, shutdown) = shutdown::channel();
    let open = Store::open(driver.clone(), directory.path(), options, clock.clone());
    let store = runtime.block_on(open).unwrap();
    let socket = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let at = socket.local_addr().unwrap();
    let control = Arc::new(Control::new(metrics.clone()));
    let native = Native::new(store.clone(), metrics.clone(), clock, control)
        .with_patience(patience)
        .with_http("HTTP", 7070);
    let listener = runtime.spawn(native::serve((socket, None), native, connections_max, shutdown));
    Running { runtime, at, store, metrics, driver, disk, trigger, listener, _directory: directory }
}

impl Running {
    /// All samples of the series `heap` of all sessions.
    fn samples(&self) -> Vec<Sample> {
        let name = Matcher::new("__name__", MatchOp::Equal, "heap").unwrap();
        let series = self.store.find(Kind::Sample, &[name]);
        let read = |id| self.runtime.block_on(self.store.samples(id, TimeRange::ALL)).unwrap();
        series.into_iter().flat_map(|(id, _)| read(id)).collect()
    }

    /// Runs the code of a client. A stopped clock does not advance while this code runs.
    fn client<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.runtime.block_on(async { tokio::task::spawn_blocking(work).await.unwrap() })
    }

    /// Advances a stopped clock, and lets the tasks of the server run.
    fn pass(&self, time: Duration) {
        self.runtime.block_on(async {
            tokio::time::advance(time).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        });
    }

    fn received(&self) -> [u64; 3] {
        Kind::ALL.map(|kind| self.metrics.records_received.with(["shop", kind.name()]).get())
    }
}

fn samples(frames: impl Iterator<Item = u64>) -> Vec<Sample> {
    frames.flat_map(content::samples).collect()
}

fn expect_error(frame: Option<ServerFrame>, code: ErrorCode, text: &str) {
    match frame {
        Some(ServerFrame::Error { code: got, message }) => {
            assert_eq!(got, code as u64, "{message}");
            assert!(message.contains(text), "{text:?} in {message:?}");
        }
        other => panic!("{other:?} instead of error {code:?}"),
    }
}

#[test]
fn acknowledged_records_can_be_read_and_are_counted() {
    let server = start();
    let mut agent = Agent::open(server.at, 1);
    assert_eq!((agent.welcome.version, agent.welcome.acked), (VERSION, 0));
    agent.send_frames(1..=100);
    assert_eq!(agent.wait_ack(100), []);
    assert_eq!(server.samples(), samples(1..=100));
    assert_eq!(server.received(), [300, 200, 200]);
    let [(id, labels)] = &server.store.find(Kind::Execution, &[])[..] else {
        panic!("not one series of executions")
    };
    assert_eq!(labels.to_string(), r#"executions{host="h1", service="shop"}"#);
    let blocks = server.runtime.block_on(server.store.executions(*id, TimeRange::ALL)).unwrap();
    assert_eq!(blocks.iter().map(|block| block.calls()).sum::<usize>(), 200);
    agent.bye();
    assert_eq!(agent.receive(), None);
}

#[test]
fn frames_sent_again_are_acknowledged_and_not_stored_twice() {
    let server = start();
    let mut agent = Agent::open(server.at, 2);
    agent.send_frames(1..=5);
    agent.wait_ack(5);
    drop(agent);
    let mut agent = Agent::open(server.at, 2);
    assert_eq!(agent.welcome.acked, 5);
    agent.send_frames([3, 4, 5, 6, 9, 8, 10]);
    assert_eq!(agent.wait_ack(10), []);
    assert_eq!(
        server.samples(),
        samples((1..=6).chain([9, 10])),
        "frame 8 must be missing: it arrived after frame 9"
    );
    assert_eq!(server.received()[0], 8 * content::SAMPLES);
    assert_eq!(Agent::open(server.at, 3).welcome.acked, 0, "another session must begin at 0");
}

#[test]
fn a_far_too_large_frame_number_blocks_no_session() {
    let server = start();
    let mut agent = Agent::open(server.at, 2);
    agent.send_frames(1..=5);
    agent.wait_ack(5);
    let mut other = Agent::open(server.at, 2);
    let mut frame = DataFrame::new(1 << 62, content::BASE);
    frame.samples(agent::SERIES, &content::samples(1));
    other.send(&frame.finish());
    expect_error(other.receive(), ErrorCode::Malformed, "is too far above 5");
    let mut agent = Agent::open(server.at, 2);
    assert_eq!(agent.welcome.acked, 5);
    agent.send_frames([6, 7]);
    assert_eq!(agent.wait_ack(7), []);
    assert_eq!(server.samples(), samples(1..=7));
}

#[test]
fn a_session_derived_from_a_secret_needs_that_secret() {
    let server = start();
    let own = Secret([7; 16]);
    let session = own.session();
    let with = |secret| tacho_ingest::wire::Hello { secret, ..hello(session) };
    let mut agent = Agent::connect(server.at, &with(Some(own))).expect("server greets");
    agent.send(&agent::dictionary(session));
    agent.send_frames(1..=5);
    agent.wait_ack(5);
    for secret in [None, Some(Secret([8; 16]))] {
        let refused =
            Agent::connect(server.at, &with(secret)).err().expect("a client without the secret is refused");
        expect_error(refused, ErrorCode::Session, "the secret does not belong to this session");
    }
    // The owner of the session is not affected, and can reconnect.
    agent.send_frames([6, 7]);
    assert_eq!(agent.wait_ack(7), []);
    let agent = Agent::connect(server.at, &with(Some(own))).expect("server greets");
    assert_eq!(agent.welcome.acked, 7);
}

#[test]
fn a_second_connection_of_a_session_ends_the_first() {
    let server = start();
    let mut first = Agent::open(server.at, 4);
    first.send_frames(1..=50);
    let second = Agent::open(server.at, 4);
    let mut acked = 0;
    let last = loop {
        match first.receive() {
            Some(ServerFrame::Ack(seq)) => acked = seq,
            other => break other,
        }
    };
    expect_error(last, ErrorCode::Superseded, "connected again");
    assert_eq!(first.receive(), None);
    assert!(
        second.welcome.acked >= acked,
        "WELCOME of the newer connection lacks frames that were acknowledged to the older one"
    );
    assert_eq!(server.samples(), samples(1..=second.welcome.acked));
}

#[test]
fn a_bad_record_does_not_affect_good_ones() {
    let server = start();
    let mut agent = Agent::open(server.at, 5);
    let mut frame = DataFrame::new(1, 0);
    let sample = |at| Sample { at, value: Value::I64(at) };
    frame.samples(agent::SERIES, &[sample(1)]);
    for id in 100..120 {
        frame.samples(id, &[sample(2)]);
    }
    frame.samples(agent::SERIES, &[sample(3)]);
    agent.send(&frame.finish());
    let rejects = agent.wait_ack(1);
    assert_eq!(rejects.len(), REJECTS_MAX);
    let Some(ServerFrame::Reject(first)) = rejects.first() else { panic!("{rejects:?}") };
    assert_eq!((first.seq, first.record, first.reason.as_str()), (1, 1, "series 100 is not defined"));
    assert_eq!(server.samples(), [sample(1), sample(3)]);
    assert_eq!(server.metrics.records_refused.with(["native"]).get(), 20);
}

#[test]
fn a_full_store_sends_wait_and_continues() {
    let server = start_with(
        64,
        Options {
            seal_bytes: 16 << 10,
            open_bytes_max: 32 << 10,
            retry_after: Duration::from_millis(20),
            ..Options::default()
        },
    );
    server.driver.freeze();
    let mut agent = Agent::open(server.at, 6);
    let frames = 300;
    let sender = std::thread::spawn(move || {
        agent.send_frames(1..=frames);
        agent
    });
    let mut agent = sender.join().unwrap();
    while !matches!(agent.receive(), Some(ServerFrame::Wait(20))) {}
    assert!(server.metrics.sender_waits.with(["native"]).get() > 0);
    server.driver.thaw();
    let others = agent.wait_ack(frames);
    assert!(others.iter().all(|frame| matches!(frame, ServerFrame::Wait(_))), "{others:?}");
    assert_eq!(server.samples(), samples(1..=frames));
}

#[test]
fn only_the_refused_frames_of_a_group_are_missing() {
    let server = start_with(64, Options { series_max: 3, ..Options::default() });
    let mut agent = Agent::open(server.at, 11);
    // The first frame is sent alone, so that its three series are known before a group of frames can contain a fourth series.
    agent.send_frames(1..=1);
    assert_eq!(agent.wait_ack(1), []);
    agent.send_frames(2..=20);
    let mut over = DataFrame::new(21, 0);
    over.samples(agent::OTHER, &content::samples(21));
    agent.send(&over.finish());
    agent.send_frames(22..=40);
    let rejects = agent.wait_ack(40);
    let [ServerFrame::Reject(reject)] = &rejects[..] else { panic!("{rejects:?}") };
    assert_eq!(reject.seq, 21);
    assert!(reject.reason.contains("limit of 3 series"), "{}", reject.reason);
    assert_eq!(server.samples(), samples((1..=20).chain(22..=40)));
}

#[test]
fn a_full_disk_is_reported_and_nothing_acknowledged_is_lost() {
    let server = start();
    let mut agent = Agent::open(server.at, 7);
    agent.send(&content::frame(1));
    agent.wait_ack(1);
    server.disk.set_space(10);
    agent.send(&content::frame(2));
    expect_error(agent.receive(), ErrorCode::Storage, "space");
    assert_eq!(agent.receive(), None);
    server.disk.set_space(u64::MAX);
    let mut agent = Agent::open(server.at, 7);
    assert_eq!(agent.welcome.acked, 1);
    agent.send(&content::frame(2));
    agent.wait_ack(2);
    assert_eq!(server.samples(), samples(1..=2));
}

#[test]
fn other_protocols_and_damaged_frames_get_an_error_with_a_code() {
    let server = start();
    let say = |bytes: &[u8]| {
        let mut raw = Raw::connect(server.at).unwrap();
        raw.send(bytes);
        raw.receive()
    };
    expect_error(say(b"SSH-2.0-x\r\n"), ErrorCode::FrameTooLong, "frame of 759714643 bytes");
    expect_error(say(&content::frame(1)), ErrorCode::Malformed, "first frame is not HELLO");
    let future = tacho_ingest::wire::Hello { version_min: 2, version_max: 9, ..hello(8) };
    let mut bytes = Vec::new();
    ClientFrame::Hello(future).encode(&mut bytes);
    expect_error(say(&bytes), ErrorCode::Version, "the client knows 2 to 9");

    let mut agent = Agent::open(server.at, 8);
    let mut damaged = content::frame(1);
    *damaged.last_mut().unwrap() ^= 1;
    agent.send(&damaged);
    expect_error(agent.receive(), ErrorCode::Damaged, "checksum mismatch");

    let mut agent = Agent::open(server.at, 8);
    agent.send(&(FRAME_BODY_BYTES_MAX + 1).to_le_bytes());
    expect_error(agent.receive(), ErrorCode::FrameTooLong, "frame of 4194305 bytes");

    let mut agent = Agent::open(server.at, 8);
    agent.send(&DataFrame::new(0, 0).finish());
    expect_error(agent.receive(), ErrorCode::Malformed, "frame number 0");
    assert_eq!(server.samples(), []);
}

#[test]
fn an_http_client_on_the_native_port_gets_an_http_response_with_the_http_port() {
    let server = start();
    for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"] {
        let mut stream = TcpStream::connect(server.at).unwrap();
        // The client sends the request in several writes. The server responds before it has read the whole request.
        let body = "x".repeat(100_000);
        for part in [&method[..1], &method[1..], " /write HTTP/1.1\r\nHost: x\r\n\r\n", &body] {
            stream.write_all(part.as_bytes()).unwrap();
        }
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        let (head, line) = response.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{method}: {response}");
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", line.len())), "{method}: {response}");
        let expect =
            "this port takes records of agents in the native protocol; HTTP is served on port 7070\n";
        assert_eq!(line, expect, "{method}");
    }
    assert_eq!(server.metrics.connections_refused.with(["native", "http"]).get(), 9);
    assert_eq!(server.metrics.connections_refused.with(["native", "frame-too-long"]).get(), 0);
    let mut agent = Agent::open(server.at, 8);
    agent.send_frames(1..=1);
    assert_eq!(agent.wait_ack(1), []);
}

#[test]
fn shutdown_sends_the_reason_and_ends_the_listener() {
    let server = start();
    let mut agent = Agent::open(server.at, 9);
    agent.send(&content::frame(1));
    agent.wait_ack(1);
    server.trigger.stop();
    expect_error(agent.receive(), ErrorCode::ShuttingDown, "shutting down");
    assert_eq!(agent.receive(), None);
    drop(agent);
    server.runtime.block_on(server.listener).unwrap();
}

/// Checks that the server closes the connection when `limit` has passed, and not earlier.
fn expect_end_after(server: &Running, limit: Duration, stream: TcpStream) {
    let moment = Duration::from_millis(10);
    server.pass(limit - moment);
    stream.set_nonblocking(true).unwrap();
    let early = stream.peek(&mut [0]).expect_err("closed too early, or a byte was sent");
    assert_eq!(early.kind(), ErrorKind::WouldBlock);
    stream.set_nonblocking(false).unwrap();
    server.pass(2 * moment);
    assert_eq!(server.client(move || stream.peek(&mut [0])).unwrap(), 0);
}

/// Sends a heartbeat and waits for the answer. The server has then read all earlier frames.
fn beat(server: &Running, mut agent: Agent) -> Agent {
    server.client(move || {
        agent.ping(Ping::default());
        assert!(matches!(agent.receive(), Some(ServerFrame::Pong(_))));
        agent
    })
}

#[test]
fn a_peer_without_a_greeting_is_cut_off() {
    let server = start_with_stopped_clock();
    let at = server.at;
    let raw = server.client(move || Raw::connect(at).unwrap());
    let open = server.metrics.connections.with(["native"]);
    let begun = std::time::Instant::now();
    server.client(move || {
        while open.get() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "the server does not accept the connection");
            std::thread::yield_now();
        }
    });
    expect_end_after(&server, Patience::default().greeting, raw.stream);
}

#[test]
fn a_silent_peer_is_cut_off() {
    let server = start_with_stopped_clock();
    let at = server.at;
    let agent = server.client(move || Agent::open(at, 12));
    let (stream, _) = beat(&server, agent).split();
    expect_end_after(&server, Patience::default().silence, stream);
}

#[test]
fn heartbeats_keep_a_connection() {
    let server = start_with_stopped_clock();
    let at = server.at;
    let mut living = server.client(move || Agent::open(at, 14));
    for _ in 0..10 {
        living = beat(&server, living);
        server.pass(Patience::default().silence / 2);
    }
    beat(&server, living);
}

#[test]
fn connections_are_bounded() {
    let server = start_with(2, Options::default());
    let held: Vec<Agent> = (0..2).map(|session| Agent::open(server.at, session)).collect();
    let refused = Agent::connect(server.at, &hello(3)).err().flatten();
    expect_error(refused, ErrorCode::TooManyConnections, "2 connections are open");
    drop(held);
    let begun = std::time::Instant::now();
    while Agent::connect(server.at, &hello(3)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server does not accept a new connection");
    }
}

#[test]
fn heartbeats_are_answered_and_drops_counted_once() {
    let server = start();
    let report = |dropped, expect| {
        let mut agent = Agent::open(server.at, 10);
        let ping = Ping { executions_dropped: dropped, samples_dropped: 1, ..Ping::default() };
        agent.ping(ping);
        assert!(matches!(agent.receive(), Some(ServerFrame::Pong(time)) if time > content::BASE));
        assert_eq!(server.metrics.records_dropped.with(["shop"]).get(), expect);
    };
    report(5, 6);
    report(5, 6);
    report(7, 8);
}

/// Each of twenty connections has sent a part of a large frame. There are fewer permits for large frames.
#[test]
fn stalled_large_frames_do_not_block_the_large_frames_of_others() {
    let hour = Duration::from_secs(3_600);
    let patience = Patience { silence: hour, frame: hour, ..Patience::default() };
    let server = start_patient(64, Options::default(), patience);
    let body = vec![7; 2 << 20];
    let mut frame = Vec::new();
    ClientFrame::Data(&body).encode(&mut frame);
    let stalled: Vec<Agent> = (100..120)
        .map(|session| {
            let mut agent = Agent::open(server.at, session);
            agent.send(&frame[..300_000]);
            agent
        })
        .collect();
    let mut agent = Agent::open(server.at, 2);
    let mut log = DataFrame::new(1, content::BASE);
    log.entry(agent::LOG, &Entry { at: content::BASE, body: Body::Text("x".repeat(1 << 20).into()) });
    agent.send(&log.finish());
    assert_eq!(agent.wait_ack(1), []);
    assert!(server.metrics.connections_refused.with(["native", "slow-frame"]).get() > 0);
    drop(stalled);
}
