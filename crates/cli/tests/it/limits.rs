//! Tests that the limits of a token are enforced and counted, and that the audit log has a line of each kind of refusal.

use serde_json::Value;
use tacho_ingest::wire::{ClientFrame, DataFrame, DictFrame, Hello, ServerFrame};
use tacho_model::Sample;

use crate::support::guarded::Guarded;
use crate::support::tokens::{Agent, ask, audit, code, revoke};
use crate::support::{agent, wait_for};

#[test]
fn sessions_series_and_queries_above_a_limit_are_refused_and_counted() {
    let guarded = Guarded::start();
    let limits =
        ["--role", "read,write", "--sessions-max", "1", "--series-max", "2", "--query-samples-max", "1"];
    let token = guarded.token("limited", &limits);
    let at = guarded.server.records;
    let (first, _) = Agent::connect(at, "one", Some(&token));
    assert_eq!(code(&Agent::connect(at, "two", Some(&token)).1), 9);
    drop(first);
    let bearer = format!("Bearer {token}");
    let write = |body: &str| guarded.server.post("/write", &[("Authorization", &bearer)], body.as_bytes());
    assert_eq!(write("a value=1\nb value=1\na value=2\n").status, 204);
    let over = write("a value=3\nc value=1\n");
    assert!(over.status == 400 && over.text().contains("may write 2 series a day"), "{}", over.text());
    let query = ask(&guarded.server, "GET", "/api/v1/query?query=count_over_time(a[1h])", &token);
    assert_eq!(query.status, 422, "{}", query.text());
    assert!(query.text().contains("more than 1 samples"), "{}", query.text());
    for (reason, least) in [("sessions", 1), ("series", 1), ("query_samples", 1)] {
        assert!(guarded.refused("limited", reason) >= least, "{reason}");
    }
}

#[test]
fn every_request_for_records_counts_toward_the_limit_on_queries_of_its_token() {
    let guarded = Guarded::start();
    let writer = guarded.token("writer", &["--role", "write"]);
    let free = guarded.token("free", &["--role", "read"]);
    let (mut sender, _) = Agent::connect(guarded.server.records, "shop", Some(&writer));
    sender.send_bytes(&agent::dictionary(7));
    // Each frame has 3 samples, 2 entries and 2 calls.
    let frames = 5;
    (1..=frames).for_each(|seq| sender.send_bytes(&agent::content::frame(seq)));
    sender.wait(|frame| (frame == ServerFrame::Ack(frames)).then_some(()));
    // Two tokens: the limit of the first is one record too low, the limit of the second is the number of records. A call that an
    // analysis reads in several passes counts once.
    let tokens = |records: u64| {
        [records - 1, records].map(|max| {
            let max = max.to_string();
            guarded.token(&format!("max{max}"), &["--role", "read", "--query-samples-max", &max])
        })
    };
    let range = "start=1699999990&end=1700000100";
    let selected = "[{\"metric\":{\"__name__\":\"heap\",\"session\":\"7\"},\"kind\":\"sample\",\
                    \"start\":\"0\",\"end\":\"2000000000000000000\"}]";
    let (calls, samples) = (tokens(2 * frames), tokens(3 * frames));
    let paths = [
        ("GET", format!("/api/v1/entries?match[]=log&{range}"), &calls),
        ("GET", format!("/api/services?{range}"), &calls),
        ("GET", format!("/api/operations?{range}"), &calls),
        ("GET", format!("/api/traces?{range}"), &calls),
        ("GET", format!("/api/calltree?{range}"), &calls),
        ("GET", format!("/api/graph?{range}"), &calls),
        ("GET", "/api/v1/export?match[]=heap&totals=1".to_owned(), &samples),
        ("GET", "/api/v1/admin/count?match[]=heap".to_owned(), &samples),
        ("POST", "/api/v1/checksum".to_owned(), &samples),
    ];
    for (method, path, [below, enough]) in paths {
        let answer = |token: &str| {
            let headers = [("Authorization", &*format!("Bearer {token}"))];
            let body = if method == "POST" { selected } else { "" };
            guarded.server.request(method, &path, &headers, body.as_bytes())
        };
        let refused = answer(below);
        // The head of an export is sent before its records are read.
        let status = if path.contains("/export") { 200 } else { 422 };
        assert_eq!(refused.status, status, "{path}: {}", refused.text());
        assert!(refused.text().contains(" records in a request: narrow"), "{path}: {}", refused.text());
        let (full, own) = (answer(&free), answer(enough));
        assert_eq!((own.status, own.text()), (200, full.text()), "{path}");
        assert!(!full.text().contains(" records in a request"), "{path}: {}", full.text());
    }
    assert_eq!((guarded.refused("max9", "query_samples"), guarded.refused("max10", "query_samples")), (6, 0));
}

