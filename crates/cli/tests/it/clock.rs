//! Tests a clock that is far ahead of the expected time: retention deletes nothing until the clock is confirmed over HTTP.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tacho_model::{Batch, Labels, ManualClock, NAME, Sample, SampleSeries};
use tacho_server::data_directory;

use crate::support::{Server, wait_until_unlocked};

const DAY_S: u64 = 86_400;
const CONFIRM: &str = "/api/v1/admin/clock/confirm";

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Creates a data directory with the clock of a hundred days ago, and one sample of that time. Returns this time, s.
fn long_ago(data: &std::path::Path) -> u64 {
    let then = now_s() - 100 * DAY_S;
    let at = i64::try_from(then).unwrap() * 1_000_000_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (store, _lock) = data_directory::open(data, Arc::new(ManualClock::new(at))).await.unwrap();
        let labels = Arc::new(Labels::new([(NAME, "m")]).unwrap());
        let samples = vec![Sample { at, value: tacho_model::Value::F64(1.0) }];
        let samples = vec![SampleSeries { labels, samples }];
        store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
        store.close().await.unwrap();
    });
    drop(runtime);
    wait_until_unlocked(data);
    then
}

#[test]
fn an_untrusted_clock_is_reported_and_can_be_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let then = long_ago(&data);
    let config = dir.path().join("tacho.toml");
    std::fs::write(&config, "[[retention]]\nmatch = 'm'\nkeep = '30d'\n").unwrap();
    let config = config.to_str().unwrap();
    let server = Server::start_with(&data, &["--config", config, "--selfwatch-seconds", "0"]);
    let ahead = || server.get("/api/status").json()["clock_ahead_seconds"].as_u64().unwrap();
    let doubted = || {
        let metrics = server.get("/metrics").text();
        let line = metrics.lines().find(|line| line.starts_with("tacho_clock_doubted ")).map(str::to_owned);
        line.expect("the clock is reported")
    };
    let samples = || {
        assert_eq!(server.post("/api/v1/admin/tsdb/clean_tombstones", &[], b"").status, 204);
        let answer = server.get(&format!("/api/v1/query?query=m&time={then}")).json();
        answer["data"]["result"].as_array().unwrap().len()
    };
    assert!(ahead() >= 99 * DAY_S, "{}", ahead());
    assert_eq!(doubted(), "tacho_clock_doubted 1");
    assert_eq!(samples(), 1, "a sample was deleted before the clock was confirmed");
    server.wait_for_log("POST /api/v1/admin/clock/confirm");

    assert_eq!(server.get(CONFIRM).status, 405);
    assert_eq!(server.post(CONFIRM, &[("Sec-Fetch-Site", "cross-site")], b"").status, 403);
    assert_eq!((doubted().as_str(), samples()), ("tacho_clock_doubted 1", 1));

    let confirmed = |answer: Value| {
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"]["ahead_seconds"].as_u64().unwrap()
    };
    let by = confirmed(server.post(CONFIRM, &[], b"").json());
    assert!((99 * DAY_S..102 * DAY_S).contains(&by), "{by}");
    assert_eq!((ahead(), doubted().as_str()), (0, "tacho_clock_doubted 0"));
    assert_eq!(samples(), 0, "the sample is expired, but still there");
    assert_eq!(confirmed(server.post(CONFIRM, &[], b"").json()), 0, "a confirmed clock is still ahead");
    drop(server);
    // The confirmation survives a restart.
    let server = Server::start_with(&data, &["--config", config, "--selfwatch-seconds", "0"]);
    assert_eq!(server.get("/api/status").json()["clock_ahead_seconds"], 0);
}
