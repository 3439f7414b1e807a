//! `/api/v1/export` returns samples and entries as JSON lines. `/api/v1/checksum` returns their number and checksum.
//!
//! The export is read and sent slice by slice, as fast as the client reads, so its size is not limited. Lines have the format
//! of VictoriaMetrics' export and are lossless (`crates/ingest/src/json_lines/`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::json;
use tacho_api::tally::{Held, Retention};
use tacho_model::{Kind, Labels, TimeRange};
use tacho_query::Cancel;
use tacho_store::{Error, ErrorKind};

use super::answers::Keeps;
use super::app::App;
use super::damage;
use super::error::ApiError;
use super::params::Params;
use super::prometheus::series::{self, LIGHT_SERIES_MAX};
use super::route::{Need, Route};
use super::turn::away;
use crate::access::Access;
use crate::read::reader::{self, Reader, Selected, Slice};
use crate::read::tally;

const CONTENT_TYPE: &str = "application/stream+json";
/// Memory of an export without its list of series: a slice of entries, and the part of the slice that is being sent.
const KEEPS_BYTES: usize = 16 << 20;
/// Limit on the series in one checksum request.
const CHECKSUMS_MAX: usize = 10_000;

pub fn routes() -> Vec<Route> {
    vec![
        Route::new("/api/v1/export", Need::Read, get(export).post(export)),
        Route::new("/api/v1/checksum", Need::Read, post(checksums)),
    ]
}