/// A body with two DATA frames. Each has more samples than the token may write in a second.
fn two_frames() -> Vec<u8> {
    let mut body = Vec::new();
    let hello =
        Hello { version_min: 1, version_max: 1, session: 77, pairs: vec![], secret: None, token: None };
    ClientFrame::Hello(hello).encode(&mut body);
    let mut dictionary = DictFrame::new();
    dictionary.series(1, [("__name__", "imported")].into_iter());
    body.extend(dictionary.finish());
    for seq in 1..=2 {
        let mut data = DataFrame::new(seq, 0);
        let sample = |n| Sample { at: seq as i64 * 1_000 + n, value: tacho_model::Value::F64(1.0) };
        data.samples(1, &(0..30).map(sample).collect::<Vec<_>>());
        body.extend(data.finish());
    }
    body
}

#[test]
fn an_import_above_the_rate_is_delayed_and_completes() {
    let guarded = Guarded::start();
    let token = guarded.token("limited", &["--role", "write", "--samples-per-second-max", "20"]);
    let bearer = format!("Bearer {token}");
    let body = two_frames();
    let post = || guarded.server.post("/api/v1/import", &[("Authorization", &bearer)], &body);
    let first = post();
    let why = "token \\\"limited\\\" may write 20 records per second";
    assert!(first.status == 429 && first.text().contains(why), "{}", first.text());
    assert!(first.header("retry-after").is_some_and(|seconds| seconds != "0"));
    let done = wait_for("the import to end", || Some(post()).filter(|response| response.status == 200));
    assert_eq!(done.json()["data"]["repeated"].as_u64(), Some(1), "{}", done.text());
    assert!(guarded.refused("limited", "samples_per_second") >= 1);

    let lines: String = (1..=200).map(|at| format!("m value=1 {at}\n")).collect();
    let write = || guarded.server.post("/write", &[("Authorization", &bearer)], lines.as_bytes()).status;
    let mut delayed = 0;
    while delayed < 2 {
        match write() {
            429 => delayed += 1,
            status => assert_eq!(status, 204),
        }
    }
    let text = ask(&guarded.server, "GET", "/metrics", &guarded.admin).text();
    assert!(text.contains("tacho_sender_waits_total{protocol=\"line\"} 2\n"), "{text}");
    assert!(text.contains("tacho_sender_waits_total{protocol=\"import\"} "), "{text}");
}

/// A dictionary with one series, and a DATA frame with samples of it.
fn frame_of(name: &str, seq: u64, samples: i64) -> Vec<u8> {
    let mut dictionary = DictFrame::new();
    dictionary.series(1, [("__name__", name)].into_iter());
    let mut data = DataFrame::new(seq, 0);
    let sample = |n| Sample { at: seq as i64 * 1_000 + n, value: tacho_model::Value::F64(1.0) };
    data.samples(1, &(0..samples).map(sample).collect::<Vec<_>>());
    [dictionary.finish(), data.finish()].concat()
}

/// Both agents send the same session id, which has no secret. Without tokens of their own, the second one would continue the
/// session of the first one.
#[test]
fn a_session_without_a_secret_belongs_to_its_token() {
    let guarded = Guarded::start();
    let [a, b] = ["a", "b"].map(|name| guarded.token(name, &["--role", "read,write"]));
    let acked = |seq: u64| {
        move |frame| match frame {
            ServerFrame::Ack(acked) if acked >= seq => Some(()),
            _ => None,
        }
    };
    let connect = |token: &String| {
        let (agent, first) = Agent::connect(guarded.server.records, "one", Some(token));
        let ServerFrame::Welcome(welcome) = first else { panic!("{first:?}") };
        (agent, welcome.acked)
    };
    let (mut owner, none) = connect(&a);
    owner.send_bytes(&frame_of("owned", 1, 1));
    owner.wait(acked(1));
    let (mut other, of_other) = connect(&b);
    assert_eq!((none, of_other), (0, 0));
    other.send_bytes(&frame_of("owned", 1 << 20, 1));
    other.wait(acked(1 << 20));
    owner.send_bytes(&frame_of("owned", 2, 1));
    owner.wait(acked(2));
    drop(owner);
    assert_eq!(connect(&a).1, 2);
    let bearer = format!("Bearer {a}");
    let path = "/api/v1/query?query=count_over_time(owned%5B1h%5D)&time=2000";
    let answer = guarded.server.request("GET", path, &[("Authorization", &bearer)], b"").text();
    assert!(answer.contains("\"3\""), "{answer}");
}

