//! Traces in a small notation, and what the analyses say of them. One helper for each question; the rest is data.

mod notation;

use std::fmt::Write;

use tacho_model::{OperationKind, TimeRange, TraceId};

use super::*;
use notation::blocks;

/// A web shop: two requests on one thread, the second fails; a task on another thread; a call to another service.
const SHOP: &str = "
shop h1 main trace=a1 base=1000 at=5000000000
  0 > http-server GET /ads
  10 > method list
  20 > database SELECT 1
  300 <
  5 > database SELECT 1
  200 <
  15 <
  50 <
  @0 request.id = 0123abcd-4567-89ef-0123-456789abcdef
  @0 http.status = 200
shop h1 main trace=a2 base=2000 at=6000000000
  0 > http-server POST /ads
  10 > method post
  40 > http-client POST /mail
  600 <
  7 !
  3 !
  @0 request.id = r-2
  @0 http.status = 500
shop h1 pool trace=a2 base=3000 at=6000000020 parent=2000+1
  0 > task index
  90 > method post
  10 <
  5 <
mail h2 main trace=a2 base=4000 at=6000000100 parent=2000+2
  0 > http-server POST /mail
  400 <
";

fn filter(service: &str, operation: &str) -> Filter {
    let some = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    Filter { service: some(service), operation: some(operation), range: TimeRange::ALL }
}

/// Operations in lines of: service, operation, count/errors, p50, min to max, total, self.
fn check_operations(traces: &str, filter: &Filter, expected: &str) {
    let mut said = String::new();
    for o in operations(&blocks(traces), filter, None) {
        let (count, errors) = (o.count, o.errors);
        assert_eq!(o.timeline.iter().map(|p| p.count).sum::<u64>(), count, "{}", o.operation);
        write!(said, "{} {} {count}/{errors} p50 {} ", o.service, o.operation, o.p50_ns).unwrap();
        writeln!(said, "{}..{} total {} self {}", o.min_ns, o.max_ns, o.total_ns, o.self_ns).unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
}

/// Services in lines of: service, hosts, requests/errors, calls, p50 and p99.
fn check_services(traces: &str, filter: &Filter, expected: &str) {
    let mut said = String::new();
    for s in services(&blocks(traces), filter) {
        assert_eq!(s.timeline.iter().map(|p| p.requests).sum::<u64>(), s.requests, "{}", s.service);
        let (hosts, requests, errors) = (s.hosts.join(","), s.requests, s.errors);
        writeln!(
            said,
            "{} on {hosts}: {requests}/{errors} requests, {} calls, {}, {}",
            s.service, s.calls, s.p50_ns, s.p99_ns
        )
        .unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
}

/// Found traces in lines of: id, service, operation, duration, calls, outcome, request id, status.
fn check_search(traces: &str, change: impl FnOnce(&mut Search), expected: &str) -> SearchResult {
    let mut asked = Search {
        filter: filter("", ""),
        duration_ns_min: None,
        duration_ns_max: None,
        outcome: None,
        request_id: None,
        limit: 100,
    };
    change(&mut asked);
    let found = search(&blocks(traces), &asked);
    let mut said = String::new();
    for t in &found.traces {
        let (id, status) = (t.trace_id.0, t.http_status.map_or(String::new(), |status| status.to_string()));
        let request = t.request_id.as_deref().unwrap_or_default();
        let outcome = t.outcome.name();
        write!(said, "{id:x} {} {} {} ns {} calls {outcome}", t.service, t.operation, t.duration_ns, t.calls)
            .unwrap();
        writeln!(said, " {request} {status}").unwrap();
    }
    let trimmed: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(trimmed.join("\n"), expected.trim());
    found
}

/// Spans of trace `id`, indented by depth: operation, thread, offset, duration, self, outcome.
fn check_trace(traces: &str, id: u128, expected: &str) -> Trace {
    let found = trace(&blocks(traces), TraceId(id)).expect("the trace is there");
    let mut said = String::new();
    for s in &found.spans {
        let indent = "  ".repeat(s.depth as usize);
        let attributes: String = s.attributes.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        let times = format!("+{} {} self {}", s.offset_ns, s.duration_ns, s.self_ns);
        writeln!(said, "{indent}{} {}: {times} {}{attributes}", s.operation, s.thread, s.outcome.name())
            .unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
    found
}

/// The tree, indented: operation, count/errors, total, self.
fn check_calltree(traces: &str, filter: &Filter, expected: &str) {
    fn write_node(said: &mut String, node: &CallTreeNode, depth: usize) {
        let indent = "  ".repeat(depth);
        let (count, errors) = (node.count, node.errors);
        writeln!(
            said,
            "{indent}{} {count}/{errors} total {} self {}",
            node.operation, node.total_ns, node.self_ns
        )
        .unwrap();
        node.children.iter().for_each(|child| write_node(said, child, depth + 1));
    }
    let mut said = String::new();
    let tree = calltree(&blocks(traces), filter);
    tree.root.children.iter().for_each(|node| write_node(&mut said, node, 0));
    assert_eq!(said.trim(), expected.trim());
    assert_eq!(tree.root.count, tree.root.children.iter().map(|node| node.count).sum::<u64>());
}

/// Nodes, then edges.
fn check_graph(traces: &str, filter: &Filter, level: Level, expected: &str) -> Graph {
    let graph = graph(&blocks(traces), filter, level);
    let mut said = String::new();
    for n in &graph.nodes {
        writeln!(said, "{}: {}/{} total {} self {}", n.id, n.count, n.errors, n.total_ns, n.self_ns).unwrap();
    }
    for e in &graph.edges {
        writeln!(said, "{} -> {}: {}/{} total {}", e.from, e.to, e.count, e.errors, e.total_ns).unwrap();
    }
    assert_eq!(said.trim(), expected.trim());
    graph
}

#[test]
fn operations_are_counted_and_timed() {
    check_operations(SHOP, &filter("", ""), "X");
}

#[test]
fn services_are_counted_by_their_requests() {
    check_services(SHOP, &filter("", ""), "X");
}

#[test]
fn traces_are_found() {
    check_search(SHOP, |_| {}, "X");
}

#[test]
fn a_trace_is_one_tree() {
    check_trace(SHOP, 0xa2, "X");
}

#[test]
fn the_call_tree_follows_causes() {
    check_calltree(SHOP, &filter("", ""), "X");
}

#[test]
fn the_graph_has_both_levels() {
    check_graph(SHOP, &filter("", ""), Level::Operation, "X");
}

#[test]
fn the_graph_has_services() {
    check_graph(SHOP, &filter("", ""), Level::Service, "X");
}
