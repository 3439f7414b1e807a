//! Tests access and limits: cross-origin pages, silent and slow clients, expensive requests.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::support::{self, Server, wait_for};

const PATIENCE: Duration = Duration::from_secs(120);
const PAGE: &str = "User-Agent: Mozilla/5.0 Chrome/140\r\nAccept-Language: en\r\n";

/// A connection over which `text` was sent.
fn sent(at: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("server accepts");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).expect("request is sent");
    stream
}

/// The status of the response, or 0 without a response.
fn status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 12];
    if stream.read_exact(&mut head).is_err() {
        return 0;
    }
    String::from_utf8_lossy(&head[9..]).parse().expect("a status line")
}

fn ask(at: SocketAddr, method: &str, path: &str, headers: &str) -> u16 {
    let text = format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n");
    status(&mut sent(at, &text))
}

/// The value of a series of `/metrics`. 0 if the series does not exist yet.
fn metric(server: &Server, name: &str) -> f64 {
    let text = server.get("/metrics").text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0.0, |value| value.parse().unwrap())
}

fn series_with_patterns(selectors: usize, patterns: usize, pattern: impl Fn(usize) -> String) -> String {
    let selector = |nth: usize| {
        let matchers = (0..patterns).map(|n| format!("l{n}=~\"{}\"", pattern(nth * patterns + n)));
        format!("match[]={{__name__=\"a\",{}}}", matchers.collect::<Vec<_>>().join(","))
    };
    let body: Vec<String> = (0..selectors).map(selector).collect();
    body.join("&").replace('+', "%2B").replace('\\', "%5C")
}

const FORM: [(&str, &str); 1] = [("Content-Type", "application/x-www-form-urlencoded")];

/// RFC 9112, section 6.1: a request with both `Content-Length` and `Transfer-Encoding` is read as chunked, and its connection is
/// closed after the response. A second request on this connection is not executed.
#[test]
fn a_request_with_a_length_and_chunks_ends_its_connection() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let at = server.http;
    let second = format!("POST /write HTTP/1.1\r\nHost: {at}\r\nContent-Length: 9\r\n\r\nsecond v=1");
    let chunk = "9\r\nfirst v=1\r\n0\r\n\r\n";
    let (length, chunked) = ("Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n");
    for both in [[length, chunked].concat(), [chunked, length].concat()] {
        let text = format!("POST /write HTTP/1.1\r\nHost: {at}\r\n{both}\r\n{chunk}{second}");
        let mut answers = String::new();
        // The server may reset the connection, because it does not read the second request.
        let _ = sent(at, &text).read_to_string(&mut answers);
        assert!(
            answers.starts_with("HTTP/1.1 204 ") && answers.matches("HTTP/1.1").count() == 1,
            "{answers}"
        );
    }
    let names = server.get("/api/v1/label/__name__/values").text();
    assert!(names.contains("first_v") && !names.contains("second_v"), "{names}");
}

/// RFC 9112, section 6.1.
#[test]
fn a_transfer_coding_other_than_chunked_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let at = server.http;
    for (name, codings, expect) in [
        ("plain", &["chunked"][..], 204),
        ("upper", &["CHUNKED"], 204),
        ("both", &["gzip, chunked"], 501),
        ("twice", &["chunked, chunked"], 501),
        ("lines", &["gzip", "chunked"], 501),
        ("last", &["chunked, gzip"], 400),
    ] {
        let codings: String =
            codings.iter().map(|coding| format!("Transfer-Encoding: {coding}\r\n")).collect();
        let body = format!("{name} v=1");
        let text = format!(
            "POST /write HTTP/1.1\r\nHost: {at}\r\n{codings}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
            body.len()
        );
        assert_eq!(status(&mut sent(at, &text)), expect, "{codings}");
    }
    let names = server.get("/api/v1/label/__name__/values").text();
    assert!(names.contains("plain_v") && names.contains("upper_v"), "{names}");
    assert!(!["both_v", "twice_v", "lines_v", "last_v"].iter().any(|name| names.contains(name)), "{names}");
}

