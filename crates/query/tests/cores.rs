//! The answer does not depend on the number of threads, bit for bit.

use std::sync::Arc;

use tacho_chunk::Times;
use tacho_model::Labels;
use tacho_query::promql::{self, Limits, Output, Params, Piece, STALE, SeriesData};

const SECOND: i64 = 1_000_000_000;
const SAMPLES: usize = 12_000;
const SERIES: usize = 48;

/// Series of pseudo-random values with gaps. They have more samples than `WORK_MIN` of `promql/parallel.rs`.
fn data(seed: u64) -> Vec<SeriesData> {
    let mut random = seed | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let series = |n: usize| {
        let labels = [("__name__", "m".to_owned()), ("n", n.to_string()), ("g", (n % 5).to_string())];
        let mut value = || match next() % 200 {
            0 => STALE,
            1 => f64::NAN,
            n => f64::from(u32::try_from(n).unwrap()) / 7.0,
        };
        let piece = |part: i64| {
            let count = SAMPLES / 3;
            let start = part * i64::try_from(count).unwrap() * 10 * SECOND + SECOND;
            let at = Times::Regular { start, step: 10 * SECOND, count };
            Piece::Samples { at, values: (0..count).map(|_| value()).collect() }
        };
        SeriesData { labels: Arc::new(Labels::new(labels).unwrap()), pieces: [0, 1, 2].map(piece).to_vec() }
    };
    (0..SERIES).map(series).collect()
}

fn answer(query: &str, data: &[SeriesData], threads_max: usize) -> Result<String, String> {
    let end = i64::try_from(SAMPLES).unwrap() * 10 * SECOND;
    let limits = Limits { threads_max, ..Limits::default() };
    let params = Params { limits, ..Params::range(0, end, 97 * SECOND) };
    let plan = promql::parse(query).unwrap().plan(&params).unwrap();
    let data = vec![data.to_vec(); plan.selectors().len()];
    let output = plan.evaluate(&data).map_err(|error| error.to_string())?;
    let Output::Matrix(series) = output else { panic!("a range query must return a matrix") };
    let bits = |series: &promql::Series| {
        series.points.iter().map(|point| (point.at, point.value.to_bits())).collect::<Vec<_>>()
    };
    Ok(series.iter().map(|series| format!("{} {:?}\n", series.labels, bits(series))).collect())
}

#[test]
fn answers_of_one_thread_and_of_many_have_the_same_bits() {
    for seed in 1..=2 {
        let data = data(seed);
        for query in [
            "m",
            "rate(m[5m])",
            "sum by (g) (avg_over_time(m[1h]))",
            "stddev(sum_over_time(m[40m]))",
            "quantile_over_time(0.9, m[10m]) * on (n) group_left m",
            "topk(3, rate(m[20m]))",
        ] {
            let one = answer(query, &data, 1);
            assert!(one.as_ref().is_ok_and(|text| !text.is_empty()), "{query}: {one:?}");
            for threads_max in [2, 3, usize::MAX] {
                assert_eq!(answer(query, &data, threads_max), one, "{query}");
            }
        }
    }
}
