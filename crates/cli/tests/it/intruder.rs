//! Tests that tokens, sessions and the audit log withstand attacks.

use std::process::Command;

use serde_json::Value;
use tacho_ingest::wire::ServerFrame;

use crate::support::guarded::Guarded;
use crate::support::tokens::{Agent, add, add_to, ask, audit, changing, code, revoke};
use crate::support::{Server, run, tacho};

#[test]
fn a_cookie_does_not_begin_a_new_session() {
    let guarded = Guarded::start();
    let cookie = guarded.cookie(&guarded.admin);
    for body in ["", "{}", "{\"token\":\"\"}", "null", "{\"token\":null}"] {
        let origin = guarded.origin();
        let mut headers =
            vec![("Origin", &*origin), ("Content-Type", "application/json"), ("Cookie", &*cookie)];
        let bearer = format!("Bearer {}", guarded.admin);
        for more in [None, Some(("Authorization", &*bearer))] {
            headers.extend(more);
            let response = guarded.server.post("/api/session", &headers, body.as_bytes());
            assert!(matches!(response.status, 400 | 401 | 429), "{body}: {}", response.status);
            assert_eq!(response.header("set-cookie"), None, "{body}");
        }
    }
}

#[test]
fn a_token_for_a_directory_that_no_server_has_used_is_added_with_a_warning() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let warning = |name: &str| {
        let (code, _, said) =
            run(&["token", "add", name, "--role", "admin", "--data", data.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{said}");
        said.contains("warning: no server has used ")
    };
    assert!(warning("a"));
    assert!(Server::start(&data).stop().success());
    assert!(!warning("b"));
}

#[test]
fn the_body_of_a_login_is_an_object_with_only_the_token() {
    let guarded = Guarded::start();
    let (origin, token) = (guarded.origin(), &guarded.admin);
    let headers = [("Origin", &*origin), ("Content-Type", "application/json")];
    for (body, expect) in [
        (format!("{{\"token\":\"{token}\"}}"), 200),
        (format!(" \t\r\n{{\"token\":\"{token}\"}} "), 200),
        (format!("[\"{token}\"]"), 400),
        (format!("\n[\"{token}\"]"), 400),
        (format!("[{{\"token\":\"{token}\"}}]"), 400),
        (format!("\"{token}\""), 400),
        (format!("{{\"token\":[\"{token}\"]}}"), 400),
        (format!("{{\"token\":\"{token}\",\"more\":1}}"), 400),
        (format!("{{\"token\":\"{token}\"}}{{}}"), 400),
    ] {
        let response = guarded.server.post("/api/session", &headers, body.as_bytes());
        let (status, has_cookie) = (response.status, response.header("set-cookie").is_some());
        assert_eq!((status, has_cookie), (expect, expect == 200), "{}", body.replace(token, "TOKEN"));
    }
}

#[test]
fn a_login_needs_the_origin_of_the_page_and_json() {
    let guarded = Guarded::start();
    let (origin, body) = (guarded.origin(), serde_json::json!({ "token": guarded.admin }).to_string());
    let own = ("Origin", &*origin);
    let (json, text) = (("Content-Type", "application/json"), ("Content-Type", "text/plain"));
    for (headers, expect) in [
        (&[own, json][..], 200),
        (&[own, text], 415),
        (&[own, text, ("X-Tacho", "1")], 415),
        (&[own], 415),
        (&[json], 403),
        (&[json, ("X-Tacho", "1")], 403),
        (&[text], 403),
        (&[("Origin", "https://evil.example"), json], 403),
    ] {
        let response = guarded.server.post("/api/session", headers, body.as_bytes());
        assert_eq!(
            (response.status, response.header("set-cookie").is_some()),
            (expect, expect == 200),
            "{headers:?}"
        );
    }
}

/// A logout needs no `Origin`: it ends only the session of its own cookie, and a page of another origin cannot send this cookie.
/// All other changes with a cookie need the `Origin` of the page. They also need JSON or the header `X-Tacho`, because a page of
/// another origin can send neither.
#[test]
fn requests_with_a_cookie_need_the_headers_of_the_page_except_for_reads_and_the_logout() {
    let guarded = Guarded::start();
    let origin = guarded.origin();
    let own = ("Origin", &*origin);
    let evil = ("Origin", "https://evil.example");
    let (json, mark) = (("Content-Type", "application/json"), ("X-Tacho", "1"));
    let (here, elsewhere) = (("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site"));
    let browser = [("User-Agent", "Mozilla/5.0 Chrome/140"), ("Accept-Language", "en")];
    let (read, logout, change) =
        (("GET", "/api/session"), ("DELETE", "/api/session"), ("POST", "/api/v1/query?query=1"));
    for (headers, expect) in [
        // The status of a read, of a logout, and of another change.
        (&[][..], [200, 204, 403]),
        (&[own], [200, 204, 403]),
        (&[own, mark], [200, 204, 200]),
        (&[own, json], [200, 204, 200]),
        (&[mark], [200, 204, 403]),
        (&[json], [200, 204, 403]),
        (&[here], [200, 204, 403]),
        (&[own, here, mark], [200, 204, 200]),
        (&[own, own, mark], [403; 3]),
        (&[evil], [403; 3]),
        (&[evil, mark], [403; 3]),
        (&[("Origin", "null"), json], [403; 3]),
        (&[elsewhere], [403; 3]),
        (&[own, elsewhere, mark], [403; 3]),
        (&browser, [403; 3]),
    ] {
        let cookie = guarded.cookie(&guarded.admin);
        let headers: Vec<_> = headers.iter().copied().chain([("Cookie", &*cookie)]).collect();
        let ask = |(method, path): (&str, &str)| guarded.server.request(method, path, &headers, b"").status;
        // The logout is last, because it ends the session.
        let [read, change, logout] = [read, change, logout].map(ask);
        assert_eq!([read, logout, change], expect, "{headers:?}");
        let after = guarded.server.request("GET", "/api/session", &[("Cookie", &cookie)], b"").status;
        assert_eq!(after, if logout == 204 { 401 } else { 200 }, "{headers:?}");
    }
    for method in ["PUT", "PATCH"] {
        let cookie = guarded.cookie(&guarded.admin);
        let headers = [own, mark, ("Cookie", &*cookie)];
        assert_eq!(guarded.server.request(method, "/api/session", &headers, b"").status, 405, "{method}");
    }
}

#[test]
fn a_session_ends_when_the_user_logs_out_or_the_token_is_revoked() {
    let guarded = Guarded::start();
    let reader = guarded.token("reader", &["--role", "read"]);
    let with = |cookie: &str| guarded.server.request("GET", "/api/session", &[("Cookie", cookie)], b"");
    let (first, second) = (guarded.cookie(&reader), guarded.cookie(&reader));
    let shown = with(&first).json();
    assert_eq!((shown["data"]["name"].as_str(), with(&second).status), (Some("reader"), 200), "{shown}");
    let ended = guarded.server.request("DELETE", "/api/session", &[("Cookie", &first)], b"");
    assert_eq!((ended.status, with(&first).status, with(&second).status), (204, 401, 200));
    revoke(&guarded.server, "reader");
    assert_eq!(with(&second).status, 401);
    // An old cookie does not count as a guess of a token.
    for _ in 0..20 {
        assert_eq!(with(&second).status, 401);
    }
}

#[test]
fn many_sessions_of_one_token_do_not_end_a_session_of_another_token() {
    let guarded = Guarded::start();
    let reader = guarded.token("reader", &["--role", "read"]);
    let other = guarded.cookie(&guarded.admin);
    let own: Vec<String> = (0..20).map(|_| guarded.cookie(&reader)).collect();
    let status =
        |cookie: &str| guarded.server.request("GET", "/api/session", &[("Cookie", cookie)], b"").status;
    assert_eq!((status(&other), status(&own[0]), status(&own[19])), (200, 401, 200));
}

#[test]
fn guesses_on_several_paths_are_limited_together_and_audited() {
    let guarded = Guarded::start();
    let paths = ["/api/session", "/api/v1/labels", "/api/status", "/nothing", "/metrics"];
    let statuses: Vec<u16> = (0..30)
        .map(|n| ask(&guarded.server, "GET", paths[n % paths.len()], &format!("tacho_guess{n}")).status)
        .collect();
    assert!(statuses[..10].iter().all(|status| *status == 401), "{statuses:?}");
    assert!(statuses[10..].iter().all(|status| *status == 429), "{statuses:?}");
    let refused = ask(&guarded.server, "GET", "/api/session", "tacho_guess");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(guarded.login("tacho_guess", &[]).status, 429);
    assert_eq!(
        ask(&guarded.server, "GET", "/api/session", &guarded.admin).status,
        200,
        "a valid token was refused"
    );
    let lines = audit(guarded.data());
    assert_eq!(lines.matches("\"refused\"").count(), 10, "{lines}");
    assert!(lines.contains("127.0.0.1") && !lines.contains("guess"), "{lines}");
}

#[test]
fn no_token_reaches_the_logs() {
    let guarded = Guarded::start();
    let writer = guarded.token("writer", &["--role", "write"]);
    let server = &guarded.server;
    let basic = "Basic dTp0YWNob19zZWNyZXRwYXNzd29yZA=="; // u:tacho_secretpassword
    for method in ["PUT", "POST", "GET"] {
        for token in [&*writer, "tacho_secretparameter"] {
            server.request(method, &format!("/write?p={token}&db=x"), &[], b"cpu value=1");
            server.request(method, &format!("/api/v1/labels?p={token}"), &[], b"");
            server.request(
                method,
                &format!("/api/v1/admin/merge?p={token}"),
                &[("Authorization", basic)],
                b"",
            );
        }
        ask(
            server,
            method,
            "/api/v1/admin/tsdb/delete_series?match[]=cpu&p=tacho_secretother",
            &guarded.admin,
        );
        ask(server, method, "/api/v1/admin/merge?p=tacho_secretthird", &writer);
    }
    assert_eq!(server.post(&format!("/write?p={writer}"), &[], b"cpu value=1").status, 204);
    let both =
        server.post(&format!("/write?p={writer}"), &[("Authorization", &format!("Token {writer}"))], b"");
    assert_eq!(both.status, 400, "a request with two tokens must be refused");
    let said = format!("{}{}", audit(guarded.data()), server.log());
    assert!(said.contains("refused") && said.contains("changed"), "{said}");
    for secret in [&*writer, &*guarded.admin, "secret"] {
        assert!(!said.contains(secret), "{said}");
    }
}

#[test]
fn the_cookie_works_only_for_the_page_itself() {
    let guarded = Guarded::start();
    let cookie = guarded.cookie(&guarded.admin);
    let origin = guarded.origin();
    let post = |more: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> = [("Cookie", &*cookie)].iter().chain(more).copied().collect();
        guarded.server.post("/api/v1/probes?state=off&pattern=a.B.*", &headers, b"").status
    };
    let own = ("X-Tacho", "1");
    assert_eq!(post(&[("Origin", &origin), own]), 200);
    for more in [
        &[][..],
        &[own],
        &[("Origin", &*origin)],
        &[("Origin", "https://evil.example"), own],
        &[("Origin", "null"), own],
        &[("Origin", &*origin), ("Origin", &*origin), own],
        &[("Origin", &*origin), ("Origin", "https://evil.example"), own],
        &[("Origin", &*origin), ("Content-Type", "text/plain")],
        &[("Origin", &*origin), ("Content-Type", "application/x-www-form-urlencoded")],
    ] {
        assert_eq!(post(more), 403, "{more:?}");
    }
    assert_eq!(guarded.login(&guarded.admin, &[("Origin", "https://evil.example")]).status, 403);
    let body = format!("{{\"token\":\"{}\"}}", guarded.admin);
    let response =
        guarded.server.post("/api/session", &[("Content-Type", "application/json")], body.as_bytes());
    assert_eq!(response.status, 403, "a login without an origin must be refused");
}

