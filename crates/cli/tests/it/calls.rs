//! Sends the calls of a fleet (`crates/lab/src/calls`), and tests that the server's answers have the figures of these calls.

use std::collections::BTreeMap;

use serde_json::Value;
use tacho_lab::calls::{HEADER, Sender, Traces, When, rows};

use crate::support::Server;

const START_S: i64 = 1_700_000_000;

/// By service and operation: calls, failed calls, time and self time in ns.
type Figures = BTreeMap<(String, String), [u64; 4]>;

/// The cells of a row. Only the operation has quotes.
fn cells(line: &str) -> BTreeMap<&str, &str> {
    let (before, rest) = line.split_once('"').unwrap();
    let (operation, after) = rest.split_once('"').unwrap();
    let before = before.trim_end_matches(',').split(',');
    let cells = before.chain([operation]).chain(after.trim_start_matches(',').split(','));
    HEADER.split(',').zip(cells).collect()
}

fn expected(rows: &str) -> Figures {
    let mut figures = Figures::new();
    for row in rows.lines().map(cells) {
        let number = |name| row[name].parse::<u64>().unwrap();
        let sum = figures.entry((row["service"].to_owned(), row["operation"].to_owned())).or_default();
        // Self times of HTTP clients are not compared. In the rows they include the time of the called service. In the server's
        // answers they do not.
        let own = if row["kind"] == "http-client" { 0 } else { number("self_ns") };
        for (sum, more) in sum.iter_mut().zip([1, number("failed"), number("duration_ns"), own]) {
            *sum += more;
        }
    }
    figures
}

#[test]
fn operations_and_traces_of_a_fleet_have_the_figures_of_its_calls() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let when = When { start: START_S * 1_000_000_000, length_ns: 600_000_000_000, calls: 30_000 };
    let mut traces = Traces::new(11, when);
    let mut sender = Sender::connect(&server.records.to_string(), &traces).unwrap();
    let (mut text, mut last) = (String::new(), None);
    while let Some(trace) = traces.next() {
        sender.send(&trace).unwrap();
        rows(&traces.fleet, &trace, &mut text);
        last = Some(trace);
    }
    sender.finish().unwrap();
    let expected = expected(&text);

    let range = format!("start={START_S}&end={}", START_S + 700);
    // The steps of a long range consist of whole slots of the summaries, so the server can answer from summaries.
    let long = format!("start={}&end={}", START_S - 1_000_000, START_S + 1_000_000);
    for is_flushed in [false, true] {
        if is_flushed {
            assert_eq!(server.post("/api/flush", &[], b"").status, 204);
        }
        for range in [&range, &long] {
            let answer = server.get(&format!("/api/operations?{range}")).json();
            assert_eq!(figures(&answer), expected, "flushed: {is_flushed}, {range}");
        }
        let last = last.as_ref().unwrap();
        let trace = server.get(&format!("/api/traces/{}?{range}", last.id)).json();
        assert_eq!(trace["spans"].as_array().unwrap().len(), last.calls as usize);
    }
    for path in ["operations", "services"] {
        let answer = |exact| server.get(&format!("/api/{path}?{long}&exact={exact}")).json();
        compare(&answer(false)[path], &answer(true)[path]);
    }
    let clients = server.get(&format!("/api/operations?{long}&kind=http-client")).json();
    let clients = clients["operations"].as_array().unwrap();
    assert!(
        clients.iter().all(|row| row["self_ns"].is_null()),
        "the server did not answer from summaries: {clients:?}"
    );
    let refused = server.get(&format!("/api/operations?{long}&exact=1"));
    assert_eq!(refused.status, 400);
    check_series(&server, &expected);
}

