//! The results of functions over windows agree with exact rational arithmetic, in instant and range queries. Some samples have a
//! large offset, form steep lines with little scatter, or have values that are tiny, subnormal, or near the largest double.

use std::sync::Arc;

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use tacho_model::{Labels, NAME};
use tacho_query::promql::{self, Output, Params, SeriesData};

const SECOND: i64 = 1_000_000_000;
/// Largest relative error of an answer.
const PART: f64 = 1e-12;
/// Additional permitted absolute error, as a fraction of the size of the terms, because an answer may be tiny compared to its
/// terms.
const VANISHING: f64 = 1e-20;
/// Additional permitted absolute error, because a subnormal double has few digits. It is 20 times the smallest positive double,
/// because a quantile may multiply the error.
const SMALLEST: f64 = 1e-322;

type Samples = Vec<(i64, f64)>;

/// Shape of the values: `offset`, plus `a_second` per second, plus a small integer multiplied by `unit`.
#[derive(Clone, Debug)]
struct Shape {
    unit: f64,
    offset: f64,
    a_second: f64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let offsets =
        prop::sample::select(vec![0.0, 1.0, -1e6, 1e9, 4_503_599_627_370_496.0, 9_007_199_254_740_992.0]);
    let plain = (
        prop::sample::select(vec![1.0, 0.1, 1e-3]),
        offsets,
        prop::sample::select(vec![0.0, 0.0, 1.0, -3.7]),
    );
    let plain = plain.prop_map(|(unit, offset, a_second)| Shape { unit, offset, a_second });
    // The line is so steep that the distances from it are tiny compared to the values.
    let steep = prop::sample::select(vec![1e3, 1e6, 1e9]);
    let steep = steep.prop_map(|a_second| Shape { unit: 1e-3, offset: 5.0, a_second });
    let large = prop::sample::select(vec![1e297, 3e299, 1e305]);
    let large = large.prop_map(|unit| Shape { unit, offset: unit, a_second: 0.0 });
    let small = prop::sample::select(vec![5e-324, 1e-310, 1e-300, 1e-160]);
    let small = small.prop_map(|unit| Shape { unit, offset: 0.0, a_second: 0.0 });
    prop_oneof![4 => plain, 2 => steep, 1 => large, 1 => small]
}

/// Samples at even or uneven distances of one to ten seconds.
fn samples() -> impl Strategy<Value = Samples> {
    let gaps = prop_oneof![Just(1..2_i64), Just(1..10_i64), Just(10..11_i64)];
    let parts = gaps.prop_flat_map(|gaps| prop::collection::vec((gaps, -9..10_i32), 3..400));
    (parts, shapes()).prop_map(|(parts, shape)| {
        let mut at = 0;
        let sample = |(gap, whole): (i64, i32)| {
            at += gap * SECOND;
            let line = shape.a_second * (at / SECOND) as f64;
            (at, shape.offset + line + shape.unit * f64::from(whole))
        };
        parts.into_iter().map(sample).collect()
    })
}

/// A ratio of integers, multiplied by a power of two.
struct Ratio {
    over: BigInt,
    under: BigInt,
    exponent: i64,
}

fn bits(value: &BigInt) -> i64 {
    i64::try_from(value.bits()).unwrap()
}

fn shifted(value: &BigInt, left: i64) -> BigInt {
    if left >= 0 { value << left } else { value >> -left }
}

/// `value * 2^exponent`; infinite above the largest double.
fn scale(value: f64, exponent: i64) -> f64 {
    let half = exponent.clamp(-2_400, 2_400) / 4;
    let rest = exponent.clamp(-2_400, 2_400) - 3 * half;
    let power = |exponent: i64| 2.0_f64.powi(i32::try_from(exponent).unwrap());
    value * power(half) * power(half) * power(half) * power(rest)
}

impl Ratio {
    /// The quotient as an integer of at least `wanted` bits, and its exponent.
    fn quotient(&self, wanted: i64) -> (BigInt, i64) {
        let mut left = wanted - (bits(&self.over) - bits(&self.under));
        // A square root needs an even exponent.
        left += (left + self.exponent).rem_euclid(2);
        let under = if left < 0 { &self.under << -left } else { self.under.clone() };
        (shifted(&self.over, left.max(0)) / under, self.exponent - left)
    }

    fn value(&self) -> f64 {
        let (quotient, exponent) = self.quotient(100);
        scale(quotient.to_f64().unwrap(), exponent)
    }

    fn root(&self) -> f64 {
        let (quotient, exponent) = self.quotient(200);
        scale(quotient.sqrt().to_f64().unwrap(), exponent / 2)
    }

