//! The closed loop: N connections, each with one request in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use tacho_model::Random;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::mix::{Mix, fill};
use crate::report::{Failures, LATENCY_NS_MAX, Report, TemplateReport, new_histogram};
use crate::{Error, RequestId, RequestIds};

/// Limit on connections, below the number of ephemeral ports of one address (28,232 on Linux). More connections need several
/// generators.
const CONNECTIONS_MAX: usize = 20_000;
/// Pause after a failure to connect.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    After(Duration),
    /// Total number of requests of all connections.
    Requests(u64),
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// `HOST:PORT`, plain HTTP/1.1 with keep-alive.
    pub target: String,
    pub connections: usize,
    pub stop: Stop,
    /// Timeout of one request, from sending it to the end of the response.
    pub timeout: Duration,
    pub mix: Mix,
    /// The high half of every request id (1 if this is 0). Also the seed of the random choices.
    pub run: u64,
}

/// Progress of a run, which the run shares with its caller. [`Progress::stop`] ends the run early and keeps the results so far.
#[derive(Debug, Default)]
pub struct Progress {
    succeeded: AtomicU64,
    failed: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    pub fn succeeded(&self) -> u64 {
        self.succeeded.load(Ordering::Relaxed)
    }

    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Runs the load to its end. Fails only if the settings are invalid or the first connection cannot be opened.
pub async fn run(settings: Settings, progress: Arc<Progress>) -> Result<Report, Error> {
    if !(1..=CONNECTIONS_MAX).contains(&settings.connections) {
        return Err(Error::Connections { connections: settings.connections, max: CONNECTIONS_MAX });
    }
    if !settings
        .target
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
    {
        return Err(Error::Target(settings.target));
    }
    let connect = TcpStream::connect(&settings.target).await;
    drop(connect.map_err(|source| Error::Connect { target: settings.target.clone(), source })?);

    let began = Instant::now();
    let shared = Arc::new(Shared {
        ids: RequestIds::new(settings.run),
        left: AtomicU64::new(match settings.stop {
            Stop::Requests(count) => count,
            Stop::After(_) => u64::MAX,
        }),
        deadline: match settings.stop {
            Stop::After(duration) => Some(began + duration),
            Stop::Requests(_) => None,
        },
        settings,
        progress,
    });
    let mut workers = JoinSet::new();
    for number in 0..shared.settings.connections {
        workers.spawn(Worker::new(Arc::clone(&shared), number).work());
    }
    let mut report = Report {
        connections: shared.settings.connections,
        elapsed: Duration::ZERO,
        templates: templates(&shared.settings.mix),
        body_bytes: 0,
    };
    while let Some(done) = workers.join_next().await {
        if let Ok(worker) = done {
            merge(&mut report, &worker);
        }
    }
    report.elapsed = began.elapsed();
    Ok(report)
}

struct Shared {
    settings: Settings,
    ids: RequestIds,
    progress: Arc<Progress>,
    /// Number of requests that were not started yet.
    left: AtomicU64,
    deadline: Option<Instant>,
}

impl Shared {
    /// Whether one more request may be sent. If so, counts this request.
    fn claim(&self) -> bool {
        let over = self.progress.stopped.load(Ordering::Relaxed)
            || self.deadline.is_some_and(|d| Instant::now() >= d);
        !over && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok()
    }
}

fn templates(mix: &Mix) -> Vec<TemplateReport> {
    let report = |t: &crate::Template| TemplateReport {
        name: format!("{} {}", t.method, t.path),
        latency_ns: new_histogram(),
        failures: Failures::default(),
    };
    mix.templates().iter().map(report).collect()
}

fn merge(report: &mut Report, worker: &Worker) {
    for (all, one) in report.templates.iter_mut().zip(&worker.results) {
        // Cannot fail, because all histograms have the same bounds.
        let _ = all.latency_ns.add(&one.latency_ns);
        all.failures.add(&one.failures);
    }
    report.body_bytes += worker.body_bytes;
}

struct Worker {
    shared: Arc<Shared>,
    rng: Random,
    results: Vec<TemplateReport>,
    body_bytes: u64,
}

enum Outcome {
    Answered { status: u16, body_bytes: u64 },
    ConnectionLost,
}

impl Worker {
    fn new(shared: Arc<Shared>, number: usize) -> Self {
        let seed = tacho_model::mix64(shared.settings.run ^ (number as u64));
        let results = templates(&shared.settings.mix);
        Self { shared, rng: Random::new(seed), results, body_bytes: 0 }
    }

    async fn work(mut self) -> Self {
        let mut connection: Option<SendRequest<Full<Bytes>>> = None;
        while self.shared.claim() {
            let template = self.shared.settings.mix.draw(&mut self.rng);
            let request = self.request(template);
            if connection.as_ref().is_none_or(SendRequest::is_closed) {
                connection = connect(&self.shared.settings.target).await;
            }
            let Some(sender) = connection.as_mut() else {
                self.failed(template, |failures| failures.connection += 1);
                tokio::time::sleep(RECONNECT_PAUSE).await;
                continue;
            };
            let began = Instant::now();
            let outcome = tokio::time::timeout(self.shared.settings.timeout, exchange(sender, request)).await;
            match outcome {
                Ok(Outcome::Answered { status, body_bytes }) if status < 400 => {
                    let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    self.results[template].latency_ns.saturating_record(ns.clamp(1, LATENCY_NS_MAX));
                    self.body_bytes += body_bytes;
                    self.shared.progress.succeeded.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Outcome::Answered { status, .. }) => {
                    self.failed(template, |failures| *failures.statuses.entry(status).or_default() += 1);
                }
                Ok(Outcome::ConnectionLost) => {
                    connection = None;
                    self.failed(template, |failures| failures.connection += 1);
                }
                Err(_elapsed) => {
                    connection = None;
                    self.failed(template, |failures| failures.timeout += 1);
                }
            }
        }
        self
    }

    fn failed(&mut self, template: usize, count: impl FnOnce(&mut Failures)) {
        count(&mut self.results[template].failures);
        self.shared.progress.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn request(&mut self, template: usize) -> Request<Full<Bytes>> {
        let settings = &self.shared.settings;
        let template = &settings.mix.templates()[template];
        let id: RequestId = self.shared.ids.next();
        let mut builder = Request::builder()
            .method(template.method.as_str())
            .uri(fill(&template.path, &mut self.rng))
            .header(header::HOST, &settings.target)
            .header("x-request-id", id.to_string())
            .header("traceparent", id.traceparent());
        if !template.body.is_empty() {
            builder = builder.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        let body = Bytes::from(fill(&template.body, &mut self.rng));
        builder.body(Full::new(body)).unwrap_or_else(|_| Request::new(Full::default()))
    }
}

async fn connect(target: &str) -> Option<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(target).await.ok()?;
    stream.set_nodelay(true).ok()?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

async fn exchange(sender: &mut SendRequest<Full<Bytes>>, request: Request<Full<Bytes>>) -> Outcome {
    if sender.ready().await.is_err() {
        return Outcome::ConnectionLost;
    }
    let Ok(response) = sender.send_request(request).await else { return Outcome::ConnectionLost };
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut body_bytes = 0;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => body_bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
            Err(_) => return Outcome::ConnectionLost,
        }
    }
    Outcome::Answered { status, body_bytes }
}
