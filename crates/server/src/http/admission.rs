//! Receives the body of a request, and then acquires one of the `requests_max` permits. If none is free, the request gets 503.
//!
//! A slow body takes a connection (`listener.rs`) and memory for the received bytes, but no permit. At the limit on connections,
//! the connection whose body does not continue for the longest time makes way for a new one.
//! `decoding.rs` limits the memory of all bodies together, including forms of queries. `guard.rs` limits the time of a request,
//! including the reception of its body. No handler starts before the whole body is received, except the handlers of `/healthz`,
//! `/readyz`, `/metrics` and `/api/queries`: they ignore the body, and need no permit.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use tokio::sync::OwnedSemaphorePermit;

use super::app::App;
use super::body;
use super::error::ApiError;
use super::write::count_wait;
use crate::connection_limit::Seat;
use crate::decoding::FORM_BYTES_MAX;

/// A request whose body is received, with its permit.
pub struct Admitted {
    pub request: Request,
    pub body: Bytes,
    pub place: Option<OwnedSemaphorePermit>,
}

pub async fn admitted(app: &App, route: &str, request: Request) -> Result<Admitted, ApiError> {
    let (head, body) = request.into_parts();
    let protocol = protocol(route);
    let bytes_max = if protocol.is_some() { app.config.body_bytes_max } else { FORM_BYTES_MAX };
    let seat = head.extensions.get::<Arc<Seat>>();
    let received = body::receive(&head.headers, body, bytes_max, (app.decoding.body(), seat)).await;
    let bytes = received.inspect_err(|error| {
        if let Some(protocol) = protocol {
            count_wait(app, protocol, error);
        }
    })?;
    let place = app.permits.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{} requests are being served already", app.config.requests_max);
        ApiError::unavailable(message, 1)
    })?;
    let request = Request::from_parts(head, Body::from(bytes.clone()));
    Ok(Admitted { request, body: bytes, place: Some(place) })
}

/// Refuses a transfer coding other than a single `chunked` (RFC 9112, section 6.1). Hyper decodes only `chunked`, so a handler
/// would get the content in the other coding.
pub fn check_coding(headers: &HeaderMap) -> Result<(), ApiError> {
    let values = headers.get_all(header::TRANSFER_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    let first = codings.next();
    if codings.next().is_none()
        && first.is_none_or(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"chunked"))
    {
        return Ok(());
    }
    Err(ApiError::not_implemented(
        "the only supported transfer coding is chunked: name the coding of the content in Content-Encoding",
    ))
}

/// The protocol of a route that takes records. Bodies of these routes may be large.
fn protocol(route: &str) -> Option<&'static str> {
    match route {
        "/api/v1/write" => Some("remote-write"),
        "/write" | "/api/v2/write" => Some("line"),
        "/api/v1/import" => Some("import"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_a_single_chunked_coding_is_accepted() {
        for (values, is_accepted) in [
            (&["chunked"][..], true),
            (&[], true),
            (&[" Chunked "], true),
            (&["gzip, chunked"], false),
            (&["gzip", "chunked"], false),
            (&["chunked, chunked"], false),
            (&["chunked", "chunked"], false),
            (&["chunked;q=1"], false),
            (&["xchunked"], false),
            (&["identity"], false),
            (&[""], false),
            (&["\u{e4}"], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::TRANSFER_ENCODING, HeaderValue::from_bytes(value.as_bytes()).unwrap());
            }
            let checked = check_coding(&headers).map_err(|error| error.status.as_u16());
            assert_eq!(checked, if is_accepted { Ok(()) } else { Err(501) }, "{values:?}");
        }
    }
}
