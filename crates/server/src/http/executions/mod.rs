//! Queries of executions: services, operations, traces, call trees, dependencies.
//!
//! `search.rs` reads the parameters of a search for traces, `fetch.rs` reads blocks from the store, `tacho_query::executions`
//! computes the answer, `answer.rs` formats it.

mod answer;
pub(super) mod fetch;
mod search;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::Value;
use tacho_chunk::SKETCH_ERROR;
use tacho_model::{OperationKind, TimeRange, TraceId};
use tacho_query::Cancel;
use tacho_query::executions::{
    self, Filter, Fold, Graphing, Level, Operations, QUANTILE_ERROR, Searching, Services, SourceBlock,
};
use tacho_store::{Damages, ErrorKind, Read};

use super::damage;
use super::error::ApiError;
use super::params::{Params, PathText};
use super::route::{Need, Route};
use super::running::Requester;
use super::turn::{Asked, Running, Turn, away, turn, watched};
use crate::access::View;
use crate::http::app::App;
use crate::read::damage::sentences;
use fetch::{Notes, Wanted};

type Answer = Result<Response, ApiError>;

/// The parameters that [`filter`] reads.
const FILTER: [&str; 4] = ["service", "operation", "start", "end"];

pub fn routes() -> Vec<Route> {
    vec![
        Route::new("/api/services", Need::Read, get(services)),
        Route::new("/api/operations", Need::Read, get(operations)),
        Route::new("/api/traces", Need::Read, get(traces)),
        Route::new("/api/traces/{trace_id}", Need::Read, get(trace)),
        Route::new("/api/calltree", Need::Read, get(calltree)),
        Route::new("/api/graph", Need::Read, get(graph)),
    ]
}

async fn services(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    params.only(&[&FILTER[..], &["limit", "exact"]].concat(), &[])?;
    let filter = filter(&app, &params)?;
    let (limit, is_exact) = (limit(&params)?, is_exact(&params)?);
    let fold = Services::new(filter.clone());
    let fold = if is_exact { fold } else { fold.from_summaries() };
    let write = move |services: Vec<_>| answer::services(&services, limit, quantile_error(is_exact));
    folded((&app, &requester), &filter, fold, write).await
}

async fn operations(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    params.only(&[&FILTER[..], &["kind", "limit", "exact"]].concat(), &[])?;
    let filter = filter(&app, &params)?;
    let kind = params.parse(
        "kind",
        "a kind: method, http-server, http-client, database, connection-wait or task",
        kind,
    )?;
    let (limit, is_exact) = (limit(&params)?, is_exact(&params)?);
    let fold = Operations::new(filter.clone(), kind);
    let fold = if is_exact { fold } else { fold.from_summaries() };
    let write = move |operations: Vec<_>| answer::operations(&operations, limit, quantile_error(is_exact));
    folded((&app, &requester), &filter, fold, write).await
}

async fn traces(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    params.only(&[&FILTER[..], &search::CONDITIONS].concat(), &[search::ATTRIBUTE])?;
    let search = search::of(&params, filter(&app, &params)?)?;
    let filter = search.filter.clone();
    folded((&app, &requester), &filter, Searching::new(search), |found| answer::traces(&found)).await
}

async fn trace(
    State(app): State<Arc<App>>,
    requester: Requester,
    PathText(text): PathText,
    params: Params,
) -> Answer {
    params.only(&["start", "end"], &[])?;
    let number = u128::from_str_radix(&text, 16).ok().filter(|n| *n != 0 && text.len() == 32);
    let Some(id) = number.map(TraceId) else {
        return Err(ApiError::bad(format!(
            "trace id {text:?} is not 32 hexadecimal digits, or all digits are 0"
        )));
    };
    let ranges = match (params.time("start")?, params.time("end")?) {
        (None, None) => fetch::widening(app.clock.now()),
        (start, end) => vec![TimeRange::new(start.unwrap_or(i64::MIN), end.unwrap_or(i64::MAX))],
    };
    let store = app.bounded_view(requester.access());
    let mut unread = Damages::default();
    for range in ranges {
        let find = move |blocks: &[SourceBlock], damages: &Damages, cancel: &Cancel| {
            Ok(Read { records: executions::trace(blocks, id, cancel)?, damages: damages.clone() })
        };
        let Read { records, damages } =
            analyse((&app, &requester, &store), Wanted::Trace(id), range, find).await?;
        unread = damages;
        let Some(mut found) = records else { continue };
        if let Some(whole) = fetch::around(&found, range) {
            let again = analyse((&app, &requester, &store), Wanted::Trace(id), whole, find).await?;
            (found, unread) = (again.records.unwrap_or(found), again.damages);
        }
        return away(move || written(answer::trace(&found), &unread)).await;
    }
    let missing = sentences(&unread);
    let readable = if missing.is_empty() { "" } else { " in the readable records; " };
    Err(ApiError::not_found(format!("trace {text} does not exist{readable}{}", missing.join("; "))))
}

