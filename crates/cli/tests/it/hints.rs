//! Tests hints of the commands for empty answers, refused requests and unknown variables. Also tests the forms of times and of
//! JSON that commands have in common.

use std::process::Command;

use crate::support::{Server, run, tacho};

#[test]
fn empty_results_name_the_searched_range() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let url = server.url();
    let empty = |args: &[&str], expect: &[&str]| {
        let (code, stdout, stderr) = run(&[args, &["--server", &url]].concat());
        assert_eq!((code, stdout.as_str()), (Some(0), ""), "{args:?}: {stderr}");
        for part in expect {
            assert!(stderr.contains(part), "{args:?}: {part:?} in {stderr}");
        }
    };
    let read = "it reads samples from 1969-12-31T23:54:00.000Z to 1969-12-31T23:59:00.000Z";
    let unknown = "hint: no series named \"up\"; `tacho cardinality` lists the existing names\n";
    empty(&["query", "up", "--time", "-60"], &["up: no values at 1969-12-31T23:59:00.000Z", read, unknown]);
    let read = "it reads samples from 1969-12-31T22:59:00.000Z to 1969-12-31T23:59:00.000Z";
    empty(
        &["query", "rate(up[1h])", "--time", "-60"],
        &["rate(up[1h]): no values at 1969-12-31T23:59", read],
    );
    empty(&["query", "up - down"], &["up - down: no values at 20", "Z\nhint: no series named \"down\"; "]);
    let from = "from 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:00.000Z";
    empty(&["query", "up", "--start", "0", "--end", "60"], &["up: no values from", from]);
    empty(&["query", "--functions", "avg_overtime"], &["no function matches", "did you mean avg_over_time?"]);
    empty(
        &["entries", "log"],
        &["log: no entries in the last hour, from 20", "hint: no series named \"log\""],
    );
    assert_eq!(server.post("/write", &[], b"gauge value=1\nlog value=\"text\"").status, 204);
    assert_eq!(server.post("/write", &[], b"old value=\"text\" 1000000000000000000").status, 204);
    empty(&["entries", "log", "--start", "0", "--end", "60"], &[from, "hint: `tacho cardinality`"]);
    empty(&["entries", "old"], &["old: no entries in the last hour, from 20", "hint: --last 7d"]);
    empty(&["query", "gauge", "--time", "-60"], &["gauge: no values at 1969", "hint: --last 1d"]);
    empty(
        &["query", "log"],
        &["log: no values at ", "hint: the selector matches entries: `tacho entries` reads them\n"],
    );
    empty(
        &["query", "log", "--last", "5m"],
        &["hint: the selector matches entries: `tacho entries` reads them\n"],
    );
    empty(
        &["entries", "gauge"],
        &["gauge: no entries", "hint: the selector matches samples: `tacho query` reads them\n"],
    );
    empty(&["entries", "log", "--contains", "zz"], &["none of 1 entries match in the last hour, from 20"]);
}

#[test]
fn errors_in_queries_and_selectors_mark_their_place() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let url = server.url();
    let refused = |query: &str, expect: &str| {
        let (code, _, stderr) = run(&["query", query, "--server", &url]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expect), "{expect:?} in {stderr}");
    };
    refused(
        "avg_overtime(up[5m])",
        "unknown function with name \"avg_overtime\"; did you mean avg_over_time? (at column 1)",
    );
    refused("sum(\n  rate(up[5m)\n)", "(at line 2, column 13)\n  |   rate(up[5m)\n  |             ^\n");
    refused("cpu.load", "hint: quote a name with such characters: '{\"cpu.load\"}'");
    refused("rate(cpu.load[5m])", "hint: quote a name with such characters: '{\"cpu.load\"}'");
    let select = |command: &[&str], expect: &str| {
        let (code, _, stderr) = run(&[command, &["--server", &url]].concat());
        assert_eq!((code, stderr.as_str()), (Some(2), expect), "{command:?}");
    };
    let at = "error: expected an operator or the end of the query, found \"b\" (at column 5)\n  | a{} b\n  |     ^\n";
    for command in [
        &["entries", "a{} b"][..],
        &["export", "--match", "up", "--match", "a{} b"],
        &["delete", "--match", "a{} b"],
        &["tune", "--match", "a{} b"],
    ] {
        select(command, at);
    }
    let pattern = "error: invalid parameter \"pattern\": unclosed group (at column 2)\n  | x(\n  |  ^\n";
    select(&["entries", "log", "--pattern", "x("], pattern);
    let (code, list, _) = run(&["query", "--functions", "bottomk", "--json"]);
    assert_eq!(code, Some(0));
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert!(list[0]["function"].as_str().unwrap().starts_with("bottomk"), "{list}");
}

