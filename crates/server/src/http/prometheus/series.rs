//! Lists series, label names and label values.
//!
//! `start` and `end` are validated but do not narrow the response, because the index has no times.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tacho_api::json::json_text_bytes;
use tacho_model::{Kind, Labels, Matcher, NAME, PatternBudget, Timestamp};
use tacho_query::{Cancel, promql};
use tacho_store::Unfound;
use tokio::sync::Semaphore;

use super::answer::{LIGHT_LABELS_BYTES_MAX, LabelMap, label_bytes};
use super::calls;
use super::envelope::{Answer, TRUNCATED, success};
use crate::access::{Access, View};
use crate::http::answers::Keeps;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::params::{Params, PathText};
use crate::http::turn::{Asked, Running, turn, watched};
use crate::read::damage::sentences;

/// Limit on the selectors of one request, because each selector walks the index. Grafana sends only a few.
const SELECTORS_MAX: usize = 64;

/// Limit on the label values of one response, bytes of JSON. Several responses may be written at the same time.
const VALUES_BYTES_MAX: usize = 32 << 20;

/// Limit on the series of a selection that is made at the same time as others. The labels of a series take some 100 bytes.
pub(in crate::http) const LIGHT_SERIES_MAX: usize = 1 << 16;

type Selectors = [Vec<Matcher>];

/// Returns whether the client is still connected.
type Waits<'a> = &'a dyn Fn() -> bool;

pub async fn series(State(app): State<Arc<App>>, access: Access, params: Params) -> Answer {
    if params.all("match[]").next().is_none() {
        return Err(ApiError::bad("parameter \"match[]\" is missing: give at least one selector"));
    }
    let (texts, limit) = (texts(&params)?, limit(app.clock.now(), &params)?);
    let list = |most| {
        let (store, texts) = (app.view(&access), texts.clone());
        move |cancel: &Cancel| listed(&store, &texts, limit, most, cancel)
    };
    let light = (LIGHT_SERIES_MAX, LIGHT_LABELS_BYTES_MAX);
    if let Some(response) = selecting(&app, &app.queries, list(light)).await? {
        return Ok(response);
    }
    // A request that waits for the permit keeps no series in memory. Many such requests may wait at the same time.
    let response = selecting_alone(&app, &app.heavy, list((usize::MAX, usize::MAX))).await?;
    response.ok_or_else(|| ApiError::internal("a list of series ended without a response"))
}

fn listed(
    store: &View,
    texts: &[String],
    limit: usize,
    (series_max, label_bytes_max): (usize, usize),
    cancel: &Cancel,
) -> Result<Option<Response>, ApiError> {
    let waits = || !cancel.is_cancelled();
    let mut found: BTreeSet<Arc<Labels>> = BTreeSet::new();
    for matchers in &parse(texts)? {
        let Some(series) = unless_many(store.find_within(Kind::Sample, matchers, series_max, &waits))? else {
            return Ok(None);
        };
        found.extend(series.into_iter().map(|(_, labels)| labels));
    }
    let bytes = label_bytes(found.iter().take(limit).map(|labels| &**labels))?;
    let list = found.iter().map(|labels| LabelMap(labels));
    Ok((bytes <= label_bytes_max).then(|| answer(store, list, limit)))
}

pub async fn labels(State(app): State<Arc<App>>, access: Access, params: Params) -> Answer {
    let list = |store: &View, selectors: &Selectors, limit, waits: Waits<'_>| {
        let names = store.label_names(Kind::Sample, selectors, waits)?;
        Some(answer(store, names.into_iter(), limit))
    };
    select(&app, &access, &params, list).await
}

pub async fn values(
    State(app): State<Arc<App>>,
    access: Access,
    PathText(name): PathText,
    params: Params,
) -> Answer {
    let name = unescape(&name);
    let list = move |store: &View, selectors: &Selectors, limit, waits: Waits<'_>| {
        let mut values =
            store.label_values_within(Kind::Sample, &name, selectors, VALUES_BYTES_MAX, waits)?;
        if name == NAME && selectors.is_empty() && !store.find(Kind::Execution, &[]).is_empty() {
            values.extend(calls::names().map(str::to_owned));
            values.sort_unstable();
            values.dedup();
        }
        let bytes: usize = values.iter().take(limit).map(|value| json_text_bytes(value)).sum();
        if bytes > VALUES_BYTES_MAX {
            let message = format!(
                "values of label {name:?} have more than {VALUES_BYTES_MAX} bytes: narrow the selectors, or give a limit"
            );
            return Some(ApiError::execution(message).into_response());
        }
        Some(answer(store, values.into_iter(), limit))
    };
    select(&app, &access, &params, list).await
}

