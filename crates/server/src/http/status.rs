//! Liveness, readiness, metrics and status: `/healthz`, `/readyz`, `/metrics`, `/api/status`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use tacho_model::Kind;
use tacho_store::Store;

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::turn::away;
use crate::inspect::{self, Report};
use crate::metrics::text;

/// Default number of series in `/api/inspect`.
const SERIES_DEFAULT: usize = 100;

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .route("/api/status", get(status))
        .route("/api/inspect", get(inspect))
        .route("/api/flush", post(flush))
}

async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, ApiError> {
    readiness(&app.store)
}

fn readiness(store: &Store) -> Result<&'static str, ApiError> {
    store.ready()?;
    Ok("ready\n")
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    app.metrics.read_store(&app.store);
    ([(header::CONTENT_TYPE, text::CONTENT_TYPE)], app.metrics.text()).into_response()
}

async fn status(State(app): State<Arc<App>>) -> Json<Value> {
    let stats = app.store.stats();
    let stored = stats.stored.map(|s| json!({ "chunks": s.chunks, "bytes": s.bytes, "records": s.records }));
    let chunks: u64 = stats.stored.iter().map(|s| s.chunks).sum();
    let chunk_bytes: u64 = stats.stored.iter().map(|s| s.bytes).sum();
    let driver = app.store.driver_info();
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started": app.started.to_string(),
        "data_dir": app.config.data.display().to_string(),
        "driver": driver.name,
        "records_port": app.config.records.0.port(),
        "tls_certificate_expires": app.tls.as_ref().and_then(|tls| tls.expires()),
        "damage": inspect::Damage::from(app.store.driver_health()),
        "series": by_kind(stats.series),
        "records": by_kind(stats.records),
        "stored": by_kind(stored),
        "chunks": chunks,
        "chunk_bytes": chunk_bytes,
        "open_bytes": stats.open_bytes,
        "journal_bytes": stats.journal_bytes,
        "disk_full": stats.disk_full,
        "clock_ahead_seconds": super::admin::ahead_seconds(app.store.clock_jump()),
        "journal_damaged": stats.recovered_damaged,
        "journals_quarantined": stats.journals_quarantined,
    }))
}

fn by_kind<T: serde::Serialize>(values: [T; 3]) -> Value {
    let pairs = Kind::ALL.iter().zip(values).map(|(kind, value)| (kind.name().to_owned(), json!(value)));
    pairs.collect::<serde_json::Map<_, _>>().into()
}

/// Flushes all records into the driver, so that their stored size can be measured.
async fn flush(State(app): State<Arc<App>>) -> Result<StatusCode, ApiError> {
    app.store.flush().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The content of `tacho inspect`. `limit` is the maximum number of listed series.
async fn inspect(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let limit = params.count("limit")?.unwrap_or(SERIES_DEFAULT);
    let report: Report = inspect::inspect(&app.store, limit).await?;
    away(move || Json(report).into_response()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_model::ManualClock;
    use tacho_store::{MemoryDriver, Options};

    #[tokio::test]
    async fn a_closed_store_is_not_ready() {
        let directory = tempfile::tempdir().unwrap();
        let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(0)));
        let store = Store::open(driver, directory.path(), Options::default(), clock).await.unwrap();
        assert_eq!(readiness(&store).unwrap(), "ready\n");
        store.close().await.unwrap();
        let error = readiness(&store).unwrap_err();
        assert_eq!((error.status.as_u16(), error.message.as_str()), (503, "store is closed"));
    }
}