#[test]
fn an_unknown_name_or_label_is_named_with_similar_ones() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let lines = b"cpu_usage,host=alpha value=1\naccess_log,service=syslog value=\"text\"";
    assert_eq!(server.post("/write", &[], lines).status, 204);
    let url = server.url();
    let name = "hint: no series named \"cpu_usge\"; did you mean \"cpu_usage\"?\n";
    let label = "hint: no such series has a label \"hots\"; did you mean \"host\"?\n";
    let value = "hint: no such series has host=\"alhpa\"; did you mean \"alpha\"?\n";
    let bare = "hint: no series named \"syslog\"; it is a value of the label \"service\": give '{service=\"syslog\"}'\n";
    let computed = "hint: \"calls_total\" is computed from calls, with a sample at each full minute: no call in this time \
                    matches, or a window is shorter than two minutes\n";
    let stored = "hint: \"calls_total\" is computed from calls and not stored: `tacho query` ";
    let hints = |args: &[&str], expect: &str| {
        let (code, _, stderr) = run(args);
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        assert!(stderr.ends_with(expect), "{args:?}: {expect:?} in {stderr}");
        assert_eq!(stderr.contains("hint: "), expect.contains("hint: "), "{args:?}: {stderr}");
    };
    for (args, expect) in [
        (&["query", "cpu_usge"][..], name),
        (&["query", "rate(cpu_usge[5m]) / cpu_usage", "--last", "5m"], name),
        (&["query", "cpu_usage{hots=\"alpha\"}"], label),
        (&["query", "cpu_usage{host=\"alhpa\"}"], value),
        (&["entries", "acces_log"], "hint: no series named \"acces_log\"; did you mean \"access_log\"?\n"),
        (&["entries", "syslog"], bare),
        (&["export", "--match", "cpu_usge"], name),
        (&["export", "--match", "cpu_usge", "--format", "csv"], name),
        (&["export", "--match", "cpu_usage"], "\n"),
        (
            &["export", "--match", "access_log", "--only", "samples"],
            "hint: the selector matches entries: `tacho entries` reads them\n",
        ),
        (&["delete", "--match", "cpu_usge"], name),
        (&["query", "calls_total{service=\"nosuch\"}"], "hint: no such series has service=\"nosuch\"\n"),
        (&["query", "calls_total{operation=\"nosuch\"}"], computed),
        (&["query", "rate(calls_total[5m])", "--last", "1h"], computed),
        (&["query", "calls_totl"], "hint: no series named \"calls_totl\"; did you mean \"calls_total\"?\n"),
        (&["query", "rate(calls_total[5m]) / cpu_usge"], name),
        (&["export", "--match", "calls_total"], &format!("{stored}computes it\n")),
    ] {
        hints(&[args, &["--server", &url]].concat(), expect);
    }
    for (path, status) in [
        ("/api/v1/matched?match[]=cpu_usge", 200),
        ("/api/v1/matched", 400),
        ("/api/v1/matched?match[]=cpu%7B", 400),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    let found = server.get("/api/v1/matched?match[]=cpu_usge&match[]=cpu_usage").json()["data"].clone();
    let expect = serde_json::json!([
        { "sample": 0, "entry": 0, "execution": 0, "unknown":
            { "label": "__name__", "value": "cpu_usge", "similar": ["cpu_usage"], "labels": [] }, "computed": null },
        { "sample": 1, "entry": 0, "execution": 0, "unknown": null, "computed": null },
    ]);
    assert_eq!(found, expect);
    assert!(server.stop().success());
    let path = data.path().to_str().unwrap();
    hints(&["export", "--match", "cpu_usge", "--data", path], name);
    let export = ["export", "--match", "calls_total", "--data", path];
    hints(&export, &format!("{stored}of a server computes it\n"));
}

