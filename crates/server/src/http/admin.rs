//! Administration: deletes records as in Prometheus' admin API, counts what a deletion would remove, sweeps, merges chunks, and
//! confirms the clock.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tacho_model::{Kind, Matcher, TimeRange};
use tacho_store::{Deleted, Jump, MergeReport, Store};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::affected;
use super::app::App;
use super::damage;
use super::door::{Address, Done};
use super::error::ApiError;
use super::export::{self, kind, selectors};
use super::params::Params;
use super::prometheus::series;
use super::route::{Need, Route};
use super::turn::{away, turn};
use crate::access::{Access, View, Whole};

const DELETE_SERIES: &str = "/api/v1/admin/tsdb/delete_series";
const CLEAN_TOMBSTONES: &str = "/api/v1/admin/tsdb/clean_tombstones";
const MERGE: &str = "/api/v1/admin/merge";

pub fn routes() -> Vec<Route> {
    vec![
        Route::new(DELETE_SERIES, Need::Admin, post(delete_series).put(delete_series)),
        Route::new("/api/v1/admin/count", Need::Read, get(count).post(count)),
        Route::new(CLEAN_TOMBSTONES, Need::Admin, post(clean_tombstones).put(clean_tombstones)),
        Route::new(MERGE, Need::Admin, post(merge)),
        Route::new("/api/v1/admin/clock/confirm", Need::Admin, post(confirm_clock)),
    ]
}

/// Counts the records that a deletion with the same `match[]`, `start` and `end` would remove. `all=1` instead of `match[]`
/// counts the records of all series. With `kind` (`sample`, `entry`), only records of that kind are counted.
async fn count(State(app): State<Arc<App>>, access: Access, params: Params) -> Result<Json<Value>, ApiError> {
    let only = params.get("kind").map(kind).transpose()?;
    let wanted = match export::is_all(&params)? {
        true => (vec![Vec::new()], range(&params)?),
        false => wanted(&app, &params).await?,
    };
    counted((&app, &app.bounded_view(&access)), &wanted, only, damage::is_allowed(&params)?).await
}

async fn counted(
    (app, store): (&App, &View),
    wanted: &(Vec<Vec<Matcher>>, TimeRange),
    only: Option<Kind>,
    allow_damaged: bool,
) -> Result<Json<Value>, ApiError> {
    let (selection, _share) = affected::select(app, store, wanted, only).await?;
    let _turn = turn(&app.queries).await?;
    let affected = affected::affected(store, selection, allow_damaged).await.map_err(|e| {
        let hint =
            "the deletion itself does not need the counts, and allow_damaged=1 counts the readable records";
        damage::hinted(e, hint)
    })?;
    let answer = json!({ "status": "success", "data": affected.to_json() });
    Ok(Json(damage::warn(answer, affected.damages())))
}

/// Parameters: `match[]` (repeatable), and `start` and `end` (by default all of time). The deletion is durable when the
/// response is sent. It goes on if the client disconnects. With `counts=1` the response has the counts of the matching records
/// just before the deletion. Records that are written between the count and the deletion are not counted.
async fn delete_series(
    State(app): State<Arc<App>>,
    (whole, access, Address(address), method): (Whole, Access, Address, Method),
    params: Params,
) -> Result<Response, ApiError> {
    params.only(&["start", "end", "counts", "allow_damaged"], &["match[]"])?;
    let wanted = wanted(&app, &params).await?;
    let store = app.whole(&whole);
    let counted = match params.get("counts") {
        Some("1") => Some(
            counted((&app, &View::whole(store.clone())), &wanted, None, damage::is_allowed(&params)?).await?,
        ),
        _ => None,
    };
    let texts = params.all("match[]").map(str::to_owned).collect();
    let deletion = Deletion { texts, wanted, deleted: 0, failure: None };
    let by = (access, address, format!("{method} {DELETE_SERIES}"));
    let deletion = deletion.run(app.clone(), store.clone(), by).await?;
    let done = deletion.done();
    let mut answer = match (deletion.failure, counted) {
        (Some(error), _) => ApiError::from(error).into_response(),
        (None, Some(counted)) => counted.into_response(),
        (None, None) => StatusCode::NO_CONTENT.into_response(),
    };
    answer.extensions_mut().insert(done);
    Ok(answer)
}

/// A deletion by several selectors, one after the other. Before the next selector, the deletion by the previous one is durable.
struct Deletion {
    texts: Vec<String>,
    wanted: (Vec<Vec<Matcher>>, TimeRange),
    /// Number of selectors whose deletion is durable.
    deleted: usize,
    /// Why the deletion by the next selector failed. The selectors after it were not used.
    failure: Option<tacho_store::Error>,
}