/// RFC 9112, section 3.2.
#[test]
fn a_request_of_http_1_1_without_host_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--allowed-hosts", "monitor.example"]);
    let at = server.http;
    let (here, named) = (format!("Host: {at}\r\n"), "Host: monitor.example\r\n");
    let twice = [&*here, named].concat();
    for path in ["/healthz", "/", "/metrics", "/api/v1/query?query=1", "/nothing"] {
        let ask = |version: &str, headers: &str| {
            status(&mut sent(at, &format!("GET {path} HTTP/{version}\r\n{headers}Connection: close\r\n\r\n")))
        };
        let expect = if path == "/nothing" { 404 } else { 200 };
        for (version, headers, expect) in [
            ("1.1", &*here, expect),
            ("1.1", named, expect),
            ("1.1", "Host:\r\n", if path == "/healthz" { expect } else { 403 }),
            ("1.0", "", expect),
            ("1.1", "", 400),
            ("1.1", &twice, 400),
            ("1.0", &twice, 400),
        ] {
            assert_eq!(ask(version, headers), expect, "{path} {version} {headers:?}");
        }
    }
}

#[test]
fn cross_origin_pages_cannot_read_or_change_or_load_the_server() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let at = server.http;
    let delete = "/api/v1/admin/tsdb/delete_series?match[]=up";
    let here = format!("Host: {at}\r\n");
    for (method, path) in [
        ("GET", "/api/v1/query?query=1"),
        ("GET", "/api/v1/series?match[]=up"),
        ("GET", "/api/v1/export?match[]=up"),
        ("GET", "/api/traces"),
        ("GET", "/metrics"),
        ("POST", "/api/v1/admin/merge"),
        ("POST", delete),
        ("POST", "/write"),
    ] {
        for foreign in ["cross-site", "same-site"] {
            let headers = format!("{here}Sec-Fetch-Site: {foreign}\r\nSec-Fetch-Mode: no-cors\r\n");
            assert_eq!(ask(at, method, path, &headers), 403, "{method} {path} {foreign}");
        }
        assert_eq!(
            ask(at, method, path, &format!("{here}{PAGE}")),
            403,
            "an image, requested by an old browser: {path}"
        );
        assert_eq!(ask(at, method, path, &format!("{here}Origin: https://evil.example\r\n")), 403);
        assert_eq!(ask(at, method, path, "Host: evil.example:7070\r\n"), 403, "{path}");
        let ours = format!("{here}{PAGE}Referer: http://{at}/\r\n");
        for allowed in [&here, &format!("{here}Sec-Fetch-Site: same-origin\r\n"), &ours] {
            assert_ne!(ask(at, method, path, allowed), 403, "{method} {path} {allowed}");
        }
    }
    let link = format!("{here}{PAGE}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n");
    assert_eq!(ask(at, "GET", "/", &link), 200, "a link to the page was refused");
    assert_eq!(ask(at, "GET", "/healthz", "Host: evil.example\r\n"), 200);
}

/// The requests that a cross-origin page of `http://localhost:PORT` sends in Chromium 140: for an image, a script, a form, a
/// beacon, `fetch` with and without `no-cors`, and a `fetch` with a preflight.
#[test]
fn no_request_of_a_cross_origin_page_reads_or_changes_anything() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    assert_eq!(server.post("/write", &[], b"kept value=1 1\n").status, 204);
    let at = server.http;
    let delete = "/api/v1/admin/tsdb/delete_series?match[]=%7B__name__!=%22%22%7D";
    let origin = "Origin: http://localhost:8000\r\n";
    let fetched = |site: &str, mode: &str, destination: &str| {
        format!(
            "Host: {at}\r\nConnection: close\r\n{PAGE}Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\n\
             Sec-Fetch-Dest: {destination}\r\nReferer: http://localhost:8000/\r\n"
        )
    };
    let text = "Content-Type: text/plain;charset=UTF-8\r\n";
    let asked = "Access-Control-Request-Method: DELETE\r\nAccess-Control-Request-Headers: content-type\r\n";
    // A page with another port has another origin and the same site. A page with another host name has another site.
    for site in ["same-site", "cross-site"] {
        for (method, path, headers, body) in [
            ("GET", "/api/v1/query?query=kept", fetched(site, "no-cors", "image"), ""),
            ("GET", delete, fetched(site, "no-cors", "image"), ""),
            ("GET", "/api/v1/export?match[]=kept", fetched(site, "cors", "empty") + origin, ""),
            ("GET", "/metrics", fetched(site, "no-cors", "script"), ""),
            ("POST", delete, fetched(site, "no-cors", "empty") + origin + text, ""),
            ("POST", delete, fetched(site, "cors", "empty") + origin + text, ""),
            ("POST", delete, fetched(site, "navigate", "document") + origin, ""),
            ("POST", "/write", fetched(site, "no-cors", "empty") + origin + text, "kept value=9 1\n"),
            ("POST", "/api/v1/probes", fetched(site, "no-cors", "empty") + origin + text, "{}"),
            ("OPTIONS", delete, fetched(site, "cors", "empty") + origin + asked, ""),
            ("OPTIONS", "/api/v1/probes?all=1", fetched(site, "cors", "empty") + origin + asked, ""),
            ("DELETE", "/api/v1/probes?all=1", fetched(site, "cors", "empty") + origin, ""),
        ] {
            let request =
                format!("{method} {path} HTTP/1.1\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
            let mut answer = String::new();
            sent(at, &request).read_to_string(&mut answer).expect("an answer");
            let head = answer.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
            assert!(head.starts_with("http/1.1 403 "), "{method} {path} {site}: {head}");
            assert!(!head.contains("access-control-allow") && !answer.contains("kept"), "{answer}");
        }
    }
    let answer = server.get("/api/v1/query?query=kept&time=1&lookback_delta=10").json();
    assert_eq!(answer["data"]["result"][0]["value"][1], "1", "{answer}");
}

