//! Tests counters of a real Java program. Most of them change so rarely that they do not look like counters. A rule on values
//! must not change their rates.

use std::sync::Arc;

use tacho_chunk::semantic::Semantic;
use tacho_chunk::{Method, Tolerance};
use tacho_model::{Batch, ManualClock, TimeRange, Value};
use tacho_store::policy::{Policies, Rule};
use tacho_store::{MemoryDriver, Options, Store};

use crate::common::{Bench, batch, id, typed};

const NAMES: [&str; 7] = [
    "TotalCompilationTime",
    "TotalLoadedClassCount",
    "CollectionCount",
    "CollectionTime",
    "TotalStartedThreadCount",
    "Uptime",
    "ProcessCpuTime",
];

/// A time in ns, and the values of [`NAMES`] (`testdata/README.md`).
type Line = (i64, [i64; NAMES.len()]);

fn captured() -> Vec<Line> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/jmx/board.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let mut now = [0; NAMES.len() + 1];
    let line = |line: &str| {
        let mut steps = line.split(' ').map(|word| word.parse::<i64>().unwrap());
        now.iter_mut().for_each(|now| *now += steps.next().unwrap());
        let [at, values @ ..] = now;
        (at * 1_000_000, values)
    };
    text.lines().map(line).collect()
}

fn store_batch(lines: &[Line], value: fn(i64) -> Value) -> Batch {
    let series = std::array::from_fn::<_, { NAMES.len() }, _>(|n| {
        let points: Vec<(i64, Value)> = lines.iter().map(|(at, values)| (*at, value(values[n]))).collect();
        typed(NAMES[n], &points)
    });
    batch(series)
}

async fn open(bench: &Bench) -> Arc<Store> {
    // 30 days after the first sample. All chunks are older than two days, so merges apply the rule to them.
    let clock = Arc::new(ManualClock::new(captured()[0].0 + 30 * 86_400_000_000_000));
    Store::open(bench.driver.clone(), bench.directory.path(), bench.options.clone(), clock).await.unwrap()
}

/// Results of the PromQL functions `increase` (not extrapolated), `changes` and `resets`.
fn figures(values: &[f64]) -> (f64, usize, usize) {
    let steps = || values.windows(2).map(|pair| (pair[0], pair[1]));
    let increase = steps().map(|(a, b)| if b < a { b } else { b - a }).sum();
    (increase, steps().filter(|(a, b)| a != b).count(), steps().filter(|(a, b)| b < a).count())
}

/// Asserts that the samples read have the same increase, changes and resets as the samples sent.
async fn check(store: &Store, sent: &[Line], told: &str) {
    for (n, name) in NAMES.iter().enumerate() {
        let read = store.samples(id(name), TimeRange::ALL).await.unwrap();
        let read: Vec<f64> = read.iter().map(|sample| sample.value.as_f64()).collect();
        let exact: Vec<f64> = sent.iter().map(|(_, values)| values[n] as f64).collect();
        assert_eq!(figures(&read), figures(&exact), "{name}, {told}");
        assert_eq!(read.len(), exact.len(), "{name}, {told}");
    }
}

#[tokio::test]
async fn counters_of_a_real_program_keep_increase_changes_and_resets() {
    let lines = captured();
    assert!(lines.len() > 4_000);
    let (_, changes, resets) = figures(&lines.iter().map(|(_, values)| values[0] as f64).collect::<Vec<_>>());
    assert_eq!((changes, resets), (1_166, 1));
    for (share, method, pieces) in [
        (0.01, Method::Linear, 1),
        (0.01, Method::Linear, 6),
        (0.01, Method::Wavelet, 6),
        (0.1, Method::Linear, 6),
        (0.01, Method::Linear, 60),
    ] {
        for value in [Value::I64 as fn(i64) -> Value, |value| Value::F64(value as f64)] {
            let semantic =
                Semantic { value: Some(Tolerance::Relative(share)), method, ..Semantic::default() };
            let semantic = vec![Rule { matchers: Vec::new(), then: semantic }];
            let policies = Arc::new(Policies { semantic, ..Policies::default() });
            let options = Options { merge_in_background: false, policies, ..Options::default() };
            let bench = Bench::with(Arc::new(MemoryDriver::new()), options);
            let store = open(&bench).await;
            let told = format!("{share} in {pieces} pieces by {method:?}");
            let mut sent = Vec::new();
            for (n, piece) in lines.chunks(lines.len().div_ceil(pieces)).enumerate() {
                store.append(store_batch(piece, value), None).await.unwrap();
                store.flush().await.unwrap();
                sent.extend_from_slice(piece);
                // Merges run in some rounds only. The second half of some pieces is sent again.
                if n % 3 != 1 || sent.len() == lines.len() {
                    store.merge_all().await.unwrap();
                }
                if pieces > 1 && n % 5 == 3 {
                    store.append(store_batch(&piece[piece.len() / 2..], value), None).await.unwrap();
                }
                if pieces <= 6 || n % 10 == 9 {
                    check(&store, &sent, &told).await;
                }
            }
            store.flush().await.unwrap();
            store.merge_all().await.unwrap();
            check(&store, &lines, &told).await;
        }
    }
}
