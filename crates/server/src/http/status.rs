//! `/healthz`, `/readyz`, `/metrics`, `/api/status`, `/api/inspect` and `/api/flush`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tacho_model::Kind;
use tacho_store::Store;

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::route::{Need, Route};
use super::turn::away;
use crate::access::token::Role;
use crate::access::{Access, Whole};
use crate::inspect::{self, Report};
use crate::metrics::text;

const SERIES_DEFAULT: usize = 100;

pub fn routes() -> Vec<Route> {
    vec![
        Route::new("/healthz", Need::Nothing, get(|| async { "ok\n" })),
        Route::new("/readyz", Need::Nothing, get(readyz)),
        Route::new("/metrics", Need::ReadWhole, get(metrics)),
        Route::new("/api/status", Need::Token, get(status)),
        Route::new("/api/inspect", Need::ReadWhole, get(inspect)),
        Route::new("/api/flush", Need::Admin, post(flush)),
    ]
}

/// If the server can take requests, the first line of the answer is `ready`, and the other lines are warnings.
async fn readyz(State(app): State<Arc<App>>) -> Result<String, ApiError> {
    app.gate.ready().map_err(|cause| ApiError::unavailable(cause, 10))?;
    app.ready()?;
    Ok(app.warnings().into_iter().fold("ready\n".to_owned(), |all, one| format!("{all}warning: {one}\n")))
}

async fn metrics(State(app): State<Arc<App>>, whole: Whole) -> Response {
    app.metrics.read_store(app.whole(&whole));
    ([(header::CONTENT_TYPE, text::CONTENT_TYPE)], app.metrics.text()).into_response()
}

/// Figures of the store are only for an access with the role `read` and without a selector.
async fn status(State(app): State<Arc<App>>, access: Access) -> Json<Value> {
    let mut status = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "started": app.started.to_string(),
        "records_port": app.config.records.0.port(),
        "tls_certificate_expires": app.tls.as_ref().and_then(|tls| tls.expires()),
        "access": {
            "tokens": app.gate.standing(),
            "exposed": app.is_exposed(),
            "warnings": app.warnings(),
        },
    });
    if let Some(whole) = access.whole().filter(|_| access.permits(Role::Read))
        && let (Value::Object(all), Value::Object(more)) = (&mut status, of_store(&app, app.whole(&whole)))
    {
        all.extend(more);
    }
    Json(status)
}

fn of_store(app: &App, store: &Store) -> Value {
    let stats = store.stats();
    let stored = stats.stored.map(|s| json!({ "chunks": s.chunks, "bytes": s.bytes, "records": s.records }));
    let chunks: u64 = stats.stored.iter().map(|s| s.chunks).sum();
    let chunk_bytes: u64 = stats.stored.iter().map(|s| s.bytes).sum();
    let driver = store.driver_info();
    json!({
        "data_dir": app.config.data.display().to_string(),
        "driver": driver.name,
        "damage": inspect::Damage::from(store.driver_health()),
        "series": by_kind(stats.series),
        "records": by_kind(stats.records),
        "stored": by_kind(stored),
        "chunks": chunks,
        "chunk_bytes": chunk_bytes,
        "open_bytes": stats.open_bytes,
        "journal_bytes": stats.journal_bytes,
        "disk_full": stats.disk_full,
        "clock_ahead_seconds": super::admin::ahead_seconds(store.clock_jump()),
        "journal_damaged": stats.recovered_damaged,
        "journals_quarantined": stats.journals_quarantined,
    })
}

fn by_kind<T: serde::Serialize>(values: [T; 3]) -> Value {
    let pairs = Kind::ALL.iter().zip(values).map(|(kind, value)| (kind.name().to_owned(), json!(value)));
    pairs.collect::<serde_json::Map<_, _>>().into()
}

/// Writes all records to chunks, so that their stored size can be measured.
async fn flush(State(app): State<Arc<App>>, whole: Whole) -> Result<StatusCode, ApiError> {
    app.whole(&whole).flush().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The report that `tacho inspect` prints. `limit` is the maximum number of listed series.
async fn inspect(State(app): State<Arc<App>>, whole: Whole, params: Params) -> Result<Response, ApiError> {
    let limit = params.count("limit", 0..=usize::MAX)?.unwrap_or(SERIES_DEFAULT);
    let report: Report = inspect::inspect(app.whole(&whole), limit).await?;
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
        assert!(store.ready().is_ok());
        store.close().await.unwrap();
        let error = ApiError::from(store.ready().unwrap_err());
        assert_eq!((error.status.as_u16(), error.message.as_str()), (503, "store is closed"));
    }
}