#[test]
fn a_server_on_the_network_accepts_its_own_names() {
    let data = tempfile::tempdir().unwrap();
    let flags = ["--insecure-listen", "--allowed-hosts", "monitor.example,10-0-0-7.lan.example"];
    let mut command = std::process::Command::new(support::tacho());
    command.args(["serve", "--http", "0.0.0.0:0", "--records", "127.0.0.1:0", "--data"]).arg(data.path());
    command.args(flags);
    let server = Server::from_command(command, data.path()).unwrap_or_else(|(_, log)| panic!("{log}"));
    let at = SocketAddr::from(([127, 0, 0, 1], server.http.port()));
    let delete = |host: &str| {
        ask(at, "POST", "/api/v1/admin/tsdb/delete_series?match[]=up", &format!("Host: {host}\r\n"))
    };
    assert_eq!(delete("evil.example:7070"), 403);
    for host in
        ["127.0.0.1:7070", "monitor.example", "MONITOR.example:80", "10-0-0-7.lan.example", "tacho:7070"]
    {
        assert_eq!(delete(host), 204, "{host}");
    }
}

#[test]
fn patterns_are_limited_and_health_checks_answered_while_they_compile() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let at = server.http;
    let many = series_with_patterns(8, 64, |n| format!("(a|b|{n})+c"));
    let answer = server.post("/api/v1/series", &FORM, many.as_bytes());
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("the request has more than 64 patterns"), "{}", answer.text());
    let costly = series_with_patterns(1, 60, |n| format!("[^a]{{900}}{n}"));
    let answer = server.post("/api/v1/series", &FORM, costly.as_bytes());
    assert_eq!(answer.status, 422, "{}", answer.text());

    // The patterns of these requests are costly, but allowed. The server must answer other requests in the meantime.
    let head = format!("POST /api/v1/series HTTP/1.1\r\nHost: {at}\r\nContent-Type: {}\r\n", FORM[0].1);
    let mut asking: Vec<TcpStream> = (0..16)
        .map(|nth| {
            let body = series_with_patterns(1, 60, |n| format!("[^{nth}]{{60}}(x{n}|y)"));
            sent(at, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()))
        })
        .collect();
    assert_eq!(server.get("/healthz").status, 200);
    assert!(
        asking.iter().any(is_waiting),
        "all requests with patterns were answered before the health check"
    );
    for stream in &mut asking {
        assert_eq!(status(stream), 200);
    }
}

