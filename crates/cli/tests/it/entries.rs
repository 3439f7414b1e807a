//! Tests entries and cardinality over HTTP and with the real binary.

use serde_json::Value;

use crate::support::{Server, run};

/// Time of the first entries of [`server`], s. Successive entries of a series are one second apart.
const BEGIN: i64 = 1_700_000_000;

fn server(dir: &tempfile::TempDir) -> Server {
    let server = Server::start_with(&dir.path().join("data"), &["--selfwatch-seconds", "0"]);
    let mut body = String::new();
    for at in 0..20 {
        let time = BEGIN + at;
        body.push_str(&format!("log,host=a value=\"line {at} of a\" {time}\n"));
        body.push_str(&format!("log,host=b value=\"line {at} of b\\\\n  at Foo.bar\" {time}\n"));
        let row = format!("{{\\\"pid\\\":{},\\\"command\\\":\\\"java\\\",\\\"fd\\\":\\\"{at}r\\\"}}", at % 3);
        body.push_str(&format!("lsof value=\"{row}\" {time}\n"));
    }
    body.push_str(&format!("up,host=a value=1 {BEGIN}\n"));
    assert_eq!(server.post("/write?precision=s", &[], body.as_bytes()).status, 204);
    server
}

fn escaped(question: &str) -> String {
    let odd = |c: char| matches!(c, '{' | '}' | '"' | ' ' | '\\' | '+' | '$' | '~');
    question.chars().map(|c| if odd(c) { format!("%{:02X}", u32::from(c)) } else { c.to_string() }).collect()
}

/// Searches entries. Returns their times in seconds after [`BEGIN`] and their texts, and `data` of the answer.
fn ask(server: &Server, question: &str) -> (Vec<(i64, String)>, Value) {
    let question = escaped(question);
    let path = format!("/api/v1/entries?start={BEGIN}&end={}&{question}", BEGIN + 19);
    let answer = server.get(&path);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    let data = answer.json()["data"].clone();
    let entry = |entry: &Value| {
        let time: i64 = entry["time"].as_str().unwrap().parse().unwrap();
        (time / 1_000_000_000 - BEGIN, entry["text"].as_str().unwrap().to_owned())
    };
    (data["entries"].as_array().unwrap().iter().map(entry).collect(), data)
}

