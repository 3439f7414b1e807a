//! Starts the real `tacho serve` on free ports, and sends HTTP requests to this server.

#[path = "../../../../server/tests/support/agent.rs"]
pub mod agent;
pub mod checked;
pub mod contents;
pub mod damaged;
pub mod filled;
pub mod guarded;
pub mod http_writer;
#[path = "../../../../server/tests/support/inside.rs"]
pub mod inside;
pub mod java;
pub mod place;
pub mod tokens;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time limit for a server to stop, for each read of a response, and for [`wait_for`].
const PATIENCE: Duration = Duration::from_secs(300);

pub fn tacho() -> &'static str {
    env!("CARGO_BIN_EXE_tacho")
}

/// The number in an environment variable, or `default` if the variable is not set.
pub fn number_from<T: FromStr>(variable: &str, default: T) -> T {
    std::env::var(variable).map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{variable} is not a number: \"{value}\""))
    })
}

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub http: SocketAddr,
    pub records: SocketAddr,
    pub data: PathBuf,
    log: Arc<Mutex<String>>,
    /// Ends at the end of stderr.
    collector: Option<JoinHandle<()>>,
}

impl Server {
    /// The system chooses the ports. Returns when the server has printed its addresses.
    pub fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    pub fn start_with(data: &Path, flags: &[&str]) -> Self {
        Self::try_start(data, flags)
            .unwrap_or_else(|(status, log)| panic!("server ended with {status}: {log}"))
    }

    /// If the server ends before it prints its addresses, returns its exit status and its stderr.
    pub fn try_start(data: &Path, flags: &[&str]) -> Result<Self, (ExitStatus, String)> {
        let mut command = Self::command(data, "127.0.0.1:0");
        command.args(flags);
        Self::from_command(command, data)
    }

    /// `http` may be the address of an earlier server. With port 0 the system chooses the port.
    pub fn start_at(http: SocketAddr, data: &Path) -> Self {
        Self::from_command(Self::command(data, &http.to_string()), data)
            .unwrap_or_else(|(status, log)| panic!("server ended with {status}: {log}"))
    }

    fn command(data: &Path, http: &str) -> Command {
        let mut command = Command::new(tacho());
        command.args(["serve", "--http", http, "--records", "127.0.0.1:0", "--data"]).arg(data);
        command
    }

    /// Like [`Server::try_start`], with a command that serves `data`.
    pub fn from_command(command: Command, data: &Path) -> Result<Self, (ExitStatus, String)> {
        Self::from_command_with_log(command, data, Stdio::piped())
    }

    /// `log` is the destination of stderr.
    pub fn from_command_with_log(
        mut command: Command,
        data: &Path,
        log: Stdio,
    ) -> Result<Self, (ExitStatus, String)> {
        let mut child = command
            .current_dir(std::env::temp_dir())
            .env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "info".into()))
            // With 0, a stop flushes all records. Many tests read the segment files after a stop.
            .env("TACHO_STOP_JOURNAL_BYTES", "0")
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .expect("tacho can be started");
        let (log, collector) = child.stderr.take().map(collect).unzip();
        let log: Arc<Mutex<String>> = log.unwrap_or_default();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        stdout.read_line(&mut line).expect("stdout can be read");
        let Some((http, records)) = listening(&line) else {
            let status = child.wait().expect("child can be waited for");
            collector.map(JoinHandle::join).transpose().expect("stderr can be read");
            return Err((status, log.lock().unwrap().clone()));
        };
        Ok(Self { child, http, records, data: data.to_owned(), log, collector })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The stderr of the server so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line of the log with `text`. A thread collects the log, so a line may arrive later than an answer.
    pub fn wait_for_log(&self, text: &str) {
        wait_for(text, || self.log().contains(text).then_some(()));
    }

    /// Sends SIGKILL, so that the server cannot write anything more.
    pub fn kill(mut self) {
        self.child.kill().expect("child can be killed");
        self.child.wait().expect("child can be waited for");
    }

    /// Sends SIGTERM.
    pub fn stop(mut self) -> ExitStatus {
        self.terminate()
    }

    /// Like [`Server::stop`]. Also returns the complete stderr.
    pub fn stop_with_log(mut self) -> (ExitStatus, String) {
        let status = self.terminate();
        self.collector.take().map(JoinHandle::join).transpose().expect("stderr can be read");
        (status, self.log())
    }

    fn terminate(&mut self) -> ExitStatus {
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

    /// For `--server`.
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

/// Parses the line `listening http=ADDR records=ADDR`.
fn listening(line: &str) -> Option<(SocketAddr, SocketAddr)> {
    let (http, records) = line.trim().strip_prefix("listening http=")?.split_once(" records=")?;
    Some((http.parse().ok()?, records.parse().ok()?))
}

fn collect(mut stderr: impl Read + Send + 'static) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let log = Arc::new(Mutex::new(String::new()));
    let writer = log.clone();
    let collector = std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stderr.read(&mut buffer) {
            writer.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    });
    (log, collector)
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    /// Names are in lower case.
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

/// Sends one request on a new connection.
pub fn request(at: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
    try_request(at, method, path, headers, body).expect("the server closes the connection without an answer")
}

/// Like [`request`]. `None` if the server closes the connection without an answer, as it may if there are too many connections.
pub fn try_request(
    at: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<Response> {
    let mut stream = TcpStream::connect(at).expect("server accepts");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    stream.write_all(head.as_bytes()).ok()?;
    // A server that refuses a body because of its announced length may close the connection before it has read the body.
    let _ = stream.write_all(body);
    let mut raw = Vec::new();
    let _ = stream.read_to_end(&mut raw);
    (!raw.is_empty()).then(|| parse_response(&raw))
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

/// Exit code, stdout and stderr of `tacho` with `args`.
pub fn run(args: &[&str]) -> (Option<i32>, String, String) {
    finish(Command::new(tacho()).args(args))
}

/// Like [`run`]. A server that starts although it should be refused is ended by `timeout` after five minutes, with exit code 124.
pub fn run_refused(args: &[&str]) -> (Option<i32>, String, String) {
    finish(Command::new("timeout").arg("300").arg(tacho()).args(args))
}

fn finish(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command
        .current_dir(std::env::temp_dir())
        .env("NO_COLOR", "1")
        .env_remove("TACHO_URL")
        .output()
        .expect("tacho can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Like [`run`], with `input` on standard input.
pub fn run_with_input(args: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut child = Command::new(tacho())
        .args(args)
        .env_remove("TACHO_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("tacho can be started");
    child.stdin.take().expect("stdin is piped").write_all(input.as_bytes()).expect("tacho reads stdin");
    let output = child.wait_with_output().expect("tacho ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Waits until no process holds a lock of the data directory. A process that another test starts inherits the locks of an earlier
/// opening in this process, and holds them until it executes its program.
pub fn wait_until_unlocked(data: &Path) {
    let locks = ["LOCK", "chunks/LOCK", "journal/LOCK"].map(|name| std::fs::metadata(data.join(name)));
    let inodes: Vec<String> = locks.into_iter().flatten().map(|file| format!(":{} ", file.ino())).collect();
    assert!(!inodes.is_empty(), "{} has no lock file", data.display());
    wait_for("the directory to be unlocked", || {
        let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        (!inodes.iter().any(|inode| locks.contains(inode))).then_some(())
    });
}

/// Polls until `ready` returns a value. `what` is for the message of a timeout.
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
