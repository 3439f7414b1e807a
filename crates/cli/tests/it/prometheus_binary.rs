//! A real Prometheus scrapes the server, and sends the samples back to it by remote write. A real promtool checks `/metrics`.
//!
//! The tests need Debian's package `prometheus`. With `TACHO_TEST_QUICK=1` they pass without the package
//! and report that the package is missing.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::agent::{Agent, content, dictionary, hello};
use crate::support::{Server, run, wait_for};

const SESSION: u128 = 0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0;

/// A running Prometheus; killed when dropped.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Prometheus {
    /// Starts a Prometheus that scrapes the server every second and writes the samples back to it.
    fn start(server: &Server, directory: &Path) -> Self {
        let config = directory.join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 1s}}\n\
             scrape_configs: [{{job_name: tacho, static_configs: [{{targets: ['{at}']}}]}}]\n\
             remote_write: [{{url: 'http://{at}/api/v1/write', queue_config: {{batch_send_deadline: 1s}}}}]\n",
            at = server.http
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("prometheus").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("prometheus starts");
        Self(child)
    }
}

/// Whether the programs of the package exist. Fails if they do not, except in quick tests.
fn is_installed() -> bool {
    let runs = |program: &str| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    if runs("prometheus") && runs("promtool") {
        return true;
    }
    let quick = std::env::var("TACHO_TEST_QUICK").is_ok_and(|value| value == "1");
    assert!(quick, "prometheus is not installed: apt-get install -y prometheus, or set TACHO_TEST_QUICK=1");
    eprintln!("skipped: prometheus is not installed");
    false
}

fn value(server: &Server, query: &str) -> Option<String> {
    let answer = server.get(&format!("/api/v1/query?query={query}")).json();
    answer["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
}

#[test]
fn prometheus_writes_back_scraped_samples() {
    if !is_installed() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(&data.path().join("tacho"), &["--selfwatch-seconds", "0"]);
    let _prometheus = Prometheus::start(&server, data.path());
    assert_eq!(wait_for("the scrape", || value(&server, "up{job='tacho'}")), "1");
    let build = wait_for("own metrics", || value(&server, "tacho_build_info{job='tacho'}"));
    assert_eq!(build, "1");
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("tacho_records_received_total{service=\"tacho\",kind=\"sample\"}"), "{metrics}");
    assert!(metrics.contains("tacho_records_refused_total{protocol=\"remote-write\"} 0\n"), "{metrics}");
}

/// Runs `promtool check metrics` with this input. Returns whether it accepts the text, and what it printed.
fn checked(metrics: &str) -> (bool, String) {
    let mut child = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    // promtool reads its whole input before it prints.
    child.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&printed).into_owned())
}

#[test]
fn promtool_accepts_the_metrics_of_a_server_that_all_protocols_have_used() {
    if !is_installed() {
        return;
    }
    assert!(!checked("# TYPE a_milliseconds counter\na_milliseconds 1\n").0, "promtool must find faults");
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&data.path().join("tacho"));
    let _prometheus = Prometheus::start(&server, data.path());
    let mut agent = Agent::connect(server.records, &hello(SESSION)).expect("server greets");
    agent.send(&dictionary(SESSION));
    agent.send(&content::frame(1));
    agent.wait_ack(1);
    assert_eq!(server.post("/write", &[], b"line,host=a v=1\n").status, 204);
    assert_eq!(server.post("/write", &[], b"line,host=a v=word\n").status, 400);
    let file = data.path().join("file.csv");
    std::fs::write(&file, "time,name,value\n2026-01-01T00:00:00Z,imported,1\n").unwrap();
    let (code, _, told) = run(&["import", file.to_str().unwrap(), "--server", &server.url()]);
    assert_eq!(code, Some(0), "{told}");
    wait_for("the scrape", || value(&server, "up{job='tacho'}"));
    for path in ["/", "/api/traces", "/api/v1/export?match[]=line_v", "/api/v1/query?query=sum(", "/nothing"]
    {
        server.get(path);
    }
    assert_eq!(server.post("/api/v1/admin/merge", &[], b"").status, 200);
    let metrics = server.get("/metrics").text();
    for protocol in ["native", "line", "remote-write", "import"] {
        assert!(metrics.contains(&format!("protocol=\"{protocol}\"")), "no metric of {protocol}: {metrics}");
    }
    assert_eq!(checked(&metrics), (true, String::new()), "{metrics}");
}
