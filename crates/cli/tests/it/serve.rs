//! Tests `tacho serve` as a process: it starts, prints its addresses, responds, stops, and reports errors.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, Server};

#[test]
fn a_server_that_printed_its_addresses_can_be_stopped() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t")).unwrap();
    let caught = u64::from_str_radix(caught, 16).unwrap();
    for (name, number) in [("SIGINT", 2), ("SIGTERM", 15)] {
        assert_ne!(caught & 1 << (number - 1), 0, "{name} would end it immediately: {caught:x}");
    }
    assert!(server.stop().success());
}

#[test]
fn a_server_starts_responds_and_stops_with_exit_code_0() {
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

fn journals(data: &Path) -> Vec<String> {
    let names = std::fs::read_dir(data.join("journal")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.ends_with(".journal")).collect()
}

#[test]
fn a_stop_leaves_a_small_journal_to_the_next_start() {
    let data = tempfile::tempdir().unwrap();
    let start = |bytes: &str| {
        let mut command = Command::new(support::tacho());
        command.args([
            "serve",
            "--http",
            "127.0.0.1:0",
            "--records",
            "127.0.0.1:0",
            "--selfwatch-seconds",
            "0",
        ]);
        command.args(["--stop-journal-bytes", bytes, "--data"]).arg(data.path());
        Server::from_command(command, data.path()).unwrap_or_else(|(_, log)| panic!("{log}"))
    };
    let values = |server: &Server| {
        let answer = server.get("/api/v1/query?query=count_over_time(m%5B1d%5D)&time=1763758800");
        answer.json()["data"]["result"][0]["value"][1].as_str().unwrap_or("0").to_owned()
    };
    let server = start("1000000");
    assert_eq!(server.post("/write", &[], b"m,a=b value=1 1763758000000000000").status, 204);
    assert!(server.stop().success());
    assert_eq!(journals(data.path()).len(), 1);
    let server = start("1000000");
    assert_eq!(values(&server), "1");
    assert_eq!(server.post("/write", &[], b"m,a=b value=2 1763758001000000000").status, 204);
    assert!(server.stop().success());
    let server = start("0");
    assert_eq!(values(&server), "2");
    assert!(server.stop().success());
    assert_eq!(journals(data.path()), Vec::<String>::new());
    let server = start("0");
    assert_eq!(values(&server), "2");
    assert!(server.stop().success());
}

/// For each file and directory below `directory`: its path, whether it is a directory, and its permissions.
fn modes(directory: &Path) -> Vec<(PathBuf, bool, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let (path, about) = entry.map(|e| (e.path(), e.metadata().unwrap())).unwrap();
        found.push((path.clone(), about.is_dir(), about.permissions().mode() & 0o777));
        if about.is_dir() {
            found.extend(modes(&path));
        }
    }
    found
}

#[test]
fn stored_files_are_not_readable_by_other_users() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    for _ in 0..2 {
        let server = Server::start(&data);
        assert_eq!(server.post("/write", &[], b"m v=1").status, 204);
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
        assert_eq!(server.post("/write", &[], b"m v=2").status, 204);
        let rule = br#"{"pattern":"a.b","state":"off","keep":true}"#;
        let answer = server.post("/api/v1/probes", &[("content-type", "application/json")], rule);
        assert!(answer.status < 300, "{}", answer.text());
        assert!(server.stop().success());
        let found = modes(place.path());
        let names: Vec<_> =
            found.iter().map(|(path, ..)| path.file_name().unwrap().to_str().unwrap()).collect();
        for name in ["data", "chunks", "journal", "00000001.segment", "probes.json", "LOCK"] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        for (path, is_directory, mode) in &found {
            assert_eq!(*mode, if *is_directory { 0o700 } else { 0o600 }, "{}", path.display());
        }
        // Older versions gave these permissions. The next start must restrict them.
        for (path, is_directory, _) in found.iter().filter(|(path, ..)| *path != data) {
            let mode = if *is_directory { 0o755 } else { 0o644 };
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    }
}

