//! Tests writes over HTTP: kept and refused records, and responses.

use std::io::Write;

use tacho_ingest::wire::{ClientFrame, DataFrame, DictFrame, Hello};
use tacho_model::{Sample, Value};

use crate::support::Server;

fn value_of(server: &Server, query: &str) -> Option<String> {
    let answer = server.get(&format!("/api/v1/query?time=1700000000&query={query}")).json();
    answer["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
}

/// A request of remote write 1.0 with one sample of the series `name`, written by hand.
fn remote_write(name: &str, value: f64, ms: u64) -> Vec<u8> {
    let field = |tag: u8, bytes: &[u8]| [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let label = [field(0x0a, b"__name__"), field(0x12, name.as_bytes())].concat();
    let mut sample = [&[0x09], &value.to_le_bytes()[..], &[0x10]].concat();
    let mut rest = ms;
    while rest >= 0x80 {
        sample.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    sample.push(rest as u8);
    let series = [field(0x0a, &label), field(0x12, &sample)].concat();
    let message = field(0x0a, &series);
    // A snappy block with one literal: the length, the tag, the length minus 1, the bytes.
    let length = u8::try_from(message.len()).unwrap();
    [&[length, 60 << 2, length - 1], &message[..]].concat()
}

const PROTOBUF: &[(&str, &str)] =
    &[("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];

#[test]
fn remote_write_is_kept_over_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let answer = server.post("/api/v1/write", PROTOBUF, &remote_write("written", 2.5, 1_700_000_000_000));
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(value_of(&server, "written").as_deref(), Some("2.5"));
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("tacho_records_received_total{service=\"\",kind=\"sample\"} 1\n"), "{metrics}");
    server.kill();
    let server = Server::start(data.path());
    assert_eq!(value_of(&server, "written").as_deref(), Some("2.5"));
    assert_eq!(server.stop().code(), Some(0));
    let server = Server::start(data.path());
    assert_eq!(value_of(&server, "written").as_deref(), Some("2.5"));
}

#[test]
fn refusals_of_requests_name_the_reason() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--body-bytes-max", "1000"]);
    let fails = |path: &str, headers: &[(&str, &str)], body: &[u8], status: u16, part: &str| {
        let answer = server.post(path, headers, body);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        assert!(answer.text().contains(part), "{path}: {part} in {}", answer.text());
    };
    let v2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request";
    fails("/api/v1/write", PROTOBUF, b"garbage", 400, "snappy");
    fails("/api/v1/write", &[("Content-Type", "text/plain")], b"", 415, "text/plain");
    fails("/api/v1/write", &[("Content-Type", v2)], b"", 415, "remote write 1.0");
    fails("/api/v1/write", &[PROTOBUF[0], ("Content-Encoding", "zstd")], b"", 415, "zstd");
    fails("/api/v1/write", PROTOBUF, &[0; 1001], 413, "1000 bytes");
    fails("/write", &[], &[b'x'; 1001], 413, "1000 bytes");
    fails("/write?precision=y", &[], b"a value=1", 400, "precision");
    fails("/write", &[("Content-Encoding", "gzip")], b"no gzip", 400, "gzip body is damaged");
    // The compressed body has less than 1,000 bytes, the decompressed body has more.
    fails("/write", &[("Content-Encoding", "gzip")], &gzip(&[b'x'; 100_000]), 413, "1000 bytes");
    fails("/write", &[("Origin", "http://evil.example")], b"a value=1", 403, "evil.example");
    assert_eq!(server.request("GET", "/write", &[], b"").status, 405);
}

#[test]
fn a_body_may_have_32_mib_by_default() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let comment = format!("#{}\n", "x".repeat(1_022));
    let mut body = comment.repeat(32 << 10);
    let line = "full value=4 1700000000";
    body.truncate(body.len() - line.len());
    body.push_str(line);
    // The last byte of the truncated comment becomes a line break.
    let at = body.len() - line.len() - 1;
    body.replace_range(at..=at, "\n");
    assert_eq!(body.len(), 32 << 20);
    let answer = server.post("/write?precision=s", &[], body.as_bytes());
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(value_of(&server, "full").as_deref(), Some("4"));
    body.push('\n');
    let answer = server.post("/write?precision=s", &[], body.as_bytes());
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains("request body is over 33554432 bytes"), "{}", answer.text());
}

