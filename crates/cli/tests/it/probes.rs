//! Tests rules for probes over the API of a real server and with the command line: limits, argument errors, SIGKILL.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;

use serde_json::{Value, json};
use tacho_ingest::wire::{
    Moved, PROBE_RULES_MAX, PROBED_TEXT_BYTES_MAX, Probed, Probes, RuleOutcome, ServerFrame,
};

use crate::support::agent::{Agent, controlled, hello};
use crate::support::{Response, Server, run, tacho, wait_for};

fn serve(data: &std::path::Path) -> Server {
    Server::start_with(data, &["--selfwatch-seconds", "0"])
}

fn add(server: &Server, query: &str) -> Response {
    server.post(&format!("/api/v1/probes?{query}"), &[], b"")
}

fn added(server: &Server, query: &str) -> Value {
    let answer = add(server, query);
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.json()["data"].take()
}

fn remove(server: &Server, query: &str) -> Response {
    server.request("DELETE", &format!("/api/v1/probes?{query}"), &[], b"")
}

fn rules(server: &Server) -> Vec<Value> {
    server.get("/api/v1/probes").json()["data"]["rules"].as_array().unwrap().clone()
}

fn agents(server: &Server, query: &str) -> Vec<Value> {
    server.get(&format!("/api/v1/agents?{query}")).json()["data"]["agents"].as_array().unwrap().clone()
}

/// Connects an agent with 100 methods, which answers each list of rules immediately. `methods` has the patterns that the agent
/// can apply, each with the number of methods that its rule decides. The thread returns the received lists.
fn follow(server: &Server, session: u128, service: &str, methods: &[(&str, u64)]) -> JoinHandle<Vec<Probes>> {
    let mut agent = Agent::connect(server.records, &controlled(session, service, "")).expect("server greets");
    let methods: HashMap<String, u64> =
        methods.iter().map(|(pattern, n)| ((*pattern).to_owned(), *n)).collect();
    std::thread::spawn(move || {
        let mut lists = Vec::new();
        while let Some(ServerFrame::Probes(probes)) = agent.receive() {
            let outcome =
                |(at, rule): (usize, &tacho_ingest::wire::ProbeRule)| match methods.get(&rule.pattern) {
                    Some(matched) => RuleOutcome { rule: at as u64, matched: *matched, fault: String::new() },
                    None => RuleOutcome { rule: at as u64, matched: 0, fault: "no such pattern".into() },
                };
            let rules: Vec<RuleOutcome> = probes.rules.iter().enumerate().map(outcome).collect();
            let off = rules.iter().map(|rule| rule.matched).sum::<u64>().min(100);
            agent.probed(Probed {
                revision: probes.revision,
                on: 100 - off,
                off,
                rules,
                ..Probed::default()
            });
            lists.push(probes);
        }
        lists
    })
}

#[test]
fn a_kept_rule_survives_sigkill_and_other_rules_do_not() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    added(&server, "state=off&pattern=gone.*");
    let kept = added(&server, "state=aggregate&pattern=com.größe..*&service=shop&keep=1");
    assert_eq!((&kept["rule"]["id"], &kept["rule"]["kept"]), (&json!(2), &json!(true)));
    added(&server, "state=on&pattern=b.*&keep=true");
    added(&server, "state=off&pattern=cleared.*&keep=1");
    assert_eq!(remove(&server, "id=4").json()["data"]["removed"], 1);
    server.kill();

    let server = serve(data.path());
    let expect = json!(["aggregate com.größe..* shop", "on b.* "]);
    let shown = |rules: &[Value]| -> Value {
        let text = |rule: &Value, name: &str| rule[name].as_str().unwrap().to_owned();
        let line =
            |rule| format!("{} {} {}", text(rule, "state"), text(rule, "pattern"), text(rule, "service"));
        rules.iter().map(line).collect()
    };
    assert_eq!(shown(&rules(&server)), expect);
    let since = |rules: &[Value]| rules[0]["since"].clone();
    assert_eq!(
        since(&rules(&server)),
        kept["rule"]["since"],
        "the time at which the rule was added has changed"
    );
    let mut agent = Agent::connect(server.records, &controlled(1, "shop", "")).unwrap();
    let patterns: Vec<String> = agent.probes().rules.into_iter().map(|rule| rule.pattern).collect();
    assert_eq!(patterns, ["com.größe..*", "b.*"], "a new agent did not get the rules");
    assert_eq!(remove(&server, "all=1").json()["data"]["removed"], 2);
    assert_eq!(agent.probes().rules, []);
    server.kill();
    assert_eq!(rules(&serve(data.path())), [json!(null); 0]);
}

