//! `/api/v1/entries`: searches entries by labels, by text, and by members of JSON objects.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Map, Value, json};
use tacho_model::{Body, Kind, Labels, TimeRange};
use tacho_store::ErrorKind;

use super::app::App;
use super::damage;
use super::error::ApiError;
use super::export::{self, selectors};
use super::params::Params;
use super::route::{Need, Route};
use super::turn::{Asked, away, turn};
use crate::access::Access;
use crate::read::pattern::Pattern;
use crate::read::search::{self, Bounds, Found, Order, Wanted};

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 10_000;
/// Default and maximum number of parts of the range. Matches are counted for each part.
const PARTS_DEFAULT: usize = 60;
const PARTS_MAX: usize = 2_000;

pub fn routes() -> Vec<Route> {
    vec![Route::new("/api/v1/entries", Need::Read, get(entries).post(entries))]
}

/// Parameters: `match[]`, `start` and `end` (by default the last hour), `contains` (repeatable), `pattern`,
/// `field=name=value` (repeatable), `order` (newest or oldest), `limit`, `parts`.
async fn entries(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Response, ApiError> {
    let selectors = selectors(&params)?;
    let range = params.range(app.clock.now())?;
    let order = match params.get("order") {
        None | Some("newest") => Order::Newest,
        Some("oldest") => Order::Oldest,
        Some(other) => {
            return Err(ApiError::bad(format!(
                "invalid parameter \"order\": {other:?} is not newest or oldest"
            )));
        }
    };
    let limit = params.count("limit", 0..=LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT);
    let parts = params.count("parts", 0..=PARTS_MAX)?.unwrap_or(PARTS_DEFAULT);
    let found = export::find(&app, &access, Some(selectors), Some(Kind::Entry)).await?;
    let turn = turn(&app.queries).await?;
    // `asked` is dropped with this future when the client disconnects or the request times out. Its drop cancels the search.
    let asked = Asked::new(app.metrics.queries_cancelled.with([]));
    let cancel = asked.cancel.clone();
    let searched = async {
        let (wanted, turn) = away(move || (wanted(&params), turn)).await?;
        let bounds = Bounds { permits: vec![turn], heavy: app.heavy.clone(), cancel };
        let order = (order, limit, parts);
        let found = search::search(app.bounded_view(&access), found, range, wanted?, order, bounds).await?;
        // Formatting may take long: up to 64 MiB of JSON are possible.
        away(move || answer(&found, range)).await
    };
    let answer = searched.await;
    asked.answered();
    answer
}

fn answer(found: &Found, range: TimeRange) -> Response {
    let Found { entries, matched, seen, counts, damages, .. } = found;
    let (series, numbers) = search::series_of(entries);
    let list: Vec<Value> = entries
        .iter()
        .zip(numbers)
        .map(|((_, entry), series)| {
            let mut out = json!({ "time": entry.at.to_string(), "series": series });
            match &entry.body {
                Body::Text(text) => out["text"] = (**text).into(),
                Body::Bytes(bytes) => out["hex"] = hexadecimal(bytes).into(),
            }
            out
        })
        .collect();
    let data = json!({
        "series": series.iter().map(|labels| object(labels)).collect::<Vec<_>>(),
        "entries": list,
        "matched": matched,
        "seen": seen,
        "histogram": { "start": range.start.to_string(), "end": range.end.to_string(), "counts": counts },
    });
    Json(damage::warn(json!({ "status": "success", "data": data }), damages)).into_response()
}

fn wanted(params: &Params) -> Result<Wanted, ApiError> {
    let pattern = params.get("pattern").map(Pattern::new).transpose();
    let pattern = pattern.map_err(|error| match error.kind() {
        ErrorKind::Limit => ApiError::execution(format!("parameter \"pattern\": {error}")),
        _ => ApiError::bad(format!("invalid parameter \"pattern\": {error}")),
    })?;
    let field = |text: &str| {
        let pair = text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        pair.ok_or_else(|| ApiError::bad(format!("invalid parameter \"field\": {text:?} is not name=value")))
    };
    Ok(Wanted {
        contains: params.all("contains").map(str::to_owned).collect(),
        pattern,
        fields: params.all("field").map(field).collect::<Result<_, _>>()?,
    })
}

fn object(labels: &Labels) -> Value {
    Value::Object(labels.iter().map(|(name, value)| (name.to_owned(), value.into())).collect::<Map<_, _>>())
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
