//! Control frames: all messages of client and server except DICT and DATA.

use tacho_model::varint::{put_bytes, put_varint};

use super::frame::{Frame, FrameType, put_frame};
use super::probes::{Probed, Probes};
use super::secret::Secret;
use super::token::Token;
use super::{HELLO_PAIRS_BYTES_MAX, HELLO_PAIRS_MAX, VERSION};
use crate::Error;
use crate::reader::{Flaw, Reader};

/// The body of every connection's first frame starts with these bytes, so that other protocols are detected immediately.
const MAGIC: [u8; 5] = *b"tacho";

/// First frame of a connection. It identifies the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub version_min: u8,
    pub version_max: u8,
    /// The id of the session, which is the same for all connections of a process.
    pub session: u128,
    /// `service`, `host`, `instance`, `runtime` and others, in the sender's order.
    pub pairs: Vec<(String, String)>,
    /// The secret from which the session id is derived. Older clients have none.
    pub secret: Option<Secret>,
    pub token: Option<Token>,
}

impl Hello {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The highest version that client and server support.
    pub const fn version(&self) -> Result<u8, Error> {
        if self.version_min <= VERSION && VERSION <= self.version_max {
            Ok(VERSION)
        } else {
            Err(Error::Version { min: self.version_min, max: self.version_max })
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[self.version_min, self.version_max]);
        out.extend_from_slice(&self.session.to_be_bytes());
        put_varint(out, self.pairs.len() as u64);
        for (key, value) in &self.pairs {
            put_bytes(out, key.as_bytes());
            put_bytes(out, value.as_bytes());
        }
        if self.secret.is_some() || self.token.is_some() {
            out.extend_from_slice(&self.secret.map_or([0; 16], |secret| secret.0));
        }
        if let Some(token) = &self.token {
            put_bytes(out, token.text().as_bytes());
        }
    }

    /// Whether the client may use the session.
    pub fn proves_session(&self) -> bool {
        !Secret::is_needed(self.session) || self.secret.is_some_and(|secret| secret.session() == self.session)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Flaw> {
        let start = reader.flaw("magic that is not \"tacho\"");
        if reader.array()? != MAGIC {
            return Err(start);
        }
        let [version_min, version_max] = reader.array()?;
        let session = u128::from_be_bytes(reader.array()?);
        let flaw = reader.flaw("more pairs than allowed");
        let count = reader.length()?;
        if count > HELLO_PAIRS_MAX {
            return Err(flaw);
        }
        let long = reader.flaw("pairs that are longer than allowed");
        let (mut pairs, mut bytes) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let (key, value) = (reader.string()?, reader.string()?);
            bytes += key.len() + value.len();
            if bytes > HELLO_PAIRS_BYTES_MAX {
                return Err(long);
            }
            pairs.push((key.to_owned(), value.to_owned()));
        }
        // HELLO has no secret if fewer than 16 bytes remain, or if the 16 bytes are 0.
        let secret = reader.array().ok().map(Secret);
        let token = if secret.is_none() || reader.is_empty() { None } else { Token::read(reader)? };
        let secret = secret.filter(|secret| secret.0 != [0; 16]);
        Ok(Self { version_min, version_max, session, pairs, secret, token })
    }
}

/// Heartbeat of a client: the numbers of records that its session has dropped, and the bytes that wait in its buffers now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ping {
    pub executions_dropped: u64,
    pub samples_dropped: u64,
    pub entries_dropped: u64,
    pub bytes_buffered: u64,
}