/// Parameters: `match[]` or `all=1`, `start` and `end` (by default all of time), `kind` (by default both kinds). With
/// `totals=1` the first line has the names of all labels. The last line then has the number of records and their checksums, so
/// that clients can detect a truncated response. Unreadable records end the export. With `allow_damaged=1` the export skips
/// them, and the last line of `totals=1` reports them in the member `incomplete`.
async fn export(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Response, ApiError> {
    let selectors = if is_all(&params)? { None } else { Some(selectors(&params)?) };
    let start = params.time("start")?.unwrap_or(TimeRange::ALL.start);
    let range = TimeRange::new(start, params.time("end")?.unwrap_or(TimeRange::ALL.end));
    if range.is_empty() {
        return Err(ApiError::bad("invalid parameter \"end\": it is before \"start\""));
    }
    let only = params.get("kind").map(kind).transpose()?;
    let totals = params.get("totals") == Some("1");
    let allow_damaged = damage::is_allowed(&params)?;
    let found = find(&app, &access, selectors, only).await?;
    let names = move || {
        let first = totals.then(|| format!("{}\n", json!({ "label_names": reader::label_names(&found) })));
        (first, found)
    };
    let (first, found) = away(names).await?;
    let first = first.map(|line| Ok(line.into()));
    let keeps = Keeps(KEEPS_BYTES + reader::list_bytes(found.len()));
    let reader = Reader::new(app.bounded_view(&access), found, only, range).over_damage(allow_damaged);
    let state = Some((reader, VecDeque::new()));
    let rest = stream::unfold(state, move |state| next(state, totals));
    let body = Body::from_stream(stream::iter(first).chain(rest));
    let mut response = ([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response();
    response.extensions_mut().insert(keeps);
    Ok(response)
}

/// The reader, and the unsent parts of the slices read last.
type Left = (Reader, VecDeque<Vec<Slice>>);

fn parts(slices: VecDeque<Slice>) -> VecDeque<Vec<Slice>> {
    match slices.len() {
        0 | 1 => slices.into_iter().flat_map(Slice::parts).map(|part| vec![part]).collect(),
        // Several slices are the samples of short series. They form one part.
        _ => VecDeque::from([slices.into()]),
    }
}

/// The next part of the body, and the rest of the export. The rest is `None` after the totals or an error.
async fn next(state: Option<Left>, totals: bool) -> Option<(Result<Bytes, Error>, Option<Left>)> {
    let (mut reader, mut unsent) = state?;
    let part = match unsent.pop_front() {
        Some(part) => Ok(Some(part)),
        None => reader.next_slices().await.map(|slices| {
            unsent = parts(slices);
            unsent.pop_front()
        }),
    };
    match part {
        // Formatting tens of thousands of records takes milliseconds.
        Ok(Some(part)) => match tokio::task::spawn_blocking(move || lines(&part)).await {
            Ok(lines) => Some((Ok(lines.into()), Some((reader, unsent)))),
            Err(error) => Some((
                Err(Error::new(ErrorKind::Closed, "the task that formats the lines ended").caused_by(error)),
                None,
            )),
        },
        Ok(None) if totals => {
            let last = damage::incomplete(json!({ "totals": reader.totals }), &reader.damages());
            Some((Ok(format!("{last}\n").into()), None))
        }
        Ok(None) => None,
        Err(error) => {
            match error.kind() {
                // A limit of the token. It is already counted, and noted in the audit log at most once a minute.
                ErrorKind::Limit => tracing::debug!(%error, "export ended early"),
                _ => tracing::error!(%error, "export ended early"),
            }
            // A client that requested totals gets the reason instead of the totals. Other clients only see a truncated
            // response.
            let why = || format!("{}\n", json!({ "error": error.to_string() }));
            Some((if totals { Ok(why().into()) } else { Err(error) }, None))
        }
    }
}

fn lines(part: &[Slice]) -> String {
    part.iter().map(Slice::lines).collect()
}

/// The texts of the selectors, at least one.
pub(super) fn selectors(params: &Params) -> Result<Vec<String>, ApiError> {
    let texts = series::texts(params)?;
    if texts.is_empty() {
        return Err(ApiError::bad("parameter \"match[]\" is missing: give at least one selector"));
    }
    Ok(texts)
}

/// Whether all series are requested, with `all=1` instead of selectors.
pub(super) fn is_all(params: &Params) -> Result<bool, ApiError> {
    let is_all = params.get("all") == Some("1");
    if is_all && params.get("match[]").is_some() {
        return Err(ApiError::bad("parameters \"all\" and \"match[]\" exclude each other"));
    }
    Ok(is_all)
}

/// The series of samples or entries that at least one selector accepts. Without selectors all series.
pub(super) async fn find(
    app: &App,
    access: &Access,
    selectors: Option<Vec<String>>,
    only: Option<Kind>,
) -> Result<Vec<Selected>, ApiError> {
    let work = |series_max| {
        let (store, selectors) = (app.view(access), selectors.clone());
        move |cancel: &Cancel| {
            // A selector without matchers accepts every series. No text can express such a selector.
            let selectors = selectors.map_or_else(|| Ok(vec![Vec::new()]), |texts| series::parse(&texts))?;
            let waits = || !cancel.is_cancelled();
            series::unless_many(reader::find_within(&store, &selectors, only, series_max, &waits))
        }
    };
    if let Some(found) = series::selecting(app, &app.queries, work(LIGHT_SERIES_MAX)).await? {
        return Ok(found);
    }
    let found = series::selecting_alone(app, &app.lists, work(usize::MAX)).await?;
    found.ok_or_else(|| ApiError::internal("a selection of series ended without a result"))
}

pub(super) fn kind(name: &str) -> Result<Kind, ApiError> {
    match name {
        "sample" => Ok(Kind::Sample),
        "entry" => Ok(Kind::Entry),
        other => Err(ApiError::bad(format!("kind {other:?} is not known: give sample or entry"))),
    }
}

/// An item of a checksum request. `start` and `end` are in ns, as text.
#[derive(Deserialize)]
struct Question {
    metric: BTreeMap<String, String>,
    kind: String,
    start: String,
    end: String,
}

/// Takes a JSON list of series and ranges. Returns a JSON list in the same order: for each, the number and the checksum of its
/// records, and the retention of the series.
async fn checksums(State(app): State<Arc<App>>, access: Access, body: Bytes) -> Result<Response, ApiError> {
    let store = app.bounded_view(&access);
    let read = away(move || serde_json::from_slice::<Vec<Question>>(&body)).await?;
    let questions =
        read.map_err(|e| ApiError::bad(format!("body is not a list of series and ranges: {e}")))?;
    if questions.len() > CHECKSUMS_MAX {
        let message = format!("{} series are over {CHECKSUMS_MAX}: send several requests", questions.len());
        return Err(ApiError::execution(message));
    }
    let wanted =
        away(move || questions.into_iter().map(read_question).collect::<Result<Vec<_>, _>>()).await??;
    let retention = |(series, _): &(Selected, TimeRange)| {
        let keep_ns = app.config.history.policies.keep(&series.labels)?.keep;
        Some(Retention { keep_ns, before: app.clock.now().saturating_sub_unsigned(keep_ns) })
    };
    let retentions: Vec<Option<Retention>> = wanted.iter().map(retention).collect();
    let tallies = tally::tallies(&store, wanted).await;
    let tallies = tallies.map_err(|e| damage::hinted(e, "the stored records cannot be compared"))?;
    let held = |(tally, retention)| Held { tally, retention };
    let answers: Vec<Held> = tallies.into_iter().zip(retentions).map(held).collect();
    away(move || axum::Json(json!({ "status": "success", "data": answers })).into_response()).await
}

fn read_question(question: Question) -> Result<(Selected, TimeRange), ApiError> {
    let kind = kind(&question.kind)?;
    let labels = Labels::new(&question.metric).map_err(|e| ApiError::bad(e.to_string()))?;
    let time = |text: &str| {
        text.parse().map_err(|_| ApiError::bad(format!("{text:?} is not a time in nanoseconds")))
    };
    let range = TimeRange::new(time(&question.start)?, time(&question.end)?);
    Ok((Selected { kind, id: labels.id(), labels: Arc::new(labels) }, range))
}
