//! Error responses: maps every error to a status and a body.

use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::decoding::{self, Busy};

/// An error with the body `{"status":"error","errorType":...,"error":...}`, as in Prometheus.
#[derive(Debug)]
pub struct ApiError {
    pub status: StatusCode,
    /// The value of `errorType`, as in Prometheus if Prometheus has this kind of error.
    pub kind: &'static str,
    pub message: String,
    /// Value of Retry-After, seconds.
    pub retry_after: Option<u64>,
    challenge: Option<&'static str>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), retry_after: None, challenge: None }
    }

    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_data", message)
    }

    pub fn missing(parameter: &str) -> Self {
        Self::bad(format!("parameter {parameter:?} is missing"))
    }

    pub fn empty(parameter: &str) -> Self {
        Self::bad(format!("parameter {parameter:?} is empty: give a value or omit it"))
    }

    pub fn unauthorized(message: impl Into<String>, challenge: &'static str) -> Self {
        let challenge = Some(challenge);
        Self { challenge, ..Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message) }
    }

    /// Sets the value of Retry-After.
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds.max(1)), ..self }
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub fn too_large(bytes_max: usize) -> Self {
        let message = format!(
            "request body is over {bytes_max} bytes: send it in parts, or raise body-bytes-max for writes and imports"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "bad_data", message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_data", message)
    }

    pub fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "bad_data", message)
    }

    /// The request is well formed, but it cannot be executed.
    pub fn execution(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "execution", message)
    }

    pub fn timeout(seconds: u64) -> Self {
        let message =
            format!("request took longer than {seconds} s: narrow it, or raise request-seconds-max");
        Self { retry_after: Some(1), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message) }
    }

    /// A query that was stopped by `DELETE /api/queries/{id}`.
    pub fn stopped() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "canceled",
            "the query was stopped by a request to /api/queries",
        )
    }

    /// A request whose work continues after the time limit. `obstacle` is a condition of the store that may delay the work.
    pub fn continues(seconds: u64, obstacle: Option<&tacho_store::Error>) -> Self {
        let obstacle = obstacle.map_or(String::new(), |obstacle| format!("; {obstacle}"));
        let message = format!(
            "the work takes longer than {seconds} s (request-seconds-max), and continues after this answer{obstacle}"
        );
        Self { retry_after: Some(10), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message) }
    }

    /// A deletion that continues after the time limit, unless it has not begun.
    pub fn may_continue(seconds: u64) -> Self {
        let message = format!(
            "the request takes longer than {seconds} s (request-seconds-max): its deletion continues if it has begun, and the \
             audit log will have its result"
        );
        Self { retry_after: Some(10), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", message) }
    }

    pub fn unavailable(message: impl Into<String>, retry_after: u64) -> Self {
        let retry_after = Some(retry_after.max(1));
        Self { retry_after, ..Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message) }
    }

    /// A limit is reached, for example on concurrent work or on the records of a token per second.
    pub fn too_many(message: impl Into<String>) -> Self {
        let retry_after = Some(10);
        Self { retry_after, ..Self::new(StatusCode::TOO_MANY_REQUESTS, "unavailable", message) }
    }

    /// Some records that the answer needs cannot be read.
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
    }
}

pub async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let message = format!("{method} is not allowed at {}", uri.path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "bad_data", message)
}

impl From<tacho_query::Error> for ApiError {
    fn from(error: tacho_query::Error) -> Self {
        match error.kind {
            tacho_query::ErrorKind::BadData => Self::bad(error.to_string()),
            tacho_query::ErrorKind::Execution | tacho_query::ErrorKind::Limit => {
                Self::execution(error.to_string())
            }
        }
    }
}

/// A full store answers 503 and not 429, because by default Prometheus drops samples that are refused with 429.
impl From<tacho_store::Error> for ApiError {
    fn from(error: tacho_store::Error) -> Self {
        use tacho_store::ErrorKind;
        let message = error.to_string();
        match error.kind() {
            ErrorKind::Invalid => Self::bad(message),
            ErrorKind::Limit => Self::execution(message),
            ErrorKind::Full { retry_after } => Self::unavailable(message, retry_after.as_secs()),
            ErrorKind::StorageFull => Self::unavailable(message, 10),
            ErrorKind::Unavailable | ErrorKind::Closed => Self::unavailable(message, 1),
            ErrorKind::Corrupt | ErrorKind::Version | ErrorKind::Locked | ErrorKind::Io => {
                Self::internal(message)
            }
        }
    }
}

impl From<Busy> for ApiError {
    fn from(busy: Busy) -> Self {
        Self::unavailable(busy.to_string(), decoding::RETRY_AFTER)
    }
}

impl From<tacho_ingest::Error> for ApiError {
    fn from(error: tacho_ingest::Error) -> Self {
        match error {
            tacho_ingest::Error::MessageTooLong { max, .. } => Self::too_large(max),
            other => Self::bad(other.to_string()),
        }
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
        if let Some(challenge) = self.challenge {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}
