//! Tests `tacho tune` with files, a data directory and a server.

use std::fmt::Write;

use serde_json::Value;

use crate::support::{Server, run};

/// A CSV file of two hosts with three metrics each, every ten seconds: a wave, a step, a constant.
fn csv() -> String {
    let mut out = String::from("time,host,name,value\n");
    for at in 0..1_500 {
        let time = 1_700_000_000 + at * 10;
        for host in ["a", "b"] {
            let wave = (f64::from(at) / 40.0).sin() * 50.0 + f64::from(at * 7 % 13) / 100.0;
            let _ = writeln!(out, "{time},{host},wave,{wave}");
            let _ = writeln!(out, "{time},{host},step,{}", at / 100);
            let _ = writeln!(out, "{time},{host},flat,7");
        }
    }
    out
}

/// The outcome and stderr of `tacho tune`.
fn tune(args: &[&str]) -> (Value, String) {
    let (code, stdout, stderr) = run(&[&["tune", "--json", "--seconds", "5"], args].concat());
    assert_eq!(code, Some(0), "{args:?}: {stderr}");
    (serde_json::from_str(&stdout).unwrap(), stderr)
}

fn recommended(report: &Value) -> &Value {
    let trials = report["trials"].as_array().unwrap();
    let chosen: Vec<&Value> = trials.iter().filter(|trial| trial["recommended"] == true).collect();
    assert_eq!(chosen.len(), 1, "{report}");
    chosen[0]
}

#[test]
fn tune_measures_a_file_draws_a_plot_and_recommends_a_section() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(path("a.csv"), csv()).unwrap();
    std::fs::write(path("tacho.toml"), "data = 'x'\n").unwrap();
    std::fs::write(path("mix"), "# questions\nsum(wave)\n[1h] max_over_time(step[10m])\n").unwrap();
    let (file, svg, toml, mix) = (path("a.csv"), path("t.svg"), path("tacho.toml"), path("mix"));
    let args = [&*file, "--svg", &svg, "--write", &toml, "--queries", &mix, "--tolerance", "0.01"];
    let (report, stderr) = tune(&args);
    assert!(stderr.contains("one value per row in \"value\" named by \"name\""), "{stderr}");
    assert_eq!(
        (&report["series"], &report["values"], &report["groups"]),
        (&6.into(), &9000.into(), &1.into())
    );
    let best = recommended(&report);
    assert_eq!(best["lossless"], true, "the recommendation is not lossless");
    assert!(best["bytes_per_value"].as_f64().unwrap() < 4.0, "{best}");
    let lossy = report["trials"].as_array().unwrap().iter().find(|trial| trial["lossless"] == false);
    if let Some(lossy) = lossy {
        let error = lossy["value_error_max"].as_f64().unwrap();
        assert!(
            error > 0.0 && error <= 0.5032,
            "the error must be above 0 and at most one percent of 50.3: {lossy}"
        );
    }
    let written = std::fs::read_to_string(&toml).unwrap();
    assert!(written.starts_with("data = 'x'\n") && written.contains("[[chunks]]"), "{written}");
    assert!(written.contains(report["section"].as_str().unwrap()), "{written}");
    let server = Server::start_with(&dir.path().join("data"), &["--config", &toml]);
    assert_eq!(server.get("/readyz").status, 200, "the server is not ready with the section");
    drop(server);
    std::fs::write(&toml, "[[chunks]]\nmatch = '{host=\"a\"}'\nvalues = 128\n").unwrap();
    std::fs::write(&mix, "sum(wave)\nnobody\n").unwrap();
    let (_, stderr) = tune(&[&file, "--write", &toml, "--queries", &mix]);
    assert!(stderr.contains("an earlier [[chunks]] rule applies to 3 of 6 series"), "{stderr}");
    assert!(stderr.contains("warning: nobody: selects none of the sampled series"), "{stderr}");
    let drawing = std::fs::read_to_string(&svg).unwrap();
    let trials = report["trials"].as_array().unwrap().len();
    assert_eq!(drawing.matches("<title>").count(), trials);

    let (code, stdout, stderr) = run(&["tune", &file, "--seconds", "1"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("BYTES/VALUE") && stdout.contains("Recommended for tacho.toml:"), "{stdout}");
}

#[test]
fn a_server_and_a_directory_give_the_same_data() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let file = dir.path().join("a.csv");
    std::fs::write(&file, csv()).unwrap();
    let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
    let url = server.url();
    let (code, _, stderr) = run(&["import", file.to_str().unwrap(), "--server", &url]);
    assert_eq!(code, Some(0), "{stderr}");
    let select = ["--match", "{host=\"a\"}", "--values", "3000"];
    let (report, _) = tune(&[&["--server", &url], &select[..]].concat());
    assert_eq!(
        (&report["series"], &report["values"]),
        (&3.into(), &4500.into()),
        "--values 3000 must not split the group of 4,500 values"
    );
    assert!(report["section"].as_str().unwrap().contains("match = '{host=\"a\"}'"), "{report}");
    assert!(server.stop().success());
    let (report, _) = tune(&[&["--data", data.to_str().unwrap()], &select[..]].concat());
    assert_eq!(report["values"], 4500);
}

#[test]
fn a_series_shorter_than_a_chunk_keeps_the_default_chunk_size() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("short.csv");
    let row = |at: i32| format!("{},{},{}\n", 1_700_000_000 + at * 10, (f64::from(at) / 9.0).sin(), at / 7);
    let rows: String = (0..500).map(row).collect();
    std::fs::write(&file, format!("time,a,b\n{rows}")).unwrap();
    for favour in ["space", "balanced", "speed"] {
        let (report, _) = tune(&[file.to_str().unwrap(), "--favour", favour]);
        assert_eq!(recommended(&report)["values"], 8_192, "{favour}: {report}");
    }
}

#[test]
fn unusable_data_and_arguments_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.csv");
    std::fs::write(&file, csv()).unwrap();
    let file = file.to_str().unwrap();
    let fails = |args: &[&str], expect: &str| {
        let (code, _, stderr) = run(&[&["tune"], args].concat());
        assert!(code != Some(0) && stderr.contains(expect), "{args:?}: {expect} in {stderr}");
    };
    fails(&[file, "--match", "{host=\"z\"}"], "there are no samples to try settings on");
    let few = dir.path().join("few.csv");
    std::fs::write(&few, "time,value\n1700000000,1\n1700000010,2\n").unwrap();
    fails(&[few.to_str().unwrap()], "2 values are too few to choose settings: at least 1,000 are needed");
    let wrong = dir.path().join("tacho.toml");
    std::fs::write(&wrong, "dta = 1\n").unwrap();
    fails(&[file, "--write", wrong.to_str().unwrap()], "unknown key \"dta\"");
    fails(&[file, "--tolerance", "2"], "a share is below 1; give an amount as 5abs");
    fails(&[file, "--queries", "/nowhere"], "cannot read /nowhere");
    fails(&["--data", "/nowhere"], "/nowhere does not exist");
    fails(&["--server", "http://127.0.0.1:1"], "cannot reach a server at 127.0.0.1:1");
}
