//! Which line fits the samples of a window best, and how well does it fit?
//!
//! [`Moments`] are sufficient for the line; [`Fit`] also holds the sum of the squared residuals. The moments of two adjacent sets
//! of samples can be joined, and so can their fits. Step after: `functions/trend.rs`.

use std::borrow::Cow;

use tacho_model::Timestamp;

use super::digest::Digest;
use super::double_double::{DoubleDouble, scale, scale_down, split, two_product, two_sum};
use super::even_sums::{EvenSums, Extremes, half_steps};
use super::fold::{LANES, count_of};
use super::series::{At, Run};

const SECOND: f64 = 1e9;
/// Limit on the distance of a prediction, in seconds. A larger distance in nanoseconds cannot be split into two
/// doubles, and only the slope matters.
const AHEAD_MAX: f64 = 1e250;
/// Relative precision of a pair of doubles. A smaller distance from the line is a rounding error and counts as 0.
const NOISE: f64 = 1.0 / (1_u128 << 98) as f64;
/// Ratio of the mean square of the residuals to the squared spread of the values. Above this ratio plain doubles are
/// accurate enough: their rounding errors (at most 2^-48 of the spread for a residual) change the sum of squares by
/// less than 2^-39 of the sum.
const SCATTER_PLAIN_MIN: f64 = 1.0 / 65_536.0;

/// First and second moments of times and values. Values are summed as differences from one number, the pivot. The pivot is one of
/// the values, or 0 if the times are evenly spaced and the values differ widely. Therefore all digits of the differences are
/// kept, also of large values.
#[derive(Clone, Debug)]
pub struct Moments {
    pub count: f64,
    /// Values are divided by 2^exponent, so that products neither overflow nor underflow.
    exponent: i32,
    /// Times are relative to this time.
    origin: Timestamp,
    /// The pivot, and the sum of the differences of all values from it.
    pivot: f64,
    values: DoubleDouble,
    /// Sum of the products (time - mean time) * value.
    both: DoubleDouble,
    spacing: Spacing,
}

/// Moments of the times.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    /// The times have a constant step in ns, from which all their moments follow. In this case `both` counts times in
    /// half steps.
    Even { step: i64 },
    /// Mean of the times, and the sum of the squared differences from the mean. In this case `both` counts times in
    /// nanoseconds.
    Any { mean: DoubleDouble, squares: DoubleDouble },
}

impl Moments {
    /// Slope of the line, value per second. NaN for fewer than two samples.
    #[expect(clippy::cast_precision_loss, reason = "rounding a step changes at most 2^-53 of the slope")]
    pub fn slope(&self) -> f64 {
        let slope = match self.spacing {
            // Plain doubles are accurate enough here, because each operation changes only the last digit.
            Spacing::Even { step } => {
                let count = self.count;
                self.both.value() * 6.0 / (count * (count * count - 1.0)) / (step as f64)
            }
            Spacing::Any { squares, .. } => self.both.divide(squares).value(),
        };
        scale(slope * SECOND, self.exponent)
    }

    /// Value of the line, `ahead` seconds after `time`.
    pub fn value_at(&self, time: Timestamp, ahead: f64) -> f64 {
        if ahead.abs() > AHEAD_MAX {
            return self.value_at(time, 0.0) + self.slope() * ahead;
        }
        let ahead = DoubleDouble::product(ahead, SECOND);
        let after = since(self.origin, time).subtract(self.mean_time()).add(ahead);
        let value = self.mean_value().add(self.slope_scaled().multiply(after)).add_double(self.pivot);
        scale(value.value(), self.exponent)
    }

    /// Slope as value per nanosecond.
    fn slope_scaled(&self) -> DoubleDouble {
        match self.spacing {
            Spacing::Even { step } => {
                self.slope_of_half_steps().scaled(2.0).divide(DoubleDouble::of_integer(step))
            }
            Spacing::Any { squares, .. } => self.both.divide(squares),
        }
    }

    /// Slope as value per half step, for evenly spaced times. The squares of the half steps from the middle have the
    /// sum n (n^2 - 1) / 3.
    fn slope_of_half_steps(&self) -> DoubleDouble {
        self.both.multiply_double(3.0).divide(cube_less_one(self.count))
    }

