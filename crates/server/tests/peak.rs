//! Checks at each entry point of the HTTP server that the memory of a request is bounded by its bytes. The limit on
//! decompressed bytes bounds the memory of records in gzip. A search looks for the requests that need the most memory.
//!
//! This file tests gzip, query strings, forms, PromQL, selectors, deletions, and JSON. `ingest/tests/peak.rs` tests bodies of
//! records. The server runs in this process, so that its memory is counted. There is only one test, because all tests of a
//! process share its memory.

#[path = "../../ingest/tests/support/climb.rs"]
mod climb;
#[path = "support/inside.rs"]
mod inside;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use climb::{Shape, Taken};
use flate2::Compression;
use flate2::write::GzEncoder;
use inside::Inside;
use tacho_store::MemoryDriver;

/// A shape is a list of numbers that define a request. For each path of an entry point ([`Door`]) with one or two paths, the
/// search tries this many changed shapes. For each path of other entry points, it tries one.
const TRIES: usize = 6;
/// Memory that every request may take: buffers of its connection, and caches that are filled once.
const MIN_BYTES: usize = 8 << 20;
/// Memory per byte of a request without records, for its body, its decoded parts, and its parsed form.
const PER_BYTE: usize = 24;
/// Size limit of a body with a form or JSON.
const FORM_BYTES: usize = 1 << 20;
/// Size limit of the parameters in the head of a request.
const HEAD_BYTES: usize = 60_000;
/// Size limit of a decompressed body of records. It is low, because decompression is slow in a debug build.
const BODY_BYTES: usize = 2 << 20;

struct Door {
    name: &'static str,
    paths: &'static [&'static str],
    request: fn(&str, &Shape) -> Request,
    bound: fn(usize) -> usize,
    worst: &'static [Shape],
}

struct Request {
    method: &'static str,
    path: String,
    headers: &'static str,
    body: Vec<u8>,
}

const fn plain(bytes: usize) -> usize {
    MIN_BYTES + PER_BYTE * bytes
}

const DOORS: &[Door] = &[
    Door {
        name: "query strings",
        paths: &[
            "/api/v1/query",
            "/api/v1/query_range",
            "/api/v1/series",
            "/api/v1/labels",
            "/api/v1/label/a/values",
            "/api/v1/export",
            "/api/v1/entries",
            "/api/v1/matched",
            "/api/v1/admin/count",
            "/api/v1/agents",
            "/api/v1/probes",
            "/api/v1/records",
            "/api/v1/status/cardinality",
            "/api/inspect",
            "/api/services",
            "/api/operations",
            "/api/traces",
            "/api/calltree",
            "/api/graph",
        ],
        request: |path, shape| Request {
            method: "GET",
            path: format!("{path}?{}", parameters(shape, HEAD_BYTES)),
            headers: "",
            body: vec![],
        },
        bound: plain,
        // Kind of the parameter, its bytes, number of parameters, number of texts in each.
        worst: &[[0, 0, 60_000, 0, 0, 0], [1, 50_000, 1, 9_000, 0, 0], [2, 50_000, 1, 9_000, 0, 0]],
    },
    Door {
        name: "forms",
        paths: &[
            "/api/v1/query",
            "/api/v1/query_range",
            "/api/v1/series",
            "/api/v1/labels",
            "/api/v1/export",
            "/api/v1/entries",
            "/api/v1/matched",
            "/api/v1/admin/count",
            "/api/v1/probes",
            "/api/v1/admin/tsdb/delete_series",
        ],
        request: |path, shape| Request {
            method: "POST",
            path: path.to_owned(),
            headers: "Content-Type: application/x-www-form-urlencoded\r\n",
            body: parameters(shape, FORM_BYTES).into_bytes(),
        },
        bound: plain,
        worst: &[
            [0, 0, 1_000_000, 0, 0, 0],
            [0, 400, 2_000, 0, 0, 0],
            [1, 32_000, 1, 9_000, 0, 0],
            [1, 32_000, 64, 9_000, 0, 0],
            [2, 32_000, 64, 9_000, 0, 0],
            [3, 32_000, 1, 9_000, 0, 0],
            [4, 32_000, 1, 9_000, 0, 0],
            [5, 4_000, 1, 900, 0, 0],
            [6, 32_000, 1, 9_000, 0, 0],
        ],
    },
    Door {
        name: "JSON",
        paths: &["/api/session", "/api/v1/probes", "/api/v1/checksum"],
        request: |path, shape| Request {
            method: "POST",
            path: path.to_owned(),
            headers: "Content-Type: application/json\r\n",
            body: json(shape).into_bytes(),
        },
        bound: plain,
        // Kind of the JSON, number of members or items, bytes of a text.
        worst: &[
            [0, 1, 60_000, 0, 0, 0],
            [1, 20_000, 0, 0, 0, 0],
            [2, 100_000, 0, 0, 0, 0],
            [3, 500_000, 0, 0, 0, 0],
            [4, 100_000, 9, 0, 0, 0],
            [5, 1, 900_000, 0, 0, 0],
        ],
    },
    Door {
        name: "JSON of rules in gzip",
        paths: &["/api/v1/probes"],
        request: |path, shape| Request {
            method: "POST",
            path: path.to_owned(),
            headers: "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            body: gzip(&json(shape).into_bytes()),
        },
        bound: plain,
        worst: &[[0, 1, 60_000, 0, 0, 0], [5, 1, 900_000, 0, 0, 0], [3, 500_000, 0, 0, 0, 0]],
    },
    Door {
        name: "gzip",
        paths: &["/write", "/api/v2/write", "/api/v1/import"],
        request: |path, shape| Request {
            method: "POST",
            path: path.to_owned(),
            headers: "Content-Encoding: gzip\r\n",
            body: packed(shape),
        },
        // A compressed byte may expand to a thousand bytes, so the bound depends on the limit on decompressed bytes. The
        // buffer doubles as it fills.
        bound: |_| MIN_BYTES + 4 * BODY_BYTES,
        // Decompressed bytes of a gzip member, number of members, whether the end is missing.
        worst: &[
            [1 << 20, 2, 0, 0, 0, 0],
            [1 << 20, 3, 0, 0, 0, 0],
            [1 << 20, 500, 0, 0, 0, 0],
            [BODY_BYTES + 1, 1, 0, 0, 0, 0],
            [1 << 20, 2, 1, 0, 0, 0],
            [0, 100_000, 0, 0, 0, 0],
        ],
    },
];

