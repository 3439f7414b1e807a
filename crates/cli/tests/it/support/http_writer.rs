//! Writes samples by line protocol and remote write, and deletes samples. Notes the requests that the server answered with 204.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The samples of one series, by their times in ns.
pub struct Written {
    pub name: &'static str,
    pub attempted: Vec<i64>,
    pub acknowledged: Vec<i64>,
}

/// Alternates between the two protocols.
pub struct HttpWriter {
    pub series: [Written; 2],
    requests: i64,
}

impl Default for HttpWriter {
    fn default() -> Self {
        let written = |name| Written { name, attempted: vec![], acknowledged: vec![] };
        Self { series: [written("line"), written("remote")], requests: 0 }
    }
}

impl HttpWriter {
    pub fn acknowledged(&self) -> usize {
        self.series.iter().map(|series| series.acknowledged.len()).sum()
    }

    /// Writes until the server has ended.
    pub fn run(&mut self, at: SocketAddr) {
        loop {
            self.requests += 1;
            // Times are whole milliseconds, because remote write has no smaller unit.
            let ms = 1_700_000_000_000 + self.requests;
            let [line, remote] = &mut self.series;
            let time = ms * 1_000_000;
            let (series, status) = if self.requests % 2 == 0 {
                line.attempted.push(time);
                (line, post(at, "/write", "", format!("line value=1 {time}").as_bytes()))
            } else {
                remote.attempted.push(time);
                (remote, post(at, "/api/v1/write", SNAPPY, &remote_write(ms)))
            };
            match status {
                Some(204) => series.acknowledged.push(time),
                Some(other) => panic!("{} is answered with {other}", series.name),
                None => return,
            }
        }
    }
}

/// Repeatedly writes samples and deletes older ones.
#[derive(Default)]
pub struct Deleter {
    next: i64,
    /// Times of samples that were acknowledged and not deleted.
    pub kept: Vec<i64>,
    /// Times of samples whose deletion was acknowledged.
    pub deleted: Vec<i64>,
    /// Times of samples whose write or deletion was not answered. They may exist or not.
    pub open: Vec<i64>,
}

impl Deleter {
    pub const NAME: &str = "doomed";
    /// Unix time, ms. The first sample is 1 ms later.
    const FIRST_MS: i64 = 1_700_000_000_000;

    /// Writes and deletes until the server has ended.
    pub fn run(&mut self, at: SocketAddr) {
        loop {
            self.next += 1;
            let time = (Self::FIRST_MS + self.next) * 1_000_000;
            let line = format!("{} value=1 {time}", Self::NAME);
            match post(at, "/write", "", line.as_bytes()) {
                Some(204) => self.kept.push(time),
                Some(other) => panic!("a sample is answered with {other}"),
                None => return self.open.push(time),
            }
            if self.next % 8 == 0 && !self.delete(at, time - 4_000_000) {
                return;
            }
        }
    }

    /// Deletes the samples of the series up to and including `end`, ns. Returns whether the server answered.
    fn delete(&mut self, at: SocketAddr, end: i64) -> bool {
        let seconds = format!("{}.{:09}", end / 1_000_000_000, end % 1_000_000_000);
        let path = format!("/api/v1/admin/tsdb/delete_series?match[]={}&end={seconds}", Self::NAME);
        let status = post(at, &path, "", b"");
        let (doomed, kept) = self.kept.drain(..).partition(|time| *time <= end);
        self.kept = kept;
        match status {
            Some(204) => self.deleted.extend::<Vec<i64>>(doomed),
            Some(other) => panic!("a deletion is answered with {other}"),
            None => self.open.extend::<Vec<i64>>(doomed),
        }
        status.is_some()
    }
}

/// Headers of remote write 1.0.
const SNAPPY: &str = "Content-Encoding: snappy\r\nContent-Type: application/x-protobuf\r\n";

/// The status of the response. `None` if the server ended before the response was complete.
fn post(at: SocketAddr, path: &str, headers: &str, body: &[u8]) -> Option<u16> {
    let mut stream = TcpStream::connect(at).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// The body of a remote write of `remote{} = 1.0` at `ms`. Protobuf and snappy are encoded by hand.
fn remote_write(ms: i64) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let label = [field(1, b"__name__"), field(2, b"remote")].concat();
    let mut sample = vec![1 << 3 | 1];
    sample.extend_from_slice(&1.0f64.to_le_bytes());
    sample.push(2 << 3);
    let mut rest = ms;
    while rest >= 0x80 {
        sample.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    sample.push(rest as u8);
    let message = field(1, &[field(1, &label), field(2, &sample)].concat());
    // A snappy block with one literal of at most 60 bytes: the length, a tag, the bytes.
    let length = message.len() as u8;
    assert!(length <= 60);
    [&[length, (length - 1) << 2], &message[..]].concat()
}
