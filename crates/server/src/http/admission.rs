//! Receives the body of a request, and then acquires one of the `requests_max` permits. If none is free, the request gets 503.
//!
//! A slow body, or one that never arrives, takes a connection (`listener.rs`) and memory for the received bytes, but no permit.
//! `decoding.rs` limits the memory of all bodies together, including forms of queries. `guard.rs` limits the time of a request,
//! including the reception of its body. No handler starts before the whole body is received.

use axum::body::Body;
use axum::extract::Request;
use tokio::sync::OwnedSemaphorePermit;

use super::app::App;
use super::body;
use super::error::ApiError;
use super::write::count_wait;
use crate::decoding::FORM_BYTES_MAX;

pub async fn admitted(
    app: &App,
    route: &str,
    request: Request,
) -> Result<(Request, Option<OwnedSemaphorePermit>), ApiError> {
    let (head, body) = request.into_parts();
    let protocol = protocol(route);
    let bytes_max = if protocol.is_some() { app.config.body_bytes_max } else { FORM_BYTES_MAX };
    let received = body::receive(&head.headers, body, bytes_max, app.decoding.body()).await;
    let bytes = received.inspect_err(|error| {
        if let Some(protocol) = protocol {
            count_wait(app, protocol, error);
        }
    })?;
    let place = app.permits.clone().try_acquire_owned().map_err(|_| {
        let message = format!("{} requests are being served already", app.config.requests_max);
        ApiError::unavailable(message, 1)
    })?;
    Ok((Request::from_parts(head, Body::from(bytes)), Some(place)))
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