    fn mean_time(&self) -> DoubleDouble {
        match self.spacing {
            Spacing::Even { step } => {
                DoubleDouble::of_integer(step).multiply_double(self.count - 1.0).scaled(0.5)
            }
            Spacing::Any { mean, .. } => mean,
        }
    }

    /// Sum of the squared differences of the times from their mean.
    fn squares(&self) -> DoubleDouble {
        match self.spacing {
            Spacing::Even { step } => {
                let step = DoubleDouble::of_integer(step);
                step.multiply(step).multiply(cube_less_one(self.count).divide_double(12.0))
            }
            Spacing::Any { squares, .. } => squares,
        }
    }

    /// Mean of the values minus the pivot.
    fn mean_value(&self) -> DoubleDouble {
        self.values.divide_double(self.count)
    }

    /// Increases the exponent. If all values are 0, any exponent is allowed.
    fn rescale(&mut self, exponent: i32) {
        let less = scale_down(self.exponent, exponent);
        self.pivot *= less;
        self.values = self.values.scaled(less);
        self.both = self.both.scaled(less);
        self.exponent = exponent;
    }

    /// The larger exponent of two sets of values. `is_zero`: all values of the set are 0, so it has no exponent of its own.
    fn common_exponent(&self, later: &Self, is_zero: [bool; 2]) -> i32 {
        match is_zero {
            [true, _] => later.exponent,
            [_, true] => self.exponent,
            _ => self.exponent.max(later.exponent),
        }
    }

    fn is_zero(&self) -> bool {
        self.pivot == 0.0 && self.values.hi == 0.0 && self.both.hi == 0.0
    }

    /// The common step of both sets, if the samples of `later` continue the samples of `self` at the same step. A single sample
    /// has no step of its own.
    #[expect(clippy::cast_possible_truncation, reason = "a count is a whole number")]
    fn step_with(&self, later: &Self) -> Option<i64> {
        let (Spacing::Even { step }, Spacing::Even { step: another }) = (self.spacing, later.spacing) else {
            return None;
        };
        let distance = i128::from(later.origin) - i128::from(self.origin);
        let step = match (self.count, later.count) {
            (1.0, 1.0) => i64::try_from(distance).ok()?,
            (1.0, _) => another,
            (_, 1.0) => step,
            _ if step == another => step,
            _ => return None,
        };
        (distance == i128::from(step) * self.count as i128).then_some(step)
    }

    /// The sum of the differences of the later values from the pivot of `self`, and the difference of the two means, multiplied
    /// by both counts.
    fn off(&self, later: &Self) -> (DoubleDouble, DoubleDouble) {
        let apart = DoubleDouble::sum(later.pivot, -self.pivot);
        let moved = if apart.hi == 0.0 { DoubleDouble::ZERO } else { apart.multiply_count(later.count) };
        let values = later.values.add(moved);
        (values, values.multiply_count(self.count).subtract(self.values.multiply_count(later.count)))
    }

    fn join_scaled(&mut self, later: &Self) {
        let (values, off) = self.off(later);
        if let Some(step) = self.step_with(later) {
            // In half steps, the distance between the mean times equals the number of samples of both sets. So the factor
            // `time / count` of `join_times` is 1.
            self.both = self.both.add(later.both).add(off);
            self.spacing = Spacing::Even { step };
        } else {
            self.join_times(later, off);
        }
        self.values = self.values.add(values);
        self.count += later.count;
    }

    /// Joins moments for any times: P. Pebay, "Formulas for Robust, One-Pass Parallel Computation of Covariances and
    /// Arbitrary-Order Statistical Moments", SAND2008-6212 (2008).
    fn join_times(&mut self, later: &Self, off: DoubleDouble) {
        let [(mean, squares, both), (_, later_squares, later_both)] = [&*self, later].map(Self::of_any);
        let count = self.count + later.count;
        let time = self.time_to(later);
        let share = DoubleDouble { hi: later.count, lo: 0.0 }.divide_double(count);
        let shared = time.multiply(share);
        let between = time.multiply(shared).multiply_double(self.count);
        self.both = both.add(later_both).add(off.divide_double(count).multiply(time));
        let (mean, squares) = (mean.add(shared), squares.add(later_squares).add(between));
        self.spacing = Spacing::Any { mean, squares };
    }