#[test]
fn a_query_is_cancelled_when_its_client_disconnects() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    // Takes minutes, because it reads four windows of 900,000 values at each of 11,000 steps.
    let window = "quantile_over_time(0.5,vector(1)[900000s:1s])";
    let query = [window; 4].join("-").replace('+', "%2B");
    let path = format!("/api/v1/query_range?query={query}&start=0&end=10999&step=1");
    let stream = sent(server.http, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.http));
    wait_for("the query", || (metric(&server, "tacho_queries_running") == 1.0).then_some(()));
    drop(stream);
    wait_for("the end of the queries", || (metric(&server, "tacho_queries_running") == 0.0).then_some(()));
    assert_eq!(metric(&server, "tacho_queries_cancelled_total"), 1.0);
    assert_eq!(server.get("/api/v1/query?query=1").status, 200);
    assert_eq!(
        metric(&server, "tacho_queries_cancelled_total"),
        1.0,
        "an answered query was counted as cancelled"
    );
}

/// Whether no response has arrived yet.
fn is_waiting(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let waits = stream.peek(&mut [0; 1]).is_err();
    stream.set_nonblocking(false).unwrap();
    waits
}

/// Each of these queries reads few values many times, and takes minutes. On a thread of the async runtime, the query would block
/// other requests.
#[test]
fn long_computations_of_few_values_do_not_block_others_and_end_with_their_clients() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let lines: String = (1..=10_000).map(|n| format!("m value={} {n}\n", n * 7919 % 1000)).collect();
    assert_eq!(server.post("/write?precision=s", &[], lines.as_bytes()).status, 204);
    // Each query compares about 50 million pairs of values at each of 501 steps. The second query reads only 7,500 stored values.
    for values in ["vector(2)[7000s:1s]", "m[7000s]"] {
        let query = format!("dtw_over_time({values},vector(1)[7000s:1s],7000)");
        let path = format!("/api/v1/query_range?query={query}&start=9000&end=9500&step=1");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.http);
        let before = metric(&server, "tacho_queries_cancelled_total");
        let asking: Vec<TcpStream> = (0..4).map(|_| sent(server.http, &request)).collect();
        wait_for(&query, || (metric(&server, "tacho_queries_running") == 4.0).then_some(()));
        assert_eq!(server.get("/healthz").status, 200);
        assert!(asking.iter().all(is_waiting), "{query}: the query is too short for this test");
        drop(asking);
        wait_for("the end of the queries", || {
            (metric(&server, "tacho_queries_running") == 0.0).then_some(())
        });
        assert_eq!(metric(&server, "tacho_queries_cancelled_total"), before + 4.0, "{query}");
    }
}

/// The refused pattern has hundreds of states, and would need a minute for a text of 1 MiB.
#[test]
fn patterns_that_need_too_long_for_an_entry_are_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let letter = |n: u64| if tacho_model::mix64(n).is_multiple_of(2) { 'a' } else { 'b' };
    let text: String = (0..(1 << 20) - 10).map(letter).collect();
    let lines =
        format!("log value=\"{text}\" 1000000000\nlog value=\"an {} b\" 2000000000\n", &text[..2_000]);
    assert_eq!(server.post("/write?precision=ns", &[], lines.as_bytes()).status, 204);
    let ask = |pattern: &str, from: u32| {
        server.get(&format!("/api/v1/entries?match[]=log&start={from}&end=3&pattern={pattern}"))
    };
    let costly = "a[ab]{800}[^ab]";
    let refused = ask(costly, 1);
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(
        refused.text().contains("the pattern needs too long for an entry of 1048566 bytes"),
        "{}",
        refused.text()
    );
    // The pattern matches the short text if the letter before the last 800 of its 2,000 letters is an `a`.
    let expect = usize::from(text.as_bytes()[2_000 - 801] == b'a');
    assert_eq!(ask(costly, 2).json()["data"]["matched"], expect);
    for (pattern, expect) in [("abba", 2), ("[ab]{40}[^ab]", 1), ("%5Cw%2B%20b$", 1)] {
        assert_eq!(ask(pattern, 1).json()["data"]["matched"], expect, "{pattern}");
    }
}