#[test]
fn a_file_of_tokens_that_other_users_may_change_is_logged_at_the_start_and_when_it_is_read_again() {
    let data = tempfile::tempdir().unwrap();
    let tokens = data.path().join("tokens");
    let add = ["token", "add", "me", "--role", "read", "--data", data.path().to_str().unwrap()];
    assert_eq!(support::run(&add).0, Some(0));
    let share = || std::fs::set_permissions(&tokens, Permissions::from_mode(0o666)).unwrap();
    share();
    let server = Server::start(data.path());
    for times in 1..=2 {
        support::wait_for("the warning", || {
            let log = server.log();
            let warnings = log.matches("other users could write to the file of tokens").count();
            (warnings == times && log.contains("mode=\"666\"")).then_some(())
        });
        support::wait_for("the file to be private", || {
            let mode = std::fs::metadata(&tokens).unwrap().permissions().mode();
            (mode & 0o777 == 0o600).then_some(())
        });
        share();
    }
}

#[test]
fn every_answer_has_the_security_headers() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    for (path, cache) in [("/", "no-cache"), ("/nothing", "no-store"), ("/api/status", "no-store")] {
        let answer = server.get(path);
        let policy = answer.header("content-security-policy").unwrap_or_default();
        for part in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"]
        {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
            ("cache-control", cache),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}: {name}");
        }
    }
    let missing = server.get("/nothing").json();
    assert_eq!(missing["status"], "error");
    assert_eq!(missing["errorType"], "not_found");
}

#[test]
fn an_open_server_states_the_flag_that_permits_it() {
    let data = tempfile::tempdir().unwrap();
    let warning = "insecure_listen is set: everyone in the network may read, write and delete everything";
    let start = |flags: &[&str]| {
        let mut command = Command::new(support::tacho());
        command.args(["serve", "--http", "0.0.0.0:0", "--records", "127.0.0.1:0", "--data"]).arg(data.path());
        command.args(flags);
        Server::from_command(command, data.path())
    };
    let (status, log) = start(&[]).err().expect("server does not start");
    assert_eq!(status.code(), Some(2), "{log}");
    assert!(log.contains("insecure-listen"), "{log}");
    let server = start(&["--insecure-listen"]).unwrap_or_else(|(_, log)| panic!("{log}"));
    server.wait_for_log(warning);
    let ready = server.get("/readyz").text();
    assert!(ready.starts_with("ready\n") && ready.contains(&format!("warning: {warning}")), "{ready}");
    let warnings = server.get("/api/status").json()["access"]["warnings"].to_string();
    assert!(warnings.contains(warning), "{warnings}");
}

#[test]
fn configuration_errors_name_value_and_place() {
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
    fails(
        &["--config", file.to_str().unwrap()],
        2,
        &["error: configuration file", "bad.toml", "unknown key \"lmits\""],
    );
    fails(&["--config", "/no/such.toml"], 2, &["error: cannot read", "/no/such.toml"]);

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    // `fails` passes `--http`, which clap refuses if it is given twice.
    let (code, _, stderr) =
        support::run(&["serve", "--data", dir.path().to_str().unwrap(), "--http", &address]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!("error: cannot listen on http {address}")), "{stderr}");
    assert!(stderr.contains("hint: another program has this port"), "{stderr}");

    let (code, _, stderr) = support::run(&["serve", "--http", "0.0.0.0:0"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("error: http 0.0.0.0:0 is reachable from other machines"), "{stderr}");
}