impl Deletion {
    /// Deletes by all selectors, even if the client disconnects or the request times out. In these two cases, nobody receives
    /// the result, so the spawned task notes it in the audit log. Otherwise `guard.rs` notes it.
    async fn run(
        mut self,
        app: Arc<App>,
        store: Arc<Store>,
        (access, address, place): (Access, Option<IpAddr>, String),
    ) -> Result<Self, ApiError> {
        let (result, awaited) = oneshot::channel();
        tokio::spawn(async move {
            self.failure = self.delete(&store).await.err();
            if let Err(this) = result.send(self) {
                let Done(done) = this.done();
                let failed = this.failure.map_or(Value::Null, |error| error.to_string().into());
                let members = [("place", place.into()), ("failed", failed), ("done", done)];
                app.gate.note("changed", address, Some(&access), &members);
            }
        });
        awaited.await.map_err(|_| ApiError::internal("the deletion ended without a result"))
    }

    async fn delete(&mut self, store: &Store) -> tacho_store::Result<()> {
        let (selectors, range) = &self.wanted;
        for matchers in selectors {
            let Deleted { series } = store.delete(matchers, *range).await?;
            self.deleted += 1;
            tracing::info!(series = series.iter().sum::<usize>(), ?matchers, %range, "deleted");
        }
        Ok(())
    }

    /// The selectors whose deletion is durable.
    fn done(&self) -> Done {
        let texts = self.texts.get(..self.deleted).unwrap_or_default();
        Done(json!({ "match[]": texts, "range": self.wanted.1.to_string() }))
    }
}

async fn wanted(app: &App, params: &Params) -> Result<(Vec<Vec<Matcher>>, TimeRange), ApiError> {
    let (texts, range) = (selectors(params)?, range(params)?);
    let turn = turn(&app.queries).await?;
    let (selectors, _turn) = away(move || (series::parse(&texts), turn)).await?;
    Ok((selectors?, range))
}

fn range(params: &Params) -> Result<TimeRange, ApiError> {
    let start = params.time("start")?.unwrap_or(TimeRange::ALL.start);
    let end = params.time("end")?.unwrap_or(TimeRange::ALL.end);
    if start > end {
        return Err(ApiError::bad("invalid parameter \"end\": it is before \"start\""));
    }
    Ok(TimeRange::new(start, end))
}

/// Sweeps: frees the space of deleted and expired records, and downsamples.
async fn clean_tombstones(State(app): State<Arc<App>>, whole: Whole) -> Result<StatusCode, ApiError> {
    let place = place(&app)?;
    let work = |store: Arc<Store>| async move {
        let _place = place;
        store.sweep().await
    };
    to_the_end(app.whole(&whole).clone(), work).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Confirms the clock: retention uses it again, even if it is far ahead of the expected time.
async fn confirm_clock(State(app): State<Arc<App>>, whole: Whole) -> Result<Json<Value>, ApiError> {
    let ahead = ahead_seconds(app.whole(&whole).confirm_clock().await?);
    Ok(Json(json!({ "status": "success", "data": { "ahead_seconds": ahead } })))
}

/// Seconds by which a distrusted clock is ahead of the expected time. 0 for a trusted clock.
pub fn ahead_seconds(jump: Option<Jump>) -> u64 {
    jump.map_or(0, |jump| jump.found.abs_diff(jump.expected) / 1_000_000_000)
}

/// Flushes, then merges all chunks that can be merged.
async fn merge(State(app): State<Arc<App>>, whole: Whole) -> Result<Json<Value>, ApiError> {
    let place = place(&app)?;
    let work = |store: Arc<Store>| async move {
        let _place = place;
        store.flush().await?;
        store.merge_all().await
    };
    let report = to_the_end(app.whole(&whole).clone(), work).await?;
    Ok(Json(json!({ "status": "success", "data": report_json(&report) })))
}

/// Admits one running and one waiting request. Further requests are refused, because requests continue after their clients
/// disconnect and would accumulate.
fn place(app: &App) -> Result<OwnedSemaphorePermit, ApiError> {
    app.merges.clone().try_acquire_owned().map_err(|_| {
        ApiError::too_many("a merge or clean-up is under way, and another one waits for it: try again later")
    })
}

/// The work of a request that has reached the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    Ends,
    /// [`to_the_end`].
    Continues,
    /// A deletion continues if it has begun ([`Deletion::run`]), and not if its request still waits or counts.
    MayContinue,
}

pub fn late(route: &str) -> Late {
    match route {
        CLEAN_TOMBSTONES | MERGE => Late::Continues,
        DELETE_SERIES => Late::MayContinue,
        _ => Late::Ends,
    }
}

/// Runs `work` to its end, even if the client disconnects or the request times out.
async fn to_the_end<T, W>(store: Arc<Store>, work: impl FnOnce(Arc<Store>) -> W) -> Result<T, ApiError>
where
    T: Send + 'static,
    W: Future<Output = tacho_store::Result<T>> + Send + 'static,
{
    let work = tokio::spawn(work(store));
    Ok(work.await.map_err(|e| ApiError::internal(format!("work ended: {e}")))??)
}

pub fn report_json(report: &MergeReport) -> Value {
    json!({
        "partitions": report.partitions,
        "merges": report.merges,
        "chunks_in": report.chunks_in,
        "chunks_out": report.chunks_out,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "records_in": report.records_in,
        "records_out": report.records_out,
        "samples_replaced": report.samples_replaced,
        "busy_seconds": report.busy.as_secs_f64(),
        "seconds": report.elapsed.as_secs_f64(),
    })
}
