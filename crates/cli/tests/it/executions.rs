//! Tests queries of executions over the API of `docs/api.md` and with commands. Also tests commands that read a data directory,
//! and reports of damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use tacho_ingest::wire::{AttributeForm, DataFrame, DictFrame, SegmentRecord, TraceForm};
use tacho_model::{Event, EventKind, OperationKind, TraceId};

use crate::support::agent::{self, Agent};
use crate::support::{self, Server};

/// 2023-11-14T22:13:20Z, ns.
const START: i64 = 1_700_000_000_000_000_000;
pub const SPAN: &str = "start=1700000000&end=1700000060";
pub const FIRST: TraceId = TraceId(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
pub const SECOND: TraceId = TraceId(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319d);

/// A server with two requests of the service `shop`: a successful one of 3 ms with a statement of 2 ms, and a failed one of 1 ms.
pub fn server() -> (tempfile::TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let mut agent = Agent::connect(server.records, &agent::hello(7)).expect("server greets");
    let mut dict = DictFrame::new();
    dict.text(1, "http-1");
    dict.text(2, "request.id");
    dict.text(3, "http.status");
    dict.text(4, "exception");
    dict.operation(1, OperationKind::HttpServer, "GET /ads");
    dict.operation(2, OperationKind::Method, "Board.list()");
    dict.operation(3, OperationKind::Database, "SELECT * FROM ad");
    agent.send(&dict.finish());
    let mut frame = DataFrame::new(1, START);
    let good = [
        (0, EventKind::Enter(1)),
        (500_000, EventKind::Enter(2)),
        (0, EventKind::Enter(3)),
        (2_000_000, EventKind::Exit),
        (250_000, EventKind::Exit),
        (250_000, EventKind::Exit),
    ];
    let failed = [
        (0, EventKind::Enter(1)),
        (400_000, EventKind::Enter(2)),
        (500_000, EventKind::ExitFailed),
        (100_000, EventKind::ExitFailed),
    ];
    segment(&mut frame, 1, FIRST, START + 1_000_000_000, &good, 200);
    segment(&mut frame, 2, SECOND, START + 2_000_000_000, &failed, 500);
    agent.send(&frame.finish());
    agent.wait_ack(1);
    (data, server)
}

fn segment(
    frame: &mut DataFrame,
    number: u64,
    id: TraceId,
    start: i64,
    events: &[(u64, EventKind)],
    status: i64,
) {
    let events: Vec<Event> =
        events.iter().map(|(delta, kind)| Event { delta: *delta, kind: *kind }).collect();
    let request = format!("request-{number}");
    let attributes = [
        (0, 2, AttributeForm::Text(&request)),
        (0, 3, AttributeForm::Integer(status)),
        (1, 4, AttributeForm::Text("java.lang.IllegalStateException: no board")),
    ];
    frame.segment(&SegmentRecord {
        number,
        trace: TraceForm::Full(id),
        parent: None,
        thread: 1,
        start,
        continued: None,
        events: &events,
        attributes: &attributes[..if status < 500 { 2 } else { 3 }],
    });
}

/// Checks the response of `path`, flushes the memtable to chunks, and checks the response again.
pub fn check(server: &Server, path: &str, expect: impl Fn(&Value)) {
    for _ in 0..2 {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        expect(&answer.json());
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
}

/// Checks which traces a search finds.
pub fn finds(server: &Server, parameters: &str, ids: &[TraceId]) {
    let body = server.get(&format!("/api/traces?{SPAN}&{parameters}")).json();
    let found: Vec<&str> =
        body["traces"].as_array().unwrap().iter().filter_map(|t| t["trace_id"].as_str()).collect();
    let ids: Vec<String> = ids.iter().map(TraceId::to_string).collect();
    assert_eq!(found, ids, "{parameters}");
}

#[test]
fn traces_are_found_by_each_filter() {
    let (_data, server) = server();
    let first = json!({
        "trace_id": FIRST.to_string(), "service": "shop", "operation": "GET /ads", "kind": "http-server",
        "start": "1700000001000000000", "duration_ns": 3_000_000, "calls": 3, "outcome": "ok",
        "request_id": "request-1", "http_status": 200, "match": null,
    });
    check(&server, &format!("/api/traces?{SPAN}"), |body| {
        assert_eq!(body["traces"][1], first);
        assert_eq!(body["traces"][0]["trace_id"], SECOND.to_string(), "the newest trace must come first");
        assert_eq!((&body["truncated"], &body["scanned"]), (&json!(false), &json!(2)));
    });
    let finds = |parameters: &str, ids: &[TraceId]| finds(&server, parameters, ids);
    finds("outcome=failed", &[SECOND]);
    finds("outcome=ok", &[FIRST]);
    finds("min_duration=2ms", &[FIRST]);
    finds("max_duration=0.002", &[SECOND]);
    finds("request_id=request-2", &[SECOND]);
    finds("operation=SELECT%20*%20FROM%20ad", &[FIRST]);
    finds("service=other", &[]);
    finds("limit=1", &[SECOND]);
    finds("order=oldest", &[FIRST, SECOND]);
    finds("order=slowest&limit=1", &[FIRST]);
    finds("order=fastest&limit=1", &[SECOND]);
    finds("operation=Board.list()&min_duration=2ms", &[FIRST]);
    finds("operation=Board.list()&min_duration=2.5ms", &[]);
    let call = server.get(&format!("/api/traces?{SPAN}&operation=SELECT%20*%20FROM%20ad")).json();
    let expected = json!({
        "service": "shop", "operation": "SELECT * FROM ad", "kind": "database",
        "start": "1700000001000500000", "duration_ns": 2_000_000, "outcome": "ok",
    });
    assert_eq!(call["traces"][0]["match"], expected);
    let body = server.get("/api/traces").json();
    assert_eq!(body["traces"], json!([]), "the default range must be the last hour");
}

#[test]
fn a_trace_is_returned_as_a_tree() {
    let (_data, server) = server();
    check(&server, &format!("/api/traces/{FIRST}"), |body| {
        assert_eq!(
            (&body["start"], &body["duration_ns"]),
            (&json!("1700000001000000000"), &json!(3_000_000))
        );
        let spans = body["spans"].as_array().unwrap();
        let depths: Vec<&Value> = spans.iter().map(|s| &s["depth"]).collect();
        assert_eq!(depths, [0, 1, 2]);
        assert_eq!(spans[0]["parent"], Value::Null);
        assert_eq!(spans[1]["parent"], spans[0]["id"]);
        assert_eq!(spans[0]["attributes"], json!({"request.id": "request-1", "http.status": 200}));
        let statement =
            json!([spans[2]["operation"], spans[2]["offset_ns"], spans[2]["self_ns"], spans[2]["kind"]]);
        assert_eq!(statement, json!(["SELECT * FROM ad", 500_000, 2_000_000, "database"]));
        assert_eq!((&spans[1]["thread"], &spans[1]["host"]), (&json!("http-1"), &json!("h1")));
    });
}

#[test]
fn services_operations_call_tree_and_graph_are_returned() {
    let (_data, server) = server();
    check(&server, &format!("/api/services?{SPAN}"), |body| {
        let shop = &body["services"][0];
        let figures = json!([
            shop["service"],
            shop["hosts"],
            shop["requests"],
            shop["calls"],
            shop["errors"],
            shop["refused"]
        ]);
        assert_eq!(figures, json!(["shop", ["h1"], 2, 5, 1, 0]));
        assert!(shop["timeline"].as_array().unwrap().len() <= 120);
    });
    check(&server, &format!("/api/operations?{SPAN}&kind=database"), |body| {
        let list = body["operations"].as_array().unwrap();
        assert_eq!(list.len(), 1);
        let figures = json!([list[0]["operation"], list[0]["count"], list[0]["total_ns"], list[0]["max_ns"]]);
        assert_eq!(figures, json!(["SELECT * FROM ad", 1, 2_000_000, 2_000_000]));
    });
    check(&server, &format!("/api/calltree?{SPAN}&service=shop"), |body| {
        let request = &body["root"]["children"][0];
        assert_eq!(
            (&request["operation"], &request["count"], &request["errors"]),
            (&json!("GET /ads"), &json!(2), &json!(1))
        );
        assert_eq!(request["children"][0]["children"][0]["operation"], "SELECT * FROM ad");
    });
    check(&server, &format!("/api/graph?{SPAN}"), |body| {
        assert_eq!(body["nodes"].as_array().map(Vec::len), Some(3));
        assert_eq!(body["edges"].as_array().map(Vec::len), Some(2));
    });
    let dot = server.get(&format!("/api/graph?{SPAN}&level=service&format=dot"));
    assert_eq!(dot.header("content-type"), Some("text/vnd.graphviz; charset=utf-8"));
    assert!(dot.text().starts_with("digraph tachograph {"), "{}", dot.text());
}

#[test]
fn the_status_counts_stored_records() {
    let (_data, server) = server();
    let status = server.get("/api/status").json();
    assert_eq!(status["records"], json!({"sample": 0, "entry": 0, "execution": 5}));
    assert_eq!(status["stored"]["execution"]["records"], 0);
    assert_eq!(status["records_port"], server.records.port());
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    let status = server.get("/api/status").json();
    assert_eq!(status["stored"]["execution"]["records"], 5);
    assert_eq!(status["stored"]["execution"]["chunks"], status["chunks"]);
    assert_eq!(status["series"], json!({"sample": 0, "entry": 0, "execution": 1}));
    let metrics = server.get("/metrics").text();
    let line = "tacho_records_received_total{service=\"shop\",kind=\"execution\"} 5\n";
    assert!(metrics.contains(line), "{metrics}");
}

pub fn fails(server: &Server, path: &str, status: u16, part: &str) {
    let answer = server.get(path);
    assert_eq!(answer.status, status, "{path}: {}", answer.text());
    assert!(answer.json()["error"].as_str().unwrap().contains(part), "{path}: {}", answer.text());
}

#[test]
fn errors_name_the_parameter() {
    let (_data, server) = server();
    let fails = |path: &str, status: u16, part: &str| fails(&server, path, status, part);
    fails("/api/traces?start=yesterday", 400, "\"start\": \"yesterday\"");
    fails("/api/traces?start=9&end=8", 400, "\"end\"");
    fails("/api/traces?min_duration=long", 400, "\"min_duration\"");
    fails("/api/traces?outcome=good", 400, "\"outcome\": \"good\" is not ok, failed or running");
    fails("/api/traces?limit=-1", 400, "\"limit\"");
    fails("/api/traces?order=best", 400, "\"order\": \"best\" is not newest, oldest, slowest or fastest");
    fails("/api/operations?kind=car", 400, "\"kind\": \"car\" is not a kind");
    fails("/api/graph?level=host", 400, "\"level\"");
    fails("/api/graph?format=png", 400, "\"format\"");
    fails("/api/traces/xyz", 400, "\"xyz\" is not 32 hexadecimal digits");
    fails("/api/traces/00000000000000000000000000000000", 400, "32 hexadecimal digits");
    fails(
        "/api/traces/00000000000000000000000000000009",
        404,
        "trace 00000000000000000000000000000009 does not exist",
    );
}

fn shows(server: &Server, args: &[&str], expect: &str) {
    let url = server.url();
    let (code, stdout, stderr) = support::run(&[args, &["--server", &url]].concat());
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    assert_eq!(stdout.trim_end(), expect.trim(), "{args:?}: got\n{stdout}");
}

pub const TIMES: [&str; 4] = ["--start", "1700000000", "--end", "1700000060"];

#[test]
fn traces_are_printed_with_the_calls_that_matched() {
    let (_data, server) = server();
    shows(
        &server,
        &[&["traces"], &TIMES[..]].concat(),
        "\
TRACE                             START                     SERVICE  OPERATION     TIME  TRACE TIME  CALLS  TRACE STATUS  OUTCOME
0af7651916cd43dd8448eb211c80319d  2023-11-14T22:13:22.000Z  shop     GET /ads   1.00 ms     1.00 ms      2           500  failed
0af7651916cd43dd8448eb211c80319c  2023-11-14T22:13:21.000Z  shop     GET /ads   3.00 ms     3.00 ms      3           200  ok",
    );
    shows(
        &server,
        &[&["traces", "--operation", "Board.list()", "--order", "slowest", "--limit", "1"], &TIMES[..]].concat(),
        "\
TRACE                             START                     SERVICE  OPERATION        TIME  TRACE TIME  CALLS  TRACE STATUS  \
OUTCOME
0af7651916cd43dd8448eb211c80319c  2023-11-14T22:13:21.000Z  shop     Board.list()  2.25 ms     3.00 ms      3           200  ok",
    );
}

#[test]
fn commands_print_executions() {
    let (_data, server) = server();
    shows(
        &server,
        &["trace", "0af7651916cd43dd8448eb211c80319c"],
        "\
trace 0af7651916cd43dd8448eb211c80319c  2023-11-14T22:13:21.000Z  3.00 ms  3 calls
      TIME        SELF                            OPERATION
   3.00 ms      750 µs  ████████████████████████  GET /ads  [shop, http-1]  http.status=200  request.id=request-1
   2.25 ms      250 µs  ····██████████████████··    Board.list()
   2.00 ms     2.00 ms  ····████████████████····      SELECT * FROM ad",
    );
    shows(
        &server,
        &[&["graph"], &TIMES[..]].concat(),
        "\
GET /ads  [http-server]  2 x 2.00 ms, 1 failed
  -> Board.list()  2 x 1.38 ms, 1 failed
Board.list()  [method]  2 x 1.38 ms, 1 failed
  -> SELECT * FROM ad  1 x 2.00 ms
SELECT * FROM ad  [database]  1 x 2.00 ms",
    );
    shows(
        &server,
        &[&["graph", "--level", "service"], &TIMES[..]].concat(),
        "\
shop  [service]  2 x 2.00 ms, 1 failed
  -> databases of shop  1 x 2.00 ms
databases of shop  [database]  1 x 2.00 ms",
    );
    shows(
        &server,
        &[&["operations"], &TIMES[..]].concat(),
        "\
SERVICE  KIND         CALLS  ERRORS  4XX      P50      P95      P99    TOTAL     SELF  OPERATION
shop     http-server      2       1    0  1.00 ms  3.00 ms  3.00 ms  4.00 ms  1.25 ms  GET /ads
shop     method           2       1    0   500 µs  2.25 ms  2.25 ms  2.75 ms   750 µs  Board.list()
shop     database         1       0    0  2.00 ms  2.00 ms  2.00 ms  2.00 ms  2.00 ms  SELECT * FROM ad",
    );
    let (code, stdout, _) = support::run(&[
        "traces",
        "--json",
        "--outcome",
        "failed",
        "--server",
        &server.url(),
        "--start",
        "1700000000",
        "--end",
        "1700000060",
    ]);
    assert_eq!(code, Some(0));
    let body: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(body["traces"][0]["trace_id"], SECOND.to_string());
}

#[test]
fn a_service_that_is_unknown_is_an_error_in_every_format() {
    let (_data, server) = server();
    let url = server.url();
    let run = |command: &[&str], service: &str| {
        support::run(&[command, &["--service", service, "--server", &url], &TIMES[..4]].concat())
    };
    for command in [
        &["traces"][..],
        &["traces", "--json"],
        &["operations"],
        &["operations", "--json"],
        &["graph"],
        &["graph", "--json"],
        &["graph", "--dot"],
    ] {
        let (code, stdout, stderr) = run(command, "shopp");
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{command:?}: {stderr}");
        assert!(stderr.starts_with("error: no service \"shopp\" from 2023-"), "{command:?}: {stderr}");
        assert!(stderr.contains("\nhint: known services: shop\n"), "{command:?}: {stderr}");
        assert_eq!(run(command, "shop").0, Some(0), "{command:?}");
    }
    for command in [&["agents"][..], &["agents", "--json"]] {
        let args = [command, &["--service", "shopp", "--server", &url]].concat();
        let (code, stdout, stderr) = support::run(&args);
        assert_eq!((code, stdout.as_str()), (Some(1), ""), "{command:?}: {stderr}");
    }
}

#[test]
fn an_operation_that_is_unknown_is_an_error_with_similar_names() {
    let (_data, server) = server();
    let url = server.url();
    let run = |command: &str, operation: &str| {
        support::run(&[&[command, "--operation", operation, "--server", &url], &TIMES[..4]].concat())
    };
    for command in ["traces", "operations"] {
        for (operation, hint) in [
            ("get /AD", "hint: --operation needs the whole name; similar: GET /ads\n"),
            ("board", "hint: --operation needs the whole name; similar: Board.list()\n"),
            ("quite another", "hint: --operation needs the whole name, as `tacho operations` lists it\n"),
        ] {
            let (code, stdout, stderr) = run(command, operation);
            assert_eq!((code, stdout.as_str()), (Some(1), ""), "{command} {operation}: {stderr}");
            let expect = format!("error: no operation {operation:?} from 2023-");
            assert!(stderr.starts_with(&expect) && stderr.ends_with(hint), "{command}: {stderr}");
        }
        assert_eq!(run(command, "GET /ads").0, Some(0), "{command}");
    }
    let none = [&["traces", "--operation", "GET /ads", "--min-duration", "1h", "--server", &url], &TIMES[..]];
    let (code, _, stderr) = support::run(&none.concat());
    assert!(code == Some(0) && stderr.starts_with("no trace matches from 2023-"), "{stderr}");
}

#[test]
fn omitted_results_and_records_of_other_kinds_are_reported() {
    let (_data, server) = server();
    let url = server.url();
    for (args, expect) in [
        (
            &["operations", "--limit", "1"][..],
            "2 more operations match: raise --limit, or narrow the search\n",
        ),
        (&["operations", "--limit", "3"], ""),
        (
            &["traces", "--limit", "1"],
            "more traces match: raise --limit, or narrow the search, or repeat it with --start 1700000000.000000000 --end \
             1700000060.000000000 --after newest-97979cfead5f9400-0af7651916cd43dd8448eb211c80319d-2ffb6918c12c256e\n",
        ),
        (
            &[
                "traces",
                "--limit",
                "1",
                "--after",
                "newest-97979cfead5f9400-0af7651916cd43dd8448eb211c80319d-2ffb6918c12c256e",
            ],
            "",
        ),
        (
            &["query", "{service=\"shop\"}"],
            "hint: the selector matches calls: `tacho traces` and `tacho operations` read them\n",
        ),
        (
            &["entries", "{service=\"shop\"}"],
            "hint: the selector matches calls: `tacho traces` and `tacho operations` read them\n",
        ),
    ] {
        let (code, _, stderr) = support::run(&[args, &["--server", &url], &TIMES[..]].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        assert!(stderr.ends_with(expect) && expect.is_empty() == stderr.is_empty(), "{args:?}: {stderr}");
    }
}

/// All files and directories below a directory, with modification time and content.
fn everything(directory: &Path, found: &mut BTreeMap<PathBuf, (SystemTime, Vec<u8>)>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let (path, about) = entry.map(|e| (e.path(), e.metadata().unwrap())).unwrap();
        if about.is_dir() {
            everything(&path, found);
        }
        found.insert(path.clone(), (about.modified().unwrap(), std::fs::read(&path).unwrap_or_default()));
    }
}

#[test]
fn commands_that_read_a_directory_do_not_change_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let dir = data.path().to_str().unwrap();
    let write = |body: &[u8]| assert_eq!(server.post("/write?precision=ns", &[], body).status, 204);
    write(b"m v=1 1000000000");
    assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    write(b"m v=2 2000000000");
    let (code, _, stderr) = support::run(&["inspect", dir]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains(&format!("directory is in use by process {}", server.pid())), "{stderr}");
    server.kill();
    // The files of a process that was killed during a write: a segment file and the journal end in a part of a record, and the
    // newest segment file is shorter than its header.
    let append = |path: &Path| {
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, b"torn").unwrap();
    };
    let chunks = data.path().join("chunks");
    append(&chunks.join("00000001.segment"));
    std::fs::write(chunks.join("00000002.segment"), [0; 10]).unwrap();
    append(
        &std::fs::read_dir(data.path().join("journal"))
            .unwrap()
            .map(|e| e.unwrap().path())
            .find(|p| !p.ends_with("LOCK"))
            .unwrap(),
    );
    for _ in 0..2 {
        let mut before = BTreeMap::new();
        everything(data.path(), &mut before);
        for (command, expect) in [
            (&["inspect", "--json", dir][..], "\"sample\""),
            (&["export", "--data", dir, "--match", "m_v"], "\"values\":[1,2]"),
            (&["cardinality", "--data", dir], "__name__"),
        ] {
            let (code, stdout, stderr) = support::run(command);
            assert_eq!(code, Some(0), "{command:?}: {stderr}");
            assert!(stdout.contains(expect), "{command:?}: {stdout}");
        }
        let mut after = BTreeMap::new();
        everything(data.path(), &mut after);
        assert!(after == before, "{:?} became {:?}", before.keys(), after.keys());
        // A copy on a read-only medium may lack the locks and the disk reserve.
        for file in ["LOCK", "chunks/LOCK", "chunks/RESERVE", "journal/LOCK"] {
            let _ = std::fs::remove_file(data.path().join(file));
        }
    }
    let server = Server::start(data.path());
    let answer = server.get("/api/v1/query?query=count_over_time(m_v%5B10s%5D)&time=5").json();
    assert_eq!(answer["data"]["result"][0]["value"][1], "2", "{answer}");
}

