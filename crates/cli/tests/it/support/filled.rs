//! Creates data directories with samples, entries and calls.

use std::path::Path;
use std::sync::Arc;

use tacho_chunk::Tolerance;
use tacho_chunk::semantic::Semantic;
use tacho_drivers::embedded::Embedded;
use tacho_model::{
    Batch, Body, Entry, EntrySeries, Event, EventKind, ExecutionSeries, Kind, Labels, ManualClock, Matcher,
    NAME, Operation, OperationKind, Sample, SampleSeries, Segment, TimeRange, TraceId, Value as Number,
};
use tacho_store::disk::RealDisk;
use tacho_store::policy::{Policies, Rule};
use tacho_store::{ErrorKind, Options, Origin, Store};

use crate::support::wait_until_unlocked;

pub const SECOND: i64 = 1_000_000_000;
pub const START: i64 = 1_700_000_000 * SECOND;
/// Size of segment files, so small that a few hundred rows fill several files.
const FILE_BYTES: u64 = 20 << 10;
/// Length of a segment file without rows.
const EMPTY_FILE_BYTES: u64 = 40;
/// [`directory`] writes one batch per round. The batches of these rounds are in its journal, in order. The rows of the other
/// rounds are in segment files.
pub const ROUNDS_IN_JOURNAL: std::ops::Range<usize> = 9..11;

fn labels(name: &str, host: usize) -> Arc<Labels> {
    Arc::new(Labels::new([(NAME, name), ("host", &format!("h{host}"))]).unwrap())
}

/// A batch with records of all kinds. Their times depend on `round`.
fn batch(round: usize) -> Batch {
    let from = START + round as i64 * 600 * SECOND;
    let noise = |n: usize| (n * 7_919 + round * 104_729) % 1_009;
    let series = |name: &str, host: usize, value: &dyn Fn(usize) -> Number| SampleSeries {
        labels: labels(name, host),
        samples: (0..300)
            .map(|n| Sample { at: from + n as i64 * 2 * SECOND + (n * n % 97) as i64, value: value(n) })
            .collect(),
    };
    let mut samples = Vec::new();
    for host in 0..4 {
        samples.push(series("exact", host, &|n| Number::F64(noise(n + host) as f64 / 3.0)));
        samples.push(series("whole", host, &|n| Number::I64((n + host) as i64 - 100)));
        samples.push(series("swings", host, &|n| {
            Number::F64(20.0 + (n as f64 / 9.0).sin() + noise(n) as f64 * 1e-4)
        }));
    }
    let entry = |n: usize| Entry {
        at: from + n as i64 * SECOND,
        body: Body::Text(format!("request {n} of round {round} took {} ms", noise(n)).into()),
    };
    let segment = |n: usize| Segment {
        trace: TraceId(1 + n as u128 + ((round as u128) << 64)),
        base: (n * 100) as u64,
        part: 0,
        parent: None,
        thread: "main".into(),
        start: from + n as i64 * SECOND,
        carried: Vec::new(),
        first_call: 0,
        events: vec![
            Event { delta: 0, kind: EventKind::Enter(0) },
            Event { delta: 1_000 + noise(n) as u64, kind: EventKind::Exit },
        ],
        attributes: Vec::new(),
    };
    Batch {
        samples,
        entries: vec![EntrySeries { labels: labels("log", 0), entries: (0..100).map(entry).collect() }],
        executions: vec![ExecutionSeries {
            labels: labels("executions", 0),
            operations: vec![Operation { kind: OperationKind::Method, name: "Shop.buy".into() }],
            segments: (0..100).map(segment).collect(),
        }],
    }
}

fn options() -> Options {
    let semantic = Semantic { value: Some(Tolerance::Absolute(0.01)), ..Semantic::default() };
    let matchers = vec![Matcher::equal(NAME, "swings")];
    let policies = Policies { semantic: vec![Rule { matchers, then: semantic }], ..Policies::default() };
    Options {
        chunk_values: 600,
        merge_in_background: false,
        policies: Arc::new(policies),
        ..Options::default()
    }
}

async fn open(data: &Path) -> Arc<Store> {
    let chunks = data.join("chunks");
    let driver = loop {
        match Embedded::open_with(&chunks, Arc::new(RealDisk), FILE_BYTES).await {
            // A process that another thread starts inherits the lock of an earlier opening, and holds the lock until it
            // executes its program.
            Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
            opened => break opened.unwrap(),
        }
    };
    let clock = Arc::new(ManualClock::new(START + 40 * 86_400 * SECOND));
    let driver = Arc::new(driver);
    loop {
        match Store::open(driver.clone(), &data.join("journal"), options(), clock.clone()).await {
            Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
            opened => break opened.unwrap(),
        }
    }
}

/// Runs `work` in its own runtime. When the runtime ends, this process has unlocked the directory (see
/// [`wait_until_unlocked`]).
pub fn in_runtime(work: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(work);
}

pub async fn fill(data: &Path, rounds: std::ops::Range<usize>, merged: bool) {
    let store = open(data).await;
    for round in rounds {
        let origin = Origin::one(77, 1 + round as u64);
        store.append(batch(round), Some(origin)).await.unwrap();
        store.flush().await.unwrap();
    }
    if merged {
        store.merge_all().await.unwrap();
        let swings = store.chunks(Kind::Sample, labels("swings", 0).id()).await.unwrap();
        let is_lossy = |info: &tacho_store::ChunkInfo| {
            info.header.member(info.member).is_some_and(|member| member.loss.is_some())
        };
        assert!(swings.iter().any(is_lossy), "no column is lossy");
        let gone = [Matcher::equal(NAME, "whole"), Matcher::equal("host", "h1")];
        store.delete(&gone, TimeRange::new(START, START + 100 * SECOND)).await.unwrap();
    }
}

/// Bytes of rows in all segment files.
fn segment_bytes(data: &Path) -> u64 {
    let files = std::fs::read_dir(data.join("chunks")).unwrap().map(|file| file.unwrap());
    let segments =
        files.filter(|file| file.path().extension().is_some_and(|extension| extension == "segment"));
    segments.map(|file| file.metadata().unwrap().len().saturating_sub(EMPTY_FILE_BYTES)).sum()
}

/// Fills a directory with segment files, merged rows, lossy columns, a deletion, later rows, a journal that was not flushed,
/// and the files of rules and of record types.
pub fn directory(data: &Path) {
    in_runtime(fill(data, 0..6, true));
    in_runtime(fill(data, 6..ROUNDS_IN_JOURNAL.start, false));
    in_runtime(async {
        let store = open(data).await;
        let before = segment_bytes(data);
        for round in ROUNDS_IN_JOURNAL {
            let origin = Origin::one(77, 1 + round as u64);
            store.append(batch(round), Some(origin)).await.unwrap();
        }
        // A background task writes the list of required journals. Without this list, a check does not find a missing journal.
        while segment_bytes(data) == before {
            tokio::task::yield_now().await;
        }
    });
    wait_until_unlocked(data);
    for (name, list) in [("probes.json", "rules"), ("record_types.json", "types")] {
        let content = format!("{{\n  \"version\": 2,\n  \"{list}\": []");
        let checksum = crc32c::crc32c(content.as_bytes());
        let file = format!("{content},\n  \"crc32c\": \"{checksum:08x}\"\n}}\n");
        std::fs::write(data.join(name), file).unwrap();
    }
}
