//! The answer to a query in Prometheus' JSON.

use serde_json::{Value, json};
use tacho_query::promql::Output;

use crate::http::json::{labels, number, point, seconds};

/// `data` of the answer, and whether `limit` cut series off.
pub fn result(output: Output, limit: Option<usize>) -> (Value, bool) {
    let limit = limit.unwrap_or(usize::MAX);
    match output {
        Output::Scalar(p) => (typed("scalar", point(p.at, p.value)), false),
        Output::String { at, text } => (typed("string", json!([seconds(at), &*text])), false),
        Output::Vector(elements) => {
            let truncated = elements.len() > limit;
            let rows = elements
                .iter()
                .take(limit)
                .map(|(l, p)| json!({ "metric": labels(l), "value": [seconds(p.at), number(p.value)] }));
            (typed("vector", rows.collect()), truncated)
        }
        Output::Matrix(series) => {
            let truncated = series.len() > limit;
            let rows = series.iter().take(limit).map(|s| {
                let values: Vec<Value> = s.points.iter().map(|p| point(p.at, p.value)).collect();
                json!({ "metric": labels(&s.labels), "values": values })
            });
            (typed("matrix", rows.collect()), truncated)
        }
    }
}

fn typed(name: &str, result: Value) -> Value {
    json!({ "resultType": name, "result": result })
}
