//! Tests of the cache with random writes, late writes, deletions, flushes, merges and sweeps. Random questions repeat, some of
//! them with a moved range. Each question is asked with and without the cache. Both answers must have the same bytes.

use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tacho_chunk::semantic::Semantic;
use tacho_chunk::{Aggregate, Aggregation, Tolerance};
use tacho_model::{
    Batch, Clock, Labels, ManualClock, MatchOp, Matcher, Sample, SampleSeries, TimeRange, Value,
};
use tacho_query::promql::{Point, Reach, Series};
use tacho_store::policy::{Downsampling, Policies, Retention, Rule};
use tacho_store::{MemoryDriver, Options, Store};

use super::extent::{Extent, Steps};
use super::{Key, ResultCache, extent, without_blanks};
use crate::access::token::{Limits, Record, Role};
use crate::access::{Gate, file};
use crate::config::{self, Settings};
use crate::control::Control;
use crate::http::app::App;
use crate::http::prometheus::question::WORK_INLINE_MAX;
use crate::http::router;
use crate::metrics::Metrics;
use crate::record_types::RecordTypes;

const SECOND: i64 = 1_000_000_000;
/// The time at which a run begins, in s.
const BEGIN: i64 = 1_700_000_000;
const HOUR: i64 = 3_600;

/// The cache must not keep results of the last two expressions.
const EXPRESSIONS: [&str; 16] = [
    "a",
    "a{h='1'} offset 7m",
    "a offset -3m",
    "sum by (g) (a)",
    "rate(a[10m])",
    "sum(rate(a[5m])) / count(b)",
    "avg_over_time(a[1h])",
    "sum_over_time(a[30m])",
    "stddev_over_time(a[20m]) > 0.2",
    "max(max_over_time({__name__=~'a|b',h=~'1|2'}[4m])) by (__name__)",
    "sum(avg by (h) (a) * on (h) avg by (h) (b))",
    "topk(2, a) or absent(c)",
    "sum(topk(2, a - b))",
    "quantile_over_time(0.5, b[15m]) + time()",
    "a @ end()",
    "max_over_time(rate(a[5m])[20m:1m])",
];

/// Xorshift of G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below(low.abs_diff(high)).cast_signed()
    }
}

struct Model {
    app: Arc<App>,
    store: Arc<Store>,
    clock: Arc<ManualClock>,
    random: Random,
    /// Expression, length of the range and step of each panel.
    panels: Vec<(usize, i64, i64)>,
    /// The text of a token, if requests need one.
    token: Option<String>,
    /// Number of compared answers that a limit refused.
    refused: usize,
    _directory: tempfile::TempDir,
}

impl Model {
    async fn new(seed: u64, policies: Policies) -> Self {
        Self::limited(seed, policies, None).await
    }

    /// With a limit, all requests have a token with this limit on samples.
    async fn limited(seed: u64, policies: Policies, samples_max: Option<u64>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().to_owned();
        let settings = Settings { data: Some(data.clone()), ..Settings::default() };
        let config = config::load(None, [], settings).unwrap();
        let clock = Arc::new(ManualClock::new(BEGIN * SECOND));
        let options = Options {
            policies: Arc::new(policies),
            merge_in_background: false,
            sweep_first: Duration::from_secs(86_400),
            sweep_every: Duration::from_secs(86_400),
            clock_bounds: None,
            chunk_values: 50,
            ..Options::default()
        };
        let driver = Arc::new(MemoryDriver::new());
        let store = Store::open(driver, &data.join("journal"), options, clock.clone()).await.unwrap();
        let metrics = Arc::new(Metrics::default());
        let control = Arc::new(Control::open(&data, metrics.clone()).unwrap());
        let record_types = Arc::new(RecordTypes::open(&data));
        let token = samples_max.map(|max| limited_token(&data, max));
        let gate = Gate::of(&data, metrics.clone(), clock.clone());
        let app =
            App::new(config, store.clone(), metrics, clock.clone(), control, record_types, (None, gate));
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut panel = || {
            let step = [15, 60, 300, 1_800][usize::try_from(random.below(4)).unwrap()];
            let expression = usize::try_from(random.below(EXPRESSIONS.len() as u64)).unwrap();
            (expression, random.between(1, 40) * step, step)
        };
        let panels = (0..12).map(|_| panel()).collect();
        Self { app, store, clock, random, panels, token, refused: 0, _directory: directory }
    }

