//! Queries the results of the demo over HTTP.

use std::time::Duration;

use serde_json::{Value, json};
use tacho_api::units::{count, duration, percent};
use tacho_lab as lab;

use super::SERVICE;
use crate::client::{Client, Named};
use crate::command::{graph, load};
use crate::failure::Failure;

/// Limit on the operations for which the demo shows callees.
const GRAPH_NODES: usize = 12;
/// A record type that the example application declares (`examples/bulletin-board/java/.../BoardEvents.java`).
const EVENT: &str = "board_ad_posted";

pub struct Findings {
    report: lab::Report,
    service: Value,
    operations: Vec<Value>,
    graph: Value,
    status: Value,
    /// Number of records of [`EVENT`].
    events: u64,
    /// Executions that the server received.
    received: f64,
    /// Bytes over the native protocol, nearly all of them for the executions.
    wire_bytes: f64,
    /// Records of all kinds that the agent dropped.
    dropped: f64,
}

/// Waits for the last executions ([`settle`]), makes the server flush, and queries the results.
pub async fn collect(http: &str, report: lab::Report) -> Result<Findings, Failure> {
    let client = Client::new(http, Named::Default, None)?;
    let received = settle(&client).await?;
    client.post("/api/flush").await?;
    let metrics = client.get_text("/metrics").await?;
    let services = client.get("/api/services").await?;
    let operations = client.get(&format!("/api/operations?service={SERVICE}")).await?;
    let events = client.get(&format!("/api/v1/entries?match%5B%5D={EVENT}&limit=0")).await?;
    Ok(Findings {
        report,
        service: find(&services["services"], |s| s["service"] == SERVICE),
        operations: operations["operations"].as_array().cloned().unwrap_or_default(),
        graph: client.get(&format!("/api/graph?level=operation&service={SERVICE}")).await?,
        status: client.get("/api/status").await?,
        events: events["data"]["matched"].as_u64().unwrap_or(0),
        received,
        wire_bytes: metric(&metrics, "tacho_received_bytes_total", &["native"]),
        dropped: metric(&metrics, "tacho_records_dropped_total", &[SERVICE]),
    })
}

/// Waits until the number of received executions has not changed for a second, at most half a minute. Returns this number.
async fn settle(client: &Client) -> Result<f64, Failure> {
    let mut before = -1.0;
    for _ in 0..30 {
        let metrics = client.get_text("/metrics").await?;
        let now = metric(&metrics, "tacho_records_received_total", &[SERVICE, "execution"]);
        if now == before {
            return Ok(now);
        }
        before = now;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(before)
}

/// The sum of a metric over all series that have all of these label values.
fn metric(text: &str, name: &str, values: &[&str]) -> f64 {
    let has_all = |line: &&str| values.iter().all(|value| line.contains(&format!("=\"{value}\"")));
    let lines = text.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
    let lines = lines.filter(has_all);
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

fn find(list: &Value, wanted: impl Fn(&Value) -> bool) -> Value {
    list.as_array().and_then(|all| all.iter().find(|v| wanted(v)).cloned()).unwrap_or(Value::Null)
}

impl Findings {
    fn total_ns(&self, kind: &str) -> f64 {
        self.operations.iter().filter(|o| o["kind"] == kind).filter_map(|o| o["total_ns"].as_f64()).sum()
    }

    fn database_share(&self) -> f64 {
        self.total_ns("database") / self.total_ns("http-server")
    }

    fn slowest(&self) -> Option<&Value> {
        let key = |o: &&Value| o["p95_ns"].as_u64().unwrap_or(0);
        self.operations.iter().filter(|o| o["kind"] == "http-server").max_by_key(key)
    }

    fn stored_bytes_per_call(&self) -> f64 {
        let stored = &self.status["stored"]["execution"];
        stored["bytes"].as_f64().unwrap_or(f64::NAN) / stored["records"].as_f64().unwrap_or(f64::NAN)
    }

    pub fn print(&self) {
        let client = self.report.latency_ns();
        let server = |key: &str| duration(self.service[key].as_u64().unwrap_or(0));
        println!(
            "\nrequests        {} sent and answered, {} failed; {} seen in the server",
            count(self.report.succeeded()),
            self.report.failures().total(),
            count(self.service["requests"].as_u64().unwrap_or(0)),
        );
        println!(
            "throughput      {:.0} requests/s over {} connections",
            self.report.throughput(),
            self.report.connections
        );
        println!("                {:>10} {:>10} {:>10}", "p50", "p95", "p99");
        let at = |q| duration(client.value_at_quantile(q));
        println!("at the client   {:>10} {:>10} {:>10}", at(0.5), at(0.95), at(0.99));
        println!(
            "in the server   {:>10} {:>10} {:>10}",
            server("p50_ns"),
            server("p95_ns"),
            server("p99_ns")
        );
        if let Some(slowest) = self.slowest() {
            let name = slowest["operation"].as_str().unwrap_or("");
            println!("slowest         {name} (p95 {})", duration(slowest["p95_ns"].as_u64().unwrap_or(0)));
        }
        println!("in the database {} of the time of requests", percent(self.database_share()));
        println!(
            "calls           {} received, {} dropped",
            count(self.received as u64),
            count(self.dropped as u64)
        );
        println!("on the wire     {:.1} bytes a call", self.wire_bytes / self.received);
        println!("stored          {:.2} bytes a call", self.stored_bytes_per_call());
        println!("declared        {} records of {EVENT}", count(self.events));
        println!("\ncall graph");
        print!("{}", graph::to_text(&self.graph, &graph::Detail::Main(GRAPH_NODES)));
    }

    pub fn to_json(&self) -> Value {
        json!({
            "client": load::to_json(&self.report),
            "service": self.service,
            "operations": self.operations,
            "graph": self.graph,
            "database_share": self.database_share(),
            "calls_received": self.received,
            "calls_dropped": self.dropped,
            "wire_bytes_per_call": self.wire_bytes / self.received,
            "stored_bytes_per_call": self.stored_bytes_per_call(),
            "declared_records": { EVENT: self.events },
        })
    }

    /// Fails if the agent dropped records, or the server recorded fewer requests than were answered. The exit code of
    /// `tacho demo --exit` is thereby a test.
    pub fn verdict(&self) -> Result<(), Failure> {
        let sent = self.report.succeeded() + self.report.failures().statuses.values().sum::<u64>();
        let seen = self.service["requests"].as_u64().unwrap_or(0);
        if self.dropped > 0.0 {
            return Err(Failure::new(format!("{} records were dropped", self.dropped)));
        }
        if seen < sent {
            return Err(Failure::new(format!("{sent} requests were answered but {seen} were recorded")));
        }
        Ok(())
    }
}
