//! Tests that a backup has every record that was acknowledged before the backup began, exactly once. Servers and backups are
//! killed at random moments, while an agent sends records and the server merges.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tacho_ingest::wire::ServerFrame;
use tacho_model::{Kind, MatchOp, Matcher, Random, SeriesId, TimeRange};
use tacho_server::clock::SystemClock;
use tacho_store::{Options, Store};

use crate::support::agent::{self, Agent, content};
use crate::support::{self, Server, run};

const SEED: u64 = 31;
/// Number of rounds. Each round kills one backup and one server. `TACHO_BACKUP_KILLS` sets another number.
const KILLS: u32 = 6;
const SESSION: u128 = 303;
/// Limit on the frames that the agent sends before they are acknowledged.
const WINDOW: u64 = 32;
/// Pause of the agent after each received frame. It limits the amount of data.
const PAUSE: Duration = Duration::from_millis(1);

/// Two adjacent chunks of similar size are enough for a merge, and merges are fast.
const CONFIG: &str = r#"
merge_rows = 2
merge_cpu_percent = 100
merge_bytes_per_second = 1000000000
[[chunks]]
match = '{__name__=~".+"}'
values = 256
"#;

/// Numbers of the last sent and the last acknowledged frame.
#[derive(Default)]
struct Model {
    sent: AtomicU64,
    acked: AtomicU64,
}

impl Model {
    fn acked(&self) -> u64 {
        self.acked.load(Ordering::SeqCst)
    }