    fn now(&self) -> i64 {
        self.clock.now() / SECOND
    }

    async fn write(&mut self, from: i64, to: i64) {
        let samples = |random: &mut Random| {
            let mut at = from;
            let mut samples = Vec::new();
            while at < to {
                at += [5, 15, 15, 15, 90][usize::try_from(random.below(5)).unwrap()];
                let tenths = f64::from(u32::try_from(random.below(1_000)).unwrap()) / 10.0;
                samples.push(Sample { at: at * SECOND, value: Value::F64(tenths) });
            }
            samples
        };
        let mut series = Vec::new();
        for (name, host) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("b", "2")] {
            if self.random.below(4) > 0 {
                let labels = Labels::new([("__name__", name), ("h", host), ("g", &host[..1])]).unwrap();
                series.push(SampleSeries { labels: Arc::new(labels), samples: samples(&mut self.random) });
            }
        }
        self.store.append(Batch { samples: series, ..Batch::default() }, None).await.unwrap();
    }

    async fn change(&mut self) {
        match self.random.below(12) {
            0..6 => {
                let (from, seconds) = (self.now(), self.random.between(15, 900));
                self.clock.set((from + seconds) * SECOND);
                self.write(from, from + seconds).await;
            }
            6 => {
                let from = self.now() - self.random.between(0, 8 * HOUR);
                let to = from + self.random.between(1, 120);
                self.write(from, to).await;
            }
            7 => {
                let from = self.now() - self.random.between(0, 6 * HOUR);
                let range = TimeRange::new(from * SECOND, (from + self.random.between(1, 600)) * SECOND);
                let matcher = Matcher::new("h", MatchOp::Equal, "1").unwrap();
                self.store.delete(&[matcher], range).await.unwrap();
            }
            8 | 9 => self.store.flush().await.unwrap(),
            10 => drop(self.store.merge_all().await.unwrap()),
            _ => drop(self.store.sweep().await.unwrap()),
        }
    }

    async fn ask(&self, panel: (usize, i64, i64), end: i64, cache: bool) -> (StatusCode, Vec<u8>) {
        let (expression, length, step) = panel;
        let (start, cache) = (end - length, if cache { "" } else { "&cache=false" });
        let times = format!("start={start}&end={end}&step={step}{cache}");
        self.get("query_range", EXPRESSIONS[expression], &times).await
    }

    async fn get(&self, route: &str, query: &str, more: &str) -> (StatusCode, Vec<u8>) {
        body(self.response(route, query, more).await).await
    }

    async fn response(&self, route: &str, query: &str, more: &str) -> Response {
        let encoded = query.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let path = format!("/api/v1/{route}?query={encoded}&{more}");
        let mut request = Request::get(path).header("Host", "localhost");
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let request = request.body(Body::empty()).unwrap();
        TowerToHyperService::new(router(self.app.clone())).call(request).await.unwrap()
    }

    /// Compares the answers to the query of a random panel, with and without the cache. The range ends near the present time,
    /// usually at a multiple of the step.
    async fn compare(&mut self) {
        let panel = self.panels[usize::try_from(self.random.below(self.panels.len() as u64)).unwrap()];
        let step = panel.2;
        let mut end = self.now() - self.random.between(-1, 3) * step;
        if self.random.below(10) > 0 {
            end -= end.rem_euclid(step);
        }
        let length = [panel.1, panel.1, panel.1 + step, panel.1 / 2 / step * step];
        let panel = (panel.0, length[usize::try_from(self.random.below(4)).unwrap()], step);
        let with = self.ask(panel, end, true).await;
        let without = self.ask(panel, end, false).await;
        let text =
            |(status, body): &(StatusCode, Vec<u8>)| format!("{status} {}", String::from_utf8_lossy(body));
        assert_eq!(text(&with), text(&without), "{} of {panel:?} until {end}", EXPRESSIONS[panel.0]);
        self.refused += usize::from(with.0 == StatusCode::UNPROCESSABLE_ENTITY);
    }

    /// Requests by the use of the cache: all steps found, some, none.
    fn uses(&self) -> [u64; 3] {
        ["hit", "partial", "miss"].map(|result| self.app.metrics.cache.requests.with([result]).get())
    }
}

