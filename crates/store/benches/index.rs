//! Latency of selections in an index of a million series. `cargo bench -p tacho-store --bench index`
//!
//! The series are those of the TSBS devops load: 10,000 hosts with ten tags and 100 metric names each. `SERIES=100000`
//! uses fewer hosts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tacho_model::{Batch, Kind, Labels, ManualClock, MatchOp, Matcher, NAME, Sample, SampleSeries, Value};
use tacho_store::{MemoryDriver, Options, Store};

const NAMES: usize = 100;
const ROUNDS: usize = 20;

fn labels(nth: usize) -> Labels {
    let (host, name) = (nth / NAMES, nth % NAMES);
    let pairs = [
        (NAME, format!("measurement_{}_field_{}", name / 10, name % 10)),
        ("hostname", format!("host_{host}")),
        ("region", format!("region-{}", host % 9)),
        ("datacenter", format!("region-{}-dc-{}", host % 9, host % 27)),
        ("rack", (host % 97).to_string()),
        ("os", ["Ubuntu15.10", "Ubuntu16.04LTS", "Ubuntu16.10"][host % 3].to_owned()),
        ("arch", ["x64", "x86"][host % 2].to_owned()),
        ("team", ["SF", "NYC", "LON", "CHI"][host % 4].to_owned()),
        ("service", (host % 20).to_string()),
        ("service_version", (host % 2).to_string()),
        ("service_environment", ["production", "staging", "test"][host / 7 % 3].to_owned()),
    ];
    Labels::new(pairs).unwrap()
}

/// Resident memory of this process, bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or(0) << 10
}

async fn fill(store: &Store, series: usize) {
    for first in (0..series).step_by(10_000) {
        let one = |nth| SampleSeries {
            labels: Arc::new(labels(nth)),
            samples: vec![Sample { at: 1, value: Value::I64(1) }],
        };
        let samples = (first..(first + 10_000).min(series)).map(one).collect();
        store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
    }
}

/// Prints the median time of a selection and its number of results.
fn ask(what: &str, question: impl Fn() -> usize) {
    let mut times: Vec<Duration> = Vec::with_capacity(ROUNDS);
    let mut found = 0;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        found = question();
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    println!("{:>9.3} ms  {found:>9} found  {what}", times[ROUNDS / 2].as_secs_f64() * 1e3);
}

fn questions(store: &Store) {
    use MatchOp::{Equal, NotEqual, NotRegex, Regex};
    let selections: [&[(&str, MatchOp, &str)]; 12] = [
        &[(NAME, Equal, "measurement_1_field_1"), ("hostname", Equal, "host_77")],
        &[
            (NAME, Equal, "measurement_1_field_1"),
            ("region", Equal, "region-1"),
            ("os", NotEqual, "Ubuntu16.10"),
        ],
        &[(NAME, Equal, "measurement_1_field_1"), ("hostname", Regex, "host_1.*")],
        &[(NAME, Equal, "measurement_1_field_1"), ("hostname", Regex, "host_(1|22|333)")],
        &[(NAME, Equal, "measurement_1_field_1"), ("hostname", NotRegex, ".*7.*")],
        &[("hostname", Regex, "host_12.4"), ("team", Equal, "SF")],
        &[("hostname", Regex, ".*_99")],
        &[(NAME, Regex, "measurement_1_.*"), ("rack", Equal, "5")],
        &[
            ("service", NotEqual, ""),
            ("rack", Equal, "5"),
            ("arch", NotEqual, "x86"),
            ("team", Regex, "SF|LON"),
        ],
        &[("nowhere", Equal, ""), ("hostname", Equal, "host_77")],
        &[("hostname", NotRegex, "host_.*")],
        &[("os", NotEqual, "Ubuntu16.10")],
    ];
    for selection in selections {
        let matchers: Vec<Matcher> =
            selection.iter().map(|(label, op, value)| Matcher::new(label, *op, value).unwrap()).collect();
        ask(&format!("{matchers:?}"), || store.find(Kind::Sample, &matchers).len());
    }
    let host = [vec![Matcher::equal("hostname", "host_77")]];
    ask("label names of one host", || {
        store.label_names(Kind::Sample, &host, &|| true).iter().flatten().count()
    });
    ask("names of one host", || {
        store.label_values(Kind::Sample, NAME, &host, &|| true).iter().flatten().count()
    });
    ask("values of hostname", || {
        store.label_values(Kind::Sample, "hostname", &[], &|| true).iter().flatten().count()
    });
    ask("cardinality", || store.cardinality(10).labels.len());
}

#[tokio::main]
async fn main() {
    let series = std::env::var("SERIES").ok().and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(0));
    let driver = Arc::new(MemoryDriver::new());
    let before = resident();
    let begun = Instant::now();
    let store = Store::open(driver, directory.path(), Options::default(), clock).await.unwrap();
    fill(&store, series).await;
    let told = store.cardinality(1).bytes;
    println!(
        "{series} series appended, one value each, in {:.1} s; \
         bytes a series: {} resident, {} by the index's own count",
        begun.elapsed().as_secs_f64(),
        resident().saturating_sub(before) / series,
        told / series,
    );
    questions(&store);
}