#[test]
fn an_agent_cannot_pose_as_another_service() {
    let guarded = Guarded::start();
    let token = guarded.token("shop", &["--role", "write", "--match", "{service=\"shop\"}"]);
    let rule = "/api/v1/probes?state=off&pattern=secret.Class.*&service=bank";
    assert_eq!(ask(&guarded.server, "POST", rule, &guarded.admin).status, 200);
    let at = guarded.server.records;
    let (_, first) = Agent::connect(at, "bank", Some(&token));
    assert_eq!(code(&first), 13, "{first:?}");
    let (mut agent, first) = Agent::connect(at, "shop", Some(&token));
    assert!(matches!(first, ServerFrame::Welcome(_)), "{first:?}");
    let rules = agent.wait(|frame| match frame {
        ServerFrame::Probes(probes) => Some(probes.rules),
        _ => None,
    });
    assert_eq!(rules, []);
    for (token, expect) in
        [(None, 12), (Some("tacho_guess"), 12), (Some(&*guarded.token("r", &["--role", "read"])), 13)]
    {
        assert_eq!(code(&Agent::connect(at, "shop", token).1), expect);
    }
    revoke(&guarded.server, "shop");
    let last = agent.wait(|frame| matches!(frame, ServerFrame::Error { .. }).then_some(frame));
    assert_eq!(code(&last), 12);
    assert!(audit(guarded.data()).contains("is confined to"), "{}", audit(guarded.data()));
}

