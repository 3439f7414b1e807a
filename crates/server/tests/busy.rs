//! Tests responses of a server that lacks a resource. Earlier requests hold the memory for decoding or the permits of merges,
//! or one body exceeds the memory of a batch. A disk and a driver that block at a gate prolong the earlier requests.

#[path = "support/inside.rs"]
mod inside;

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use inside::Inside;
use tacho_server::config::Settings;
use tacho_store::disk::{Disk, DiskFile, RealDisk, SyncPoint};
use tacho_store::driver::{Capabilities, Delete, Info, Row, RowStream, Scan};
use tacho_store::{Driver, MemoryDriver, Options, Result};

/// Calls of `pass` wait while the gate is shut.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn set_shut(&self, is_shut: bool) {
        *self.0.0.lock().unwrap() = is_shut;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |is_shut| *is_shut).unwrap());
    }
}

/// A disk whose syncs of files wait at the gate.
struct SlowDisk(Gate);

struct SlowFile(File, Gate);

impl Disk for SlowDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Box::new(SlowFile(file, self.0.clone())))
    }

    fn cut(&self, path: &Path, length: u64, point: SyncPoint) -> io::Result<()> {
        RealDisk.cut(path, length, point)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_directory(&self, path: &Path, point: SyncPoint) -> io::Result<()> {
        RealDisk.sync_directory(path, point)
    }
}

impl DiskFile for SlowFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.append(bytes)
    }

    fn sync(&mut self, point: SyncPoint) -> io::Result<()> {
        self.1.pass();
        self.0.sync(point)
    }
}

/// A driver whose puts wait at the gate.
struct SlowDriver(MemoryDriver, Gate);

#[async_trait]
impl Driver for SlowDriver {
    fn info(&self) -> Info {
        self.0.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    async fn put(&self, rows: Vec<Row>) -> Result<()> {
        let gate = self.1.clone();
        tokio::task::spawn_blocking(move || gate.pass()).await.unwrap();
        self.0.put(rows).await
    }

    async fn scan(&self, scan: Scan) -> Result<RowStream> {
        self.0.scan(scan).await
    }

    async fn delete(&self, deletes: Vec<Delete>) -> Result<()> {
        self.0.delete(deletes).await
    }
}

fn ask(at: SocketAddr, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("a response");
    response
}

fn status(response: &str) -> &str {
    response.get(9..12).expect("a status line")
}

#[test]
fn a_write_that_finds_no_memory_for_decoding_gets_503_and_succeeds_later() {
    let gate = Gate::default();
    let options = Options { disk: Arc::new(SlowDisk(gate.clone())), ..Options::default() };
    let settings =
        Settings { body_bytes_max: Some(1_000), decoding_bytes_max: Some(1), ..Settings::default() };
    let server = Inside::start_with(Arc::new(MemoryDriver::new()), options, settings);
    let at = server.http;
    let metric = |name: &str| {
        let text = ask(at, "GET", "/metrics", "");
        text.lines().find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
    };
    gate.set_shut(true);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(at, "POST", "/write", "a value=1\n"));
        while metric("tacho_received_bytes_total{protocol=\"line\"}").is_none_or(|bytes| bytes == "0") {
            std::thread::yield_now();
        }
        // The records of the first write wait for the disk and keep a part of the memory for decoding. The largest body needs the
        // whole memory for decoding.
        let largest = format!("b,long={} value=1\n", "v".repeat(970));
        let refused = ask(at, "POST", "/write", &largest);
        assert_eq!(status(&refused), "503", "{refused}");
        assert!(refused.contains("retry-after: 1\r\n"), "{refused}");
        assert!(
            refused.contains("memory for records that are decoded: retry later, or raise decoding-bytes-max")
        );
        assert_eq!(metric("tacho_sender_waits_total{protocol=\"line\"}").as_deref(), Some("1"));
        gate.set_shut(false);
        assert_eq!(status(&first.join().unwrap()), "204");
        assert_eq!(status(&ask(at, "POST", "/write", &largest)), "204");
    });
}

#[test]
fn one_merge_request_runs_one_waits_and_further_ones_are_refused() {
    let gate = Gate::default();
    let driver = SlowDriver(MemoryDriver::new(), gate.clone());
    let server = Inside::start_with(Arc::new(driver), Options::default(), Settings::default());
    let at = server.http;
    assert_eq!(status(&ask(at, "POST", "/write", "a value=1\n")), "204");
    gate.set_shut(true);
    std::thread::scope(|scope| {
        let (sender, answers) = channel();
        for _ in 0..5 {
            let sender = sender.clone();
            scope.spawn(move || sender.send(ask(at, "POST", "/api/v1/admin/merge", "")).unwrap());
        }
        let check = |refused: String| {
            assert_eq!(status(&refused), "429", "{refused}");
            assert!(refused.contains("retry-after: 10\r\n"), "{refused}");
        };
        (0..3).for_each(|_| check(answers.recv().unwrap()));
        check(ask(at, "POST", "/api/v1/admin/tsdb/clean_tombstones", ""));
        gate.set_shut(false);
        (0..2).for_each(|_| assert_eq!(status(&answers.recv().unwrap()), "200"));
    });
    assert_eq!(status(&ask(at, "POST", "/api/v1/admin/merge", "")), "200");
}

#[test]
fn a_body_whose_records_exceed_the_memory_of_one_batch_is_kept_in_parts() {
    let options = Options { seal_bytes: 20_000, open_bytes_max: 60_000, ..Options::default() };
    let server = Inside::start_with(Arc::new(MemoryDriver::new()), options, Settings::default());
    let at = server.http;
    let lines: String = (1..=5_000).map(|time| format!("x v={time} {time}000000000\n")).collect();
    let body = format!("{lines}broken\n");
    let answer = ask(at, "POST", "/write?precision=ns", &lines);
    assert_eq!(status(&answer), "204", "{answer}");
    let answer = ask(at, "POST", "/write?precision=ns", &body);
    assert_eq!(status(&answer), "400", "{answer}");
    assert!(answer.contains("1 refused, the others are kept: line 5001"), "{answer}");
    let count = ask(at, "GET", "/api/v1/query?time=5000&query=count_over_time(x_v[2h])", "");
    assert!(count.contains("\"5000\""), "{count}");
}
