//! Compresses responses with gzip if the client accepts gzip. Only texts of at least `BYTES_MIN` and streams of text are
//! compressed.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream::{self, StreamExt};
use http_body_util::BodyExt;

use super::error::ApiError;

/// Minimum size of a response that is compressed, bytes. Smaller responses fit into one packet anyway.
const BYTES_MIN: u64 = 1_400;

pub fn accepted(headers: &HeaderMap) -> bool {
    let lists = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|v| v.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let quality =
            weight.split_once('=').map_or(1.0, |(_, value)| value.trim().parse::<f64>().unwrap_or(1.0));
        name.trim().eq_ignore_ascii_case("gzip") && quality > 0.0
    })
}

/// Compresses texts of at least [`BYTES_MIN`] if `accepts` is true. Streams are compressed part by part. `Vary` tells caches that
/// such a response depends on `Accept-Encoding`, also if this one is not compressed.
pub async fn compress(mut response: Response, accepts: bool) -> Response {
    let exact = axum::body::HttpBody::size_hint(response.body()).exact();
    if exact.is_some_and(|bytes| bytes < BYTES_MIN) || !is_text(&response) {
        return response;
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !accepts {
        return response;
    }
    let (mut head, body) = response.into_parts();
    if exact.is_none() {
        set_encoding(&mut head.headers);
        return Response::from_parts(head, in_parts(body));
    }
    let plain = match body.collect().await {
        Ok(whole) => whole.to_bytes(),
        Err(e) => return ApiError::internal(format!("answer cannot be read: {e}")).into_response(),
    };
    // Compressing tens of megabytes on a thread of the async runtime would block other requests.
    let bytes = match tokio::task::spawn_blocking(move || gzip(&plain)).await {
        Ok(Ok(bytes)) => bytes,
        _ => return ApiError::internal("answer cannot be compressed").into_response(),
    };
    set_encoding(&mut head.headers);
    Response::from_parts(head, Body::from(bytes))
}

fn set_encoding(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

fn in_parts(body: Body) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let state = Some((body.into_data_stream(), encoder));
    Body::from_stream(stream::unfold(state, async |state| {
        let (mut parts, mut encoder) = state?;
        loop {
            let part = match parts.next().await {
                None => return Some((encoder.finish().map(Bytes::from).map_err(axum::Error::new), None)),
                Some(Err(error)) => return Some((Err(error), None)),
                Some(Ok(part)) => part,
            };
            let write = tokio::task::spawn_blocking(move || encoder.write_all(&part).map(|()| encoder));
            encoder = match write.await.map_err(axum::Error::new).and_then(|e| e.map_err(axum::Error::new)) {
                Ok(encoder) => encoder,
                Err(error) => return Some((Err(error), None)),
            };
            let written = std::mem::take(encoder.get_mut());
            if !written.is_empty() {
                return Some((Ok(Bytes::from(written)), Some((parts, encoder))));
            }
        }
    }))
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

    #[tokio::test]
    async fn the_parts_of_a_stream_form_one_gzip_stream() {
        let parts: Vec<Vec<u8>> =
            (0..20_u8).map(|number| vec![number; usize::from(number) * 1_000]).collect();
        let plain = parts.concat();
        let parts = parts.into_iter().map(|part| Ok::<_, std::io::Error>(Bytes::from(part)));
        let body = Body::from_stream(stream::iter(parts.collect::<Vec<_>>()));
        let response =
            compress(([(header::CONTENT_TYPE, "application/json")], body).into_response(), true).await;
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&*bytes), &mut read).unwrap();
        assert!(read == plain && bytes.len() < plain.len() / 10);
    }

    #[tokio::test]
    async fn vary_is_on_all_texts_that_can_be_compressed() {
        for (length, accepts, vary, encoding) in
            [(10_000, true, true, true), (10_000, false, true, false), (10, true, false, false)]
        {
            let text = ([(header::CONTENT_TYPE, "text/plain")], "x".repeat(length)).into_response();
            let response = compress(text, accepts).await;
            assert_eq!(response.headers().contains_key(header::VARY), vary, "{length} {accepts}");
            assert_eq!(
                response.headers().contains_key(header::CONTENT_ENCODING),
                encoding,
                "{length} {accepts}"
            );
        }
    }

    #[test]
    fn accept_encoding_is_parsed() {
        for (value, expect) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.8", true),
            ("GZIP ; Q = 0.5", true),
            ("gzip;q=0", false),
            ("gzip ; q = 0.0", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(value))]);
            assert_eq!(accepted(&headers), expect, "{value}");
        }
    }
}