/// Messages of a client. DICT and DATA are decoded by [`super::Session`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientFrame<'a> {
    Hello(Hello),
    Dict(&'a [u8]),
    Data(&'a [u8]),
    Ping(Ping),
    Bye,
    Probed(Probed),
}

impl<'a> ClientFrame<'a> {
    pub fn decode(frame: Frame<'a>) -> Result<Self, Error> {
        let mut reader = Reader::new(frame.body);
        match FrameType::from_byte(frame.type_byte) {
            Some(FrameType::Hello) => {
                Hello::read(&mut reader).map(Self::Hello).map_err(|flaw| malformed("HELLO", flaw))
            }
            Some(FrameType::Dict) => Ok(Self::Dict(frame.body)),
            Some(FrameType::Data) => Ok(Self::Data(frame.body)),
            Some(FrameType::Ping) => {
                read_ping(&mut reader).map(Self::Ping).map_err(|flaw| malformed("PING", flaw))
            }
            Some(FrameType::Bye) => Ok(Self::Bye),
            Some(FrameType::Probed) => {
                Probed::read(&mut reader).map(Self::Probed).map_err(|flaw| malformed("PROBED", flaw))
            }
            _ => Err(Error::Unexpected { what: format!("frame type {}", frame.type_byte) }),
        }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello(hello) => put_frame(out, FrameType::Hello, |out| hello.put(out)),
            Self::Dict(body) => put_frame(out, FrameType::Dict, |out| out.extend_from_slice(body)),
            Self::Data(body) => put_frame(out, FrameType::Data, |out| out.extend_from_slice(body)),
            Self::Ping(ping) => put_frame(out, FrameType::Ping, |out| {
                put_varint(out, ping.executions_dropped);
                put_varint(out, ping.samples_dropped);
                put_varint(out, ping.entries_dropped);
                put_varint(out, ping.bytes_buffered);
            }),
            Self::Bye => put_frame(out, FrameType::Bye, |_| ()),
            Self::Probed(probed) => put_frame(out, FrameType::Probed, |out| probed.put(out)),
        }
    }
}

fn read_ping(reader: &mut Reader<'_>) -> Result<Ping, Flaw> {
    Ok(Ping {
        executions_dropped: reader.varint()?,
        samples_dropped: reader.varint()?,
        entries_dropped: reader.varint()?,
        bytes_buffered: reader.varint()?,
    })
}

/// Response to HELLO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    pub version: u8,
    /// Number of the session's last durable DATA frame; 0 for none.
    pub acked: u64,
    pub frame_body_bytes_max: u64,
    pub heartbeat_ms: u64,
    /// Bits of [`super::feature`]. A server without features omits the field, which means 0.
    pub features: u64,
}

/// One record was refused; the other records of its frame were kept. A reject with `record` 0 can also mean that the store
/// refused the whole frame, or that it refused one new series of the frame because of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Number of the DATA frame.
    pub seq: u64,
    /// Position in the frame, counted from 0.
    pub record: u64,
    pub reason: String,
}

/// Why the server closes a connection. The discriminants are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorCode {
    Damaged = 1,
    Version = 2,
    FrameTooLong = 3,
    Dictionary = 4,
    Malformed = 5,
    Superseded = 6,
    ShuttingDown = 7,
    Storage = 8,
    TooManyConnections = 9,
    /// The session id is not derived from the secret.
    Session = 10,
    /// The client does not use TLS, but the listener requires it.
    Tls = 11,
    /// The token is missing, unknown, expired or revoked.
    Unauthorized = 12,
    /// The token lacks the role `write`, or its selector excludes this client.
    Forbidden = 13,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerFrame {
    Welcome(Welcome),
    /// Every frame up to this number is durable, or was refused as a whole.
    Ack(u64),
    Reject(Reject),
    /// The server lacks memory, or the client is above the rate of its token. The client should expect no ACK for this time,
    /// ms.
    Wait(u64),
    /// The server's clock, ns.
    Pong(i64),
    /// A code of [`ErrorCode`], or a code of a later version.
    Error {
        code: u64,
        message: String,
    },
    Probes(Probes),
}

impl ServerFrame {
    pub fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error { code: u64::from(code as u8), message: message.into() }
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Welcome(welcome) => put_frame(out, FrameType::Welcome, |out| {
                out.push(welcome.version);
                put_varint(out, welcome.acked);
                put_varint(out, welcome.frame_body_bytes_max);
                put_varint(out, welcome.heartbeat_ms);
                if welcome.features != 0 {
                    put_varint(out, welcome.features);
                }
            }),
            Self::Ack(seq) => put_frame(out, FrameType::Ack, |out| put_varint(out, *seq)),
            Self::Reject(reject) => put_frame(out, FrameType::Reject, |out| {
                put_varint(out, reject.seq);
                put_varint(out, reject.record);
                put_bytes(out, reject.reason.as_bytes());
            }),
            Self::Wait(ms) => put_frame(out, FrameType::Wait, |out| put_varint(out, *ms)),
            Self::Pong(time) => {
                put_frame(out, FrameType::Pong, |out| out.extend_from_slice(&time.to_le_bytes()));
            }
            Self::Error { code, message } => put_frame(out, FrameType::Error, |out| {
                put_varint(out, *code);
                put_bytes(out, message.as_bytes());
            }),
            Self::Probes(probes) => put_frame(out, FrameType::Probes, |out| probes.put(out)),
        }
    }

    /// Decodes a frame of the server. `None` for a type that this version of the client does not support. Such a frame is
    /// skipped.
    pub fn decode(frame: Frame<'_>) -> Result<Option<Self>, Error> {
        let mut reader = Reader::new(frame.body);
        match FrameType::from_byte(frame.type_byte) {
            Some(FrameType::Welcome) => read_welcome(&mut reader),
            Some(FrameType::Ack) => reader.varint().map(Self::Ack),
            Some(FrameType::Reject) => read_reject(&mut reader),
            Some(FrameType::Wait) => reader.varint().map(Self::Wait),
            Some(FrameType::Pong) => reader.i64().map(Self::Pong),
            Some(FrameType::Error) => read_error(&mut reader),
            Some(FrameType::Probes) => Probes::read(&mut reader).map(Self::Probes),
            _ => return Ok(None),
        }
        .map(Some)
        .map_err(|flaw| malformed("frame of the server", flaw))
    }
}

