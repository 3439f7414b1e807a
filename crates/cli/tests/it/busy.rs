//! Tests a full memory budget of request bodies, and a full queue of merges. Further requests get an error with Retry-After,
//! until memory or a place in the queue is free.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;
use tacho_store::MemoryDriver;
use tacho_store::layer::faults::{Faults, Faulty};

use crate::support::inside::Inside;
use crate::support::{Response, Server, request, run, wait_for};

const PATIENCE: Duration = Duration::from_secs(120);
/// Number of bodies of [`BODY_BYTES`] that fit into the budget. The budget is
/// `16 * max(limit of a body of records, limit of a form)`. Here both limits are 1 MiB.
const BODIES: usize = 16;
const BODY_BYTES: usize = 1 << 20;

/// Starts a write that stalls after this many bytes.
fn stalled(at: SocketAddr, bytes: usize) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("server accepts");
    let head = format!("POST /write HTTP/1.1\r\nHost: {at}\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![b'#'; bytes]).unwrap();
    stream
}

fn metric(at: SocketAddr, series: &str) -> f64 {
    let text = request(at, "GET", "/metrics", &[], b"").text();
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

/// A remote write with one sample.
fn remote_write() -> Vec<u8> {
    const PAIR: &[u8] = &[0x0a, 8, b'_', b'_', b'n', b'a', b'm', b'e', b'_', b'_', 0x12, 1, b'r'];
    const SAMPLE: &[u8] = &[0x12, 11, 9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 16, 1];
    let label = [&[0x0a, PAIR.len() as u8], PAIR].concat();
    let series = [label.as_slice(), SAMPLE].concat();
    let plain = [&[0x0a, series.len() as u8], series.as_slice()].concat();
    // The Snappy block has the length, then one literal.
    [&[plain.len() as u8, ((plain.len() - 1) << 2) as u8], plain.as_slice()].concat()
}

#[test]
fn a_full_body_budget_refuses_requests_until_it_is_released() {
    let data = tempfile::tempdir().unwrap();
    let bytes = BODY_BYTES.to_string();
    let flags = ["--body-bytes-max", &bytes, "--selfwatch-seconds", "0", "--requests-max", "10000"];
    // The high timeout keeps stalled bodies until the end of the test, even on a slow machine.
    let flags = [&flags[..], &["--request-seconds-max", "3600"]].concat();
    let server = Server::start_with(data.path(), &flags);
    let at = server.http;
    let protobuf = [("Content-Type", "application/x-protobuf"), ("Content-Encoding", "snappy")];
    let ask = |door: &str| -> Response {
        match door {
            "line" => server.post("/write", &[], b"good value=1\n"),
            "remote-write" => server.post("/api/v1/write", &protobuf, &remote_write()),
            _ => server.post("/api/v1/import", &[], &hello()),
        }
    };
    for door in ["line", "remote-write", "import"] {
        let answer = ask(door);
        assert!(answer.status < 300, "{door}: {} {}", answer.status, answer.text());
    }
    // The test sends as many large bodies as fit. A body takes memory as it arrives, and all arrive at the same time, so the
    // server may refuse some before they are complete. Small bodies then use up the rest of the budget.
    let mut held: Vec<TcpStream> = (0..BODIES).map(|_| stalled(at, BODY_BYTES - 1)).collect();
    wait_for("the budget to be used up", || {
        held.push(stalled(at, 1));
        (ask("line").status == 503).then_some(())
    });
    for door in ["line", "remote-write", "import"] {
        let series = format!("tacho_sender_waits_total{{protocol=\"{door}\"}}");
        let before = metric(at, &series);
        let answer = ask(door);
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, Some("1")),
            "{door}: {}",
            answer.text()
        );
        let said = answer.json();
        assert_eq!((&said["status"], &said["errorType"]), (&"error".into(), &"unavailable".into()));
        assert!(said["error"].as_str().unwrap().contains("bytes of memory for request bodies"), "{said}");
        assert_eq!(metric(at, &series), before + 1.0, "{door}");
    }
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/api/v1/query?query=good&time=1").status, 200);
    drop(held);
    wait_for("memory for a body", || (ask("line").status == 204).then_some(()));
    for door in ["line", "remote-write", "import"] {
        assert!(ask(door).status < 300, "{door}");
    }
    assert!(server.stop().success());
}