#[test]
fn storage_damage_is_in_status_and_metrics() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    assert_eq!(server.post("/write?precision=ns", &[], b"m v=1 1000000000").status, 204);
    assert_eq!(server.get("/api/status").json()["damage"]["damaged"], serde_json::json!([]));
    assert!(server.stop().success());
    let file = data.path().join("chunks/00000001.segment");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[..24].fill(0);
    std::fs::write(&file, bytes).unwrap();
    std::fs::write(data.path().join("chunks/MANIFEST"), "").unwrap();
    let (_, table, _) = support::run(&["inspect", data.path().to_str().unwrap()]);
    assert!(
        table.starts_with("MANIFEST: damaged, its other parts are read\n00000001.segment: damaged"),
        "{table}"
    );
    let server = Server::start(data.path());
    let damage = server.get("/api/status").json()["damage"].clone();
    assert_eq!(damage["damaged"], serde_json::json!(["MANIFEST", "00000001.segment"]));
    let metrics = server.get("/metrics").text();
    for line in [
        "tacho_storage_files_damaged 2\n",
        "tacho_storage_files_quarantined 0\n",
        "tacho_storage_damaged_bytes 0\n",
    ] {
        assert!(metrics.contains(line), "{line:?} in {metrics}");
    }
    let answer = server.get("/api/v1/query?query=m_v&time=1").json();
    assert_eq!(answer["data"]["result"][0]["value"][1], "1", "{answer}");
    server.wait_for_log("segment is damaged");
}

