//! Starts the real `tacho serve` on free ports and talks HTTP to it. Shared by the tests of this crate.
#![allow(dead_code, reason = "each test binary uses its own part of this module")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a server may take to start, to stop, or to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Path of the binary under test.
pub fn tacho() -> &'static str {
    env!("CARGO_BIN_EXE_tacho")
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub http: SocketAddr,
    pub records: SocketAddr,
    pub data: PathBuf,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Starts on `data` with ports chosen by the system and waits for the line with the addresses.
    pub fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    /// As [`Server::start`], with more flags.
    pub fn start_with(data: &Path, flags: &[&str]) -> Self {
        Self::try_start(data, flags)
            .unwrap_or_else(|(status, log)| panic!("server ended with {status}: {log}"))
    }

    /// The server, or how it ended and what it wrote to stderr.
    pub fn try_start(data: &Path, flags: &[&str]) -> Result<Self, (ExitStatus, String)> {
        let mut command = Self::command(data, "127.0.0.1:0");
        command.args(flags);
        Self::from_command(command, data)
    }

    /// At this address, such as that of an earlier server; port 0 lets the system choose.
    pub fn start_at(http: SocketAddr, data: &Path) -> Self {
        Self::from_command(Self::command(data, &http.to_string()), data)
            .unwrap_or_else(|(status, log)| panic!("server ended with {status}: {log}"))
    }

    fn command(data: &Path, http: &str) -> Command {
        let mut command = Command::new(tacho());
        command.args(["serve", "--http", http, "--records", "127.0.0.1:0", "--data"]).arg(data);
        command
    }

    /// A server that `command` starts on `data`, with ports chosen by the system.
    pub fn from_command(command: Command, data: &Path) -> Result<Self, (ExitStatus, String)> {
        Self::from_command_with_log(command, data, Stdio::piped())
    }

    /// As [`Server::from_command`], with its log elsewhere.
    pub fn from_command_with_log(
        mut command: Command,
        data: &Path,
        log: Stdio,
    ) -> Result<Self, (ExitStatus, String)> {
        let mut child = command
            .current_dir(std::env::temp_dir())
            .env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "info".into()))
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("tacho can be started");
        let log = child.stderr.take().map_or_else(Arc::default, collect);
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        stdout.read_line(&mut line).expect("stdout can be read");
        let Some((http, records)) = listening(&line) else {
            let status = child.wait().expect("child can be waited for");
            std::thread::sleep(Duration::from_millis(50));
            return Err((status, log.lock().unwrap().clone()));
        };
        Ok(Self { child, http, records, data: data.to_owned(), log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The server's stderr so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// SIGKILL: the server cannot write anything more.
    pub fn kill(mut self) {
        self.child.kill().expect("child can be killed");
        self.child.wait().expect("child can be waited for");
    }

    /// Sends SIGTERM; returns how the server ended.
    pub fn stop(mut self) -> ExitStatus {
        let sent = Command::new("kill").args(["-TERM", &self.pid().to_string()]).status().expect("kill runs");
        assert!(sent.success(), "SIGTERM could not be sent");
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("child can be waited for") {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "server does not stop: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Base of all addresses, for `--server`.
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    pub fn get(&self, path: &str) -> Response {
        self.request("GET", path, &[], b"")
    }

    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        self.request("POST", path, headers, body)
    }

    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        request(self.http, method, path, headers, body)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `listening http=ADDR records=ADDR`
fn listening(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (http, records) = line.trim().strip_prefix("listening http=")?.split_once(" records=")?;
    Some((http.parse().ok()?, records.parse().ok()?))
}

fn collect(mut stderr: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let writer = log.clone();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stderr.read(&mut buffer) {
            writer.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    });
    log
}

/// An answer, whole.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }
}

/// One request on a connection of its own.
pub fn request(at: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    let mut stream = TcpStream::connect(at).expect("server accepts");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).expect("request is sent");
    // A server that refuses a body by its announced length may close before it has read all of it.
    let _ = stream.write_all(body);
    let mut raw = Vec::new();
    let _ = stream.read_to_end(&mut raw);
    parse_response(&raw)
}

fn parse_response(raw: &[u8]) -> Response {
    let end = raw.windows(4).position(|w| w == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("not HTTP: {:?}", String::from_utf8_lossy(raw)));
    let head = String::from_utf8_lossy(&raw[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|l| l.split(' ').nth(1)?.parse().ok()).expect("status line");
    let headers: Vec<(String, String)> = lines
        .filter_map(|l| l.split_once(": "))
        .map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()))
        .collect();
    let chunked = headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked");
    let body = if chunked { unchunk(&raw[end + 4..]) } else { raw[end + 4..].to_vec() };
    Response { status, headers, body }
}

/// Decodes the chunked transfer coding (RFC 9112, section 7.1).
fn unchunk(mut raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = raw.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&raw[..end]), 16).expect("chunk size");
        out.extend_from_slice(&raw[end + 2..end + 2 + size]);
        raw = &raw[end + 2 + size + 2..];
        if size == 0 {
            break;
        }
    }
    out
}

/// Runs `tacho` with `args`: exit code, stdout, stderr.
pub fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(tacho())
        .args(args)
        .current_dir(std::env::temp_dir())
        .env("NO_COLOR", "1")
        .env_remove("TACHO_URL")
        .output()
        .expect("tacho can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// As [`run`], with something on standard input.
pub fn run_with_input(args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(tacho())
        .args(args)
        .env_remove("TACHO_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tacho can be started");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("tacho ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Polls until `ready` returns a value.
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "timeout while waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
