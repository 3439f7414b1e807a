//! Tests that acknowledged records are on disk. The real server is killed at random moments, and every acknowledged record must
//! exist exactly once.
//!
//! At the same time the server merges chunks as often as possible, deletes records on request, and expires its own series.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::wire::ServerFrame;
use tacho_model::{EventKind, Kind, MatchOp, Matcher, Random, SeriesId, TimeRange, mix64};
use tacho_server::clock::SystemClock;
use tacho_store::{Options, Store};

use crate::support::agent::{self, Agent, content};
use crate::support::http_writer::{Deleter, HttpWriter};
use crate::support::{self, Server};

const SEED: u64 = 14;
/// Minimum number of servers that are killed while they serve. The environment variable `TACHO_KILLS` replaces it.
const KILLS: u32 = 50;
/// Maximum number of servers that are killed while they serve, as a multiple of the minimum.
const KILLS_MAX_FACTOR: u32 = 10;
/// After the first of every five kills, a server is also killed while it starts.
const LIVES_PER_KILL_AT_START: u32 = 5;
/// A life is the time from the start of a server to its kill. After each run of this number of lives, the following lives become
/// twice as long if the run had fewer merges than lives.
const RUN: u32 = 10;
/// Lives become twice as long at most six times.
const DOUBLINGS_MAX: u32 = 6;
/// Limit on the frames that one agent sends before they are acknowledged.
const WINDOW: usize = 48;
/// Number of acknowledged frames that are sent again after each reconnect.
const REPEATED: u64 = 3;
/// Pause of an agent after each frame of the server. The pause limits the amount of data. When the lives become twice as long,
/// the pause does, too. A life then has the same amount of data, and the server has more time to merge the data.
const BREATH: Duration = Duration::from_millis(2);

/// An agent that sends frame after frame. After a reconnect it sends all unacknowledged frames again.
struct Sender {
    session: u128,
    /// Number of the next new frame.
    next: u64,
    acked: u64,
    waiting: VecDeque<u64>,
    reconnects_with_resend: u32,
}

impl Sender {
    const fn new(session: u128) -> Self {
        Self { session, next: 1, acked: 0, waiting: VecDeque::new(), reconnects_with_resend: 0 }
    }

    /// Sends until the server has ended or, with `stop_at`, until that many frames are acknowledged.
    fn run(&mut self, at: SocketAddr, stop_at: Option<u64>, pause: Duration) {
        let Ok(mut agent) = Agent::connect(at, &agent::hello(self.session)) else { return };
        let acked = agent.welcome.acked;
        assert!(
            acked >= self.acked,
            "session {}: frame {} was acknowledged, but the server knows only the frames up to {acked}",
            self.session,
            self.acked
        );
        self.acknowledge(acked);
        agent.send(&agent::dictionary(self.session));
        self.reconnects_with_resend += u32::from(!self.waiting.is_empty());
        // The last acknowledged frames are repeated, to test that they are stored once.
        agent.send_frames(acked.saturating_sub(REPEATED) + 1..=acked);
        agent.send_frames(self.waiting.iter().copied());
        loop {
            while self.waiting.len() < WINDOW && stop_at.is_none_or(|last| self.next <= last) {
                self.waiting.push_back(self.next);
                self.next += 1;
                agent.send_frames(self.waiting.back().copied());
            }
            if self.waiting.is_empty() {
                return agent.bye();
            }
            match agent.receive() {
                Some(ServerFrame::Ack(seq)) => self.acknowledge(seq),
                Some(ServerFrame::Wait(_)) => {}
                Some(other) => panic!("session {}: {other:?}", self.session),
                None => return,
            }
            std::thread::sleep(pause);
        }
    }

    fn acknowledge(&mut self, seq: u64) {
        self.acked = self.acked.max(seq);
        while self.waiting.front().is_some_and(|first| *first <= seq) {
            self.waiting.pop_front();
        }
    }
}

