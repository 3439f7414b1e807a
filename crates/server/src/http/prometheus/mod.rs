//! The query API of Prometheus, as Grafana and `promtool` use it: GET, and POST with a form.
//!
//! `fetch.rs` reads the samples of a query, `calls.rs` computes the samples of calls, `tacho_query` computes the result, and
//! `answer.rs` serializes it. `series.rs` lists series and labels.

mod answer;
mod cache;
mod calls;
mod envelope;
mod fetch;
mod question;
pub(super) mod series;
mod stats;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tacho_query::promql;

use super::error::ApiError;
use super::params::Params;
use super::running::Requester;
use super::turn::{Asked, Running, away, turn};
use crate::access::View;
use crate::http::app::App;
use crate::http::route::{Need, Route};
pub(super) use cache::ResultCache;
use cache::{Hit, Looked};
use envelope::{Answer, success};
use question::{Question, WORK_INLINE_MAX};
use stats::{Step, Watch};

/// Limits on a query that is parsed on the thread of the request: bytes of its text, and series of the index.
const TEXT_INLINE_MAX: usize = 2_048;
const SERIES_INLINE_MAX: usize = 1 << 16;

pub fn routes() -> Vec<Route> {
    let read = |path, methods| Route::new(path, Need::Read, methods);
    vec![
        read("/api/v1/query", get(query).post(query)),
        read("/api/v1/query_range", get(query_range).post(query_range)),
        read("/api/v1/series", get(series::series).post(series::series)),
        read("/api/v1/labels", get(series::labels).post(series::labels)),
        read("/api/v1/label/{name}/values", get(series::values)),
        read("/api/v1/metadata", get(metadata)),
        read("/api/v1/status/buildinfo", get(build_info)),
    ]
}

async fn query(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    let at = params.time("time")?.unwrap_or_else(|| app.clock.now());
    evaluate(&app, requester, &params, promql::Params::instant(at)).await
}

async fn query_range(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    let start = params.time("start")?.ok_or_else(|| ApiError::missing("start"))?;
    let end = params.time("end")?.ok_or_else(|| ApiError::missing("end"))?;
    let step = params.duration("step")?.ok_or_else(|| ApiError::missing("step"))?;
    if end < start {
        return Err(ApiError::bad("invalid parameter \"end\": it is before \"start\""));
    }
    evaluate(&app, requester, &params, promql::Params::range(start, end, step)).await
}

async fn evaluate(app: &App, requester: Requester, params: &Params, mut at: promql::Params) -> Answer {
    let access = requester.access();
    let mut watch = Watch::start();
    if let Some(lookback) = params.duration("lookback_delta")? {
        at.lookback = lookback;
    }
    let text = params.required("query")?.to_owned();
    if let Some(max) = access.query_samples_max() {
        at.limits.samples_max = at.limits.samples_max.min(max);
    }
    let limit = params.count("limit", 0..=usize::MAX)?.filter(|n| *n > 0);
    let wants_stats = params.get("stats").is_some_and(|stats| stats != "false");
    let uses_cache = uses_cache(params)? && !wants_stats;
    let looked = match at.step {
        Some(_) if uses_cache => app.results.look(app.view(access), access, &text, &at),
        Some(_) => app.results.bypass(),
        None => Looked::Bypass,
    };
    let fill = match looked {
        Looked::Hit(hit) => return repeat(app, hit, limit).await,
        Looked::Missing(steps, fill) => {
            if fill.is_partial() {
                (at.start, at.end) = (steps.start, steps.end);
            }
            Some(fill)
        }
        Looked::Bypass => None,
    };
    let turn = turn(&app.queries).await?;
    watch.ends(Step::Queue);
    // `asked` is dropped with this future when the client disconnects or the request times out. Its drop cancels the query.
    let asked = Asked::new(app.metrics.queries_cancelled.with([]));
    let running = Running::new(app.metrics.queries_running.with([]));
    at.cancel = asked.cancel.clone();
    let (is_light, series_inline_max) = (is_light(&app.view(access), &text), series_inline_max(&text));
    let question = Question {
        requester,
        text,
        at,
        is_light,
        series_inline_max,
        limit,
        wants_stats,
        fill,
        watch,
        running,
    };
    let answer = question.answer(app, turn).await;
    asked.answered();
    answer
}

/// Answers with known results. Large results are copied and written on a blocking thread, with a permit to bound the memory.
async fn repeat(app: &App, hit: Hit, limit: Option<usize>) -> Answer {
    let work = hit.work();
    let answer = move || Ok(answer::Answer::new(hit.output(), limit)?.into_response());
    if work <= WORK_INLINE_MAX {
        return answer();
    }
    let turn = turn(&app.queries).await?;
    away(move || {
        let answer = answer();
        drop(turn);
        answer
    })
    .await?
}

/// `cache=false` computes the results of all steps, and keeps none of them.
fn uses_cache(params: &Params) -> Result<bool, ApiError> {
    match params.get("cache") {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => {
            Err(ApiError::bad(format!("invalid parameter \"cache\": {other:?} is neither true nor false")))
        }
    }
}

/// Whether parsing the query and finding its series takes microseconds: no pattern takes long to compile, and the index is
/// small.
fn is_light(store: &View, text: &str) -> bool {
    text.len() <= TEXT_INLINE_MAX
        && !has_costly_pattern(text)
        && store.series_count().iter().sum::<usize>() <= SERIES_INLINE_MAX
}

