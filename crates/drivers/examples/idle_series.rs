//! Measures the memory of series, by default a million, that each have one sample since the last flush.
//!
//! `cargo run --release -p tacho-drivers --example idle_series [SERIES]`. Compares the resident memory of the process
//! before and after the samples arrive. Before the arrival, the index has the series, and an earlier sample of each is flushed.

use std::sync::Arc;

use tacho_model::{Batch, Labels, ManualClock, NAME, Sample, SampleSeries, Value};
use tacho_store::{MemoryDriver, Options, Store};

type Failure = Box<dyn std::error::Error>;

const BATCH: usize = 1_000;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let series: usize = std::env::args().nth(1).map_or(Ok(1_000_000), |n| n.parse())?;
    let directory = std::env::temp_dir().join(format!("idle-series-{}", std::process::id()));
    let options = Options { open_bytes_max: 1 << 30, seal_bytes: 1 << 29, ..Options::default() };
    let clock = Arc::new(ManualClock::default());
    let store = Store::open(Arc::new(MemoryDriver::new()), &directory, options, clock).await?;

    let empty = resident()?;
    append(&store, series, 1).await?;
    store.flush().await?;
    let known = resident()?;
    append(&store, series, 2).await?;
    let (idle, counted) = (resident()?, store.stats().open_bytes);
    let each = |bytes: usize| bytes as f64 / series as f64;
    println!(
        "{series} series known and flushed: {:.0} bytes each, chunks in memory included",
        each(known - empty)
    );
    println!(
        "with one open sample each: {:.0} more bytes per series, {:.0} by the store's count",
        each(idle - known),
        each(counted)
    );
    drop(store);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

async fn append(store: &Store, series: usize, at: i64) -> Result<(), Failure> {
    for first in (0..series).step_by(BATCH) {
        let one = |number: usize| {
            let labels =
                [(NAME, format!("metric_{}", number % 10)), ("instance", format!("host-{}", number / 10))];
            let samples = vec![Sample { at, value: Value::F64(number as f64) }];
            Ok(SampleSeries { labels: Arc::new(Labels::new(labels)?), samples })
        };
        let samples = (first..series.min(first + BATCH)).map(one).collect::<Result<_, Failure>>()?;
        store.append(Batch { samples, ..Batch::default() }, None).await?;
    }
    Ok(())
}

/// Resident memory of this process, bytes.
fn resident() -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes = line.split_whitespace().next().ok_or("no number")?;
    Ok(kilobytes.parse::<usize>()? * 1_024)
}
