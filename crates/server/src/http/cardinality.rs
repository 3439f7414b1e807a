//! `/api/v1/status/cardinality`: the number of series and the memory of each label.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::route::{Need, Route};
use super::turn::{away, turn};
use crate::access::Whole;
use crate::cardinality::report_json;

/// Default and maximum number of names and values listed.
const TOP_DEFAULT: usize = 10;
const TOP_MAX: usize = 1_000;

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/status/cardinality", Need::ReadWhole, get(cardinality))]
}

/// `limit` is the maximum length of the lists of names and of values.
async fn cardinality(
    State(app): State<Arc<App>>,
    whole: Whole,
    params: Params,
) -> Result<Response, ApiError> {
    let top = params.count("limit", 0..=TOP_MAX)?.unwrap_or(TOP_DEFAULT);
    let store = app.whole(&whole).clone();
    let turn = turn(&app.queries).await?;
    // A million values take some 20 ms, so the work runs on a blocking thread. The work holds its permit until it ends.
    let work = move || (json!({ "status": "success", "data": report_json(&store.cardinality(top)) }), turn);
    away(move || Json(work().0).into_response()).await
}