#[test]
fn the_audit_log_is_one_object_per_line_and_private() {
    let guarded = Guarded::start();
    let selector = "%7Ba%3D%22x%5Cn%1B%5B2J%C2%9B%22%7D";
    let path = format!("/api/v1/admin/tsdb/delete_series?match[]={selector}");
    assert_eq!(ask(&guarded.server, "POST", &path, &guarded.admin).status, 204);
    let rule = "/api/v1/probes?state=off&pattern=a.B.*";
    assert_eq!(ask(&guarded.server, "POST", rule, &guarded.admin).status, 200);
    let lines = audit(guarded.data());
    assert!(!lines.replace('\n', "").contains(char::is_control), "{lines:?}");
    let events: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let changed: Vec<&Value> = events.iter().filter(|event| event["event"] == "changed").collect();
    assert_eq!(changed.len(), 2, "{lines}");
    for event in changed {
        assert_eq!((event["token"].as_str(), event["address"].as_str()), (Some("admin"), Some("127.0.0.1")));
    }
    use std::os::unix::fs::PermissionsExt;
    for name in ["audit.log", "tokens", "tokens.lock", "tokens.used"] {
        let mode = std::fs::metadata(guarded.data().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_server_whose_tokens_are_gone_stays_closed() {
    let guarded = Guarded::start();
    let (data, admin) = (guarded.data().to_owned(), guarded.admin.clone());
    let file = data.join("tokens");
    let good = std::fs::read(&file).unwrap();
    let is_closed = |server: &Server| {
        let closed = server.get("/api/v1/labels");
        let ready = server.get("/readyz");
        // `/readyz` needs no token, so its answer must not contain the path of the directory.
        let text = ready.text();
        assert!(!text.contains(data.to_str().unwrap()), "{text}");
        closed.status == 401 && ready.status == 503 && text.contains("file of tokens cannot be used")
    };
    let replace = |bytes: &[u8]| {
        let aside = data.join("tokens.aside");
        std::fs::write(&aside, bytes).unwrap();
        std::fs::rename(&aside, &file).unwrap();
    };
    // The file of tokens becomes unusable while the server runs.
    for broken in [&b""[..], b"{}", b"{\"version\":1,\"tokens\":[]}"] {
        changing(&guarded.server, || replace(broken));
        assert!(is_closed(&guarded.server), "{}", String::from_utf8_lossy(broken));
        let (_, _, said) = run(&["operations", "--server", &guarded.server.url()]);
        let fault = "hint: on the machine of the server, its log has the fault";
        assert!(said.contains(fault), "{said}");
        let repository = guarded.place.path().join("repository");
        let backup = ["backup", "create", data.to_str().unwrap(), repository.to_str().unwrap()];
        let (code, _, said) = run(&[&backup[..], &["--server", &guarded.server.url()]].concat());
        assert!(code == Some(1) && said.contains("makes no snapshot") && said.contains(fault), "{said}");
        changing(&guarded.server, || replace(&good));
        assert_eq!(ask(&guarded.server, "GET", "/api/session", &admin).status, 200);
    }
    changing(&guarded.server, || std::fs::remove_file(&file).unwrap());
    assert!(is_closed(&guarded.server));
    let list = |data: &str| run(&["token", "list", "--data", data]);
    let (code, out, said) = list(data.to_str().unwrap());
    assert!(code == Some(0) && out.contains("there are no tokens"), "{out}");
    assert!(said.contains("warning: the server refuses") && said.contains("the file is missing"), "{said}");
    let (code, _, said) = list("/nowhere");
    assert!(
        code == Some(2) && said.contains("/nowhere does not exist\nhint: name the data directory"),
        "{said}"
    );
    let Guarded { server, place: _place, .. } = guarded;
    server.stop();
    // The file of tokens is unusable when the server starts.
    let server = Server::start(&data);
    assert!(is_closed(&server), "open although the file is missing");
    server.stop();
    std::os::unix::fs::symlink("nowhere", &file).unwrap();
    let server = Server::start(&data);
    assert!(is_closed(&server), "open although the file is a dangling link");
    server.wait_for_log("tokens cannot be used");
    server.stop();
    let server = Server::start_with(&data, &["--without-tokens"]);
    assert!(is_closed(&server), "open although --without-tokens counts only if the file is missing");
    server.stop();
    std::fs::remove_file(&file).unwrap();
    let server = Server::start_with(&data, &["--without-tokens"]);
    assert_eq!(server.get("/api/v1/labels").status, 200);
}

#[test]
fn the_first_token_ends_access_without_a_token() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(place.path());
    let (mut agent, _) = Agent::connect(server.records, "shop", None);
    let session = server.get("/api/session").json();
    assert_eq!(session["data"]["tokens"], false, "{session}");
    add_to(&server, "admin", &["--role", "admin"]);
    assert_eq!(server.get("/api/v1/labels").status, 401);
    let last = agent.wait(|frame| matches!(frame, ServerFrame::Error { .. }).then_some(frame));
    assert_eq!(code(&last), 12);
}

#[test]
fn concurrent_commands_lose_no_token() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path();
    std::thread::scope(|scope| {
        for n in 0..24 {
            scope.spawn(move || add(data, &format!("t{n}"), &["--role", "read"]));
        }
    });
    let (status, out, _) = run(&["token", "list", "--data", data.to_str().unwrap(), "--json"]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, listed.as_array().map(Vec::len)), (Some(0), Some(24)));
}

