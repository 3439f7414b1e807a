//! `/api/queries`: lists the running queries with their progress, and stops one. `running.rs` holds the list.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, get};
use serde_json::{Value, json};

use super::app::App;
use super::error::ApiError;
use super::params::PathText;
use super::route::{Need, Route};
use super::running::{Id, LIST, ONE};
use crate::access::Access;

pub fn routes() -> Vec<Route> {
    vec![Route::new(LIST, Need::Read, get(list)), Route::new(ONE, Need::Read, delete(stop))]
}

async fn list(State(app): State<Arc<App>>, access: Access) -> Json<Value> {
    let open = app.asked.open_to(&access);
    let queries: Vec<Value> = open.iter().map(|(id, query)| query.to_json(id)).collect();
    Json(json!({ "status": "success", "data": { "queries": queries } }))
}

async fn stop(
    State(app): State<Arc<App>>,
    access: Access,
    PathText(text): PathText,
) -> Result<StatusCode, ApiError> {
    let id = Id::parse(&text);
    let found = app.asked.open_to(&access).into_iter().find(|(known, _)| *known == id);
    let (_, query) =
        found.ok_or_else(|| ApiError::not_found(format!("no query with the id {text:?} is running")))?;
    query.stop();
    Ok(StatusCode::NO_CONTENT)
}
