//! Calls expire, and their summaries are kept: the answers about operations, services and the graph stay the same.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tacho_drivers::embedded::Embedded;
use tacho_lab::calls::{Sender, Traces, When};
use tacho_store::driver::Scan;
use tacho_store::{Driver, Row, Table};

use crate::support::Server;
use crate::support::checked::{check, of, unlocked};
use crate::support::filled::in_runtime;

const HOUR_S: i64 = 3_600;
const DAY_S: i64 = 24 * HOUR_S;
const CALLS: u64 = 30_000;

/// Stores calls of two days in a new data directory. Returns the second at which the first day begins.
fn old_calls(data: &Path) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
    let first = (now - 6 * DAY_S).div_euclid(DAY_S) * DAY_S;
    let server = Server::start_with(data, &["--selfwatch-seconds", "0"]);
    let length_ns = (2 * DAY_S).cast_unsigned() * 1_000_000_000;
    let mut traces = Traces::new(1, When { start: first * 1_000_000_000, length_ns, calls: CALLS });
    let mut sender = Sender::connect(&server.records.to_string(), &traces).unwrap();
    for trace in &mut traces {
        sender.send(&trace).unwrap();
    }
    sender.finish().unwrap();
    assert!(server.stop().success());
    first
}

fn ask(server: &Server, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    response.json()
}

/// An answer without the figures that depend on whether quantiles were computed from calls or from sketches, and without the
/// rate, which is that of whole hours.
fn exact(mut answer: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| {
                    !["p50_ns", "p95_ns", "p99_ns", "self_ns", "rate"].contains(&name.as_str())
                });
                fields.values_mut().for_each(strip);
            }
            // A point of a service's timeline: time, requests, errors and a quantile.
            Value::Array(point) if point.len() == 4 && point.iter().all(Value::is_number) => {
                point.truncate(3)
            }
            Value::Array(values) => {
                values.iter_mut().for_each(strip);
            }
            _ => {}
        }
    }
    strip(&mut answer);
    answer
}

/// Fails with the first fields that differ.
fn check_same(path: &str, before: &Value, after: &Value) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) if before.len() == after.len() => {
            for (name, value) in before {
                check_same(&format!("{path} {name}"), value, &after[name]);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                check_same(&format!("{path} {at}"), before, after);
            }
        }
        _ => assert_eq!(before, after, "{path}"),
    }
}

