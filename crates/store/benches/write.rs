//! Cost per value from `append` to the disk, and duration of a start after a crash.
//! `cargo bench -p tacho-store --bench write`
//!
//! Each host has ten series. Their values are whole numbers that change a little, like the CPU values of the TSBS devops load.
//! The CPU time includes all threads of the process. Batches are built before the measurement. `VALUES=1000000` uses fewer
//! values.

use std::sync::Arc;
use std::time::Instant;

use tacho_model::{Batch, Kind, Labels, ManualClock, NAME, Sample, SampleSeries, TimeRange, Value};
use tacho_store::{MemoryDriver, Options, Store};

const STEP_NS: i64 = 10_000_000_000;
const BATCH_VALUES: usize = 100_000;

fn series(hosts: usize) -> Vec<Arc<Labels>> {
    let one = |nth: usize| {
        let name = format!("cpu_usage_{}", nth % 10);
        let host = format!("host_{}", nth / 10);
        let tags = [
            ("region", "eu-central-1"),
            ("datacenter", "eu-central-1a"),
            ("rack", "77"),
            ("os", "Ubuntu15.10"),
        ];
        let tags = tags.into_iter().chain([("arch", "x64"), ("team", "SF"), ("service", "11")]);
        Arc::new(Labels::new(tags.chain([(NAME, name.as_str()), ("hostname", &host)])).unwrap())
    };
    (0..hosts * 10).map(one).collect()
}

/// The next values of all series, at the same times.
fn batch(series: &[Arc<Labels>], nth: usize) -> Batch {
    let lines = BATCH_VALUES / series.len();
    let one = |(at, labels): (usize, &Arc<Labels>)| {
        let value = |i: usize| Value::I64(50 + ((at * 7 + i * 13 + i / 10) % 17) as i64);
        let at = |i: usize| 1_700_000_000_000_000_000 + i as i64 * STEP_NS;
        let moments = nth * lines..(nth + 1) * lines;
        SampleSeries {
            labels: labels.clone(),
            samples: moments.map(|i| Sample { at: at(i), value: value(i) }).collect(),
        }
    };
    Batch { samples: series.iter().enumerate().map(one).collect(), ..Batch::default() }
}

/// CPU seconds of all threads of this process, with a resolution of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ').skip(11);
    fields.take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

async fn open(directory: &std::path::Path, driver: &Arc<MemoryDriver>) -> Arc<Store> {
    // No generation is sealed, so that the encoding of chunks is not measured.
    let options = Options {
        seal_bytes: 1 << 30,
        journal_bytes: 1 << 30,
        open_bytes_max: 4 << 30,
        ..Options::default()
    };
    Store::open(driver.clone(), directory, options, Arc::new(ManualClock::new(0))).await.unwrap()
}

async fn run(hosts: usize, values: usize) {
    let directory = tempfile::tempdir().unwrap();
    let driver = Arc::new(MemoryDriver::new());
    let store = open(directory.path(), &driver).await;
    let series = series(hosts);
    store.append(batch(&series, 0), None).await.unwrap();
    let (mut cpu, mut wall) = (0.0, 0.0);
    let journal = store.stats().journal_bytes;
    for nth in 1..values / BATCH_VALUES {
        let batch = batch(&series, nth);
        let (begun, cpu_before) = (Instant::now(), cpu_seconds());
        store.append(batch, None).await.unwrap();
        wall += begun.elapsed().as_secs_f64();
        cpu += cpu_seconds() - cpu_before;
    }
    let measured = (values - BATCH_VALUES) as f64;
    println!(
        "{hosts} hosts, per value: {:.1} ns CPU, {:.1} ns elapsed, {:.2} bytes of journal",
        cpu * 1e9 / measured,
        wall * 1e9 / measured,
        (store.stats().journal_bytes - journal) as f64 / measured,
    );
    drop(store);
    let begun = Instant::now();
    let store = open(directory.path(), &driver).await;
    println!(
        "{hosts} hosts: {values} values read back from the journal in {:.2} s",
        begun.elapsed().as_secs_f64()
    );
    let (id, _) = store.find(Kind::Sample, &[])[0];
    assert_eq!(store.samples(id, TimeRange::ALL).await.unwrap().len(), values / series.len());
}

#[tokio::main]
async fn main() {
    let values = std::env::var("VALUES").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000_000);
    run(100, values).await;
    run(1_000, values).await;
}