/// Matching the patterns with 20,000 values takes seconds. If the server answers before the client disconnects, the test repeats
/// the request.
#[test]
fn a_series_selection_is_cancelled_when_its_client_disconnects() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let host = |n: u32| format!("a,l={}-{n} value=1 1000000000\n", "b-".repeat(100));
    let lines: String = (0..20_000).map(host).collect();
    assert_eq!(server.post("/write?precision=ns", &[], lines.as_bytes()).status, 204);
    let pattern = |n: u32| format!("match[]={{l=~\".*[a-z]-{n}[^0]-.*\"}}");
    let body = (0..60).map(pattern).collect::<Vec<_>>().join("&");
    for path in ["/api/v1/series", "/api/v1/labels", "/api/v1/export", "/api/v1/query"] {
        let selector = body.replace("&match[]=", " or ").replace("match[]=", "query=");
        let body = if path.ends_with("query") { &selector } else { &body };
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\n", server.http, FORM[0].1);
        wait_for(path, || {
            let before = metric(&server, "tacho_queries_cancelled_total");
            let stream = sent(server.http, &format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()));
            wait_for("the request to be worked on", || {
                stream.set_nonblocking(true).unwrap();
                let is_answered = stream.peek(&mut [0; 1]).is_ok();
                (is_answered || metric(&server, "tacho_queries_running") == 1.0).then_some(())
            });
            drop(stream);
            wait_for("the end of the queries", || {
                (metric(&server, "tacho_queries_running") == 0.0).then_some(())
            });
            (metric(&server, "tacho_queries_cancelled_total") > before).then_some(())
        });
    }
}

#[test]
fn a_client_that_does_not_read_its_response_is_cut_off() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--request-seconds-max", "10"]);
    let lines: String = (0..60).map(|n| format!("x,n={n} value={n} 1000000000\n")).collect();
    assert_eq!(server.post("/write?precision=ns", &[], lines.as_bytes()).status, 204);
    // The response has almost 8 MB, more than the socket buffers of both ends.
    let path = "/api/v1/query_range?query=x&start=1&end=10999&step=1&lookback_delta=11000";
    let mut stream = sent(server.http, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.http));
    assert_eq!(status(&mut stream), 200);
    let cut = r#"tacho_connections_refused_total{listener="http",reason="slow-reader"}"#;
    wait_for("the end of the connection", || (metric(&server, cut) == 1.0).then_some(()));
}

#[test]
fn silent_and_stalled_connections_do_not_block_others() {
    const MOST: usize = 64;
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--connections-max", "64"]);
    let _silent: Vec<TcpStream> = [server.http, server.records]
        .into_iter()
        .flat_map(|at| (0..MOST + 8).map(move |_| sent(at, "")))
        .collect();
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(
        server.get("/api/v1/query?query=1").status,
        200,
        "no idle connection was closed for a new one"
    );
    let mut agent = sent(server.records, "");
    let mut hello = Vec::new();
    let pairs = vec![("service".to_owned(), "shop".to_owned())];
    let text = tacho_ingest::wire::Hello {
        version_min: 1,
        version_max: 1,
        session: 5,
        pairs,
        secret: None,
        token: None,
    };
    tacho_ingest::wire::ClientFrame::Hello(text).encode(&mut hello);
    agent.write_all(&hello).unwrap();
    let mut welcome = [0; 4];
    agent.read_exact(&mut welcome).expect("an agent is greeted");

    // The bodies of these requests never arrive. So their connections leave, as if they were idle.
    let stalled = format!("POST /write HTTP/1.1\r\nHost: {}\r\nContent-Length: 9\r\n\r\n1", server.http);
    let mut held: Vec<TcpStream> = (0..3 * MOST).map(|_| sent(server.http, &stalled)).collect();
    for _ in 0..MOST {
        assert_eq!(server.get("/api/v1/query?query=1").status, 200);
        assert_eq!(server.post("/write?precision=ns", &[], b"whole value=1 1000000000\n").status, 204);
        held.push(sent(server.http, &stalled));
    }
}

