//! Tests `tacho import` and `tacho export` with the real binary: files that they refuse, records that they skip, and warnings.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::support::place::Place;
use crate::support::{self, run};

const ALL: &str = "{__name__=~\".+\"}";

/// Name, content and arguments of a file, and a part of the warning, which is empty if no warning is expected.
const EARLY_FILES: [(&str, &str, &[&str], &str); 10] = [
    (
        "s.lp",
        "m v=1 1700000000\n",
        &[],
        "1970-01-01T00:00:01.7Z, which is 1700000000 read as ns; --precision ns, us",
    ),
    ("s.lp", "m v=1 1700000000\n", &["--precision", "s"], ""),
    ("now.lp", "m v=1\n", &[], ""),
    (
        "ms.csv",
        "time,a\n1700000000,1\n",
        &["--time-format", "epoch-ms"],
        "1700000000 read as ms; --time-format epoch, epoch-ms",
    ),
    ("old.csv", "time,a\n1969-07-20T20:17:40Z,1\n", &[], ""),
    ("late.csv", "time,late\n5,1\n1700000000,1\n", &[], ""),
    ("s.prom", "# TYPE a gauge\na 1 1700000000\n", &[], "1700000000 read as ms; --format openmetrics (s)"),
    ("s.om", "# TYPE a gauge\na 1 1700000000\n# EOF\n", &[], ""),
    (
        "cut.om",
        "# TYPE a gauge\na 1 1700000000\n",
        &[],
        "\"# EOF\" is missing at the end: the file may be truncated",
    ),
    (
        "s.jsonl",
        "{\"metric\":{\"__name__\":\"n\"},\"values\":[1],\"timestamps\":[1700000000]}\n",
        &[],
        "1970-01-20T16:13:20Z; the name of the JSON member (timestamps: ms",
    ),
];

#[test]
fn ambiguous_files_cause_warnings() {
    let place = Place::new();
    for (name, content, args, expect) in EARLY_FILES {
        let file = place.file(name, content.as_bytes());
        let (code, outcome, stderr) = place.import(&[&[file.to_str().unwrap()], args].concat());
        assert_eq!((code, stderr.contains("warning: ")), (Some(0), !expect.is_empty()), "{name}: {stderr}");
        assert!(stderr.contains(expect), "{name}: {expect:?} in {stderr}");
        assert_eq!(outcome["warnings"].as_array().unwrap().len(), usize::from(!expect.is_empty()), "{name}");
    }
}

/// Name, content and arguments of a file, the expected exit code, a part of stderr, and the number of samples.
type Case<'a> = (&'a str, &'a [u8], &'a [&'a str], i32, &'a str, u64);

const ODD_FILES: [Case<'_>; 19] = [
    ("latin1.csv", b"time,W\xe4rme\n1,2\n3,4\n", &[], 1, "row 1 is not UTF-8: byte 0xE4 at character 7", 0),
    (
        "utf16.csv",
        b"\xff\xfet\0i\0m\0e\0,\0a\0\n\x001\0,\x002\0\n\0",
        &[],
        1,
        "convert the file, for example with `iconv -f utf-16 -t utf-8`",
        0,
    ),
    ("bare.csv", b"1700000000,2\n1700000001,4\n", &[], 1, "no header: the first row has \"1700000000\"", 0),
    ("bare.csv", b"1700000000,2\n1700000001,4\n", &["--columns", "time,temp"], 0, "", 2),
    ("twice.csv", b"time,cpu,cpu\n1700000000,2,3\n", &[], 1, "columns 2 and 3 are both called \"cpu\"", 0),
    ("value.csv", b"time,value\n1700000000,2\n", &["--name", "named"], 0, "", 1),
    (
        "value.csv",
        b"time,value\n1700000000,2\n",
        &["--again"],
        0,
        "value.csv: the series is named \"value\", like the column: --name NAME sets another name",
        1,
    ),
    (
        "log.csv",
        b"time,host,value\n1700000000,a,text\n",
        &["--name", "log"],
        3,
        "column \"value\" holds no numbers: --text imports its texts as entries",
        0,
    ),
    (
        "partly.csv",
        b"time,a,cpu\n1700000000,x,3\n1700000001,4,z\n1700000002,y,z\n1700000003,1,1\n",
        &[],
        3,
        "error: 3 broken rows: 1 is skipped, 2 are partly imported",
        4,
    ),
    (
        "partly.csv",
        b"time,a,cpu\n1700000000,x,3\n1700000003,1,1\n",
        &["--again"],
        3,
        "error: 1 broken row is partly imported, without the broken values",
        3,
    ),
    (
        "wide.csv",
        b"time,a,b\n1700000000,2,3\n",
        &["--name", "named"],
        1,
        "--name \"named\" applies to one series, but 2",
        0,
    ),
    ("name.csv", b"time,name,value\n1700000000,c,3\n", &["--name", "named"], 0, "warning: ", 1),
    (
        "a.jsonl",
        b"{\"__name__\":\"n\",\"time\":1700000000,\"value\":1}\n",
        &["--name", "x"],
        2,
        "--name is for CSV and Parquet, this is JSON lines",
        0,
    ),
    (
        "a.lp",
        b"m v=1 1700000000000000000\n",
        &["--label", "a=b"],
        2,
        "--label is for CSV and Parquet, this is line protocol",
        0,
    ),
    (
        "text.csv",
        b"time,cpu,state\n1700000000,2,ok\n1700000001,3,ok\n",
        &[],
        3,
        "column \"state\" holds no numbers: its 2 texts are skipped",
        2,
    ),
    (
        "text.csv",
        b"time,cpu,state\n1700000000,2,ok\n1700000001,3,ok\n",
        &["--again"],
        3,
        "error: 2 texts are skipped, of a column without numbers",
        2,
    ),
    (
        "comma.csv",
        b"time;a\n1700000000;1,234\n1700000001;5\n",
        &[],
        3,
        "\"1,234\" is ambiguous, 1234 or 1.234: give --decimal",
        1,
    ),
    (
        "comma.csv",
        b"time;a\n1700000000;1,234\n1700000001;5\n",
        &["--decimal", ","],
        0,
        "numbers like 1234,5",
        2,
    ),
    (
        "blank.csv",
        b"\n\ntime,a\n1700000000,x1\n1700000001,3\n",
        &[],
        3,
        "row 4, column \"a\": \"x1\" is not a number",
        1,
    ),
];

