//! `tacho graph`: the call graph of services or operations.

use std::collections::BTreeSet;

use serde_json::Value;
use tacho_api::printable::{printable, printable_lines};
use tacho_api::units;

use super::ask::{self, Server, Span};
use crate::failure::Failure;

/// Show the call graph as text, for Graphviz, or as JSON
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tacho graph --level service
  tacho graph --service shop --dot | dot -Tsvg > shop.svg")]
pub struct Graph {
    /// Only this service, its callers and its callees
    #[arg(long)]
    service: Option<String>,
    /// Kind of the nodes: operation, or service (services and their databases)
    #[arg(long, default_value = "operation")]
    level: String,
    /// Find the callers of all segments among all calls, without summaries, which have only callers that were stored at about
    /// the same time
    #[arg(long)]
    exact: bool,
    #[command(flatten)]
    span: Span,
    #[command(flatten)]
    server: Server,
    /// Print for Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// Print the server's JSON answer
    #[arg(long)]
    json: bool,
}

impl Graph {
    pub fn run(self) -> Result<(), Failure> {
        let format = self.dot.then(|| "dot".to_owned());
        let own = [
            ("service", self.service.clone()),
            ("level", Some(self.level)),
            ("format", format),
            ("exact", self.exact.then(|| "true".to_owned())),
        ];
        let range = self.span.range()?;
        let params = own.into_iter().chain(range.params().map(|(name, value)| (name, Some(value))));
        if self.dot {
            let dot = self.server.get_text("/api/graph", params)?;
            if !dot.contains("[label=") {
                ask::check_service(&self.server, self.service.as_deref(), range)?;
            }
            print!("{}", printable_lines(&dot));
            return Ok(());
        }
        let graph = self.server.get("/api/graph", params)?;
        let is_empty = ask::list(&graph, "nodes").is_empty();
        if is_empty {
            ask::check_service(&self.server, self.service.as_deref(), range)?;
        }
        if self.json {
            ask::print_json(&graph)
        } else if is_empty {
            eprintln!("no calls {range}");
        } else {
            print!("{}", to_text(&graph, &Detail::All));
            let unknown = ask::number(&graph, "unknown_callers");
            if unknown > 0 {
                let remedy = if self.exact { "" } else { "; --exact searches them among all calls" };
                println!("callers that were not found: of {} calls{remedy}", units::count(unknown));
            }
        }
        Ok(())
    }
}

pub enum Detail {
    All,
    /// At most this many nodes, and only their most expensive calls. Nodes without callees are omitted.
    Main(usize),
}

/// [`Detail::Main`] shows a call only if it takes at least 1/`SHARE` (2 %) of the time of its caller.
const SHARE: u64 = 50;

/// Formats each node with its callees. Nodes are sorted by time, the longest first. Callees have the order of the answer.
pub fn to_text(graph: &Value, detail: &Detail) -> String {
    let mut nodes: Vec<&Value> = ask::list(graph, "nodes").iter().collect();
    nodes.sort_by_key(|node| std::cmp::Reverse(ask::number(node, "total_ns")));
    let edges = ask::list(graph, "edges");
    if let Detail::Main(nodes_max) = detail {
        nodes.retain(|node| edges.iter().any(|edge| edge["from"] == node["id"]));
        nodes.truncate(*nodes_max);
    }
    let mut out = String::new();
    let services = services(graph);
    for node in nodes {
        let kind = ask::text(node, "kind");
        let place = service(node, &services).map_or(kind.into(), |service| format!("{service}, {kind}"));
        out.push_str(&format!("{}  [{place}]  {}\n", name(node), figures(node)));
        let matters = |edge: &&Value| match detail {
            Detail::All => true,
            Detail::Main(_) => ask::number(edge, "total_ns") * SHARE >= ask::number(node, "total_ns"),
        };
        for edge in edges.iter().filter(|edge| edge["from"] == node["id"]).filter(matters) {
            let to = ask::list(graph, "nodes").iter().find(|node| node["id"] == edge["to"]);
            let to = to.map_or_else(
                || ask::text(edge, "to").to_owned(),
                |to| service(to, &services).map_or(name(to), |service| format!("{}  [{service}]", name(to))),
            );
            out.push_str(&format!("  -> {to}  {}\n", figures(edge)));
        }
    }
    if out.is_empty() { "no calls in this time\n".into() } else { out }
}

