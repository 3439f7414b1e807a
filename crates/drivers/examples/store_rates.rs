//! How fast is the path of a record: append, crash, recover, flush, read? On the embedded driver.
//!
//! `cargo run --release -p tacho-drivers --example store_rates [DIRECTORY]`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tacho_model::{
    Batch, Event, EventKind, ExecutionSeries, Labels, ManualClock, NAME, Operation, OperationKind, Sample,
    SampleSeries, Segment, TimeRange, TraceId, Value,
};
use tacho_store::{Options, Origin, Store};

type Failure = Box<dyn std::error::Error>;

const SERIES: i64 = 1_000;
const SAMPLES_A_SERIES: i64 = 5_000;
const SEGMENTS: u64 = 250_000;
const CALLS_A_SEGMENT: u64 = 8;
const SENDERS: u64 = 8;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "/tmp/store-rates".into());
    let directory = Path::new(&directory);
    let _ = std::fs::remove_dir_all(directory);
    let samples: Vec<Arc<Batch>> =
        (0..SAMPLES_A_SERIES / 10).map(|n| Arc::new(sample_batch(n * 10))).collect();
    measure("samples", directory, samples, (SERIES * SAMPLES_A_SERIES) as f64).await?;
    let executions: Vec<Arc<Batch>> =
        (0..SEGMENTS / 500).map(|n| Arc::new(execution_batch(n * 500))).collect();
    measure("calls", directory, executions, (SEGMENTS * CALLS_A_SEGMENT) as f64).await?;
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

async fn open(directory: &Path) -> Result<Arc<Store>, Failure> {
    let driver = tacho_drivers::open(&format!("embedded:{}", directory.join("chunks").display())).await?;
    // Nothing is sealed, so that recovery has all of it to read.
    let options = Options { seal_bytes: 1 << 30, ..Options::default() };
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
    let begin = Instant::now();
    let senders = (0..SENDERS).map(|sender| {
        let (store, batches) = (store.clone(), batches.clone());
        tokio::spawn(async move {
            for (at, batch) in batches.iter().enumerate().skip(sender as usize).step_by(SENDERS as usize) {
                let origin = Origin { session: sender.into(), seq: at as u64 + 1 };
                store.append(batch.clone(), Some(origin)).await?;
            }
            Ok::<(), tacho_store::Error>(())
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await??;
    }
    rate(what, "append", begin.elapsed(), records);
    let stats = store.stats();
    println!("{what:>8} {} syncs for {} batches", stats.journal_syncs, stats.batches);
    println!("{what:>8} {:.2} bytes each in the journal", stats.journal_bytes as f64 / records);
    println!("{what:>8} {:.2} bytes each in memory", stats.open_bytes as f64 / records);
    drop(store);

    let begin = Instant::now();
    let store = open(&directory).await?;
    rate(what, "recover", begin.elapsed(), records);
    let begin = Instant::now();
    store.flush().await?;
    rate(what, "flush", begin.elapsed(), records);
    let stored = store.stats().stored;
    let bytes: u64 = stored.iter().map(|s| s.bytes).sum();
    println!(
        "{what:>8} {:.2} bytes each in {} chunks",
        bytes as f64 / records,
        stored[0].chunks + stored[2].chunks
    );
    let begin = Instant::now();
    for kind in tacho_model::Kind::ALL {
        for (id, _) in store.find(kind, &[]) {
            store.samples(id, TimeRange::ALL).await?;
            store.executions(id, TimeRange::ALL).await?;
        }
    }
    rate(what, "read", begin.elapsed(), records);
    Ok(store.close().await?)
}

fn rate(what: &str, step: &str, took: Duration, records: f64) {
    let seconds = took.as_secs_f64();
    println!("{what:>8} {step:>8} {:>8.2} million a second ({seconds:.2} s)", records / seconds / 1e6);
}

/// Ten moments of every series, 15 s apart.
fn sample_batch(first: i64) -> Batch {
    let series = |number: i64| {
        let labels = Labels::new([(NAME, "load".to_owned()), ("host", format!("host-{number:04}"))]);
        let sample = |n: i64| Sample {
            at: (first + n) * 15_000_000_000,
            value: Value::F64(((number * 31 + (first + n) * 7) % 1_000) as f64 / 8.0),
        };
        SampleSeries {
            labels: Arc::new(labels.unwrap_or_else(|_| Labels::empty())),
            samples: (0..10).map(sample).collect(),
        }
    };
    Batch { samples: (0..SERIES).map(series).collect(), ..Batch::default() }
}

/// 500 segments of the same shape: a request with seven calls below it.
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
    let mut random = tacho_store::random::Random::new(number);
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