#[test]
fn a_token_cannot_use_the_names_of_labels_of_others() {
    let guarded = Guarded::start();
    let confined = guarded.token("confined", &["--role", "write", "--match", "{team=\"a\"}"]);
    let free = guarded.token("free", &["--role", "write"]);
    let write = |token: &str, body: &str| {
        let bearer = format!("Bearer {token}");
        guarded.server.post("/write", &[("Authorization", &bearer)], body.as_bytes())
    };
    let line = |n: usize| {
        let names: String = (0..50).map(|name| format!(",l{n}_{name}=1")).collect();
        format!("m,team=a{names} v=1\n")
    };
    let lines: String = (0..30).map(line).collect();
    let response = write(&confined, &lines);
    assert_eq!(response.status, 400);
    assert!(response.text().contains("may write 1000 names of labels a day"), "{}", response.text());
    assert_eq!(write(&confined, "m,team=a,l0_1=2 v=1").status, 204, "known names");
    assert_eq!(
        write(&free, &lines.replace("l", "k")).status,
        204,
        "a token that may write all series has no limit"
    );
}

#[test]
fn logins_do_not_displace_other_lines_of_the_audit_log() {
    let guarded = Guarded::start();
    let token = guarded.token("busy", &["--role", "read"]);
    (0..100).for_each(|_| drop(guarded.cookie(&token)));
    let lines = audit(guarded.data()).lines().filter(|line| line.contains("\"login\"")).count();
    // A minute may have begun in between.
    assert!((10..=20).contains(&lines), "{lines} lines");
}

#[test]
fn an_agent_above_the_rate_of_its_token_waits_and_other_agents_do_not() {
    let guarded = Guarded::start();
    let token = guarded.token("limited", &["--role", "write", "--samples-per-second-max", "1"]);
    let other = guarded.token("other", &["--role", "write"]);
    let (mut agent, _) = Agent::connect(guarded.server.records, "one", Some(&token));
    let acked = |seq: u64| {
        move |frame| match frame {
            ServerFrame::Ack(acked) if acked >= seq => Some(()),
            ServerFrame::Wait(ms) => panic!("the agent waits {ms} ms instead of an ACK of {seq}"),
            _ => None,
        }
    };
    // A frame above the limit is stored as a whole. The next frame waits until the rate permits these 3,000 samples.
    agent.send_bytes(&frame_of("a", 1, 3_000));
    agent.wait(acked(1));
    agent.send_bytes(&frame_of("a", 2, 1));
    let ms = agent.wait(|frame| match frame {
        ServerFrame::Wait(ms) => Some(ms),
        ServerFrame::Ack(2) => panic!("the frame did not wait"),
        _ => None,
    });
    assert!((1..=3_000_000).contains(&ms), "{ms}");
    let (mut free, _) = Agent::connect(guarded.server.records, "two", Some(&other));
    for seq in 1..=2 {
        free.send_bytes(&frame_of("b", seq, 3_000));
        free.wait(acked(seq));
    }
    assert!(guarded.refused("limited", "samples_per_second") >= 1);
    assert_eq!(guarded.refused("other", "samples_per_second"), 0);
}

/// A line of the audit log: event, token, place, and a part of the reason. Empty texts stand for absent JSON members.
type Line = (&'static str, &'static str, &'static str, &'static str);

/// A line for each kind of refusal, for a login, and for each change of a token.
const LINES: [Line; 19] = [
    ("token added", "admin", "", ""),
    ("token added", "reader", "", ""),
    ("token revoked", "reader", "", ""),
    ("login", "reader", "", ""),
    ("refused", "", "POST /write", "missing"),
    ("refused", "", "GET /api/v1/labels", "unknown"),
    ("refused", "", "GET /api/v1/labels", "session"),
    ("refused", "", "GET /api/v1/labels", "a page of \"https://evil.example\" may not use this server"),
    ("refused", "", "POST /api/v1/admin/merge", "a change with the page's cookie needs the header Origin"),
    ("refused", "reader", "POST /api/v1/admin/merge", "does not have the role admin"),
    ("refused", "confined", "GET /api/v1/status/cardinality", "is confined to some series"),
    ("refused", "confined", "POST /write", "token \"confined\" is confined to {service=\"shop\"}"),
    ("refused", "confined", "agent", "token \"confined\" is confined to {service=\"shop\"}"),
    ("refused", "limited", "agent", "may have 1 sessions"),
    ("refused", "limited", "POST /write", "may write 1 series a day"),
    ("refused", "limited", "POST /write", "may write 1 records per second"),
    ("refused", "limited", "GET /api/v1/query", "a query reads more than 1 samples"),
    ("token added", "limited", "", ""),
    ("token added", "confined", "", ""),
];

