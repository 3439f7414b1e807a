//! Tokens of `tacho token add`, used over HTTP and by agents.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use tacho_ingest::wire::{ClientFrame, FrameDecoder, Hello, ServerFrame, Token};

use crate::support::{Response, Server, run, wait_for};

/// The text of a new token.
pub fn add(data: &Path, name: &str, more: &[&str]) -> String {
    let data = data.to_str().unwrap();
    let args: Vec<&str> = ["token", "add", name, "--data", data].iter().chain(more).copied().collect();
    let (code, out, said) = run(&args);
    assert_eq!(code, Some(0), "{said}");
    out.trim().to_owned()
}

/// The text of a new token, as soon as the running server accepts it.
pub fn add_to(server: &Server, name: &str, more: &[&str]) -> String {
    changing(server, || add(&server.data, name, more))
}

pub fn revoke(server: &Server, name: &str) {
    changing(server, || remove(&server.data, name));
}

/// Changes the file of tokens, and waits until the log shows that the server has read the file. Before that, a request with a new
/// token would count as a request with a wrong token.
pub fn changing<T>(server: &Server, change: impl FnOnce() -> T) -> T {
    let count = || {
        let log = server.log();
        log.matches("tokens read").count() + log.matches("tokens cannot be used").count()
    };
    let before = count();
    let done = change();
    wait_for("the server to read the tokens", || (count() > before).then_some(()));
    done
}

fn remove(data: &Path, name: &str) {
    let (code, _, said) = run(&["token", "revoke", name, "--data", data.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
}

pub fn ask(server: &Server, method: &str, path: &str, token: &str) -> Response {
    server.request(method, path, &[("Authorization", &format!("Bearer {token}"))], b"")
}

pub fn audit(data: &Path) -> String {
    std::fs::read_to_string(data.join("audit.log")).unwrap_or_default()
}

pub struct Agent {
    stream: TcpStream,
    decoder: FrameDecoder,
}

impl Agent {
    /// Connects and sends HELLO. Returns the first frame of the server.
    pub fn connect(at: SocketAddr, service: &str, token: Option<&str>) -> (Self, ServerFrame) {
        let stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let pairs = [("service", service), ("host", &*format!("{service}-host")), ("control", "1")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let session = service.bytes().fold(1u128 << 90, |all, byte| all.wrapping_mul(131) ^ u128::from(byte));
        let token = token.and_then(Token::new);
        let hello = Hello { version_min: 1, version_max: 1, session, pairs, secret: None, token };
        let mut agent = Self { stream, decoder: FrameDecoder::new() };
        agent.send(&ClientFrame::Hello(hello));
        let first = agent.next().expect("the server answers");
        (agent, first)
    }

    pub fn send(&mut self, frame: &ClientFrame<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.send_bytes(&bytes);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// `None` if the server has closed the connection, or sends nothing for 300 seconds.
    pub fn next(&mut self) -> Option<ServerFrame> {
        let mut buffer = [0; 4_096];
        loop {
            if let Some(frame) = self.decoder.pull().unwrap() {
                return ServerFrame::decode(frame).unwrap();
            }
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.decoder.push(&buffer[..count]),
            }
        }
    }

    /// Receives frames until `wanted` accepts one.
    pub fn wait<T>(&mut self, wanted: impl Fn(ServerFrame) -> Option<T>) -> T {
        loop {
            let frame = self.next().expect("the server sends the frame before it closes the connection");
            if let Some(found) = wanted(frame) {
                return found;
            }
        }
    }
}

pub fn code(frame: &ServerFrame) -> u64 {
    match frame {
        ServerFrame::Error { code, .. } => *code,
        other => panic!("{other:?}"),
    }
}
