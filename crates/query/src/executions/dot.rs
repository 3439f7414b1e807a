//! How is a graph written in the language of Graphviz? (<https://graphviz.org/doc/info/lang.html>)

use std::fmt::Write;

use super::graph::{Graph, GraphEdge, GraphNode};

impl Graph {
    /// The graph as input of `dot`. Names may contain any character: they are quoted and escaped.
    pub fn to_dot(&self) -> String {
        let mut out = "digraph tachograph {\n  rankdir=LR;\n  node [shape=box];\n".to_owned();
        for node in &self.nodes {
            line(&mut out, &quote(&node.id), &node_label(node), node.errors);
        }
        for edge in &self.edges {
            let ends = format!("{} -> {}", quote(&edge.from), quote(&edge.to));
            line(&mut out, &ends, &edge_label(edge), edge.errors);
        }
        out.push_str("}\n");
        out
    }
}

fn line(out: &mut String, what: &str, label: &str, errors: u64) {
    let color = if errors > 0 { ", color=red" } else { "" };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "  {what} [label={}{color}];", quote(label));
}

fn node_label(node: &GraphNode) -> String {
    let name = if node.operation.is_empty() { &node.id } else { &*node.operation };
    format!("{name}\n{}", figures(node.count, node.errors, node.total_ns))
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