fn read_welcome(reader: &mut Reader<'_>) -> Result<ServerFrame, Flaw> {
    Ok(ServerFrame::Welcome(Welcome {
        version: reader.u8()?,
        acked: reader.varint()?,
        frame_body_bytes_max: reader.varint()?,
        heartbeat_ms: reader.varint()?,
        features: if reader.is_empty() { 0 } else { reader.varint()? },
    }))
}

fn read_reject(reader: &mut Reader<'_>) -> Result<ServerFrame, Flaw> {
    Ok(ServerFrame::Reject(Reject {
        seq: reader.varint()?,
        record: reader.varint()?,
        reason: reader.string()?.to_owned(),
    }))
}

fn read_error(reader: &mut Reader<'_>) -> Result<ServerFrame, Flaw> {
    Ok(ServerFrame::Error { code: reader.varint()?, message: reader.string()?.to_owned() })
}

pub(super) const fn malformed(message: &'static str, flaw: Flaw) -> Error {
    Error::Malformed { message, flaw }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FrameDecoder;

    fn client(body: &[u8], type_byte: u8) -> Result<ClientFrame<'_>, String> {
        ClientFrame::decode(Frame { type_byte, body }).map_err(|error| error.to_string())
    }

    #[test]
    fn other_protocols_unknown_types_and_malformed_frames_are_refused() {
        assert_eq!(
            client(b"GET / HTTP/1.1", 1),
            Err("malformed HELLO: magic that is not \"tacho\" at byte 0".into())
        );
        assert_eq!(client(b"", 9), Err("unexpected frame type 9".into()));
        assert_eq!(client(&[1, 2], 4), Err("malformed PING: end of input in a varint at byte 2".into()));
    }

    #[test]
    fn hello_accepts_at_most_32_pairs_and_65536_bytes_of_pairs() {
        let check = |pairs: Vec<(String, String)>| {
            let hello =
                Hello { version_min: 1, version_max: 3, session: 7, pairs, secret: None, token: None };
            let mut out = Vec::new();
            ClientFrame::Hello(hello.clone()).encode(&mut out);
            let mut decoder = FrameDecoder::new();
            decoder.push(&out);
            let frame = decoder.pull().unwrap().unwrap();
            ClientFrame::decode(frame).map(|got| assert_eq!(got, ClientFrame::Hello(hello)))
        };
        let many = |pairs: usize| (0..pairs).map(|i| (format!("k{i}"), String::from("ö漢"))).collect();
        assert_eq!(check(many(HELLO_PAIRS_MAX)), Ok(()));
        assert!(
            check(many(HELLO_PAIRS_MAX + 1)).unwrap_err().to_string().contains("more pairs than allowed")
        );
        let long =
            |bytes: usize| vec![("k".to_owned(), "v".repeat(bytes - 2)), ("l".to_owned(), String::new())];
        assert_eq!(check(long(HELLO_PAIRS_BYTES_MAX)), Ok(()));
        let error = check(long(HELLO_PAIRS_BYTES_MAX + 1)).unwrap_err().to_string();
        assert!(error.contains("pairs that are longer than allowed"), "{error}");
    }

    #[test]
    fn the_highest_common_version_is_used() {
        let version = |version_min, version_max| {
            Hello { version_min, version_max, session: 0, pairs: vec![], secret: None, token: None }.version()
        };
        assert_eq!(version(1, 1), Ok(1));
        assert_eq!(version(1, 9), Ok(1));
        assert_eq!(version(2, 9), Err(Error::Version { min: 2, max: 9 }));
    }
}
