//! The query API of Prometheus, as Grafana and `promtool` speak it: GET, and POST with a form.
//!
//! `fetch.rs` reads what a query needs, `tacho_query` computes, `answer.rs` writes it down; `series.rs` answers
//! questions about labels.

mod answer;
mod fetch;
mod series;

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tacho_query::promql;

use super::App;
use super::error::ApiError;
use super::params::Params;

type Answer = Result<Json<Value>, ApiError>;

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/v1/query", get(query).post(query))
        .route("/api/v1/query_range", get(query_range).post(query_range))
        .route("/api/v1/series", get(series::series).post(series::series))
        .route("/api/v1/labels", get(series::labels).post(series::labels))
        .route("/api/v1/label/{name}/values", get(series::values))
        .route("/api/v1/metadata", get(metadata))
        .route("/api/v1/status/buildinfo", get(build_info))
}

/// An instant query: `query`, `time`.
async fn query(State(app): State<Arc<App>>, params: Params) -> Answer {
    let at = params.time("time")?.unwrap_or_else(|| app.clock.now());
    evaluate(&app, &params, promql::Params::instant(at)).await
}

/// A range query: `query`, `start`, `end`, `step`.
async fn query_range(State(app): State<Arc<App>>, params: Params) -> Answer {
    let missing = |name: &str| ApiError::bad(format!("parameter {name:?} is missing"));
    let start = params.time("start")?.ok_or_else(|| missing("start"))?;
    let end = params.time("end")?.ok_or_else(|| missing("end"))?;
    let step = params.duration("step")?.ok_or_else(|| missing("step"))?;
    if end < start {
        return Err(ApiError::bad("invalid parameter \"end\": it is before \"start\""));
    }
    evaluate(&app, &params, promql::Params::range(start, end, step)).await
}

async fn evaluate(app: &App, params: &Params, mut at: promql::Params) -> Answer {
    if let Some(lookback) = params.duration("lookback_delta")? {
        at.lookback = lookback;
    }
    let text = params.required("query")?;
    let limit = params.count("limit")?.filter(|n| *n > 0);
    let plan = promql::parse(text)?.plan(&at)?;
    let data = fetch::selections(&app.store, plan.selectors(), &at.limits).await?;
    // Evaluation may take seconds of processor time; other requests go on meanwhile.
    let output = tokio::task::spawn_blocking(move || plan.evaluate(&data))
        .await
        .map_err(|e| ApiError::internal(format!("evaluation ended: {e}")))??;
    let (data, truncated) = answer::result(output, limit);
    Ok(success(data, truncated))
}

/// Prometheus' envelope; says so when `limit` cut something off.
fn success(data: Value, truncated: bool) -> Json<Value> {
    let mut body = json!({ "status": "success", "data": data });
    if truncated {
        body["warnings"] = json!(["results truncated due to limit"]);
    }
    Json(body)
}

/// Nothing is known about metrics beyond their names: no protocol that is spoken here keeps help and type.
async fn metadata() -> Json<Value> {
    success(json!({}), false)
}

/// `version` is that of the Prometheus API that is followed; clients choose what they call by it.
async fn build_info() -> Json<Value> {
    let data = json!({
        "version": "3.0.0",
        "revision": env!("CARGO_PKG_VERSION"),
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
        "application": "tachograph",
    });
    success(data, false)
}