#[test]
fn every_acknowledged_record_exists_exactly_once_after_many_kills() {
    let data = tempfile::tempdir().unwrap();
    let mut random = Random::new(SEED);
    let mut senders = [Sender::new(101), Sender::new(202)];
    let mut writer = HttpWriter::default();
    let mut deleter = Deleter::default();
    let config = data.path().join("tacho.toml");
    std::fs::write(&config, CONFIG).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    let kills_min = support::number_from("TACHO_KILLS", KILLS);
    let (mut merges, mut merges_before_run) = (0, 0);
    let (mut kills, mut doublings) = (0, 0);
    while kills < kills_min || !has_done_enough(kills_min.min(KILLS), merges, &senders, &writer, &deleter) {
        assert!(
            kills < KILLS_MAX_FACTOR * kills_min,
            "only {merges} merges, {} HTTP writes, {} samples deleted in {kills} lives",
            writer.acknowledged(),
            deleter.deleted.len()
        );
        let server = Server::start_with(data.path(), &flags);
        let (records, http) = (server.records, server.http);
        std::thread::scope(|scope| {
            for sender in &mut senders {
                scope.spawn(|| sender.run(records, None, BREATH * (1 << doublings)));
            }
            scope.spawn(|| writer.run(http));
            scope.spawn(|| deleter.run(http));
            std::thread::sleep(Duration::from_millis((20 + random.below(230)) << doublings));
            merges += merges_of(&server);
            server.kill();
        });
        if kills.is_multiple_of(LIVES_PER_KILL_AT_START) {
            kill_while_starting(data.path(), &flags, Duration::from_millis(random.below(60)));
        }
        kills += 1;
        if kills.is_multiple_of(RUN) {
            // On a busy machine, the server may merge too rarely in short lives.
            doublings += u32::from(merges - merges_before_run < u64::from(RUN) && doublings < DOUBLINGS_MAX);
            merges_before_run = merges;
        }
    }

    let frames: u64 = senders.iter().map(|sender| sender.next - 1).sum();
    println!(
        "{kills} lives, the last lives {} times as long as the first, {frames} frames, {} HTTP writes acknowledged",
        1 << doublings,
        writer.acknowledged()
    );
    println!("{merges} merges, {} samples deleted, {} kept", deleter.deleted.len(), deleter.kept.len());
    let server = Server::start_with(data.path(), &flags);
    for sender in &mut senders {
        sender.run(server.records, Some(sender.next + 10), BREATH);
        assert_eq!(sender.waiting.len(), 0);
    }
    check_counts(&server, &senders);
    assert_eq!(server.stop().code(), Some(0));
    check_store(data.path(), &senders, &writer, &deleter);
}

/// Two adjacent chunks of similar size are enough for a merge. The server's own series expire after a second.
const CONFIG: &str = r#"
merge_rows = 2
merge_cpu_percent = 100
merge_bytes_per_second = 1000000000
sweep_seconds = 0
selfwatch_seconds = 1
[[retention]]
match = '{__name__=~"tacho_.*|process_.*"}'
keep = "1s"
[[chunks]]
match = '{__name__=~".+"}'
values = 256
"#;

/// Whether each kind of operation that a kill could interrupt has run often enough.
fn has_done_enough(
    kills: u32,
    merges: u64,
    senders: &[Sender],
    writer: &HttpWriter,
    deleter: &Deleter,
) -> bool {
    let resends: u32 = senders.iter().map(|sender| sender.reconnects_with_resend).sum();
    merges >= u64::from(kills)
        && resends >= kills / 2
        && writer.acknowledged() >= 20
        && deleter.deleted.len() >= 20
}

