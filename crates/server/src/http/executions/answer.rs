//! Formats answers about executions as JSON. `docs/api.md` describes all fields.
//!
//! Step before: `crates/query/src/executions/` computes the answer. Step after: `ui/src/lib/api.ts` receives it.

use serde_json::{Map, Value, json};
use tacho_model::AttributeValue;
use tacho_query::executions::{
    CallTree, CallTreeNode, Graph, Match, OperationStats, SearchResult, ServiceStats, Span, Trace,
    TraceSummary,
};

pub fn services(list: &[ServiceStats], limit: usize, quantile_error: f64) -> Value {
    let services: Vec<Value> = list.iter().take(limit).map(service).collect();
    json!({ "services": services, "truncated": list.len() > limit, "quantile_error": quantile_error })
}

fn service(s: &ServiceStats) -> Value {
    let timeline: Vec<Value> =
        s.timeline.iter().map(|p| json!([p.unix_s, p.requests, p.errors, p.p95_ns])).collect();
    let hosts: Vec<&str> = s.hosts.iter().map(|host| &**host).collect();
    json!({
        "service": &*s.service,
        "hosts": hosts,
        "requests": s.requests,
        "calls": s.calls,
        "errors": s.errors,
        "refused": s.refused,
        "rate": s.rate,
        "p50_ns": s.p50_ns,
        "p95_ns": s.p95_ns,
        "p99_ns": s.p99_ns,
        "timeline": timeline,
    })
}

pub fn operations(list: &[OperationStats], limit: usize, quantile_error: f64) -> Value {
    let operations: Vec<Value> = list.iter().take(limit).map(operation).collect();
    json!({ "operations": operations, "truncated": list.len() > limit, "quantile_error": quantile_error })
}

fn operation(o: &OperationStats) -> Value {
    let timeline: Vec<Value> = o.timeline.iter().map(|p| json!([p.unix_s, p.count, p.errors])).collect();
    json!({
        "service": &*o.service,
        "operation": &*o.operation,
        "kind": o.kind.name(),
        "count": o.count,
        "errors": o.errors,
        "refused": o.refused,
        "p50_ns": o.p50_ns,
        "p95_ns": o.p95_ns,
        "p99_ns": o.p99_ns,
        "min_ns": o.min_ns,
        "max_ns": o.max_ns,
        "total_ns": o.total_ns,
        "self_ns": o.self_ns,
        "timeline": timeline,
    })
}

pub fn traces(found: &SearchResult) -> Value {
    let traces: Vec<Value> = found.traces.iter().map(summary).collect();
    let mut body = json!({ "traces": traces, "truncated": found.truncated, "scanned": found.scanned });
    if let Some(next) = found.next {
        body["next"] = next.to_string().into();
    }
    body
}

fn summary(t: &TraceSummary) -> Value {
    json!({
        "trace_id": t.trace_id.to_string(),
        "service": &*t.service,
        "operation": &*t.operation,
        "kind": t.kind.name(),
        "start": t.start.to_string(),
        "duration_ns": t.duration_ns,
        "calls": t.calls,
        "outcome": t.outcome.name(),
        "request_id": t.request_id,
        "http_status": t.http_status,
        "match": t.matched.as_ref().map(matched),
    })
}

fn matched(call: &Match) -> Value {
    json!({
        "service": &*call.service,
        "operation": &*call.operation,
        "kind": call.kind.name(),
        "start": call.start.to_string(),
        "duration_ns": call.duration_ns,
        "outcome": call.outcome.name(),
    })
}

pub fn trace(t: &Trace) -> Value {
    let mut body = json!({
        "trace_id": t.trace_id.to_string(),
        "start": t.start.to_string(),
        "duration_ns": t.duration_ns,
        "spans": t.spans.iter().map(span).collect::<Vec<_>>(),
    });
    if t.spans_cut > 0 {
        body["spans_cut"] = t.spans_cut.into();
    }
    body
}

fn span(s: &Span) -> Value {
    let attributes: Map<String, Value> =
        s.attributes.iter().map(|(key, value)| (key.to_string(), attribute(value))).collect();
    json!({
        "id": s.id.to_string(),
        "parent": s.parent.map(|id| id.to_string()),
        "depth": s.depth,
        "service": &*s.service,
        "host": &*s.host,
        "thread": &*s.thread,
        "operation": &*s.operation,
        "kind": s.kind.name(),
        "offset_ns": s.offset_ns,
        "duration_ns": s.duration_ns,
        "self_ns": s.self_ns,
        "outcome": s.outcome.name(),
        "attributes": attributes,
    })
}

fn attribute(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Text(text) => json!(&**text),
        AttributeValue::Integer(number) => json!(number),
    }
}

pub fn calltree(tree: &CallTree) -> Value {
    json!({ "service": tree.service, "root": node(&tree.root) })
}

/// Formats a node and its children. The recursion is bounded, because `tacho_query` limits the depth of the tree.
fn node(n: &CallTreeNode) -> Value {
    json!({
        "operation": &*n.operation,
        "kind": n.kind.map(|kind| kind.name()),
        "service": &*n.service,
        "count": n.count,
        "errors": n.errors,
        "total_ns": n.total_ns,
        "self_ns": n.self_ns,
        "children": n.children.iter().map(node).collect::<Vec<_>>(),
    })
}

pub fn graph(graph: &Graph) -> Value {
    let nodes: Vec<Value> = graph
        .nodes
        .iter()
        .map(|n| {
            json!({
                "id": n.id,
                "service": &*n.service,
                "operation": &*n.operation,
                "kind": n.kind,
                "count": n.count,
                "errors": n.errors,
                "total_ns": n.total_ns,
                "self_ns": n.self_ns,
            })
        })
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter()
        .map(|e| json!({ "from": e.from, "to": e.to, "count": e.count, "errors": e.errors, "total_ns": e.total_ns }))
        .collect();
    json!({ "nodes": nodes, "edges": edges, "unknown_callers": graph.unknown_callers })
}
