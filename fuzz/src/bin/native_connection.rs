//! A connection of the native protocol never panics, whatever bytes arrive. The answers and the stored records do not
//! depend on the places where the bytes are cut. All frames of the server can be decoded, and have the order of the protocol.
//! Some servers have tokens. Without a token that permits writing, such a server sends no WELCOME and stores nothing.
#![no_main]

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use tacho_fuzz::{CONNECTION_BYTES, Script, TOKENS, directory, gate, runtime, talk_to};
use tacho_ingest::wire::{ClientFrame, FrameDecoder, Hello, Ping, ServerFrame, Token};
use tacho_model::{Kind, ManualClock, TimeRange};
use tacho_server::control::Control;
use tacho_server::listen::native::{Native, serve_stream};
use tacho_server::metrics::Metrics;
use tacho_server::shutdown;
use tacho_store::disk::FaultyDisk;
use tacho_store::{MemoryDriver, Options, Store};

const FRAMES_MAX: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let step = 1 + script.below(300);
    let has_tokens = script.byte() % 2 == 1;
    let (sent, token) = sent(&mut script);
    let whole = talk(&sent, sent.len().max(1), has_tokens);
    let cut = talk(&sent, step, has_tokens);
    check(&whole);
    check(&cut);
    let may_write = token.is_some_and(|token| !["tacho_reader", "tacho_unknown"].contains(&token));
    if has_tokens && !may_write {
        let is_welcome = |frame: &ServerFrame| matches!(frame, ServerFrame::Welcome(_));
        assert!(!whole.frames.iter().any(is_welcome) && whole.records.is_empty(), "written without a token");
    }
    assert_eq!(settled(&whole, has_tokens), settled(&cut, has_tokens), "the answers depend on the cuts");
    assert_eq!(whole.records, cut.records, "the records depend on the cuts");
});

/// The body of a DICT frame that defines text 1 `t`, series 1 `s`, series 2 `e` and record type 1 `r`.
const DEFINED: &[u8] =
    b"\x01\x01\x01t\x03\x01\x01\x08__name__\x01s\x03\x02\x01\x08__name__\x01e\x04\x01\x01r\x01\x01\x01a\x00";

/// The bytes that a client sends: frames with correct checksums, and other bytes. Also the text of the token in its first frame,
/// if that is a HELLO with a token.
fn sent(script: &mut Script<'_>) -> (Vec<u8>, Option<&'static str>) {
    let mut out = vec![];
    let token = |number: u8| TOKENS.get(usize::from(number >> 1)).copied();
    let hello = |control: u8| Hello {
        version_min: 1,
        version_max: 1,
        session: 7,
        pairs: vec![
            ("service".to_owned(), "shop".to_owned()),
            ("control".to_owned(), (control % 2).to_string()),
        ],
        secret: None,
        token: token(control).and_then(Token::new),
    };
    let begin = script.byte();
    let mut first = None;
    if begin % 8 > 0 {
        first = token(begin >> 3);
        ClientFrame::Hello(hello(begin >> 3)).encode(&mut out);
        ClientFrame::Dict(DEFINED).encode(&mut out);
    }
    let mut seq = 0;
    for _ in 0..FRAMES_MAX {
        if script.0.is_empty() {
            break;
        }
        let kind = script.byte();
        let count = script.byte().into();
        let body = script.bytes(count);
        match kind % 16 {
            0..=6 => {
                // Most frames have the next number.
                seq = if kind < 240 { (seq + 1) % 128 } else { u8::MAX % 128 };
                ClientFrame::Data(&[&[seq], body].concat()).encode(&mut out);
            }
            7..=9 => ClientFrame::Dict(body).encode(&mut out),
            10 | 11 => {
                ClientFrame::Ping(Ping { samples_dropped: kind.into(), ..Ping::default() }).encode(&mut out)
            }
            12 => ClientFrame::Bye.encode(&mut out),
            13 => {
                if out.is_empty() {
                    first = token(kind >> 4);
                }
                ClientFrame::Hello(hello(kind >> 4)).encode(&mut out);
            }
            14 => {
                if let Some(byte) = body.first().and_then(|at| out.get_mut(usize::from(*at))) {
                    *byte ^= kind >> 4;
                }
            }
            _ => out.extend_from_slice(body),
        }
    }
    (out, first)
}

/// What the server sent and stored.
struct Talk {
    frames: Vec<ServerFrame>,
    /// Number of bytes after the last whole frame.
    left: usize,
    records: Vec<String>,
}