/// Responds with the result of `list` for the series that at least one `match[]` selects. Without `match[]`, for all series.
async fn select(
    app: &App,
    access: &Access,
    params: &Params,
    list: impl FnOnce(&View, &Selectors, usize, Waits<'_>) -> Option<Response> + Send + 'static,
) -> Answer {
    let (texts, limit) = (texts(params)?, limit(app.clock.now(), params)?);
    let store = app.view(access);
    let work = move |cancel: &Cancel| {
        let listed = list(&store, &parse(&texts)?, limit, &|| !cancel.is_cancelled());
        Ok(listed.ok_or_else(Cancel::error)?)
    };
    selecting(app, &app.queries, work).await
}

/// The limit on the elements of a list. Also validates the range.
fn limit(now: Timestamp, params: &Params) -> Result<usize, ApiError> {
    params.range(now)?;
    Ok(params.count("limit", 0..=usize::MAX)?.filter(|n| *n > 0).unwrap_or(usize::MAX))
}

/// Runs `work` with one of the permits. Stops when the client disconnects.
pub(in crate::http) async fn selecting<T: Send + 'static>(
    app: &App,
    permits: &Arc<Semaphore>,
    work: impl FnOnce(&Cancel) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let turn = turn(permits).await?;
    let asked = Asked::new(app.metrics.queries_cancelled.with([]));
    let running = Running::new(app.metrics.queries_running.with([]));
    watched(asked, (turn, running), work).await
}

/// Like [`selecting`], for work that needs much memory. `permits` has a single permit. If too many requests wait for it, the
/// request is refused.
pub(in crate::http) async fn selecting_alone<T: Send + 'static>(
    app: &App,
    permits: &Arc<Semaphore>,
    work: impl FnOnce(&Cancel) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let waits = app.wait_alone()?;
    let selected = selecting(app, permits, work).await;
    drop(waits);
    selected
}

/// `None` if the selection has more series than allowed.
///
/// # Errors
/// When the client has disconnected.
pub(in crate::http) fn unless_many<T>(found: Result<T, Unfound>) -> Result<Option<T>, ApiError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Unfound::TooMany) => Ok(None),
        Err(Unfound::NotAwaited) => Err(Cancel::error().into()),
    }
}

pub(in crate::http) fn texts(params: &Params) -> Result<Vec<String>, ApiError> {
    let texts: Vec<String> = params.all("match[]").map(str::to_owned).collect();
    if texts.len() > SELECTORS_MAX {
        let message =
            format!("{} parameters \"match[]\" are over {SELECTORS_MAX}: send several requests", texts.len());
        return Err(ApiError::execution(message));
    }
    Ok(texts)
}

/// Parses selectors and compiles their patterns, which may take long. All patterns of a request share one budget.
pub(in crate::http) fn parse(texts: &[String]) -> Result<Vec<Vec<Matcher>>, ApiError> {
    let mut budget = PatternBudget::default();
    texts.iter().map(|text| Ok(promql::parse_selector_within(text, &mut budget)?)).collect()
}

/// Formats a list, with warnings if the limit cuts off elements or if unreadable series may be missing.
fn answer<T: Serialize>(store: &View, list: impl ExactSizeIterator<Item = T>, limit: usize) -> Response {
    let mut warnings = sentences(&store.lacks(Kind::Sample));
    warnings.extend((list.len() > limit).then(|| TRUNCATED.to_owned()));
    let list: Vec<T> = list.take(limit).collect();
    let mut body = match serde_json::to_vec(&success(list, warnings).0) {
        Ok(body) => body,
        Err(error) => return ApiError::internal(format!("list cannot be written: {error}")).into_response(),
    };
    // The buffer has up to twice the bytes of the list, and is kept until the client has read it.
    body.shrink_to_fit();
    let keeps = Keeps(body.len());
    let mut response = ([(header::CONTENT_TYPE, "application/json")], body).into_response();
    response.extensions_mut().insert(keeps);
    response
}

/// Undoes Prometheus' escaping of names in paths: the prefix `U__`, `_HEX_` for a character, `__` for `_`.
fn unescape(name: &str) -> String {
    let Some(escaped) = name.strip_prefix("U__") else { return name.to_owned() };
    let mut out = String::new();
    let mut rest = escaped;
    while let Some((plain, behind)) = rest.split_once('_') {
        out.push_str(plain);
        let Some((code, behind)) = behind.split_once('_') else { return name.to_owned() };
        match (code, u32::from_str_radix(code, 16).ok().and_then(char::from_u32)) {
            ("", _) => out.push('_'),
            (_, Some(character)) => out.push(character),
            (_, None) => return name.to_owned(),
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_escaped_for_paths_are_unescaped() {
        for (escaped, name) in [
            ("job", "job"),
            ("a_b", "a_b"),
            ("U__http_2e_status", "http.status"),
            ("U__a__b", "a_b"),
            ("U__gr_f6__df_e", "größe"),
            ("U__a_zz_", "U__a_zz_"),
            ("U__a_", "U__a_"),
        ] {
            assert_eq!(unescape(escaped), name, "{escaped}");
        }
    }
}