#[test]
fn summaries_answer_for_expired_calls() {
    let dir = tempfile::tempdir().unwrap();
    let (data, config) = (dir.path().join("data"), dir.path().join("tacho.toml"));
    let first = old_calls(&data);
    let range = |from: i64, to: i64| format!("start={}&end={}", first + from, first + to);
    let whole = range(0, 2 * DAY_S - 1);
    let hours = range(5 * HOUR_S, 29 * HOUR_S - 1);
    let counters = ["calls_total", "call_duration_seconds_sum"].map(|name| {
        format!("/api/v1/query_range?query=sum%20by%20(service)%20(increase({name}%5B1h%5D))&step=3600")
    });
    let questions: Vec<String> = [&whole, &hours]
        .iter()
        .flat_map(|range| {
            let plain = ["operations", "services", "graph"].map(|what| format!("/api/{what}?{range}"));
            plain.into_iter().chain(counters.iter().map(move |counter| format!("{counter}&{range}")))
        })
        .collect();

    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    let before: Vec<Value> = questions.iter().map(|path| exact(ask(&server, path))).collect();
    assert!(server.stop().success());

    std::fs::write(&config, "[[retention]]\nmatch = '{service=~\".+\"}'\nkeep = '2d'\nsummaries = '1y'\n")
        .unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--selfwatch-seconds", "0"];
    let mut server = Server::start_with(&data, &flags);
    for restarted in [false, true] {
        assert_eq!(server.post("/api/v1/admin/tsdb/clean_tombstones", &[], b"").status, 204);
        let metrics = server.get("/metrics").text();
        let kept = metrics.lines().find(|line| line.starts_with("tacho_summaries_kept_total ")).unwrap();
        assert_eq!(kept == "tacho_summaries_kept_total 0", restarted, "{kept}");
        let traces = ask(&server, &format!("/api/traces?{whole}&limit=1"));
        assert_eq!(traces["traces"], serde_json::json!([]), "the calls have expired");
        for (path, before) in questions.iter().zip(&before) {
            check_same(path, before, &exact(ask(&server, path)));
        }
        // Half of the sixth hour: the answer has all of it, and says so.
        let cut = ask(&server, &format!("/api/operations?{}", range(5 * HOUR_S, 5 * HOUR_S + HOUR_S / 2)));
        let hour = ask(&server, &format!("/api/operations?{}", range(5 * HOUR_S, 6 * HOUR_S - 1)));
        let counts = |answer: &Value| -> Vec<u64> {
            let operations = answer["operations"].as_array().unwrap().iter();
            operations.map(|operation| operation["count"].as_u64().unwrap()).collect()
        };
        assert!(counts(&hour).iter().sum::<u64>() > 100, "{hour}");
        assert_eq!(counts(&cut), counts(&hour));
        assert!(cut["warnings"][0].as_str().unwrap().contains("whole hours"), "{}", cut["warnings"]);
        assert_eq!(hour["warnings"], Value::Null);
        let exact = ask(&server, &format!("/api/operations?{hours}&exact=true"));
        assert!(counts(&exact).is_empty());
        assert!(exact["warnings"][0].as_str().unwrap().contains("have expired"), "{}", exact["warnings"]);
        // A deletion removes whole hours, but not the one that begins with its end.
        let deleted = |to: i64| {
            let range = range(5 * HOUR_S + HOUR_S / 2, to);
            let selector = "match[]=%7Bservice=~%22.%2B%22%7D";
            ask(&server, &format!("/api/v1/admin/count?{selector}&{range}"))["data"].take()
        };
        let [before, at, after] = [-1, 0, 1].map(|second| deleted(7 * HOUR_S + second)["summaries"].take());
        assert!(at["hours"].as_u64() > at["series"].as_u64(), "{at}");
        assert_eq!(before, at);
        assert!(after["hours"].as_u64() > at["hours"].as_u64(), "{after} {at}");
        assert_eq!(deleted(7 * HOUR_S)["calls"]["records"], 0);
        assert!(server.stop().success());
        server = Server::start_with(&data, &flags);
    }
    assert!(server.stop().success());
    check_damaged(&data);
}

/// `tacho check` accepts kept summaries, and names damaged ones.
fn check_damaged(data: &Path) {
    let (code, findings, _) = check(data, &[]);
    assert_eq!((code, of(&findings, "damage"), of(&findings, "warning")), (0, vec![], vec![]));
    in_runtime(async {
        let driver = unlocked(|| async { Embedded::open(&data.join("chunks")).await }).await;
        let mut partitions = BTreeSet::new();
        let mut each = |partition: &[u8], _: &[u8]| {
            partitions.extend(partition.starts_with(b"kept").then(|| partition.to_vec()));
        };
        driver.keys(Table::Meta, &mut each).await.unwrap();
        let scans = partitions.into_iter().map(|partition| Scan::all(Table::Meta, partition)).collect();
        let rows = driver.read(scans).await.unwrap().into_iter().flatten().map(Result::unwrap);
        let damaged = rows.map(|row| {
            let mut value = row.value.to_vec();
            value[30] ^= 1;
            Row { value: value.into(), ..row }
        });
        driver.put(damaged.collect()).await.unwrap();
    });
    let (code, findings, _) = check(data, &[]);
    let effects = |row: &str| -> Vec<&str> {
        let named =
            findings.iter().filter(|finding| finding["row"].as_str().is_some_and(|own| own.contains(row)));
        named.map(|finding| finding["effect"].as_str().unwrap()).collect()
    };
    let kept = effects("kept summary");
    assert_ne!(code, 0);
    assert!(
        kept.iter().any(|effect| effect.starts_with("nothing is lost: the summaries of the hours")),
        "{kept:?}"
    );
    assert!(kept.contains(&"the summary of the expired calls of this hour is lost"), "{kept:?}");
}
