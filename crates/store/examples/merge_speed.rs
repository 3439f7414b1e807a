//! Rate of merges, and write amplification. `cargo run --release -p tacho-store --example merge_speed`
//!
//! 100 hosts with 10 series each, a sample every ten seconds for a day, flushed every half hour. The driver is in
//! memory. The chunks are merged twice: first by levels, as in the background but without pauses; then in a single merge.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tacho_model::{Batch, Labels, ManualClock, NAME, Random, Sample, SampleSeries, Value};
use tacho_store::{MemoryDriver, Options, Store};

const HOSTS: u64 = 100;
const METRICS: u64 = 10;
const FLUSHES: i64 = 48;
const SAMPLES: i64 = 180;
const STEP_NS: i64 = 10_000_000_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::temp_dir().join(format!("tacho-merge-speed-{}", std::process::id()));
    let options = Options {
        sweep_first: Duration::from_secs(3_600),
        merge_cpu_percent: 100,
        merge_bytes_per_second: u64::MAX,
        ..Options::default()
    };
    let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::default()));
    let store = Store::open(driver, &directory, options, clock).await?;
    let mut random = Random::new(1);
    let mut values: Vec<i64> = vec![500; (HOSTS * METRICS) as usize];
    for flush in 0..FLUSHES {
        store.append(batch(&mut random, &mut values, flush), None).await?;
        store.flush().await?;
        while store.stats().upkeep.chunks_due > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let written = store.stats().stored[0].records;
    let by_levels = store.stats().upkeep;
    println!("values {written}, bytes a value before all is merged {:.3}", bytes_a_value(&store));
    let times = by_levels.records_in as f64 / written as f64;
    println!("by levels: {} merges, each value written again {times:.2} times", by_levels.merges);
    let begun = Instant::now();
    let report = store.merge_all().await?;
    let (seconds, busy) = (begun.elapsed().as_secs_f64(), report.busy.as_secs_f64());
    println!(
        "all at once: {:.0} MB/s of chunks read and written, {:.1} million values/s, {:.1} million values a CPU second",
        (report.bytes_read + report.bytes_written) as f64 / 1e6 / seconds,
        report.records_in as f64 / 1e6 / seconds,
        report.records_in as f64 / 1e6 / busy,
    );
    println!("bytes a value {:.3}", bytes_a_value(&store));
    drop(store);
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

fn bytes_a_value(store: &Store) -> f64 {
    let stored = store.stats().stored[0];
    stored.bytes as f64 / stored.records as f64
}

/// Half an hour of samples of all series. Each series is a random walk between 0 and 1,000.
fn batch(random: &mut Random, values: &mut [i64], flush: i64) -> Batch {
    let mut batch = Batch::default();
    for (series, value) in values.iter_mut().enumerate() {
        let (host, metric) = (series as u64 / METRICS, series as u64 % METRICS);
        let name = format!("metric_{metric}");
        let labels = Labels::new([(NAME, name.as_str()), ("host", &host.to_string())])
            .unwrap_or_else(|_| Labels::empty());
        let sample = |n| {
            *value = (*value + random.below(11) as i64 - 5).clamp(0, 1_000);
            Sample { at: (flush * SAMPLES + n) * STEP_NS, value: Value::F64(*value as f64) }
        };
        batch
            .samples
            .push(SampleSeries { labels: Arc::new(labels), samples: (0..SAMPLES).map(sample).collect() });
    }
    batch
}
