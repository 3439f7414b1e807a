//! Tests searches for traces by conditions on calls, and pages of traces, over the API of `docs/api.md` and with `tacho traces`.

use serde_json::{Value, json};

use crate::executions::{FIRST, SECOND, SPAN, TIMES, check, fails, finds, server};
use crate::support;

#[test]
fn traces_are_found_by_conditions_on_calls() {
    let (_data, server) = server();
    finds(&server, "status=500", &[SECOND]);
    finds(&server, "status=5xx&operation=Board.list()", &[]);
    finds(&server, "status=2xx&min_duration=2ms", &[FIRST]);
    finds(&server, "attribute=http.status=200&attribute=request.id=request-1", &[FIRST]);
    finds(&server, "attribute=http.status=200&attribute=request.id=request-2", &[]);
    finds(&server, "attribute=request.id=request=1", &[]);
    finds(&server, "attribute=http.status=500&request_id=request-2", &[SECOND]);
    finds(&server, "exception=IllegalStateException", &[SECOND]);
    finds(&server, "exception=java.lang.IllegalStateException&text=board", &[SECOND]);
    finds(&server, "exception=java.lang.IllegalStateException&status=500", &[]);
    finds(&server, "text=FROM%20ad", &[FIRST]);
    finds(&server, "text=from%20AD&service=shop&outcome=ok", &[FIRST]);
    finds(&server, "text=list&order=slowest", &[FIRST, SECOND]);
}

#[test]
fn errors_name_the_parameter_and_its_value() {
    let (_data, server) = server();
    for (query, error) in [
        (
            "status=6xx",
            "\"status\": \"6xx\" is not a status from 100 to 999, for example 503, or a class from 1xx to 5xx",
        ),
        ("status=99", "\"status\": \"99\" is not a status from 100 to 999"),
        ("text=", "parameter \"text\" is empty: give a value or omit it"),
        (
            "stats=503",
            "unknown parameter \"stats\": there are service, operation, start, end, min_duration, ",
        ),
        ("status=503&status=500", "parameter \"status\" is given more than once"),
        ("limit=0", "\"limit\": \"0\" is not a whole number from 1 to 10000"),
        ("limit=10001", "\"limit\": \"10001\" is not a whole number from 1 to 10000"),
        ("min_duration=2&max_duration=1", "\"max_duration\": it is less than \"min_duration\""),
        ("exception=KeyError:%20'a'", "\"exception\": \"KeyError: 'a'\" is not a class, for example"),
    ] {
        fails(&server, &format!("/api/traces?{query}"), 400, error);
    }
    for path in ["services", "operations", "calltree", "graph", "traces/0af7651916cd43dd8448eb211c80319d"] {
        fails(
            &server,
            &format!("/api/{path}?servise=shop"),
            400,
            "unknown parameter \"servise\": there are ",
        );
    }
    fails(&server, "/api/traces?attribute=tenant", 400, "\"attribute\": \"tenant\" is not KEY=VALUE");
    fails(&server, "/api/traces?attribute=a=1&attribute==1", 400, "\"attribute\": \"=1\" is not KEY=VALUE");
    let many = "attribute=a=1&".repeat(9);
    fails(&server, &format!("/api/traces?{many}"), 400, "9 parameters \"attribute\" are over 8");
    fails(
        &server,
        "/api/traces?after=x-1",
        400,
        "\"after\": \"x-1\" is not a value of \"next\" of an earlier answer",
    );
    let cursor = "newest-97979cfead5f9400-0af7651916cd43dd8448eb211c80319d-0000000000000000";
    let other = format!("\"after\": \"{cursor}\" is for another search: repeat all other parameters");
    fails(&server, &format!("/api/traces?order=slowest&after={cursor}"), 400, &other);
}

#[test]
fn pages_have_all_traces_once() {
    let (_data, server) = server();
    for order in ["newest", "oldest", "slowest", "fastest"] {
        for conditions in ["", "&service=shop", "&text=/ads", "&attribute=http.status=200", "&status=5xx"] {
            check(&server, &format!("/api/traces?{SPAN}&order={order}{conditions}"), |whole| {
                assert_eq!((&whole["truncated"], &whole["next"]), (&json!(false), &Value::Null));
                let mut pages = vec![];
                let mut after = String::new();
                loop {
                    let path = format!("/api/traces?{SPAN}&order={order}{conditions}&limit=1{after}");
                    let page = server.get(&path).json();
                    pages.extend_from_slice(page["traces"].as_array().unwrap());
                    let Some(next) = page["next"].as_str() else { break };
                    assert_eq!(page["truncated"], true);
                    after = format!("&after={next}");
                }
                assert_eq!(json!(pages), whole["traces"], "{order}{conditions}");
            });
        }
    }
}

#[test]
fn traces_are_searched_by_conditions_on_calls() {
    let (_data, server) = server();
    for (conditions, times) in [
        (&["--status", "5xx"][..], "1.00 ms     1.00 ms      2           500  failed"),
        (&["--text", "from AD"], "2.00 ms     3.00 ms      3           200  ok"),
        (
            &["--attribute", "http.status=200", "--attribute", "request.id=request-1"],
            "3.00 ms     3.00 ms      3           200  ok",
        ),
        (&["--exception", "IllegalStateException"], "500 µs     1.00 ms      2           500  failed"),
    ] {
        let url = server.url();
        let (code, stdout, stderr) =
            support::run(&[&["traces", "--server", &url], conditions, &TIMES[..]].concat());
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{conditions:?}");
        assert_eq!(stdout.lines().count(), 2, "{stdout}");
        assert!(stdout.trim_end().ends_with(times), "{conditions:?}: {stdout}");
    }
    let (code, _, stderr) = support::run(&["traces", "--attribute", "tenant", "--server", &server.url()]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("invalid parameter \"attribute\": \"tenant\" is not KEY=VALUE"), "{stderr}");
}