#[test]
fn commands_use_a_token_and_say_what_to_do_without_one() {
    let guarded = Guarded::start();
    let url = guarded.server.url();
    let (status, _, said) = run(&["operations", "--server", &url]);
    assert_eq!(status, Some(1));
    assert!(said.contains("requires a token") && said.contains("TACHO_TOKEN or --token-file"), "{said}");
    let file = guarded.place.path().join("token");
    std::fs::write(&file, format!("{}\n", guarded.token("reader", &["--role", "read"]))).unwrap();
    let file = file.to_str().unwrap();
    let (status, _, said) = run(&["operations", "--server", &url, "--token-file", file]);
    assert_eq!(status, Some(0), "{said}");
    let unknown = guarded.place.path().join("unknown");
    std::fs::write(&unknown, "tacho_unknown").unwrap();
    let unknown = unknown.to_str().unwrap();
    let is_refused = "the token is unknown or revoked\nhint: give a valid token";
    for (variables, status, expect) in [
        (&[("TACHO_TOKEN", "tacho_unknown")][..], 1, format!("error: TACHO_TOKEN: {is_refused}")),
        (&[("TACHO_TOKEN_FILE", unknown)], 1, format!("error: TACHO_TOKEN_FILE {unknown}: {is_refused}")),
        (
            &[("TACHO_TOKEN", "tacho_unknown"), ("TACHO_TOKEN_FILE", file)],
            2,
            "error: TACHO_TOKEN and TACHO_TOKEN_FILE are both set: unset one of them\n".to_owned(),
        ),
    ] {
        let ask = |more: &[&str]| {
            let mut command = Command::new(tacho());
            command.args(["operations", "--server", &url]).args(more).envs(variables.iter().copied());
            let output = command.output().unwrap();
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        };
        let (code, said) = ask(&[]);
        assert!(code == Some(status) && said.starts_with(&expect), "{said}");
        let (code, said) = ask(&["--token-file", file]);
        assert_eq!(code, Some(0), "the option overrides {variables:?}: {said}");
    }
    let (status, _, said) = run(&["merge", "--server", &url, "--token-file", file]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("does not have the role admin")
            && said.contains("hint: use a token that permits the request: set TACHO_TOKEN"),
        "{said}"
    );
    let add = ["token", "add", "old", "--role", "read", "--data", guarded.data().to_str().unwrap()];
    let (status, _, said) = run(&[&add[..], &["--expires", "-1d"]].concat());
    assert!(status == Some(2) && said.contains("--expires \"-1d\" is not a time after now"), "{said}");
    let (status, out, _) = run(&["token", "list", "--data", guarded.data().to_str().unwrap()]);
    assert!(status == Some(0) && out.contains("reader") && !out.contains("tacho_"), "{out}");
}
