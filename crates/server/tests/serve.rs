//! `tacho serve` as a process: starts, says where it listens, answers, stops; and what it says when it cannot.

mod support;

use support::Server;

#[test]
fn starts_answers_and_stops_with_zero() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    for (path, body) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let answer = server.get(path);
        assert_eq!((answer.status, answer.text().as_str()), (200, body), "{path}");
    }
    let metrics = server.get("/metrics");
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    for line in
        ["# TYPE tacho_http_requests_total counter\n", "tacho_build_info{version=\"", "tacho_connections{"]
    {
        assert!(metrics.text().contains(line), "{line} in {}", metrics.text());
    }
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn every_answer_has_the_security_headers() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    for path in ["/", "/nothing", "/api/status"] {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").unwrap_or_default();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe-eval"), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    let missing = server.get("/nothing").json();
    assert_eq!(missing["status"], "error");
    assert_eq!(missing["errorType"], "not_found");
}

#[test]
fn mistakes_are_told_with_value_and_place() {
    let dir = tempfile::tempdir().unwrap();
    let fails = |flags: &[&str], code: i32, expect: &[&str]| {
        let (status, log) = Server::try_start(dir.path(), flags).err().expect("server does not start");
        assert_eq!(status.code(), Some(code), "{log}");
        for part in expect {
            assert!(log.contains(part), "{part:?} in {log}");
        }
    };
    let file = dir.path().join("bad.toml");
    std::fs::write(&file, "[lmits]\n").unwrap();
    fails(&["--config", file.to_str().unwrap()], 2, &["error: configuration file", "bad.toml", "`lmits`"]);
    fails(&["--config", "/no/such.toml"], 2, &["error: cannot read", "/no/such.toml"]);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    // The last of two equal flags is refused by clap; settings from the file lose to the flags of the test helper.
    let (code, _, stderr) =
        support::run(&["serve", "--data", dir.path().to_str().unwrap(), "--http", &address]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!("error: cannot listen on http {address}")), "{stderr}");
    assert!(stderr.contains("hint: another program has this port"), "{stderr}");

    let (code, _, stderr) = support::run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("error: http 0.0.0.0:0 is reachable from other machines"), "{stderr}");
}
