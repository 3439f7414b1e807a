//! The command line itself: help with examples, errors with hints, exit codes.

mod support;

use support::{Server, run};

const COMMANDS: [&str; 14] = [
    "serve",
    "demo",
    "query",
    "traces",
    "trace",
    "operations",
    "graph",
    "load",
    "inspect",
    "entries",
    "import",
    "export",
    "tune",
    "cardinality",
];

#[test]
fn every_command_has_help_with_an_example() {
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
fn errors_are_one_line_and_a_hint() {
    let fails = |args: &[&str], code: i32, line: &str, hint: &str| {
        let (got, stdout, stderr) = run(args);
        assert_eq!((got, stdout.as_str()), (Some(code), ""), "{args:?}: {stderr}");
        let mut lines = stderr.lines();
        assert!(lines.next().unwrap_or_default().starts_with(line), "{args:?}: {stderr}");
        assert!(lines.next().unwrap_or_default().starts_with(hint), "{args:?}: {stderr}");
    };
    let nobody = "http://127.0.0.1:1";
    for command in
        [&["query", "up"][..], &["traces"], &["trace", "00"], &["graph"], &["operations"], &["inspect"]]
    {
        let args = [command, &["--server", nobody]].concat();
        fails(&args, 1, "error: cannot reach a server at 127.0.0.1:1", "hint: is it running?");
    }
    fails(&["inspect", "/nowhere"], 2, "error: /nowhere is not a data directory", "");
    fails(&["query", "up", "--step", "x"], 2, "error: invalid value 'x' for '--step <DURATION>'", "");
    fails(
        &["serve", "--http", "x"],
        2,
        "error: invalid value 'x' for '--http <ADDR>': \"x\" is not an address",
        "",
    );
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
    let times = ["--start", "1700000000", "--end", "1700000060", "--step", "30"];
    let table = query(&[&["up"], &times[..]].concat());
    let head = "SERIES       POINTS  MIN    MEAN  MAX  LAST\n";
    assert_eq!(table, format!("{head}up{{job=\"a\"}}       3    1  1.6667    3     3\n"));
    let plot = query(&[&["up", "--plot"], &times[..]].concat());
    assert!(plot.starts_with("up{job=\"a\"}\n3 ┤") && plot.contains("22:13:20"), "{plot}");
    let json: serde_json::Value =
        serde_json::from_str(&query(&["up", "--time", "1700000060", "--json"])).unwrap();
    assert_eq!(json["data"]["result"][0]["value"][1], "3");
    let (code, _, stderr) = run(&["query", "sum(", "--server", &url]);
    assert_eq!(code, Some(1));
    assert!(stderr.starts_with("error: "), "{stderr}");
}
