//! Tests of writes over HTTP of known series: the store finds a series by the text that the sender writes for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tacho_model::{Kind, Labels, ManualClock, Matcher, TimeRange};
use tacho_store::{MemoryDriver, Options, Store};

use super::app::App;
use super::router;
use crate::access::token::{Limits, Record, Role};
use crate::access::{Gate, file};
use crate::config::{self, Settings};
use crate::control::Control;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;

const NOW: i64 = 1_800_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// A server without listeners.
struct Server {
    app: Arc<App>,
    store: Arc<Store>,
    clock: Arc<ManualClock>,
    /// The texts of the tokens, by name.
    tokens: HashMap<String, String>,
    _directory: tempfile::TempDir,
}

impl Server {
    /// Each token has a name, a selector and limits.
    async fn start(tokens: &[(&str, Option<&str>, Limits)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_owned();
        let settings = Settings { data: Some(data.clone()), ..Settings::default() };
        let config = config::load(None, [], settings).unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let (driver, options) = (Arc::new(MemoryDriver::new()), Options::default());
        let options = Options { merge_in_background: false, ..options };
        let store = Store::open(driver, &data.join("journal"), options, clock.clone()).await.unwrap();
        let mut texts = HashMap::new();
        for (name, selector, limits) in tokens {
            let (of, times) = ((vec![Role::Write], selector.map(str::to_owned)), ("2026-12-01".into(), None));
            let (record, text) = Record::new(name, of, *limits, times).unwrap();
            let add = |all: &mut Vec<Record>| {
                all.push(record);
                Ok(())
            };
            file::change(&data, add).unwrap();
            texts.insert((*name).to_owned(), text);
        }
        let metrics = Arc::new(Metrics::default());
        let control = Arc::new(Control::open(&data, metrics.clone()).unwrap());
        let record_types = Arc::new(RecordTypes::open(&data));
        let gate = Gate::of(&data, metrics.clone(), clock.clone());
        let app =
            App::new(config, store.clone(), metrics, clock.clone(), control, record_types, (None, gate));
        Self { app, store, clock, tokens: texts, _directory: directory }
    }

    /// Sends a request of remote write. The name of the token is empty if the server has none.
    async fn write(&self, token: &str, body: Vec<u8>) -> Response<Body> {
        let text = self.tokens.get(token).cloned().unwrap_or_default();
        write(self.app.clone(), text, body).await
    }

    fn samples_known(&self) -> u64 {
        self.app.metrics.decoders.samples_known.with(["remote-write"]).get()
    }

    fn received(&self, service: &str) -> u64 {
        self.app.metrics.records_received.with([service, "sample"]).get()
    }
}

async fn write(app: Arc<App>, token: String, body: Vec<u8>) -> Response<Body> {
    let request = Request::post("/api/v1/write")
        .header("Host", "localhost")
        .header("Content-Type", "application/x-protobuf")
        .header("Authorization", format!("Bearer {token}"))
        .body(Body::from(body))
        .unwrap();
    TowerToHyperService::new(router(app)).call(request).await.unwrap()
}

/// A field of a protobuf message with these bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend_from_slice(bytes);
    out
}

