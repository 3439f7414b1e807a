//! Tests `tacho import` and `tacho export` with the real binary: no record is lost, duplicated or rounded.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::place::Place;
use crate::support::{run, tacho, wait_for};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const ALL: &str = "{__name__=~\".+\"}";

#[test]
fn chronix_files_are_imported_without_their_broken_rows() {
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
    assert!(stderr.contains("error: 2 broken rows are skipped"), "{stderr}");
    let told = "without the header line: --columns 'Date,java.lang:type=Memory/used' names their columns\n";
    assert!(stderr.contains(told), "{stderr}");
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

    let (code, outcome, _) = place.import(&args);
    assert_eq!(code, Some(0));
    assert!(outcome.as_str().unwrap().starts_with("nothing to do:"), "{outcome}");
}

/// Samples of every type and entries of every form, as JSON lines.
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
fn samples_and_entries_round_trip_exactly_through_a_server_and_a_directory() {
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
    assert_eq!(place.export(&["--match", ALL]), exported, "the export from chunks differs");

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
fn other_formats_export_what_they_can_represent() {
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
    assert_eq!(
        report["omitted"],
        1 + 7,
        "one entry of bytes, and seven samples with a label that cannot be a tag: {report}"
    );
    assert_eq!((&report["samples"]["count"], &report["entries"]["count"]), (&3.into(), &3.into()));
    let (_, outcome, stderr) = place.import(&[&output, "--format", "line"]);
    assert_eq!(
        (&outcome["samples"]["count"], &outcome["entries"]["count"]),
        (&3.into(), &3.into()),
        "{stderr}"
    );
}

#[test]
fn records_omitted_from_an_export_are_reported() {
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
            "warning: 4 entries are omitted: a file of",
        ),
        (&["--format", "csv", "--only", "samples"], "10 samples and 0 entries of 3 series", ""),
        (
            &["--format", "csv", "--only", "entries"],
            "0 samples and 3 entries of 1 series",
            "warning: 1 record does not fit the format and is omitted",
        ),
        (
            &["--format", "csv", "--end", "1970-01-01T00:00:00.001Z"],
            "2 samples and 0 entries",
            "warning: 2 entries are omitted",
        ),
        (
            &["--format", "line"],
            "3 samples and 3 entries of 4 series",
            "warning: 8 records do not fit the format and are omitted",
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
    assert_eq!(report["entries_omitted"], serde_json::json!({ "records": 4, "complete": true }));
}

#[test]
fn openmetrics_and_long_csv_are_read_and_unknown_formats_refused() {
    let place = Place::new();
    let om = "# TYPE r counter\nr_total 5 1700000000.5 # {id=\"a\"} 1\nr_total 6 1700000001\nr 7\n# EOF\n";
    let om = place.file("a.openmetrics", om.as_bytes());
    let (code, outcome, stderr) = place.import(&[om.to_str().unwrap()]);
    assert_eq!(code, Some(3), "{stderr}");
    let broken = "row 4: r is a counter: its samples end in \\\"_total\\\"";
    assert!(outcome["broken_named"][0].to_string().contains(broken), "{outcome}");
    assert_eq!((&outcome["samples"]["count"], &outcome["exemplars_skipped"]), (&2.into(), &1.into()));
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
    assert!(stderr.contains("cannot detect the format by name or first bytes"), "{stderr}");
}

#[test]
fn repeated_times_are_distinguished_from_loss() {
    let place = Place::new();
    let file = place.file("a.csv", b"t,a\n1,1\n2,2\n2,3\n1,4\n3,5\n");
    let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    let verified = &outcome["verified"];
    assert_eq!(
        (&verified["good"], &verified["replaced"], &verified["samples"]["count"]),
        (&true.into(), &2.into(), &3.into())
    );
    // A sample of another client is between the imported samples of the series, so the comparison fails.
    place.server.post("/write?precision=s", &[], b"b value=1 5");
    let file = place.file("b.csv", b"t,b\n4,1\n6,2\n");
    let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
    assert_eq!((code, &outcome["verified"]["good"]), (Some(1), &false.into()));
    assert!(stderr.contains("error: the records in the store differ from those sent"), "{stderr}");
}

/// Rows of two series: one of samples, one of texts. All rows of a series have different times.
fn rows(n: usize) -> String {
    let record = |name: &str, at: usize, value: &str| {
        format!("{{\"__name__\":\"{name}\",\"time\":{at},\"value\":{value}}}\n")
    };
    let rows =
        (0..n).map(|at| record("n", at, &at.to_string()) + &record("t", at, &format!("\"text {at}\"")));
    rows.collect()
}

/// Starts an import, and stops it with `signal` when it has sent some but not all records.
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
    assert!(!status.success(), "the import was not interrupted, but completed");
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(signal == "-KILL" || said.contains("hint: the same command resumes the import"), "{said}");
}

#[test]
fn an_interrupted_import_resumes_without_duplicates() {
    for signal in ["-INT", "-KILL"] {
        let place = Place::new();
        let n = 400_000;
        let file = place.file("rows.jsonl", rows(n).as_bytes());
        interrupt(&place.server.url(), &file, signal);
        // The request for the metrics has one connection. Any other connection belongs to the interrupted import.
        wait_for("the end of the connections of the import", || {
            let metrics = place.server.get("/metrics").text();
            metrics.contains("tacho_connections{listener=\"http\"} 1\n").then_some(())
        });
        let (code, outcome, stderr) = place.import(&[file.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{signal}: {stderr}");
        assert!(stderr.contains("resuming after"), "{signal}: {stderr}");
        assert!(stderr.contains("; reading from row "), "{signal}: {stderr}");
        assert!(
            !Path::new(&format!("{}.tacho-import.checkpoint", file.display())).exists(),
            "the checkpoint of a complete import was not removed"
        );
        assert_eq!(
            (&outcome["samples"]["count"], &outcome["entries"]["count"], &outcome["verified"]["good"]),
            (&n.into(), &n.into(), &true.into()),
            "{signal}"
        );
        assert!(outcome["earlier"].as_u64().unwrap() > 0);
    }
}

#[test]
fn an_unclosed_quote_breaks_only_one_row() {
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

/// A CSV export without `--only` asks the server twice.
#[test]
fn the_warning_about_a_token_without_tls_is_printed_once() {
    let place = Place::new();
    let url = place.server.url().replace("127.0.0.1", "0.0.0.0");
    let output = Command::new(tacho())
        .args(["export", "--match", ALL, "--format", "csv", "--server", &url])
        .env("TACHO_TOKEN", "tacho_unknown")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("without TLS: use https://").count(), 1, "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_how_to_build_with_it() {
    let place = Place::new();
    let file = place.file("a.parquet", b"PAR1");
    let imports: [&[&str]; 2] =
        [&["import", file.to_str().unwrap()], &["import", "-", "--format", "parquet"]];
    let export = ["export", "--match", "up", "--format", "parquet", "-o", &place.path("out")];
    for args in imports.into_iter().chain([&export[..]]) {
        let (code, _, stderr) = run(args);
        assert_eq!(code, Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains("this tacho was built without Parquet"), "{stderr}");
        let hint = "hint: build tacho with Parquet: cargo build --release -p tacho-cli --features parquet";
        assert!(stderr.contains(hint), "{stderr}");
    }
    assert!(!Path::new(&place.path("out")).exists());
}
