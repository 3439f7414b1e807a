//! How long does decoding take? `cargo bench -p tacho-ingest --bench decode` prints ns and bytes per call and per value.

#[path = "../tests/support/request.rs"]
mod request;

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use tacho_ingest::line_protocol::{self, Decoder, Precision};
use tacho_ingest::wire::{DataFrame, DictFrame, FrameDecoder, Hello, Session};
use tacho_model::{OperationKind, Sample, Value};

const BASE: i64 = 1_700_000_000_000_000_000;

fn main() {
    calls();
    samples();
    lines();
}

/// Prints the best of several rounds, in ns per item. A round has `count` items.
fn measure(what: &str, count: usize, bytes: usize, mut run: impl FnMut() -> usize) {
    let mut best = f64::INFINITY;
    for _ in 0..50 {
        let begun = Instant::now();
        assert_eq!(black_box(run()), count);
        best = best.min(begun.elapsed().as_nanos() as f64 / count as f64);
    }
    println!("{what}: {best:.1} ns each, {:.2} bytes each", bytes as f64 / count as f64);
}

fn session(dictionary: &[u8]) -> Session {
    let hello =
        Hello { version_min: 1, version_max: 1, session: 1, pairs: vec![], secret: None, token: None };
    let mut session = Session::new(&hello).unwrap();
    let mut decoder = FrameDecoder::new();
    decoder.push(dictionary);
    session.define(decoder.pull().unwrap().unwrap().body).unwrap();
    session
}

/// Measures the decoding of a frame to a batch, with its checksum and the checks of the records.
fn frames(what: &str, dictionary: &[u8], frame: &DataFrame, count: usize) {
    let bytes = frame.finish();
    let mut session = session(dictionary);
    measure(what, count, bytes.len(), || {
        let mut decoder = FrameDecoder::new();
        decoder.push(&bytes);
        let data = session.data(decoder.pull().unwrap().unwrap().body).unwrap();
        data.batch.counts().iter().sum()
    });
}

fn dictionary() -> Vec<u8> {
    let mut frame = DictFrame::new();
    frame.text(1, "qtp1234567-42");
    frame.text(2, "http.status");
    frame.text(3, "request.id");
    for id in 1..=10 {
        frame.operation(
            id,
            OperationKind::Method,
            &format!("com.example.board.Service{id}.handle(java.lang.String)"),
        );
    }
    frame.finish()
}

fn calls() {
    let events = request::events();
    let mut frame = DataFrame::new(1, BASE);
    (1..=500).for_each(|nth| request::put(&mut frame, nth, &events));
    frames("native, calls", &dictionary(), &frame, 500 * request::CALLS);
}

fn samples() {
    let mut dictionary = DictFrame::new();
    let mut frame = DataFrame::new(1, BASE);
    for id in 1..=100u8 {
        let name = format!("series_{id}");
        dictionary.series(u64::from(id), [("__name__", name.as_str()), ("host", "h1")].into_iter());
        let value =
            |i: i64| Sample { at: BASE + i * 1_000_000_000, value: Value::F64(f64::from(id) + i as f64) };
        frame.samples(u64::from(id), &(0..60).map(value).collect::<Vec<_>>());
    }
    frames("native, f64 values", &dictionary.finish(), &frame, 6_000);
}

/// The devops data set as TSBS writes it: ten tags with about 160 bytes in total, ten fields, one line per host
/// in rotation.
fn body(hosts: usize, lines: usize, value: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for line in 0..lines {
        let (host, at) = (line % hosts, line / hosts);
        write!(
            text,
            "cpu,hostname=host_{host},region=eu-central-1,datacenter=eu-central-1a,rack={},os=Ubuntu15.10,arch=x64,\
             team=SF,service={},service_version=1,service_environment=production ",
            host % 100,
            host % 20,
        )
        .unwrap();
        let fields =
            ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
        for (nth, field) in fields.iter().enumerate() {
            write!(text, "{}usage_{field}={}", if nth > 0 { "," } else { "" }, value(line * 7 + nth * 31))
                .unwrap();
        }
        writeln!(text, " {}", BASE + at as i64 * 10_000_000_000).unwrap();
    }
    text
}

fn lines() {
    let integers = |n: usize| format!("{}i", n % 101);
    let decimals = |n: usize| format!("{}.{:02}", n % 101, n % 100);
    let many = |n: usize| format!("{}.{:014}", n % 10, n * 1_234_567);
    for (what, hosts, lines, text) in [
        ("integers, 100 hosts, 10,000 lines", 100, 10_000, body(100, 10_000, integers)),
        ("integers, 1,000 hosts, 10,000 lines", 1_000, 10_000, body(1_000, 10_000, integers)),
        ("integers, 1,000 hosts, 1,000 lines", 1_000, 1_000, body(1_000, 1_000, integers)),
        ("two decimals, 100 hosts, 10,000 lines", 100, 10_000, body(100, 10_000, decimals)),
        ("15 digits, 100 hosts, 10,000 lines", 100, 10_000, body(100, 10_000, many)),
    ] {
        let values = lines * 10;
        let check = |decoded: line_protocol::Decoded| {
            assert!(decoded.rejects.is_empty());
            assert_eq!(decoded.batch.samples.len(), hosts * 10);
            decoded.batch.counts()[0]
        };
        measure(&format!("line protocol, first body, {what}"), values, text.len(), || {
            check(line_protocol::decode(text.as_bytes(), Precision::Nanoseconds, 0))
        });
        let mut decoder = Decoder::default();
        measure(&format!("line protocol, later body, {what}"), values, text.len(), || {
            check(decoder.decode(text.as_bytes(), Precision::Nanoseconds, 0))
        });
    }
    let mut text = String::new();
    for n in 0..20_000 {
        writeln!(text, "m,host={} value={}.{:03} {}", n / 1_000, n % 140, n % 1_000, BASE + n).unwrap();
    }
    let mut decoder = Decoder::default();
    measure("line protocol, later body, one value a line, no stated time unit", 20_000, text.len(), || {
        decoder.decode(text.as_bytes(), Precision::Assumed, 0).batch.counts()[0]
    });
}