#[test]
fn queries_over_time_say_how_windows_and_steps_work() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    assert_eq!(server.post("/write?precision=s", &[], b"m value=1 1700000000").status, 204);
    let query = |args: &[&str]| run(&[&["query"], args, &["--server", &server.url()]].concat());
    let (code, _, stderr) = query(&["m[5m]", "--last", "1h"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("hint: over time each point is one value: apply a function such as rate"),
        "{stderr}"
    );
    let (code, table, stderr) = query(&["m[5m]", "--time", "1700000001"]);
    assert!(code == Some(0) && table.contains("2023-11-14T22:13:20.000Z"), "{table}{stderr}");
    let month = ["--start", "1699000000", "--end", "1702000000"];
    let hint = "hint: points are 347 min 13 s apart, and each reads the 5 min 0 s before it: a shorter --step, or a \
        function such as avg_over_time, reads all samples\n";
    let (code, _, stderr) = query(&[&["m"], &month[..]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.ends_with(hint), "{stderr}");
    for (function, more) in [("m", &["--step", "5m"][..]), ("avg_over_time(m[6h])", &[])] {
        let (code, table, stderr) = query(&[&[function], &month[..], more].concat());
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{function}");
        assert!(table.starts_with("SERIES"), "{table}");
    }
    let (_, _, stderr) = query(&["m", "--start", "0", "--end", "60"]);
    assert!(stderr.ends_with("hint: `tacho cardinality` lists the existing names\n"), "{stderr}");
}

#[test]
fn commands_accept_times_as_dates_or_relative_to_now() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let lines =
        b"m value=1\nm value=2 1000000000000000000\nlog value=\"new\"\nlog value=\"old\" 1000000000000000000";
    assert_eq!(server.post("/write", &[], lines).status, 204);
    let url = server.url();
    for (args, lines) in [
        (&["export", "m", "--from", "-1h"][..], "\"values\":[1]"),
        (&["export", "m", "--start", "1h ago"], "\"values\":[1]"),
        (&["export", "m", "--to", "now-1h"], "\"values\":[2]"),
        (&["export", "m", "--from", "2001-09-09", "--to", "2001-09-10"], "\"values\":[2]"),
        (&["export", "m", "--from", "2001-09-09 01:46:40", "--to", "2001-09-09T01:46:41"], "\"values\":[2]"),
        (&["entries", "log", "--from", "-2h30m"], "  log  new"),
        (&["entries", "log", "--from", "2001-01-01", "--to", "2002-01-01"], "  log  old"),
        (&["query", "m", "--time", "2001-09-09T01:47:00Z"], "m           2\n"),
        (&["query", "m", "--time", "-1s"], ""),
        (&["query", "m", "--from", "-10m", "--to", "now"], "SERIES"),
        (&["delete", "--match", "m", "--from", "-1d"], "would be deleted: 1 sample of 1 series"),
        (&["traces", "--from", "-1d"], ""),
    ] {
        let (code, stdout, stderr) = run(&[args, &["--server", &url]].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        assert!(stdout.contains(lines), "{args:?}: {lines:?} in {stdout}");
    }
    for (args, expect) in [
        (&["entries", "log", "--from", "2h"][..], "write -2h or '2h ago' for a time before now"),
        (&["export", "m", "--from", "01/02/2026"], "a date as 2026-01-31 (UTC)"),
        (&["tune", "--from", "-2"], ""),
        (&["tune", "--to", "later"], "a time before now as -2h"),
    ] {
        let (code, _, stderr) = run(&[args, &["--server", "http://127.0.0.1:1"]].concat());
        assert_eq!(code, Some(if expect.is_empty() { 1 } else { 2 }), "{args:?}: {stderr}");
        assert!(stderr.contains(expect), "{args:?}: {stderr}");
    }
}

#[test]
fn unknown_environment_variables_are_named_with_a_similar_one() {
    for (variable, args, expect) in [
        (
            "TACHO_ULR",
            &["query", "--functions", "bottomk"][..],
            "warning: environment variable TACHO_ULR is unknown and ignored; did you mean TACHO_URL?\n",
        ),
        (
            "TACHO_TLS_CAA",
            &["attach", "1"],
            "warning: environment variable TACHO_TLS_CAA is unknown and ignored; did you mean TACHO_TLS_CA?\n",
        ),
        ("TACHO_QUITE_ANOTHER", &["probes", "--help"], ""),
        ("TACHO_SERVICE", &["query", "--functions", "bottomk"], ""),
    ] {
        let output = Command::new(tacho()).args(args).env(variable, "x").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.starts_with(expect), "{variable}: {stderr}");
        assert_eq!(stderr.contains("warning"), !expect.is_empty(), "{variable}: {stderr}");
    }
}

#[test]
fn json_is_one_document_except_for_findings() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    assert_eq!(server.post("/write", &[], b"m value=1\nlog value=\"text\"").status, 204);
    let other = tempfile::tempdir().unwrap();
    let (url, copy) = (server.url(), other.path().join("copy"));
    let documents = |args: &[&str]| {
        let (code, stdout, stderr) = run(args);
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        let stream = serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>();
        let documents: Vec<serde_json::Value> = stream.map(Result::unwrap).collect();
        (documents, stdout)
    };
    for command in [
        &["query", "m"][..],
        &["query", "--functions", "rate"],
        &["entries", "log"],
        &["traces"],
        &["operations"],
        &["graph"],
        &["agents"],
        &["probes"],
        &["inspect"],
        &["cardinality"],
        &["merge"],
        &["delete", "--match", "m"],
        &["delete", "--match", "nosuch", "--yes"],
    ] {
        let needs_server = !command.contains(&"--functions");
        let server = if needs_server { &["--server", &*url][..] } else { &[] };
        let (found, stdout) = documents(&[command, &["--json"], server].concat());
        assert_eq!(found.len(), 1, "{command:?}: {stdout}");
    }
    assert!(server.stop().success());
    let path = data.path().to_str().unwrap();
    for command in [&["check", path][..], &["repair", path, "--into", copy.to_str().unwrap()]] {
        let (found, stdout) = documents(&[command, &["--json"]].concat());
        assert_eq!(found.len(), stdout.lines().count(), "{command:?}: {stdout}");
        assert!(found.last().unwrap()["summary"].is_object(), "{stdout}");
    }
}