async fn calltree(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    params.only(&FILTER, &[])?;
    let filter = filter(&app, &params)?;
    let (store, range) = (app.bounded_view(requester.access()), filter.range);
    let compute = move |blocks: &[SourceBlock], damages: &Damages, cancel: &Cancel| {
        Ok(written(answer::calltree(&executions::calltree(blocks, &filter, cancel)?), damages))
    };
    analyse((&app, &requester, &store), Wanted::All, range, compute).await
}

async fn graph(State(app): State<Arc<App>>, requester: Requester, params: Params) -> Answer {
    params.only(&[&FILTER[..], &["level", "format", "exact"]].concat(), &[])?;
    let filter = filter(&app, &params)?;
    let level = params.parse("level", "operation or service", level)?.unwrap_or(Level::Operation);
    let dot = params.parse("format", "json or dot", format)?.unwrap_or(false);
    let fold = Graphing::new(filter.clone(), level);
    let view = app.view(requester.access());
    let labels_of = move |id| view.labels_of(id);
    let fold = if is_exact(&params)? { fold } else { fold.from_summaries(Arc::new(labels_of)) };
    let (Read { records: graph, damages }, notes) = computed((&app, &requester), &filter, fold).await?;
    let warnings = warnings(&damages, &notes);
    if dot {
        let content_type = [(header::CONTENT_TYPE, "text/vnd.graphviz; charset=utf-8")];
        return away(move || (content_type, comments(warnings) + &graph.to_dot()).into_response()).await;
    }
    away(move || Json(damage::told(answer::graph(&graph), warnings)).into_response()).await
}

/// Warnings about unreadable records, limits that make the answer incomplete, and damaged summaries whose calls were read
/// instead.
fn warnings(damages: &Damages, notes: &Notes) -> Vec<String> {
    sentences(damages).into_iter().chain(notes.sentences()).collect()
}

fn comments(warnings: Vec<String>) -> String {
    let comment = |said: String| {
        let line: String = said.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("// warning: {line}\n")
    };
    warnings.into_iter().map(comment).collect()
}

/// Called on a blocking thread, because formatting tens of thousands of spans takes long.
fn written(value: Value, damages: &Damages) -> Response {
    Json(damage::warn(value, damages)).into_response()
}

async fn folded<T: Send + 'static>(
    context: (&App, &Requester),
    filter: &Filter,
    fold: impl Fold<Answer = T> + Send,
    write: impl FnOnce(T) -> Value + Send + 'static,
) -> Answer {
    let (Read { records, damages }, notes) = computed(context, filter, fold).await?;
    let warnings = warnings(&damages, &notes);
    away(move || Json(damage::told(write(records), warnings)).into_response()).await
}

/// Computes an answer block by block. The memory of the computation is bounded for any number of calls, so it does not need
/// the permit for heavy queries. It stops after the current block when the client disconnects.
async fn computed<F: Fold + Send>(
    (app, requester): (&App, &Requester),
    filter: &Filter,
    fold: F,
) -> Result<(Read<F::Answer>, Notes), ApiError> {
    let _turn = turn(&app.analyses).await?;
    let asked = Asked::new(app.metrics.queries_cancelled.with([]));
    let _running = Running::new(app.metrics.queries_running.with([]));
    let store = app.bounded_view(requester.access());
    let selected = (filter.service.as_deref(), filter.range);
    let read = fetch::folded((&store, requester.progress()), selected, app.light_block_bytes_max, fold).await;
    asked.answered();
    Ok(read?)
}

