//! Tests the command line: help with examples, errors with hints, exit codes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::support::{Server, run, tacho};

/// The commands with examples in their help. `backup` has the examples in its subcommands.
const COMMANDS: [&str; 23] = [
    "serve",
    "demo",
    "query",
    "traces",
    "trace",
    "operations",
    "graph",
    "load",
    "agents",
    "probes",
    "attach",
    "inspect",
    "check",
    "repair",
    "restore",
    "token",
    "entries",
    "import",
    "export",
    "tune",
    "cardinality",
    "merge",
    "delete",
];

/// A valid id that no trace has.
const NO_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

#[test]
fn commands_have_help_with_an_example() {
    let (code, help, _) = run(&["--help"]);
    assert_eq!(code, Some(0));
    for command in COMMANDS {
        assert!(help.contains(&format!("  {command} ")), "{command} in {help}");
        let (code, help, _) = run(&[command, "--help"]);
        assert_eq!(code, Some(0), "{command}");
        let example = help.split("Example").nth(1).unwrap_or_default();
        assert!(example.contains(&format!("  tacho {command}")), "{command}: {help}");
    }
}

#[test]
fn a_process_limited_to_one_processor_logs_no_warning() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let one = allowed.trim().split([',', '-']).next().unwrap();
    let output = Command::new("taskset").args(["-c", one]).arg(tacho()).arg("--version").output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

/// Runs a command that fails. `line` and `hint` are the beginnings of the error and the hint.
fn fails(args: &[&str], code: i32, line: &str, hint: &str) {
    let (got, stdout, stderr) = run(args);
    assert_eq!((got, stdout.as_str()), (Some(code), ""), "{args:?}: {stderr}");
    let mut lines = stderr.lines();
    assert!(lines.next().unwrap_or_default().starts_with(line), "{args:?}: {stderr}");
    assert!(lines.next().unwrap_or_default().starts_with(hint), "{args:?}: {stderr}");
}

#[test]
fn errors_begin_with_one_line_and_most_have_a_hint() {
    let nobody = "http://127.0.0.1:1";
    for command in
        [&["query", "up"][..], &["traces"], &["trace", NO_TRACE], &["graph"], &["operations"], &["inspect"]]
    {
        let args = [command, &["--server", nobody]].concat();
        fails(&args, 1, "error: cannot reach a server at 127.0.0.1:1", "hint: is it running?");
    }
    fails(&["inspect", "/nowhere"], 2, "error: /nowhere does not exist", "");
    for arguments in [&[][..], &["/backup", "/data", "--at", "-1d"], &["--help"]] {
        let args = [&["backup", "restore"], arguments].concat();
        fails(&args, 2, "error: there is no tacho backup restore", "hint: use tacho restore");
    }
    // A loop of links: even root cannot resolve this path.
    let place = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("chunks", place.path().join("chunks")).unwrap();
    let shut = place.path().to_str().unwrap();
    for command in [&["inspect", shut][..], &["cardinality", "--data", shut]] {
        fails(
            command,
            1,
            &format!("error: cannot read {shut}: Too many levels"),
            "hint: only the user that runs",
        );
    }
    fails(&["query", "up", "--step", "x"], 2, "error: invalid value 'x' for '--step <DURATION>'", "");
    fails(&["query", "up", "--lats", "1h"], 2, "error: unexpected argument '--lats' found", "hint: ");
    fails(
        &["query", "up", "--time", "1", "--last", "1h"],
        2,
        "error: the argument '--time <TIME>' cannot",
        "hint: ",
    );
    for command in [&["query", "up"][..], &["entries", "log"], &["traces"], &["operations"], &["graph"]] {
        let backwards = [command, &["--start", "200", "--end", "-100"]].concat();
        fails(
            &backwards,
            2,
            "error: --start 1970-01-01T00:03:20.000Z is after the end, 1969-12-31T23:58",
            "",
        );
    }
    fails(
        &["query", "up", "--server", "ftp://there"],
        2,
        "error: ftp://there: unsupported scheme ftp, only http and https are supported",
        "hint: give HOST:PORT",
    );
    fails(
        &["serve", "--http", "x"],
        2,
        "error: invalid value 'x' for '--http <ADDR>': \"x\" is not an address",
        "hint: `tacho serve --help` lists the arguments",
    );
}

