//! `/api/queries`: lists the running queries with their progress, and stops one. `running.rs` holds the list.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{delete, get};
use serde_json::{Value, json};

use super::app::App;
use super::door::Address;
use super::error::ApiError;
use super::params::PathText;
use super::route::{Need, Route};
use super::running::{Id, LIST, ONE};
use crate::access::Access;

pub fn routes() -> Vec<Route> {
    vec![Route::new(LIST, Need::Read, get(list)), Route::new(ONE, Need::Read, delete(stop))]
}

async fn list(State(app): State<Arc<App>>, access: Access) -> Json<Value> {
    let open = app.listing.open_to(&access);
    let queries: Vec<Value> = open.iter().map(|(id, query)| query.to_json(id)).collect();
    Json(json!({ "status": "success", "data": { "queries": queries } }))
}

/// Stops a query. The audit log has the stops of other tokens' queries.
async fn stop(
    State(app): State<Arc<App>>,
    access: Access,
    Address(address): Address,
    PathText(text): PathText,
) -> Result<StatusCode, ApiError> {
    let found = app.listing.find(&Id::parse(&text), &access);
    let query =
        found.ok_or_else(|| ApiError::not_found(format!("no query with the id {text:?} is running")))?;
    query.stop();
    if query.token() != access.name() {
        let done = json!({ "stopped": query.to_json(&Id::parse(&text)) });
        let members = [("place", format!("DELETE {ONE}").into()), ("status", json!(204)), ("done", done)];
        app.gate.note("changed", address, Some(&access), &members);
    }
    Ok(StatusCode::NO_CONTENT)
}
