//! Is it alive, is it ready, what does it hold: `/healthz`, `/readyz`, `/metrics`, `/api/status`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::App;
use crate::metrics::text;

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(|| async { "ready\n" }))
        .route("/metrics", get(metrics))
        .route("/api/status", get(status))
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    ([(header::CONTENT_TYPE, text::CONTENT_TYPE)], app.metrics.text()).into_response()
}

async fn status(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started": app.started.to_string(),
        "data_dir": app.config.data.display().to_string(),
    }))
}