fn check_series(server: &Server, expected: &Figures) {
    let end = START_S + 700;
    let asked = |query: &str| {
        let escaped: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = server.get(&format!("/api/v1/query?query={escaped}&time={end}")).json();
        answer["data"]["result"].as_array().unwrap_or_else(|| panic!("{query}: {answer}")).clone()
    };
    let value = |row: &Value| row["value"][1].as_str().unwrap().parse::<f64>().unwrap();
    let of_operations = |query: &str| -> BTreeMap<(String, String), f64> {
        let rows = asked(&format!("sum by (service, operation) ({query})"));
        let name = |row: &Value, name: &str| row["metric"][name].as_str().unwrap().to_owned();
        rows.iter().map(|row| ((name(row, "service"), name(row, "operation")), value(row))).collect()
    };
    let figures = |index: usize, unit: f64| -> BTreeMap<(String, String), f64> {
        expected.iter().map(|(key, figures)| (key.clone(), figures[index] as f64 / unit)).collect()
    };
    for (query, figures) in [
        ("calls_total", figures(0, 1.0)),
        ("call_errors_total", figures(1, 1.0)),
        ("call_duration_seconds_count", figures(0, 1.0)),
        ("call_duration_seconds_bucket{le=\"+Inf\"}", figures(0, 1.0)),
    ] {
        assert_eq!(of_operations(query), figures, "{query}");
    }
    for (key, seconds) in of_operations("call_duration_seconds_sum") {
        assert!((seconds - figures(2, 1e9)[&key]).abs() < 1e-6, "{key:?}: {seconds}");
    }
    // `increase` extrapolates to the ends of the window of 20 minutes, here by less than one minute.
    let calls = expected.values().map(|figures| figures[0]).sum::<u64>() as f64;
    let increase = value(&asked("sum(increase(calls_total[20m]))")[0]);
    assert!((calls..calls * 1.06).contains(&increase), "{increase} of {calls}");
    let quantiles =
        asked("histogram_quantile(0.5, sum by (le) (rate(call_duration_seconds_bucket[10m]))) > 0");
    assert_eq!(quantiles.len(), 1);
    let names = server.get("/api/v1/label/__name__/values").json();
    assert!(names["data"].as_array().unwrap().contains(&"calls_total".into()), "{names}");
}

fn figures(answer: &Value) -> Figures {
    let figure = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let figures = |row: &Value| {
        let own = if row["kind"] == "http-client" { 0 } else { figure(row, "self_ns") };
        let figures = [figure(row, "count"), figure(row, "errors"), figure(row, "total_ns"), own];
        let name = |name: &str| row[name].as_str().unwrap().to_owned();
        ((name("service"), name("operation")), figures)
    };
    answer["operations"].as_array().unwrap().iter().map(figures).collect()
}

/// Compares an answer from summaries with an answer from the calls. Percentiles from summaries have an error of at most 1 %, and
/// percentiles from the calls of at most 0.1 %, so they may differ by 1.11 %. Self times of HTTP clients are not compared. All
/// other compared figures are equal.
fn compare(got: &Value, exact: &Value) {
    match (got, exact) {
        (Value::Array(got), Value::Array(exact)) => {
            assert_eq!(got.len(), exact.len());
            got.iter().zip(exact).for_each(|(got, exact)| compare(got, exact));
        }
        (Value::Object(got), Value::Object(exact)) => {
            for (name, exact) in exact {
                let got = &got[name];
                match (got.as_f64().zip(exact.as_f64()), name.as_str()) {
                    (Some((got, exact)), "p50_ns" | "p95_ns" | "p99_ns") => {
                        assert!((got - exact).abs() <= exact * 0.0111, "{name}: {got} for {exact}");
                    }
                    (None, "self_ns") if got.is_null() => {}
                    // Only the first three numbers of a point are compared. A fourth number is a percentile.
                    (None, "timeline") => {
                        let (got, exact) = (got.as_array().unwrap(), exact.as_array().unwrap());
                        assert_eq!(got.len(), exact.len());
                        for (got, exact) in got.iter().zip(exact) {
                            assert_eq!(got.as_array().unwrap()[..3], exact.as_array().unwrap()[..3]);
                        }
                    }
                    _ => assert_eq!(got, exact, "{name}"),
                }
            }
        }
        _ => assert_eq!(got, exact),
    }
}