#[test]
fn no_request_takes_more_memory_than_its_bytes_allow() {
    check_that_all_routes_are_known();
    let server = Inside::start(Arc::new(MemoryDriver::new()), BODY_BYTES);
    // The first query fills caches. Their memory must not count for the requests of the test.
    send(
        server.http,
        &Request { method: "GET", path: "/api/v1/query?query=up".into(), headers: "", body: vec![] },
    );
    for door in DOORS {
        for path in door.paths {
            let tries = if door.paths.len() > 2 { 1 } else { TRIES };
            climb::climb(&format!("{} {path}", door.name), door.worst, tries, |shape| {
                let request = (door.request)(path, shape);
                let body = request.path.len() + request.body.len();
                let peak = climb::peak(|| send(server.http, &request));
                Taken { peak, bound: (door.bound)(body), body }
            });
        }
    }
}

/// Checks that every route is tested here, takes records, takes no input, or takes input only in its path. Finds only routes
/// whose path directly follows `Route::new(`.
fn check_that_all_routes_are_known() {
    const OF_RECORDS: &[&str] = &["/api/v1/write"];
    const TAKE_NOTHING: &[&str] = &[
        "/",
        "/api/flush",
        "/api/status",
        "/api/v1/admin/clock/confirm",
        "/api/v1/admin/merge",
        "/api/v1/admin/snapshots",
        "/api/v1/admin/tsdb/clean_tombstones",
        "/api/v1/metadata",
        "/api/v1/status/buildinfo",
        "/healthz",
        "/metrics",
        "/readyz",
    ];
    const IN_THE_PATH: &[&str] = &[
        "/api/traces/{trace_id}",
        "/api/v1/admin/snapshots/{id}",
        "/api/v1/admin/snapshots/{id}/renew",
        "/api/v1/label/{name}/values",
    ];
    let known = |path: &str| {
        DOORS.iter().any(|door| door.paths.contains(&path))
            || [OF_RECORDS, TAKE_NOTHING, IN_THE_PATH].concat().contains(&path)
            || path.starts_with("/assets/")
    };
    let mut routes = 0;
    let mut directories = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/http")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            for route in
                text.split("Route::new(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'))
            {
                let route = route.split('"').next().unwrap();
                assert!(
                    known(route),
                    "the memory of requests to {route} of {} is not tested",
                    path.display()
                );
                routes += 1;
            }
        }
    }
    assert!(routes > 30, "only {routes} routes were found");
}