    /// Sends until the server has ended.
    fn run(&self, at: SocketAddr) {
        let Ok(mut agent) = Agent::connect(at, &agent::hello(SESSION)) else { return };
        assert!(agent.welcome.acked >= self.acked(), "acknowledged frames are lost");
        self.acked.store(agent.welcome.acked, Ordering::SeqCst);
        agent.send(&agent::dictionary(SESSION));
        agent.send_frames(agent.welcome.acked + 1..=self.sent.load(Ordering::SeqCst));
        loop {
            while self.sent.load(Ordering::SeqCst) < self.acked() + WINDOW {
                let next = self.sent.fetch_add(1, Ordering::SeqCst) + 1;
                agent.send_frames([next]);
            }
            match agent.receive() {
                Some(ServerFrame::Ack(seq)) => self.acked.store(seq, Ordering::SeqCst),
                Some(ServerFrame::Wait(_)) => {}
                Some(other) => panic!("{other:?}"),
                None => return,
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A backup, and the number of frames that were acknowledged before it began.
struct Made {
    id: String,
    before: u64,
    live: bool,
}

fn begin(data: &Path, at: &Path, url: &str) -> Child {
    Command::new(support::tacho())
        .args(["backup", "create", data.to_str().unwrap(), at.to_str().unwrap(), "--server", url, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for a backup. On failure returns stderr.
fn end(child: Child, before: u64) -> Result<Made, String> {
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = shown["id"].as_str().unwrap().to_owned();
    Ok(Made { id, before, live: shown["live"] == true })
}

#[test]
fn after_many_kills_each_backup_has_all_records_acknowledged_before_it() {
    let place = tempfile::tempdir().unwrap();
    let [data, at] = ["data", "repository"].map(|name| place.path().join(name));
    std::fs::create_dir(&data).unwrap();
    let config = data.join("tacho.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let kills = support::number_from("TACHO_BACKUP_KILLS", KILLS);
    let (mut random, model, mut made) = (Random::new(SEED), Model::default(), Vec::new());
    let mut cut_off = 0;
    for _ in 0..kills {
        let server = Server::start_with(&data, &flags);
        let (records, url) = (server.records, server.url());
        std::thread::scope(|scope| {
            scope.spawn(|| model.run(records));
            // Flushes and merges until the server has ended, so that journals and segment files are removed.
            let merge = ["merge", "--server", &url];
            scope.spawn(move || while run(&merge).0 == Some(0) {});
            let mut doomed = begin(&data, &at, &url);
            std::thread::sleep(Duration::from_millis(random.below(150)));
            doomed.kill().unwrap();
            doomed.wait().unwrap();
            let before = model.acked();
            made.push(end(begin(&data, &at, &url), before).unwrap_or_else(|e| panic!("{e}{}", server.log())));
            // The server is killed during a backup. The backup continues with the snapshot that the server made, or fails.
            let before = model.acked();
            let last = begin(&data, &at, &url);
            std::thread::sleep(Duration::from_millis(random.below(150)));
            server.kill();
            match end(last, before) {
                Ok(backup) => made.push(backup),
                Err(_) => cut_off += 1,
            }
        });
        // A backup of a directory at rest, with the files of the killed server.
        let before = model.acked();
        made.push(end(begin(&data, &at, "127.0.0.1:1"), before).unwrap());
    }
    let live = made.iter().filter(|backup| backup.live).count();
    println!(
        "{kills} rounds: {} backups, {live} of a running server; {cut_off} failed with their server; {} frames",
        made.len(),
        model.acked()
    );
    assert!(model.acked() > u64::from(kills));
    let verified = run(&["backup", "verify", at.to_str().unwrap()]);
    assert_eq!(verified.0, Some(0), "{verified:?}");
    for backup in &made {
        check(&at, &place.path().join(&backup.id), backup, &model);
    }
}

/// Restores a backup and compares its records with the sent ones.
fn check(at: &Path, out: &Path, backup: &Made, model: &Model) {
    let restored = run(&["restore", at.to_str().unwrap(), out.to_str().unwrap(), "--at", &backup.id]);
    assert_eq!(restored.0, Some(0), "{restored:?}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let driver =
            tacho_drivers::open(&format!("embedded:{}", out.join("chunks").display())).await.unwrap();
        let clock = Arc::new(SystemClock);
        let store = Store::open(driver, &out.join("journal"), Options::default(), clock).await.unwrap();
        let frames = store.session_acked(SESSION);
        let (before, sent) = (backup.before, model.sent.load(Ordering::SeqCst));
        assert!(before <= frames && frames <= sent, "{}: {before} {frames} {sent}", backup.id);
        if frames > 0 {
            store.flush().await.unwrap();
            check_frames(&store, frames, &backup.id).await;
        }
        store.close().await.unwrap();
    });
    std::fs::remove_dir_all(out).unwrap();
}

/// Checks that the store has the records of the frames 1 to `frames`, each once, and no others.
async fn check_frames(store: &Store, frames: u64, id: &str) {
    let heap = find(store, Kind::Sample, "heap");
    let expect: Vec<_> = (1..=frames).flat_map(content::samples).collect();
    assert!(store.samples(heap, TimeRange::ALL).await.unwrap() == expect, "samples of {id}");
    // Unlike a read, the headers count samples with equal times separately.
    let chunks = store.chunks(Kind::Sample, heap).await.unwrap();
    let stored: u64 = chunks.iter().map(|chunk| chunk.header.count as u64).sum();
    assert_eq!(stored, expect.len() as u64, "samples of {id}");
    let log = find(store, Kind::Entry, "log");
    let expect: Vec<_> = (1..=frames).flat_map(content::entries).collect();
    assert!(store.entries(log, TimeRange::ALL).await.unwrap() == expect, "entries of {id}");
    let calls = find(store, Kind::Execution, "executions");
    let mut got: Vec<i64> = Vec::new();
    for block in store.executions(calls, TimeRange::ALL).await.unwrap() {
        got.extend(block.rows().map(|row| row.to_segment().start));
    }
    got.sort_unstable();
    let mut expect: Vec<i64> = (1..=frames).map(content::base).collect();
    expect.sort_unstable();
    assert_eq!(got, expect, "calls of {id}");
}

fn find(store: &Store, kind: Kind, name: &str) -> SeriesId {
    let equal = |label: &str, value: &str| Matcher::new(label, MatchOp::Equal, value).unwrap();
    let found = store.find(kind, &[equal("__name__", name)]);
    let [(id, _)] = &found[..] else { panic!("{name}: {found:?}") };
    *id
}
