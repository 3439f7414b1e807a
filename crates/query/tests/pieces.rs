//! The answer does not depend on the form of the input: one column, several pieces, or summaries of pieces that no window
//! cuts. Windows that share work return the same result as separate windows.

use std::sync::Arc;

use proptest::prelude::*;
use tacho_chunk::{Summary, Times};
use tacho_model::{Labels, NAME, Windows};
use tacho_query::promql::{self, Output, Params, Piece, STALE, SeriesData};

const SECOND: i64 = 1_000_000_000;

type Samples = Vec<(i64, f64)>;

/// Functions for which summaries are sufficient.
const FROM_SUMMARIES: [&str; 13] = [
    "avg_over_time",
    "sum_over_time",
    "min_over_time",
    "max_over_time",
    "count_over_time",
    "first_over_time",
    "last_over_time",
    "present_over_time",
    "range_over_time",
    "diff_over_time",
    "sdiff_over_time",
    "delta",
    "ts_of_first_over_time",
];

/// Functions that need samples, and whose windows share work.
const SHARED: [&str; 11] = [
    "rate",
    "increase",
    "resets",
    "changes",
    "stddev_over_time",
    "stdvar_over_time",
    "stddev_sample_over_time",
    "integral_over_time",
    "deriv",
    "trend_intercept_over_time",
    "trend_p_over_time",
];

/// Runs of samples with regular or irregular times, sometimes with NaN, infinities, staleness markers and resets.
fn stretches() -> impl Strategy<Value = Vec<Samples>> {
    let value = prop_oneof![
        40 => (-1_000..1_000_i32).prop_map(f64::from),
        8 => (-1e6..1e6_f64).prop_map(|value| value),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(STALE),
    ];
    let plain = (0..500_i32).prop_map(f64::from);
    let stretch = |value: BoxedStrategy<f64>| {
        let regular = (1..30_i64, prop::collection::vec(value.clone(), 1..40))
            .prop_map(|(step, values)| values.into_iter().map(|value| (step, value)).collect::<Vec<_>>());
        let uneven = prop::collection::vec((1..60_i64, value), 1..30);
        prop_oneof![regular, uneven]
    };
    let of = |value: BoxedStrategy<f64>| prop::collection::vec(stretch(value), 0..6);
    prop_oneof![of(value.boxed()), of(plain.boxed())].prop_map(|stretches| {
        let mut at = 0;
        let place = |stretch: Vec<(i64, f64)>| {
            let place = |(gap, value)| {
                at += gap * SECOND;
                (at, value)
            };
            stretch.into_iter().map(place).collect()
        };
        stretches.into_iter().map(place).collect()
    })
}

fn columns(samples: &[(i64, f64)]) -> Piece {
    let (at, values): (Vec<i64>, Vec<f64>) = samples.iter().copied().unzip();
    Piece::Samples { at: Times::new(&at).unwrap(), values }
}

/// The summary of a run; `None` if a window cuts the run, or the sum is not finite.
fn summary(samples: &[(i64, f64)], windows: &Windows) -> Option<Piece> {
    let (first, last) = (samples.first()?, samples.last()?);
    let values = || samples.iter().map(|(_, value)| *value);
    let sum: f64 = values().sum();
    if !sum.is_finite() || windows.cut(first.0, last.0) {
        return None;
    }
    Some(Piece::Summary(Summary {
        start: first.0,
        end: last.0,
        count: samples.len(),
        min: values().fold(f64::INFINITY, f64::min),
        max: values().fold(f64::NEG_INFINITY, f64::max),
        sum,
        first: first.1,
        last: last.1,
    }))
}

struct Asked {
    query: String,
    params: Params,
}

impl Asked {
    /// `handed_in` converts the samples of the range into pieces that suit the given windows.
    fn answer(
        &self,
        stretches: &[Samples],
        handed_in: impl Fn(&[Samples], Option<Windows>) -> Vec<Piece>,
    ) -> Samples {
        let plan = promql::parse(&self.query).unwrap().plan(&self.params).unwrap();
        let selection = &plan.selectors()[0];
        let cut = |stretch: &Samples| -> Samples {
            stretch.iter().copied().filter(|(at, _)| selection.range.contains(*at)).collect()
        };
        let cut: Vec<Samples> = stretches.iter().map(cut).filter(|stretch| !stretch.is_empty()).collect();
        let labels = Arc::new(Labels::new([(NAME, "x")]).unwrap());
        let series = SeriesData { labels, pieces: handed_in(&cut, selection.windows) };
        match plan.evaluate(&[vec![series]]).unwrap() {
            Output::Matrix(matrix) => {
                matrix.iter().flat_map(|series| &series.points).map(|point| (point.at, point.value)).collect()
            }
            Output::Vector(elements) => elements.iter().map(|(_, point)| (point.at, point.value)).collect(),
            other => panic!("{other:?}"),
        }
    }
}