#[test]
fn a_server_does_not_start_with_an_invalid_rule_in_its_file() {
    let data = tempfile::tempdir().unwrap();
    assert!(serve(data.path()).stop().success());
    let path = data.path().join("probes.json");
    std::fs::write(&path, r#"{"version":1,"rules":[{"id":1,"state":"onn","pattern":"a","since":1}]}"#)
        .unwrap();
    let (status, log) = Server::try_start(data.path(), &[]).err().expect("the server does not start");
    assert_eq!(status.code(), Some(1));
    let named = format!("cannot use the rules for probes in {}: state \"onn\" is not on", path.display());
    assert!(log.contains(&named) && log.contains("hint: correct the file"), "{log}");
}

#[test]
fn a_kept_rule_that_cannot_be_written_is_refused_and_changes_nothing() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    // With a directory in place of the new file, writing fails for every user, even root.
    std::fs::create_dir(data.path().join("probes.json.new")).unwrap();
    let refused = add(&server, "state=off&pattern=a.*&keep=1");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("10")), "{}", refused.text());
    assert!(refused.text().contains("probes.json: "), "{}", refused.text());
    assert_eq!(rules(&server), [json!(null); 0]);
    added(&server, "state=off&pattern=a.*");
}

fn fails(answer: Response, status: u16, expect: &str) {
    assert_eq!(answer.status, status, "{expect}: {}", answer.text());
    let error = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(error.contains(expect), "{expect:?} in {error:?}");
}

