//! What is the sum of values at evenly spaced times, and what is the sum of the products of these values and times?
//!
//! The difference of each value from one number, the pivot, is split into a multiple of a power of two (the unit) and a rest.
//! The split adds and subtracts one constant (S. M. Rump, T. Ogita, S. Oishi, "Accurate Floating-Point Summation Part I:
//! Faithful Rounding", SIAM J. Sci. Comput. 31 (2008), algorithm 3.2). Counted in units, the multiples are integers of at most
//! 32 bits. Their sums, and the sums of their products with small integers, are below 2^53, so plain additions of doubles are
//! exact. A rest is at most half a unit, so adding the rests causes rounding errors below about 2^-77 of the largest term. If
//! all rests are 0, the sums of a block have no rounding error.
//!
//! Step after: `line.rs`.

use super::double_double::{DoubleDouble, exponent_for, power_of_two};
use super::fold::LANES;

/// Number of samples up to which the sums of the multiples are exact. The times of a block have 10 bits, a lane adds 2^8
/// products, and all lanes together add 2^10 products.
const BLOCK: usize = 1024;
/// Bits of the multiples without the sign. The sum of their products with a block's times is less than 2^51 = 2^(31 + 10 + 10).
const BITS: i32 = 31;

/// The smallest and the largest value; NaN is ignored.
#[derive(Clone, Copy, Debug)]
pub struct Extremes {
    pub least: f64,
    pub largest: f64,
}

impl Extremes {
    pub fn of(values: &[f64]) -> Self {
        let (mut least, mut largest) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
        let mut take = |lane: usize, value: f64| {
            least[lane] = if value < least[lane] { value } else { least[lane] };
            largest[lane] = if value > largest[lane] { value } else { largest[lane] };
        };
        let (blocks, rest) = values.as_chunks::<LANES>();
        for block in blocks {
            (0..LANES).for_each(|lane| take(lane, block[lane]));
        }
        rest.iter().for_each(|value| take(0, *value));
        let least = least.into_iter().fold(f64::INFINITY, f64::min);
        let largest = largest.into_iter().fold(f64::NEG_INFINITY, f64::max);
        Self { least, largest }
    }

    /// Exponent of the power of two by which the values must be divided so that their products are exact.
    pub fn exponent(self) -> i32 {
        exponent_for(self.largest.abs().max(self.least.abs()))
    }

    /// The number that is subtracted from all values before they are summed. If all values have the same sign and none is more
    /// than twice as far from 0 as another, the number is the smallest value, and the differences are exact (P. H. Sterbenz,
    /// "Floating-Point Computation", 1974, theorem 4.3.1). Otherwise the number is 0.
    fn pivot(self) -> f64 {
        let Self { least, largest } = self;
        let is_narrow = (least > 0.0 && largest <= 2.0 * least) || (largest < 0.0 && least >= 2.0 * largest);
        if is_narrow { least } else { 0.0 }
    }
}

/// Sums over the values of a run.
pub struct EvenSums {
    /// Values are summed as differences from this number. The differences are exact.
    pub pivot: f64,
    /// Sum of the differences.
    pub values: DoubleDouble,
    /// Sum of the products of the differences with their times, in half steps from the middle of the run.
    pub both: DoubleDouble,
}

impl EvenSums {
    /// `extremes` are those of `values`. Absolute exponents of the values must be at most 200.
    pub fn of(values: &[f64], extremes: Extremes) -> Self {
        let pivot = extremes.pivot();
        let reach = (extremes.largest - pivot).abs().max((extremes.least - pivot).abs());
        let splitter = splitter(reach);
        let (mut sum, mut both) = (DoubleDouble::ZERO, DoubleDouble::ZERO);
        let mut before = 0;
        for block in values.chunks(BLOCK) {
            let (of_block, both_of_block) = sums(block, pivot, splitter);
            // Half steps from the middle of the run to the middle of the block.
            let middle = distance(2 * before + block.len(), values.len());
            both = both.add(both_of_block);
            if middle != 0.0 {
                both = both.add(of_block.multiply_count(middle));
            }
            sum = sum.add(of_block);
            before += block.len();
        }
        Self { pivot, values: sum, both }
    }
}

