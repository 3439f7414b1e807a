//! Which line fits the samples of a window best, and how well?
//!
//! [`Moments`] are enough for the line itself; [`Fit`] also knows how far the samples are from it. Both join. Step after:
//! `functions/trend.rs` reads them.

use tacho_model::Timestamp;

use super::digest::Digest;
use super::double_double::{DoubleDouble, exponent_of, scale, scale_down, split, two_sum};
use super::fold::LANES;
use super::series::{At, Run};

/// Nanoseconds a second.
const SECOND: f64 = 1e9;
/// Seconds; a product of more nanoseconds cannot be split into two doubles. The slope alone counts there.
const AHEAD_MAX: f64 = 1e250;
/// What two doubles do not hold of a number: less than this part of it is rounding, and no distance from a line.
const NOISE: f64 = 1.0 / (1_u128 << 98) as f64;

/// Means of times and values, and how both scatter about them: joined as P. Pebay, "Formulas for Robust, One-Pass Parallel
/// Computation of Covariances and Arbitrary-Order Statistical Moments", SAND2008-6212 (2008). Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Moments {
    pub count: f64,
    /// Values were divided by 2^exponent, so that products neither overflow nor vanish.
    exponent: i32,
    /// Times are counted from this one.
    origin: Timestamp,
    mean_time: DoubleDouble,
    /// A value, and what the mean of all values is off it: so their differences keep all digits, however large they are.
    pivot: f64,
    mean_value: DoubleDouble,
    /// Sums over squares of times less their mean, and over products of such times and values less their mean.
    times: DoubleDouble,
    both: DoubleDouble,
}

impl Moments {
    /// Of the line, value a second. NaN for less than two samples.
    pub fn slope(&self) -> f64 {
        scale(self.slope_scaled().value() * SECOND, self.exponent)
    }

    /// Of the line, so many seconds after a time.
    pub fn value_at(&self, time: Timestamp, ahead: f64) -> f64 {
        if ahead.abs() > AHEAD_MAX {
            return self.value_at(time, 0.0) + self.slope() * ahead;
        }
        let ahead = DoubleDouble::product(ahead, SECOND);
        let after = since(self.origin, time).subtract(self.mean_time).add(ahead);
        let value = self.mean_value.add(self.slope_scaled().multiply(after)).add_double(self.pivot);
        scale(value.value(), self.exponent)
    }

    /// Value a nanosecond.
    fn slope_scaled(&self) -> DoubleDouble {
        self.both.divide(self.times)
    }

    /// To a larger exponent, or, if all is 0, to any.
    fn rescale(&mut self, exponent: i32) {
        let less = scale_down(self.exponent, exponent);
        self.pivot *= less;
        self.mean_value = self.mean_value.scaled(less);
        self.both = self.both.scaled(less);
        self.exponent = exponent;
    }

    /// The exponent under which two sets of values can be looked at together: the larger one, where `is_zero` does not say that
    /// there are only zeros, which have no exponent of their own.
    fn common_exponent(&self, later: &Self, is_zero: [bool; 2]) -> i32 {
        match is_zero {
            [true, _] => later.exponent,
            [_, true] => self.exponent,
            _ => self.exponent.max(later.exponent),
        }
    }

    fn is_zero(&self) -> bool {
        self.pivot == 0.0 && self.mean_value.hi == 0.0 && self.both.hi == 0.0
    }

    /// What later samples are off: the means of time and value, and the weight of that.
    fn off(&self, later: &Self) -> (DoubleDouble, DoubleDouble, DoubleDouble) {
        let later_time = later.mean_time.add(since(self.origin, later.origin));
        let time = later_time.subtract(self.mean_time);
        let value =
            DoubleDouble::sum(later.pivot, -self.pivot).add(later.mean_value).subtract(self.mean_value);
        let weight = DoubleDouble::product(self.count, later.count).divide_double(self.count + later.count);
        (time, value, weight)
    }

    fn join_scaled(&mut self, later: &Self) {
        let (time, value, weight) = self.off(later);
        let weighted = time.multiply(weight);
        self.times = self.times.add(later.times).add(time.multiply(weighted));
        self.both = self.both.add(later.both).add(value.multiply(weighted));
        let share = weight.divide_double(self.count);
        self.mean_time = self.mean_time.add(time.multiply(share));
        self.mean_value = self.mean_value.add(value.multiply(share));
        self.count += later.count;
    }

