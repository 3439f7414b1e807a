//! Prometheus' envelope of the responses of the query API.

use axum::Json;
use axum::response::Response;

use crate::http::error::ApiError;

pub type Answer = Result<Response, ApiError>;

#[derive(serde::Serialize)]
pub struct Success<T> {
    status: &'static str,
    data: T,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

pub const TRUNCATED: &str = "results truncated due to limit";

pub fn success<T>(data: T, warnings: Vec<String>) -> Json<Success<T>> {
    Json(Success { status: "success", data, warnings })
}