#[test]
fn unknown_environment_variables_are_logged_with_the_nearest_known_ones() {
    let data = tempfile::tempdir().unwrap();
    let mut command = Command::new(support::tacho());
    command.args(["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--data"]).arg(data.path());
    let agents = [("TACHO_SERVICE", "shop"), ("TACHO_CHILDREN", "true"), ("TACHO_AGENT_JAR", "/a.jar")];
    command.envs(agents).envs([("TACHO_URL", "x"), ("TACHO_SERIES_MAX", "5000"), ("TACHO_SERIE_MAX", "9")]);
    let server = Server::from_command(command, data.path()).unwrap_or_else(|(_, log)| panic!("{log}"));
    assert_eq!(server.get("/healthz").status, 200);
    let log = server.log();
    let expect = "this environment variable is unknown and ignored; did you mean TACHO_SERIES_MAX? \
                  variable=\"TACHO_SERIE_MAX\"";
    assert!(log.contains(expect), "{log}");
    assert_eq!(log.matches("this environment variable").count(), 1, "{log}");
}

#[test]
fn a_data_directory_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let used = dir.path().join("used");
    let server = Server::start(&used);
    let fails = |data: &std::path::Path, expect: &[&str]| {
        let (status, log) = Server::try_start(data, &[]).err().expect("server does not start");
        assert_eq!(status.code(), Some(1), "{log}");
        for part in [&["error: cannot open the data directory", data.to_str().unwrap()], expect].concat() {
            assert!(log.contains(part), "{part:?} in {log}");
        }
        log
    };
    let log = fails(&used, &[&format!("in use by process {}", server.pid()), "hint: stop the other server"]);
    assert!(!log.contains("--data"), "{log}");
    assert_eq!(server.stop().code(), Some(0));
    // A lock such as that of a backup while no server runs.
    let reader = std::fs::File::open(used.join("LOCK")).unwrap();
    reader.lock_shared().unwrap();
    let log = fails(
        &used,
        &["directory is being read by ", "hint: a command reads the directory", "wait until it has ended"],
    );
    assert!(!log.contains("--data"), "{log}");
    drop(reader);
    assert_eq!(Server::start(&used).stop().code(), Some(0));
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    fails(&file.join("data"), &["cannot make directory", "hint: choose a directory"]);

    let newer = dir.path().join("newer");
    let server = Server::start(&newer);
    assert_eq!(server.post("/write", &[], b"kept value=1").status, 204);
    assert_eq!(server.stop().code(), Some(0));
    let mut segments = std::fs::read_dir(newer.join("chunks")).unwrap().map(|entry| entry.unwrap().path());
    let segment = segments.find(|path| path.extension().is_some_and(|e| e == "segment")).unwrap();
    let written = std::fs::read(&segment).unwrap();
    let mut version_9 = written.clone();
    // With its old checksum, the file would count as a damaged file of version 1.
    (version_9[8], version_9[20]) = (9, version_9[20] ^ 1);
    std::fs::write(&segment, version_9).unwrap();
    fails(
        &newer,
        &["segment has version 9, this program reads up to 1", "hint: use the newer tacho that wrote it"],
    );
    std::fs::write(&segment, written).unwrap();
    let server = Server::start(&newer);
    assert!(
        server.get("/api/v1/query?query=kept").text().contains("kept"),
        "the record is missing after the refusal"
    );
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn the_page_is_embedded_and_cached() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let index = server.get("/");
    assert_eq!(index.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(index.header("cache-control"), Some("no-cache"));
    let etag = index.header("etag").expect("etag");
    let again = server.request("GET", "/", &[("If-None-Match", etag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    let text = index.text();
    let assets = text.split('"').filter(|part| part.contains("assets/"));
    let mut count = 0;
    for asset in assets {
        let answer = server.get(&format!("/{}", asset.trim_start_matches(['.', '/'])));
        assert_eq!(answer.status, 200, "{asset}");
        assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"), "{asset}");
        count += 1;
    }
    assert!(count >= 2, "script and style in {text}");
    assert_eq!(server.get("/assets/../index.html").status, 404);
}

#[test]
fn refused_series_and_rules_that_do_not_suit_counters_are_logged() {
    let says = |flags: &[&str], rules: &str, lines: &str, expect: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("tacho.toml");
        std::fs::write(&file, rules).unwrap();
        let common = ["--selfwatch-seconds", "0", "--config", file.to_str().unwrap()];
        let flags = [&common[..], flags].concat();
        let server = Server::start_with(&dir.path().join("data"), &flags);
        server.post("/write", &[], lines.as_bytes());
        let server = if rules.is_empty() {
            server
        } else {
            // The server checks counters only at its start and every ten minutes.
            assert!(server.stop().success());
            Server::start_with(&dir.path().join("data"), &flags)
        };
        let line = support::wait_for(&format!("{expect:?} in the log"), || {
            server.log().lines().find(|line| line.contains(expect[0])).map(str::to_owned)
        });
        for part in expect {
            assert!(line.contains(part), "{part:?} in {line}");
        }
        let (status, log) = server.stop_with_log();
        assert!(status.success(), "{log}");
        assert_eq!(log.matches(expect[0]).count(), 1, "{log}");
    };
    let ids: String = (0..9).map(|id| format!("up,id={id} value=1\n")).collect();
    let refused = "new series are refused";
    says(&["--series-max", "4"], "", &ids, &[refused, "WARN", "refused=5", "series_max = 4"]);
    says(
        &["--label-values-max", "7"],
        "",
        &ids,
        &[refused, "refused=2", "label_values_max = 7 of label \\\"id\\\""],
    );
    says(
        &[],
        "[[semantic]]\nmatch = '{__name__=~\"a.*\"}'\nvalue = 0.1",
        "a_total value=1\na value=2\na_sum value=1\nb_total value=1",
        &["values of counters stay exact", "1 of [[semantic]]", "counters=2", "a_sum, a_total"],
    );
    let step = "after = '90d'\nstep = '5m'\n";
    says(
        &[],
        &format!(
            "[[downsampling]]\nmatch = 'b_total'\n{step}keep = 'last'\n[[downsampling]]\nmatch = 'a_total'\n{step}"
        ),
        "a_total value=1\nb_total value=1",
        &[
            "rates over counters downsampled by this rule are wrong",
            "2 of [[downsampling]]",
            "counters=1",
            "a_total",
        ],
    );
}

#[test]
fn a_server_continues_when_its_log_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(support::tacho());
    command.args(["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--data"]).arg(dir.path());
    let server =
        Server::from_command_with_log(command, dir.path(), writer.into()).expect("the server starts");
    assert_eq!(server.post("/write", &[], b"up value=1").status, 204);
    assert_eq!(
        server.post("/api/v1/admin/tsdb/delete_series?match[]=up", &[], b"").status,
        204,
        "the deletion must succeed although its log line cannot be written"
    );
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.stop().code(), Some(0));
}