#[test]
fn invalid_requests_are_refused_with_the_reason() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    let long = "a".repeat(1_025);
    for (query, expect) in [
        ("pattern=a", "parameter \"state\" is missing"),
        ("state=of&pattern=a", "\"state\": \"of\" is not on, off or aggregate"),
        ("state=off", "parameter \"pattern\" is missing"),
        ("state=off&pattern=", "parameter \"pattern\" is empty"),
        ("state=off&pattern=com+shop", "pattern \"com shop\": ' ' cannot be part of a pattern"),
        ("state=off&pattern=a%0Ab", "pattern \"a\\nb\" has a control character"),
        (&format!("state=off&pattern={long}"), "pattern has 1025 bytes, at most 1024 are allowed"),
        (&format!("state=off&pattern=a&service={long}"), "service has 1025 bytes, at most 512"),
        ("state=off&pattern=a&keep=yes", "\"keep\": \"yes\" is not 0, 1, true or false"),
    ] {
        fails(add(&server, query), 400, expect);
    }
    let json =
        |body: &str| server.post("/api/v1/probes", &[("Content-Type", "application/json")], body.as_bytes());
    fails(json(r#"{"state":"off","patern":"a"}"#), 400, "the body is not a rule: unknown field `patern`");
    fails(
        json(r#"{"state":"off","pattern":7}"#),
        400,
        "invalid type: integer `7`, expected a string at line 1",
    );
    fails(
        json(&format!(r#"{{"pattern":"{}"}}"#, "a".repeat(65_536))),
        413,
        "request body is over 65536 bytes",
    );
    fails(remove(&server, ""), 400, "give either \"id\", once or more, or \"all=1\"");
    fails(remove(&server, "id=1&all=1"), 400, "give either");
    fails(remove(&server, "id=x"), 400, "\"id\": \"x\" is not the id of a rule");
    fails(remove(&server, "id=7"), 404, "no rule has the id 7");
    fails(server.get("/api/v1/agents?rule=7"), 404, "no rule has the id 7");
    fails(server.get("/api/v1/agents?rule=-7"), 400, "\"rule\": \"-7\" is not the id of a rule");
    fails(server.get("/api/v1/agents?limit=x"), 400, "\"limit\": \"x\" is not a whole number");
    fails(server.request("PUT", "/api/v1/probes", &[], b""), 405, "PUT is not allowed");
    let foreign = [("Origin", "https://evil.example")];
    fails(server.post("/api/v1/probes?state=off&pattern=a", &foreign, b""), 403, "may not use this server");
    assert_eq!(rules(&server), [json!(null); 0]);

    let answer = json(r#"{"state":"off","pattern":"a.*","keep":true}"#);
    assert_eq!((answer.status, &answer.json()["data"]["rule"]["kept"]), (200, &json!(true)));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = server.post("/api/v1/probes", &form, b"state=on&pattern=a.*&keep=1");
    assert_eq!(answer.json()["data"]["replaced"], json!([1]), "{}", answer.text());
}

#[test]
fn misspelt_and_empty_parameters_are_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    for (query, expect) in [
        ("state=off&pattern=a&service=", "parameter \"service\" is empty: give a value or omit it"),
        ("state=off&pattern=a&instance=", "parameter \"instance\" is empty"),
        (
            "state=off&pattern=a&servise=shop",
            "unknown parameter \"servise\": there are state, pattern, service, instance, keep",
        ),
    ] {
        fails(add(&server, query), 400, expect);
    }
    let json =
        |body: &str| server.post("/api/v1/probes", &[("Content-Type", "application/json")], body.as_bytes());
    fails(json(r#"{"state":"off","pattern":"a","service":""}"#), 400, "parameter \"service\" is empty");
    fails(
        json(r#"{"state":"off","pattern":"a","service":null}"#),
        400,
        "invalid type: null, expected a string",
    );
    let both = server.post(
        "/api/v1/probes?service=shop",
        &[("Content-Type", "application/json")],
        br#"{"state":"off","pattern":"a"}"#,
    );
    fails(both, 400, "unknown parameter \"service\": none is allowed here");
    for (path, expect) in [
        ("agents?service=", "parameter \"service\" is empty"),
        ("agents?instance=", "parameter \"instance\" is empty"),
        ("agents?rule=", "parameter \"rule\" is empty"),
        ("agents?servise=shop", "unknown parameter \"servise\": there are service, instance, rule, limit"),
        ("probes?service=shop", "unknown parameter \"service\": none is allowed here"),
    ] {
        fails(server.get(&format!("/api/v1/{path}")), 400, expect);
    }
    fails(remove(&server, "all=1&service=shop"), 400, "unknown parameter \"service\": there are all, id");
    fails(remove(&server, "all="), 400, "parameter \"all\" is empty");
    assert_eq!(rules(&server), [json!(null); 0]);
}

fn fill(server: &Server) {
    for nth in 1..=PROBE_RULES_MAX {
        added(server, &format!("state=off&pattern=a{nth}.*"));
    }
}

#[test]
fn agents_above_the_size_limit_of_an_answer_are_shown_without_their_lists() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    fill(&server);
    let count = 20;
    let connected: Vec<Agent> = (0..count)
        .map(|session| {
            let mut agent = Agent::connect(server.records, &controlled(session, "shop", "")).unwrap();
            let Probes { revision, rules } = agent.probes();
            let fault = "f".repeat(PROBED_TEXT_BYTES_MAX);
            let outcome = |rule| RuleOutcome { rule, matched: 0, fault: fault.clone() };
            let rules = (0..rules.len() as u64).map(outcome).collect();
            agent.probed(Probed { revision, on: 7, rules, ..Probed::default() });
            agent
        })
        .collect();
    let shown = wait_for("all answers", || {
        let agents = agents(&server, "");
        agents.iter().all(|agent| agent["state"] == "follows").then_some(agents)
    });
    let cut = shown.iter().filter(|agent| agent["probes"]["cut"] == true).count();
    let lists: usize = shown.iter().map(|agent| agent["probes"]["rules"].as_array().unwrap().len()).sum();
    assert_eq!((shown.len(), lists), (20, (20 - cut) * PROBE_RULES_MAX));
    assert!((3..10).contains(&cut), "the lists of {cut} of {count} agents were omitted");
    assert!(shown.iter().all(|agent| agent["probes"]["on"] == 7), "a count was omitted");
    let one = agents(&server, "rule=1000");
    assert!(one.iter().all(|agent| agent["probes"]["rules"].as_array().unwrap().len() == 1));
    drop(connected);
}

#[test]
fn the_limit_of_rules_is_one_thousand() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    fill(&server);
    let refused = add(&server, "state=off&pattern=b.*");
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("there are 1000 rules, the limit"), "{}", refused.text());
    added(&server, "state=on&pattern=a7.*");
    let mut agent = Agent::connect(server.records, &controlled(1, "shop", "")).unwrap();
    assert_eq!(agent.probes().rules.len(), PROBE_RULES_MAX);
    assert_eq!(remove(&server, "id=1&id=2&id=2").json()["data"]["removed"], 2);
    let text = server.get("/metrics").text();
    assert!(text.contains("tacho_probe_rules{kept=\"false\"} 998\n"), "{text}");
}

#[test]
fn reports_of_agents_are_shown_and_limited() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    let mut agent = Agent::connect(server.records, &controlled(7, "shop", "8080")).unwrap();
    let _deaf = Agent::connect(server.records, &hello(8)).unwrap();
    let probes = agent.probes();
    let moved = Moved { operation: "a.B.c()".into(), reason: "ö".repeat(600), since: 5 };
    let answer = Probed { revision: probes.revision, on: 3, moved: vec![moved; 256], ..Probed::default() };
    agent.probed(answer);
    let shown = wait_for("the answer", || {
        agents(&server, "service=shop&instance=8080").into_iter().find(|agent| agent["state"] == "follows")
    });
    assert!(shown["session"].as_str().is_some_and(|number| number.parse::<u64>().is_ok()), "{shown}");
    assert_eq!((&shown["host"], &shown["left"]), (&json!("h1"), &Value::Null));
    let said = &shown["probes"];
    assert_eq!(
        (&said["on"], &said["moved"][255]["since"], &said["cut"]),
        (&json!(3), &json!("5"), &json!(false))
    );
    assert_eq!(said["moved"][0]["reason"].as_str().unwrap().len(), PROBED_TEXT_BYTES_MAX);
    assert_eq!(agents(&server, "").iter().filter(|agent| agent["state"] == "none").count(), 1);
    assert_eq!(agents(&server, "limit=1").len(), 1);
    assert_eq!(server.get("/api/v1/agents?limit=1").json()["data"]["total"], 2);
    agent.bye();
    assert_eq!(agent.receive(), None);
    let left =
        wait_for("its disconnect", || agents(&server, "").into_iter().find(|agent| agent["state"] == "left"));
    assert_eq!(left["probes"]["on"], 3);
}

#[test]
fn commands_for_probes_wait_for_the_agents_and_warn() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    let url = server.url();
    let tacho = |args: &[&str]| {
        let (code, stdout, stderr) = run(&[args, &["--server", &url]].concat());
        (code.unwrap(), stdout, stderr)
    };
    let ends = |args: &[&str], code: i32, stdout: &str, stderr: &str| {
        assert_eq!(tacho(args), (code, stdout.to_owned(), stderr.to_owned()), "{args:?}");
    };
    ends(&["agents"], 0, "", "no agent is connected, and none was within the last hour\n");
    ends(&["probes"], 0, "", "no rules: agents follow their own settings\n");
    let first = "rule 1: off early.* for all agents, until the server stops\n";
    let odd = "error: pattern \"early.Bird.fly(int)\": methods are named without their parameters, \"early.Bird.fly\"\n";
    ends(&["probes", "off", "early.Bird.fly(int)"], 2, "", odd);
    ends(&["probes", "on", "early."], 2, "", "error: pattern \"early.\": a dot is out of place\n");
    let nobody = "warning: no matching agent is connected; the rule applies to later ones\n";
    ends(&["probes", "off", "early.*"], 0, first, nobody);
    ends(&["probes", "clear", "1"], 0, "removed 1 rule\n", "");

    let shop = follow(&server, 1, "shop", &[("com.shop..*", 40), ("none.*", 0), ("*", 100)]);
    let table = "SERVICE  HOST  INSTANCE  DECIDES  ON  AGGREGATED  OFF\n";
    let rule = "rule 2: off com.shop..* for shop, kept\n";
    let off = format!("{rule}{table}shop     h1                   40  60           0   40\n");
    wait_for("the agent", || (!agents(&server, "").is_empty()).then_some(()));
    ends(&["probes", "off", "com.shop..*", "--service", "shop", "--keep"], 0, &off, "");
    let (_, json, _) = tacho(&["probes", "list", "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["rules"][0]["agents"], json!({ "told": 1, "answered": 1, "matched": 40, "faults": 0 }));

    let nothing = "warning: none.* decides no method of shop on h1; classes that are loaded later may have matching methods\n";
    let (code, _, stderr) = tacho(&["probes", "on", "none.*"]);
    assert_eq!((code, stderr.as_str()), (0, nothing));
    ends(&["probes", "clear", "--all"], 0, "removed 2 rules\n", "");
    let (code, _, stderr) = tacho(&["probes", "aggregate", "*"]);
    assert_eq!(code, 0);
    assert_eq!(stderr, "warning: * matches everything in shop on h1: 100 methods\n");
    let (code, stdout, stderr) = tacho(&["probes", "off", "odd.pattern", "--json"]);
    let id = serde_json::from_str::<Value>(&stdout).unwrap()["rule"]["id"].to_string();
    let fault = "error: 1 of 1 agent cannot follow the rule: shop on h1: no such pattern\n";
    assert_eq!((code, stderr), (3, format!("{fault}hint: `tacho probes clear {id}` removes the rule\n")));
    let (_, stdout, _) = tacho(&["agents"]);
    assert!(
        stdout.contains("rules that agents cannot follow:\nrule 5, shop on h1: no such pattern\n"),
        "{stdout}"
    );
    let (_, stdout, _) = tacho(&["probes"]);
    assert!(stdout.contains("aggregate  *            all agents"), "{stdout}");

    let mut late = Agent::connect(server.records, &controlled(2, "late", "1")).unwrap();
    late.probes();
    let (code, _, stderr) = tacho(&["probes", "off", "com.shop..*", "--wait", "50ms"]);
    assert_eq!(code, 3);
    assert!(stderr.starts_with("error: 1 of 2 agents"), "{stderr}");
    let (code, _, stderr) = tacho(&["probes", "off", "com.shop..*", "--service", "late", "--wait", "50ms"]);
    let expect =
        "error: 1 of 1 agent did not answer within 50ms: late on h1 (1)\nhint: `tacho agents --watch` shows";
    assert!(code == 3 && stderr.starts_with(expect), "{stderr}");
    let (code, _, stderr) = tacho(&["probes", "off", "com.shop..*", "--service", "late", "--wait", "0s"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    drop(server);
    assert!(shop.join().unwrap().len() > 5);
}

#[test]
fn mistakes_on_the_command_line_have_a_hint() {
    for (args, line) in [
        (&["probes", "off"][..], "error: the following required arguments were not provided: <PATTERN>"),
        (
            &["probes", "clear"],
            "error: no rule is named\nhint: give ids as `tacho probes` lists them, or --all",
        ),
        (&["probes", "clear", "1", "--all"], "error: the argument '[ID]...' cannot be used with '--all'"),
        (&["probes", "clear", "x"], "error: invalid value 'x' for '[ID]...'"),
        (&["probes", "of", "a"], "error: unrecognized subcommand 'of'"),
        (
            &["probes", "off", "a", "--wait", "x"],
            "error: invalid value 'x' for '--wait <DURATION>': give for example",
        ),
        (
            &["probes", "off", "a", "--wait", "0"],
            "error: invalid value '0' for '--wait <DURATION>': it has no unit",
        ),
        (&["probes", "off", "a", "--service", ""], "error: a value is required for '--service <SERVICE>'"),
        (&["probes", "on", "a", "--instance", ""], "error: a value is required for '--instance <INSTANCE>'"),
        (&["agents", "--service", ""], "error: a value is required for '--service <SERVICE>'"),
        (&["agents", "--serve", "x"], "error: unexpected argument '--serve' found"),
    ] {
        let (code, stdout, stderr) = run(args);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{args:?}: {stderr}");
        assert!(stderr.starts_with(line) && stderr.contains("\nhint: "), "{args:?}: {stderr}");
    }
    for command in ["list", "on", "off", "aggregate", "clear"] {
        let (code, help, _) = run(&["probes", command, "--help"]);
        assert!(code == Some(0) && help.contains(&format!("Examples:\n  tacho probes {command}")), "{help}");
    }
}

/// A running `tacho agents --watch`, killed when dropped. Its output is read line by line.
struct Watch {
    child: Child,
    lists: Receiver<String>,
    told: Receiver<String>,
}

impl Watch {
    fn start(url: &str) -> Self {
        let mut command = Command::new(tacho());
        command.args(["agents", "--watch", "--json", "--server", url]).env("NO_COLOR", "1");
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("tacho can be started");
        let (lists, told) = (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, lists, told }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines of `output` as they arrive. A thread reads them, because a read could block without a time limit.
fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    lines
}

#[test]
fn watching_continues_after_a_server_restart() {
    let data = tempfile::tempdir().unwrap();
    // No other test uses this address, so no other process takes the port while the server is down.
    let server = Server::start_at("127.0.0.7:0".parse().unwrap(), data.path());
    let (http, url) = (server.http, server.url());
    let watch = Watch::start(&url);
    let list = wait_for("a list", || watch.lists.try_iter().next());
    assert!(list.contains("\"agents\":[]"), "{list}");
    server.kill();
    let said = wait_for("a warning", || watch.told.try_iter().next());
    let expect = format!("warning: cannot reach a server at {http}: ");
    assert!(said.starts_with(&expect) && said.ends_with("; retrying"), "{said}");
    let server = Server::start_at(http, data.path());
    // There may be two different warnings: first for a closed connection, then for the missing server.
    let is_other = |line: &String| !line.starts_with("warning: ");
    let back = wait_for("the end of the outage", || watch.told.try_iter().find(is_other));
    assert_eq!(back, "connected again");
    let _agent = Agent::connect(server.records, &controlled(1, "shop", "")).unwrap();
    let sees_it = |line: &String| line.contains("\"service\":\"shop\"");
    wait_for("a list of the present agents", || watch.lists.try_iter().find(sees_it));
    drop((watch, server));

    let mut watch = Watch::start(&url);
    let status = wait_for("the end of the command, because no server has ever responded", || {
        watch.child.try_wait().unwrap()
    });
    let told: Vec<String> = watch.told.iter().collect();
    assert_eq!((status.code(), watch.lists.iter().count()), (Some(1), 0), "{told:?}");
}

#[test]
fn watching_ends_when_stdout_is_closed() {
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path());
    let _agent = Agent::connect(server.records, &controlled(1, "shop", "")).unwrap();
    let mut command = Command::new(tacho());
    command.args(["agents", "--watch", "--json", "--server", &server.url()]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("tacho can be started");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["agents"][0]["service"], "shop");
    }
    drop(lines);
    assert!(child.wait().expect("tacho ends").success());
}
