//! `tacho operations`: operations with their counts, errors and times.

use std::collections::BTreeSet;

use serde_json::Value;
use tacho_api::printable::printable;
use tacho_api::units;

use super::ask::{self, Range, Server, Span};
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// List operations with counts, errors and percentiles, by total time, largest first
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho operations --service shop
  tacho operations --kind database --last 15m --json")]
pub struct Operations {
    /// Only operations of this service
    #[arg(long)]
    service: Option<String>,
    /// Only the operation with this full name
    #[arg(long)]
    operation: Option<String>,
    /// List only operations of this kind: method, http-server, http-client, database, connection-wait or task
    #[arg(long)]
    kind: Option<String>,
    /// Operations to show
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = ask::at_least_one::<usize>)]
    limit: usize,
    /// Compute from the calls alone, without their summaries: percentiles within 0.1 % instead of 1 %, and the self times of all
    /// HTTP clients, which summaries do not have
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    server: Server,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
}

impl Operations {
    pub fn run(self) -> Result<(), Failure> {
        let own = [
            ("service", self.service.clone()),
            ("operation", self.operation.clone()),
            ("kind", self.kind),
            ("exact", self.exact.then(|| "true".to_owned())),
        ];
        let range = self.span.range()?;
        let params = range.params().map(|(name, value)| (name, Some(value)));
        let answer = self.server.get("/api/operations", own.into_iter().chain(params))?;
        let mut all: Vec<_> = ask::list(&answer, "operations").iter().collect();
        if all.is_empty() {
            let service = self.service.as_deref();
            ask::check_service(&self.server, service, range)?;
            ask::check_operation(&self.server, self.operation.as_deref(), service, range)?;
        }
        if self.json {
            ask::print_json(&answer);
            return Ok(());
        }
        warn_of_drops(&self.server, self.service.as_deref(), &all, range);
        if all.is_empty() {
            eprintln!("no operation matches {range}");
            return Ok(());
        }
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("SERVICE", left),
            ("KIND", left),
            ("CALLS", right),
            ("ERRORS", right),
            ("4XX", right),
            ("P50", right),
            ("P95", right),
            ("P99", right),
            ("TOTAL", right),
            ("SELF", right),
            ("OPERATION", left),
        ]);
        all.sort_by_key(|o| std::cmp::Reverse(ask::number(o, "total_ns")));
        let more = all.len().saturating_sub(self.limit);
        for o in all.into_iter().take(self.limit) {
            let ns = |name| units::duration(ask::number(o, name));
            let count = |name| units::count(ask::number(o, name));
            table.row([
                ask::text(o, "service").to_owned(),
                ask::text(o, "kind").to_owned(),
                count("count"),
                count("errors"),
                count("refused"),
                ns("p50_ns"),
                ns("p95_ns"),
                ns("p99_ns"),
                ns("total_ns"),
                if o["self_ns"].is_null() { "-".to_owned() } else { ns("self_ns") },
                ask::text(o, "operation").to_owned(),
            ]);
        }
        print!("{table}");
        if more > 0 {
            let more = units::counted(more as u64, "more operation matches", "more operations match");
            eprintln!("{more}: raise --limit, or narrow the search");
        }
        Ok(())
    }
}

/// Prints a hint for each selected service whose agents dropped calls in the range, if the server answers in time.
fn warn_of_drops(server: &Server, service: Option<&str>, operations: &[&Value], range: Range) {
    let milliseconds = range.end.saturating_sub(range.start) / 1_000_000;
    if milliseconds == 0 {
        return;
    }
    // Each agent counts from 0. Without a report at the start of the range, all drops of the agent are in the range.
    let total = "tacho_agent_dropped_total{kind=\"execution\"}";
    let last = format!("max_over_time({total}[{milliseconds}ms])");
    let query = format!("sum by (service) ({last} - ({total} offset {milliseconds}ms or {last} * 0)) > 0");
    let params = [("query", Some(query)), ("time", Some(ask::seconds(range.end)))];
    let Some(answer) = server.get_for_hint("/api/v1/query", params) else { return };
    let selected: BTreeSet<&str> =
        operations.iter().map(|o| ask::text(o, "service")).chain(service).collect();
    for dropping in ask::list(&answer["data"], "result") {
        let name = ask::text(&dropping["metric"], "service");
        let count = dropping["value"][1].as_str().and_then(|text| text.parse::<f64>().ok());
        if let Some(count) = count.filter(|_| selected.contains(name)) {
            let name = printable(name);
            eprintln!(
                "hint: agents of {name} dropped {count:.0} calls in this range, which are missing here: see `tacho agents`"
            );
        }
    }
}
