//! `tacho load`: generates load on a service and reports response times and failures.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tacho_api::units;
use tacho_lab as lab;

use super::ask;
use crate::failure::Failure;
use crate::signal;
use crate::terminal::progress;

/// Load a service over N connections, with one request in flight on each
///
/// Every request has a unique id in X-Request-Id, and the same 128 bits as trace id in traceparent:
/// `tacho traces --request-id ID` finds its trace. Ctrl-C ends the run and prints the results so far.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho load 127.0.0.1:8080 --path '/ads?page={1..20}' --connections 16 --duration 30s
  tacho load 127.0.0.1:8080 --mix board.mix --requests 100000 --json

A mix file has one request per line, WEIGHT METHOD PATH [BODY]; {a..b} is a random number from a to b:
  50 GET /ads?page={1..20}
  5 POST /ads title=Lamp&text=Shines&contact=me@example.org&price={1..99}")]
pub struct Load {
    /// HOST:PORT of the service, plain HTTP/1.1
    target: String,
    /// Connections, each with one request in flight
    #[arg(long, short, default_value_t = 16, value_name = "N")]
    connections: usize,
    /// Duration of the load, for example 30s or 2m
    #[arg(long, short, default_value = "10s", value_parser = ask::wait, conflicts_with = "requests")]
    duration: Duration,
    /// Total number of requests, instead of a duration
    #[arg(long, short = 'n', value_name = "N", value_parser = ask::at_least_one::<u64>)]
    requests: Option<u64>,
    /// GET this path
    #[arg(long, default_value = "/", conflicts_with = "mix")]
    path: String,
    /// File with weighted requests
    #[arg(long, value_name = "FILE")]
    mix: Option<PathBuf>,
    /// Time limit for one request
    #[arg(long, default_value = "10s", value_parser = ask::wait)]
    timeout: Duration,
    /// Run id: high half of every request id, and the random seed (default: from the clock)
    #[arg(long, value_name = "N")]
    run: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Load {
    pub fn run(self) -> Result<(), Failure> {
        let mix = match &self.mix {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| Failure::usage(format!("cannot read mix {}: {e}", path.display())))?;
                lab::Mix::parse(&text).map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?
            }
            None => get(&self.path)?,
        };
        let settings = lab::Settings {
            target: self.target,
            connections: self.connections,
            stop: self.requests.map_or(lab::Stop::After(self.duration), lab::Stop::Requests),
            timeout: self.timeout,
            mix,
            run: self.run.unwrap_or_else(run_from_clock),
        };
        let runtime = tokio::runtime::Runtime::new().map_err(Failure::new)?;
        let report = runtime.block_on(async {
            let interrupted = signal::stop().map_err(Failure::new)?;
            drive(settings, interrupted).await.map_err(failure)
        })?;
        if self.json {
            println!("{}", to_json(&report));
        } else {
            print(&report);
        }
        match (report.succeeded(), report.failures().total()) {
            (0, failed @ 1..) => Err(Failure::new(format!(
                "no request succeeded: {} failed",
                units::counted(failed, "request", "requests")
            ))),
            _ => Ok(()),
        }
    }
}

fn get(path: &str) -> Result<lab::Mix, Failure> {
    let wrong = |reason: &str| Failure::usage(format!("--path {path:?}: {reason}"));
    if path.contains(|c: char| c.is_whitespace() || c == '#') {
        return Err(wrong("a path has neither spaces nor #").hint("write %20 for a space and %23 for #"));
    }
    lab::Mix::parse(&format!("1 GET {path}")).map_err(|error| {
        let failure = wrong(error.reason);
        if path.starts_with('/') { failure } else { failure.hint(format!("write --path /{path}")) }
    })
}

fn failure(error: lab::Error) -> Failure {
    match &error {
        lab::Error::Connect { .. } => Failure::new(error)
            .hint("is the service running, and is this its address? Only plain HTTP is supported"),
        lab::Error::Target(_) => Failure::usage(error).hint("for example 127.0.0.1:8080, without http://"),
        lab::Error::Connections { .. } => Failure::usage(format!("--connections: {error}")),
    }
}

/// A run id from the clock, so that runs have different ids.
pub fn run_from_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    tacho_model::mix64(u64::try_from(since.as_nanos()).unwrap_or(1))
}

