//! The graph of calls from summaries, on the newest golden directory, whose chunks have callers and summaries.

use serde_json::json;

use crate::support::Server;
use crate::upgrade::newest_without_tokens;

/// Each of 310 segments was caused by the inner call of another segment of its series. They are in one chunk, with a summary.
#[test]
fn a_graph_from_summaries_and_stored_callers_is_the_exact_graph() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&newest_without_tokens(place.path()));
    let range = "start=1699999990&end=1700000100";
    for level in ["operation", "service"] {
        let graph =
            |exact| server.get(&format!("/api/graph?service=web&level={level}&exact={exact}&{range}"));
        let (exact, summed) = (graph(true).json(), graph(false).json());
        assert_eq!(summed, exact);
        assert_eq!(exact["unknown_callers"], 0);
        let edge =
            json!({"from": "web method board.Größe()", "to": "web http-server GET /ads", "count": 310});
        let counts = |edge: &serde_json::Value| json!({"from": edge["from"], "to": edge["to"], "count": edge["count"]});
        let edges: Vec<_> = exact["edges"].as_array().unwrap().iter().map(counts).collect();
        assert!(edges.contains(&edge) == (level == "operation"), "{exact}");
    }
    let answer = server.get(&format!("/api/graph?exact=maybe&{range}"));
    assert_eq!(answer.status, 400, "{}", answer.text());
}