fn send(at: SocketAddr, request: &Request) {
    let Request { method, path, headers, body } = request;
    let mut stream = TcpStream::connect(at).expect("server accepts");
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a head is accepted");
    // Fails if the server refuses the body because of its length and does not read it.
    let _ = stream.write_all(body);
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    assert!(
        status.starts_with(b"HTTP/1.1 ") && &status[9..] != b"500",
        "{path:.80}: {:?}",
        String::from_utf8_lossy(&status)
    );
    let mut rest = [0; 4_096];
    while stream.read(&mut rest).is_ok_and(|read| read > 0) {}
}

fn repeated(what: &str, between: &str, times: usize, bytes: usize) -> String {
    let mut out = String::new();
    for _ in 0..times {
        if out.len() + what.len() + between.len() > bytes {
            break;
        }
        out.push_str(what);
        out.push_str(between);
    }
    out.truncate(out.len().saturating_sub(between.len()));
    out
}

/// Parameters of at most this many bytes, percent-encoded.
fn parameters(shape: &Shape, bytes: usize) -> String {
    let [form, of_one, count, texts, ..] = *shape;
    let of_one = of_one.min(bytes);
    let text = match form % 7 {
        0 => return repeated(&format!("a{}", "%20".repeat(of_one / 3)), "&", count, bytes),
        // Many matchers, many patterns.
        1 => format!("query=1&match[]={{{}}}", repeated("a!=%22%22", ",", texts, of_one)),
        2 => format!("match[]={{a=%22b%22,{}}}", repeated("a=~%22[a-z]{9}.*%22", ",", texts.min(64), of_one)),
        // Many arguments, labels, operators, levels of nesting.
        3 => format!("query=label_join(a,%22b%22,{})", repeated("%22%22", ",", texts, of_one)),
        4 => format!("query=sum by({})(a)", repeated("a", ",", texts, of_one)).replace(' ', "%20"),
        5 => format!("query={}", repeated("a", "%2B", texts.min(257), of_one)),
        _ => format!("query={}a{}", "sum(".repeat(texts.min(64)), ")".repeat(texts.min(64))),
    };
    let times = "start=1&end=9&step=1&";
    repeated(&(times.to_owned() + &text), "&", count.clamp(1, 64), bytes)
}

fn json(shape: &Shape) -> String {
    let [form, count, text_bytes, ..] = *shape;
    let text = "a".repeat(text_bytes.min(FORM_BYTES));
    let list = |item: &str| format!("[{}]", repeated(item, ",", count, FORM_BYTES - 100));
    match form % 6 {
        0 => format!(r#"{{"state":"on","pattern":"{text}"}}"#),
        1 => list(r#"{"metric":{"":""},"kind":"","start":"","end":""}"#),
        2 => format!(r#"[{{"metric":{{{}}}}}]"#, repeated(r#""a":"""#, ",", count, FORM_BYTES - 100)),
        3 => list("[]"),
        4 => format!(r#"[{{"metric":{}}}]"#, repeated(r#"{"":"#, "", count, FORM_BYTES - 100)),
        _ => format!(r#"{{"state":"on","pattern":"{}"}}"#, r"\u0061".repeat(text_bytes.min(FORM_BYTES) / 6)),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A gzip body of one or more members with comments of the line protocol.
fn packed(shape: &Shape) -> Vec<u8> {
    let [bytes, members, broken, ..] = *shape;
    let comment = [b"#".repeat(1_023).as_slice(), b"\n"].concat();
    let member = comment.repeat(bytes.div_ceil(comment.len()).min(1 + (BODY_BYTES >> 10)));
    let mut out = gzip(&member[..bytes.min(member.len())]).repeat(members.clamp(1, 100_000));
    if broken % 2 == 1 {
        out.truncate(out.len() - 9);
    }
    out.truncate(BODY_BYTES);
    out
}