    /// Mean of the times, sum of their squared differences from the mean, and `both`, all with times in nanoseconds.
    fn of_any(&self) -> (DoubleDouble, DoubleDouble, DoubleDouble) {
        match self.spacing {
            Spacing::Even { step } => {
                let both = self.both.multiply(DoubleDouble::of_integer(step)).scaled(0.5);
                (self.mean_time(), self.squares(), both)
            }
            Spacing::Any { mean, squares } => (mean, squares, self.both),
        }
    }

    /// Distance from the mean of these times to the mean of the later times.
    fn time_to(&self, later: &Self) -> DoubleDouble {
        later.mean_time().add(since(self.origin, later.origin)).subtract(self.mean_time())
    }

    fn of_scaled(at: At<'_>, values: &Scaled<'_>) -> Self {
        match at {
            At::Regular { start, step } => Self::regular(start, step, values),
            At::Explicit(at) => Self::explicit(at, &values.values, values.exponent),
        }
    }

    /// The time of a sample is its distance from the middle in half steps, a small integer. These times have the sum 0, so any
    /// number may be subtracted from the values instead of their mean.
    fn regular(start: Timestamp, step: i64, of: &Scaled<'_>) -> Self {
        let EvenSums { pivot, values, both } = EvenSums::of(&of.values, of.extremes);
        let (count, exponent) = (count_of(&of.values), of.exponent);
        Self { count, exponent, origin: start, pivot, values, both, spacing: Spacing::Even { step } }
    }

    /// Times are relative to their mean, rounded down to whole nanoseconds. They are integers, and their sum is less than their
    /// count.
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 nanoseconds and samples")]
    fn explicit(at: &[Timestamp], values: &[f64], exponent: i32) -> Self {
        let (origin, pivot) = (at[0], values[0]);
        if at[at.len() - 1].abs_diff(origin) > EXACT_MAX {
            return Self::explicit_long(at, values, exponent);
        }
        let count = i128::try_from(at.len()).unwrap_or(i128::MAX);
        let after: i128 = at.iter().map(|at| i128::from(at - origin)).sum();
        let (middle, times_left) = (after.div_euclid(count), after.rem_euclid(count) as f64);
        let middle = i64::try_from(middle).unwrap_or_default();
        let count = values.len() as f64;
        let (mut sums, mut squares) = (Sums::default(), Lanes::default());
        for (times, block) in at.chunks(LANES).zip(values.chunks(LANES)) {
            for (lane, (at, value)) in times.iter().zip(block).enumerate() {
                let time = (at - origin - middle) as f64;
                sums.add(lane, time, *value, pivot);
                let (square, error) = two_product(time, time);
                squares.add(lane, square, error);
            }
        }
        let (values, both) = (sums.values.joined(), sums.both.joined());
        let off = DoubleDouble { hi: times_left, lo: 0.0 }.divide_double(count);
        let mean = DoubleDouble::of_integer(middle).add(off);
        let squares = squares.joined().subtract(off.multiply_double(times_left));
        let both = both.subtract(values.multiply(off));
        Self { count, exponent, origin, pivot, values, both, spacing: Spacing::Any { mean, squares } }
    }

    /// Moments for times that are too far apart for exact doubles.
    #[expect(clippy::cast_precision_loss, reason = "a run holds fewer than 2^53 samples")]
    fn explicit_long(at: &[Timestamp], values: &[f64], exponent: i32) -> Self {
        let (origin, pivot) = (at[0], values[0]);
        let count = values.len() as f64;
        let zero = DoubleDouble::ZERO;
        let (mut time_sum, mut value_sum) = (zero, zero);
        for (at, value) in at.iter().zip(values) {
            time_sum = time_sum.add(since(origin, *at));
            value_sum = value_sum.add(DoubleDouble::sum(*value, -pivot));
        }
        let (mean, mean_value) = (time_sum.divide_double(count), value_sum.divide_double(count));
        let (mut squares, mut both) = (zero, zero);
        for (at, value) in at.iter().zip(values) {
            let time = since(origin, *at).subtract(mean);
            let value = DoubleDouble::sum(*value, -pivot).subtract(mean_value);
            squares = squares.add(time.multiply(time));
            both = both.add(time.multiply(value));
        }
        let spacing = Spacing::Any { mean, squares };
        Self { count, exponent, origin, pivot, values: value_sum, both, spacing }
    }
}