/// A body of remote write: for each text of `series` a series `m` with this job and the text as label `n`. Each series has one
/// sample at each of `times`, in seconds after [`NOW`].
fn body(job: &str, series: &[&str], times: &[i64]) -> Vec<u8> {
    let label =
        |name: &str, value: &str| field(1, &[field(1, name.as_bytes()), field(2, value.as_bytes())].concat());
    let all = series.iter().map(|n| {
        let mut message = [label("__name__", "m"), label("job", job), label("n", n)].concat();
        for seconds in times {
            let mut sample = vec![0x09];
            sample.extend(1.5f64.to_le_bytes());
            sample.push(0x10);
            let mut ms = u64::try_from((NOW + seconds * SECOND) / 1_000_000).unwrap();
            while ms > 0x7f {
                sample.push(ms as u8 | 0x80);
                ms >>= 7;
            }
            sample.push(ms as u8);
            message.extend(field(2, &sample));
        }
        field(1, &message)
    });
    snap::raw::Encoder::new().compress_vec(&all.collect::<Vec<_>>().concat()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_whose_series_is_forgotten_while_it_is_decoded_is_refused_and_can_be_repeated() {
    let server = Server::start(&[]).await;
    let store = &server.store;
    for (times, known) in [([-9], 0), ([-8], 1)] {
        assert_eq!(server.write("", body("a", &["1"], &times)).await.status(), StatusCode::NO_CONTENT);
        assert_eq!(server.samples_known(), known);
    }
    let paused = server.app.services.pause();
    let sent = tokio::spawn(write(server.app.clone(), String::new(), body("a", &["1"], &[-7])));
    while server.samples_known() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    store.delete(&[Matcher::equal("job", "a")], TimeRange::ALL).await.unwrap();
    store.flush().await.unwrap();
    // While the flush still ends in the background, a sweep does not forget the series. So the sweep is repeated.
    for _ in 0..1_000 {
        store.sweep().await.unwrap();
        if store.stats().upkeep.series_forgotten > 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(store.stats().upkeep.series_forgotten, 1);
    drop(paused);
    let answer = sent.await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.headers().contains_key(header::RETRY_AFTER));
    assert_eq!((store.series_count(), server.received("a")), ([0; 3], 2));
    let waits = &server.app.metrics.sender_waits;
    assert_eq!(waits.with(["remote-write"]).get(), 1);
    // The server does not know the series any more, so the repeated body is decoded with labels.
    assert_eq!(server.write("", body("a", &["1"], &[-7])).await.status(), StatusCode::NO_CONTENT);
    let labels = Labels::new([("__name__", "m"), ("job", "a"), ("n", "1")]).unwrap();
    let samples = store.samples(labels.id(), TimeRange::ALL).await.unwrap();
    assert_eq!(samples.iter().map(|sample| sample.at).collect::<Vec<_>>(), [NOW - 7 * SECOND]);
    assert_eq!((server.samples_known(), server.received("a")), (2, 3));
}

#[tokio::test]
async fn writes_with_a_selector_or_a_limit_on_series_never_use_known_series() {
    let limits = Limits::default();
    let server = Server::start(&[
        ("plain", None, limits),
        ("rate", None, Limits { samples_per_second: Some(1_000), ..limits }),
        ("selector", Some("{job=\"a\"}"), limits),
        ("series", None, Limits { series: Some(2), ..limits }),
    ])
    .await;
    let write = async |token: &str, job: &str, series: &[&str]| {
        let before = server.samples_known();
        let status = server.write(token, body(job, series, &[0])).await.status().as_u16();
        (status, server.samples_known() - before)
    };
    // From writes with a selector or a limit on series, the store learns no spellings. These writes do not find known series.
    for token in ["selector", "series", "selector", "series"] {
        assert_eq!(write(token, "a", &["1", "2"]).await, (204, 0), "{token}");
        assert_eq!(server.store.stats().spellings, 0, "{token}");
    }
    for (token, known) in [("plain", 0), ("plain", 2), ("rate", 2), ("selector", 0), ("series", 0)] {
        assert_eq!(write(token, "a", &["1", "2"]).await, (204, known), "{token}");
    }
    // The series of a write are checked, even if the store knows them from a write with another token.
    assert_eq!(write("plain", "b", &["1", "2"]).await, (204, 0));
    for token in ["selector", "series"] {
        assert_eq!(write(token, "b", &["1", "2"]).await, (400, 0), "{token}");
    }
    assert_eq!(write("plain", "b", &["1", "2"]).await, (204, 2));
    assert_eq!((server.received("a"), server.received("b")), (18, 4));
    assert_eq!(server.store.find(Kind::Sample, &[]).len(), 4);
}

#[tokio::test]
async fn known_samples_count_toward_the_rate_of_a_token() {
    let rate = Limits { samples_per_second: Some(10), ..Limits::default() };
    let server = Server::start(&[("rate", None, rate)]).await;
    let write = async || server.write("rate", body("a", &["1", "2", "3"], &[0, 1])).await.status().as_u16();
    // 10 records are left, then 4, then -2.
    assert_eq!([write().await, write().await, write().await], [204, 204, 429]);
    server.clock.set(NOW + SECOND);
    // 8 records are left, then 2, then -4.
    assert_eq!([write().await, write().await, write().await], [204, 204, 429]);
    assert_eq!((server.samples_known(), server.received("a")), (30, 24));
}

#[tokio::test]
async fn a_body_that_names_each_series_twice_is_stored_whole() {
    let server = Server::start(&[]).await;
    let twice = || body("a", &["1", "2", "3", "1", "2", "3"], &[0, 1]);
    for known in [0, 12, 24] {
        assert_eq!(server.write("", twice()).await.status(), StatusCode::NO_CONTENT);
        assert_eq!(server.samples_known(), known);
    }
    assert_eq!((server.received("a"), server.store.series_count()), (36, [3, 0, 0]));
}

#[tokio::test]
async fn a_body_with_many_series_is_stored_whole_with_and_without_labels() {
    let server = Server::start(&[]).await;
    let names: Vec<String> = (0..5_000).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (seconds, known) in [(0, 0), (1, 5_000)] {
        assert_eq!(server.write("", body("a", &names, &[seconds])).await.status(), StatusCode::NO_CONTENT);
        assert_eq!(server.samples_known(), known);
    }
    assert_eq!((server.received("a"), server.store.stats().records), (10_000, [10_000, 0, 0]));
}
