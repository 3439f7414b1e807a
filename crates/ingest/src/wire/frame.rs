//! Where do frames begin and end in the byte stream, and are their checksums correct?
//!
//! ```text
//!  0        4    5    6    8        12
//!  +--------+----+----+----+--------+----------------------+
//!  | length |type|  0 |  0 | crc32c | body: `length` bytes |
//!  +--------+----+----+----+--------+----------------------+
//! ```

use super::FRAME_BODY_BYTES_MAX;
use crate::Error;

pub const HEADER_BYTES: usize = 12;
/// Bytes of the header that the checksum covers.
const CHECKED_BYTES: usize = 8;
/// An empty buffer larger than this is freed.
const BUFFER_KEPT_BYTES: usize = 256 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameType {
    Hello = 1,
    Dict = 2,
    Data = 3,
    Ping = 4,
    Bye = 5,
    Probed = 6,
    Welcome = 65,
    Ack = 66,
    Wait = 67,
    Pong = 68,
    Error = 69,
    Reject = 70,
    Probes = 71,
}

impl FrameType {
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Hello),
            2 => Some(Self::Dict),
            3 => Some(Self::Data),
            4 => Some(Self::Ping),
            5 => Some(Self::Bye),
            6 => Some(Self::Probed),
            65 => Some(Self::Welcome),
            66 => Some(Self::Ack),
            67 => Some(Self::Wait),
            68 => Some(Self::Pong),
            69 => Some(Self::Error),
            70 => Some(Self::Reject),
            71 => Some(Self::Probes),
            _ => None,
        }
    }
}

/// A frame with a correct checksum. Its type may be unknown to this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    pub type_byte: u8,
    pub body: &'a [u8],
}

/// Appends a frame to `out`. The function `body` appends the body of the frame.
///
/// The body must not be longer than [`FRAME_BODY_BYTES_MAX`]: the receiver would refuse it.
pub(super) fn put_frame(out: &mut Vec<u8>, frame_type: FrameType, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    body(out);
    let length = out.len() - start - HEADER_BYTES;
    debug_assert!(length <= FRAME_BODY_BYTES_MAX as usize, "frame body of {length} bytes");
    let Some((header, body)) = out.get_mut(start..).and_then(<[u8]>::split_first_chunk_mut::<HEADER_BYTES>)
    else {
        return;
    };
    let checked = checked_part(u32::try_from(length).unwrap_or(u32::MAX), frame_type as u8);
    *header = with_checksum(checked, checksum(checked, body));
}

const fn checked_part(length: u32, type_byte: u8) -> [u8; CHECKED_BYTES] {
    let [a, b, c, d] = length.to_le_bytes();
    [a, b, c, d, type_byte, 0, 0, 0]
}

const fn with_checksum(checked: [u8; CHECKED_BYTES], sum: u32) -> [u8; HEADER_BYTES] {
    let [a, b, c, d, e, f, g, h] = checked;
    let [i, j, k, l] = sum.to_le_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of the header's first eight bytes and the body.
fn checksum(checked: [u8; CHECKED_BYTES], body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&checked), body)
}

/// Splits a byte stream into frames.
///
/// The caller pushes the received bytes and then pulls frames until `None`. Therefore the buffer never holds more than
/// one frame and one read. Its memory is proportional to the bytes received and independent of the length that a header
/// states. After an error no more frames are returned.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    /// Number of bytes at the front of `buffer` that were already returned.
    consumed: usize,
    /// Position of `buffer` in the connection's byte stream.
    offset: u64,
    failed: Option<Error>,
}

impl FrameDecoder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.buffer.drain(..self.consumed);
        self.offset += self.consumed as u64;
        self.consumed = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > BUFFER_KEPT_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Number of bytes that were pushed and not pulled yet.
    pub fn gathered(&self) -> usize {
        self.buffer.len() - self.consumed
    }

    /// Whether the buffer has a whole frame. The checksum of the frame is not verified yet.
    pub fn is_whole(&self) -> Result<bool, Error> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None => frame_bytes(self.buffer.get(self.consumed..).unwrap_or_default(), self.at())
                .map(|bytes| bytes.is_some()),
        }
    }

    /// Position of the next frame in the connection's byte stream.
    const fn at(&self) -> u64 {
        self.offset + self.consumed as u64
    }

    /// The next complete frame, or `None` if more bytes must be pushed first.
    pub fn pull(&mut self) -> Result<Option<Frame<'_>>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let (start, offset) = (self.consumed, self.at());
        match measure(self.buffer.get(start..).unwrap_or_default(), offset) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => {
                self.consumed += bytes;
                let whole = self.buffer.get(start..self.consumed).unwrap_or_default();
                Ok(whole.split_first_chunk::<HEADER_BYTES>().map(|(header, body)| {
                    let [_, _, _, _, type_byte, ..] = *header;
                    Frame { type_byte, body }
                }))
            }
            Err(error) => {
                self.buffer = Vec::new();
                self.consumed = 0;
                self.failed = Some(error.clone());
                Err(error)
            }
        }
    }
}