fn same(query: &str, got: &Samples, expect: &Samples) -> Result<(), TestCaseError> {
    let scale =
        expect.iter().map(|(_, value)| value.abs()).filter(|value| value.is_finite()).fold(1.0, f64::max);
    let close = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * scale;
    let all = got.len() == expect.len() && got.iter().zip(expect).all(|(a, b)| a.0 == b.0 && close(a.1, b.1));
    prop_assert!(all, "{}: {:?}\nexpected {:?}", query, got, expect);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pieces_and_summaries_give_the_same_answer_as_samples(
        stretches in stretches(),
        function in prop::sample::select([FROM_SUMMARIES.as_slice(), &SHARED].concat()),
        (step, range, offset) in (1..300_i64, 1..600_i64, prop_oneof![-50..0_i64, 1..50_i64]),
    ) {
        let params = Params::range(0, 2_000 * SECOND, step * SECOND);
        let asked = Asked { query: format!("{function}(x[{range}s] offset {offset}s)"), params };
        let whole = asked.answer(&stretches, |cut, _| vec![columns(&cut.concat())]);
        let pieces = asked.answer(&stretches, |cut, windows| {
            assert_eq!(windows.is_some(), FROM_SUMMARIES.contains(&function));
            cut.iter().map(|stretch| {
                windows.and_then(|windows| summary(stretch, &windows)).unwrap_or_else(|| columns(stretch))
            }).collect()
        });
        same(&asked.query, &pieces, &whole)?;
    }

    /// An instant query reads a single window.
    #[test]
    fn windows_that_share_work_give_the_same_answer_as_separate_windows(
        stretches in stretches(),
        function in prop::sample::select([FROM_SUMMARIES.as_slice(), &SHARED].concat()),
        (step, range) in (7..60_i64, 1..600_i64),
    ) {
        let query = format!("{function}(x[{range}s])");
        let hand_in = |cut: &[Samples], _: Option<Windows>| vec![columns(&cut.concat())];
        let asked = Asked { query: query.clone(), params: Params::range(0, 1_000 * SECOND, step * SECOND) };
        let sliding = asked.answer(&stretches, hand_in);
        let times = (0..=1_000 / step).map(|i| i * step * SECOND);
        let alone = times.flat_map(|at| {
            Asked { query: query.clone(), params: Params::instant(at) }.answer(&stretches, hand_in)
        });
        same(&query, &sliding, &alone.collect())?;
    }
}

/// If a query uses the same selector twice, its data is read once, in a form that suits both uses.
#[test]
fn summaries_are_requested_only_if_all_functions_accept_them() {
    let windows = |query: &str| {
        let plan = promql::parse(query).unwrap().plan(&Params::range(0, 600 * SECOND, 60 * SECOND)).unwrap();
        plan.selectors().iter().map(|selection| selection.windows).collect::<Vec<_>>()
    };
    // `minutes` has two more windows at each end than the query. So it has all windows that overlap the first or the last window
    // of the query.
    let minutes = Windows { first: -120 * SECOND, step: 60 * SECOND, count: 15, range: 60 * SECOND };
    assert_eq!(windows("max_over_time(x[1m])"), [Some(minutes)]);
    assert_eq!(windows("max_over_time(x[1m]) - min_over_time(x[1m])"), [Some(minutes)]);
    assert_eq!(windows("max_over_time(x[1m]) - rate(x[1m])"), [None]);
    assert_eq!(windows("rate(x[1m]) - max_over_time(x[1m])"), [None]);
    assert_eq!(windows("max_over_time(derivative(x[1m]))"), [None]);
    assert_eq!(windows("max_over_time(x[2m:1m]) + x"), [None, None]);
    let shifted = Windows { first: -420 * SECOND, ..minutes };
    assert_eq!(windows("sum(avg_over_time(x[1m] offset 5m))"), [Some(shifted)]);
    let once = Windows { first: 600 * SECOND, count: 1, ..minutes };
    assert_eq!(windows("count_over_time(x[1m] @ end())"), [Some(once)]);
}

/// A window of 120 s contains many samples, then a summary, then many samples. The summary contains a multiple of 120 s.
#[test]
fn long_windows_around_a_summary_give_the_same_answer_as_samples() {
    let stretch = |times: std::ops::Range<i64>| -> Samples {
        times.map(|at| (at * SECOND, f64::from(i32::try_from(at % 17).unwrap()))).collect()
    };
    let stretches = [stretch(1..101), stretch(101..139), stretch(139..400)];
    let instant = Params::instant(200 * SECOND);
    for params in [instant, Params::range(200 * SECOND, 318 * SECOND, 59 * SECOND)] {
        for function in FROM_SUMMARIES {
            let asked = Asked { query: format!("{function}(x[120s])"), params: params.clone() };
            let whole = asked.answer(&stretches, |cut, _| vec![columns(&cut.concat())]);
            let pieces = asked.answer(&stretches, |cut, windows| {
                let piece = |stretch: &Samples| {
                    summary(stretch, &windows.unwrap()).unwrap_or_else(|| columns(stretch))
                };
                let pieces: Vec<Piece> = cut.iter().map(piece).collect();
                assert!(pieces.iter().any(|piece| matches!(piece, Piece::Summary(_))));
                pieces
            });
            same(&asked.query, &pieces, &whole).unwrap();
        }
    }
}