    fn by(mut self, factor: impl Into<BigInt>, divisor: impl Into<BigInt>) -> Self {
        self.over *= factor.into();
        self.under *= divisor.into();
        self
    }
}

/// The integer and the exponent for which a double is `integer * 2^exponent`.
fn digits(value: f64) -> (BigInt, i64) {
    let (biased, fraction) = ((value.to_bits() >> 52 & 0x7ff) as i64, value.to_bits() & ((1 << 52) - 1));
    let digits = if biased == 0 { fraction } else { fraction | 1 << 52 };
    let sign = if value < 0.0 { -1 } else { 1 };
    (BigInt::from(digits) * sign, biased.max(1) - 1_075)
}

/// Exact sums over times and values. Times are in nanoseconds after the first time; values are in units of `2^exponent`.
struct Exact {
    count: usize,
    origin: i64,
    exponent: i64,
    time: BigInt,
    value: BigInt,
    /// `times`, `values` and `both`: sums of squares and products of the differences from the means, multiplied by the count.
    times: BigInt,
    values: BigInt,
    both: BigInt,
}

impl Exact {
    fn of(samples: &[(i64, f64)]) -> Self {
        let origin = samples[0].0;
        let exponent = samples.iter().map(|(_, value)| digits(*value).1).min().unwrap();
        let count = BigInt::from(samples.len());
        let [mut time, mut value, mut times, mut values, mut both] = [const { BigInt::ZERO }; 5];
        for (at, sample) in samples {
            let (at, (sample, own)) = (BigInt::from(at - origin), digits(*sample));
            let sample: BigInt = sample << (own - exponent);
            times += &at * &at;
            values += &sample * &sample;
            both += &at * &sample;
            time += at;
            value += sample;
        }
        times = times * &count - &time * &time;
        values = values * &count - &value * &value;
        both = both * &count - &time * &value;
        Self { count: samples.len(), origin, exponent, time, value, times, values, both }
    }

    fn mean(&self) -> f64 {
        Ratio { over: self.value.clone(), under: self.count.into(), exponent: self.exponent }.value()
    }

    /// `by` is the count for the population variance, and the count minus one for the sample variance.
    fn variance(&self, by: usize) -> Ratio {
        let ratio =
            Ratio { over: self.values.clone(), under: self.count.into(), exponent: 2 * self.exponent };
        ratio.by(1, by)
    }

    fn slope(&self) -> f64 {
        let ratio = Ratio { over: self.both.clone(), under: self.times.clone(), exponent: self.exponent };
        ratio.by(SECOND, 1).value()
    }

    fn line_at(&self, at: i64) -> f64 {
        let count = BigInt::from(self.count);
        let after = BigInt::from(at - self.origin) * &count - &self.time;
        let over = &self.value * &self.times + &self.both * after;
        Ratio { over, under: count * &self.times, exponent: self.exponent }.value()
    }

    fn slope_error(&self) -> f64 {
        let over = &self.values * &self.times - &self.both * &self.both;
        let under = &self.times * &self.times * (self.count - 2);
        Ratio { over, under, exponent: 2 * self.exponent }.by(SECOND, 1).by(SECOND, 1).root()
    }

    /// The steepest slope that samples with this scatter of times and values can have.
    fn slope_max(&self) -> f64 {
        let ratio =
            Ratio { over: self.values.clone(), under: self.times.clone(), exponent: 2 * self.exponent };
        ratio.root() * SECOND as f64
    }

    fn deviation(&self) -> f64 {
        self.variance(self.count).root()
    }
}

fn ask(query: &str, samples: &[(i64, f64)], params: &Params) -> Vec<(i64, f64)> {
    let plan = promql::parse(query).unwrap().plan(params).unwrap();
    let (at, values) = samples.iter().copied().unzip();
    let labels = Arc::new(Labels::new([(NAME, "x")]).unwrap());
    match plan.evaluate(&[vec![SeriesData::new(labels, at, values)]]).unwrap() {
        Output::Matrix(matrix) => matrix.iter().flat_map(|s| &s.points).map(|p| (p.at, p.value)).collect(),
        Output::Vector(vector) => vector.iter().map(|(_, point)| (params.start, point.value)).collect(),
        other => panic!("{other:?}"),
    }
}

/// The exact answer, and the size of its terms.
struct Expect {
    exact: f64,
    size: f64,
}

impl Expect {
    fn check(&self, what: &str, got: f64) -> Result<(), TestCaseError> {
        let Self { exact, size } = *self;
        let near = got == exact || (got - exact).abs() <= PART * exact.abs() + VANISHING * size + SMALLEST;
        prop_assert!(near, "{what}: {got:e}, exactly {exact:e}");
        Ok(())
    }
}

