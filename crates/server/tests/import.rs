//! `tacho import` and `tacho export` with the real binary: nothing lost, nothing doubled, nothing rounded.

mod support;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::{Server, run, tacho, wait_for};

/// A server without records of its own, and a directory for files.
struct Place {
    dir: tempfile::TempDir,
    server: Server,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start_with(&dir.path().join("data"), &["--selfwatch-seconds", "0"]);
        Self { dir, server }
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Exit code, outcome, stderr.
    fn import(&self, args: &[&str]) -> (Option<i32>, Value, String) {
        let url = self.server.url();
        let (code, stdout, stderr) = run(&[&["import", "--json", "--server", &url], args].concat());
        (code, serde_json::from_str(&stdout).unwrap_or(Value::String(stdout)), stderr)
    }

    fn export(&self, args: &[&str]) -> String {
        let url = self.server.url();
        let (code, stdout, stderr) = run(&[&["export", "--server", &url], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        stdout
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const ALL: &str = "{__name__=~\".+\"}";

#[test]
fn chronix_files_with_broken_rows() {
    let place = Place::new();
    let head = "Date;java.lang:type=Memory/used\n12.08.2015 17:25:41.389;2,555,904\n";
    let rows =
        "12.08.2015 17:25:42.520;-1\nyesterday;5\n12.08.2015 17:25:43.598;1,23\n12.08.2015 17:25:44;3.49\n";
    let name = "host1_proc_jmx_2015.08.12_19.23.03--java-lang-type-Memory-used.csv.gz";
    let file = place.file(name, &gzip(format!("{head}{rows}").as_bytes()));
    let rejects = place.path("rejects.csv");
    let file = file.to_str().unwrap();
    let args =
        [file, "--name-fields", "host,process,-", "--time-zone", "Europe/Berlin", "--rejects", &rejects];
    let (code, outcome, stderr) = place.import(&args);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("error: 2 broken rows are left out"), "{stderr}");
    assert!(stderr.contains("as %d.%m.%Y %H:%M:%S%.f in Europe/Berlin; numbers like 1,234.5"), "{stderr}");
    assert!(stderr.contains("row 4, column \"Date\": \"yesterday\" is not a time like"), "{stderr}");
    let broken = "row 5, column \"java.lang:type=Memory/used\": \"1,23\" is not a number";
    assert!(stderr.contains(broken), "{stderr}");
    assert_eq!(
        (&outcome["rows"], &outcome["broken"], &outcome["samples"]["count"], &outcome["verified"]["good"]),
        (&5.into(), &2.into(), &3.into(), &true.into())
    );
    let kept = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(kept, "yesterday;5\n12.08.2015 17:25:43.598;1,23\n");
    let line = r#"{"metric":{"__name__":"java.lang:type=Memory/used","host":"host1","process":"proc"},"#;
    let rest = r#""values":[2555904,-1,3.49],"timestamps":[1439393141389,1439393142520,1439393144000]}"#;
    assert_eq!(place.export(&["--match", "{host=\"host1\"}"]), format!("{line}{rest}\n"));

    // Again: it is complete, and says so.
    let (code, outcome, _) = place.import(&args);
    assert_eq!(code, Some(0));
    assert!(outcome.as_str().unwrap().starts_with("nothing to do:"), "{outcome}");
}

/// Records of every type and form, as JSON lines.
fn everything() -> String {
    [
        r#"{"metric":{"__name__":"a b","l\n\"x\"":"ö,= \\"},"#,
        r#""values":[1,null,"Infinity","-Infinity",-0,5e-324,0.1],"nan":{"1":"7ff0000000000002"},"#,
        r#""timestamps":[1,2,3,4,5,6,7]}"#,
        "\n",
        r#"{"metric":{"__name__":"i"},"type":"i64","values":[-9223372036854775808,9223372036854775807],"#,
        r#""timestamps":[-9223372036855,9223372036854],"nanoseconds":[224192,775807]}"#,
        "\n",
        r#"{"metric":{"__name__":"log"},"entries":["one","one","zwei\n",{"hex":"00ff"}],"timestamps":[1,1,2,3]}"#,
        "\n",
        r#"{"metric":{"__name__":"u","z":"1"},"type":"u64","values":[18446744073709551615],"#,
        r#""timestamps":[1000],"nanoseconds":[1]}"#,
        "\n",
    ]
    .concat()
}

#[test]
fn everything_comes_back_bit_for_bit_from_a_server_and_from_a_directory() {
    let place = Place::new();
    let file = place.file("all.jsonl", everything().as_bytes());
    let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
    assert_eq!((code, &outcome["verified"]["good"]), (Some(0), &true.into()), "{stderr}");
    let exported = place.export(&["--match", ALL]);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&exported), sorted(&everything()));
    assert_eq!(place.server.post("/api/flush", &[], b"").status, 204);
    assert_eq!(place.export(&["--match", ALL]), exported, "from chunks");

    // Into a directory, and out of it.
    let (data, again) = (place.path("other"), place.path("again.jsonl"));
    let (code, _, stderr) = run(&["import", file.to_str().unwrap(), "--data", &data]);
    assert_eq!(code, Some(0), "{stderr}");
    let (code, report, stderr) = run(&["export", "--match", ALL, "--data", &data, "-o", &again, "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(std::fs::read_to_string(&again).unwrap(), exported);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["samples"]["count"], &report["entries"]["count"]), (&10.into(), &4.into()));
}

#[test]
fn other_formats_hold_what_they_can() {
    let place = Place::new();
    let file = place.file("all.jsonl", everything().as_bytes());
    assert_eq!(place.import(&[file.to_str().unwrap()]).0, Some(0));
    let csv = place.export(&["--match", "{__name__=~\"u|i\"}", "--format", "csv"]);
    assert_eq!(
        csv,
        "time,name,z,value\n\
         1677-09-21T00:12:43.145224192Z,i,,-9223372036854775808\n\
         2262-04-11T23:47:16.854775807Z,i,,9223372036854775807\n\
         1970-01-01T00:00:01.000000001Z,u,1,18446744073709551615\n"
    );
    let output = place.path("out.line");
    let args = ["--match", ALL, "--format", "line", "-o", &output, "--json"];
    let report: Value = serde_json::from_str(&place.export(&args)).unwrap();
    assert_eq!(report["left_out"], 1 + 7, "bytes, and a label that cannot be a tag: {report}");
    assert_eq!((&report["samples"]["count"], &report["entries"]["count"]), (&3.into(), &3.into()));
    let (_, outcome, stderr) = place.import(&[&output, "--format", "line"]);
    assert_eq!(
        (&outcome["samples"]["count"], &outcome["entries"]["count"]),
        (&3.into(), &3.into()),
        "{stderr}"
    );
}

#[test]
fn what_an_export_leaves_out_is_said() {
    let place = Place::new();
    let data = place.path("other");
    let file = place.file("all.jsonl", everything().as_bytes());
    assert_eq!(place.import(&[file.to_str().unwrap()]).0, Some(0));
    assert_eq!(run(&["import", file.to_str().unwrap(), "--again", "--data", &data]).0, Some(0));
    let output = place.path("out");
    let url = place.server.url();
    let both = "10 samples and 4 entries of 4 series";
    for (args, written, warning) in [
        (
            &["--format", "csv"][..],
            "10 samples and 0 entries of 3 series",
            "warning: 4 entries are left out: a file of",
        ),
        (&["--format", "csv", "--only", "samples"], "10 samples and 0 entries of 3 series", ""),
        (
            &["--format", "csv", "--only", "entries"],
            "0 samples and 3 entries of 1 series",
            "warning: 1 record does not fit the format and is left out",
        ),
        (
            &["--format", "csv", "--end", "1970-01-01T00:00:00.001Z"],
            "2 samples and 0 entries",
            "warning: 2 entries are left out",
        ),
        (
            &["--format", "line"],
            "3 samples and 3 entries of 4 series",
            "warning: 8 records do not fit the format and are left out",
        ),
        (&[], both, ""),
    ] {
        for from in [["--server", &url], ["--data", &data]] {
            let all = [&["export", "--match", ALL, "-o", &output][..], &from, args].concat();
            let (code, _, stderr) = run(&all);
            assert_eq!(code, Some(0), "{all:?}: {stderr}");
            assert!(stderr.contains(&format!("exported {written}")), "{all:?}: {stderr}");
            assert!(
                stderr.contains(warning) && stderr.contains("warning") != warning.is_empty(),
                "{all:?}: {stderr}"
            );
        }
    }
    let report = place.export(&["--match", ALL, "--format", "csv", "-o", &output, "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["entries_left_out"], serde_json::json!({ "records": 4, "complete": true }));
}

#[test]
fn every_format_is_read() {
    let place = Place::new();
    let om = "# TYPE r counter\nr_total 5 1700000000.5 # {id=\"a\"} 1\nr_total 6 1700000001\nr 7\n# EOF\n";
    let om = place.file("a.openmetrics", om.as_bytes());
    let (code, outcome, stderr) = place.import(&[om.to_str().unwrap()]);
    assert_eq!(code, Some(3), "{stderr}");
    let broken = "row 4: r is a counter: its samples end in \\\"_total\\\"";
    assert!(outcome["broken_named"][0].to_string().contains(broken), "{outcome}");
    assert_eq!((&outcome["samples"]["count"], &outcome["exemplars_left_out"]), (&2.into(), &1.into()));
    let long = place.file("long.csv", b"time,host,message\n2026-01-01T00:00:00Z,a,\"x, y\"\n");
    let args = [long.to_str().unwrap(), "--text", "--value-column", "message", "--name", "log"];
    assert_eq!(place.import(&args).1["entries"]["count"], 1);
    let exported = place.export(&["--match", "{host=\"a\"}"]);
    assert!(exported.contains(r#""entries":["x, y"],"timestamps":[1767225600000]"#), "{exported}");
    let (code, _, stderr) =
        run(&["import", long.to_str().unwrap(), "--value-column", "message", "--dry-run"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("no column names the series") && stderr.contains("hint: give --name"),
        "{stderr}"
    );
    let odd = place.file("odd.txt", b"x");
    let (code, _, stderr) = run(&["import", odd.to_str().unwrap(), "--dry-run"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("told neither by its name nor its head"), "{stderr}");
}

/// Name, content, arguments; what is warned of.
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
        "it does not end with \"# EOF\", as OpenMetrics has to: it may be cut off",
    ),
    (
        "s.jsonl",
        "{\"metric\":{\"__name__\":\"n\"},\"values\":[1],\"timestamps\":[1700000000]}\n",
        &[],
        "1970-01-20T16:13:20Z; their member (timestamps: ms",
    ),
];

#[test]
fn files_that_may_not_be_what_they_seem_are_warned_of() {
    let place = Place::new();
    for (name, content, args, expect) in EARLY_FILES {
        let file = place.file(name, content.as_bytes());
        let (code, outcome, stderr) = place.import(&[&[file.to_str().unwrap()], args].concat());
        assert_eq!((code, stderr.contains("warning: ")), (Some(0), !expect.is_empty()), "{name}: {stderr}");
        assert!(stderr.contains(expect), "{name}: {expect:?} in {stderr}");
        assert_eq!(outcome["warnings"].as_array().unwrap().len(), usize::from(!expect.is_empty()), "{name}");
    }
}

/// Name, content, arguments; exit code, a part of stderr, samples.
type Case<'a> = (&'a str, &'a [u8], &'a [&'a str], i32, &'a str, u64);

const ODD_FILES: [Case<'_>; 15] = [
    ("latin1.csv", b"time,W\xe4rme\n1,2\n3,4\n", &[], 1, "row 1 is not UTF-8: byte 0xE4 at character 7", 0),
    (
        "utf16.csv",
        b"\xff\xfet\0i\0m\0e\0,\0a\0\n\x001\0,\x002\0\n\0",
        &[],
        1,
        "convert the file, such as with `iconv -f utf-16 -t utf-8`",
        0,
    ),
    (
        "bare.csv",
        b"1700000000,2\n1700000001,4\n",
        &[],
        1,
        "there is no header: the first row has \"1700000000\"",
        0,
    ),
    ("bare.csv", b"1700000000,2\n1700000001,4\n", &["--columns", "time,temp"], 0, "", 2),
    ("twice.csv", b"time,cpu,cpu\n1700000000,2,3\n", &[], 1, "columns 2 and 3 are both called \"cpu\"", 0),
    ("value.csv", b"time,value\n1700000000,2\n", &["--name", "named"], 0, "", 1),
    (
        "wide.csv",
        b"time,a,b\n1700000000,2,3\n",
        &["--name", "named"],
        1,
        "--name \"named\" is for one series, here 2",
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
        "left out: column \"state\" holds no numbers: its 2 texts are left out",
        2,
    ),
    (
        "text.csv",
        b"time,cpu,state\n1700000000,2,ok\n1700000001,3,ok\n",
        &["--again"],
        3,
        "error: 2 texts are left out, of a column without numbers",
        2,
    ),
    (
        "comma.csv",
        b"time;a\n1700000000;1,234\n1700000001;5\n",
        &[],
        3,
        "\"1,234\" is 1234 or 1.234, which nothing in the file decides: say --decimal",
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
fn what_would_be_read_wrongly_is_refused_or_told() {
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
    assert_eq!(names, ["a", "c", "cpu", "named", "temp"], "{exported}");
}

#[test]
fn times_that_come_twice_are_told_from_loss() {
    let place = Place::new();
    let file = place.file("a.csv", b"t,a\n1,1\n2,2\n2,3\n1,4\n3,5\n");
    let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    let verified = &outcome["verified"];
    assert_eq!(
        (&verified["good"], &verified["replaced"], &verified["samples"]["count"]),
        (&true.into(), &2.into(), &3.into())
    );
    // A sample that was there before is not one of ours.
    place.server.post("/write?precision=s", &[], b"b value=1 5");
    let file = place.file("b.csv", b"t,b\n4,1\n6,2\n");
    let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
    assert_eq!((code, &outcome["verified"]["good"]), (Some(1), &false.into()));
    assert!(stderr.contains("error: the store does not hold what was sent"), "{stderr}");
}

/// Rows of two series, one of them texts, each row with another time.
fn rows(n: usize) -> String {
    let record = |name: &str, at: usize, value: &str| {
        format!("{{\"__name__\":\"{name}\",\"time\":{at},\"value\":{value}}}\n")
    };
    let rows =
        (0..n).map(|at| record("n", at, &at.to_string()) + &record("t", at, &format!("\"text {at}\"")));
    rows.collect()
}

/// Starts an import and stops it with `signal` once it has sent something and not everything.
fn interrupt(url: &str, file: &Path, signal: &str) {
    let mut child = Command::new(tacho())
        .args(["import", "--server", url])
        .arg(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut checkpoint = file.as_os_str().to_owned();
    checkpoint.push(".tacho-import.checkpoint");
    wait_for("an import under way", || Path::new(&checkpoint).exists().then_some(()));
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert!(!status.success(), "it was to be broken off, and came to its end");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(signal == "-KILL" || said.contains("hint: the same command goes on from there"), "{said}");
}

#[test]
fn what_is_broken_off_goes_on_and_doubles_nothing() {
    for signal in ["-INT", "-KILL"] {
        let place = Place::new();
        let n = 400_000;
        let file = place.file("rows.jsonl", rows(n).as_bytes());
        interrupt(&place.server.url(), &file, signal);
        std::thread::sleep(Duration::from_millis(50));
        let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{signal}: {stderr}");
        assert!(stderr.contains("going on after"), "{signal}: {stderr}");
        assert!(stderr.contains("; reading from row "), "{signal}: {stderr}");
        assert!(!Path::new(&format!("{}.tacho-import.checkpoint", file.display())).exists(), "it is done");
        assert_eq!(
            (&outcome["samples"]["count"], &outcome["entries"]["count"], &outcome["verified"]["good"]),
            (&n.into(), &n.into(), &true.into()),
            "{signal}"
        );
        assert!(outcome["earlier"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_quote_that_is_not_closed_costs_one_row() {
    let place = Place::new();
    let row = |nth: usize| match nth {
        801 => "801;\"1.000,5\n".to_owned(),
        nth => format!("{nth};{nth},5\n"),
    };
    let rows: String = (0..5_000).map(row).collect();
    let file = place.file("a.csv", format!("time;cpu\n{rows}").as_bytes());
    let (path, rejects) = (file.to_str().unwrap(), place.path("rejects.csv"));
    let (code, stdout, stderr) = run(&["import", path, "--dry-run"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stdout.contains("would import 4,999 samples of 1 series from 5,000 rows"), "{stdout}");
    let (code, outcome, stderr) = place.import(&[path, "--rejects", &rejects]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("row 803: a quote is opened and not closed"), "{stderr}");
    assert_eq!((&outcome["samples"]["count"], &outcome["broken"]), (&4_999.into(), &1.into()));
    assert_eq!(std::fs::read_to_string(&rejects).unwrap(), "801;\"1.000,5\n");
}

#[test]
fn what_the_store_refuses_is_counted_and_the_rest_verified() {
    let dir = tempfile::tempdir().unwrap();
    let flags = ["--selfwatch-seconds", "0", "--label-values-max", "100"];
    let server = Server::start_with(&dir.path().join("data"), &flags);
    let line = |nth: usize| format!("m,id={} v={nth} {nth}\n", nth % 150);
    let file = dir.path().join("a.lp");
    std::fs::write(&file, (0..3_000).map(line).collect::<String>()).unwrap();
    let url = server.url();
    let (code, stdout, stderr) = run(&["import", file.to_str().unwrap(), "--server", &url]);
    assert_eq!(code, Some(3), "{stdout}{stderr}");
    let said = "2,000 records kept, 1,000 refused:\n  label \"id\" has 100 values, at most 100 are allowed\n";
    assert!(stdout.contains(said) && stdout.contains("verified: the store holds 2,000 samples"), "{stdout}");
    assert!(stderr.contains("the store refused 1,000 records\nhint: `tacho cardinality`"), "{stderr}");
}

#[test]
fn a_pipe_that_is_closed_ends_an_export_quietly() {
    let place = Place::new();
    let file = place.file("rows.jsonl", rows(200_000).as_bytes());
    assert_eq!(place.import(&[file.to_str().unwrap()]).0, Some(0));
    let mut child = Command::new(tacho())
        .args(["export", "--match", ALL, "--server", &place.server.url()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 9];
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut first).unwrap();
    drop(out);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*said, &first), (Some(0), "", b"{\"metric\""));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_get_one() {
    let place = Place::new();
    let file = place.file("a.parquet", b"PAR1");
    let imports: [&[&str]; 2] =
        [&["import", file.to_str().unwrap()], &["import", "-", "--format", "parquet"]];
    let export = ["export", "--match", "up", "--format", "parquet", "-o", &place.path("out")];
    for args in imports.into_iter().chain([&export[..]]) {
        let (code, _, stderr) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("this tacho was built without Parquet"), "{stderr}");
        let hint = "hint: build one with it: cargo build --release -p tacho-server --features parquet";
        assert!(stderr.contains(hint), "{stderr}");
    }
    assert!(!Path::new(&place.path("out")).exists());
}
