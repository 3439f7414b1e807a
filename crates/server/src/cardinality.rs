//! What does each label cost? Formats the JSON of `/api/v1/status/cardinality`. `tacho cardinality
//! --json` prints the same JSON, also for a data directory.

use serde_json::{Value, json};
use tacho_model::Kind;
use tacho_store::Cardinality;

pub fn report_json(report: &Cardinality) -> Value {
    let pairs = |list: &[(String, usize)]| -> Vec<Value> {
        list.iter().map(|(value, series)| json!({ "value": value, "series": series })).collect()
    };
    let kinds =
        Kind::ALL.iter().zip(report.series).map(|(kind, count)| (kind.name().to_owned(), json!(count)));
    let labels: Vec<Value> = report
        .labels
        .iter()
        .map(|label| {
            json!({
                "name": label.name,
                "values": label.values,
                "series": label.series,
                "bytes": label.bytes,
                "top": pairs(&label.top),
            })
        })
        .collect();
    json!({
        "series": kinds.collect::<serde_json::Map<_, _>>(),
        "series_total": report.series_total,
        "series_max": report.series_max,
        "bytes": report.bytes,
        "names": pairs(&report.names),
        "labels": labels,
    })
}
