//! Tests that answers to a confined token have nothing of other series. The requests use each route of the router, each method
//! and hostile parameters.

use tacho_ingest::wire::{
    ClientFrame, DataFrame, DeclaredRecord, DictFrame, FieldType, FieldValue, RecordField, RecordType,
    SegmentRecord, ServerFrame, TraceForm,
};
use tacho_model::{Entry, Event, EventKind, OperationKind, Sample, Value};
use tacho_server::http::route::Need;

use crate::support::tokens::{self, Agent, add_to, ask, audit};
use crate::support::{Response, Server};

/// A text that is in each name and text of the team whose series the confined tokens may not see. No answer to a request with a
/// confined token, or without a token, may contain it.
const FOREIGN: &str = "foreign";
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];
/// Parameters that ask for other series. Some have names similar to names of these series, because errors suggest similar
/// names. No parameter contains [`FOREIGN`], because answers may repeat parameters.
const HOSTILE: [&str; 14] = [
    "",
    "all=1&totals=1",
    "match[]={__name__=~\".%2B\"}&query={__name__=~\".%2B\"}",
    "match[]={team!=\"a\",__name__!=\"\"}&query=count({team!=\"a\",__name__!=\"\"}) by (__name__)",
    "match[]={team=~\"a|.*b.*\"}&match[]={__name__=~\"f.*\"}&query={__name__=~\"f.*\"}[1h]",
    "match[]=foreig_metric&query=foreig_metric",
    "match[]={foreig_label!=\"\"}&match[]={team=\"foreig-team\"}&query=absent(foreig_metric)",
    "match[]={service=\"foreig\"}&service=foreig&name=foreig",
    "query=label_replace({__name__=~\".%2B\"},\"x\",\"$1\",\"team\",\"(.*)\")&start=0&end=4000000000&step=40000000",
    "query=sum without (host) ({__name__=~\".%2B\"}) or group({__name__=~\".%2B\"}) by (team)",
    "start=0&end=4000000000&limit=1000&level=service&match[]={__name__!=\"\"}",
    "start=0&end=4000000000&format=dot&level=operation&kind=entry",
    "rule=1&id=1&limit=100",
    "start=0&end=4000000000&outcome=ok&min_duration=0.000001&contains=o&pattern=.*&match[]={__name__=~\".*_text\"}",
];

/// An agent that sends a sample, an entry, a call and a declared record, all with `word` in their names.
fn fill(server: &Server, word: &str, team: &str) -> Agent {
    let (mut agent, _) = Agent::connect(server.records, &format!("{word}-service"), None);
    let name = |kind: &str| format!("{word}_{kind}");
    let mut dictionary = DictFrame::new();
    dictionary.text(1, &name("thread"));
    dictionary.operation(1, OperationKind::HttpServer, &name("operation"));
    let service = format!("{word}-service");
    let host = format!("{word}-host");
    let label = name("label");
    let series = |metric| {
        [("__name__", metric), ("service", &*service), ("host", &*host), ("team", team), (&*label, "x")]
    };
    let (metric, text, declared) = (name("metric"), name("text"), name("type"));
    dictionary.series(1, series(&*metric).into_iter());
    dictionary.series(2, series(&*text).into_iter());
    dictionary.series(3, series(&*declared).into_iter());
    let fields = vec![RecordField {
        name: name("field").into(),
        field_type: FieldType::I64,
        unit: name("unit").into(),
    }];
    dictionary.record_type(1, &RecordType { name: declared.clone().into(), fields });
    agent.send_bytes(&dictionary.finish());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let mut data = DataFrame::new(1, now);
    data.samples(1, &[Sample { at: now, value: Value::F64(1.0) }]);
    data.entry(2, &Entry { at: now, body: tacho_model::Body::Text(name("message").into()) });
    let event = |delta, kind| Event { delta, kind };
    data.segment(&SegmentRecord {
        number: 1,
        // All agents take part in one trace.
        trace: TraceForm::Full(tacho_model::TraceId(7)),
        parent: None,
        thread: 1,
        start: now,
        continued: None,
        events: &[event(0, EventKind::Enter(1)), event(10, EventKind::Exit)],
        attributes: &[],
    });
    data.declared(&DeclaredRecord {
        record_type: 1,
        series: 3,
        at: now,
        call: None,
        values: &[FieldValue::I64(1)],
    });
    agent.send_bytes(&data.finish());
    agent.wait(|frame| match frame {
        ServerFrame::Ack(1) => Some(()),
        ServerFrame::Reject(reject) => panic!("{reject:?}"),
        _ => None,
    });
    agent
}