#[test]
fn a_busy_server_returns_503_and_answers_health_checks() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--requests-max", "1"]);
    // A query that takes minutes holds the single permit.
    let mut slow = std::net::TcpStream::connect(server.http).unwrap();
    let path =
        "/api/v1/query_range?query=quantile_over_time(0.5,vector(1)[900000s:1s])&start=0&end=10999&step=1";
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::io::Write::write_all(&mut slow, head.as_bytes()).unwrap();
    support::wait_for("the permit to be taken", || {
        server.get("/metrics").text().contains("\ntacho_queries_running 1\n").then_some(())
    });
    let busy = server.get("/api/status");
    assert_eq!((busy.status, busy.json()["errorType"].as_str()), (503, Some("unavailable")));
    assert!(busy.header("retry-after").is_some());
    assert_eq!(server.get("/healthz").status, 200);
    drop(slow);
    support::wait_for("the permit to be released", || {
        (server.get("/api/status").status == 200).then_some(())
    });
}

#[test]
fn a_body_that_does_not_arrive_times_out() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--request-seconds-max", "1"]);
    let mut slow = std::net::TcpStream::connect(server.http).unwrap();
    let head = b"POST /write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n";
    std::io::Write::write_all(&mut slow, head).unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut slow, &mut answer).unwrap_or_default();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("longer than 1 s"), "{answer}");
}