#[test]
fn inspect_reads_the_directory_and_the_server() {
    let (data, server) = server();
    server.post("/api/flush", &[], b"");
    let dir = data.path().to_str().unwrap();
    let (code, _, stderr) = support::run(&["inspect", dir]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("in use") && stderr.contains("--server"), "{stderr}");
    let (_, online, _) = support::run(&["inspect", "--json", "--server", &server.url()]);
    assert_eq!(server.stop().code(), Some(0));
    let (code, offline, stderr) = support::run(&["inspect", "--json", dir]);
    assert_eq!(code, Some(0), "{stderr}");
    let report: Value = serde_json::from_str(&offline).unwrap();
    let online: Value = serde_json::from_str(&online).unwrap();
    assert_eq!((&report["kinds"], &report["series"]), (&online["kinds"], &online["series"]));
    assert!(report["journal_bytes"].is_u64());
    assert_eq!(report["kinds"]["execution"]["records"], 5);
    assert_eq!(report["series"][0]["series"], "executions{host=\"h1\", service=\"shop\"}");
    let (_, table, _) = support::run(&["inspect", dir]);
    assert!(table.starts_with("KIND       SERIES  CHUNKS  RECORDS"), "{table}");
}

#[test]
fn the_command_operations_reports_calls_that_agents_dropped() {
    let (_data, server) = server();
    let url = server.url();
    let told = |times: [&str; 2]| {
        let (code, stdout, stderr) =
            support::run(&["operations", "--start", times[0], "--end", times[1], "--server", &url]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("Board.list()"), "{stdout}");
        stderr
    };
    assert_eq!(told(["1700000000", "1700000060"]), "");
    let line = |service: &str, kind: &str, calls: u32, second: u32| {
        format!(
            "tacho_agent_dropped_total,service={service},kind={kind},instance=a value={calls} 17000000{second}\n"
        )
    };
    let lines = line("shop", "execution", 7, 20)
        + &line("shop", "execution", 12, 50)
        + &line("shop", "sample", 99, 50)
        + &line("idle", "execution", 5, 50);
    assert_eq!(server.post("/write?precision=s", &[], lines.as_bytes()).status, 204);
    let hint = |calls| {
        format!(
            "hint: agents of shop dropped {calls} calls in this range, which are missing here: see `tacho agents`\n"
        )
    };
    assert_eq!(told(["1700000000", "1700000060"]), hint(12));
    assert_eq!(told(["1700000000", "1700000030"]), hint(7));
}