/// Reads the blocks, and computes on a blocking thread. Stops when the client disconnects.
async fn analyse<T: Send + 'static>(
    (app, requester, store): (&App, &Requester, &View),
    wanted: Wanted<'_>,
    range: TimeRange,
    compute: impl FnOnce(&[SourceBlock], &Damages, &Cancel) -> Result<T, tacho_query::Error> + Send + 'static,
) -> Result<T, ApiError> {
    let turn = turn(&app.analyses).await?;
    // `asked` is dropped with this future when the client disconnects or the request times out. Its drop cancels the analysis.
    let asked = Asked::new(app.metrics.queries_cancelled.with([]));
    let running = Running::new(app.metrics.queries_running.with([]));
    match read((app, requester, store), wanted, range, turn).await {
        Ok((Read { records: blocks, damages }, turns)) => {
            let held = (turns, running);
            watched(asked, held, move |cancel| Ok(compute(&blocks, &damages, cancel)?)).await
        }
        Err(error) => {
            asked.answered();
            Err(error)
        }
    }
}

/// Returns the blocks with the permits of the analysis. If a heavy query is running, the analysis first tries the lower limit
/// on blocks. An analysis that needs more releases its permit, so that light analyses can run while it waits.
async fn read(
    (app, requester, store): (&App, &Requester, &View),
    wanted: Wanted<'_>,
    range: TimeRange,
    light: Turn,
) -> Result<(Read<Vec<SourceBlock>>, Vec<Turn>), ApiError> {
    let blocks = async |bytes_max| {
        // The search for a trace reads ranges that contain each other, and an attempt with more memory reads the same blocks.
        store.begin_pass();
        fetch::blocks((store, requester.progress()), wanted, range, bytes_max).await
    };
    let turns = match app.heavy.clone().try_acquire_owned() {
        Ok(heavy) => vec![light, heavy],
        Err(_) => match blocks(app.light_block_bytes_max).await {
            Err(error) if error.kind() == ErrorKind::Limit && !store.is_spent() => {
                drop(light);
                vec![turn(&app.heavy).await?]
            }
            Err(error) => return Err(error.into()),
            Ok(read) => return Ok((read, vec![light])),
        },
    };
    let bytes_max = app.block_bytes_max;
    let read = blocks(bytes_max).await.map_err(|error| match store.is_spent() {
        true => ApiError::from(error),
        false => fetch::unreadable(error, bytes_max),
    })?;
    Ok((read, turns))
}

fn filter(app: &App, params: &Params) -> Result<Filter, ApiError> {
    Ok(Filter {
        service: params.get("service").map(str::to_owned),
        operation: params.get("operation").map(str::to_owned),
        range: params.range(app.clock.now())?,
    })
}

fn limit(params: &Params) -> Result<usize, ApiError> {
    Ok(params.count("limit", 1..=usize::MAX)?.unwrap_or(usize::MAX))
}

/// `exact=true` computes from the calls alone, without summaries.
fn is_exact(params: &Params) -> Result<bool, ApiError> {
    let is_exact = |text: &str| match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    Ok(params.parse("exact", "true or false", is_exact)?.unwrap_or(false))
}

const fn quantile_error(is_exact: bool) -> f64 {
    if is_exact { QUANTILE_ERROR } else { SKETCH_ERROR }
}

fn kind(text: &str) -> Option<OperationKind> {
    (1..=u8::MAX).map_while(OperationKind::from_byte).find(|kind| kind.name() == text)
}

fn level(text: &str) -> Option<Level> {
    match text {
        "operation" => Some(Level::Operation),
        "service" => Some(Level::Service),
        _ => None,
    }
}

/// Whether the format is Graphviz.
fn format(text: &str) -> Option<bool> {
    match text {
        "json" => Some(false),
        "dot" => Some(true),
        _ => None,
    }
}