/// Compares a function with its definition at up to 12 steps of a range query, and in instant queries at the same times. The
/// function must return no value for a window with fewer than `least` samples.
fn check(
    query: &str,
    samples: &Samples,
    (step, range): (i64, i64),
    least: usize,
    exact: impl Fn(&Exact, i64) -> Expect,
) -> Result<(), TestCaseError> {
    let end = samples.last().unwrap().0;
    let answers = ask(query, samples, &Params::range(SECOND, end, step * SECOND));
    let every = answers.len() / 12 + 1;
    for (at, got) in answers.into_iter().rev().step_by(every) {
        let inside = |(t, _): &&(i64, f64)| *t > at - range * SECOND && *t <= at;
        let inside: Samples = samples.iter().filter(inside).copied().collect();
        prop_assert!(inside.len() >= least);
        let expect = exact(&Exact::of(&inside), at);
        expect.check(&format!("{query} of a range at {at}"), got)?;
        let alone = ask(query, samples, &Params::instant(at))[0].1;
        expect.check(&format!("{query} at {at} alone"), alone)?;
    }
    Ok(())
}

fn as_it_is(exact: f64) -> Expect {
    Expect { exact, size: 0.0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn means_and_deviations_are_exact(samples in samples(), step in 1..60_i64, range in 2..900_i64) {
        let windows = (step, range);
        check(&format!("avg_over_time(x[{range}s])"), &samples, windows, 1, |x, _| {
            Expect { exact: x.mean(), size: x.deviation() }
        })?;
        check(&format!("stdvar_over_time(x[{range}s])"), &samples, windows, 1, |x, _| {
            as_it_is(x.variance(x.count).value())
        })?;
        check(&format!("stddev_over_time(x[{range}s])"), &samples, windows, 1, |x, _| as_it_is(x.deviation()))?;
        check(&format!("stddev_sample_over_time(x[{range}s])"), &samples, windows, 2, |x, _| {
            as_it_is(x.variance(x.count - 1).root())
        })?;
    }

    #[test]
    fn lines_are_exact(samples in samples(), step in 1..60_i64, range in 2..900_i64, ahead in -400..400_i64) {
        let windows = (step, range);
        check(&format!("deriv(x[{range}s])"), &samples, windows, 2, |x, _| {
            Expect { exact: x.slope(), size: x.slope_max() }
        })?;
        let line = |x: &Exact, at: i64| Expect { exact: x.line_at(at), size: x.deviation() };
        check(&format!("trend_intercept_over_time(x[{range}s])"), &samples, windows, 2, |x, at| {
            line(x, at - range * SECOND)
        })?;
        check(&format!("predict_linear(x[{range}s], {ahead})"), &samples, windows, 2, |x, at| {
            line(x, at + ahead * SECOND)
        })?;
    }

    /// The margin is the standard error of the slope multiplied by a quantile. The quantile depends only on the count,
    /// so the test takes it from another series of the same length.
    #[test]
    fn margins_are_exact(samples in samples(), step in 1..60_i64, range in 3..900_i64) {
        let query = format!("trend_margin_over_time(x[{range}s], 0.95)");
        check(&query, &samples, (step, range), 3, |x, _| as_it_is(x.slope_error() * quantile(x.count)))?;
    }
}

fn quantile(count: usize) -> f64 {
    let zigzag = |k: usize| (i64::try_from(k).unwrap() * SECOND, [0.0, 1.0][k % 2]);
    let zigzag: Samples = (0..count).map(zigzag).collect();
    let at = Params::instant(zigzag.last().unwrap().0);
    ask("trend_margin_over_time(x[1d], 0.95)", &zigzag, &at)[0].1 / Exact::of(&zigzag).slope_error()
}

/// The samples are a steep line with little scatter, and values at 2^53 that change by one.
#[test]
fn cancellation_loses_no_digits() {
    let steep = |k: i64| (k * SECOND, k as f64 * 1e6 + [0.0, 0.01, -0.02][k as usize % 3]);
    let steep: Samples = (0..300).map(steep).collect();
    let large: Samples = (0..300).map(|k| (k * SECOND, 9_007_199_254_740_992.0 - (k % 2) as f64)).collect();
    for samples in [steep, large] {
        let slope = |x: &Exact, _: i64| Expect { exact: x.slope(), size: x.slope_max() };
        check("deriv(x[290s])", &samples, (1, 290), 2, slope).unwrap();
        check("stddev_over_time(x[290s])", &samples, (1, 290), 1, |x, _| as_it_is(x.deviation())).unwrap();
        let margin = |x: &Exact, _: i64| as_it_is(x.slope_error() * quantile(x.count));
        check("trend_margin_over_time(x[290s], 0.95)", &samples, (1, 290), 3, margin).unwrap();
    }
}