/// `a - b` for two numbers of samples.
#[expect(clippy::cast_precision_loss, reason = "a run holds fewer than 2^52 samples")]
fn distance(a: usize, b: usize) -> f64 {
    a as f64 - b as f64
}

/// Distances of the first [`LANES`] samples of an evenly spaced run from the middle of the run, in half steps.
pub fn half_steps(count: f64) -> [f64; LANES] {
    [0.0, 2.0, 4.0, 6.0].map(|half_steps| half_steps - (count - 1.0))
}

/// A constant that is added to a value and subtracted again. This rounds the value to a multiple of 2^-31 of the power of two
/// above `reach`.
fn splitter(reach: f64) -> f64 {
    if reach == 0.0 || !reach.is_finite() {
        return 1.0;
    }
    let above = exponent_above(reach);
    1.5 * power_of_two(above - BITS + 52)
}

/// Exponent of a power of two that is larger than a positive, normal number.
fn exponent_above(value: f64) -> i32 {
    (value.to_bits() >> 52) as i32 - 1022
}

/// Two sums over up to [`BLOCK`] values: the differences from the pivot, and their products with the times in half steps from
/// the middle of the block.
fn sums(values: &[f64], pivot: f64, splitter: f64) -> (DoubleDouble, DoubleDouble) {
    let [mut high, mut low, mut high_both, mut low_both] = [[0.0_f64; LANES]; 4];
    let mut time = half_steps(distance(values.len(), 0));
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            let value = block[lane] - pivot;
            let multiple = (splitter + value) - splitter;
            let rest = value - multiple;
            high[lane] += multiple;
            low[lane] += rest;
            high_both[lane] += time[lane] * multiple;
            low_both[lane] += time[lane] * rest;
            time[lane] += 2.0 * LANES as f64;
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        let value = value - pivot;
        let multiple = (splitter + value) - splitter;
        let rest = value - multiple;
        high[lane] += multiple;
        low[lane] += rest;
        high_both[lane] += time[lane] * multiple;
        low_both[lane] += time[lane] * rest;
    }
    let joined = |high: [f64; LANES], low: [f64; LANES]| {
        DoubleDouble::sum(high.iter().sum::<f64>(), low.iter().sum::<f64>())
    };
    (joined(high, low), joined(high_both, low_both))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(values: &[f64]) -> EvenSums {
        EvenSums::of(values, Extremes::of(values))
    }

    /// 2^53 - 1 and slightly smaller values, whose sums need more than 53 bits.
    #[test]
    fn sums_over_several_blocks_are_exact() {
        for count in [1, 3, 1_023, 1_024, 1_025, 5_000] {
            let of = |k: usize| (1_i64 << 53) - 1 - (k * k % 1_021) as i64;
            let values: Vec<f64> = (0..count).map(|k| of(k) as f64).collect();
            let got = sums(&values);
            let pivot = got.pivot as i128;
            let exact: i128 = (0..count).map(|k| i128::from(of(k)) - pivot).sum();
            let time = |k: usize| 2 * k as i128 - (count as i128 - 1);
            let both: i128 = (0..count).map(|k| time(k) * i128::from(of(k))).sum();
            assert_eq!(got.values.hi as i128 + got.values.lo as i128, exact, "{count}");
            assert_eq!(got.both.hi as i128 + got.both.lo as i128, both, "{count}");
        }
    }

    #[test]
    fn the_pivot_for_both_signs_is_zero_and_values_that_are_not_finite_give_nan() {
        let got = sums(&[-1e9, 3.0, 1e9]);
        assert_eq!((got.pivot, got.values.value(), got.both.value()), (0.0, 3.0, 4e9));
        assert_eq!(sums(&[0.0; 7]).both.value(), 0.0);
        assert!(sums(&[1.0, f64::NAN, 2.0]).values.value().is_nan());
        assert!(sums(&[1.0, f64::INFINITY]).values.value().is_nan());
    }
}
