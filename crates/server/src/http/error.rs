//! What is answered when a request cannot be: one mapping from every error to a status and a body.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// `{"status":"error","errorType":...,"error":...}`, as Prometheus answers.
#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    /// Prometheus' name of the kind of error.
    pub kind: &'static str,
    pub message: String,
    /// When to try again, seconds.
    pub retry_after: Option<u64>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), retry_after: None }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_data", message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub fn too_large(bytes_max: usize) -> Self {
        let message =
            format!("request body is over {bytes_max} bytes: send it in parts, or raise body-bytes-max");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "bad_data", message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_data", message)
    }

    /// The request is well formed and cannot be executed.
    pub fn execution(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", message)
    }

    pub fn timeout(seconds: u64) -> Self {
        let message =
            format!("request took longer than {seconds} s: ask for less, or raise request-seconds-max");
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message) }
    }

    pub fn unavailable(message: impl Into<String>, retry_after: u64) -> Self {
        let retry_after = Some(retry_after.max(1));
        Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message) }
    }

    /// The store is full for now: the sender is to slow down.
    pub fn full(message: impl Into<String>, retry_after: u64) -> Self {
        let retry_after = Some(retry_after.max(1));
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, "unavailable", message) }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %self.message, "request failed");
        }
        let body = json!({ "status": "error", "errorType": self.kind, "error": self.message });
        let mut response = (self.status, axum::Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
