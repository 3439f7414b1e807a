//! Measures rate and CPU time of each step on the embedded driver: append, read, recovery after a crash, flush, read.
//!
//! `cargo run --release -p tacho-drivers --example store_rates [DIRECTORY]`. Removes DIRECTORY with its content before the first
//! step and after the last step. For each step, prints the rate, the wall time, and the CPU time of the process per record.
//! The load is 10 million samples of 1,000 series (100 hosts, 10 fields between 0 and 100), and then 2 million calls in
//! another store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use tacho_model::{
    Batch, Event, EventKind, ExecutionSeries, Kind, Labels, ManualClock, NAME, Operation, OperationKind,
    Random, Sample, SampleSeries, Segment, SeriesId, TimeRange, TraceId, Value, Windows,
};
use tacho_store::{Options, Origin, ReadReport, Store};

type Failure = Box<dyn std::error::Error>;

const HOSTS: usize = 100;
const FIELDS: usize = 10;
const SAMPLES_A_SERIES: i64 = 10_000;
/// Number of timestamps per batch. Every series has one sample at each of them.
const MOMENTS_A_BATCH: i64 = 10;
const STEP_NS: i64 = 10_000_000_000;
const SEGMENTS: u64 = 250_000;
const CALLS_A_SEGMENT: u64 = 8;
const SENDERS: usize = 2;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/tmp/store-rates".into());
    let directory = Path::new(&directory);
    let _ = std::fs::remove_dir_all(directory);
    let samples = (HOSTS * FIELDS) as f64 * SAMPLES_A_SERIES as f64;
    measure("samples", directory, sample_batches(), samples).await?;
    let executions = (0..SEGMENTS / 500).map(|n| Arc::new(execution_batch(n * 500))).collect();
    measure("calls", directory, executions, (SEGMENTS * CALLS_A_SEGMENT) as f64).await?;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

async fn open(directory: &Path) -> Result<Arc<Store>, Failure> {
    let driver = tacho_drivers::open(&format!("embedded:{}", directory.join("chunks").display())).await?;
    // No generation is sealed, so a recovery has to read all records.
    let options = Options { seal_bytes: 1 << 30, journal_bytes: 1 << 40, ..Options::default() };
    Ok(Store::open(driver, &directory.join("journal"), options, Arc::new(ManualClock::default())).await?)
}

async fn measure(
    what: &str,
    directory: &Path,
    batches: Vec<Arc<Batch>>,
    records: f64,
) -> Result<(), Failure> {
    let directory = directory.join(what);
    let store = open(&directory).await?;
    let begin = Stopwatch::start();
    append(&store, batches).await?;
    begin.say(what, "append", records);
    let stats = store.stats();
    println!("{what:>8} {} syncs for {} batches", stats.journal_syncs, stats.batches);
    println!("{what:>8} {:.2} bytes each in the journal", stats.journal_bytes as f64 / records);
    println!("{what:>8} {:.2} bytes each in memory", stats.open_bytes as f64 / records);
    read(&store, what, "open", records).await?;
    drop(store);

    let begin = Stopwatch::start();
    let store = open(&directory).await?;
    begin.say(what, "recover", records);
    let begin = Stopwatch::start();
    store.flush().await?;
    begin.say(what, "flush", records);
    let stored = store.stats().stored;
    let bytes: u64 = stored.iter().map(|s| s.bytes).sum();
    let chunks = stored[0].chunks + stored[2].chunks;
    println!("{what:>8} {:.3} bytes each in {chunks} chunks", bytes as f64 / records);
    read(&store, what, "read", records).await?;
    Ok(store.close().await?)
}

/// Appends the batches in the order of their times: always [`SENDERS`] batches concurrently, one of each sender. The times of a
/// series ascend, as with a single writer.
async fn append(store: &Arc<Store>, batches: Vec<Arc<Batch>>) -> Result<(), Failure> {
    for (at, some) in batches.chunks(SENDERS).enumerate() {
        let append = |(sender, batch): (usize, &Arc<Batch>)| {
            let origin = Origin::one(sender as u128, at as u64 + 1);
            store.append(batch.clone(), Some(origin))
        };
        futures_util::future::try_join_all(some.iter().enumerate().map(append)).await?;
    }
    Ok(())
}