/// Sends a request of each kind that the server refuses. If refusals of a kind get one line a minute in the audit log, a request
/// of this kind is sent several times.
fn refuse_each_kind(guarded: &Guarded) {
    let (server, at) = (&guarded.server, guarded.server.records);
    let reader = guarded.token("reader", &["--role", "read"]);
    let limits = ["--series-max", "1", "--samples-per-second-max", "1", "--sessions-max", "1"];
    let limited = guarded
        .token("limited", &[&["--role", "read,write", "--query-samples-max", "1"], &limits[..]].concat());
    let confined = guarded.token("confined", &["--role", "read,write", "--match", "{service=\"shop\"}"]);
    let cookie = guarded.cookie(&reader);
    let bearer = |token: &str| format!("Bearer {token}");
    let write = |token: &str, body: &str| {
        server.post("/write", &[("Authorization", &bearer(token))], body.as_bytes()).status
    };
    let admin_only = "/api/v1/admin/merge";
    let evil = ("Origin", "https://evil.example");
    for round in 1..=3 {
        assert_eq!(server.post("/write", &[], b"a value=1").status, 401);
        let of_ended = [("Cookie", "tacho_session=ended")];
        assert_eq!(server.request("GET", "/api/v1/labels", &of_ended, b"").status, 401);
        assert_eq!(server.request("GET", "/api/v1/labels", &[evil], b"").status, 403);
        assert_eq!(server.post(admin_only, &[("Cookie", &cookie)], b"").status, 403);
        assert_eq!(ask(server, "POST", admin_only, &reader).status, 403);
        assert_eq!(ask(server, "GET", "/api/v1/status/cardinality", &confined).status, 403);
        assert_eq!(write(&confined, "a value=1\nb value=1"), 400);
        let (mut agent, _) = Agent::connect(at, "shop", Some(&confined));
        agent.send_bytes(&frame_of("c", round, 1));
        agent.wait(|frame| matches!(frame, ServerFrame::Reject(_)).then_some(()));
    }
    assert_eq!(ask(server, "GET", "/api/v1/labels", "tacho_wrong").status, 401);
    let (first, _) = Agent::connect(at, "one", Some(&limited));
    for _ in 0..3 {
        assert_eq!(code(&Agent::connect(at, "two", Some(&limited)).1), 9);
    }
    drop(first);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let many: String = (0..3_000).map(|n| format!("a value={n} {}\n", now - n * 1_000_000)).collect();
    assert_eq!(write(&limited, &format!("{many}b value=1\nc value=1\n")), 400);
    assert_eq!(write(&limited, "a value=1"), 429);
    let query = "/api/v1/query?query=count_over_time(a[1h])";
    for _ in 0..3 {
        assert_eq!(ask(server, "GET", query, &limited).status, 422);
    }
}

#[test]
fn each_kind_of_refusal_login_and_change_of_a_token_has_one_line_in_the_audit_log() {
    let guarded = Guarded::start();
    let begun = std::time::Instant::now();
    refuse_each_kind(&guarded);
    revoke(&guarded.server, "reader");

    let minutes = begun.elapsed().as_secs() as usize / 60 + 1;
    let lines: Vec<Value> =
        audit(guarded.data()).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |line: &Value, member: &str| line[member].as_str().unwrap_or_default().to_owned();
    for (event, token, place, reason) in LINES {
        let is_it = |line: &&Value| {
            line["event"] == event
                && text(line, "token") == token
                && text(line, "place") == place
                && text(line, "reason").contains(reason)
        };
        let found: Vec<&Value> = lines.iter().filter(is_it).collect();
        let bound = 1..=minutes;
        assert!(bound.contains(&found.len()), "{event} {token} {place} {reason}: {found:?} of {lines:#?}");
        let by_command = event.starts_with("token ");
        assert_eq!(found[0]["address"] == "127.0.0.1", !by_command, "{:?}", found[0]);
        assert_eq!(found[0]["user"].is_u64(), by_command, "{:?}", found[0]);
    }
    // The first write of the confined token had two series.
    let of_confined =
        |line: &&Value| text(line, "token") == "confined" && text(line, "place") == "POST /write";
    assert_eq!(lines.iter().find(of_confined).unwrap()["refusals"], 2);
    assert!(lines.len() <= LINES.len() * minutes, "{lines:#?}");
    assert!(guarded.refused("confined", "selector") >= 12);
}