/// Length of the frame at the front of `bytes`, or `None` while it is incomplete.
fn frame_bytes(bytes: &[u8], offset: u64) -> Result<Option<usize>, Error> {
    let Some(([a, b, c, d], _)) = bytes.split_first_chunk() else { return Ok(None) };
    let length = u32::from_le_bytes([*a, *b, *c, *d]);
    if length > FRAME_BODY_BYTES_MAX {
        return Err(Error::FrameTooLong { length, offset });
    }
    Ok(Some(HEADER_BYTES + length as usize).filter(|whole| *whole <= bytes.len()))
}

/// The same as [`frame_bytes`], but also verifies the checksum.
fn measure(bytes: &[u8], offset: u64) -> Result<Option<usize>, Error> {
    let Some(length) = frame_bytes(bytes, offset)? else { return Ok(None) };
    let parts = bytes.get(..length).and_then(<[u8]>::split_first_chunk::<HEADER_BYTES>);
    let Some((header, body)) = parts else { return Ok(None) };
    let [a, b, c, d, e, f, g, h, sum @ ..] = *header;
    let got = checksum([a, b, c, d, e, f, g, h], body);
    let expected = u32::from_le_bytes(sum);
    if got != expected {
        return Err(Error::Checksum { expected, got, offset });
    }
    Ok(Some(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(frame_type: FrameType, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_frame(&mut out, frame_type, |out| out.extend_from_slice(body));
        out
    }

    #[test]
    fn an_error_names_its_position_and_ends_the_stream() {
        let mut stream = frame(FrameType::Bye, &[]);
        stream.extend(frame(FrameType::Ping, &[1, 2, 3, 4]));
        *stream.last_mut().unwrap() ^= 1;
        let mut decoder = FrameDecoder::new();
        decoder.push(&stream);
        assert_eq!(decoder.pull().unwrap().unwrap().type_byte, 5);
        let error = decoder.pull().unwrap_err();
        assert!(error.to_string().ends_with("(frame at byte 12)"), "{error}");
        decoder.push(&frame(FrameType::Bye, &[]));
        assert_eq!(decoder.pull(), Err(error), "every pull after an error must return the error");
    }

    #[test]
    fn length_is_refused_one_past_the_limit_before_the_body() {
        let header = |length: u32| with_checksum(checked_part(length, 3), 0);
        let mut decoder = FrameDecoder::new();
        decoder.push(&header(FRAME_BODY_BYTES_MAX));
        assert_eq!(decoder.pull(), Ok(None));
        let mut decoder = FrameDecoder::new();
        decoder.push(&header(FRAME_BODY_BYTES_MAX + 1));
        assert_eq!(decoder.pull(), Err(Error::FrameTooLong { length: 4_194_305, offset: 0 }));
    }

    #[test]
    fn memory_is_proportional_to_the_bytes_received() {
        let mut decoder = FrameDecoder::new();
        decoder.push(&with_checksum(checked_part(FRAME_BODY_BYTES_MAX, 3), 0));
        assert_eq!(decoder.pull(), Ok(None));
        assert!(decoder.buffer.capacity() < 1024);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_frames(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..8),
            step in 1usize..30,
        ) {
            let stream: Vec<u8> = bodies.iter().flat_map(|body| frame(FrameType::Data, body)).collect();
            let mut decoder = FrameDecoder::new();
            let mut got = Vec::new();
            for piece in stream.chunks(step) {
                decoder.push(piece);
                while let Some(frame) = decoder.pull().unwrap() {
                    got.push(frame.body.to_vec());
                }
            }
            prop_assert_eq!(got, bodies);
            prop_assert_eq!(decoder.gathered(), 0);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = FrameDecoder::new();
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.pull() {}
        }
    }
}