/// Runs the load with a progress bar. `interrupted` ends the load early.
pub async fn drive(
    settings: lab::Settings,
    interrupted: impl Future<Output = ()>,
) -> Result<lab::Report, lab::Error> {
    let progress = Arc::new(lab::Progress::default());
    let stop = settings.stop;
    let began = tokio::time::Instant::now();
    let length = match stop {
        lab::Stop::After(duration) => u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        lab::Stop::Requests(count) => count,
    };
    let bar = progress::bar(length, "load");
    let running = lab::run(settings, Arc::clone(&progress));
    tokio::pin!(running);
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    tokio::pin!(interrupted);
    let mut ending = false;
    loop {
        tokio::select! {
            report = &mut running => {
                bar.finish_and_clear();
                return report;
            }
            () = &mut interrupted, if !ending => {
                ending = true;
                progress.stop();
            }
            _ = tick.tick() => {
                let done = progress.succeeded() + progress.failed();
                bar.set_position(match stop {
                    lab::Stop::After(_) => u64::try_from(began.elapsed().as_millis()).unwrap_or(length).min(length),
                    lab::Stop::Requests(_) => done,
                });
                let rate = progress.succeeded() as f64 / began.elapsed().as_secs_f64().max(0.001);
                bar.set_message(format!("{} requests, {rate:.0}/s, {} failed", units::count(done), progress.failed()));
            }
        }
    }
}

const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];

fn print(report: &lab::Report) {
    let all = report.latency_ns();
    println!(
        "{} requests succeeded in {:.1} s over {} connections: {:.0}/s, {} failed, {} of answers",
        units::count(report.succeeded()),
        report.elapsed.as_secs_f64(),
        report.connections,
        report.throughput(),
        units::count(report.failures().total()),
        units::bytes(report.body_bytes),
    );
    for (name, quantile) in QUANTILES {
        println!("  {name:<6} {}", units::duration(all.value_at_quantile(quantile)));
    }
    println!("  {:<6} {}", "max", units::duration(all.max()));
    for line in failure_lines(&report.failures()) {
        println!("  failed: {line}");
    }
    if report.templates.len() > 1 {
        for template in &report.templates {
            println!(
                "  {:>10} x {}   p50 {}, p99 {}, {} failed",
                units::count(template.latency_ns.len()),
                template.name,
                units::duration(template.latency_ns.value_at_quantile(0.5)),
                units::duration(template.latency_ns.value_at_quantile(0.99)),
                template.failures.total(),
            );
        }
    }
}

fn failure_lines(failures: &lab::Failures) -> Vec<String> {
    let statuses = failures.statuses.iter().map(|(status, count)| format!("{count} with status {status}"));
    let connection =
        (failures.connection > 0).then(|| format!("{} by a lost connection", failures.connection));
    let timeout = (failures.timeout > 0).then(|| format!("{} by the time limit", failures.timeout));
    statuses.chain(connection).chain(timeout).collect()
}

pub fn to_json(report: &lab::Report) -> Value {
    let latency = |histogram: &hdrhistogram::Histogram<u64>| {
        let mut map = serde_json::Map::new();
        for (name, quantile) in QUANTILES {
            map.insert(format!("{name}_ns"), histogram.value_at_quantile(quantile).into());
        }
        map.insert("mean_ns".into(), histogram.mean().into());
        map.insert("max_ns".into(), histogram.max().into());
        Value::Object(map)
    };
    let failures =
        |f: &lab::Failures| json!({"statuses": f.statuses, "connection": f.connection, "timeout": f.timeout});
    let template = |t: &lab::TemplateReport| {
        json!({
            "name": t.name,
            "succeeded": t.latency_ns.len(),
            "latency": latency(&t.latency_ns),
            "failures": failures(&t.failures),
        })
    };
    let templates: Vec<Value> = report.templates.iter().map(template).collect();
    json!({
        "connections": report.connections,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "succeeded": report.succeeded(),
        "throughput": report.throughput(),
        "body_bytes": report.body_bytes,
        "latency": latency(&report.latency_ns()),
        "failures": failures(&report.failures()),
        "templates": templates,
    })
}