#[test]
fn errors_about_values_name_the_value_and_the_expected_form() {
    for (args, line, hint) in [
        (
            &["load", "127.0.0.1:1", "--path", "healthz"][..],
            "error: --path \"healthz\": the path does not begin with /",
            "hint: write --path /healthz",
        ),
        (
            &["load", "127.0.0.1:1", "--path", "/a b"],
            "error: --path \"/a b\": a path has neither spaces",
            "hint: write %20",
        ),
        (
            &["load", "nohost"],
            "error: target \"nohost\" is not HOST:PORT",
            "hint: for example 127.0.0.1:8080",
        ),
        (
            &["load", "127.0.0.1:1", "--connections", "0"],
            "error: --connections: 0 connections: must be from 1 to 20000",
            "",
        ),
        (
            &["traces", "--limit", "0"],
            "error: invalid value '0' for '--limit <N>': give a whole number from 1",
            "hint: `tacho traces --help`",
        ),
        (
            &["query", "up", "--last", "0s"],
            "error: invalid value '0s' for '--last <DURATION>': give a duration above 0, for example 5m",
            "hint: `tacho query --help`",
        ),
        (
            &["traces", "--last", "-15m"],
            "error: invalid value '-15m' for '--last <DURATION>': give a duration above 0, for example 5m",
            "hint: `tacho traces --help`",
        ),
        (&["query", ""], "error: the query is empty", "hint: give a PromQL expression"),
        (
            &["probes", "clear"],
            "error: no rule is named",
            "hint: give ids as `tacho probes` lists them, or --all",
        ),
    ] {
        fails(args, 2, line, hint);
    }
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let lines: Vec<String> =
        (0..500).map(|n| format!("up,id={n} value=1\nlog,id={n} value=\"text\"")).collect();
    assert_eq!(server.post("/write", &[], lines.join("\n").as_bytes()).status, 204);
    let url = server.url();
    for command in [
        &["query", "--functions"][..],
        &["query", "up"],
        &["query", "up", "--json"],
        &["query", "up", "--last", "10m", "--stats"],
        &["query", "nothing"],
        &["entries", "{__name__=~\"log.*\"}"],
        &["cardinality"],
        &["operations"],
        &["traces"],
        &["graph"],
        &["agents"],
        &["probes"],
        &["delete", "--match", "up"],
        &["merge"],
        &["--help"],
    ] {
        let local = command.iter().any(|word| ["--functions", "--help"].contains(word));
        for broken in ["stdout", "stdout and stderr"] {
            let closed = || {
                let (reader, writer) = std::io::pipe().expect("a pipe");
                drop(reader);
                Stdio::from(writer)
            };
            let stderr = if broken == "stdout" { Stdio::piped() } else { closed() };
            let mut child = Command::new(tacho());
            child.args(command).args(if local { vec![] } else { vec!["--server", &url] });
            let child = child.stdout(closed()).stderr(stderr).spawn().expect("tacho can be started");
            let ended = child.wait_with_output().expect("tacho ends");
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert_eq!(ended.status.code(), Some(0), "{command:?} without {broken}: {said}");
            assert!(!said.contains("panic") && !said.contains("ipe"), "{command:?} without {broken}: {said}");
        }
    }
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let ended = Command::new(tacho()).args(["query", "--functions"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: cannot write to stdout: No space left"), "{said}");
}

#[test]
fn deletions_report_what_they_remove() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let lines: Vec<String> =
        (1..=10).map(|at| format!("up,id={} value=1 {at}\nlog value=\"text\" {at}", at % 2)).collect();
    assert_eq!(server.post("/write?precision=s", &[], lines.join("\n").as_bytes()).status, 204);
    let delete = |args: &[&str]| {
        let (code, stdout, stderr) = run(&[&["delete", "--server", &server.url()], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        stdout
    };
    let not_yet = "nothing was deleted; add --yes to delete\n";
    for stored in ["memory", "chunks"] {
        let all = "10 samples of 2 series, 10 entries of 1 series";
        let asked = delete(&["--match", "{__name__=~\".+\"}", "--start", "-1"]);
        assert_eq!(asked, format!("would be deleted: {all}\n{not_yet}"), "{stored}");
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    assert_eq!(delete(&["--match", "nosuch", "--yes"]), "nothing to delete: no series matches\n");
    let none = "nothing to delete: 2 series match, none has records in the range\n";
    assert_eq!(delete(&["--match", "up", "--start", "11"]), none);
    assert_eq!(delete(&["--match", "log", "--end", "4", "--yes"]), "deleted: 4 entries of 1 series\n");
    let json: serde_json::Value = serde_json::from_str(&delete(&["--match", "log", "--json"])).unwrap();
    assert_eq!((&json["entries"]["records"], &json["complete"]), (&6.into(), &true.into()));
    assert_eq!(json["deleted"], false);
    let json: serde_json::Value =
        serde_json::from_str(&delete(&["--match", "log", "--end", "5", "--json", "--yes"])).unwrap();
    assert_eq!((&json["entries"]["records"], &json["deleted"]), (&1.into(), &true.into()));
    for wrong in ["ennd=5", "end=", "end=5&end=6", "start=1&start=2"] {
        let path = format!("/api/v1/admin/tsdb/delete_series?match[]=up&{wrong}");
        assert_eq!(server.post(&path, &[], b"").status, 400, "{wrong}");
    }
    let prometheus = server.post("/api/v1/admin/tsdb/delete_series?match[]=up", &[], b"");
    assert_eq!((prometheus.status, prometheus.body.len()), (204, 0));
    assert!(delete(&["--match", "up"]).starts_with("nothing to delete: "));
    let (code, _, stderr) = run(&["delete", "--server", &server.url(), "--match", "up{a=~\"(\"}"]);
    let marked = "  | up{a=~\"(\"}\n  |    ^\n";
    assert_eq!((code, stderr.matches("error:").count(), stderr.lines().count()), (Some(2), 1, 3), "{stderr}");
    assert!(stderr.ends_with(marked), "{stderr}");
    let merge = || run(&["merge", "--server", &server.url()]);
    assert_eq!(merge().0, Some(0));
    let nothing = "nothing to do: there are no small chunks, and no deleted records that take space\n";
    assert_eq!(merge(), (Some(0), nothing.to_owned(), String::new()));
}

#[test]
fn the_hint_for_a_directory_in_use_names_the_server_option() {
    let data = tempfile::tempdir().unwrap();
    let _server = Server::start(data.path());
    let path = data.path().to_str().unwrap();
    for command in [&["cardinality", "--data", path][..], &["inspect", path]] {
        let (code, _, stderr) = run(command);
        assert_eq!(code, Some(1), "{command:?}: {stderr}");
        assert!(
            stderr.starts_with(&format!("error: cannot read {path}: directory is in use by process ")),
            "{stderr}"
        );
        assert!(stderr.ends_with("hint: a server is using it: ask that server with --server\n"), "{stderr}");
    }
}

#[test]
fn queries_print_tables_plots_and_json() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    server.post("/write?precision=s", &[], b"up,job=a value=1 1700000000\nup,job=a value=3 1700000060");
    let url = server.url();
    let query = |args: &[&str]| {
        let (code, stdout, stderr) = run(&[&["query", "--server", &url], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        stdout
    };
    assert_eq!(query(&["1+1"]), "2\n");
    assert_eq!(query(&["up", "--time", "1700000060"]), "SERIES       VALUE\nup{job=\"a\"}      3\n");
    let times = ["--start", "1700000000", "--end", "1700000060", "--step", "30s"];
    let table = query(&[&["up"], &times[..]].concat());
    let head = "SERIES       POINTS  MIN    MEAN  MAX  LAST\n";
    assert_eq!(table, format!("{head}up{{job=\"a\"}}       3    1  1.6667    3     3\n"));
    let span_alone = query(&["up", "--start", "1700000000", "--end", "1700000060"]);
    assert!(span_alone.starts_with("SERIES       POINTS  MIN"), "{span_alone}");
    let plot = query(&[&["up", "--plot"], &times[..]].concat());
    assert!(plot.starts_with("up{job=\"a\"}\n3 ┤") && plot.contains("22:13:20"), "{plot}");
    let json: serde_json::Value =
        serde_json::from_str(&query(&["up", "--time", "1700000060", "--json"])).unwrap();
    assert_eq!(json["data"]["result"][0]["value"][1], "3");
    let (code, _, stderr) = run(&["query", "sum(", "--server", &url]);
    assert_eq!(code, Some(2));
    assert!(stderr.starts_with("error: "), "{stderr}");
}

#[test]
fn durations_without_a_unit_are_refused() {
    for (args, flag, number) in [
        (&["traces", "--min-duration", "100"][..], "--min-duration", "100"),
        (&["traces", "--max-duration", "2.5"], "--max-duration", "2.5"),
        (&["query", "up", "--last", "15"], "--last", "15"),
        (&["query", "up", "--step", "30"], "--step", "30"),
        (&["load", "127.0.0.1:1", "--duration", "30"], "--duration", "30"),
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args:?}: {stderr}");
        let expect = format!(
            "error: invalid value '{number}' for '{flag} <DURATION>': it has no unit: write {number}ms, {number}s or {number}m\n"
        );
        assert!(stderr.starts_with(&expect), "{args:?}: {stderr}");
    }
}

/// The exit code is 2 if an argument is invalid, or names a missing file or a directory that is not a data directory. The exit
/// code is 1 if the command was tried and failed, or the trace or service is unknown.
#[test]
fn the_same_mistake_has_the_same_exit_code_in_every_command() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let empty = tempfile::tempdir().unwrap();
    let (url, empty) = (server.url(), empty.path().to_str().unwrap());
    let nowhere = "/nowhere";
    let all = "{__name__!=\"\"}";
    for (code, args) in [
        // Not a data directory.
        (2, &["inspect", nowhere][..]),
        (2, &["inspect", empty]),
        (2, &["cardinality", "--data", nowhere]),
        (2, &["cardinality", "--data", empty]),
        (2, &["export", "--match", all, "--data", nowhere]),
        (2, &["export", "--match", all, "--data", empty]),
        (2, &["tune", "--data", nowhere]),
        (2, &["tune", "--data", empty]),
        // The file does not exist.
        (2, &["import", nowhere]),
        (2, &["tune", nowhere]),
        (2, &["load", "127.0.0.1:1", "--mix", nowhere]),
        (2, &["serve", "--config", nowhere]),
        // The address, number or path is invalid.
        (2, &["load", "nohost"]),
        (2, &["load", "127.0.0.1:1", "--connections", "0"]),
        (2, &["load", "127.0.0.1:1", "--requests", "0"]),
        (2, &["load", "127.0.0.1:1", "--path", "healthz"]),
        (2, &["traces", "--limit", "0"]),
        (2, &["operations", "--limit", "0"]),
        (2, &["traces", "--server", "127.0.0.1:99999"]),
        (2, &["export", "--match", all, "--server", "http://127.0.0.1:1/api"]),
        // The command or the server cannot parse the argument.
        (2, &["trace", "abc"]),
        (2, &["query", "sum(", "--server", &url]),
        (2, &["delete", "--match", "up{", "--server", &url]),
        (2, &["export", "--match", "up{", "--server", &url]),
        (2, &["entries", "up{", "--server", &url]),
        (2, &["graph", "--level", "house", "--server", &url]),
        (2, &["traces", "--outcome", "good", "--server", &url]),
        (2, &["operations", "--kind", "house", "--server", &url]),
        (2, &["query", "up", "--server", "ftp://there"]),
        // The trace or service is unknown.
        (1, &["trace", NO_TRACE, "--server", &url]),
        (1, &["traces", "--service", "nosuch", "--server", &url]),
        (1, &["operations", "--service", "nosuch", "--server", &url]),
        (1, &["graph", "--service", "nosuch", "--server", &url]),
        (1, &["agents", "--service", "nosuch", "--server", &url]),
        // The command was tried and failed.
        (1, &["query", "up", "--server", "127.0.0.1:1"]),
        (1, &["load", "127.0.0.1:1", "--requests", "1"]),
    ] {
        let (got, _, stderr) = run(args);
        assert_eq!(got, Some(code), "{args:?}: {stderr}");
        assert!(stderr.contains("error: "), "{args:?}: {stderr}");
    }
}

#[test]
fn the_environment_names_the_server() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let with = |variable: &str, args: &[&str]| {
        let output = Command::new(tacho()).args(args).env("TACHO_URL", variable).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (url, nobody) = (server.url(), "http://127.0.0.1:1");
    assert_eq!(with(&url, &["query", "1+1"]), (Some(0), "2\n".into(), String::new()));
    assert_eq!(
        with(nobody, &["query", "1+1", "--server", &url]).0,
        Some(0),
        "the flag does not override the variable"
    );
    assert_eq!(with(&url, &["inspect", "--json"]).0, Some(0));
    let (code, _, stderr) = with(&url, &["cardinality", "--data", "/nowhere"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("/nowhere"), "--data must override TACHO_URL: {stderr}");
    let file = data.path().join("a.csv");
    std::fs::write(&file, "time,value\n1700000000,1\n").unwrap();
    let import = ["import", file.to_str().unwrap(), "--name", "a"];
    assert_eq!(with(&url, &import).0, Some(0));
    let (code, _, stderr) = with(nobody, &["traces"]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: cannot reach a server at 127.0.0.1:1"), "{stderr}");
    let hint = "hint: is it running? start one with `tacho serve`, or check the address in TACHO_URL\n";
    assert!(stderr.ends_with(hint), "{stderr}");
    let (code, _, stderr) = with("http://nosuch.invalid", &["traces"]);
    assert_eq!(code, Some(1));
    assert!(stderr.ends_with("hint: check the address in TACHO_URL\n"), "{stderr}");
    let (_, _, stderr) = with(nobody, &["traces", "--server", nobody]);
    assert!(stderr.ends_with("or check the address in --server\n"), "{stderr}");
    let (code, _, stderr) = with("http://me:s3cret@box", &["traces"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.starts_with("error: TACHO_URL: http://***@box: user name and password are not"),
        "{stderr}"
    );
    let mut command = Command::new(tacho());
    command
        .args(["traces"])
        .envs([("TACHO_URL", "https://127.0.0.1:1"), ("TACHO_TLS_CA", "/nowhere/ca.pem")]);
    let stderr = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert!(stderr.starts_with("error: TACHO_TLS_CA=/nowhere/ca.pem: cannot be read: "), "{stderr}");
    let (code, _, stderr) = with("", &["inspect"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("hint: name DIR, or a server with --server or TACHO_URL"), "{stderr}");
}

#[test]
fn an_address_that_is_not_a_server_is_explained() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let (url, agents) = (server.url(), server.records.to_string());
    // A server of another program. Its third answer is not HTTP.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (stream, answer) in other.incoming().zip(["404 Not Found", "200 OK", "bad"]) {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while !head.ends_with("\r\n\r\n") && lines.read_line(&mut head).unwrap() > 0 {}
            let text = format!("HTTP/1.1 {answer}\r\nContent-Length: 4\r\nConnection: close\r\n\r\n<p/>");
            let text = if answer == "bad" { "SSH-2.0-x\r\n".to_owned() } else { text };
            stream.write_all(text.as_bytes()).unwrap();
        }
    });
    let path = format!("{url}/api");
    let with_password = url.replace("http://", "http://me:s3cret@");
    for (server, code, line, hint) in [
        (&*at, 1, format!("{at} answers 404 Not Found"), "check the address in --server: no API"),
        (&at, 1, "the answer is not from a Tachograph server".into(), "check the address"),
        (&at, 1, format!("{at} does not answer with HTTP"), "check the address"),
        (
            &agents,
            1,
            format!("{agents} answers 400 Bad Request: this port takes records of agents"),
            "check the address",
        ),
        (&path, 2, format!("{path}: the address must not have a path"), "give HOST:PORT"),
        (&with_password, 2, with_password.replace("me:s3cret", "***"), "give HOST:PORT"),
        ("nosuch.invalid", 1, "cannot find the host of nosuch.invalid:7070".into(), "check the address"),
        ("127.0.0.1:1", 1, "cannot reach a server at 127.0.0.1:1".into(), "is it running?"),
    ] {
        let (got, stdout, stderr) = run(&["query", "1", "--server", server]);
        assert_eq!((got, stdout.as_str()), (Some(code), ""), "{server}: {stderr}");
        let begins = format!("error: {line}");
        let (error, hinted) = stderr.split_once('\n').unwrap();
        assert!(
            error.starts_with(&begins) && hinted.starts_with(&format!("hint: {hint}")),
            "{server}: {stderr}"
        );
        assert!(!stderr.contains("s3cret"), "{stderr}");
    }
}

#[test]
fn a_process_that_is_not_a_java_program_is_refused_before_the_agent_is_looked_for() {
    let this = std::process::id().to_string();
    let (code, stdout, stderr) = run(&["attach", &this]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.starts_with(&format!("error: process {this} (")), "{stderr}");
    assert!(
        stderr.ends_with(") is not a Java program\nhint: `tacho attach` lists the Java programs\n"),
        "{stderr}"
    );
}

#[test]
fn a_load_without_a_successful_request_fails() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), &["--selfwatch-seconds", "0"]);
    let at = server.http.to_string();
    let load = |path: &str| run(&["load", &at, "--path", path, "--requests", "3", "--connections", "1"]);
    assert_eq!(load("/healthz").0, Some(0));
    let (code, stdout, stderr) = load("/api/nosuch");
    assert_eq!((code, stderr.as_str()), (Some(1), "error: no request succeeded: 3 requests failed\n"));
    assert!(stdout.contains("failed: 3 with status 404"), "{stdout}");
}