    /// Of values that need no scaling.
    fn of_plain(at: At<'_>, values: &[f64], exponent: i32) -> Self {
        match at {
            At::Regular { start, step } => Self::regular(start, step, values, exponent),
            At::Explicit(at) => Self::explicit(at, values, exponent),
        }
    }

    /// The time of a sample is its distance from the middle, in half steps: a small whole number. The sum of all of them is 0, so
    /// that any value may stand for the mean of the values.
    #[expect(clippy::cast_precision_loss, reason = "a run holds less than 2^53 samples")]
    fn regular(start: Timestamp, step: i64, values: &[f64], exponent: i32) -> Self {
        let pivot = values[0];
        let (blocks, rest) = values.as_chunks::<LANES>();
        let count = values.len() as f64;
        let mut lanes = [Sums::default(); LANES];
        let mut time = [0.0, 2.0, 4.0, 6.0].map(|half_steps| half_steps - (count - 1.0));
        for block in blocks {
            for lane in 0..LANES {
                lanes[lane].add(time[lane], block[lane], pivot);
                time[lane] += 2.0 * LANES as f64;
            }
        }
        for (lane, value) in rest.iter().enumerate() {
            lanes[lane].add(time[lane], *value, pivot);
        }
        let sums = Sums::joined(&lanes);
        let step = DoubleDouble::of_integer(step);
        let half_step = step.scaled(0.5);
        let weights =
            DoubleDouble::product(count, count).add_double(-1.0).multiply_double(count).divide_double(12.0);
        Self {
            count,
            exponent,
            origin: start,
            mean_time: half_step.multiply_double(count - 1.0),
            pivot,
            mean_value: sums.values.divide_double(count),
            times: step.multiply(step).multiply(weights),
            both: half_step.multiply(sums.both),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a run holds less than 2^53 samples")]
    fn explicit(at: &[Timestamp], values: &[f64], exponent: i32) -> Self {
        let (origin, pivot) = (at[0], values[0]);
        let count = values.len() as f64;
        let zero = DoubleDouble::ZERO;
        let (mut time_sum, mut value_sum) = (zero, zero);
        for (at, value) in at.iter().zip(values) {
            time_sum = time_sum.add(since(origin, *at));
            value_sum = value_sum.add(DoubleDouble::sum(*value, -pivot));
        }
        let (mean_time, mean) = (time_sum.divide_double(count), value_sum.divide_double(count));
        let (mut times, mut both) = (zero, zero);
        for (at, value) in at.iter().zip(values) {
            let time = since(origin, *at).subtract(mean_time);
            let value = DoubleDouble::sum(*value, -pivot).subtract(mean);
            times = times.add(time.multiply(time));
            both = both.add(time.multiply(value));
        }
        Self { count, exponent, origin, mean_time, pivot, mean_value: mean, times, both }
    }
}

/// Nanoseconds from one time to another.
fn since(origin: Timestamp, at: Timestamp) -> DoubleDouble {
    match at.checked_sub(origin) {
        Some(ns) => DoubleDouble::of_integer(ns),
        None => DoubleDouble::of_integer(at).subtract(DoubleDouble::of_integer(origin)),
    }
}

/// Sums over values less a pivot, and over their products with times that are small whole numbers.
#[derive(Clone, Copy, Default)]
struct Sums {
    values: DoubleDouble,
    both: DoubleDouble,
}

impl Sums {
    /// The low halves are added as they come: what they lose in turn is 2^-106 of the sum.
    #[inline]
    fn add(&mut self, time: f64, value: f64, pivot: f64) {
        let (value, rest) = two_sum(value, -pivot);
        let (sum, error) = two_sum(self.values.hi, value);
        self.values.hi = sum;
        self.values.lo += error + rest;
        // Half of a value's digits times a time of up to 26 bits is exact.
        let (high, low) = split(value);
        let (sum, error) = two_sum(self.both.hi, time * high);
        let (sum, low_error) = two_sum(sum, time * low);
        self.both.hi = sum;
        self.both.lo += error + low_error + time * rest;
    }

    fn joined(lanes: &[Self]) -> Self {
        let zero = DoubleDouble::ZERO;
        let normal = |sum: DoubleDouble| DoubleDouble::sum(sum.hi, sum.lo);
        let values = lanes.iter().fold(zero, |sum, lane| sum.add(normal(lane.values)));
        let both = lanes.iter().fold(zero, |sum, lane| sum.add(normal(lane.both)));
        Self { values, both }
    }
}

impl Digest for Moments {
    fn of(run: &Run<'_>) -> Self {
        let exponent = exponent_of(run.values);
        if exponent == 0 {
            return Self::of_plain(run.at, run.values, 0);
        }
        Self::of_plain(run.at, &scaled(run.values, exponent), exponent)
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

fn scaled(values: &[f64], exponent: i32) -> Vec<f64> {
    values.iter().map(|value| scale(*value, -exponent)).collect()
}

/// A line, and the sum of the squares of what samples are off it. That sum is never a difference of larger ones: each sample's
/// distance is taken by itself, and when two lines join only squares are added, of what their slopes are apart.
#[derive(Clone, Debug)]
pub struct Fit {
    moments: Moments,
    scatter: f64,
}

impl Fit {
    pub fn count(&self) -> f64 {
        self.moments.count
    }

    /// Value a second.
    pub fn slope(&self) -> f64 {
        self.moments.slope()
    }

    /// Standard error of the slope, value a second. None for less than three samples.
    pub fn slope_error(&self) -> Option<f64> {
        let Moments { count, exponent, times, .. } = self.moments;
        (count > 2.0).then(|| {
            let variance = self.scatter / (count - 2.0) / times.value();
            scale(variance.sqrt() * SECOND, exponent)
        })
    }

    fn scatter_of(moments: &Moments, run: &Run<'_>, values: &[f64]) -> f64 {
        if moments.count < 3.0 {
            return 0.0;
        }
        let slope = moments.slope_scaled();
        let square = |(index, value): (usize, &f64)| {
            let time = since(moments.origin, run.time(index)).subtract(moments.mean_time);
            let off = DoubleDouble::sum(*value, -moments.pivot).subtract(moments.mean_value);
            let expected = slope.multiply(time);
            let noise = NOISE * off.hi.abs().max(expected.hi.abs()).max(moments.mean_value.hi.abs());
            let off = off.subtract(expected).value();
            // NaN is no noise.
            if off.abs() <= noise { 0.0 } else { off * off }
        };
        values.iter().enumerate().map(square).sum()
    }

    /// By Lagrange's identity, with the slopes of both and of the line from mean to mean.
    fn join_scaled(&mut self, later: &Self, less: [f64; 2]) {
        let (time, value, weight) = self.moments.off(&later.moments);
        let between =
            Slope { weight: time.multiply(time).multiply(weight).value(), slope: value.divide(time) };
        let slopes = [Slope::of(&self.moments), Slope::of(&later.moments), between];
        let whole: f64 = slopes.iter().map(|slope| slope.weight).sum();
        let pivots = (later.moments.pivot - self.moments.pivot).abs();
        let values = [&self.moments, &later.moments].map(|moments| moments.mean_value.hi.abs());
        let noise = NOISE * values[0].max(values[1]).max(pivots) / time.hi;
        let apart = slopes[0].apart(&slopes[1], noise, whole)
            + slopes[0].apart(&slopes[2], noise, whole)
            + slopes[1].apart(&slopes[2], noise, whole);
        self.scatter = self.scatter * less[0] * less[0] + later.scatter * less[1] * less[1] + apart;
        self.moments.join_scaled(&later.moments);
    }
}

/// A slope, with the sum of the squares of the times that it is known from.
struct Slope {
    weight: f64,
    slope: DoubleDouble,
}

impl Slope {
    fn of(moments: &Moments) -> Self {
        Self { weight: moments.times.value(), slope: moments.slope_scaled() }
    }

    /// What it adds to the scatter that two slopes differ.
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
        let exponent = exponent_of(run.values);
        let scaled = (exponent != 0).then(|| scaled(run.values, exponent));
        let values = scaled.as_deref().unwrap_or(run.values);
        let moments = Moments::of_plain(run.at, values, exponent);
        let scatter = Self::scatter_of(&moments, run, values);
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
