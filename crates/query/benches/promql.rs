//! How long does PromQL take to evaluate a query over data in memory? Prints the best time of five for each query.
//!
//! `cargo bench -p tacho-query`: 100 series of 8,640 samples (one day, one sample per 10 s), 1,000 steps. To measure other
//! queries: `cargo bench -p tacho-query --bench promql -- 'rate(x[1h])'`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tacho_chunk::Times;
use tacho_model::{Labels, NAME};
use tacho_query::promql::{self, Params, Piece, SeriesData};

const SECOND: i64 = 1_000_000_000;
const SERIES: usize = 100;
const SAMPLES: usize = 8_640;
const STEPS: i64 = 1_000;

const QUERIES: [&str; 15] = [
    "x",
    "rate(x[5m])",
    "rate(x[1h])",
    "sum(rate(x[5m]))",
    "sum by (job) (rate(x[5m]))",
    "avg_over_time(x[1h])",
    "max_over_time(x[1h])",
    "quantile_over_time(0.99, x[1h])",
    "topk(5, x)",
    "x / on (instance) x",
    "histogram_quantile(0.9, sum by (le) (rate(x[5m])))",
    "max_over_time(rate(x[5m])[1h:1m])",
    "max_over_time(x[1m])",
    "trend_over_time(x[1h])",
    "count_over_time(keep_outliers_iqr(x[1h]))",
];

fn main() {
    let series: Vec<SeriesData> = (0..SERIES).map(counter).collect();
    let step = SAMPLES as i64 * 10 * SECOND / STEPS;
    let params = Params::range(0, (STEPS - 1) * step, step);
    println!("{SERIES} series x {SAMPLES} samples x {STEPS} steps");
    let given: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let asked: Vec<&str> = given.iter().map(String::as_str).collect();
    for query in if asked.is_empty() { &QUERIES[..] } else { &asked } {
        let best = (0..5).map(|_| run(query, &params, &series)).min().unwrap_or_default();
        println!("{:>9.2} ms  {query}", best.as_secs_f64() * 1e3);
    }
}

fn counter(number: usize) -> SeriesData {
    let pairs = [
        (NAME, "x".to_owned()),
        ("instance", number.to_string()),
        ("job", (number % 4).to_string()),
        ("le", (number % 10).to_string().replace('9', "+Inf")),
    ];
    let at = Times::Regular { start: 0, step: 10 * SECOND, count: SAMPLES };
    let values = (0..SAMPLES).map(|i| ((i % 5_000) * (number + 1)) as f64).collect();
    let labels = Arc::new(Labels::new(pairs).expect("labels are within limits"));
    SeriesData { labels, pieces: vec![Piece::Samples { at, values }] }
}

fn run(query: &str, params: &Params, series: &[SeriesData]) -> Duration {
    let plan = promql::parse(query).and_then(|query| query.plan(params)).expect("query is well formed");
    let data: Vec<_> = plan.selectors().iter().map(|_| series.to_vec()).collect();
    let start = Instant::now();
    let output = plan.evaluate(&data).expect("data is within limits");
    let elapsed = start.elapsed();
    drop(output);
    elapsed
}
