//! Tests that a real Prometheus scrapes the server, and sends the samples back by remote write.
//!
//! The test needs Debian's package `prometheus`. With `TACHO_TEST_QUICK=1` the test is skipped without the package.

mod support;

use std::process::{Child, Command, Stdio};

use support::{Server, wait_for};

/// A running Prometheus; killed when dropped.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_writes_back_scraped_samples() {
    if Command::new("prometheus")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        let quick = std::env::var("TACHO_TEST_QUICK").is_ok_and(|value| value == "1");
        assert!(
            quick,
            "prometheus is not installed: apt-get install -y prometheus, or set TACHO_TEST_QUICK=1"
        );
        eprintln!("skipped: prometheus is not installed");
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(&data.path().join("tacho"), &["--selfwatch-seconds", "0"]);
    let config = data.path().join("prometheus.yml");
    let text = format!(
        "global: {{scrape_interval: 1s}}\n\
         scrape_configs: [{{job_name: tacho, static_configs: [{{targets: ['{at}']}}]}}]\n\
         remote_write: [{{url: 'http://{at}/api/v1/write', queue_config: {{batch_send_deadline: 1s}}}}]\n",
        at = server.http
    );
    std::fs::write(&config, text).unwrap();
    let child = Command::new("prometheus")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", data.path().join("prometheus").display()))
        .arg("--web.listen-address=127.0.0.1:0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus starts");
    let _prometheus = Prometheus(child);

    let value = |query: &str| {
        let answer = server.get(&format!("/api/v1/query?query={query}")).json();
        answer["data"]["result"][0]["value"][1].as_str().map(str::to_owned)
    };
    assert_eq!(wait_for("the scrape", || value("up{job='tacho'}")), "1");
    let build = wait_for("own metrics", || value("tacho_build_info{job='tacho'}"));
    assert_eq!(build, "1");
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("tacho_records_received_total{service=\"tacho\",kind=\"sample\"}"), "{metrics}");
    assert!(metrics.contains("tacho_records_refused_total{protocol=\"remote-write\"} 0\n"), "{metrics}");
}
