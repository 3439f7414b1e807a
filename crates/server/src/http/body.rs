//! The body of a write: whole, decompressed, and never larger than allowed.

use std::io::Read;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use http_body_util::BodyExt;
use tokio::sync::OwnedSemaphorePermit;

use super::error::ApiError;
use crate::decoding::{Decoding, Hold};

/// A whole body as it was sent.
pub struct Packed {
    bytes: Bytes,
    gzip: bool,
    bytes_max: usize,
    hold: Option<Hold>,
}

impl Packed {
    /// Takes gzip off, which takes long: not for a thread that others wait for. The bound holds afterwards, too.
    pub fn unpack(self) -> Result<Unpacked, ApiError> {
        let Self { bytes, gzip, bytes_max, hold } = self;
        if !gzip {
            return Ok(Unpacked { bytes, _hold: hold });
        }
        Ok(Unpacked { bytes: gunzip(&bytes, bytes_max)?, _hold: None })
    }
}

/// A body without its gzip, and the room that it takes as long as it came so.
pub struct Unpacked {
    pub bytes: Bytes,
    _hold: Option<Hold>,
}

/// Reads a body that is small; `bytes_max` bounds it before and after it is unpacked.
pub async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Packed, ApiError> {
    collect(headers, body, bytes_max, None).await
}

/// As [`read`], of one that may be large: what has come of it is taken from the room for all bodies.
pub async fn read_large(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    hold: Hold,
) -> Result<Packed, ApiError> {
    collect(headers, body, bytes_max, Some(hold)).await
}

async fn collect(
    headers: &HeaderMap,
    body: Body,
    bytes_max: usize,
    mut hold: Option<Hold>,
) -> Result<Packed, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        return Err(ApiError::too_large(bytes_max));
    }
    let gzip = is_gzip(headers)?;
    let mut body = http_body_util::Limited::new(body, bytes_max);
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let part = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(e) if e.is::<http_body_util::LengthLimitError>() => {
                return Err(ApiError::too_large(bytes_max));
            }
            Err(e) => return Err(ApiError::bad(format!("request body ended early: {e}"))),
        };
        let len = all.len() + part.len();
        if len > all.capacity() {
            // Memory follows what has come, not what was announced.
            let capacity = len.max(2 * all.capacity()).max(PART_BYTES).min(bytes_max);
            hold.as_mut().map_or(Ok(()), |hold| hold.more(capacity - all.capacity()))?;
            all.reserve_exact(capacity - all.len());
        }
        all.extend_from_slice(&part);
    }
    Ok(Packed { bytes: all.into(), gzip, bytes_max, hold })
}

/// The least that a body takes.
const PART_BYTES: usize = 4 << 10;

/// Waits for a turn, unpacks a body away from the threads that serve others, and waits for room for its records.
/// `message_bytes` tells how many bytes the decoder reads: a body may still be compressed in its protocol's own way.
pub async fn unpacked(
    decoding: &Decoding,
    packed: Packed,
    message_bytes: impl Fn(&[u8]) -> Result<usize, ApiError>,
) -> Result<(OwnedSemaphorePermit, Unpacked, Hold), ApiError> {
    let turn = decoding.turn().await?;
    let (body, turn) = if packed.gzip {
        // The turn is kept while it is unpacked, even when nobody waits for it any more.
        let unpack = tokio::task::spawn_blocking(move || (packed.unpack(), turn)).await;
        unpack.map_err(|e| ApiError::internal(format!("unpacking ended: {e}")))?
    } else {
        (packed.unpack(), turn)
    };
    let body = body?;
    let hold = decoding.records(message_bytes(&body.bytes)?).await?;
    Ok((turn, body, hold))
}

/// Whether to take gzip off. Snappy is part of remote write itself and stays on.
fn is_gzip(headers: &HeaderMap) -> Result<bool, ApiError> {
    let Some(encoding) = headers.get(header::CONTENT_ENCODING) else { return Ok(false) };
    match encoding.as_bytes() {
        b"gzip" => Ok(true),
        b"identity" | b"snappy" | b"" => Ok(false),
        other => Err(ApiError::unsupported(format!(
            "content-encoding {:?} is not known: send gzip, snappy (remote write) or none",
            String::from_utf8_lossy(other)
        ))),
    }
}

fn gunzip(bytes: &[u8], bytes_max: usize) -> Result<Bytes, ApiError> {
    let mut out = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    flate2::read::MultiGzDecoder::new(bytes)
        .take(limit)
        .read_to_end(&mut out)
        .map_err(|e| ApiError::bad(format!("gzip body is damaged after {} bytes: {e}", out.len())))?;
    if out.len() > bytes_max { Err(ApiError::too_large(bytes_max)) } else { Ok(out.into()) }
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

    #[test]
    fn a_bomb_is_stopped_at_the_limit() {
        assert_eq!(gunzip(&gzip(&[7; 100]), 100).unwrap().len(), 100);
        assert_eq!(gunzip(&gzip(&[7; 101]), 100).unwrap_err().status, 413);
        assert_eq!(gunzip(b"not gzip", 100).unwrap_err().status, 400);
    }
}
