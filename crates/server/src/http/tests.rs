//! Tests of the router with its handlers: memory and permits of requests that wait for the permit of heavy requests, and
//! deletions that fail or whose client disconnects.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::request::Builder;
use axum::http::{Request, StatusCode};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value as Json, json};
use tacho_model::{
    Batch, Event, EventKind, ExecutionSeries, Kind, Labels, Matcher, Operation, OperationKind, Sample,
    SampleSeries, Segment, TraceId, Value,
};
use tacho_store::layer::faults::{Faults, Faulty};
use tacho_store::{Driver, ErrorKind, MemoryDriver, Options, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use super::answers::Answers;
use super::app::{ANALYSES_MAX, App, QUERIES_MAX};
use super::prometheus::series::LIGHT_SERIES_MAX;
use super::{router, routes};
use crate::access::token::{Limits, Record, Role};
use crate::access::{Gate, file};
use crate::clock::SystemClock;
use crate::config::{self, Settings};
use crate::control::Control;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;

/// A request whose range contains the call of `executions`. It needs all blocks in memory at the same time.
const CALL_TREE: &str = "/api/calltree?start=0&end=2";
const FOLDED: [&str; 4] = ["services", "operations", "traces", "graph"];

/// Number of series, each with labels of 60 kB. All labels together exceed `LIGHT_LABELS_BYTES_MAX` of `prometheus/answer.rs`,
/// the limit on an answer that is written while a heavy request runs.
const SERIES: usize = 150;
const LABELS: usize = 60;
const LABEL_BYTES: usize = 1_000;

/// A server without listeners. The tests take its permits.
struct Busy {
    app: Arc<App>,
    store: Arc<Store>,
    _directory: tempfile::TempDir,
}

impl Busy {
    async fn start(batch: Batch, change: impl FnOnce(&mut App)) -> Self {
        Self::start_on(Arc::new(MemoryDriver::new()), batch, change).await
    }

    async fn start_on(driver: Arc<dyn Driver>, batch: Batch, change: impl FnOnce(&mut App)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_owned();
        let settings = Settings { data: Some(data.clone()), ..Settings::default() };
        let config = config::load(None, [], settings).unwrap();
        let clock = Arc::new(SystemClock);
        let store =
            Store::open(driver, &data.join("journal"), Options::default(), clock.clone()).await.unwrap();
        store.append(batch, None).await.unwrap();
        let metrics = Arc::new(Metrics::default());
        let control = Arc::new(Control::open(&data, metrics.clone()).unwrap());
        let record_types = Arc::new(RecordTypes::open(&data));
        let gate = Gate::of(&data, metrics.clone(), clock.clone());
        let mut app = App::new(config, store.clone(), metrics, clock, control, record_types, (None, gate));
        change(Arc::get_mut(&mut app).unwrap());
        Self { app, store, _directory: directory }
    }

    /// Returns when the request waits for the permit for heavy requests.
    async fn ask_until_it_waits(&self, path: &str) -> JoinHandle<Answered> {
        self.ask_until_it_waits_for(&self.app.heavy, path).await
    }

    /// Returns when the request waits for the permit. A waiting request holds a clone of the semaphore.
    async fn ask_until_it_waits_for(&self, permit: &Arc<Semaphore>, path: &str) -> JoinHandle<Answered> {
        self.until_it_holds(permit, path, ask(self.app.clone(), path.to_owned())).await
    }

    /// Returns when the request holds a clone of `handle`.
    async fn until_it_holds<T>(
        &self,
        handle: &Arc<T>,
        path: &str,
        asked: impl Future<Output = Answered> + Send + 'static,
    ) -> JoinHandle<Answered> {
        let handles = Arc::strong_count(handle);
        let asked = tokio::spawn(asked);
        while Arc::strong_count(handle) == handles {
            assert!(!asked.is_finished(), "{path} ended before: {:?}", asked.await);
            tokio::task::yield_now().await;
        }
        asked
    }

    fn take_heavy(&self) -> OwnedSemaphorePermit {
        self.app.heavy.clone().try_acquire_owned().expect("the permit is free")
    }

    /// Free permits of heavy requests, queries and analyses.
    fn free(&self) -> [usize; 3] {
        [&self.app.heavy, &self.app.queries, &self.app.analyses].map(|permits| permits.available_permits())
    }
}

type Answered = (StatusCode, Json);

async fn ask(app: Arc<App>, path: String) -> Answered {
    request(app, "GET", path).await
}

/// An empty body becomes `null`.
async fn request(app: Arc<App>, method: &str, path: String) -> Answered {
    send(app, Request::builder().method(method).uri(path), Body::empty()).await
}

async fn send(app: Arc<App>, request: Builder, body: Body) -> Answered {
    let request = request.header("Host", "localhost").body(body).unwrap();
    let response = TowerToHyperService::new(router(app)).call(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, if body.is_empty() { Json::Null } else { serde_json::from_slice(&body).unwrap() })
}

fn samples() -> Batch {
    let series = |n: usize| {
        let text = format!("{n:0>LABEL_BYTES$}");
        let names: Vec<String> = (0..LABELS).map(|name| format!("l{name}")).collect();
        let labels = names.iter().map(|name| (&**name, &*text)).chain([("__name__", "m")]);
        let samples = vec![Sample { at: 1_000_000_000, value: Value::F64(1.0) }];
        SampleSeries { labels: Arc::new(Labels::new(labels).unwrap()), samples }
    };
    Batch { samples: (0..SERIES).map(series).collect(), ..Batch::default() }
}

fn executions() -> Batch {
    let labels = Labels::new([("__name__", "executions"), ("service", "shop"), ("host", "a")]).unwrap();
    let event = |delta, kind| Event { delta, kind };
    let segment = Segment {
        trace: TraceId(1),
        base: 7,
        part: 0,
        parent: None,
        thread: "main".into(),
        start: 1_000_000_000,
        carried: Vec::new(),
        first_call: 0,
        events: vec![event(0, EventKind::Enter(0)), event(10, EventKind::Exit)],
        attributes: Vec::new(),
    };
    let operations = vec![Operation { kind: OperationKind::Method, name: "a".into() }];
    let series = ExecutionSeries { labels: Arc::new(labels), operations, segments: vec![segment] };
    Batch { executions: vec![series], ..Batch::default() }
}

#[tokio::test]
async fn waiting_requests_do_not_hold_series() {
    let busy = Busy::start(samples(), |_| {}).await;
    let known = busy.app.store_of_tests().find(Kind::Sample, &[Matcher::equal("__name__", "m")]);
    let users = || known.iter().map(|(_, labels)| Arc::strong_count(labels)).sum::<usize>();
    let alone = users();
    for path in ["/api/v1/query?query=m&time=1", "/api/v1/series?match[]=m"] {
        let heavy = busy.take_heavy();
        let waiting = [busy.ask_until_it_waits(path).await, busy.ask_until_it_waits(path).await];
        assert_eq!(users(), alone, "{path}");
        assert_eq!(busy.free(), [0, QUERIES_MAX, ANALYSES_MAX], "{path}");
        drop(heavy);
        for waiting in waiting {
            let (status, answer) = waiting.await.unwrap();
            let series = answer.pointer("/data/result").or(answer.pointer("/data")).and_then(Json::as_array);
            assert_eq!((status, series.map(Vec::len)), (StatusCode::OK, Some(SERIES)), "{path}");
        }
        assert_eq!(busy.free(), [1, QUERIES_MAX, ANALYSES_MAX], "{path}");
    }
}

#[tokio::test]
async fn the_stats_report_the_wait_as_time_in_the_queue() {
    let busy = Busy::start(samples(), |_| {}).await;
    let heavy = busy.take_heavy();
    let begun = Instant::now();
    let waiting = busy.ask_until_it_waits("/api/v1/query?query=m&time=1&stats=true").await;
    let waited = Instant::now();
    std::thread::sleep(Duration::from_millis(20));
    let waited = waited.elapsed().as_secs_f64();
    drop(heavy);
    let (_, answer) = waiting.await.unwrap();
    let all = begun.elapsed().as_secs_f64();
    let seconds = |name: &str| answer["data"]["stats"]["timings"][name].as_f64().unwrap();
    assert!(seconds("execQueueTime") >= waited, "{waited} s: {}", answer["data"]["stats"]);
    let worked = seconds("queryPreparationTime") + seconds("innerEvalTime");
    assert!(worked > 0.0 && worked <= all - waited, "{waited} of {all} s: {}", answer["data"]["stats"]);
    let sums = [("evalTotalTime", worked), ("execTotalTime", seconds("execQueueTime") + worked)];
    for (name, sum) in sums {
        assert!((seconds(name) - sum).abs() < 1e-6, "{name}: {}", answer["data"]["stats"]);
    }
}

#[tokio::test]
async fn waiting_analyses_release_their_permits() {
    let busy = Busy::start(executions(), |app| app.light_block_bytes_max = 0).await;
    let heavy = busy.take_heavy();
    let mut waiting = Vec::new();
    // One request more than there are permits, so that the test fails if a waiting request keeps its permit.
    for _ in 0..=ANALYSES_MAX {
        waiting.push(busy.ask_until_it_waits(CALL_TREE).await);
        assert_eq!(
            busy.free(),
            [0, QUERIES_MAX, ANALYSES_MAX],
            "free permits while {} requests wait",
            waiting.len()
        );
    }
    let left = waiting.pop().unwrap();
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    drop(heavy);
    for waiting in waiting {
        check_call_tree(waiting.await.unwrap());
    }
    assert_eq!(busy.free(), [1, QUERIES_MAX, ANALYSES_MAX], "free permits after all requests");
}

#[tokio::test]
async fn analyses_release_their_permits_after_success_and_failure() {
    for (block_bytes_max, light_block_bytes_max, is_heavy_taken) in
        [(usize::MAX, usize::MAX, false), (0, 0, false), (0, usize::MAX, true)]
    {
        let busy = Busy::start(executions(), |app| {
            (app.block_bytes_max, app.light_block_bytes_max) = (block_bytes_max, light_block_bytes_max);
        })
        .await;
        let heavy = is_heavy_taken.then(|| busy.take_heavy());
        let (status, answer) = ask(busy.app.clone(), CALL_TREE.to_owned()).await;
        if block_bytes_max == 0 && !is_heavy_taken {
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{answer}");
        } else {
            check_call_tree((status, answer));
        }
        drop(heavy);
        assert_eq!(busy.free(), [1, QUERIES_MAX, ANALYSES_MAX], "{block_bytes_max}, {is_heavy_taken}");
    }
}

fn check_call_tree((status, answer): Answered) {
    assert_eq!(
        (status, &answer["root"]["children"][0]["service"]),
        (StatusCode::OK, &"shop".into()),
        "{answer}"
    );
}

#[tokio::test]
async fn the_limit_on_blocks_does_not_apply_to_analyses_of_one_block_at_a_time() {
    let busy =
        Busy::start(executions(), |app| (app.block_bytes_max, app.light_block_bytes_max) = (0, 0)).await;
    let _heavy = busy.take_heavy();
    for name in FOLDED {
        let (status, answer) = ask(busy.app.clone(), format!("/api/{name}?start=0&end=2")).await;
        let list = answer[if name == "graph" { "nodes" } else { name }].as_array().map(Vec::len);
        assert_eq!((status, list), (StatusCode::OK, Some(1)), "{name}: {answer}");
    }
    assert_eq!(busy.free(), [0, QUERIES_MAX, ANALYSES_MAX]);
}

/// Adds a token. Returns its header.
fn token(data: &Path, name: &str, (role, selector): (Role, Option<&str>), limits: Limits) -> String {
    let created = "2026-11-28T00:00:00Z".to_owned();
    let roles = (vec![role], selector.map(str::to_owned));
    let (record, text) = Record::new(name, roles, limits, (created, None)).unwrap();
    file::change(data, |all| {
        all.push(record);
        Ok(())
    })
    .unwrap();
    format!("Bearer {text}")
}

/// Adds a token that may read this number of records in a request. Returns its header.
fn limited(data: &Path, records: u64) -> String {
    let limits = Limits { query_samples: Some(records), ..Limits::default() };
    token(data, &format!("max{records}"), (Role::Read, None), limits)
}

/// A server without memory for light analyses, and a token for each limit on the records of a request.
async fn with_limits(batch: Batch, limits: [u64; 2]) -> (Busy, [String; 2]) {
    let mut tokens = [String::new(), String::new()];
    let busy = Busy::start(batch, |app| {
        app.light_block_bytes_max = 0;
        let data = app.config.data.clone();
        tokens = limits.map(|records| limited(&data, records));
        app.gate = Gate::of(&data, app.metrics.clone(), app.clock.clone());
    })
    .await;
    (busy, tokens)
}

/// Without memory for light analyses, each pass and each attempt reads the blocks again.
#[tokio::test]
async fn a_call_counts_once_toward_the_limit_of_a_token_however_often_it_is_read() {
    let mut batch = executions();
    let more = executions().executions.into_iter().map(|mut series| {
        let pairs = [("__name__", "executions"), ("service", "board"), ("host", "a")];
        series.labels = Arc::new(Labels::new(pairs).unwrap());
        series.segments[0].base = 9;
        series
    });
    batch.executions.extend(more);
    let (busy, [below, enough]) = with_limits(batch, [1, 2]).await;
    let trace = format!("/api/traces/{:032x}", 1);
    let folded = FOLDED.map(|name| (format!("/api/{name}?start=0&end=2"), false));
    // The call begins less than an hour after the start of the range, so the last request reads a longer range, too.
    let analyses = [CALL_TREE.to_owned(), trace.clone(), format!("{trace}?start=1&end=2")];
    for (path, is_heavy) in folded.into_iter().chain(analyses.map(|path| (path, true))) {
        let ask_as = |token: &str| {
            let request = Request::builder().uri(&path).header("Authorization", token);
            send(busy.app.clone(), request, Body::empty())
        };
        let (status, answer) = ask_as(&below).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{path}: {answer}");
        assert!(answer.to_string().contains("may read 1 records in a request"), "{path}: {answer}");
        let (status, answer) = ask_as(&enough).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        if is_heavy {
            let heavy = busy.take_heavy();
            let waiting = busy.until_it_holds(&busy.app.heavy, &path, ask_as(&enough)).await;
            drop(heavy);
            let (status, answer) = waiting.await.unwrap();
            assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        }
    }
}

/// The server reads the series together, in a range with all samples.
#[tokio::test]
async fn a_checksum_counts_only_the_samples_in_the_requested_ranges() {
    let names = ["a", "b", "c"];
    let series = names.map(|name| SampleSeries {
        labels: Arc::new(Labels::new([("__name__", name)]).unwrap()),
        samples: (1..=9).map(|at| Sample { at, value: Value::I64(at) }).collect(),
    });
    let (busy, [below, enough]) =
        with_limits(Batch { samples: series.into(), ..Batch::default() }, [2, 3]).await;
    let question = |(name, at): (&str, u64)| {
        let at = at.to_string();
        json!({ "metric": { "__name__": name }, "kind": "sample", "start": at, "end": at })
    };
    let questions: Json = names.into_iter().zip([1, 5, 9]).map(question).collect();
    for (token, expect) in [(below, StatusCode::UNPROCESSABLE_ENTITY), (enough, StatusCode::OK)] {
        let request = Request::post("/api/v1/checksum").header("Authorization", token);
        let (status, answer) = send(busy.app.clone(), request, questions.to_string().into()).await;
        assert_eq!(status, expect, "{answer}");
    }
}

const DELETE_A_AND_B: &str = "/api/v1/admin/tsdb/delete_series?match[]=a&match[]=b";

/// A server with the series `a` and `b`, and its driver, which the tests freeze or break.
async fn with_two_series() -> (Busy, Arc<Faulty<MemoryDriver>>) {
    let driver = Arc::new(Faulty::new(MemoryDriver::new(), Faults::default()));
    let series = |name| SampleSeries {
        labels: Arc::new(Labels::new([("__name__", name)]).unwrap()),
        samples: vec![Sample { at: 1_000_000_000, value: Value::F64(1.0) }],
    };
    let batch = Batch { samples: vec![series("a"), series("b")], ..Batch::default() };
    (Busy::start_on(driver.clone(), batch, |_| {}).await, driver)
}

/// The names of the series of [`with_two_series`] that have samples.
async fn left(busy: &Busy) -> Vec<String> {
    let (_, answer) = ask(busy.app.clone(), "/api/v1/query?query={__name__=~%22a|b%22}&time=1".into()).await;
    let series = answer["data"]["result"].as_array().unwrap().iter();
    series.map(|series| series["metric"]["__name__"].as_str().unwrap().to_owned()).collect()
}

impl Busy {
    /// The lines of the audit log.
    fn audit(&self) -> Vec<Json> {
        let text = std::fs::read_to_string(self.app.config.data.join("audit.log")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

#[tokio::test]
async fn a_deletion_goes_on_and_is_noted_when_its_client_disconnects() {
    let (busy, driver) = with_two_series().await;
    driver.freeze();
    // The task of the deletion holds a clone of the store. A call of the driver would not show that the deletion has begun,
    // because other tasks of the store call it, too.
    let asked = request(busy.app.clone(), "POST", DELETE_A_AND_B.into());
    let asked = busy.until_it_holds(&busy.store, DELETE_A_AND_B, asked).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    driver.thaw();
    let noted = async {
        while busy.audit().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), noted).await.expect("the deletion is noted");
    assert_eq!(left(&busy).await, [""; 0]);
    let audit = busy.audit();
    assert_eq!((audit.len(), &audit[0]["done"]["match[]"]), (1, &serde_json::json!(["a", "b"])), "{audit:?}");
}

#[tokio::test]
async fn a_deletion_that_fails_is_noted_with_the_selectors_that_took_effect() {
    let (busy, driver) = with_two_series().await;
    driver.set_broken(Some(ErrorKind::Unavailable));
    let (status, answer) = request(busy.app.clone(), "POST", DELETE_A_AND_B.into()).await;
    assert!(status.is_server_error(), "{status}: {answer}");
    driver.set_broken(None);
    let (status, answer) = request(busy.app.clone(), "POST", DELETE_A_AND_B.into()).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    let done: Vec<Json> = busy.audit().into_iter().map(|line| line["done"]["match[]"].clone()).collect();
    assert_eq!(done, [serde_json::json!([]), serde_json::json!(["a", "b"])]);
}

#[tokio::test]
async fn a_path_that_is_not_utf8_is_an_error_in_json() {
    let busy = Busy::start(Batch::default(), |_| {}).await;
    let mut asked = 0;
    for route in routes().into_iter().filter(|route| route.path.contains('{')) {
        let (before, rest) = route.path.split_once('{').unwrap();
        let (_, after) = rest.split_once('}').unwrap();
        let path = format!("{before}%ff{after}");
        for method in ["GET", "POST", "DELETE"] {
            let (status, answer) = request(busy.app.clone(), method, path.clone()).await;
            if status != StatusCode::METHOD_NOT_ALLOWED {
                asked += 1;
                let error = format!("path {path:?} is not UTF-8 after decoding");
                let expected = json!({ "status": "error", "errorType": "bad_data", "error": error });
                assert_eq!((status, answer), (StatusCode::BAD_REQUEST, expected), "{method} {path}");
            }
        }
    }
    assert_eq!(asked, 6, "routes with a placeholder");
}

/// Series without long labels.
fn many_samples(count: usize) -> Batch {
    let series = |n: usize| {
        let labels = Arc::new(Labels::new([("__name__", "m"), ("n", &*n.to_string())]).unwrap());
        SampleSeries { labels, samples: vec![Sample { at: 1_000_000_000, value: Value::F64(1.0) }] }
    };
    Batch { samples: (0..count).map(series).collect(), ..Batch::default() }
}

#[tokio::test]
async fn counts_of_many_series_share_one_permit() {
    let busy = Busy::start(many_samples(LIGHT_SERIES_MAX + 1), |_| {}).await;
    let lists = busy.app.lists.clone();
    let taken = lists.clone().try_acquire_owned().expect("the permit is free");
    let path = "/api/v1/admin/count?match[]=m";
    let waiting =
        [busy.ask_until_it_waits_for(&lists, path).await, busy.ask_until_it_waits_for(&lists, path).await];
    assert_eq!(busy.free(), [1, QUERIES_MAX, ANALYSES_MAX]);
    drop(taken);
    for waiting in waiting {
        let (status, answer) = waiting.await.unwrap();
        let accepted = answer["data"]["accepted"].as_u64();
        assert_eq!((status, accepted), (StatusCode::OK, Some(LIGHT_SERIES_MAX as u64 + 1)), "{answer}");
    }
}

#[tokio::test]
async fn the_series_of_counts_share_the_memory_of_answers() {
    const BYTES_MAX: usize = 100 << 10;
    let change = |app: &mut App| app.answers = Answers::new(BYTES_MAX, &app.metrics);
    let busy = Busy::start(many_samples(5_000), change).await;
    let held = || busy.app.metrics.answers.bytes.with([]).get();
    for path in ["/api/v1/admin/count?match[]=m", "/api/v1/admin/tsdb/delete_series?match[]=m&counts=1"] {
        let other = busy.app.answers.share_of(BYTES_MAX).unwrap();
        assert_eq!(request(busy.app.clone(), "POST", path.into()).await.0, StatusCode::SERVICE_UNAVAILABLE);
        drop(other);
        let (status, answer) = request(busy.app.clone(), "POST", path.into()).await;
        assert_eq!((status, &answer["data"]["accepted"]), (StatusCode::OK, &json!(5_000)), "{path}");
        assert_eq!(held(), 0, "{path}");
    }
}

/// Sends a request with a chosen id of its query.
async fn ask_as(app: Arc<App>, id: String, path: String) -> Answered {
    send(app, Request::get(path).header("X-Tacho-Query", id), Body::empty()).await
}

#[tokio::test]
async fn a_running_query_is_listed_with_its_progress_and_can_be_stopped() {
    let busy = Busy::start(executions(), |app| app.light_block_bytes_max = 0).await;
    let heavy = busy.take_heavy();
    let asked = ask_as(busy.app.clone(), "page-1".into(), CALL_TREE.into());
    let named = busy.until_it_holds(&busy.app.heavy, CALL_TREE, asked).await;
    let query = "/api/v1/query?query=m%20%2B+1&time=1";
    let queries: Vec<OwnedSemaphorePermit> =
        (0..QUERIES_MAX).map(|_| busy.app.queries.clone().try_acquire_owned().unwrap()).collect();
    let unnamed = busy.ask_until_it_waits_for(&busy.app.queries, query).await;
    let (status, answer) = ask(busy.app.clone(), "/api/queries".into()).await;
    let list = answer["data"]["queries"].as_array().unwrap();
    assert_eq!((status, list.len()), (StatusCode::OK, 2), "{answer}");
    let [first, second] = [&list[0], &list[1]];
    assert_eq!(
        [&first["id"], &first["request"], &first["token"], &first["parameters"]],
        [&json!("page-1"), &json!("GET /api/calltree"), &Json::Null, &json!([["start", "0"], ["end", "2"]])]
    );
    // The attempt without memory has failed at the first block of the only series, and now waits.
    assert_eq!(first["progress"], json!({ "pass": 1, "done": 0.0, "calls": 1 }));
    assert_eq!(second["parameters"], json!([["query", "m + 1"], ["time", "1"]]));
    assert_eq!(second["progress"], Json::Null);
    let (status, answer) = ask_as(busy.app.clone(), "page-1".into(), CALL_TREE.into()).await;
    assert_eq!((status, &answer["errorType"]), (StatusCode::BAD_REQUEST, &json!("bad_data")), "{answer}");
    let number = second["id"].as_str().unwrap();
    for (id, asked) in [("page-1", named), (number, unnamed)] {
        let stop = || request(busy.app.clone(), "DELETE", format!("/api/queries/{id}"));
        assert_eq!(stop().await, (StatusCode::NO_CONTENT, Json::Null), "{id}");
        let (status, answer) = asked.await.unwrap();
        assert_eq!((status, &answer["errorType"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("canceled")));
        assert_eq!(stop().await.0, StatusCode::NOT_FOUND, "{id}");
    }
    assert_eq!(busy.app.metrics.queries_cancelled.with([]).get(), 2, "both call trees had begun");
    drop((heavy, queries));
    assert_eq!(busy.free(), [1, QUERIES_MAX, ANALYSES_MAX]);
}

#[tokio::test]
async fn a_token_sees_and_stops_its_own_queries_and_an_admin_all() {
    let mut headers = Vec::new();
    let busy = Busy::start(executions(), |app| {
        app.light_block_bytes_max = 0;
        let data = app.config.data.clone();
        let read = (Role::Read, None);
        for (name, roles) in [
            ("own", read),
            ("other", read),
            ("confined", (Role::Read, Some(r#"{team="a"}"#))),
            ("admin", (Role::Admin, None)),
        ] {
            headers.push(token(&data, name, roles, Limits::default()));
        }
        app.gate = Gate::of(&data, app.metrics.clone(), app.clock.clone());
    })
    .await;
    let [header, other, confined, admin] = headers.try_into().unwrap();
    let heavy = busy.take_heavy();
    let as_token = |header: &str, method: &str, path: &str| {
        let builder = Request::builder().method(method).uri(path).header("Authorization", header);
        send(busy.app.clone(), builder, Body::empty())
    };
    // With all permits of requests taken, queries are still listed and stopped.
    for stopping in [&header, &admin] {
        let asked = as_token(&header, "GET", CALL_TREE);
        let waiting = busy.until_it_holds(&busy.app.heavy, CALL_TREE, asked).await;
        let all = u32::try_from(busy.app.permits.available_permits()).unwrap();
        let permits = busy.app.permits.clone().try_acquire_many_owned(all).unwrap();
        let mut id = String::new();
        for (header, expect) in [(&other, 0), (&confined, 0), (&header, 1), (&admin, 1)] {
            let (_, answer) = as_token(header, "GET", "/api/queries").await;
            let list = answer["data"]["queries"].as_array().unwrap();
            assert_eq!(list.len(), expect, "{answer}");
            id = list.first().map_or(id, |query| query["id"].as_str().unwrap().to_owned());
        }
        let stop =
            async |header: &str, id: &str| as_token(header, "DELETE", &format!("/api/queries/{id}")).await.0;
        for (header, id) in [(&other, &*id), (&confined, &id), (stopping, &format!("0{id}"))] {
            assert_eq!(stop(header, id).await, StatusCode::NOT_FOUND);
        }
        assert_eq!(stop(stopping, &id).await, StatusCode::NO_CONTENT);
        drop(permits);
        assert_eq!(waiting.await.unwrap().0, StatusCode::SERVICE_UNAVAILABLE);
    }
    let stopped = busy.audit();
    let stopped: Vec<&Json> = stopped.iter().filter(|event| event["event"] == "changed").collect();
    assert_eq!(stopped.len(), 1, "{stopped:?}");
    assert_eq!(
        (&stopped[0]["token"], &stopped[0]["done"]["stopped"]["token"]),
        (&json!("admin"), &json!("own"))
    );
    drop(heavy);
}
