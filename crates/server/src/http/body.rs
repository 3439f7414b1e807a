//! Reads and decompresses the whole body of a request, within size limits.

use std::io::Read;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;

use super::error::ApiError;
use crate::connection_limit::{Receiving, Seat};
use crate::decoding::{Busy, Decoding, Hold};

/// The received bytes count against the memory budget of all bodies until the returned bytes are dropped. While more bytes are
/// awaited, the seat of the connection is not busy.
pub async fn receive(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    (hold, seat): (Hold, Option<&Arc<Seat>>),
) -> Result<Bytes, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        return Err(ApiError::too_large(bytes_max));
    }
    let mut body = http_body_util::Limited::new(body, bytes_max);
    let mut room = Roomed { bytes: Vec::new(), hold };
    let mut receiving = None;
    loop {
        // Most bodies have arrived with their head, and then the table of connections is not locked.
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => {
                receiving = receiving.or_else(|| seat.map(Seat::receive));
                let frame = body.frame().await;
                receiving.iter().for_each(Receiving::arrived);
                frame
            }
        };
        let Some(frame) = frame else { break };
        let part = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(e) if e.is::<http_body_util::LengthLimitError>() => {
                return Err(ApiError::too_large(bytes_max));
            }
            Err(e) => return Err(ApiError::bad(format!("request body ended early: {e}"))),
        };
        room.push(&part, bytes_max)?;
    }
    Ok(if room.bytes.is_empty() { Bytes::new() } else { Bytes::from_owner(room) })
}

/// Bytes that are decompressed in one step.
const UNPACKED_AT_ONCE: usize = 32 << 10;
/// Minimum of the memory that is reserved for a body, bytes.
const PART_BYTES: usize = 4 << 10;

struct Roomed {
    bytes: Vec<u8>,
    hold: Hold,
}

impl Roomed {
    /// Reserves memory for the appended bytes, not for the announced length of the body.
    fn push(&mut self, part: &[u8], bytes_max: usize) -> Result<(), Busy> {
        let Self { bytes, hold } = self;
        let len = bytes.len() + part.len();
        if len > bytes.capacity() {
            let capacity = len.max(2 * bytes.capacity()).max(PART_BYTES).min(bytes_max);
            hold.more(capacity - bytes.capacity())?;
            bytes.reserve_exact(capacity - bytes.len());
        }
        bytes.extend_from_slice(part);
        Ok(())
    }
}

impl AsRef<[u8]> for Roomed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

pub struct Packed {
    bytes: Bytes,
    gzip: bool,
    bytes_max: usize,
}

impl Packed {
    /// `bytes_max` limits the size before and after decompression.
    pub fn new(headers: &HeaderMap, bytes: Bytes, bytes_max: usize) -> Result<Self, ApiError> {
        if bytes.len() > bytes_max {
            return Err(ApiError::too_large(bytes_max));
        }
        Ok(Self { bytes, gzip: is_gzip(headers)?, bytes_max })
    }

    /// Decompresses gzip. The decompressed bytes also count against the memory budget of all bodies. Decompression takes
    /// long: do not call this on a thread of the async runtime.
    pub fn unpack(self, hold: Hold) -> Result<Bytes, ApiError> {
        if self.gzip { gunzip(&self.bytes, self.bytes_max, hold) } else { Ok(self.bytes) }
    }
}

/// Waits for a permit, decompresses gzip on a blocking thread, and waits until the memory budget has room for the records.
/// `message_bytes` returns the size of the message. In remote write the message is larger than the body, which is still
/// compressed with Snappy.
pub async fn unpacked(
    decoding: &Decoding,
    packed: Packed,
    message_bytes: impl Fn(&[u8]) -> Result<usize, ApiError>,
) -> Result<(OwnedSemaphorePermit, Bytes, Hold), ApiError> {
    let turn = decoding.turn().await?;
    let (body, turn) = if packed.gzip {
        // The permit is held during decompression, even if the client disconnects.
        let hold = decoding.body();
        let unpack = tokio::task::spawn_blocking(move || (packed.unpack(hold), turn)).await;
        unpack.map_err(|e| ApiError::internal(format!("decompression ended: {e}")))?
    } else {
        (Ok(packed.bytes), turn)
    };
    let body = body?;
    let hold = decoding.records(message_bytes(&body)?).await?;
    Ok((turn, body, hold))
}

/// Whether the body is gzip. Snappy is part of remote write, and the decoder of remote write decompresses it.
fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(false) };
    match encoding.as_bytes() {
        b"gzip" => Ok(true),
        b"identity" | b"snappy" | b"" => Ok(false),
        other => Err(ApiError::unsupported(format!(
            "content-encoding {:?} is not supported: send gzip, snappy (remote write) or none",
            String::from_utf8_lossy(other)
        ))),
    }
}

fn gunzip(bytes: &[u8], bytes_max: usize, hold: Hold) -> Result<Bytes, ApiError> {
    let mut decoder = flate2::read::MultiGzDecoder::new(bytes);
    let mut room = Roomed { bytes: Vec::new(), hold };
    let mut part = vec![0; UNPACKED_AT_ONCE];
    loop {
        let read = decoder.read(&mut part).map_err(|e| {
            ApiError::bad(format!("gzip body is damaged after {} bytes: {e}", room.bytes.len()))
        })?;
        if room.bytes.len() + read > bytes_max {
            return Err(ApiError::too_large(bytes_max));
        }
        match part.get(..read) {
            None | Some([]) => return Ok(Bytes::from_owner(room)),
            Some(part) => room.push(part, bytes_max)?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn a_body_holds_its_budget_until_its_bytes_are_dropped() {
        let decoding = Decoding::new(0, 1 << 20);
        let receive = async || {
            let (headers, body) = (HeaderMap::new(), Body::from(vec![7; 1 << 20]));
            receive(&headers, body, 1 << 20, (decoding.body(), None)).await
        };
        let mut bodies = Vec::new();
        for _ in 0..16 {
            bodies.push(receive().await.unwrap());
        }
        assert_eq!(receive().await.unwrap_err().status, 503);
        let part = bodies.pop().unwrap().slice(3..7);
        assert_eq!(
            receive().await.unwrap_err().status,
            503,
            "accepted although a body still holds its part of the budget"
        );
        drop(part);
        assert!(receive().await.is_ok());
    }

    #[test]
    fn a_decompression_bomb_is_stopped_at_the_limit() {
        let decoding = Decoding::new(0, 100);
        let unpack = |bytes: &[u8]| gunzip(bytes, 100, decoding.body());
        assert_eq!(unpack(&gzip(&[7; 100])).unwrap().len(), 100);
        assert_eq!(unpack(&gzip(&[])).unwrap().len(), 0);
        assert_eq!(unpack(&gzip(&[7; 101])).unwrap_err().status, 413);
        assert_eq!(unpack(b"not gzip").unwrap_err().status, 400);
    }

    #[test]
    fn decompressed_bodies_share_the_budget_of_all_bodies() {
        let decoding = Decoding::new(0, 1 << 20);
        let bomb = gzip(&vec![7; 1 << 20]);
        let unpack = || gunzip(&bomb, 1 << 20, decoding.body());
        let mut bodies: Vec<Bytes> = (0..16).map(|_| unpack().unwrap()).collect();
        assert_eq!(unpack().unwrap_err().status, 503);
        bodies.pop();
        assert_eq!(unpack().unwrap().len(), 1 << 20);
    }
}