fn talk(sent: &[u8], step: usize, has_tokens: bool) -> Talk {
    let (folder, data) = (directory(), directory());
    runtime().block_on(async {
        let store = open(folder.path()).await;
        let metrics = Arc::new(Metrics::default());
        let control = Arc::new(Control::new(metrics.clone()));
        let clock = Arc::new(ManualClock::default());
        let gate = gate(data.path(), has_tokens, metrics.clone(), clock.clone());
        let native = Native::new(store.clone(), metrics, clock, control).with_gate(gate);
        let (ours, theirs) = tokio::io::duplex(CONNECTION_BYTES);
        let (trigger, shutdown) = shutdown::channel();
        let server = serve_stream(&native, Box::new(theirs), Ipv4Addr::LOCALHOST.into(), shutdown);
        let answer = talk_to(server, ours, sent, step).await;
        drop(trigger);
        let (frames, left) = decode(&answer);
        let records = records(&store).await;
        store.close().await.expect("the store closes");
        Talk { frames, left, records }
    })
}

async fn open(path: &Path) -> Arc<Store> {
    let disk = FaultyDisk::default();
    disk.set_sync_skipped(true);
    let options = Options { disk: Arc::new(disk), merge_in_background: false, ..Options::default() };
    let clock = Arc::new(ManualClock::default());
    Store::open(Arc::new(MemoryDriver::new()), path, options, clock).await.expect("an empty store opens")
}

fn decode(bytes: &[u8]) -> (Vec<ServerFrame>, usize) {
    let mut decoder = FrameDecoder::new();
    decoder.push(bytes);
    let mut frames = vec![];
    // The answer to an HTTP request is text.
    if bytes.starts_with(b"HTTP/1.1 ") {
        return (frames, 0);
    }
    while let Some(frame) = decoder.pull().expect("a frame of the server is whole") {
        frames.push(ServerFrame::decode(frame).expect("a frame of the server").expect("a known frame"));
    }
    (frames, decoder.gathered())
}

async fn records(store: &Store) -> Vec<String> {
    let mut records = vec![];
    for (id, labels) in store.find(Kind::Sample, &[]) {
        records.push(format!("{labels} {:?}", store.samples(id, TimeRange::ALL).await.expect("samples")));
    }
    for (id, labels) in store.find(Kind::Entry, &[]) {
        records.push(format!("{labels} {:?}", store.entries(id, TimeRange::ALL).await.expect("entries")));
    }
    for (id, labels) in store.find(Kind::Execution, &[]) {
        let blocks = store.executions(id, TimeRange::ALL).await.expect("executions");
        records.push(format!("{labels} {} calls", blocks.iter().map(|block| block.calls()).sum::<usize>()));
    }
    records.sort();
    records
}

fn check(talk: &Talk) {
    assert_eq!(talk.left, 0, "bytes after the last frame");
    let mut acked = 0;
    for (position, frame) in talk.frames.iter().enumerate() {
        let is_last = position + 1 == talk.frames.len();
        match frame {
            ServerFrame::Welcome(_) => assert_eq!(position, 0, "a late WELCOME"),
            ServerFrame::Error { message, .. } => {
                assert!(is_last && !message.is_empty(), "{frame:?} is not the last frame, or has no message");
            }
            _ if position == 0 => panic!("{frame:?} before WELCOME"),
            ServerFrame::Ack(seq) => {
                assert!(*seq > acked || acked == 0, "ACK {seq} after {acked}");
                acked = *seq;
            }
            _ => {}
        }
    }
}

/// The frames as sorted texts, without WAIT and PROBES, and with only the last ACK. The server reads and stores frames
/// concurrently, so the order of its answers is not fixed. WAIT and PROBES depend on time. Also without REJECT if the server has
/// tokens: frames that are stored together get a limited number of REJECT for their series.
fn settled(talk: &Talk, has_tokens: bool) -> Vec<String> {
    let last = talk.frames.iter().rfind(|frame| matches!(frame, ServerFrame::Ack(_))).into_iter();
    let is_fixed = |frame: &&ServerFrame| {
        let is_reject = matches!(frame, ServerFrame::Reject(_));
        !matches!(frame, ServerFrame::Ack(_) | ServerFrame::Wait(_) | ServerFrame::Probes(_))
            && !(is_reject && has_tokens)
    };
    let mut settled: Vec<String> =
        last.chain(talk.frames.iter().filter(is_fixed)).map(|frame| format!("{frame:?}")).collect();
    settled.sort();
    settled
}