#[test]
fn good_lines_are_kept_when_others_are_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let body = "a value=1 1700000000\nbroken\nb value=2 1700000000\nc value=x 1700000000";
    let answer = server.post("/api/v2/write?precision=s&org=o&bucket=b", &[], body.as_bytes());
    assert_eq!(answer.status, 400);
    let text = answer.text();
    assert!(text.contains("2 refused") && text.contains("line 2") && text.contains("line 4"), "{text}");
    assert_eq!(value_of(&server, "a").as_deref(), Some("1"));
    assert_eq!(value_of(&server, "b").as_deref(), Some("2"));
    assert_eq!(value_of(&server, "c"), None);
    let packed = gzip(b"zipped value=3 1700000000");
    let answer = server.post("/write?precision=s", &[("Content-Encoding", "gzip")], &packed);
    assert_eq!(answer.status, 204, "{}", answer.text());
    assert_eq!(value_of(&server, "zipped").as_deref(), Some("3"));
}

#[test]
fn seconds_without_precision_are_refused_and_the_remedies_work() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let lines = b"a value=1 1700000000\nb value=2 1700000000000000000\n";
    for path in ["/write", "/api/v2/write?org=o&bucket=b"] {
        let answer = server.post(path, &[], lines);
        assert_eq!(answer.status, 400);
        let text = answer.text();
        let expect = "1 refused, the others are kept: line 1, column 11: time 1700000000 is on 1970-01-01 as ns, and on \
             2023-11-14 as s: give the parameter precision=s, or precision=ns if 1970-01-01 is meant";
        assert!(text.contains(expect), "{text}");
    }
    assert_eq!((value_of(&server, "a"), value_of(&server, "b").as_deref()), (None, Some("2")));
    assert_eq!(server.post("/write?precision=ns", &[], b"a value=3 1700000000").status, 204);
    let early = server.get("/api/v1/query?time=2&query=a").json();
    assert_eq!(early["data"]["result"][0]["value"][1], "3", "{early}");
    assert_eq!(server.post("/write?precision=s", &[], b"a value=4 1700000000").status, 204);
    assert_eq!(value_of(&server, "a").as_deref(), Some("4"));
}

#[test]
fn only_stored_records_count_as_received() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--series-max", "4", "--selfwatch-seconds", "0"]);
    let counts = |received: u32, protocol: &str, refused: u32| {
        let metrics = server.get("/metrics").text();
        for line in [
            format!("tacho_records_received_total{{service=\"shop\",kind=\"sample\"}} {received}\n"),
            format!("tacho_records_refused_total{{protocol=\"{protocol}\"}} {refused}\n"),
        ] {
            assert!(metrics.contains(&line), "{line} in {metrics}");
        }
    };
    let lines: String = (0..9).map(|id| format!("up,service=shop,id={id} value=1 1700000000\n")).collect();
    assert_eq!(server.post("/write?precision=s", &[], lines.as_bytes()).status, 400);
    counts(4, "line", 5);

    let hello =
        Hello { version_min: 1, version_max: 1, session: 5, pairs: vec![], secret: None, token: None };
    let mut body = Vec::new();
    ClientFrame::Hello(hello).encode(&mut body);
    let (mut dictionary, mut frame) = (DictFrame::new(), DataFrame::new(1, 0));
    for (number, id) in [(1, "0"), (2, "new")] {
        dictionary.series(number, [("__name__", "up"), ("service", "shop"), ("id", id)].into_iter());
        frame.samples(number, &[1, 2].map(|at| Sample { at, value: Value::F64(1.0) }));
    }
    body.extend(dictionary.finish());
    body.extend(frame.finish());
    for repeated in [0, 1] {
        let answer = server.post("/api/v1/import", &[], &body).json();
        assert_eq!(answer["data"]["repeated"], repeated, "{answer}");
        counts(6, "import", 2);
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
