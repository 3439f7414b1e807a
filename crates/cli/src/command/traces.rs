//! `tacho traces`: searches traces.

use serde_json::Value;
use tacho_api::printable::printable;
use tacho_api::units;

use super::ask::{self, Range, Server, Span};
use crate::failure::Failure;
use crate::terminal::table::{Align, Table};

/// Search traces, by default the newest first
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho traces --service shop --min-duration 100ms
  tacho traces --outcome failed --last 15m
  tacho traces --operation 'SELECT * FROM ad' --order slowest --last 1d
  tacho traces --request-id 0af76519-16cd-43dd-8448-eb211c80319c --json
  tacho traces --status 5xx --order slowest --last 1d
  tacho traces --text 'from ad' --min-duration 100ms
  tacho traces --exception SQLTimeoutException --service shop
  tacho traces --attribute tenant=acme --attribute region=eu

With --operation, --text, --status, --attribute or --exception, the search looks for calls that meet all conditions.")]
pub struct Traces {
    /// Traces that contain a call of this service. Without --operation, the range, duration, outcome and order apply to the
    /// outermost call of the service
    #[arg(long)]
    service: Option<String>,
    /// Traces that contain this operation: its whole name, as `tacho operations` lists it. The range, duration, outcome and
    /// order apply to the call of the operation
    #[arg(long)]
    operation: Option<String>,
    /// Traces that took at least this long, for example 100ms
    #[arg(long, value_name = "DURATION", value_parser = ask::duration, allow_hyphen_values = true)]
    min_duration: Option<i64>,
    /// Traces that took at most this long
    #[arg(long, value_name = "DURATION", value_parser = ask::duration, allow_hyphen_values = true)]
    max_duration: Option<i64>,
    /// ok, failed (an exception or an error status) or running (the end of the trace is not recorded)
    #[arg(long)]
    outcome: Option<String>,
    /// The trace of the request with this id
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
    /// Traces that contain a call whose operation has this text in its name, for example a part of a statement. ASCII letters
    /// match in both cases
    #[arg(long)]
    text: Option<String>,
    /// Traces that contain an HTTP request with this status, for example 503, or with a status of this class, for example 5xx
    #[arg(long)]
    status: Option<String>,
    /// Traces that contain a call with this attribute; repeatable, then one call has all of them
    #[arg(long = "attribute", value_name = "KEY=VALUE")]
    attributes: Vec<String>,
    /// Traces that contain a call with an exception of this class, with or without its package
    #[arg(long, value_name = "CLASS")]
    exception: Option<String>,
    /// newest, oldest, slowest or fastest: which traces come first, of all traces in the range
    #[arg(long, default_value = "newest")]
    order: String,
    /// Traces to show, at most 10000
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = ask::at_least_one::<usize>)]
    limit: usize,
    /// The next page: the CURSOR that the page before printed. Repeat the other options, but with the --start and --end
    /// that it printed instead of --last
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    server: Server,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
}

impl Traces {
    pub fn run(self) -> Result<(), Failure> {
        let own = [
            ("service", self.service.clone()),
            ("operation", self.operation.clone()),
            ("min_duration", self.min_duration.map(ask::seconds)),
            ("max_duration", self.max_duration.map(ask::seconds)),
            ("outcome", self.outcome),
            ("request_id", self.request_id),
            ("text", self.text),
            ("status", self.status),
            ("exception", self.exception),
            ("after", self.after),
            ("order", Some(self.order)),
            ("limit", Some(self.limit.to_string())),
        ];
        let range = self.span.range()?;
        let params = range.params().map(|(name, value)| (name, Some(value)));
        let attributes = self.attributes.into_iter().map(|pair| ("attribute", Some(pair)));
        let answer = self.server.get("/api/traces", own.into_iter().chain(attributes).chain(params))?;
        let traces = ask::list(&answer, "traces");
        if traces.is_empty() {
            let service = self.service.as_deref();
            ask::check_service(&self.server, service, range)?;
            ask::check_operation(&self.server, self.operation.as_deref(), service, range)?;
        }
        if self.json {
            ask::print_json(&answer);
            return Ok(());
        }
        if traces.is_empty() {
            eprintln!("no trace matches {range}");
            return Ok(());
        }
        print!("{}", table(traces));
        if answer["truncated"] == true {
            eprintln!("more traces match: raise --limit, or narrow the search{}", next(&answer, range));
        }
        Ok(())
    }
}

fn next(answer: &Value, range: Range) -> String {
    answer["next"].as_str().map_or_else(String::new, |cursor| {
        format!(", or repeat it with {} --after {}", range.options(), printable(cursor))
    })
}

/// If the search looks for calls, the columns START, SERVICE, OPERATION, TIME and OUTCOME are about the call that matched.
/// Otherwise they are about the trace, as the other columns always are.
fn table(traces: &[Value]) -> Table<9> {
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([
        ("TRACE", left),
        ("START", left),
        ("SERVICE", left),
        ("OPERATION", left),
        ("TIME", right),
        ("TRACE TIME", right),
        ("CALLS", right),
        ("TRACE STATUS", right),
        ("OUTCOME", left),
    ]);
    for trace in traces {
        let call = if trace["match"].is_object() { &trace["match"] } else { trace };
        table.row([
            ask::text(trace, "trace_id").to_owned(),
            ask::utc(&call["start"]),
            ask::text(call, "service").to_owned(),
            ask::text(call, "operation").to_owned(),
            units::duration(ask::number(call, "duration_ns")),
            units::duration(ask::number(trace, "duration_ns")),
            units::count(ask::number(trace, "calls")),
            trace["http_status"].as_i64().map_or_else(|| "-".to_owned(), |status| status.to_string()),
            ask::text(call, "outcome").to_owned(),
        ]);
    }
    table
}
