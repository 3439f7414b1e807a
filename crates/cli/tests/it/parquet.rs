//! Tests Parquet import and export with the real binary: it imports the files that data frame libraries write, and its own
//! exports.

use std::path::Path;

use serde_json::Value;

use crate::support::{self, Server, run};

/// Samples of all types, texts and bytes. The labels `time` and `value` have the names of columns of an export.
const EVERYTHING: &str = concat!(
    r#"{"metric":{"__name__":"a","time":"x","value":"ö,\n"},"values":[1,null,"Infinity",-0,0.1],"#,
    r#""nan":{"1":"7ff0000000000002"},"timestamps":[1,2,3,4,5]}"#,
    "\n",
    r#"{"metric":{"__name__":"i"},"type":"i64","values":[-9223372036854775808,7],"timestamps":[-1,1],"#,
    r#""nanoseconds":[5,0]}"#,
    "\n",
    r#"{"metric":{"__name__":"log","host":"h"},"entries":["one","one","",{"hex":"00ff"},{"hex":"61"}],"#,
    r#""timestamps":[1,1,2,3,4]}"#,
    "\n",
    r#"{"metric":{"__name__":"u"},"type":"u64","values":[18446744073709551615],"timestamps":[1000]}"#,
    "\n",
);

fn ok(args: &[&str]) -> (String, String) {
    let (code, stdout, stderr) = run(args);
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    (stdout, stderr)
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn parquet_exports_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let server = Server::start_with(Path::new(&path("data")), &["--selfwatch-seconds", "0"]);
    let url = server.url();
    std::fs::write(path("all.jsonl"), EVERYTHING).unwrap();
    ok(&["import", &path("all.jsonl"), "--server", &url]);
    let all = ["--match", "{__name__=~\".+\"}"];
    let mut sums = Vec::new();
    for (only, name) in [("samples", "samples.parquet"), ("entries", "entries.parquet")] {
        let to = ["export", "--format", "parquet", "--only", only, "--server", &url, "--json", "-o"];
        let (said, _) = ok(&[&to[..], &[&*path(name)], &all].concat());
        let said: Value = serde_json::from_str(&said).unwrap();
        sums.push(said[only].clone());
    }
    let files = [path("samples.parquet"), path("entries.parquet")];
    let (said, stderr) = ok(&["import", &files[0], &files[1], "--data", &path("other"), "--json"]);
    assert!(stderr.contains("Parquet; times in \"time\" as timestamps in ns"), "{stderr}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["samples"], &said["entries"]), (&sums[0], &sums[1]));
    assert_eq!((&said["broken"], &said["verified"]["good"]), (&0.into(), &true.into()));
    let (exported, _) = ok(&[&["export", "--data", &path("other")], &all[..]].concat());
    assert_eq!(sorted(&exported), sorted(EVERYTHING));

    // For a file of texts, --text changes nothing.
    ok(&["import", &files[1], "--text", "--data", &path("texts")]);
    let (exported, _) = ok(&[&["export", "--data", &path("texts")], &all[..]].concat());
    let entries: Vec<&str> = EVERYTHING.lines().filter(|line| line.contains("\"entries\"")).collect();
    assert_eq!(sorted(&exported), entries);
    let (code, _, stderr) = run(&["import", &files[0], "--text", "--data", &path("texts")]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("file holds samples, not texts: omit --text"), "{stderr}");

    let out = std::process::Command::new(support::tacho())
        .args(["export", "--format", "parquet", "--server", &url])
        .args(all)
        .output()
        .unwrap();
    assert_eq!(out.stdout, std::fs::read(path("samples.parquet")).unwrap());
}

#[test]
fn a_pipe_that_is_closed_ends_an_export_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("all.jsonl"), EVERYTHING).unwrap();
    ok(&["import", &path("all.jsonl"), "--data", &path("data")]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = std::process::Command::new(support::tacho())
        .args(["export", "--all", "--format", "parquet", "--only", "samples", "--data", &path("data")])
        .stdout(writer)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (Some(0), ""));
}

#[test]
fn parquet_files_of_other_programs_are_read_and_their_broken_rows_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/parquet");
    for name in ["long", "wide"] {
        std::fs::copy(given.join(format!("{name}.parquet")), path(&format!("{name}.parquet"))).unwrap();
    }
    let (data, long, rejects) = (path("data"), path("long.parquet"), path("rejects.jsonl"));
    let args = ["import", &long, "--data", &data, "--label", "job=j", "--rejects", &rejects, "--json"];
    let (code, said, stderr) = run(&args);
    assert_eq!(code, Some(3), "{stderr}");
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (&said["rows"], &said["broken"], &said["samples"]["count"]),
        (&6.into(), &1.into(), &4.into())
    );
    assert!(stderr.contains("row 5, column \"time\" of row group 1: time is null"), "{stderr}");
    let kept = std::fs::read_to_string(&rejects).unwrap();
    assert_eq!(kept, "{\"time\":null,\"__name__\":\"cpu\",\"host\":\"a\",\"value\":9}\n");
    // Corrected broken rows can be imported as JSON lines.
    std::fs::write(&rejects, kept.replace("null", "1767225602")).unwrap();
    ok(&["import", &rejects, "--data", &data]);
    let (_, stderr) = ok(&["import", &path("wide.parquet"), "--data", &data, "--dry-run"]);
    assert!(stderr.contains("one series per column of numbers (3); labels \"host\""), "{stderr}");
    assert!(
        stderr.contains("warning") && stderr.contains("ignored columns: \"tags.list.element\""),
        "{stderr}"
    );

    let whole = std::fs::read(&long).unwrap();
    let cases: [(&[u8], &[&str], i32, &str); 4] = [
        (&whole[..whole.len() / 2], &[], 1, "not a whole Parquet file"),
        (b"PAR1PAR1", &[], 1, "not a whole Parquet file"),
        (&whole, &["--time-column", "host"], 1, "unknown time format in \"a\""),
        (&whole, &["--value-column", "host"], 1, "does not hold numbers"),
    ];
    for (bytes, args, code, expect) in cases {
        std::fs::write(path("bad.parquet"), bytes).unwrap();
        let bad = path("bad.parquet");
        let (ended, _, stderr) = run(&[&["import", &bad, "--data", &data], args].concat());
        assert!(stderr.contains(expect) && stderr.contains("bad.parquet"), "{expect}: {stderr}");
        assert!(!stderr.contains("panicked"), "{stderr}");
        assert_eq!(ended, Some(code), "{stderr}");
    }
    let (code, _, stderr) = run(&["import", "-", "--format", "parquet"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("Parquet cannot be read from standard input"), "{stderr}");
}
