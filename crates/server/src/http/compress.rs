//! Takes answers in gzip where the client accepts it and it pays.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::BodyExt;

use super::error::ApiError;

/// Answers below this size fit into one packet anyway, bytes.
const BYTES_MIN: u64 = 1_400;

pub fn accepted(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        name.trim() == "gzip" && !matches!(quality.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}

/// The same answer, smaller. What is small, or no text, stays as it is.
pub async fn compress(response: Response) -> Response {
    let exact = axum::body::HttpBody::size_hint(response.body()).exact();
    if exact.is_none_or(|bytes| bytes < BYTES_MIN) || !is_text(&response) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let plain = match body.collect().await {
        Ok(whole) => whole.to_bytes(),
        Err(e) => return ApiError::internal(format!("answer cannot be read: {e}")).into_response(),
    };
    // Tens of megabytes take long enough to keep other requests waiting.
    let bytes = match tokio::task::spawn_blocking(move || gzip(&plain)).await {
        Ok(Ok(bytes)) => bytes,
        _ => return ApiError::internal("answer cannot be compressed").into_response(),
    };
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(head, Body::from(bytes))
}

fn is_text(response: &Response) -> bool {
    let content_type = response.headers().get(header::CONTENT_TYPE).map_or(&b""[..], |v| v.as_bytes());
    content_type.starts_with(b"text/")
        || content_type.starts_with(b"application/json")
        || content_type.starts_with(b"image/svg")
}

fn gzip(plain: &Bytes) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptance() {
        for (value, expect) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.8", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepted(&headers), expect, "{value}");
        }
    }
}
