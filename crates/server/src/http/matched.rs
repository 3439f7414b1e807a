//! `/api/v1/matched`: the number of series that each selector matches. For a selector that matches no series, also the
//! label that no series has. Clients build hints from the answer.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tacho_query::Cancel;

use super::app::App;
use super::error::ApiError;
use super::params::Params;
use super::prometheus::series::{parse, selecting, texts};
use crate::read::unmatched::{TIME_MAX, matched as look_up};

pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/matched", get(matched).post(matched))
}

/// One element for each `match[]`.
async fn matched(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let texts = texts(&params)?;
    if texts.is_empty() {
        return Err(ApiError::missing("match[]"));
    }
    let store = app.store.clone();
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
