//! Checks that clients that do not read their answers keep little memory, and block no other requests. The server runs in this
//! process, so that its memory is counted. There is only one test, because all tests of a process share its memory.

#[path = "support/inside.rs"]
mod inside;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use inside::Inside;
use peak_alloc::PeakAlloc;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use tacho_server::config::Settings;
use tacho_store::{MemoryDriver, Options};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MIB: usize = 1 << 20;
/// Clients that do not read, more than `REQUESTS_MAX`.
const CLIENTS: usize = 8;
const REQUESTS_MAX: usize = 4;
/// Memory for the exports of all clients. An export counts as 16 MiB and the list of its series, together less than 17 MiB.
const ANSWER_BYTES_MAX: usize = CLIENTS * 17 * MIB;
/// The answer about all series has at least 10 MB.
const SERIES: usize = 20_000;
const LABEL_BYTES: usize = 500;
/// The part of an answer that is already in the buffers of a connection: at most 4 MiB in that of the server (`tcp_wmem`), and
/// 0.5 MiB in that of the client.
const SENT_BYTES_MAX: usize = 5 * MIB;
/// Memory of a client besides its answer: buffers, and the part of an export that is being sent.
const CLIENT_BYTES: usize = 4 * MIB;

fn open(at: SocketAddr, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("server accepts");
    // Without this limit, the kernel may take a whole answer into the buffer of a client that does not read.
    set_socket_recv_buffer_size(&stream, MIB / 4).expect("a limit on the buffer");
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

fn ask(at: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut response = String::new();
    open(at, method, path, body).read_to_string(&mut response).expect("a response");
    response
}

fn status(response: &str) -> &str {
    response.get(9..12).expect("a status line")
}

/// Sends requests one after the other, and reads only the beginning of each answer.
fn stalled(at: SocketAddr, path: &str) -> Vec<TcpStream> {
    let stall = |number| {
        let mut stream = open(at, "GET", path, "");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).expect("an answer");
        assert_eq!(&begin, b"HTTP/1.1 200", "answer {number} to {path}");
        stream
    };
    (0..CLIENTS).map(stall).collect()
}

#[test]
fn clients_that_do_not_read_keep_little_memory_and_block_no_others() {
    let settings = Settings {
        requests_max: Some(REQUESTS_MAX),
        answer_bytes_max: Some(ANSWER_BYTES_MAX),
        // A client that does not read is cut off after this time. On a slow machine the answers take longer than the default.
        request_seconds_max: Some(600),
        ..Settings::default()
    };
    let server = Inside::start_with(Arc::new(MemoryDriver::new()), Options::default(), settings);
    let at = server.http;
    let metric = |name: &str| {
        let text = ask(at, "GET", "/metrics", "");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_else(|| panic!("no metric {name}: {text}"))
    };
    let held = || -> usize { metric("tacho_answer_bytes") };
    for first in (0..SERIES).step_by(2_000) {
        let line = |n: usize| format!("x,l={n}-{} value=1 1000000000\n", "v".repeat(LABEL_BYTES));
        let lines: String = (first..first + 2_000).map(line).collect();
        assert_eq!(status(&ask(at, "POST", "/write?precision=ns", &lines)), "204");
    }
    let serves_others = || {
        assert_eq!(status(&ask(at, "POST", "/write?precision=ns", "y value=1 1000000000\n")), "204");
        let small = ask(at, "GET", "/api/v1/query?query=y&time=1", "");
        assert!(status(&small) == "200" && small.contains("\"y\""), "{small}");
    };
    serves_others();
    for path in ["/api/v1/export?match[]=x", "/api/v1/query?query=x&time=1"] {
        let before = MEMORY.current_usage();
        let clients = stalled(at, path);
        serves_others();
        let (taken, counted) = (MEMORY.current_usage().saturating_sub(before), held());
        println!("{path}: {CLIENTS} clients keep {taken} bytes, {counted} are counted");
        let is_export = path.contains("export");
        let most = CLIENTS * CLIENT_BYTES + if is_export { 0 } else { counted };
        let least = if is_export { 16 * MIB } else { SERIES * LABEL_BYTES - SENT_BYTES_MAX };
        assert!(taken <= most, "{path}: {CLIENTS} clients keep {taken} bytes, at most {most} are allowed");
        assert!((CLIENTS * least..=ANSWER_BYTES_MAX).contains(&counted), "{counted}");
        if is_export {
            let refused = ask(at, "GET", path, "");
            assert!(status(&refused) == "503" && refused.contains("retry-after: 1\r\n"), "{refused}");
            assert!(refused.contains("raise answer-bytes-max"), "{refused}");
            assert_eq!(metric("tacho_answers_refused_total"), 1);
        }
        drop(clients);
        while held() > 0 {
            std::thread::yield_now();
        }
    }
}