fn hello() -> Vec<u8> {
    let mut out = Vec::new();
    let hello = tacho_ingest::wire::Hello {
        version_min: 1,
        version_max: 1,
        session: 9,
        secret: None,
        token: None,
        pairs: vec![],
    };
    tacho_ingest::wire::ClientFrame::Hello(hello).encode(&mut out);
    out
}

#[test]
fn a_third_merge_request_gets_429() {
    const ASKED: usize = 7;
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let server = Inside::start(driver.clone(), BODY_BYTES);
    let at = server.http;
    let post = move |path: &str, body: &[u8]| request(at, "POST", path, &[], body);
    assert_eq!(post("/write", b"x value=1 1\n").status, 204);
    // The requested merge blocks at its first access to the driver.
    driver.freeze();
    let (told, answers) = channel();
    let asking: Vec<_> = (0..ASKED)
        .map(|_| {
            let told = told.clone();
            std::thread::spawn(move || told.send(post("/api/v1/admin/merge", b"")))
        })
        .collect();
    for _ in 2..ASKED {
        let answer: Response = answers.recv_timeout(PATIENCE).expect("an answer");
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("10")), "{}", answer.text());
        let said = answer.text();
        assert!(said.contains("a merge or clean-up is under way, and another one waits"), "{said}");
    }
    assert_eq!(post("/api/v1/admin/tsdb/clean_tombstones", b"").status, 429);
    assert_eq!(request(at, "GET", "/healthz", &[], b"").status, 200);
    assert!(answers.try_recv().is_err(), "a sixth request was answered while the driver was frozen");
    driver.thaw();
    for _ in 0..2 {
        assert_eq!(answers.recv_timeout(PATIENCE).expect("an answer").status, 200);
    }
    assert_eq!(post("/api/v1/admin/merge", b"").status, 200);
    for asked in asking {
        asked.join().unwrap().unwrap();
    }
}

#[test]
fn a_running_query_is_listed_and_stopped_by_the_command() {
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let server = Inside::start(driver.clone(), BODY_BYTES);
    let url = format!("http://{}", server.http);
    let queries = |more: &[&str]| run(&[&["queries", "--server", &url], more].concat());
    assert_eq!(request(server.http, "POST", "/write", &[], b"x value=1 1\n").status, 204);
    assert_eq!(request(server.http, "POST", "/api/flush", &[], b"").status, 204);
    assert_eq!(queries(&[]), (Some(0), String::new(), "no query is running\n".into()));
    let (code, _, error) = queries(&["--stop", "a/b"]);
    assert_eq!(
        (code, error.lines().next()),
        (Some(1), Some("error: no query with the id \"a/b\" is running"))
    );
    driver.freeze();
    let asked = {
        let url = url.clone();
        std::thread::spawn(move || run(&["query", "x + 7", "--time", "1", "--server", &url]))
    };
    let id = wait_for("the query in the list", || {
        assert!(!asked.is_finished(), "the query has ended before it was listed");
        let (_, out, _) = queries(&["--json"]);
        let answer: Value = serde_json::from_str(&out).unwrap();
        answer["data"]["queries"][0]["id"].as_str().map(str::to_owned)
    });
    let (_, table, _) = queries(&[]);
    assert!(table.starts_with("ID ") && table.contains("GET /api/v1/query  query=x + 7 time=1"), "{table}");
    assert_eq!(queries(&["--stop", &id]), (Some(0), format!("stopped {id}\n"), String::new()));
    let (code, out, error) = asked.join().unwrap();
    assert_eq!((code, &*out), (Some(1), ""), "{error}");
    assert!(error.contains("the query was stopped by a request to /api/queries"), "{error}");
    driver.thaw();
}
