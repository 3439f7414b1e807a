//! How is a graph written in the language of Graphviz? (<https://graphviz.org/doc/info/lang.html>)

use std::fmt::Write;

use super::graph::{Graph, GraphEdge, GraphNode};

impl Graph {
    /// The graph as input of `dot`. Names may contain any character: they are quoted and escaped.
    pub fn to_dot(&self) -> String {
        let mut out = "digraph tachograph {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        let with_service = has_several_services(&self.nodes);
        for node in &self.nodes {
            line(&mut out, &quote(&node.id), &node_label(node, with_service), node.errors);
        }
        for edge in &self.edges {
            let ends = format!("{} -> {}", quote(&edge.from), quote(&edge.to));
            line(&mut out, &ends, &edge_label(edge), edge.errors);
        }
        out.push_str("}\n");
        if self.unknown_callers > 0 {
            let _ = writeln!(out, "// callers that were not found: of {} calls", self.unknown_callers);
        }
        out
    }
}

fn line(out: &mut String, what: &str, label: &str, errors: u64) {
    let color = if errors > 0 { ", color=red" } else { "" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {what} [label={}{color}];", quote(label));
}

fn has_several_services(nodes: &[GraphNode]) -> bool {
    let mut services = nodes.iter().map(|node| &node.service);
    services.next().is_some_and(|first| services.any(|service| service != first))
}

/// `with_service`: the label of an operation has the service. The id of a node of another kind has it anyway.
fn node_label(node: &GraphNode, with_service: bool) -> String {
    let (name, service) = match (&*node.operation, with_service) {
        ("", _) => (&*node.id, String::new()),
        (operation, false) => (operation, String::new()),
        (operation, true) => (operation, format!("  [{}]", node.service)),
    };
    format!("{name}{service}\n{}", figures(node.count, node.errors, node.total_ns))
}

fn edge_label(edge: &GraphEdge) -> String {
    figures(edge.count, edge.errors, edge.total_ns)
}

/// Number of calls, mean duration, and number of failures if there are any.
fn figures(count: u64, errors: u64, total_ns: u64) -> String {
    let mean_ns = total_ns as f64 / count.max(1) as f64;
    let (unit, name) = match mean_ns {
        ns if ns < 1e3 => (1.0, "ns"),
        ns if ns < 1e6 => (1e3, "µs"),
        ns if ns < 1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let failed = if errors > 0 { format!(", {errors} failed") } else { String::new() };
    format!("{count} x {:.3} {name}{failed}", mean_ns / unit)
}

/// A double-quoted string. Quotes, backslashes and line feeds are escaped. Other control characters become spaces, because
/// the language has no form for them.
fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_operations_have_the_service_if_there_are_several() {
        let node = |service: &str, operation: &str| GraphNode {
            id: format!("{service} {operation}"),
            service: service.into(),
            operation: operation.into(),
            kind: "method",
            count: 1,
            errors: 0,
            total_ns: 1_000,
            self_ns: 0,
        };
        let labels = |nodes: [GraphNode; 2]| {
            let with_service = has_several_services(&nodes);
            nodes.map(|node| node_label(&node, with_service).replace("\n1 x 1.000 µs", ""))
        };
        assert_eq!(labels([node("shop", "a"), node("pay", "a")]), ["a  [shop]", "a  [pay]"]);
        assert_eq!(labels([node("shop", "a"), node("shop", "b")]), ["a", "b"]);
        assert_eq!(labels([node("shop", ""), node("pay", "")]), ["shop ", "pay "]);
    }
}
