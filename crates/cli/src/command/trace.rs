//! `tacho trace`: shows one trace as a tree.

use serde_json::Value;
use tacho_api::printable::printable;
use tacho_api::units;

use super::ask::{self, Server};
use crate::failure::Failure;

/// Length of the bar of a call, characters.
const BAR: usize = 24;

/// Show one trace as a tree, with time, self time and position in time of each call
#[derive(clap::Args)]
#[command(after_help = "Example:\n  tacho trace 4bf92f3577b34da6a3ce929d0e0e4736")]
pub struct Trace {
    /// Trace id, 32 hexadecimal digits, as `tacho traces` shows it
    #[arg(value_parser = id)]
    id: String,
    /// Calls to show
    #[arg(long, default_value_t = 500, value_name = "N")]
    limit: usize,
    #[command(flatten)]
    server: Server,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
}

impl Trace {
    pub fn run(self) -> Result<(), Failure> {
        let trace = self.server.get(&format!("/api/traces/{}", self.id), [])?;
        if self.json {
            ask::print_json(&trace)
        } else {
            print!("{}", tree(&trace, self.limit))
        }
        Ok(())
    }
}

/// Calls below this depth are not indented further.
const DEPTH_SHOWN_MAX: usize = 200;

fn id(text: &str) -> Result<String, String> {
    match text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text.to_owned()),
        false => Err("give 32 hexadecimal digits, as `tacho traces` shows them".into()),
    }
}

fn tree(trace: &Value, limit: usize) -> String {
    let spans = ask::list(trace, "spans");
    let total = ask::number(trace, "duration_ns");
    let mut out = format!(
        "trace {}  {}  {}  {}\n",
        printable(ask::text(trace, "trace_id")),
        ask::utc(&trace["start"]),
        units::duration(total),
        units::counted(spans.len() as u64, "call", "calls"),
    );
    out.push_str(&format!("{:>10}  {:>10}  {:BAR$}  OPERATION\n", "TIME", "SELF", ""));
    let mut place = ("", "");
    for span in spans.iter().take(limit) {
        let here = (ask::text(span, "service"), ask::text(span, "thread"));
        out.push_str(&line(span, total, here != place));
        place = here;
    }
    if spans.len() > limit {
        out.push_str(&format!("... and {} more: raise --limit\n", spans.len() - limit));
    }
    out
}

/// `changed`: service or thread differ from those of the previous line, and are shown.
fn line(span: &Value, total: u64, changed: bool) -> String {
    let ns = |name| ask::number(span, name);
    let indent = "  ".repeat(usize::try_from(ns("depth")).unwrap_or(0).min(DEPTH_SHOWN_MAX));
    let mut text = format!("{indent}{}", ask::text(span, "operation"));
    if changed {
        text.push_str(&format!("  [{}, {}]", ask::text(span, "service"), ask::text(span, "thread")));
    }
    match ask::text(span, "outcome") {
        "ok" => {}
        outcome => text.push_str(&format!("  {outcome}")),
    }
    for (key, value) in span["attributes"].as_object().into_iter().flatten() {
        text.push_str(&format!(
            "  {key}={}",
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        ));
    }
    let bar = bar(ns("offset_ns"), ns("duration_ns"), total);
    let [time, own] = ["duration_ns", "self_ns"].map(|name| units::duration(ns(name)));
    format!("{time:>10}  {own:>10}  {bar}  {}\n", printable(&text))
}

/// Draws the time of a call within the whole trace. The bar has at least one mark.
fn bar(offset: u64, duration: u64, total: u64) -> String {
    let at = |ns: u64| {
        let share = u128::from(ns.min(total)) * BAR as u128 / u128::from(total.max(1));
        usize::try_from(share).unwrap_or(BAR)
    };
    let from = at(offset).min(BAR - 1);
    let to = at(offset.saturating_add(duration)).max(from + 1);
    format!("{}{}{}", "·".repeat(from), "█".repeat(to - from), "·".repeat(BAR - to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bar_shows_the_time_of_a_call() {
        assert_eq!(bar(0, 100, 100), "█".repeat(BAR));
        assert_eq!(bar(100, 0, 100), format!("{}█", "·".repeat(BAR - 1)));
        assert_eq!(bar(50, 25, 100), format!("{}{}{}", "·".repeat(12), "█".repeat(6), "·".repeat(6)));
        assert_eq!(bar(0, 0, 0).chars().count(), BAR);
    }

    #[test]
    fn a_tree_is_indented_and_names_service_and_thread() {
        let span = |depth: u32, operation: &str, outcome: &str| {
            json!({"depth": depth, "service": "shop", "thread": "main", "operation": operation, "offset_ns": 0,
                "duration_ns": 2_000, "self_ns": 500, "outcome": outcome, "attributes": {"http.status": 500}})
        };
        let spans =
            [span(0, "GET /ads", "ok"), span(1, "\u{1b}[2JBoard.list()\n", "failed"), span(1, "x", "ok")];
        let text = tree(&json!({"trace_id": "ab", "start": "0", "duration_ns": 2_000, "spans": spans}), 2);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "trace ab  1970-01-01T00:00:00.000Z  2.00 µs  3 calls");
        assert!(rows[2].ends_with("█  GET /ads  [shop, main]  http.status=500"), "{text}");
        assert!(rows[3].ends_with("█    \\u{1b}[2JBoard.list()\\n  failed  http.status=500"), "{text}");
        assert_eq!(rows[4], "... and 1 more: raise --limit");
        let deep = json!({"trace_id": "\u{1b}[2J", "start": "0", "spans": [span(u32::MAX, "x", "ok")]});
        let text = tree(&deep, 2);
        assert!(text.starts_with("trace \\u{1b}[2J") && text.len() < 1_000, "{text}");
        let text = tree(&json!({"start": "0", "spans": [span(0, "x", "ok")]}), 2);
        assert!(text.starts_with("trace   1970-01-01T00:00:00.000Z  0 ns  1 call\n"), "{text}");
    }
}