/// Nanoseconds from one time to another.
fn since(origin: Timestamp, at: Timestamp) -> DoubleDouble {
    match at.checked_sub(origin) {
        Some(ns) => DoubleDouble::of_integer(ns),
        None => DoubleDouble::of_integer(at).subtract(DoubleDouble::of_integer(origin)),
    }
}

/// Up to this number of nanoseconds, every integer is exact in a double: 104 days.
const EXACT_MAX: u64 = 1 << 53;

/// n (n^2 - 1), for evenly spaced times.
fn cube_less_one(count: f64) -> DoubleDouble {
    DoubleDouble::product(count, count).add_double(-1.0).multiply_double(count)
}

/// A sum in lanes, with separate high and low halves, so that the processor adds in parallel.
#[derive(Clone, Copy, Default)]
struct Lanes {
    hi: [f64; LANES],
    lo: [f64; LANES],
}

impl Lanes {
    /// The low halves are added without compensation, because their rounding error is 2^-106 of the sum.
    #[inline]
    fn add(&mut self, lane: usize, value: f64, rest: f64) {
        let (sum, error) = two_sum(self.hi[lane], value);
        self.hi[lane] = sum;
        self.lo[lane] += error + rest;
    }

    fn joined(&self) -> DoubleDouble {
        let each = self.hi.iter().zip(self.lo);
        let (hi, lo) = each.fold((0.0, 0.0), |(sum, low), (hi, lo)| {
            let (sum, error) = two_sum(sum, *hi);
            (sum, low + (error + lo))
        });
        DoubleDouble::sum(hi, lo)
    }
}

/// Two sums: (value - pivot), and the product of (value - pivot) with an integer time.
#[derive(Clone, Copy, Default)]
struct Sums {
    values: Lanes,
    both: Lanes,
}

impl Sums {
    /// For times that are exact in a double.
    #[inline]
    fn add(&mut self, lane: usize, time: f64, value: f64, pivot: f64) {
        let (value, rest) = two_sum(value, -pivot);
        self.values.add(lane, value, rest);
        let (product, error) = two_product(time, value);
        self.both.add(lane, product, error + time * rest);
    }
}

impl Digest for Moments {
    fn of(run: &Run<'_>) -> Self {
        Self::of_scaled(run.at, &Scaled::of(run.values))
    }

    fn join(&mut self, later: &Self) {
        if self.exponent == later.exponent {
            return self.join_scaled(later);
        }
        let exponent = self.common_exponent(later, [self.is_zero(), later.is_zero()]);
        let mut later = later.clone();
        self.rescale(exponent);
        later.rescale(exponent);
        self.join_scaled(&later);
    }
}

/// Values divided by 2^exponent, so that their products neither overflow nor underflow.
struct Scaled<'a> {
    values: Cow<'a, [f64]>,
    exponent: i32,
    extremes: Extremes,
}

impl<'a> Scaled<'a> {
    fn of(values: &'a [f64]) -> Self {
        let extremes = Extremes::of(values);
        let exponent = extremes.exponent();
        if exponent == 0 {
            return Self { values: Cow::Borrowed(values), exponent, extremes };
        }
        let scaled = |value: f64| scale(value, -exponent);
        let extremes = Extremes { least: scaled(extremes.least), largest: scaled(extremes.largest) };
        let values = values.iter().map(|value| scaled(*value)).collect();
        Self { values: Cow::Owned(values), exponent, extremes }
    }
}

/// A line and the sum of the squared residuals. Each residual is computed directly, and joining two lines only adds squares of
/// differences of slopes. So no digits are lost by subtracting two large sums.
#[derive(Clone, Debug)]
pub struct Fit {
    moments: Moments,
    scatter: f64,
}

impl Fit {
    pub fn count(&self) -> f64 {
        self.moments.count
    }

    /// Value per second.
    pub fn slope(&self) -> f64 {
        self.moments.slope()
    }

    /// Standard error of the slope, value per second. `None` for fewer than three samples.
    pub fn slope_error(&self) -> Option<f64> {
        let Moments { count, exponent, .. } = self.moments;
        (count > 2.0).then(|| {
            let variance = self.scatter / (count - 2.0) / self.moments.squares().value();
            scale(variance.sqrt() * SECOND, exponent)
        })
    }

