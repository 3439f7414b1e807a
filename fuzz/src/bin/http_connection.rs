//! An HTTP connection never panics, whatever requests arrive, and no request is answered with status 500. The answers have
//! the form of HTTP, and their status does not depend on the places where the bytes are cut. Some servers have tokens.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tacho_fuzz::{CONNECTION_BYTES, Script, directory, gate, runtime, talk_to};
use tacho_model::ManualClock;
use tacho_server::config::{self, Settings};
use tacho_server::control::Control;
use tacho_server::http::{App, router, serve_stream};
use tacho_server::metrics::Metrics;
use tacho_server::record_types::RecordTypes;
use tacho_store::disk::FaultyDisk;
use tacho_store::{MemoryDriver, Options, Store};

const REQUESTS_MAX: usize = 4;
const HOUR: Duration = Duration::from_secs(3_600);

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script(bytes);
    let step = 1 + script.below(200);
    let has_tokens = script.byte() % 2 == 1;
    let (sent, methods) = sent(&mut script);
    let whole = statuses(&talk(&sent, sent.len().max(1), has_tokens), &methods);
    let cut = statuses(&talk(&sent, step, has_tokens), &methods);
    // The server may close the connection after a request whose body it has not read. Whether it does depends on the bytes that
    // have arrived. So one of the two runs may have fewer answers.
    let both = whole.len().min(cut.len());
    assert_eq!(whole[..both], cut[..both], "the answers depend on the cuts");
});

const METHODS: [&str; 6] = ["GET", "GET", "POST", "POST", "DELETE", "OPTIONS"];
#[rustfmt::skip]
const PATHS: &[&str] = &[
    "/api/v1/query", "/api/v1/query_range", "/api/v1/series", "/api/v1/labels", "/api/v1/label/job/values",
    "/api/v1/entries", "/api/v1/export", "/api/v1/import", "/api/v1/matched", "/api/v1/metadata", "/api/v1/records",
    "/api/v1/probes", "/api/v1/probes/1", "/api/v1/agents", "/api/v1/checksum", "/api/v1/write", "/write", "/api/v2/write",
    "/api/services", "/api/operations", "/api/graph", "/api/calltree", "/api/traces", "/api/traces/1", "/api/inspect",
    "/api/flush", "/api/status", "/metrics", "/healthz", "/readyz", "/", "/api/v1/status/cardinality",
    "/api/v1/admin/tsdb/delete_series", "/api/v1/admin/tsdb/clean_tombstones", "/api/v1/admin/count",
    "/api/v1/admin/merge", "/api/v1/admin/clock/confirm", "/api/v1/status/buildinfo", "/api/session", "/api/session",
    "/api/v1/admin/snapshots", "/api/v1/admin/snapshots/1", "/api/v1/admin/snapshots/1/renew",
];
#[rustfmt::skip]
const PARAMETERS: &[&str] = &[
    "query=up", "query=m", "query=rate(m[5m])", "time=0", "start=0", "end=100", "step=1", "match[]=m", "match[]={a=\"1\"}",
    "limit=1", "service=shop", "precision=s", "format=line", "format=csv", "stats=true", "start=", "end=x",
    "db=a", "bucket=a", "operation=o", "min=1", "order=slowest", "dry_run=true", "%", "a=%ff", "p=tacho_writer",
    "p=tacho_unknown",
];
#[rustfmt::skip]
const HEADERS: &[&str] = &[
    "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded", "Content-Type: text/csv",
    "Content-Encoding: gzip", "Content-Encoding: snappy", "Accept-Encoding: gzip", "Accept: application/json",
    "Transfer-Encoding: chunked", "Content-Length: 3", "Expect: 100-continue", "Origin: http://localhost:7070",
    "Origin: http://other", "Connection: close", "Content-Type: application/x-protobuf", "Range: bytes=0-1",
    "Authorization: Bearer tacho_admin", "Authorization: Bearer tacho_admin", "Authorization: Token tacho_writer",
    "Authorization: Bearer tacho_reader", "Authorization: Bearer tacho_shop", "Authorization: Bearer tacho_unknown",
    "Authorization: Basic dTp0YWNob19yZWFkZXI=", "Authorization: Basic !", "Authorization: Digest a", "Authorization:",
    "Cookie: tacho_session=0", "Cookie: a=b; tacho_session=", "Cookie: tacho_session", "X-Tacho: 1",
    "Origin: http://localhost", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site",
];
/// Bodies of logins. The cookie of a login is random, so no later request has it.
#[rustfmt::skip]
const LOGINS: &[&str] = &[
    r#"{"token":"tacho_admin"}"#, r#"{"token":"tacho_reader"}"#, r#"{"token":"tacho_unknown"}"#, r#"{"token":""}"#, "{}",
];