fn services(graph: &Value) -> BTreeSet<&str> {
    ask::list(graph, "nodes").iter().map(|node| ask::text(node, "service")).collect()
}

/// The service of an operation, if the graph has several services.
fn service(node: &Value, services: &BTreeSet<&str>) -> Option<String> {
    let is_shown = services.len() > 1 && !ask::text(node, "operation").is_empty();
    is_shown.then(|| printable(ask::text(node, "service")))
}

/// The name of a node. At service level, a service and its databases are two nodes with the same service name.
fn name(node: &Value) -> String {
    let service = ask::text(node, "service");
    match (ask::text(node, "operation"), ask::text(node, "kind")) {
        ("", "database") => format!("databases of {}", printable(service)),
        ("", _) => printable(service),
        (operation, _) => printable(operation),
    }
}

fn figures(value: &Value) -> String {
    let (count, errors) = (ask::number(value, "count"), ask::number(value, "errors"));
    let mean = ask::number(value, "total_ns") / count.max(1);
    let failed = if errors > 0 { format!(", {} failed", units::count(errors)) } else { String::new() };
    format!("{} x {}{failed}", units::count(count), units::duration(mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nodes_are_sorted_by_time_and_followed_by_their_callees() {
        let node = |id: &str, operation: &str, total: u64| {
            json!({"id": id, "operation": operation, "service": "s", "kind": "method",
                "count": 2, "errors": 0, "total_ns": total})
        };
        let graph = json!({
            "nodes": [node("1", "b\u{9b}", 2_000), node("2", "a", 4_000)],
            "edges": [{"from": "2", "to": "1", "count": 2, "errors": 1, "total_ns": 2_000}],
        });
        let expect = "a  [method]  2 x 2.00 µs\n  -> b\\u{9b}  2 x 1.00 µs, 1 failed\nb\\u{9b}  [method]  2 x 1.00 µs\n";
        assert_eq!(to_text(&graph, &Detail::All), expect);
        assert_eq!(
            to_text(&graph, &Detail::Main(1)),
            "a  [method]  2 x 2.00 µs\n  -> b\\u{9b}  2 x 1.00 µs, 1 failed\n"
        );
        assert_eq!(to_text(&json!({"nodes": [], "edges": []}), &Detail::All), "no calls in this time\n");
    }

    #[test]
    fn operations_of_several_services_have_the_service() {
        let node = |id: &str, service: &str, operation: &str, kind: &str| {
            json!({"id": id, "operation": operation, "service": service, "kind": kind,
                "count": 1, "errors": 0, "total_ns": 1_000})
        };
        let edges = json!([{"from": "1", "to": "2", "count": 1, "errors": 0, "total_ns": 1_000}]);
        let [first, second] = [("1", "shop"), ("2", "p\u{9b}y")]
            .map(|(id, service)| node(id, service, "GET /a", "http-server"));
        let text = to_text(&json!({"nodes": [first, second], "edges": edges}), &Detail::All);
        let expect = "GET /a  [shop, http-server]  1 x 1.00 µs\n  -> GET /a  [p\\u{9b}y]  1 x 1.00 µs\n\
                      GET /a  [p\\u{9b}y, http-server]  1 x 1.00 µs\n";
        assert_eq!(text, expect);
        let [first, second] = [("1", "shop", "service"), ("2", "pay", "service")]
            .map(|(id, name, kind)| node(id, name, "", kind));
        let text = to_text(&json!({"nodes": [first, second], "edges": edges}), &Detail::All);
        assert_eq!(
            text,
            "shop  [service]  1 x 1.00 µs\n  -> pay  1 x 1.00 µs\npay  [service]  1 x 1.00 µs\n"
        );
    }
}
