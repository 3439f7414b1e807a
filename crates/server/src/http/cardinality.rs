//! `/api/v1/status/cardinality`: which label costs what?

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tacho_model::Kind;
use tacho_store::Cardinality;

use super::App;
use super::error::ApiError;
use super::params::Params;
use super::turn::away;

/// Names and values that are listed when nothing is said, and at most.
const TOP_DEFAULT: usize = 10;
const TOP_MAX: usize = 1_000;

pub fn routes() -> Router<Arc<App>> {
    Router::new().route("/api/v1/status/cardinality", get(cardinality))
}

/// `limit` bounds the lists of names and of values.
async fn cardinality(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let top = params.count("limit")?.unwrap_or(TOP_DEFAULT).min(TOP_MAX);
    let store = app.store.clone();
    // A million values take some 20 ms; others go on meanwhile.
    let work = move || json!({ "status": "success", "data": report_json(&store.cardinality(top)) });
    away(move || Json(work()).into_response()).await
}

/// The report as it is answered, and as `tacho cardinality` prints it.
pub fn report_json(report: &Cardinality) -> Value {
    let pairs = |list: &[(String, usize)]| -> Vec<Value> {
        list.iter().map(|(value, series)| json!({ "value": value, "series": series })).collect()
    };
    let kinds =
        Kind::ALL.iter().zip(report.series).map(|(kind, count)| (kind.name().to_owned(), json!(count)));
    let labels: Vec<Value> = report
        .labels
        .iter()
        .map(|label| {
            json!({
                "name": label.name,
                "values": label.values,
                "series": label.series,
                "bytes": label.bytes,
                "top": pairs(&label.top),
            })
        })
        .collect();
    json!({
        "series": kinds.collect::<serde_json::Map<_, _>>(),
        "series_total": report.series_total,
        "series_max": report.series_max,
        "bytes": report.bytes,
        "names": pairs(&report.names),
        "labels": labels,
    })
}