/// Number of merges since this start of the server.
fn merges_of(server: &Server) -> u64 {
    let metrics = String::from_utf8(server.get("/metrics").body).unwrap();
    let line = metrics.lines().find(|line| line.starts_with("tacho_merges_total "));
    let value = line.and_then(|line| line.split(' ').next_back());
    value.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

fn kill_while_starting(data: &Path, flags: &[&str], after: Duration) {
    let mut child = Command::new(support::tacho())
        .args(["serve", "--http", "127.0.0.1:0", "--records", "127.0.0.1:0", "--data"])
        .arg(data)
        .args(flags)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn check_counts(server: &Server, senders: &[Sender]) {
    let last = senders.iter().map(|sender| sender.next).max().unwrap();
    // From a minute before the first sample to a minute after the last.
    let time = content::base(last) / 1_000_000_000 + 60;
    let seconds = time - content::BASE / 1_000_000_000 + 60;
    let query = format!("/api/v1/query?query=count_over_time(heap%5B{seconds}s%5D)&time={time}");
    let answer = server.get(&query).json();
    let mut got: Vec<(String, String)> = answer["data"]["result"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"))
        .iter()
        .map(|series| (text(&series["metric"]["session"]), text(&series["value"][1])))
        .collect();
    got.sort();
    let expect: Vec<(String, String)> = senders
        .iter()
        .map(|sender| (sender.session.to_string(), (content::SAMPLES * (sender.next - 1)).to_string()))
        .collect();
    assert_eq!(got, expect);
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn check_store(data: &Path, senders: &[Sender], writer: &HttpWriter, deleter: &Deleter) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let url = format!("embedded:{}", data.join("chunks").display());
        let driver = tacho_drivers::open(&url).await.unwrap();
        let clock = Arc::new(SystemClock);
        let store = Store::open(driver, &data.join("journal"), Options::default(), clock).await.unwrap();
        for sender in senders {
            check_session(&store, sender).await;
        }
        check_executions(&store, senders).await;
        check_http(&store, writer).await;
        check_deleted(&store, deleter).await;
        store.merge_all().await.unwrap();
        for sender in senders {
            check_session(&store, sender).await;
        }
        check_executions(&store, senders).await;
        check_deleted(&store, deleter).await;
        store.close().await.unwrap();
    });
}

fn find(store: &Store, kind: Kind, name: &str, session: Option<u128>) -> SeriesId {
    let equal = |label: &str, value: &str| Matcher::new(label, MatchOp::Equal, value).unwrap();
    let mut matchers = vec![equal("__name__", name)];
    matchers.extend(session.map(|session| equal("session", &session.to_string())));
    let found = store.find(kind, &matchers);
    let [(id, _)] = &found[..] else { panic!("{name}: {found:?}") };
    *id
}

/// Number of records in the chunks of a series. Unlike a read, counts samples with equal times separately.
async fn stored(store: &Store, kind: Kind, id: SeriesId) -> u64 {
    let chunks = store.chunks(kind, id).await.unwrap();
    chunks.iter().map(|chunk| chunk.header.count as u64).sum()
}

async fn check_session(store: &Store, sender: &Sender) {
    let frames = || 1..sender.next;
    let heap = find(store, Kind::Sample, "heap", Some(sender.session));
    let expect: Vec<_> = frames().flat_map(content::samples).collect();
    assert!(store.samples(heap, TimeRange::ALL).await.unwrap() == expect, "samples of {}", sender.session);
    assert_eq!(stored(store, Kind::Sample, heap).await, expect.len() as u64, "samples of {}", sender.session);

    let log = find(store, Kind::Entry, "log", Some(sender.session));
    let expect: Vec<_> = frames().flat_map(content::entries).collect();
    assert!(store.entries(log, TimeRange::ALL).await.unwrap() == expect, "entries of {}", sender.session);
}

/// Span base (call `k` has the span id `mix64(base + k)`), start, and for each event: the time since the previous event, and the
/// name of the entered operation, `failed` for a failed exit, or `None` for another exit.
type Call = (u64, i64, Vec<(u64, Option<String>)>);

async fn check_executions(store: &Store, senders: &[Sender]) {
    let id = find(store, Kind::Execution, "executions", None);
    let mut got: Vec<Call> = Vec::new();
    for block in store.executions(id, TimeRange::ALL).await.unwrap() {
        for row in block.rows() {
            let segment = row.to_segment();
            assert_eq!(segment.trace.0, u128::from(mix64(segment.base)), "trace ids follow from span bases");
            let name = |kind| match kind {
                EventKind::Enter(operation) => Some(block.operations()[operation as usize].name.to_string()),
                EventKind::Exit => None,
                EventKind::ExitFailed => Some("failed".to_owned()),
            };
            let events = segment.events.iter().map(|event| (event.delta, name(event.kind))).collect();
            got.push((segment.base, segment.start, events));
        }
    }
    let mut expect: Vec<Call> = senders.iter().flat_map(expected_calls).collect();
    got.sort();
    expect.sort();
    assert_eq!(got.len(), expect.len());
    assert!(got == expect, "segments differ");
}

fn expected_calls(sender: &Sender) -> impl Iterator<Item = Call> {
    let low = u64::try_from(sender.session).unwrap();
    let name = |kind| match kind {
        EventKind::Enter(1) => Some("GET /ads".to_owned()),
        EventKind::Enter(_) => Some("board.Größe()".to_owned()),
        EventKind::Exit => None,
        EventKind::ExitFailed => Some("failed".to_owned()),
    };
    (1..sender.next).map(move |seq| {
        let events = content::events(seq).iter().map(|event| (event.delta, name(event.kind))).collect();
        (low + (seq << 24), content::base(seq), events)
    })
}

/// The HTTP writer repeats no request. Records answered with 204 must exist, others may exist, and none may exist twice.
async fn check_http(store: &Store, writer: &HttpWriter) {
    for series in &writer.series {
        let id = find(store, Kind::Sample, series.name, None);
        let got: Vec<i64> =
            store.samples(id, TimeRange::ALL).await.unwrap().iter().map(|sample| sample.at).collect();
        assert_eq!(stored(store, Kind::Sample, id).await, got.len() as u64, "{} twice", series.name);
        let lost: Vec<_> = series.acknowledged.iter().filter(|at| got.binary_search(at).is_err()).collect();
        assert!(lost.is_empty(), "{}: acknowledged and lost: {lost:?}", series.name);
        let strange: Vec<_> = got.iter().filter(|at| series.attempted.binary_search(at).is_err()).collect();
        assert!(strange.is_empty(), "{}: never sent: {strange:?}", series.name);
    }
}

/// Acknowledged records that were not deleted must exist. Deleted records must not exist.
async fn check_deleted(store: &Store, deleter: &Deleter) {
    let id = find(store, Kind::Sample, Deleter::NAME, None);
    let got: Vec<i64> = store.samples(id, TimeRange::ALL).await.unwrap().iter().map(|s| s.at).collect();
    let lost: Vec<_> = deleter.kept.iter().filter(|at| got.binary_search(at).is_err()).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let back: Vec<_> = deleter.deleted.iter().filter(|at| got.binary_search(at).is_ok()).collect();
    assert!(back.is_empty(), "deleted, but still there: {back:?}");
    let known = |at: &&i64| deleter.kept.contains(at) || deleter.open.contains(at);
    let strange: Vec<_> = got.iter().filter(|at| !known(at)).collect();
    assert!(strange.is_empty(), "never sent: {strange:?}");
}
