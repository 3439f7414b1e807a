//! Tests garbage, floods and slow senders on both ports, a directory in use, and a full disk. The server continues, its memory is
//! bounded, and a good client loses no record.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tacho_ingest::wire::{ClientFrame, DataFrame, DictFrame, ErrorCode, FRAME_BODY_BYTES_MAX, ServerFrame};
use tacho_model::Random;

use crate::support::agent::{Agent, Raw, content, hello};
use crate::support::{self, Server};

const SEED: u64 = 7;
const ATTACK: Duration = Duration::from_secs(6);
/// Number of concurrent connections that send slowly.
const DRIPPING: usize = 40;
/// Limit on the resident memory of an attacked server in a debug build: 16 large frames of 4 MiB, 256 MiB of decoded records, and
/// a margin.
const RESIDENT_BYTES_MAX: u64 = 400 << 20;

type Attack = fn(&Target, &mut Random);

const ATTACKS: [(&str, Attack); 9] = [
    ("random bytes", random_bytes),
    ("cut frames", cut_frames),
    ("long frames", long_frames),
    ("nonsense with valid checksums", nonsense),
    ("dictionary floods", dictionary_flood),
    ("http garbage", http_garbage),
    ("http bodies that never arrive", http_never),
    ("snappy bombs", snappy_bomb),
    ("lines of garbage", garbage_lines),
];

struct Target {
    http: SocketAddr,
    records: SocketAddr,
}

#[test]
fn a_good_client_loses_nothing_among_hostile_ones() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let target = Target { http: server.http, records: server.records };
    let over = AtomicBool::new(false);
    let frames = std::thread::scope(|scope| {
        let good = scope.spawn(|| send_until(server.records, &over));
        scope.spawn(|| drip(&target, &over));
        let begun = Instant::now();
        let attackers: Vec<_> = ATTACKS
            .iter()
            .enumerate()
            .map(|(nth, (_, attack))| {
                let target = &target;
                scope.spawn(move || {
                    let mut random = Random::new(SEED + nth as u64);
                    while begun.elapsed() < ATTACK {
                        attack(target, &mut random);
                    }
                })
            })
            .collect();
        let results: Vec<_> = attackers.into_iter().map(|attacker| attacker.join()).collect();
        // `over` must be set before a panic: the scope waits for its threads, and two of them run until `over` is set.
        over.store(true, Ordering::Relaxed);
        for (result, (name, _)) in results.into_iter().zip(ATTACKS) {
            result.unwrap_or_else(|_| panic!("{name}: {}", server.log()));
        }
        good.join().unwrap()
    });
    assert!(frames >= 50, "the good client sent only {frames} frames");
    assert_eq!(server.get("/healthz").status, 200);
    let resident = resident_bytes(server.pid());
    println!("{frames} good frames, {} MiB resident at most", resident >> 20);
    assert!(resident < RESIDENT_BYTES_MAX, "{resident} bytes of memory");
    assert_eq!(count("heap", &server), frames * content::SAMPLES);
    assert!(!server.log().contains("panicked"), "{}", server.log());
    assert_eq!(server.stop().code(), Some(0));
}

/// Sends frame after frame as a correct agent does. Returns the number of frames, all of which were acknowledged.
fn send_until(at: SocketAddr, over: &AtomicBool) -> u64 {
    let mut agent = Agent::open(at, 1);
    let mut seq = 0;
    while !over.load(Ordering::Relaxed) {
        agent.send_frames(seq + 1..=seq + 10);
        seq += 10;
        assert_eq!(agent.wait_ack(seq), []);
        std::thread::sleep(Duration::from_millis(10));
    }
    seq
}

/// Number of samples of a series, according to a query.
fn count(series: &str, server: &Server) -> u64 {
    let time = (content::BASE / 1_000_000_000) + 1_800;
    let path = format!("/api/v1/query?query=sum(count_over_time({series}%5B1h%5D))&time={time}");
    let answer = server.get(&path).json();
    let value = answer["data"]["result"][0]["value"][1].as_str();
    value.unwrap_or_else(|| panic!("{answer}")).parse().unwrap()
}