fn form(pairs: &str) -> String {
    pairs
        .replace(' ', "%20")
        .replace('"', "%22")
        .replace('{', "%7B")
        .replace('}', "%7D")
        .replace('[', "%5B")
        .replace(']', "%5D")
        .replace('|', "%7C")
        .replace('$', "%24")
        .replace('<', "%3C")
}

/// The paths of a route, with names, labels and traces that an attacker may guess.
fn paths(route: &str) -> Vec<String> {
    let fills: &[&str] = match route {
        "/api/v1/label/{name}/values" => &["__name__", "team", "service", "host", "foreig_label"],
        "/api/traces/{trace_id}" => &["00000000000000000000000000000007", "00000000000000000000000000000008"],
        _ => &["x"],
    };
    let Some((before, rest)) = route.split_once('{') else { return vec![route.to_owned()] };
    let behind = rest.split_once('}').unwrap().1;
    fills.iter().map(|fill| format!("{before}{fill}{behind}")).collect()
}

#[track_caller]
fn hides(what: &str, response: &Response) {
    let shown = format!("{:?} {}", response.headers, response.text()).to_lowercase();
    assert!(!shown.contains(FOREIGN), "{what}: {shown}");
    assert!(response.status < 500 || response.status == 503, "{what}: {} {shown}", response.status);
}

/// A server with records, agents and rules of two teams.
struct Two {
    server: Server,
    _agents: Vec<Agent>,
    _place: tempfile::TempDir,
}

impl Two {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let server = Server::start(&place.path().join("data"));
        let agents = vec![fill(&server, "own", "a"), fill(&server, FOREIGN, "foreign-team")];
        for rule in [
            "state=off&pattern=foreign.Class.*&service=foreign-service",
            "state=off&pattern=own.Class.*&service=own-service",
        ] {
            assert_eq!(server.post(&format!("/api/v1/probes?{rule}"), &[], b"").status, 200);
        }
        Self { server, _agents: agents, _place: place }
    }

    /// Returns when the server accepts the token.
    fn token(&self, name: &str, more: &[&str]) -> String {
        add_to(&self.server, name, more)
    }
}

