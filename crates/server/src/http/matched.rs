//! `/api/v1/matched` returns the number of series that each selector matches. If a selector matches no series, and one of its
//! labels or values occurs in no series, the answer names this label or value. Clients build hints from the answer.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tacho_query::Cancel;

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::prometheus::series::{parse, selecting, texts};
use super::route::{Need, Route};
use crate::access::Access;
use crate::read::unmatched::{TIME_MAX, matched as look_up};

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/matched", Need::Read, get(matched).post(matched))]
}

/// The response has one element for each `match[]`.
async fn matched(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Response, ApiError> {
    let texts = texts(&params)?;
    if texts.is_empty() {
        return Err(ApiError::missing("match[]"));
    }
    let store = app.view(&access);
    let work = move |cancel: &Cancel| {
        let waits = || !cancel.is_cancelled();
        let selectors = parse(&texts)?;
        let found =
            selectors.iter().map(|matchers| look_up(&store, matchers, &waits).ok_or_else(Cancel::error));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        Ok(Json(json!({ "status": "success", "data": found })).into_response())
    };
    // At the timeout the future is dropped, which cancels the work.
    let answer = tokio::time::timeout(TIME_MAX, selecting(&app, &app.queries, work)).await;
    answer.unwrap_or_else(|_| Err(ApiError::execution(format!("no answer within {TIME_MAX:?}"))))
}