const LABEL_REPLACE: &str = "label_replace";
/// Limit on the series of a query with `label_replace` that is evaluated on the thread of the request. Each series takes
/// about 1 us for a match and new labels.
const REPLACED_SERIES_INLINE_MAX: usize = 128;
/// Limit on the total bytes of a query's literals such as `"(.*)"` and `"$1"`. Alternations of names do not count.
const LITERAL_BYTES_INLINE_MAX: usize = 64;

/// Maximum number of series with which the query is evaluated on the thread of the request. Evaluation compiles the patterns
/// of `label_replace`. Patterns of selectors are compiled earlier.
fn series_inline_max(text: &str) -> usize {
    match text.contains(LABEL_REPLACE) {
        _ if text.len() > TEXT_INLINE_MAX => 0,
        true if has_costly_literal(text) => 0,
        true => REPLACED_SERIES_INLINE_MAX,
        false => usize::MAX,
    }
}

fn has_costly_pattern(text: &str) -> bool {
    let any = |operator: &str| {
        text.split(operator)
            .skip(1)
            .any(|behind| !first_literal(behind.trim_start()).is_some_and(|(it, _)| is_names(it)))
    };
    any("=~") || any("!~") || text.contains(LABEL_REPLACE) && has_costly_literal(text)
}

/// Whether a literal may be a pattern that takes long to compile. All literals are checked, because only parsing shows which
/// of them are patterns.
fn has_costly_literal(text: &str) -> bool {
    let is_simple = |byte: u8| is_of_name(byte) || b".*+?()^$".contains(&byte);
    let mut bytes = 0;
    let mut rest = text;
    while let Some(at) = rest.find(QUOTES) {
        let Some((literal, behind)) = first_literal(&rest[at..]) else { return true };
        if !is_names(literal) {
            bytes += literal.len();
        }
        if bytes > LITERAL_BYTES_INLINE_MAX || !literal.bytes().all(is_simple) {
            return true;
        }
        rest = behind;
    }
    false
}

const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Splits off the literal at the beginning of the text, without its quotes. Escapes are not parsed, because a literal with
/// `\` counts as costly anyway.
fn first_literal(text: &str) -> Option<(&str, &str)> {
    QUOTES.iter().find_map(|quote| text.strip_prefix(*quote)?.split_once(*quote))
}

/// An alternation of names, as dashboards use it.
fn is_names(pattern: &str) -> bool {
    pattern.bytes().all(is_of_name)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-|:/ ".contains(&byte)
}

/// Always empty, because help and type of metrics are not stored.
async fn metadata() -> Response {
    success(json!({}), Vec::new()).into_response()
}

/// `version` is the Prometheus version whose API is implemented. Clients select features by this version.
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
    success(data, Vec::new()).into_response()
}

#[cfg(test)]
mod tests {
    use super::{REPLACED_SERIES_INLINE_MAX, TEXT_INLINE_MAX, has_costly_pattern, series_inline_max};

    #[test]
    fn only_simple_patterns_are_compiled_inline() {
        for (text, is_costly) in [
            ("up", false),
            (r#"max(max_over_time(cpu_user{hostname=~"host_1|host_2"}[1m])) by (__name__)"#, false),
            (r#"{__name__=~"cpu_user|cpu_idle",hostname!~ 'a:b/c-1'}"#, false),
            (r#"x{a=~"(x{900}){900}"}"#, true),
            (r#"x{a=~"b.*"}"#, true),
            (r#"x{a=~"b",c!~"d+"}"#, true),
            (r#"x{a=~"b\x2a"}"#, true),
            (r#"x{a=~b}"#, true),
            (r#"x{a=~"b"#, true),
            (r#"label_replace(x, "a", "$1", "b", "c")"#, false),
            (r#"label_replace(x, "a", "$1-$2", 'b', "(.*):([0-9]+)")"#, true),
            (r#"label_replace(x{b=~"c.*"}, "a", "$1", "b", "c")"#, true),
            (r#"label_replace(x, "a", "", "b", "(x{900}){900}")"#, true),
            (r#"label_replace(x, "a", "", "b", "(\w+)")"#, true),
            ("label_replace(x, 'a', '', 'b', # '\n '(x{900}){900}')", true),
            ("label_replace(x, 'a', '', 'b', 'c", true),
        ] {
            assert_eq!(has_costly_pattern(text), is_costly, "{text}");
        }
    }

    #[test]
    fn label_replace_of_few_series_is_evaluated_inline() {
        let replace = |pattern: &str| format!("label_replace(x, 'a', '$1', 'b', '{pattern}')");
        for (text, series_max) in [
            ("rate(x[5m])".to_owned(), usize::MAX),
            (replace("(.*)"), REPLACED_SERIES_INLINE_MAX),
            (replace(&"(.*)".repeat(15)), REPLACED_SERIES_INLINE_MAX),
            (replace(&"(.*)".repeat(16)), 0),
            (replace("(x{900}){900}"), 0),
            (vec!["x"; TEXT_INLINE_MAX].join("+"), 0),
        ] {
            assert_eq!(series_inline_max(&text), series_max, "{text:.100}");
        }
    }
}
