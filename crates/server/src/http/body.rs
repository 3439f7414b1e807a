//! The body of a write: whole, decompressed, and never larger than allowed.

use std::io::Read;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};

use super::error::ApiError;

/// A whole body as it was sent.
pub struct Packed {
    bytes: Bytes,
    gzip: bool,
    bytes_max: usize,
}

impl Packed {
    /// Takes gzip off, which takes long: not for a thread that others wait for. The bound holds afterwards, too.
    pub fn unpack(self) -> Result<Bytes, ApiError> {
        if self.gzip { gunzip(&self.bytes, self.bytes_max) } else { Ok(self.bytes) }
    }
}

/// Reads the body; `bytes_max` bounds it before and after it is unpacked.
pub async fn read(headers: &HeaderMap, body: Body, bytes_max: usize) -> Result<Packed, ApiError> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > bytes_max) {
        return Err(ApiError::too_large(bytes_max));
    }
    let limited = http_body_util::Limited::new(body, bytes_max);
    let bytes = match http_body_util::BodyExt::collect(limited).await {
        Ok(whole) => whole.to_bytes(),
        Err(e) if e.is::<http_body_util::LengthLimitError>() => return Err(ApiError::too_large(bytes_max)),
        Err(e) => return Err(ApiError::bad(format!("request body ended early: {e}"))),
    };
    Ok(Packed { bytes, gzip: is_gzip(headers)?, bytes_max })
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