#[test]
fn entries_are_found_by_labels_texts_patterns_and_members() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    for from in ["memory", "chunks"] {
        let (entries, data) = ask(&server, "match[]=log{host=\"a\"}&limit=2");
        assert_eq!(entries, [(19, "line 19 of a".into()), (18, "line 18 of a".into())], "{from}");
        assert_eq!((&data["matched"], &data["seen"]), (&20.into(), &20.into()));
        assert_eq!(data["series"], serde_json::json!([{ "__name__": "log", "host": "a" }]));
        let (entries, _) = ask(&server, "match[]=log&contains=line 7&contains=of&order=oldest");
        let texts: Vec<&str> = entries.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["line 7 of a", "line 7 of b\\n  at Foo.bar"]);
        let (entries, data) = ask(&server, "match[]={__name__=~\".+\"}&pattern=line 1\\d of a$&parts=2");
        assert_eq!((entries.len(), &data["histogram"]["counts"]), (10, &serde_json::json!([0, 10])));
        let (entries, _) = ask(&server, "match[]=lsof&field=pid=2&field=fd=5r");
        assert_eq!(entries, [(5, r#"{"pid":2,"command":"java","fd":"5r"}"#.into())]);
        assert_eq!(server.post("/api/flush", &[], b"").status, 204);
    }
    for (question, expect) in [
        ("", "parameter \"match[]\" is missing"),
        ("match[]=log&pattern=(", "invalid parameter \"pattern\""),
        ("match[]=log&field=x", "\"x\" is not name=value"),
        ("match[]=log&order=up", "\"up\" is not newest or oldest"),
        ("match[]=log&limit=1000000", "\"1000000\" is not a whole number from 0 to 10000"),
    ] {
        let answer = server.get(&format!("/api/v1/entries?{question}"));
        assert_eq!(answer.status, 400, "{question}");
        assert!(answer.json()["error"].as_str().unwrap().contains(expect), "{}", answer.text());
    }
    let large = server.get("/api/v1/entries?match[]=log&pattern=(a{1000}){1000}");
    assert_eq!(large.status, 422, "{}", large.text());
}

#[test]
fn the_command_prints_lines_tables_and_plots() {
    let dir = tempfile::tempdir().unwrap();
    let server = server(&dir);
    let url = server.url();
    let (start, end) = (BEGIN.to_string(), (BEGIN + 19).to_string());
    let entries = |args: &[&str]| {
        let common = ["--server", &url, "--start", &start, "--end", &end];
        let (code, stdout, stderr) = run(&[&["entries"], args, &common[..]].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        (stdout, stderr)
    };
    let (lines, said) = entries(&["log{host=\"a\"}", "--contains", "line 1", "--limit", "1"]);
    assert_eq!(lines, "2023-11-14T22:13:39.000Z  log{host=\"a\"}  line 19 of a\n");
    assert_eq!(said, "1 of 11 that match\n");
    let (table, _) =
        entries(&["lsof", "--field", "pid=0", "--columns", "pid,fd", "--oldest", "--limit", "2"]);
    let rows = [
        "TIME                      PID  FD",
        "2023-11-14T22:13:20.000Z  0    0r",
        "2023-11-14T22:13:23.000Z  0    3r",
    ];
    assert_eq!(table, rows.join("\n") + "\n");
    let (table, said) =
        entries(&["log{host=\"a\"}", "--columns", "pid", "--limit", "1", "--contains", "line 19"]);
    let omitted = "1 of 1 entries is omitted: --columns shows only entries that are JSON objects; without it, texts are \
        shown, too\n";
    assert_eq!((table.as_str(), said.as_str()), ("TIME  PID\n", omitted));
    let both = "{__name__=~\"log|lsof\"}";
    let (_, said) = entries(&[both, "--columns", "pid,nope"]);
    assert!(said.starts_with("40 of 60 entries are omitted: --columns"), "{said}");
    assert!(said.ends_with("no entry shown has a top-level member \"nope\"\n"), "{said}");
    let (plot, _) = entries(&["log", "--plot", "--limit", "0"]);
    assert!(plot.starts_with("entries per 132 ms\n2 ┤") && plot.ends_with(" 22:13:38Z\n"), "{plot}");
    let (json, _) = entries(&["lsof", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["data"]["matched"], 20);
    let (_, said) = entries(&["log", "--contains", "nowhere"]);
    assert_eq!(said, "none of 40 entries match from 2023-11-14T22:13:20.000Z to 2023-11-14T22:13:39.000Z\n");
    let (_, said) = entries(&["lsof", "--field", "at.host=b"]);
    assert!(said.contains("hint: --field matches top-level members only"), "{said}");
    let (_, said) = entries(&["lsof", "--columns", "pid,nope"]);
    assert!(
        said.contains("no entry shown has a top-level member \"nope\"") && !said.contains("pid"),
        "{said}"
    );
}

#[test]
fn cardinality_shows_the_cost_of_each_label() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_with(&dir.path().join("data"), &["--selfwatch-seconds", "0"]);
    let lines: Vec<String> = (0..50).map(|n| format!("requests,path=/{n},host=a value=1 1")).collect();
    assert_eq!(server.post("/write", &[], (lines.join("\n") + "\nup value=1 1").as_bytes()).status, 204);
    let data = server.get("/api/v1/status/cardinality?limit=2").json()["data"].clone();
    assert_eq!((&data["series_total"], &data["series"]["sample"]), (&51.into(), &51.into()));
    assert_eq!(data["names"][0], serde_json::json!({ "value": "requests", "series": 50 }));
    let path = data["labels"].as_array().unwrap().iter().find(|label| label["name"] == "path").unwrap();
    assert_eq!((&path["values"], path["top"].as_array().unwrap().len()), (&50.into(), 2));

    let (code, table, stderr) = run(&["cardinality", "--server", &server.url()]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(table.contains("51 series of at most ") && table.contains("requests      50"), "{table}");
    assert!(server.stop().success());
    let data = dir.path().join("data").display().to_string();
    let (code, json, stderr) = run(&["cardinality", "--data", &data, "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["series_total"], 51);
}
