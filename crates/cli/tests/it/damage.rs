//! Tests that queries, exports and `tacho check` report damage of segment files and journals.

use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tacho_ingest::wire::{DataFrame, DictFrame, SegmentRecord, TraceForm};
use tacho_model::{Event, EventKind, Kind, OperationKind, TraceId};

use crate::support::agent::{self, Agent};
use crate::support::{Server, run};

/// 2023-11-14T22:13:20Z.
const START_S: i64 = 1_700_000_000;
const SPAN: &str = "start=1700000000&end=1700000600";
const TRACE: TraceId = TraceId(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);

/// A server with two series of samples, one of entries and one of calls. Each has an earlier and a later chunk. [`flip`] damages
/// only earlier chunks.
fn server(data: &Path) -> Server {
    let server = Server::start_with(data, &["--selfwatch-seconds", "0"]);
    let mut agent = Agent::connect(server.records, &agent::hello(7)).expect("server greets");
    let mut dict = DictFrame::new();
    dict.text(1, "http-1");
    dict.operation(1, OperationKind::HttpServer, "GET /ads");
    agent.send(&dict.finish());
    for (seq, at) in [(1u64, START_S), (2, START_S + 300)] {
        let mut lines = String::new();
        for n in 0..20 {
            let value = f64::from(n * 7 % 5) / 3.0;
            lines.push_str(&format!(
                "m,host=a value={value} {}\nm,host=b value={n}i {}\n",
                at + i64::from(n),
                at + i64::from(n) * 2
            ));
            lines.push_str(&format!("log,host=a value=\"line {n} of {at}\" {}\n", at + i64::from(n)));
        }
        assert_eq!(server.post("/write?precision=s", &[], lines.as_bytes()).status, 204);
        let mut frame = DataFrame::new(seq, at * 1_000_000_000);
        let events = [(0, EventKind::Enter(1)), (500_000, EventKind::Exit)];
        let events: Vec<Event> =
            events.iter().map(|(delta, kind)| Event { delta: *delta, kind: *kind }).collect();
        frame.segment(&SegmentRecord {
            number: seq,
            trace: TraceForm::Full(TraceId(TRACE.0 + u128::from(seq) - 1)),
            parent: None,
            thread: 1,
            start: at * 1_000_000_000,
            continued: None,
            events: &events,
            attributes: &[],
        });
        agent.send(&frame.finish());
        agent.wait_ack(seq);
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    server
}

/// Flips a bit in the header of the first chunk of each kind.
fn flip(data: &Path) {
    let path = data.join("chunks/00000001.segment");
    let bytes = std::fs::read(&path).unwrap();
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for kind in Kind::ALL {
        let of_kind = |at: &usize| bytes[*at..].starts_with(b"TCHK") && bytes[at + 5] == kind as u8;
        let at = (0..bytes.len()).find(of_kind).expect("a chunk of each kind") + 21;
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[bytes[at] ^ 4]).unwrap();
    }
}