#[test]
fn a_server_whose_connections_are_all_busy_answers_health_checks() {
    const MOST: usize = 8;
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--connections-max", "8"]);
    let lines: String = (0..60).map(|n| format!("x,n={n} value={n} 1000000000\n")).collect();
    assert_eq!(server.post("/write?precision=ns", &[], lines.as_bytes()).status, 204);
    // Clients that do not read their answers of almost 8 MB, more than the socket buffers of both ends.
    let path = "/api/v1/query_range?query=x&start=1&end=10999&step=1&lookback_delta=11000";
    let mut held = Vec::new();
    wait_for("a server whose connections are all busy", || {
        for _ in held.len()..MOST {
            let mut stream =
                sent(server.http, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", server.http));
            let is_served = status(&mut stream) == 200;
            held.extend(is_served.then_some(stream));
        }
        (server.get("/api/v1/query?query=1").status == 503).then_some(())
    });
    for _ in 0..3 {
        let more: Vec<TcpStream> = (0..40).map(|_| sent(server.http, "")).collect();
        assert_eq!(server.get("/healthz").status, 200);
        drop(more);
    }
    drop(held);
    wait_for("a free connection", || (server.get("/api/v1/query?query=1").status == 200).then_some(()));
}

/// Sends more than `requests_max` unfinished bodies: writes, an import, a request for checksums, and forms.
#[test]
fn slow_bodies_do_not_block_others() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--requests-max", "4"]);
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let drip = |(path, headers, body): (&str, &str, &str)| {
        // With `Expect`, the server asks for the body when it is ready to read the body.
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{headers}Expect: 100-continue\r\n", server.http);
        let mut stream = sent(server.http, &format!("{head}Content-Length: {}\r\n\r\n", body.len()));
        assert_eq!(status(&mut stream), 100, "{path}");
        let mut rest = [0; "Continue\r\n\r\n".len() + 1];
        stream.read_exact(&mut rest).unwrap();
        let (first, rest) = body.split_at(1);
        stream.write_all(first.as_bytes()).unwrap();
        (stream, rest.to_owned())
    };
    let bodies =
        [("/write?precision=ns", "", "dripped value=1 1000000000\n"), ("/api/v1/query", form, "query=1")];
    let others =
        [("/api/v1/import", "", "??"), ("/api/v1/checksum", "", "[]"), ("/api/v1/labels", form, "limit=1")];
    let mut dripping: Vec<_> = bodies.into_iter().cycle().take(8).chain(others).map(drip).collect();
    for _ in 0..2 {
        assert_eq!(server.get("/api/v1/query?query=1").status, 200);
        assert_eq!(server.post("/api/v1/query", &FORM, b"query=1").status, 200);
        assert_eq!(server.post("/write?precision=ns", &[], b"whole value=1 1000000000\n").status, 204);
    }
    // A client that completes its body gets a response.
    for (stream, rest) in dripping.iter_mut().take(2) {
        stream.write_all(rest.as_bytes()).unwrap();
        assert!(matches!(status(stream), 200 | 204));
    }
}

#[test]
fn forms_use_the_memory_budget_of_all_bodies() {
    let data = tempfile::tempdir().unwrap();
    let server =
        Server::start_with(data.path(), &["--body-bytes-max", "1000", "--request-seconds-max", "3600"]);
    // Sixteen forms of the maximum size, 1 MiB, use the whole budget.
    let most = 1 << 20;
    let head =
        format!("POST /api/v1/query HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\n", server.http, FORM[0].1);
    let drip = || {
        let mut stream = sent(server.http, &format!("{head}Content-Length: {most}\r\n\r\n"));
        // A refused form is not read to its end.
        let _ = stream.write_all(&vec![b'x'; most - 1]);
        stream.set_nonblocking(true).unwrap();
        stream
    };
    let dripping: Vec<TcpStream> = (0..17).map(|_| drip()).collect();
    let is_refused = |stream: &TcpStream| match stream.peek(&mut [0; 1]) {
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        Ok(_) => true,
    };
    wait_for("a form to be refused", || dripping.iter().any(is_refused).then_some(()));
    assert_eq!(server.get("/api/v1/query?query=1").status, 200, "a request without a body was refused");
    let beyond = status(&mut sent(server.http, &format!("{head}Content-Length: {}\r\n\r\n", most + 1)));
    assert_eq!(beyond, 413);
    drop(dripping);
    wait_for("memory for a form", || {
        (server.post("/api/v1/query", &FORM, b"query=1").status == 200).then_some(())
    });
}

#[test]
fn repeated_merge_requests_do_not_pile_up() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let text =
        format!("POST /api/v1/admin/merge HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", server.http);
    let mut asking: Vec<TcpStream> = (0..50).map(|_| sent(server.http, &text)).collect();
    for stream in &mut asking {
        let status = status(stream);
        assert!(matches!(status, 200 | 429), "{status}");
    }
    assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200);
}