async fn run(seed: u64, policies: Policies) -> [u64; 3] {
    compare_all(Model::new(seed, policies).await).await.0
}

/// Returns the uses of the cache, and the number of refused answers.
async fn compare_all(mut model: Model) -> ([u64; 3], usize) {
    let now = model.now();
    model.write(now - 10 * HOUR, now).await;
    for _ in 0..30 {
        model.change().await;
        for _ in 0..10 {
            model.compare().await;
        }
    }
    let uses = model.uses();
    model.store.close().await.unwrap();
    (uses, model.refused)
}

fn limited_token(data: &Path, samples_max: u64) -> String {
    let limits = Limits { query_samples: Some(samples_max), ..Limits::default() };
    let created = "2026-11-28T00:00:00Z".to_owned();
    let (record, text) = Record::new("limited", (vec![Role::Read], None), limits, (created, None)).unwrap();
    file::change(data, |records| {
        records.push(record);
        Ok(())
    })
    .unwrap();
    text
}

async fn body(response: Response) -> (StatusCode, Vec<u8>) {
    let status = response.status();
    (status, axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
}

fn everywhere<T>(then: T) -> Vec<Rule<T>> {
    vec![Rule { matchers: Vec::new(), then }]
}

#[tokio::test]
async fn answers_with_and_without_the_cache_have_the_same_bytes() {
    let mut all = [0; 3];
    for seed in 1..=3 {
        let uses = run(seed, Policies::default()).await;
        all.iter_mut().zip(uses).for_each(|(sum, uses)| *sum += uses);
    }
    let [hits, partial, misses] = all;
    assert!(hits > misses / 4 && partial > misses / 10, "{hits} hits, {partial} partial, {misses} misses");
}

#[tokio::test]
async fn the_limit_of_a_token_on_samples_refuses_the_same_questions_with_and_without_the_cache() {
    let (mut found, mut refused, mut all) = (0, 0, 0);
    for (seed, samples_max) in [(51, 400), (52, 1_500), (53, 1_500)] {
        let model = Model::limited(seed, Policies::default(), Some(samples_max)).await;
        let (uses, of_model) = compare_all(model).await;
        (found, refused, all) = (found + uses[0], refused + of_model, all + 300);
        assert_eq!(uses[1], 0, "kept and computed steps were combined");
    }
    assert!(found > 10 && refused > 30 && refused < all - 30, "{found} hits, {refused} of {all} refused");
}

#[tokio::test]
async fn answers_have_the_same_bytes_while_retention_hides_samples() {
    let retention = everywhere(Retention::of(u64::try_from(2 * HOUR * SECOND).unwrap()));
    for seed in 11..=12 {
        run(seed, Policies { retention: retention.clone(), ..Policies::default() }).await;
    }
}

#[tokio::test]
async fn answers_have_the_same_bytes_while_merges_round_or_downsample() {
    let semantic = Semantic {
        time: u64::try_from(2 * SECOND).unwrap(),
        value: Some(Tolerance::Absolute(0.5)),
        ..Semantic::default()
    };
    let to = Aggregation { step: 120 * SECOND, how: Aggregate::Avg };
    let downsampling = everywhere(Downsampling { after: u64::try_from(HOUR * SECOND).unwrap(), to });
    for seed in 21..=22 {
        run(seed, Policies { semantic: everywhere(semantic), ..Policies::default() }).await;
        run(seed, Policies { downsampling: downsampling.clone(), ..Policies::default() }).await;
    }
}

#[tokio::test]
async fn the_use_of_the_cache_is_counted() {
    let mut model = Model::new(31, Policies::default()).await;
    let now = model.now();
    model.write(now - HOUR, now).await;
    let times = format!("start={}&end={now}&step=60", now - HOUR);
    let counts = || {
        let of = &model.app.metrics.cache;
        let uses = ["hit", "partial", "miss", "bypass"].map(|result| of.requests.with([result]).get());
        (uses, ["form", "notes", "size"].map(|reason| of.not_kept.with([reason]).get()))
    };
    for (route, query, more, expect) in [
        ("query_range", "a", "", ([0, 0, 1, 0], [0, 0, 0])),
        ("query_range", "a", "&cache=true", ([1, 0, 1, 0], [0, 0, 0])),
        ("query_range", "a", "&cache=false", ([1, 0, 1, 1], [0, 0, 0])),
        ("query_range", "a", "&stats=true", ([1, 0, 1, 2], [0, 0, 0])),
        ("query_range", "a @ end()", "", ([1, 0, 2, 2], [1, 0, 0])),
        ("query", "a", "", ([1, 0, 2, 2], [1, 0, 0])),
        ("query", "a", "&cache=false", ([1, 0, 2, 2], [1, 0, 0])),
    ] {
        let (status, _) = model.get(route, query, &format!("{times}{more}")).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(counts(), expect, "{route} {query} {more}");
    }
    model.store.close().await.unwrap();
}

/// With 8 series, a hit with more steps than this is copied and written on a blocking thread, with a permit.
const STEPS_INLINE_MAX: i64 = (WORK_INLINE_MAX / 8) as i64 - 1;

#[tokio::test]
async fn large_hits_are_written_with_a_permit() {
    let model = Model::new(32, Policies::default()).await;
    let now = model.now();
    let series = |host: usize| {
        let labels = Labels::new([("__name__", "a".to_owned()), ("h", host.to_string())]).unwrap();
        let at = |nth: i64| Sample { at: (now - 60 * nth) * SECOND, value: Value::I64(nth) };
        SampleSeries { labels: Arc::new(labels), samples: (0..200).rev().map(at).collect() }
    };
    let batch = Batch { samples: (0..8).map(series).collect(), ..Batch::default() };
    model.store.append(batch, None).await.unwrap();
    for (steps, waits) in [(STEPS_INLINE_MAX, false), (STEPS_INLINE_MAX + 1, true)] {
        let times = format!("start={}&end={now}&step=1", now - steps + 1);
        let first = model.get("query_range", "a", &times).await;
        let permits = u32::try_from(model.app.queries.available_permits()).unwrap();
        let taken = model.app.queries.clone().acquire_many_owned(permits).await.unwrap();
        let mut response = Box::pin(model.response("query_range", "a", &times));
        if waits {
            let polled = poll_fn(|context| Poll::Ready(response.as_mut().poll(context))).await;
            assert!(polled.is_pending(), "{steps} steps");
            drop(taken);
            assert_eq!(body(response.await).await, first);
        } else {
            let response = response.await;
            drop(taken);
            assert_eq!(body(response).await, first);
        }
    }
    assert_eq!(model.uses(), [2, 1, 1], "all steps must be found twice, and all but one step once");
    model.store.close().await.unwrap();
}

fn samples(host: &str, times: impl IntoIterator<Item = i64>) -> SampleSeries {
    let labels = Labels::new([("__name__", "a"), ("h", host)]).unwrap();
    let at = |at: i64| Sample { at: at * SECOND, value: Value::I64(at % 7) };
    SampleSeries { labels: Arc::new(labels), samples: times.into_iter().map(at).collect() }
}

#[tokio::test]
async fn a_clock_that_is_set_back_shows_no_deleted_samples() {
    let retention = everywhere(Retention::of(u64::try_from(2 * HOUR * SECOND).unwrap()));
    let model = Model::new(41, Policies { retention, ..Policies::default() }).await;
    let now = model.now();
    let times = (now - 2 * HOUR + 60..now).step_by(60);
    let batch = Batch { samples: vec![samples("1", times)], ..Batch::default() };
    model.store.append(batch, None).await.unwrap();
    let panel = (0, 2 * HOUR - 300, 300);
    let first = model.ask(panel, now, true).await;
    model.clock.set((now + HOUR) * SECOND);
    model.store.flush().await.unwrap();
    model.store.merge_all().await.unwrap();
    model.store.sweep().await.unwrap();
    model.clock.set(now * SECOND);
    let without = model.ask(panel, now, false).await;
    assert_ne!(without, first, "deleted samples are in the answer");
    assert_eq!(model.ask(panel, now, true).await, without);
    model.store.close().await.unwrap();
}

#[tokio::test]
async fn downsampled_samples_between_the_windows_are_noted() {
    let to = Aggregation { step: 120 * SECOND, how: Aggregate::Avg };
    let then = Downsampling { after: u64::try_from(HOUR * SECOND).unwrap(), to };
    let matchers = vec![Matcher::new("h", MatchOp::Equal, "2").unwrap()];
    let policies = Policies { downsampling: vec![Rule { matchers, then }], ..Policies::default() };
    let model = Model::new(42, policies).await;
    let end = (model.now() - 3 * HOUR) / 1_800 * 1_800;
    let steps = samples("1", (end - 7_200..=end).step_by(1_800));
    let between = samples("2", (end - 1_500..end - 1_000).step_by(10));
    for series in [steps, between] {
        model.store.append(Batch { samples: vec![series], ..Batch::default() }, None).await.unwrap();
        model.store.flush().await.unwrap();
    }
    // The windows of the last two queries cover the times between the windows of `a`.
    let queries = ["a", "rate(a[5m]) + avg_over_time(b[1h])", "a offset 1m + max_over_time(b[90m])"];
    let times = format!("start={}&end={end}&step=1800", end - 7_200);
    let not_cached = format!("{times}&cache=false");
    let mut first = Vec::new();
    for query in queries {
        first.push(model.get("query_range", query, &times).await);
    }
    model.store.merge_all().await.unwrap();
    for (query, first) in queries.iter().zip(first) {
        let without = model.get("query_range", query, &not_cached).await;
        assert_ne!(without, first, "{query}: the answer has no note");
        for _ in 0..2 {
            assert_eq!(model.get("query_range", query, &times).await, without, "{query}");
        }
    }
    model.store.close().await.unwrap();
}

#[tokio::test]
async fn a_chunk_that_spans_the_range_counts_for_the_limit_of_a_token() {
    // The limit is 70 samples, and the 65 samples in the range count toward it. The last flush writes a chunk with one sample
    // before the range and 100 samples after the range. None of its samples is in the range. But the server estimates that the
    // range has at least 8 of them, and refuses the query.
    let model = Model::limited(43, Policies::default(), Some(70)).await;
    let now = model.now();
    let append = async |times: Vec<i64>| {
        let batch = Batch { samples: vec![samples("1", times)], ..Batch::default() };
        model.store.append(batch, None).await.unwrap();
    };
    append((now - 10 * HOUR..now).step_by(60).collect()).await;
    model.store.flush().await.unwrap();
    let (panel, end) = ((0, HOUR, 60), now - 3 * HOUR);
    let (first, _) = model.ask(panel, end, true).await;
    assert_eq!(first, StatusCode::OK);
    append(vec![now - 6 * HOUR + 1]).await;
    append((now..now + 100).collect()).await;
    assert_eq!(model.ask(panel, end, true).await.0, StatusCode::OK);
    assert_eq!(model.uses()[0], 1, "nothing in the range has changed, so the cache must be used");
    model.store.flush().await.unwrap();
    let without = model.ask(panel, end, false).await;
    assert_eq!(without.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(model.ask(panel, end, true).await, without);
    model.store.close().await.unwrap();
}

#[test]
fn blanks_between_the_parts_of_a_query_do_not_matter() {
    for (text, same) in [
        (" sum  by\n(a) (b) ", "sum by (a) (b)"),
        ("a{b='c  d'}  +  `\\`  + \"\\\"  \"  ", "a{b='c  d'} + `\\` + \"\\\"  \""),
        ("a # 'b\n + c", "a # 'b\n + c"),
        // White space that PromQL does not allow.
        ("\u{a0}up\u{a0}", "\u{a0}up\u{a0}"),
        ("a\u{c}+\u{b}b\u{2003}", "a\u{c}+\u{b}b\u{2003}"),
    ] {
        assert_eq!(without_blanks(text), same);
    }
}

fn key(text: &str) -> Key {
    let selector = Some("{team=\"a\"}".to_owned());
    Key { text: text.to_owned(), step: 1, phase: 0, lookback: 300, selector, samples_max: Some(10) }
}

fn with_points(points: usize) -> [Series; 1] {
    let labels = Arc::new(Labels::new([("a", "b")]).unwrap());
    [Series { labels, points: vec![Point { at: 0, value: 1.0 }; points] }]
}

fn keep(cache: &ResultCache, key: &Key, points: usize) {
    let reach = Reach { before: 1, after: 0, window_min: 1, uses_summaries: false };
    let steps = Steps { first: 0, last: 0, step: 1 };
    cache.keep(key, &with_points(points), |series| Extent {
        steps,
        series,
        change: 0,
        expired: Vec::new(),
        reach,
    });
}

#[test]
fn memory_is_bounded_and_the_longest_unused_result_is_evicted_first() {
    const POINTS: usize = 1_000;
    let metrics = Metrics::default();
    let bytes_of_one = key("1").bytes() + extent::bytes(&with_points(POINTS));
    let cache = ResultCache::new(4 * bytes_of_one, &metrics);
    let is_kept = |text: &str| cache.kept().get(&key(text)).is_some();
    let not_kept = || metrics.cache.not_kept.with(["size"]).get();
    for text in ["1", "2", "3", "4"] {
        keep(&cache, &key(text), POINTS);
    }
    assert!(["1", "2", "3", "4"].iter().all(|text| is_kept(text)), "a result was evicted below the limit");
    assert!(is_kept("1"));
    keep(&cache, &key("5"), POINTS);
    assert_eq!(["1", "2", "3", "4", "5"].map(is_kept), [true, false, true, true, true]);
    assert_eq!(not_kept(), 0, "a result of a quarter of the memory was not kept");
    keep(&cache, &key("1"), POINTS + 1);
    assert!(!is_kept("1"), "a result of more than a quarter of the memory was kept");
    assert_eq!(not_kept(), 1);
    assert_eq!(metrics.cache.evictions.with([]).get(), 1);
    assert_eq!(metrics.cache.bytes.with([]).get(), i64::try_from(3 * bytes_of_one).unwrap());
}

#[test]
fn a_kept_result_is_found_only_with_the_same_key() {
    let cache = ResultCache::new(1 << 20, &Metrics::default());
    keep(&cache, &key("a"), 1);
    let others = [
        Key { selector: None, ..key("a") },
        Key { selector: Some("{team=\"b\"}".to_owned()), ..key("a") },
        Key { samples_max: Some(9), ..key("a") },
        Key { samples_max: None, ..key("a") },
        Key { lookback: 1, ..key("a") },
        Key { phase: 1, ..key("a") },
    ];
    assert!(cache.kept().get(&key("a")).is_some());
    assert!(others.iter().all(|other| cache.kept().get(other).is_none()));
}
