//! Tests that queries and exports report reduced precision: unbounded errors, and downsampled values.

use serde_json::{Value, json};

use crate::support::{Server, run};

/// 2023-11-14T22:00:00Z, more than a day ago, so that the downsampling rule of a test applies.
const START_S: i64 = 1_699_999_200;
const SPAN: &str = "start=1699999200&end=1700013600";

/// A server with one sample per minute over four hours.
fn server(rules: &str, values: impl Fn(i64) -> String) -> (tempfile::TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("tacho.toml");
    std::fs::write(&config, rules).unwrap();
    let config = config.to_str().unwrap().to_owned();
    let server =
        Server::start_with(&dir.path().join("data"), &["--selfwatch-seconds", "0", "--config", &config]);
    for part in 0..4 {
        let lines: Vec<String> = (part * 60..part * 60 + 60)
            .map(|n| {
                let at = (START_S + n * 60) * 1_000;
                format!(r#"{{"metric":{{"__name__":"m"}},"values":[{}],"timestamps":[{at}]}}"#, values(n))
            })
            .collect();
        let file = dir.path().join("lines.jsonl");
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        let file = file.to_str().unwrap();
        let (code, _, stderr) = run(&["import", file, "--again", "--server", &server.url()]);
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200);
    (dir, server)
}

#[test]
fn an_infinite_error_bound_is_written_as_a_text_in_json() {
    let rules = "[[semantic]]\nmatch = 'm'\nvalue = \"1%\"\n";
    let value = |n: i64| {
        if n == 100 {
            "\"Infinity\"".to_owned()
        } else {
            format!("{}", 100.0 + ((n * 5) % 7 + n % 2) as f64 / 10.0)
        }
    };
    let (dir, server) = server(rules, value);
    let answer = server.get(&format!("/api/v1/query_range?query=m&step=60&stats=true&{SPAN}")).json();
    assert_eq!(answer["data"]["stats"]["valueErrorMax"], "+Inf");
    let output = dir.path().join("out.jsonl");
    let output = output.to_str().unwrap();
    let export = ["export", "--match", "m", "--server", &server.url(), "--output", output];
    let (code, stdout, stderr) = run(&[&export[..], &["--json"]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["samples"]["count"], &report["bounds"]["value"]), (&json!(240), &json!("+Inf")));
    assert!(std::fs::read_to_string(output).unwrap().contains(r#""within":{"time_ns":0,"value":"+Inf"}"#));
    let (code, _, stderr) = run(&export);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("1 series is not exact: values within inf"), "{stderr}");
    let (code, _, stderr) = run(&[
        "query",
        "m",
        "--start",
        "1699999200",
        "--end",
        "1700013600",
        "--stats",
        "--server",
        &server.url(),
    ]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("values +Inf"), "{stderr}");
    // Another server can import the export.
    let again = Server::start_with(&dir.path().join("again"), &["--selfwatch-seconds", "0"]);
    let (code, _, stderr) = run(&["import", output, "--server", &again.url()]);
    assert_eq!(code, Some(0), "{stderr}");
}

#[test]
fn downsampled_values_are_reported_as_such() {
    let rules = "[[downsampling]]\nmatch = 'm'\nafter = \"1d\"\nstep = \"1h\"\nkeep = \"avg\"\n";
    let (dir, server) = server(rules, |n| format!("{}", if n % 60 == 30 { 126.5 } else { 100.5 }));
    let path = format!("/api/v1/query_range?query=max_over_time(m[2h])&step=3600&stats=true&{SPAN}");
    let answer = server.get(&path).json();
    let said = "older samples of these series are averages of 1 h, not the recorded values";
    assert_eq!(answer["infos"], json!([format!("PromQL info: {said}")]), "{answer}");
    assert_eq!(answer["data"]["stats"]["thinned"], json!({ "how": "avg", "step_ns": 3_600_000_000_000u64 }));
    let instant = server.get("/api/v1/query?query=max_over_time(m[1d])&time=1700013600").json();
    assert!(instant["infos"].is_array() && instant["warnings"].is_null(), "{instant}");
    let nothing = server.get("/api/v1/query?query=vector(1)").json();
    assert!(nothing["infos"].is_null(), "{nothing}");
    let (code, _, stderr) =
        run(&["query", "m", "--start", "1699999200", "--end", "1700013600", "--server", &server.url()]);
    assert!(code == Some(0) && stderr.contains(&format!("info: {said}")), "{stderr}");

    let output = dir.path().join("out.jsonl");
    let output = output.to_str().unwrap();
    let (code, _, stderr) = run(&["export", "--match", "m", "--server", &server.url(), "--output", output]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("1 series is not exact: ") && stderr.contains("; old values are averages of 1 h"),
        "{stderr}"
    );
    let lines = std::fs::read_to_string(output).unwrap();
    let within = r#""within":{"thinned":{"how":"avg","step_ns":3600000000000},"time_ns":0,"value":0.0}"#;
    assert!(lines.lines().all(|line| line.contains(within)), "{lines}");
    let again = Server::start_with(&dir.path().join("again"), &["--selfwatch-seconds", "0"]);
    let (code, _, stderr) = run(&["import", output, "--server", &again.url()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("averages or other aggregates according to the file"), "{stderr}");
}