#[test]
fn no_route_shows_anything_of_other_series() {
    let two = Two::start();
    let own = "{service=\"own-service\"}";
    let admin = two.token("admin", &["--role", "admin"]);
    let confined = [
        two.token("reader", &["--role", "read", "--match", own]),
        two.token("both", &["--role", "read,write", "--match", "{team=\"a\"}"]),
        two.token("writer", &["--role", "write", "--match", own]),
    ];
    // The records exist: an administrator sees them.
    let names = ask(&two.server, "GET", "/api/v1/label/__name__/values", &admin).text();
    assert!(names.contains("foreign_metric") && names.contains("own_metric"), "{names}");
    let trace = ask(&two.server, "GET", "/api/traces/00000000000000000000000000000007", &admin).text();
    assert!(trace.contains("foreign_operation") && trace.contains("own_operation"), "{trace}");
    for route in tacho_server::http::routes() {
        for path in paths(route.path) {
            for method in METHODS {
                for params in HOSTILE.map(form) {
                    for token in &confined {
                        let what = format!("{method} {path}?{params}");
                        hides(&what, &ask(&two.server, method, &format!("{path}?{params}"), token));
                        let headers = [
                            ("Authorization", &*format!("Token {token}")),
                            ("Content-Type", "application/x-www-form-urlencoded"),
                        ];
                        if method == "POST" {
                            hides(&what, &two.server.request(method, &path, &headers, params.as_bytes()));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_confined_token_sees_its_own_series_as_if_there_were_no_others() {
    let two = Two::start();
    let token = two.token("reader", &["--role", "read", "--match", "{service=\"own-service\"}"]);
    let get = |path: &str| {
        let response = ask(&two.server, "GET", &form(path), &token);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.text()
    };
    for (path, expect) in [
        ("/api/v1/label/__name__/values", "own_metric"),
        ("/api/v1/labels", "own_label"),
        ("/api/v1/series?match[]={__name__!=\"\"}", "own_metric"),
        ("/api/v1/query?query={__name__=~\".%2B\"}", "own_metric"),
        ("/api/v1/entries?match[]={__name__!=\"\"}", "own_message"),
        ("/api/v1/export?all=1", "own_metric"),
        ("/api/v1/records", "own_type"),
        ("/api/v1/agents", "own-service"),
        ("/api/v1/probes", "own.Class"),
        ("/api/services", "own-service"),
        ("/api/operations", "own_operation"),
        ("/api/traces", "own_operation"),
        ("/api/traces/00000000000000000000000000000007", "own_operation"),
        ("/api/calltree", "own_operation"),
        ("/api/graph", "own_operation"),
        ("/api/v1/matched?match[]=own_metric", "\"sample\":1"),
        ("/api/v1/admin/count?all=1", "\"accepted\":4"),
        ("/api/v1/agents", "\"total\":1"),
        ("/api/status", "\"tokens\":\"used\""),
    ] {
        let text = get(path);
        assert!(text.contains(expect), "{expect} in {path}: {text}");
    }
    assert!(!get("/api/status").contains("data_dir"));
    let body = r#"[{"metric":{"__name__":"foreign_metric","service":"foreign-service","host":"foreign-host",
        "team":"foreign-team","foreign_label":"x"},"kind":"sample","start":"0","end":"4000000000000000000"}]"#;
    let headers = [("Authorization", &*format!("Bearer {token}"))];
    let answer = two.server.post("/api/v1/checksum", &headers, body.as_bytes());
    assert_eq!(
        (answer.status, answer.json()["data"][0]["count"].as_u64()),
        (200, Some(0)),
        "{}",
        answer.text()
    );
    assert!(!audit(&two.server.data).contains("refused"), "{}", audit(&two.server.data));
}

/// The data read by queries of team a, according to `stats`. `foreign` is the number of series of the other team.
fn costs(foreign: usize) -> String {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&place.path().join("data"));
    // The series of one body form one group. The last body has only records of the other team.
    for (second, own) in [(1, 2), (2, 2), (3, 2), (4, 0)] {
        let line =
            |team: &str, nth| format!("cpu,team={team},nth={nth} value={nth}.{second} 17000000{second:02}\n");
        let lines = (0..own).map(|nth| line("a", nth)).chain((0..foreign).map(|nth| line("b", nth)));
        let lines: String = lines.collect();
        assert_eq!(server.post("/write?precision=s", &[], lines.as_bytes()).status, 204);
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    let token = add_to(&server, "reader", &["--role", "read", "--match", "{team=\"a\"}"]);
    let stats = |query: &str| {
        let path = form(&format!("/api/v1/query?time=1700000010&stats=true&query={query}"));
        let mut stats = ask(&server, "GET", &path, &token).json()["data"]["stats"].clone();
        stats.as_object_mut().unwrap().remove("timings");
        stats.to_string()
    };
    ["cpu[1h]", "sum_over_time(cpu[1h])", "cpu{nth=\"1\"}", "cpu{team=\"b\"}"].map(stats).join("\n")
}

#[test]
fn stats_of_a_confined_token_do_not_depend_on_other_series() {
    let alone = costs(0);
    assert!(alone.contains("\"totalQueryableSamples\":6"), "{alone}");
    assert_eq!(costs(20), alone);
}

#[test]
fn ids_of_rules_and_sessions_do_not_reveal_how_many_others_exist() {
    let two = Two::start();
    let token = two.token("reader", &["--role", "read", "--match", "{service=\"own-service\"}"]);
    let get = |path: &str| ask(&two.server, "GET", path, &token);
    let rules = get("/api/v1/probes").json()["data"]["rules"].clone();
    assert_eq!((rules.as_array().map(Vec::len), &rules[0]["pattern"]), (Some(1), &"own.Class.*".into()));
    // The real id of the rule is 2, which would reveal that there is another rule.
    let number = rules[0]["id"].as_u64().unwrap();
    assert!(number > 1_000_000, "{rules}");
    assert_eq!(get(&format!("/api/v1/agents?rule={number}")).status, 200);
    let agents = get("/api/v1/agents").json()["data"]["agents"].clone();
    assert_eq!(agents.as_array().map(Vec::len), Some(1), "{agents}");
    let session: u64 = agents[0]["session"].as_str().unwrap().parse().unwrap();
    assert!(session > 1_000_000, "{agents}");
    for id in 1..=3 {
        assert_eq!(get(&format!("/api/v1/agents?rule={id}")).status, 404, "rule {id}");
    }
}

#[test]
fn a_confined_token_writes_only_its_own_series() {
    let two = Two::start();
    let token = two.token("writer", &["--role", "write", "--match", "{team=\"a\"}"]);
    let admin = two.token("admin", &["--role", "admin"]);
    let headers = [("Authorization", &*format!("Token {token}"))];
    let body = b"cpu,team=a value=1\ncpu,team=b value=2\ncpu value=3\n";
    let answer = two.server.post("/write", &headers, body);
    assert_eq!(answer.status, 400);
    let said = answer.text();
    assert!(said.contains("2 refused, the others are kept") && said.contains("confined to"), "{said}");
    let kept = ask(&two.server, "GET", &form("/api/v1/series?match[]=cpu"), &admin).text();
    assert!(kept.contains("\"team\":\"a\"") && !kept.contains("\"team\":\"b\""), "{kept}");
    // The calls of an agent have no label `team`, so the server refuses the whole agent.
    let (_, first) = Agent::connect(two.server.records, "other-service", Some(&token));
    assert_eq!(tokens::code(&first), 13);
}

#[test]
fn without_a_token_only_the_documented_routes_answer() {
    let two = Two::start();
    let _ = two.token("admin", &["--role", "admin"]);
    let mut open = Vec::new();
    for route in tacho_server::http::routes() {
        for path in paths(route.path) {
            for method in METHODS {
                let response = two.server.request(method, &path, &[], b"");
                hides(&path, &response);
                if response.status == 401 {
                    let challenge = response.header("www-authenticate").unwrap_or_default();
                    assert!(challenge.starts_with("Bearer "), "{method} {path}: {challenge}");
                    assert!(response.header("content-security-policy").is_some(), "{method} {path}");
                } else {
                    open.push(route.path);
                }
            }
        }
        let is_public = route.needs.0 == Need::Nothing || route.needs.1 == Need::Nothing;
        assert_eq!(is_public, open.contains(&route.path), "{}", route.path);
    }
    open.dedup();
    assert_eq!(open, ["/healthz", "/readyz", "/api/session", "/", "/assets/{*path}"]);
    assert_eq!(two.server.get("/api/session").status, 401);
    assert_eq!(two.server.get("/nothing").status, 401);
    let mut agent = Agent::connect(two.server.records, "shop", None);
    assert_eq!(tokens::code(&agent.1), 12);
    agent.0.send(&ClientFrame::Bye);
}