fn warnings(answer: &Value) -> Vec<&str> {
    answer["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn counted(server: &Server, name: &str) -> u64 {
    let metrics = server.get("/metrics").text();
    let line = metrics.lines().find(|line| line.starts_with(&format!("{name} "))).expect("the metric exists");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

const SELECT_M: &str = "match[]=m";
const SAYS: &str = " cannot be read: checksum mismatch (segment 1, offset ";

#[test]
fn responses_that_lack_damaged_records_name_their_series_and_range() {
    let data = tempfile::tempdir().unwrap();
    let server = server(data.path());
    let ask = |path: &str| {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let range = format!("/api/v1/query_range?query=m&step=60&{SPAN}");
    let paths = ["services?", "operations?", "traces?", "calltree?", "graph?"];
    // Without `cache=false` the server would keep this result, and return it after the damage.
    assert_eq!(ask(&format!("{range}&cache=false"))["warnings"], Value::Null);
    flip(data.path());
    for _ in 0..2 {
        let answer = ask(&range);
        let said = warnings(&answer);
        assert_eq!(answer["status"], "success");
        assert_eq!(said.len(), 1, "{said:?}");
        let begin = "stored samples of m{host=\"b\"} between 2023-11-14T22:13:20Z and 2023-11-14T22:23:20Z";
        assert!(said[0].starts_with(begin) && said[0].contains(SAYS), "{said:?}");
        assert_eq!(answer["data"]["result"].as_array().unwrap().len(), 2, "a series is missing");
        let elsewhere = format!("/api/v1/query_range?query=m%7Bhost%3D%22a%22%7D&step=60&{SPAN}");
        assert_eq!(ask(&elsewhere)["warnings"], Value::Null);
        assert_eq!(warnings(&ask("/api/v1/query?query=m&time=1700000030")).len(), 1);
        for path in paths {
            let answer = ask(&format!("/api/{path}{SPAN}"));
            let said = warnings(&answer);
            assert_eq!(said.len(), 1, "{path}: {answer}");
            assert!(
                said[0].starts_with("stored calls of executions{host=") && said[0].contains(SAYS),
                "{said:?}"
            );
        }
        let dot = server.get(&format!("/api/graph?format=dot&{SPAN}")).text();
        assert!(dot.starts_with("// warning: stored calls of executions{"), "{dot}");
        let answer = ask(&format!("/api/v1/entries?match[]=log&{SPAN}"));
        assert_eq!(answer["data"]["matched"], 20);
        assert!(warnings(&answer)[0].starts_with("stored entries of log{host=\"a\"} between "), "{answer}");
    }
    let lost = server.get(&format!("/api/traces/{TRACE}"));
    assert_eq!(lost.status, 404);
    assert!(lost.text().contains("in the readable records; stored calls of executions{"), "{}", lost.text());
    let whole = ask(&format!("/api/traces/{}?start=1700000200", TraceId(TRACE.0 + 1)));
    assert_eq!(warnings(&whole).len(), 1, "no warning that parts may be missing");
    let inspected = ask("/api/inspect");
    assert_eq!(warnings(&inspected).len(), 3, "{inspected}");
    assert_eq!(counted(&server, "tacho_chunks_unreadable_total"), 3, "one for each damaged chunk");

    let span = ["--start", "1700000000", "--end", "1700000600", "--server", &server.url()];
    for command in [
        &["query", "m"][..],
        &["query", "m", "--json"],
        &["entries", "log"],
        &["operations"],
        &["traces"],
        &["graph", "--json"],
    ] {
        let (code, _, stderr) = run(&[command, &span].concat());
        assert_eq!(code, Some(0), "{command:?}: {stderr}");
        assert!(stderr.contains("warning: stored ") && stderr.contains(SAYS), "{command:?}: {stderr}");
    }
}

#[test]
fn reading_everything_fails_or_returns_what_is_readable() {
    let data = tempfile::tempdir().unwrap();
    let server = server(data.path());
    let (url, output) = (server.url(), data.path().join("out.jsonl"));
    let output = output.to_str().unwrap();
    let export = ["export", "--match", "{__name__=~\"m|log\"}", "--server", &url, "--output", output];
    let (code, _, stderr) = run(&export);
    assert_eq!(code, Some(0), "{stderr}");
    flip(data.path());

    let (code, _, stderr) = run(&export);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("error: not all records can be read: stored records cannot be read"), "{stderr}");
    assert!(stderr.contains("hint: --allow-damaged "), "{stderr}");
    let (code, stdout, stderr) = run(&[&export[..], &["--allow-damaged", "--json"]].concat());
    assert_eq!(code, Some(3), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["samples"]["count"], &report["entries"]["count"]), (&json!(60), &json!(20)));
    assert_eq!(report["incomplete"].as_array().unwrap().len(), 2, "{report}");
    assert!(stderr.contains("warning: stored samples of m{host=\"b\"}"), "{stderr}");
    let later = ["--match", "log", "--start", "1700000300", "--format", "csv", "--server", &url];
    let (code, _, stderr) = run(&[&["export", "--only", "entries"], &later[..]].concat());
    assert_eq!(code, Some(1), "a chunk with a damaged header may have records after --start: {stderr}");

    for (path, body) in [
        (format!("/api/v1/admin/count?{SELECT_M}"), json!(null)),
        (format!("/api/v1/admin/tsdb/delete_series?counts=1&{SELECT_M}"), json!(null)),
        (
            "/api/v1/checksum".to_owned(),
            json!([{"metric": {"__name__": "m", "host": "b"}, "kind": "sample", "start": "0", "end": i64::MAX.to_string()}]),
        ),
    ] {
        let answer = server.post(&path, &[("Content-Type", "application/json")], body.to_string().as_bytes());
        assert_eq!((answer.status, &answer.json()["errorType"]), (500, &json!("damaged")), "{path}");
        assert!(answer.text().contains("m{host=\\\"b\\\"}"), "{}", answer.text());
    }
    let counted = server.get(&format!("/api/v1/admin/count?allow_damaged=1&{SELECT_M}")).json();
    assert_eq!((&counted["data"]["complete"], warnings(&counted).len()), (&json!(false), 1), "{counted}");
    assert_eq!(counted["data"]["samples"]["records"], 60);
    assert_eq!(server.get(&format!("/api/v1/admin/count?allow_damaged=2&{SELECT_M}")).status, 400);

    let tune = ["tune", "--server", &url, "--match", "m"];
    let (code, _, stderr) = run(&tune);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("error: not all records can be read"), "{stderr}");

    let delete = ["delete", "--match", "m", "--server", &url];
    let (code, _, stderr) = run(&[&delete[..], &["--yes"]].concat());
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("the deletion itself does not need the counts"), "{stderr}");
    let (code, stdout, stderr) = run(&[&delete[..], &["--yes", "--allow-damaged"]].concat());
    assert_eq!((code, stdout.as_str()), (Some(0), "deleted: at least 60 samples of 2 series\n"), "{stderr}");
    assert!(stderr.contains("warning: stored samples of m{host=\"b\"}"), "{stderr}");
    let answer = server.get(&format!("/api/v1/query_range?query=m&step=60&{SPAN}")).json();
    assert_eq!((&answer["data"]["result"], &answer["warnings"]), (&json!([]), &Value::Null));
    drop(server);
    after_a_start(data.path());
}