async fn read(store: &Store, what: &str, step: &str, records: f64) -> Result<(), Failure> {
    let begin = Stopwatch::start();
    for (id, _) in store.find(Kind::Execution, &[]) {
        store.executions(id, TimeRange::ALL).await?;
    }
    let series: Vec<SeriesId> = store.find(Kind::Sample, &[]).into_iter().map(|(id, _)| id).collect();
    let room = AtomicUsize::new(usize::MAX);
    let answer = store.read_samples(&series, TimeRange::ALL, None, &room).await?;
    begin.say(what, step, records);
    let Some(first) = series.first() else { return Ok(()) };
    println!("{what:>8} {:?}", answer.report);

    let last = SAMPLES_A_SERIES * STEP_NS;
    let hour = 360 * STEP_NS;
    let one = [*first];
    for (kind, series, range, windows) in [
        ("one series, one hour", &one[..], TimeRange::new(last - hour, last), None),
        ("one series, all", &one, TimeRange::ALL, None),
        (
            "one series, one window",
            &one,
            TimeRange::ALL,
            Some(Windows { first: last, step: 0, count: 1, range: last + 1 }),
        ),
        ("all series, one hour", &series, TimeRange::new(last - hour, last), None),
    ] {
        let begin = Instant::now();
        let mut report = ReadReport::default();
        for _ in 0..REPEATS {
            let answer = store.read_samples(series, range, windows.as_ref(), &room).await?;
            report = answer.report;
        }
        let each = begin.elapsed().as_secs_f64() * 1e6 / f64::from(REPEATS);
        let (decoded, summarised) = (report.chunks_decoded, report.chunks_summarised);
        println!("{what:>8} {kind}: {each:.0} µs, {decoded} chunks decoded, {summarised} summarised");
    }
    Ok(())
}

const REPEATS: u32 = 50;

struct Stopwatch {
    wall: Instant,
    cpu: Duration,
}

impl Stopwatch {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu() }
    }

    fn say(&self, what: &str, step: &str, records: f64) {
        let (wall, cpu) = (self.wall.elapsed().as_secs_f64(), cpu().saturating_sub(self.cpu).as_secs_f64());
        let (rate, each) = (records / wall / 1e6, cpu * 1e9 / records);
        println!("{what:>8} {step:>8} {rate:>8.2} million a second ({wall:.2} s), {each:.1} ns CPU each");
    }
}

/// User and system time with a resolution of 10 ms, from fields 14 and 15 of `/proc/self/stat`.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Every series is a random walk between 0 and 100 that changes by at most 1 per step.
fn sample_batches() -> Vec<Arc<Batch>> {
    let labels: Vec<Arc<Labels>> = (0..HOSTS * FIELDS).map(series_labels).collect();
    let mut random = Random::new(7);
    let mut values: Vec<f64> = labels.iter().map(|_| random.below(101) as f64).collect();
    let mut batch = |first: i64| {
        let mut samples: Vec<SampleSeries> = labels
            .iter()
            .map(|labels| SampleSeries { labels: labels.clone(), samples: Vec::new() })
            .collect();
        for n in first..first + MOMENTS_A_BATCH {
            for (value, series) in values.iter_mut().zip(&mut samples) {
                let step = random.below(4) as f64 - random.below(4) as f64;
                *value = (*value + (step / 2.0).trunc()).clamp(0.0, 100.0);
                series.samples.push(Sample { at: n * STEP_NS, value: Value::F64(*value) });
            }
        }
        Arc::new(Batch { samples, ..Batch::default() })
    };
    (0..SAMPLES_A_SERIES / MOMENTS_A_BATCH).map(|n| batch(n * MOMENTS_A_BATCH)).collect()
}

fn series_labels(number: usize) -> Arc<Labels> {
    let (host, field) = (number / FIELDS, number % FIELDS);
    let host = format!("host_{host}");
    let labels = [
        (NAME, format!("cpu_usage_{field}")),
        ("hostname", host),
        ("region", "eu-central-1".to_owned()),
        ("datacenter", "eu-central-1a".to_owned()),
        ("os", "Ubuntu16.04LTS".to_owned()),
        ("team", "SF".to_owned()),
    ];
    Arc::new(Labels::new(labels).unwrap_or_else(|_| Labels::empty()))
}

/// 500 segments with the same eight calls, each nested in the previous call.
fn execution_batch(first: u64) -> Batch {
    let operation =
        |n| Operation { kind: OperationKind::Method, name: format!("com.shop.Board.method{n}()").into() };
    let labels = Labels::new([(NAME, "executions"), ("service", "shop"), ("host", "h")]);
    let executions = ExecutionSeries {
        labels: Arc::new(labels.unwrap_or_else(|_| Labels::empty())),
        operations: (0..CALLS_A_SEGMENT).map(operation).collect(),
        segments: (first..first + 500).map(segment).collect(),
    };
    Batch { executions: vec![executions], ..Batch::default() }
}

fn segment(number: u64) -> Segment {
    let mut random = Random::new(number);
    let mut event = |kind| Event { delta: 200 + random.below(100_000), kind };
    let enters = (0..CALLS_A_SEGMENT as u32).map(EventKind::Enter);
    let exits = (0..CALLS_A_SEGMENT).map(|_| EventKind::Exit);
    Segment {
        trace: TraceId(u128::from(number) + 1),
        base: number << 24,
        part: 0,
        parent: None,
        thread: format!("worker-{}", number % 16).as_str().into(),
        start: number as i64 * 1_000_000,
        carried: Vec::new(),
        first_call: 0,
        events: enters.chain(exits).map(&mut event).collect(),
        attributes: Vec::new(),
    }
}