/// Maximum resident memory of a process so far, bytes.
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Opens connections to both ports and slowly sends single bytes over them.
fn drip(target: &Target, over: &AtomicBool) {
    let ports = [target.records, target.http].into_iter().cycle();
    let mut held: Vec<TcpStream> =
        ports.take(DRIPPING).filter_map(|at| TcpStream::connect(at).ok()).collect();
    let mut hello_bytes = Vec::new();
    ClientFrame::Hello(hello(99)).encode(&mut hello_bytes);
    let mut bytes = hello_bytes.iter().cycle();
    while !over.load(Ordering::Relaxed) {
        let byte = *bytes.next().unwrap();
        held.retain_mut(|stream| stream.write_all(&[byte]).is_ok());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn bytes(random: &mut Random, length: u64) -> Vec<u8> {
    (0..length).map(|_| random.below(256) as u8).collect()
}

/// Connects and greets. `None` if the server refuses more connections.
fn greeted(target: &Target, random: &mut Random) -> Option<Agent> {
    Agent::connect(target.records, &hello(1_000 + u128::from(random.next()))).ok()
}

fn random_bytes(target: &Target, random: &mut Random) {
    for at in [target.records, target.http] {
        let Ok(mut raw) = Raw::connect(at) else { continue };
        let length = random.below(3_000);
        raw.send(&bytes(random, length));
    }
}

fn cut_frames(target: &Target, random: &mut Random) {
    let Some(mut agent) = greeted(target, random) else { return };
    let frame = content::frame(1);
    agent.send(&frame[..random.below(frame.len() as u64) as usize]);
}

fn long_frames(target: &Target, random: &mut Random) {
    let Some(mut agent) = greeted(target, random) else { return };
    let over = FRAME_BODY_BYTES_MAX + 1 + random.below(1 << 31) as u32;
    agent.send(&over.to_le_bytes());
    expect_error(agent.receive(), ErrorCode::FrameTooLong);
    // The frame has the maximum length and is never completed.
    let Some(mut agent) = greeted(target, random) else { return };
    let mut head = FRAME_BODY_BYTES_MAX.to_le_bytes().to_vec();
    head.extend([3, 0, 0, 0, 0, 0, 0, 0]);
    agent.send(&head);
    agent.send(&vec![0; 1 << 20]);
}

fn nonsense(target: &Target, random: &mut Random) {
    let Some(mut agent) = greeted(target, random) else { return };
    for _ in 0..20 {
        let length = random.below(400);
        let body = bytes(random, length);
        let mut frame = Vec::new();
        match random.below(3) {
            0 => ClientFrame::Dict(&body).encode(&mut frame),
            1 => ClientFrame::Data(&body).encode(&mut frame),
            _ => {
                let mut data = DataFrame::new(1, 0);
                data.samples(random.next(), &content::samples(1));
                frame = data.finish();
            }
        }
        if !agent.send(&frame) {
            return;
        }
    }
}

fn dictionary_flood(target: &Target, random: &mut Random) {
    let Some(mut agent) = greeted(target, random) else { return };
    let text = "x".repeat(1 << 20);
    for id in 1..=17 {
        let mut frame = DictFrame::new();
        frame.text(id, &text);
        agent.send(&frame.finish());
    }
    expect_error(agent.receive(), ErrorCode::Dictionary);
}

fn expect_error(frame: Option<ServerFrame>, code: ErrorCode) {
    // If the connection was reset first, the server's last frame cannot be read.
    if let Some(ServerFrame::Error { code: got, message }) = frame {
        assert_eq!(got, code as u64, "{message}");
    }
}

fn http_garbage(target: &Target, random: &mut Random) {
    let Ok(mut stream) = TcpStream::connect(target.http) else { return };
    let name = "x".repeat(random.below(100_000) as usize);
    let _ = stream.write_all(format!("GET /{name} HTTP/1.1\r\n{name}: {name}\r\n\r\n").as_bytes());
    let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let _ = stream.read(&mut [0; 100]);
}

fn http_never(target: &Target, random: &mut Random) {
    let Ok(mut stream) = TcpStream::connect(target.http) else { return };
    let length = random.next();
    let head = format!("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\nm value=1");
    let _ = stream.write_all(head.as_bytes());
    std::thread::sleep(Duration::from_millis(50));
}

fn snappy_bomb(target: &Target, random: &mut Random) {
    // The body claims to expand to 4 GiB.
    let mut body = vec![0xff, 0xff, 0xff, 0xff, 0x0f];
    let length = random.below(100);
    body.extend(bytes(random, length));
    let headers = [("Content-Encoding", "snappy"), ("Content-Type", "application/x-protobuf")];
    // Each complete request gets an answer, even at the limit on connections. The connections of the other clients are idle, and
    // the server closes them for new ones.
    let answer = support::request(target.http, "POST", "/api/v1/write", &headers, &body);
    assert!(matches!(answer.status, 400 | 413 | 503), "{}: {}", answer.status, answer.text());
}

fn garbage_lines(target: &Target, random: &mut Random) {
    let mut body = bytes(random, 500);
    body.extend_from_slice(b"\n\"\nm value=\n");
    let answer = support::request(target.http, "POST", "/write", &[], &body);
    assert!(matches!(answer.status, 400 | 503), "{}: {}", answer.status, answer.text());
}

#[test]
fn refused_lines_are_named_and_good_ones_kept() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let at = content::BASE;
    let body = format!("kept value=1 {at}\nkept value=x {at}\nkept value=2 {}\n", at + 1);
    let answer = server.post("/write", &[], body.as_bytes());
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("line 2, column 12"), "{}", answer.text());
    assert_eq!(count("kept", &server), 2);
}