#[test]
fn input_that_would_be_misread_is_refused_or_reported() {
    let place = Place::new();
    for (name, content, args, expect_code, expect, samples) in ODD_FILES {
        let file = place.file(name, content);
        let (code, outcome, stderr) = place.import(&[&[file.to_str().unwrap()], args].concat());
        assert_eq!(code, Some(expect_code), "{name}: {stderr}");
        assert!(stderr.contains(expect), "{name}: {expect:?} in {stderr}");
        assert_eq!(outcome["samples"]["count"].as_u64().unwrap_or(0), samples, "{name}: {outcome}");
    }
    let exported = place.export(&["--match", ALL]);
    let mut names: Vec<&str> = exported.lines().filter_map(|line| line.split('"').nth(5)).collect();
    names.dedup();
    assert_eq!(names, ["a", "c", "cpu", "named", "temp", "value"], "{exported}");
}

#[test]
fn exports_take_selectors_as_arguments_or_all_series() {
    let place = Place::new();
    let lines =
        "a value=1 1700000000000000000\nb value=2 1700000000000000000\nlog value=\"x\" 1700000000000000000";
    assert_eq!(place.server.post("/write", &[], lines.as_bytes()).status, 204);
    let nameless = place.file("nameless.jsonl", b"{\"job\":\"j\",\"time\":1700000000,\"value\":3}\n");
    let (code, _, stderr) = place.import(&[nameless.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    let url = place.server.url();
    let export = |args: &[&str]| run(&[&["export", "--only", "samples"], args].concat());
    let values = |args: &[&str]| {
        let (code, stdout, stderr) = export(args);
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        let mut values: Vec<char> =
            stdout.lines().filter_map(|line| line.split("\"values\":[").nth(1)?.chars().next()).collect();
        values.sort_unstable();
        values.into_iter().collect::<String>()
    };
    let cases = [
        (&["a"][..], "1"),
        (&["a", "b"], "12"),
        (&["a", "--match", "b"], "12"),
        (&["--match", "b"], "2"),
        (&["--all"], "123"),
    ];
    for (args, expect) in cases {
        assert_eq!(values(&[args, &["--server", &url]].concat()), expect, "{args:?}");
    }
    let (code, _, stderr) = export(&["--all", "--format", "csv", "--server", &url]);
    assert_eq!(code, Some(0), "{stderr}");
    for (args, expect) in [
        (&[][..], "the following required arguments were not provided"),
        (&["a", "--all"], "cannot be used with"),
        (&["a{", "--server", &url], "  | a{\n"),
    ] {
        let (code, _, stderr) = export(args);
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(expect), "{args:?}: {stderr}");
    }
    assert_eq!(place.server.get("/api/v1/export?all=1&match[]=a").status, 400);
    assert_eq!(place.server.post("/api/v1/admin/tsdb/delete_series?all=1", &[], b"").status, 400);
    let Place { server, dir: _dir } = place;
    let data = server.data.clone();
    assert!(server.stop().success());
    assert_eq!(values(&["--all", "--data", data.to_str().unwrap()]), "123");
}

#[test]
fn exported_entries_are_read_back_as_the_hint_says() {
    let place = Place::new();
    assert_eq!(place.server.post("/write", &[], b"log value=\"text\" 1700000000000000000").status, 204);
    let (csv, url) = (place.path("log.csv"), place.server.url());
    let export = |args: &[&str]| {
        let common = ["export", "--match", "log", "--format", "csv", "--output", &csv, "--server", &url];
        let (code, _, stderr) = run(&[&common, args].concat());
        assert_eq!(code, Some(0), "{stderr}");
        stderr
    };
    let without = export(&[]);
    assert!(
        without.contains("hint: --only entries writes them (`tacho import --text` reads them back)"),
        "{without}"
    );
    let stderr = export(&["--only", "entries"]);
    assert!(stderr.ends_with("hint: `tacho import --text` reads the file back\n"), "{stderr}");
    let (code, outcome, stderr) = place.import(&[&csv, "--text", "--label", "copy=yes"]);
    assert_eq!((code, &outcome["entries"]["count"]), (Some(0), &1.into()), "{stderr}");
}

#[test]
fn refused_records_are_counted_and_the_rest_is_verified() {
    let place = Place::with(&["--label-values-max", "100"]);
    let line = |nth: usize| format!("m,id={} v={nth} {nth}\n", nth % 150);
    let file = place.file("a.lp", (0..3_000).map(line).collect::<String>().as_bytes());
    let url = place.server.url();
    let (code, stdout, stderr) = run(&["import", file.to_str().unwrap(), "--server", &url]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let said = "2,000 records kept, 1,000 refused:\n  label \"id\" already has 100 values, at most 100 are allowed: for example ";
    assert!(stdout.contains("{id=\"100\"}\n"), "{stdout}");
    assert!(stdout.contains(said) && stdout.contains("verified: the store holds 2,000 samples"), "{stdout}");
    assert!(stderr.contains("the store refused 1,000 records\nhint: `tacho cardinality`"), "{stderr}");
}

#[test]
fn records_refused_at_the_limit_on_chunks_have_their_own_reason_and_hint() {
    let place = Place::with(&["--chunks-max", "100"]);
    let line = |nth: u64| format!("m v={nth} {}\n", 1_000_000_000 + nth * 3 * 86_400);
    let file = place.file("far.lp", (0..300).map(line).collect::<String>().as_bytes());
    let args = ["import", file.to_str().unwrap(), "--precision", "s", "--server", &place.server.url()];
    let (code, stdout, stderr) = run(&args);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let said = "0 records kept, 300 refused:\n  limit of 100 chunks (chunks_max): 0 are stored, records in memory take up to 0 \
        more and this batch up to 299, estimated from their times; records more than two days from now are refused: for \
        example m_v\n";
    assert!(stdout.contains(said), "{stdout}");
    assert!(
        stderr.contains("the store refused 300 records\nhint: records of a series that are more than"),
        "{stderr}"
    );
    assert!(!stderr.contains("tacho cardinality"), "{stderr}");
    let text = place
        .server
        .post("/write?precision=s", &[], (0..300).map(line).collect::<String>().as_bytes())
        .text();
    assert!(text.contains("series m_v: limit of 100 chunks (chunks_max): 0 are stored, "), "{text}");
}

#[test]
fn the_refusal_of_a_series_without_labels_names_the_series() {
    let place = Place::with(&["--series-max", "2"]);
    let file = place.file("a.csv", b"time,a,b,c,d\n1700000000,1,2,3,4\n");
    let (code, stdout, stderr) = run(&["import", file.to_str().unwrap(), "--server", &place.server.url()]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let said = "2 records kept, 2 refused:\n  limit of 2 series is reached: for example c\nverified: ";
    assert!(stdout.contains(said), "{stdout}");
    let written = place.server.post("/write", &[], b"e value=1\nf value=1\n");
    assert!(written.text().contains("series e, f: limit of 2 series is reached"), "{}", written.text());
}

#[test]
fn records_past_retention_are_distinguished_from_loss() {
    let config = tempfile::NamedTempFile::new().unwrap();
    let rules = "[[retention]]\nmatch = '{__name__=~\"old|log\"}'\nkeep = \"30d\"\n";
    std::fs::write(config.path(), rules).unwrap();
    let place = Place::with(&["--config", config.path().to_str().unwrap()]);
    let now = jiff::Timestamp::now().as_second();
    let old = now - 40 * 86_400;
    let value = |name: &str, at: i64, value: &str| {
        format!("{{\"__name__\":\"{name}\",\"time\":{at},\"value\":{value}}}\n")
    };
    let aged = "of 3 records are older than the retention of 30 d: the store does not keep them";
    for (name, rows, kept, expect) in [
        (
            "mixed",
            [value("old", old, "1"), value("old", old + 1, "2"), value("old", now, "3")].concat(),
            1,
            format!("error: 2 {aged}"),
        ),
        (
            "all",
            value("old", old, "1"),
            0,
            "error: 1 of 1 record is older than the retention of 30 d".to_owned(),
        ),
        (
            "texts",
            [value("log", old, "\"a\""), value("log", old, "\"b\""), value("log", now, "\"c\"")].concat(),
            1,
            format!("error: 2 {aged}"),
        ),
        ("young", [value("other", old, "1"), value("old", now - 5, "1")].concat(), 2, String::new()),
    ] {
        let file = place.file(&format!("{name}.jsonl"), rows.as_bytes());
        let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
        assert_eq!(code, Some(if expect.is_empty() { 0 } else { 3 }), "{name}: {stderr}");
        assert!(stderr.contains(&expect), "{name}: {expect:?} in {stderr}");
        let verified = &outcome["verified"];
        let held =
            verified["samples"]["count"].as_u64().unwrap() + verified["entries"]["count"].as_u64().unwrap();
        assert_eq!((&verified["good"], held), (&true.into(), kept), "{name}: {outcome}");
    }
    // Standard input can be read only once, so the number of expired records remains unknown.
    let rows = [value("old", old, "1"), value("old", now - 9, "3")].concat();
    let said = support::run_with_input(
        &["import", "-", "--format", "jsonl", "--server", &place.server.url()],
        &rows,
    );
    assert!(said.1.contains("1 series could not be compared"), "{said:?}");
}

#[test]
fn an_import_that_fails_before_it_sends_leaves_no_state_behind() {
    let place = Place::new();
    let there = place.file("there.csv", b"time,a\n1700000000,1\n");
    let missing = place.path("missing.csv");
    let dir = place.dir.path().display().to_string();
    let bare = place.file("bare.csv", b"1700000000,1\n1700000001,1\n");
    for (files, code, expect) in [
        (vec![&*missing], 2, "error: cannot read "),
        (vec![there.to_str().unwrap(), &missing], 2, "missing.csv: No such file"),
        (vec![bare.to_str().unwrap()], 1, "no header"),
        (vec![&*dir], 2, " is a directory: name the files in it"),
    ] {
        let (ended, _, stderr) = place.import(&files);
        assert_eq!(ended, Some(code), "{stderr}");
        assert!(stderr.contains(expect), "{expect:?} in {stderr}");
    }
    let nobody = ["import", there.to_str().unwrap(), "--server", "http://127.0.0.1:1"];
    assert_eq!(run(&nobody).0, Some(1));
    let left = std::fs::read_dir(place.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains("tacho-import")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!std::path::Path::new(&format!("{dir}.tacho-import")).exists());
}

#[test]
fn values_out_of_range_are_not_imported_as_infinity() {
    let place = Place::new();
    let jsonl = "{\"__name__\":\"n\",\"time\":1700000000,\"value\":1e400}\n\
                 {\"metric\":{\"__name__\":\"n\"},\"values\":[1,-1e400],\"timestamps\":[1,2]}\n\
                 {\"__name__\":\"n\",\"time\":1700000001,\"value\":\"Infinity\"}\n";
    for (name, content, broken) in [
        ("a.jsonl", jsonl, vec!["\\\"1e400\\\" is out of range: a number", "\\\"-1e400\\\" is out of range"]),
        ("a.csv", "time,a\n1700000000,1e400\n1700000001,1\n", vec!["\\\"1e400\\\" is not a number"]),
    ] {
        let file = place.file(name, content.as_bytes());
        let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
        assert_eq!((code, &outcome["samples"]["count"]), (Some(3), &1.into()), "{stderr}");
        for (nth, expect) in broken.iter().enumerate() {
            assert!(outcome["broken_named"][nth].to_string().contains(expect), "{expect} in {outcome}");
        }
    }
}

#[test]
fn an_import_that_waits_for_a_full_server_says_so_and_can_be_interrupted() {
    let place = Place::with(&["--disk-reserve-bytes", "9000000000000000"]);
    let file = place.file("a.lp", b"a value=1\n");
    let mut import = Command::new(support::tacho())
        .args(["import", file.to_str().unwrap(), "--server", &place.server.url()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(import.stderr.take().unwrap()).lines().map(Result::unwrap);
    let waiting = lines.find(|line| line.starts_with("waiting for capacity")).unwrap();
    assert!(waiting.contains("bytes are free on the disk"), "{waiting}");
    let sent = Command::new("kill").args(["-INT", &import.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(import.wait().unwrap().code(), Some(1), "{rest:?}");
    let error = rest.iter().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.starts_with("error: interrupted during the wait for capacity: "), "{error}");
}
