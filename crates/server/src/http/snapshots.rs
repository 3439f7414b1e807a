//! `/api/v1/admin/snapshots`: hard links to the files of the data directory, for `tacho backup`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::{Value, json};
use tacho_model::Timestamp;

use super::app::App;
use super::error::ApiError;
use super::params::{Params, PathText};
use super::route::{Need, Route};
use crate::snapshots::{LEASE, Refused, SNAPSHOTS_MAX, Snapshot};

pub fn routes() -> Vec<Route> {
    vec![
        Route::new("/api/v1/admin/snapshots", Need::Admin, get(list).post(create)),
        Route::new("/api/v1/admin/snapshots/{id}", Need::Admin, axum::routing::delete(release)),
        Route::new("/api/v1/admin/snapshots/{id}/renew", Need::Admin, post(renew)),
    ]
}

/// Runs to its end, even if the client disconnects. The snapshot is then removed when its lease ends.
async fn create(State(app): State<Arc<App>>, params: Params) -> Result<Json<Value>, ApiError> {
    params.only(&[], &[])?;
    let snapshots = app.snapshots.clone();
    let made = tokio::spawn(async move { snapshots.create().await }).await;
    let made = made.map_err(|e| ApiError::internal(format!("work ended: {e}")))?;
    let snapshot = made.map_err(|refused| match refused {
        Refused::TooMany => {
            let message = format!("{SNAPSHOTS_MAX} snapshots exist: retry when a backup has ended");
            ApiError::too_many(message).after(5)
        }
        Refused::Failed(error) => error.into(),
    })?;
    Ok(Json(json!({ "status": "success", "data": snapshot_json(&snapshot) })))
}

fn snapshot_json(snapshot: &Snapshot) -> Value {
    let Snapshot { id, directory, begun, generation, offset, files } = snapshot;
    let files: Vec<Value> =
        files.iter().map(|file| json!({ "name": file.name, "bytes": file.bytes })).collect();
    json!({
        "id": id,
        "directory": std::path::absolute(directory).unwrap_or_else(|_| directory.clone()),
        "time": begun.to_string(),
        "generation": generation,
        "offset": offset,
        "lease_seconds": LEASE.as_secs(),
        "files": files,
    })
}

async fn list(State(app): State<Arc<App>>, params: Params) -> Result<Json<Value>, ApiError> {
    params.only(&[], &[])?;
    let snapshots = app.snapshots.list().into_iter();
    let shown = |(id, begun, left): (String, Timestamp, Duration)| {
        let seconds = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        json!({ "id": id, "time": begun.to_string(), "lease_seconds": seconds })
    };
    let snapshots: Vec<Value> = snapshots.map(shown).collect();
    Ok(Json(json!({ "status": "success", "data": { "snapshots": snapshots } })))
}

async fn renew(
    State(app): State<Arc<App>>,
    PathText(id): PathText,
    params: Params,
) -> Result<Json<Value>, ApiError> {
    params.only(&[], &[])?;
    if !app.snapshots.renew(&id) {
        return Err(absent(&id));
    }
    Ok(Json(json!({ "status": "success", "data": { "lease_seconds": LEASE.as_secs() } })))
}

async fn release(
    State(app): State<Arc<App>>,
    PathText(id): PathText,
    params: Params,
) -> Result<StatusCode, ApiError> {
    params.only(&[], &[])?;
    if app.snapshots.release(&id).await { Ok(StatusCode::NO_CONTENT) } else { Err(absent(&id)) }
}

fn absent(id: &str) -> ApiError {
    ApiError::not_found(format!(
        "no snapshot {id:?}: it was released, its lease has ended, or the server was restarted"
    ))
}