/// The bytes that a client sends, and the methods of the requests in them.
fn sent(script: &mut Script<'_>) -> (Vec<u8>, Vec<&'static str>) {
    let (mut out, mut methods) = (vec![], vec![]);
    for _ in 0..REQUESTS_MAX {
        if script.0.is_empty() {
            break;
        }
        let pick =
            |from: &[&'static str], byte: u8| from.get(usize::from(byte) % from.len()).copied().unwrap_or("");
        let method = pick(&METHODS, script.byte());
        methods.push(method);
        let mut target = pick(PATHS, script.byte()).to_owned();
        for number in 0..script.byte() % 5 {
            target.push(if number == 0 { '?' } else { '&' });
            match script.byte() {
                byte if byte < 200 => target.push_str(&pick(PARAMETERS, byte).replace(['{', '}', '"'], "")),
                _ => {
                    let count = usize::from(script.byte() % 16);
                    target.extend(script.bytes(count).iter().map(|byte| format!("%{byte:02x}")));
                }
            }
        }
        out.extend_from_slice(format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n").as_bytes());
        for _ in 0..script.byte() % 4 {
            out.extend_from_slice(pick(HEADERS, script.byte()).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        let count = script.byte();
        let body = match target.starts_with("/api/session") && count % 4 > 0 {
            true => pick(LOGINS, count).as_bytes(),
            false => script.bytes(count.into()),
        };
        if script.byte() % 8 > 0 {
            out.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
    }
    (out, methods)
}

/// Sends the bytes to a new server in pieces of `step` bytes, and returns its answers.
fn talk(sent: &[u8], step: usize, has_tokens: bool) -> Vec<u8> {
    let folder = directory();
    let data = folder.path().to_owned();
    runtime().block_on(async {
        let disk = FaultyDisk::default();
        disk.set_sync_skipped(true);
        let options = Options { disk: Arc::new(disk), merge_in_background: false, ..Options::default() };
        let clock = Arc::new(ManualClock::default());
        let journal = data.join("journal");
        let driver = Arc::new(MemoryDriver::new());
        let store =
            Store::open(driver, &journal, options, clock.clone()).await.expect("an empty store opens");
        let settings = Settings { data: Some(data.clone()), ..Settings::default() };
        let config = config::load(None, [], settings).expect("the default settings");
        let metrics = Arc::new(Metrics::default());
        let control = Arc::new(Control::open(&data, metrics.clone()).expect("no rules"));
        let record_types = Arc::new(RecordTypes::open(&data));
        let gate = gate(&data, has_tokens, metrics.clone(), clock.clone());
        let app = App::new(config, store.clone(), metrics, clock, control, record_types, (None, gate));
        let (ours, theirs) = tokio::io::duplex(CONNECTION_BYTES);
        let server = serve_stream(router(app), Box::new(theirs), HOUR);
        let answer = talk_to(server, ours, sent, step).await;
        store.close().await.expect("the store closes");
        answer
    })
}

/// The status of each answer with a complete head. The last answer may be cut, because the server drops a connection after the
/// client has closed its sending side.
fn statuses(answer: &[u8], methods: &[&str]) -> Vec<u16> {
    let mut rest = answer;
    let mut statuses = vec![];
    while !rest.is_empty() {
        let Some(end) = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { break };
        let (head, body) = rest.split_at(end + 4);
        let head = std::str::from_utf8(head).expect("the head is text");
        let status = head.strip_prefix("HTTP/1.1 ").and_then(|status| status.get(..3)).expect("a status");
        let status: u16 = status.parse().expect("a status");
        assert_ne!(status, 500, "an internal error: {head}{}", String::from_utf8_lossy(body));
        let value = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name))?;
            line.get(name.len()..).map(str::trim)
        };
        rest = if (100..200).contains(&status) || status == 204 || status == 304 {
            body
        } else if let Some(length) = value("content-length:") {
            body.get(length.parse().expect("a length")..).unwrap_or_default()
        } else if value("transfer-encoding:").is_some() {
            after_chunks(body).unwrap_or_default()
        } else {
            &[]
        };
        statuses.push(status);
        assert!(statuses.iter().filter(|status| **status >= 200).count() <= methods.len() * 64);
    }
    statuses
}

/// The bytes after a body in chunks. `None` if the body is incomplete.
fn after_chunks(mut body: &[u8]) -> Option<&[u8]> {
    loop {
        let end = body.windows(2).position(|bytes| bytes == b"\r\n")?;
        let length =
            std::str::from_utf8(&body[..end]).ok().and_then(|text| usize::from_str_radix(text, 16).ok());
        let length = length.expect("the length of a chunk");
        body = body.get(end + 2 + length..)?;
        let after = body.get(..2)?;
        assert_eq!(after, b"\r\n", "the end of a chunk");
        body = &body[2..];
        if length == 0 {
            return Some(body);
        }
    }
}
