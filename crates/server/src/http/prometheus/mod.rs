//! The query API of Prometheus, as Grafana and `promtool` speak it: GET, and POST with a form.
//!
//! `fetch.rs` reads what a query needs, `tacho_query` computes, `answer.rs` writes it down; `series.rs` answers
//! questions about labels.

mod answer;
mod fetch;
mod series;
mod stats;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tacho_query::promql::{self, SeriesData};

use super::App;
use super::error::ApiError;
use super::params::Params;
use fetch::Fetched;
use stats::Watch;

/// Samples and points that are computed on the thread that read them, some 200 us: waking another would take a large part of it.
const WORK_INLINE_MAX: usize = 1 << 16;

type Answer = Result<Response, ApiError>;

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
    let start = params.time("start")?.ok_or_else(|| ApiError::missing("start"))?;
    let end = params.time("end")?.ok_or_else(|| ApiError::missing("end"))?;
    let step = params.duration("step")?.ok_or_else(|| ApiError::missing("step"))?;
    if end < start {
        return Err(ApiError::bad("invalid parameter \"end\": it is before \"start\""));
    }
    evaluate(&app, &params, promql::Params::range(start, end, step)).await
}

async fn evaluate(app: &App, params: &Params, mut at: promql::Params) -> Answer {
    let mut watch = Watch::start();
    if let Some(lookback) = params.duration("lookback_delta")? {
        at.lookback = lookback;
    }
    let text = params.required("query")?;
    let limit = params.count("limit")?.filter(|n| *n > 0);
    let wants_stats = params.get("stats").is_some_and(|stats| stats != "false");
    let plan = promql::parse(text)?.plan(&at)?;
    let turn = app.queries.clone().acquire_owned().await.map_err(|e| ApiError::internal(e.to_string()))?;
    watch.queued();
    let Fetched { data, report } = fetch::selections(&app.store, plan.selectors(), &at.limits).await?;
    watch.read();
    let samples: usize = data.iter().flatten().map(SeriesData::len).sum();
    let series: usize = data.iter().map(Vec::len).sum();
    let work = samples.saturating_add(plan.steps().saturating_mul(series + 1));
    let evaluate = move || {
        let output = plan.evaluate(&data)?;
        drop((data, turn));
        let mut answer = answer::Answer::new(output, limit)?;
        answer.stats = wants_stats.then(|| watch.stats(samples, &report));
        Ok(answer.into_response())
    };
    if work <= WORK_INLINE_MAX {
        return evaluate();
    }
    // Evaluation may take seconds of processor time; other requests go on meanwhile. The turn is kept until it has
    // ended, even when nobody waits for the answer any more.
    tokio::task::spawn_blocking(evaluate)
        .await
        .map_err(|e| ApiError::internal(format!("evaluation ended: {e}")))?
}

/// Prometheus' envelope.
#[derive(serde::Serialize)]
struct Success<T> {
    status: &'static str,
    data: T,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'static [&'static str],
}

/// Says so when `limit` cut something off.
fn success<T>(data: T, truncated: bool) -> Json<Success<T>> {
    let warnings: &[&str] = if truncated { &["results truncated due to limit"] } else { &[] };
    Json(Success { status: "success", data, warnings })
}

/// Nothing is known about metrics beyond their names: no protocol that is spoken here keeps help and type.
async fn metadata() -> Response {
    success(json!({}), false).into_response()
}

/// `version` is that of the Prometheus API that is followed; clients choose what they call by it.
async fn build_info() -> Response {
    let data = json!({
        "version": "3.0.0",
        "revision": env!("CARGO_PKG_VERSION"),
        "branch": "",
        "buildUser": "",
        "buildDate": "",
        "goVersion": "",
        "application": "tachograph",
    });
    success(data, false).into_response()
}