/// The damaged file was growing when the server ended, so each program that opens the directory checks all rows of the
/// file. The keys of damaged rows may be damaged, too, so the damage may affect any series.
fn after_a_start(data: &Path) {
    let dir = data.to_str().unwrap();
    let output = data.join("offline.jsonl");
    let output = output.to_str().unwrap();
    let offline = ["export", "--match", "log", "--data", dir, "--output", output];
    let (code, _, stderr) = run(&offline);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("of 00000001.segment cannot be read (of any series, "), "{stderr}");
    assert!(stderr.contains(" of any time"), "{stderr}");
    let (code, _, stderr) = run(&[&offline[..], &["--allow-damaged"]].concat());
    assert_eq!(code, Some(3), "{stderr}");
    let server = Server::start_with(data, &["--selfwatch-seconds", "0"]);
    for path in ["/api/v1/query?query=up", "/api/v1/labels?", "/api/services?", "/api/v1/entries?match[]=log"]
    {
        let answer = server.get(path).json();
        assert!(warnings(&answer)[0].contains("may be missing: "), "{path}: {answer}");
    }
}

/// The content of a damaged journal record is unknown. Every response reports the damage, until the quarantined file is removed
/// and the server is started again.
#[test]
fn responses_report_a_lost_journal_record() {
    let data = tempfile::tempdir().unwrap();
    let start = || Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let server = start();
    for n in 0..3 {
        let lines =
            format!("m,host=a value={n} {}\nlog,host=a value=\"line {n}\" {}\n", START_S + n, START_S + n);
        assert_eq!(server.post("/write?precision=s", &[], lines.as_bytes()).status, 204);
    }
    server.kill();
    let journal = files(&data.path().join("journal"), "journal").remove(0);
    let mut bytes = std::fs::read(&journal).unwrap();
    // The damage is in the second journal record.
    let at = bytes.windows(6).position(|part| part == b"line 1").expect("the record is in the journal");
    bytes[at] ^= 4;
    std::fs::write(&journal, bytes).unwrap();

    let output = data.path().join("out.jsonl");
    let output = output.to_str().unwrap();
    let check = |server: &Server| {
        for path in [
            format!("/api/v1/query_range?query=m&step=1&{SPAN}"),
            format!("/api/v1/entries?match[]=log&{SPAN}"),
            format!("/api/services?{SPAN}"),
            "/api/v1/labels?".to_owned(),
        ] {
            let answer = server.get(&path);
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let answer = answer.json();
            let said = warnings(&answer);
            assert_eq!(said.len(), 1, "{path}: {answer}");
            assert!(
                said[0].contains(" may be missing: ") && said[0].contains(" of journal 0000"),
                "{said:?}"
            );
            assert!(
                said[0].contains("(generation 1, begun 20") && said[0].ends_with(" cannot be read"),
                "{said:?}"
            );
        }
        let url = server.url();
        let export = ["export", "--match", "m", "--server", &url, "--output", output];
        let (code, _, stderr) = run(&export);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("error: not all records can be read"), "{stderr}");
        let (code, stdout, stderr) = run(&[&export[..], &["--allow-damaged", "--json"]].concat());
        assert_eq!(code, Some(3), "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(
            (&report["samples"]["count"], report["incomplete"].as_array().unwrap().len()),
            (&json!(2), 2)
        );
    };
    let server = start();
    assert_eq!(server.get("/api/status").json()["journal_damaged"], 1);
    check(&server);
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    check(&server);
    drop(server);
    let kept = files(&data.path().join("journal/quarantine"), "journal");
    assert_eq!(kept.len(), 1);
    let server = start();
    check(&server);
    drop(server);
    std::fs::remove_file(&kept[0]).unwrap();
    let server = start();
    let answer = server.get(&format!("/api/v1/query_range?query=m&step=1&{SPAN}")).json();
    assert_eq!(answer["warnings"], Value::Null);
}

