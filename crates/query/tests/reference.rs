//! Sliding windows give the results of their definition, which reads all samples again at each step.

use std::sync::Arc;

use proptest::prelude::*;
use tacho_model::{Labels, NAME};
use tacho_query::promql::{self, Output, Params, STALE, SeriesData, is_stale};

const SECOND: i64 = 1_000_000_000;

/// A counter with uneven gaps, resets, and some staleness markers.
fn counter() -> impl Strategy<Value = Vec<(i64, f64)>> {
    proptest::collection::vec((1..40_i64, 0..200_u32), 0..80).prop_map(|steps| {
        let (mut at, mut value) = (0, 0.0);
        let sample = |(gap, increase)| {
            at += gap * SECOND;
            match increase {
                0..10 => value = f64::from(increase),
                10..15 => return (at, STALE),
                _ => value += f64::from(increase),
            }
            (at, value)
        };
        steps.into_iter().map(sample).collect()
    })
}

/// The samples of the window that ends at `end` and is open at the left, without staleness markers. The returned times are
/// in seconds; `end` and `range` are in nanoseconds.
fn window(samples: &[(i64, f64)], end: i64, range: i64) -> Vec<(f64, f64)> {
    let inside = samples.iter().filter(|(at, value)| *at > end - range && *at <= end && !is_stale(*value));
    inside.map(|(at, value)| ((at / SECOND) as f64, *value)).collect()
}

/// Implements the documentation of `rate()` in Prometheus and the reasoning in Prometheus issue 2364.
fn rate(samples: &[(i64, f64)], end: i64, range: i64) -> Option<f64> {
    let seen = window(samples, end, range);
    let [(first_at, first), .., (last_at, last)] = seen[..] else { return None };
    let (end, range) = ((end / SECOND) as f64, (range / SECOND) as f64);
    let mut increase = last - first;
    for pair in seen.windows(2) {
        if pair[1].1 < pair[0].1 {
            increase += pair[0].1;
        }
    }
    let covered = last_at - first_at;
    let mean_gap = covered / (seen.len() - 1) as f64;
    let extend = |gap: f64| if gap < mean_gap * 1.1 { gap } else { mean_gap / 2.0 };
    let mut before = extend(first_at - (end - range));
    if increase > 0.0 && covered * first / increase < before {
        before = covered * first / increase;
    }
    let after = extend(end - last_at);
    Some(increase * (covered + before + after) / covered / range)
}

fn newest(samples: &[(i64, f64)], end: i64) -> Option<f64> {
    let (_, value) = samples.iter().rfind(|(at, _)| *at <= end && *at > end - 300 * SECOND)?;
    if is_stale(*value) { None } else { Some(*value) }
}

fn ask(query: &str, samples: &[(i64, f64)], params: &Params) -> Vec<(i64, f64)> {
    let plan = promql::parse(query).unwrap().plan(params).unwrap();
    let range = plan.selectors()[0].range;
    let (at, values) = samples.iter().copied().filter(|(at, _)| range.contains(*at)).unzip();
    let labels = Arc::new(Labels::new([(NAME, "x")]).unwrap());
    let Output::Matrix(matrix) = plan.evaluate(&[vec![SeriesData::new(labels, at, values)]]).unwrap() else {
        panic!()
    };
    matrix.iter().flat_map(|series| &series.points).map(|point| (point.at, point.value)).collect()
}

fn check(
    query: &str,
    samples: &[(i64, f64)],
    step: i64,
    reference: impl Fn(i64) -> Option<f64>,
) -> Result<(), TestCaseError> {
    let params = Params::range(-10 * SECOND, 2_000 * SECOND, step * SECOND);
    let expect: Vec<(i64, f64)> = (params.start..=params.end)
        .step_by(usize::try_from(step * SECOND).unwrap())
        .filter_map(|at| Some((at, reference(at)?)))
        .collect();
    let got = ask(query, samples, &params);
    prop_assert_eq!(got.len(), expect.len());
    for (got, expect) in got.iter().zip(&expect) {
        let close = (got.1 - expect.1).abs() <= 1e-12 * expect.1.abs().max(1.0);
        prop_assert!(got.0 == expect.0 && close, "{}: {:?}, expected {:?}", query, got, expect);
    }
    Ok(())
}

proptest! {
    #[test]
    fn rate_follows_its_definition(samples in counter(), step in 1..200_i64, range in 1..400_i64) {
        let query = format!("rate(x[{range}s])");
        check(&query, &samples, step, |at| rate(&samples, at, range * SECOND))?;
    }

    #[test]
    fn offsets_shift_windows(samples in counter(), step in 1..200_i64, offset in -300..300_i64) {
        let query = format!("max_over_time(x[1m] offset {offset})");
        check(&query, &samples, step, |at| {
            window(&samples, at - offset * SECOND, 60 * SECOND).into_iter().map(|(_, value)| value).reduce(f64::max)
        })?;
    }

    #[test]
    fn a_selector_yields_the_newest_sample(samples in counter(), step in 1..200_i64) {
        check("x", &samples, step, |at| newest(&samples, at))?;
    }

    #[test]
    fn a_subquery_is_evaluated_at_multiples_of_its_step(samples in counter(), step in 1..200_i64, inner in 1..90_i64) {
        let query = format!("count_over_time(x[5m:{inner}s])");
        check(&query, &samples, step, |at| {
            let times = (1..).map(|k| ((at - 300 * SECOND).div_euclid(inner * SECOND) + k) * inner * SECOND);
            let count = times.take_while(|time| *time <= at).filter(|time| newest(&samples, *time).is_some()).count();
            (count > 0).then_some(count as f64)
        })?;
    }
}