#[test]
fn the_refusal_of_a_directory_in_use_names_the_directory() {
    let data = tempfile::tempdir().unwrap();
    let first = Server::start(data.path());
    let (status, log) = Server::try_start(data.path(), &[]).err().expect("a second server does not start");
    assert_ne!(status.code(), Some(0));
    assert!(log.contains(data.path().to_str().unwrap()) && log.contains("process"), "{log}");
    assert_eq!(first.get("/healthz").status, 200, "the first server does not continue");
}

/// A limit on file sizes, which needs no privileges and can be removed while the server runs, simulates a full disk.
#[test]
fn a_full_disk_is_reported_loses_nothing_and_recovers() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let serve = r#"trap '' XFSZ; ulimit -S -f 512; exec "$0" serve --http 127.0.0.1:0 --records 127.0.0.1:0 --data "$1""#;
    command.args(["-c", serve, support::tacho()]).arg(data.path());
    let server = Server::from_command(command, data.path()).unwrap_or_else(|(_, log)| panic!("{log}"));

    let mut agent = Agent::open(server.records, 3);
    let (acked, last) = send_until_refused(&mut agent);
    assert!(matches!(last, Some(ServerFrame::Error { code: 8, .. })), "{last:?}");
    assert!(acked > 100, "only {acked} frames were acknowledged");
    assert_eq!(count("heap", &server), acked * content::SAMPLES, "acknowledged frames cannot be read");
    // This line is longer than the limit on file sizes, so it cannot be appended.
    let line = format!("line text=\"{}\" {}", "x".repeat(600_000), content::BASE);
    let refused = server.post("/write", &[], line.as_bytes());
    assert!(matches!(refused.status, 500 | 503 | 507), "{}: {}", refused.status, refused.text());

    let pid = server.pid().to_string();
    let lifted = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status().unwrap();
    assert!(lifted.success(), "prlimit");
    let mut agent = support::wait_for("space on the disk", || {
        let mut agent = Agent::open(server.records, 3);
        assert_eq!(agent.welcome.acked, acked);
        agent.send_frames([acked + 1]);
        matches!(agent.receive(), Some(ServerFrame::Ack(_))).then_some(agent)
    });
    agent.send_frames(acked + 2..=acked + 50);
    agent.wait_ack(acked + 50);
    server.kill();
    let server = Server::start(data.path());
    assert_eq!(count("heap", &server), (acked + 50) * content::SAMPLES);
}

/// Sends frame after frame until one is not acknowledged. Returns the number of the last acknowledged frame, and the answer to
/// the next one.
fn send_until_refused(agent: &mut Agent) -> (u64, Option<ServerFrame>) {
    let mut acked = 0;
    for seq in 1.. {
        agent.send_frames([seq]);
        match agent.receive() {
            Some(ServerFrame::Ack(_)) => acked = seq,
            other => return (acked, other),
        }
    }
    (acked, None)
}