    fn scatter_of(moments: &Moments, run: &Run<'_>, of: &Scaled<'_>) -> f64 {
        if moments.count < 3.0 {
            return 0.0;
        }
        let values = &*of.values;
        if let Spacing::Even { .. } = moments.spacing {
            let spread = of.extremes.largest - of.extremes.least;
            let scatter = Self::scatter_plain(moments, values);
            let is_accurate = scatter >= moments.count * SCATTER_PLAIN_MIN * spread * spread;
            return if is_accurate { scatter } else { Self::scatter_even(moments, values) };
        }
        let (slope, mean_time, mean_value) =
            (moments.slope_scaled(), moments.mean_time(), moments.mean_value());
        let square = |(index, value): (usize, &f64)| {
            let time = since(moments.origin, run.time(index)).subtract(mean_time);
            let off = DoubleDouble::sum(*value, -moments.pivot).subtract(mean_value);
            let expected = slope.multiply(time);
            let noise = NOISE * off.hi.abs().max(expected.hi.abs()).max(mean_value.hi.abs());
            let off = off.subtract(expected).value();
            // NaN is not treated as rounding error.
            if off.abs() <= noise { 0.0 } else { off * off }
        };
        values.iter().enumerate().map(square).sum()
    }

    /// As [`Fit::scatter_even`], but computed with plain doubles instead of pairs.
    fn scatter_plain(moments: &Moments, values: &[f64]) -> f64 {
        let (pivot, mean, slope) = (moments.pivot, moments.mean_value().hi, moments.slope_of_half_steps().hi);
        squares_of(values, moments.count, |time, value| {
            let off = ((value - pivot) - mean) - slope * time;
            off * off
        })
    }

    /// As [`Fit::scatter_of`], with times in half steps as in [`Moments::regular`].
    fn scatter_even(moments: &Moments, values: &[f64]) -> f64 {
        let slope = moments.slope_of_half_steps();
        let (slope_high, slope_low) = split(slope.hi);
        let (pivot, mean) = (moments.pivot, moments.mean_value());
        squares_of(values, moments.count, |time, value| {
            let value = value - pivot;
            let (off, mean_error) = two_sum(value, -mean.hi);
            let off_size = off.abs();
            let (off, high_error) = two_sum(off, -slope_high * time);
            let (off, low_error) = two_sum(off, -slope_low * time);
            let off = off + (mean_error + high_error + low_error - (mean.lo + slope.lo * time));
            let noise = NOISE * off_size.max((slope.hi * time).abs()).max(mean.hi.abs());
            // NaN is not treated as rounding error.
            if off.abs() <= noise { 0.0 } else { off * off }
        })
    }

    /// Joins two fits by Lagrange's identity, with both slopes and the slope of the line between the two means.
    fn join_scaled(&mut self, later: &Self, less: [f64; 2]) {
        let (one, other) = (&self.moments, &later.moments);
        let (values, off) = one.off(other);
        let count = one.count + other.count;
        let counts = DoubleDouble::product(one.count, other.count);
        let is_even = one.step_with(other).is_some();
        // In half steps if the samples are evenly spaced, otherwise in nanoseconds.
        let time = if is_even { DoubleDouble { hi: count, lo: 0.0 } } else { one.time_to(other) };
        let weight = time.hi * time.hi * (one.count * (other.count / count));
        let between = Slope { weight, slope: off.divide(counts.multiply(time)) };
        let slopes = [Slope::of(one, is_even), Slope::of(other, is_even), between];
        let whole: f64 = slopes.iter().map(|slope| slope.weight).sum();
        let largest = (one.values.hi / one.count).abs().max((values.hi / other.count).abs());
        let noise = NOISE * largest.max((other.pivot - one.pivot).abs()) / time.hi;
        let apart = slopes[0].apart(&slopes[1], noise, whole)
            + slopes[0].apart(&slopes[2], noise, whole)
            + slopes[1].apart(&slopes[2], noise, whole);
        self.scatter = self.scatter * less[0] * less[0] + later.scatter * less[1] * less[1] + apart;
        self.moments.join_scaled(other);
    }
}

