//! What is the variance of values?
//!
//! The mean is kept in two doubles. If values are 2^53 times larger than their differences, the rounding error of a mean in one
//! double is as large as these differences. Squared differences from the mean are never negative, so they do not cancel.
//! Therefore the squares of a block are added in plain doubles. Only the sums of blocks are added with compensation.

use super::double_double::{DoubleDouble, exponent_for, exponent_of, scale, scale_down};
use super::fold::{Fold, LANES, Mean, Neumaier, count_of};

/// Number of values whose squares are summed without compensation.
const BLOCK: usize = 256;

/// Population variance. For a slice, the mean is computed before the squares; joins follow T. F. Chan, G. H. Golub and
/// R. J. LeVeque, "Algorithms for Computing the Sample Variance", The American Statistician 37 (1983).
#[derive(Clone)]
pub struct Variance {
    count: f64,
    /// Values are divided by 2^exponent, so that their squares neither overflow nor underflow.
    exponent: i32,
    mean: DoubleDouble,
    squares: Neumaier,
}

impl Variance {
    /// Sample standard deviation (its divisor is the count minus one); `None` for a single value.
    pub fn deviation_of_sample(&self) -> Option<f64> {
        (self.count > 1.0).then(|| self.root_by(self.count - 1.0))
    }

    /// The standard deviation with the divisor `count`. It is correct even if the variance overflows or underflows.
    fn root_by(&self, count: f64) -> f64 {
        let deviation = (self.squares.total() / count).sqrt();
        if self.exponent == 0 { deviation } else { scale(deviation, self.exponent) }
    }

    /// Mean and squares of values that are already divided by 2^`exponent`.
    fn of_plain(values: &[f64], exponent: i32) -> Self {
        let count = count_of(values);
        let mean = Mean::of(values).end();
        let (mut squares, mut off) = (Neumaier::default(), Neumaier::default());
        for block in values.chunks(BLOCK) {
            let (of_block, off_block) = squares_of(block, mean);
            squares.add(of_block);
            off.add(off_block);
        }
        // The rounding error of the mean is the average of the differences from it. `squares` contains the square of this error
        // once for each value.
        let off = off.total() / count;
        squares.add(-off * off * count);
        if squares.total() < 0.0 {
            squares = Neumaier::default();
        }
        Self { count, exponent, mean: DoubleDouble::sum(mean, off), squares }
    }

    /// The same variance with values divided by a larger power of two. If all values are 0, any power of two is allowed.
    fn rescaled(&self, exponent: i32) -> Self {
        let less = scale_down(self.exponent, exponent);
        let mut squares = self.squares;
        squares.scale(less);
        squares.scale(less);
        Self { count: self.count, exponent, mean: self.mean.scaled(less), squares }
    }

    fn is_zero(&self) -> bool {
        self.mean.hi == 0.0 && self.squares.total() == 0.0
    }

    fn join_scaled(&mut self, later: &Self) {
        let off = later.mean.subtract(self.mean).value();
        self.squares.join(&later.squares);
        self.shift(off, later.count);
    }

    /// Adds `count` values whose mean differs from the current mean by `off`. The squared differences of these values from their
    /// own mean were added before. The new mean needs all digits. For its difference from the old mean, a plain double is
    /// enough: the rounding error is some 2^-53 of `off`, and the sum of squares grows in proportion to the square of `off`.
    #[inline]
    fn shift(&mut self, off: f64, count: f64) {
        let share = count / (self.count + count);
        self.mean = self.mean.add_double(off * share);
        self.squares.add(off * off * (self.count * share));
        self.count += count;
    }
}

/// Two sums in lanes: the squared differences from the mean, and the differences.
fn squares_of(values: &[f64], mean: f64) -> (f64, f64) {
    let (mut squares, mut off) = ([0.0; LANES], [0.0; LANES]);
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut take = |lane: usize, value: f64| {
        let delta = value - mean;
        squares[lane] += delta * delta;
        off[lane] += delta;
    };
    for block in blocks {
        (0..LANES).for_each(|lane| take(lane, block[lane]));
    }
    rest.iter().for_each(|value| take(0, *value));
    (squares.iter().sum(), off.iter().sum())
}

impl Fold for Variance {
    fn new(first: f64) -> Self {
        let exponent = exponent_for(first.abs());
        // The variance of an infinity or NaN is NaN.
        let squares = Neumaier::new(if first.is_finite() { 0.0 } else { f64::NAN });
        Self { count: 1.0, exponent, mean: DoubleDouble { hi: scale(first, -exponent), lo: 0.0 }, squares }
    }

    #[inline]
    fn add(&mut self, value: f64) {
        if self.exponent == 0 && exponent_for(value.abs()) == 0 {
            // `off` is NaN if a value is not finite.
            let off = DoubleDouble::sum(value, -self.mean.hi);
            self.shift(off.hi + (off.lo - self.mean.lo), 1.0);
        } else {
            self.join(&Self::new(value));
        }
    }

    fn end(&self) -> f64 {
        let variance = self.squares.total() / self.count;
        if self.exponent == 0 { variance } else { scale(variance, 2 * self.exponent) }
    }

    fn join(&mut self, later: &Self) {
        if self.exponent == later.exponent {
            return self.join_scaled(later);
        }
        // If all values are 0, they have no exponent of their own.
        let exponent = match (self.is_zero(), later.is_zero()) {
            (true, _) => later.exponent,
            (_, true) => self.exponent,
            _ => self.exponent.max(later.exponent),
        };
        *self = self.rescaled(exponent);
        self.join_scaled(&later.rescaled(exponent));
    }

    fn of(values: &[f64]) -> Self {
        let exponent = exponent_of(values);
        if exponent == 0 {
            return Self::of_plain(values, 0);
        }
        let scaled: Vec<f64> = values.iter().map(|value| scale(*value, -exponent)).collect();
        Self::of_plain(&scaled, exponent)
    }
}

/// Population standard deviation.
#[derive(Clone)]
pub struct Deviation(Variance);

impl Fold for Deviation {
    fn new(first: f64) -> Self {
        Self(Variance::new(first))
    }

    fn add(&mut self, value: f64) {
        self.0.add(value);
    }

    fn end(&self) -> f64 {
        self.0.root_by(self.0.count)
    }

    fn join(&mut self, later: &Self) {
        self.0.join(&later.0);
    }

    fn of(values: &[f64]) -> Self {
        Self(Variance::of(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_of_infinity_or_nan_is_nan() {
        assert!(Variance::of(&[1.0, f64::INFINITY]).end().is_nan());
        assert!(Variance::of(&[f64::INFINITY]).end().is_nan());
        assert!(Variance::of(&[f64::NAN]).end().is_nan());
    }

    #[test]
    fn the_variance_of_equal_values_is_zero() {
        for value in [0.1, 5e-324, 1e308, -f64::MAX, 9_007_199_254_740_993.0] {
            assert_eq!(Variance::of(&[value; 1_000]).end(), 0.0, "{value}");
            let mut joined = Variance::of(&[value; 7]);
            joined.join(&Variance::of(&[value; 600]));
            joined.add(value);
            assert_eq!(joined.end(), 0.0, "{value}");
        }
    }
}