/// The exit code of `tacho check`, and the findings of damage.
fn check(data: &Path) -> (Option<i32>, Vec<Value>) {
    let (code, stdout, _) = run(&["check", data.to_str().unwrap(), "--json"]);
    let findings = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    (code, findings.filter(|finding| finding["severity"] == "damage").collect())
}

/// The cut file looks like the result of an interrupted append. But its records were acknowledged, and their journal was removed
/// after the flush, so the records are lost.
#[test]
fn a_growing_segment_that_was_cut_off_is_reported_until_it_is_repaired() {
    const MARK_BYTES: u64 = 16;
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    assert!(server(&data).stop().success());
    assert_eq!(check(&data), (Some(0), vec![]));
    let segment = data.join("chunks/00000001.segment");
    let whole = std::fs::read(&segment).unwrap();
    let acknowledged = whole.len() as u64 - MARK_BYTES;
    for cut in [MARK_BYTES, MARK_BYTES + 1, 500, 2_000, 100] {
        let length = whole.len() as u64 - cut;
        std::fs::write(&segment, &whole[..length as usize]).unwrap();
        let (code, findings) = check(&data);
        let short: Vec<&Value> = findings.iter().filter(|finding| finding["kind"] == "file-short").collect();
        if cut == MARK_BYTES {
            assert_eq!(
                (code, findings),
                (Some(0), vec![]),
                "only the mark after the last batch is missing, which is no damage"
            );
            continue;
        }
        assert_eq!((code, short.len()), (Some(1), 1), "{findings:?}");
        assert_eq!(short[0]["file"], "chunks/00000001.segment");
        assert_eq!(
            (&short[0]["offset"], &short[0]["bytes"]),
            (&json!(length), &json!(acknowledged - length))
        );
    }

    let note = format!("00000001.missing-{}-{}", whole.len() - 100, 100 - MARK_BYTES);
    for start in ["first", "second"] {
        let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
        let status = server.get("/api/status").json();
        let damage = &status["damage"];
        assert_eq!(damage["damaged"], json!(["00000001.segment"]), "{start}: {damage}");
        assert_eq!(damage["quarantined"], json!([note]), "{start}: {damage}");
        let metrics = server.get("/metrics").text();
        for line in ["tacho_storage_files_damaged 1\n", "tacho_storage_files_quarantined 1\n"] {
            assert!(metrics.contains(line), "{start}: {line:?} in {metrics}");
        }
        let answer = server.get(&format!("/api/v1/query_range?query=m&step=60&{SPAN}")).json();
        let said = warnings(&answer).join("\n");
        assert!(said.contains("may be missing: ") && said.contains(&note), "{start}: {said}");
        server.wait_for_log("the end of a segment is missing");
        assert_eq!(server.post("/write", &[], b"m,host=c value=1").status, 204);
        assert!(server.stop().success());
        let (code, findings) = check(&data);
        let is_note = |finding: &&Value| finding["file"] == format!("chunks/quarantine/{note}");
        let found = findings.iter().find(is_note).unwrap_or_else(|| panic!("{start}: {findings:?}"));
        assert_eq!((code, &found["kind"]), (Some(1), &json!("quarantined")), "{start}");
        assert_eq!(std::fs::metadata(&segment).unwrap().len(), whole.len() as u64 - 100, "{start}");
    }
    let into = place.path().join("new");
    let (code, _, stderr) = run(&["repair", data.to_str().unwrap(), "--into", into.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(check(&into), (Some(0), vec![]));
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|p| p.extension().is_some_and(|e| e == extension)).collect();
    paths.sort();
    paths
}