/// Sum of a function of the time in half steps and the value, over the samples of an evenly spaced run.
#[inline]
fn squares_of(values: &[f64], count: f64, square: impl Fn(f64, f64) -> f64) -> f64 {
    let (blocks, rest) = values.as_chunks::<LANES>();
    let (mut squares, mut time) = ([0.0; LANES], half_steps(count));
    for block in blocks {
        for lane in 0..LANES {
            squares[lane] += square(time[lane], block[lane]);
            time[lane] += 2.0 * LANES as f64;
        }
    }
    let rest = rest.iter().zip(time).map(|(value, time)| square(time, *value));
    squares.into_iter().chain(rest).sum()
}

/// A slope, with the sum of the squared times from which the slope was computed.
struct Slope {
    weight: f64,
    slope: DoubleDouble,
}

impl Slope {
    /// Value per half step, or per nanosecond.
    fn of(moments: &Moments, of_half_steps: bool) -> Self {
        if of_half_steps {
            let weight = cube_less_one(moments.count).hi / 3.0;
            return Self { weight, slope: moments.slope_of_half_steps() };
        }
        Self { weight: moments.squares().value(), slope: moments.slope_scaled() }
    }

    /// The amount that the difference of two slopes adds to the sum of squared residuals.
    fn apart(&self, other: &Self, noise: f64, whole: f64) -> f64 {
        // A single sample has no slope.
        if self.weight == 0.0 || other.weight == 0.0 {
            return 0.0;
        }
        let noise = noise.max(NOISE * self.slope.hi.abs().max(other.slope.hi.abs()));
        let apart = self.slope.subtract(other.slope).value();
        if apart.abs() <= noise { 0.0 } else { apart * apart * self.weight * (other.weight / whole) }
    }
}

impl Digest for Fit {
    fn of(run: &Run<'_>) -> Self {
        let values = Scaled::of(run.values);
        let moments = Moments::of_scaled(run.at, &values);
        let scatter = Self::scatter_of(&moments, run, &values);
        Self { moments, scatter }
    }

    fn join(&mut self, later: &Self) {
        if self.moments.exponent == later.moments.exponent {
            return self.join_scaled(later, [1.0; 2]);
        }
        let is_zero = [&*self, later].map(|fit| fit.moments.is_zero() && fit.scatter == 0.0);
        let exponent = self.moments.common_exponent(&later.moments, is_zero);
        let mut later = later.clone();
        let less = [self.moments.exponent, later.moments.exponent].map(|own| scale_down(own, exponent));
        self.moments.rescale(exponent);
        later.moments.rescale(exponent);
        self.join_scaled(&later, less);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Vec<f64> {
        (0..40_u32).map(|n| 9_007_199_254_740_990.0 + f64::from(n * 7 % 11)).collect()
    }

    #[test]
    fn all_kinds_of_times_give_the_same_line() {
        let at: Vec<Timestamp> = (0..40).map(|n| 5 + n * 1_000).collect();
        let even = Moments::regular(5, 1_000, &Scaled::of(&values()));
        let kinds = [Moments::explicit(&at, &values(), 0), Moments::explicit_long(&at, &values(), 0)];
        for other in kinds {
            let off = (other.slope() / even.slope() - 1.0).abs();
            assert!(off < 1e-14, "{} and {}", other.slope(), even.slope());
            assert_eq!(other.value_at(20_005, 0.0), even.value_at(20_005, 0.0));
        }
    }

    #[test]
    fn parts_with_different_spacing_join_to_the_whole() {
        let values = values();
        let at = |n: i64| 5 + n * 1_000;
        let whole = Moments::regular(5, 1_000, &Scaled::of(&values));
        let times: Vec<Timestamp> = (10..25).map(at).collect();
        let middle = [
            Moments::regular(at(10), 1_000, &Scaled::of(&values[10..25])),
            Moments::explicit(&times, &values[10..25], 0),
        ];
        for middle in middle {
            let mut joined = Moments::regular(5, 1_000, &Scaled::of(&values[..10]));
            joined.join(&middle);
            joined.join(&Moments::regular(at(25), 1_000, &Scaled::of(&values[25..])));
            let off = (joined.slope() / whole.slope() - 1.0).abs();
            assert!(off < 1e-14, "{} and {}", joined.slope(), whole.slope());
        }
    }
}
