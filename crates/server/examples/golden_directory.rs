//! Sends the records of a golden data directory to a running server: `golden_directory HTTP RECORDS PART`. HTTP and RECORDS are
//! addresses of the server, PART is 1 or 2. Part 1 also deletes some samples, adds a rule for probes, and
//! requests a merge. `testdata/directory/README.md` describes how such a directory is made.

#[path = "../tests/support/agent.rs"]
mod agent;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use agent::Agent;

const FRAMES: [std::ops::RangeInclusive<u64>; 2] = [1..=40, 41..=60];
const SESSION: u128 = 77;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [http, records, part] = &args[..] else { panic!("usage: golden_directory HTTP RECORDS PART") };
    let (http, records): (SocketAddr, SocketAddr) = (http.parse().unwrap(), records.parse().unwrap());
    let frames = match &**part {
        "1" => FRAMES[0].clone(),
        _ => FRAMES[1].clone(),
    };
    let last = *frames.end();
    let mut agent = Agent::connect(records, &agent::hello(SESSION)).expect("server greets");
    agent.send(&agent::dictionary(SESSION));
    agent.send_frames(frames.clone());
    agent.wait_ack(last);
    let lines: String = frames
        .map(|n| format!("line,host=a value={n}.5 {}\n", 1_700_000_000_000_000_000 + n * 1_000_000_000))
        .collect();
    post(http, "/write", &lines);
    if part == "1" {
        post(http, "/api/v1/admin/tsdb/delete_series?match[]=line&end=1700000010", "");
        post(http, "/api/v1/probes?state=aggregate&pattern=com.shop..*&keep=1", "");
        post(http, "/api/v1/admin/merge", "");
    }
}

fn post(at: SocketAddr, path: &str, body: &str) {
    let mut stream = TcpStream::connect(at).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close");
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 20"), "{path}: {answer}");
}
