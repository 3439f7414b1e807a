//! How are sums and products computed with more digits than a double has?
//!
//! A [`DoubleDouble`] is the exact sum of two doubles and holds about 106 bits. Variances keep their means in this form, and
//! fitted lines their slopes. Therefore windows joined from panes (`slide.rs`) give nearly the same results as windows read as
//! a whole, even if values are 2^53 times as large as their differences. Source: T. J. Dekker, "A floating-point technique for
//! extending the available precision", Numerische Mathematik 18 (1971). Error bounds: M. Joldes, J.-M. Muller, V. Popescu,
//! "Tight and rigorous error bounds for basic building blocks of double-word arithmetic", ACM TOMS 44 (2017).
//!
//! A product loses its low half if a factor is near the largest or smallest double. Therefore callers first scale the
//! factors by a power of two, which is exact ([`exponent_of`], [`power_of_two`]).

/// Veltkamp's constant: splits 53 bits into two halves whose products are exact.
const SPLITTER: f64 = 134_217_729.0;

/// Whole numbers below this limit have at most 26 bits.
const COUNT_MAX: f64 = 67_108_864.0;

/// The number `hi + lo`. `lo` is at most half a unit in the last place of `hi`.
#[derive(Clone, Copy, Debug, Default)]
pub struct DoubleDouble {
    pub hi: f64,
    pub lo: f64,
}

/// `a + b` and its rounding error (D. E. Knuth, "The Art of Computer Programming" 2, section 4.2.2, theorem B).
#[inline]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let added = sum - a;
    (sum, (a - (sum - added)) + (b - added))
}

/// As [`two_sum`], but requires that `a` is 0 or has the larger absolute value.
#[inline]
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// The upper half and the lower half of the digits of a double.
#[inline]
pub fn split(a: f64) -> (f64, f64) {
    let scaled = SPLITTER * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// `a * b` and its rounding error.
#[inline]
pub fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (split(a), split(b));
    let error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    (product, error)
}

impl DoubleDouble {
    pub const ZERO: Self = Self { hi: 0.0, lo: 0.0 };

    /// `a + b`; either operand may be the larger one.
    #[inline]
    pub fn sum(a: f64, b: f64) -> Self {
        let (hi, lo) = two_sum(a, b);
        Self { hi, lo }
    }

    #[inline]
    pub fn product(a: f64, b: f64) -> Self {
        let (hi, lo) = two_product(a, b);
        Self { hi, lo }
    }

    /// All 64 bits of an integer, without rounding.
    #[expect(clippy::cast_precision_loss, reason = "32 bits are exact")]
    #[inline]
    pub fn of_integer(value: i64) -> Self {
        let (high, low) = (value >> 32, value & 0xffff_ffff);
        let (hi, lo) = fast_two_sum(high as f64 * 4_294_967_296.0, low as f64);
        Self { hi, lo }
    }

    #[inline]
    pub fn add(self, other: Self) -> Self {
        let (hi, error) = two_sum(self.hi, other.hi);
        let (low, low_error) = two_sum(self.lo, other.lo);
        let (hi, error) = fast_two_sum(hi, error + low);
        let (hi, lo) = fast_two_sum(hi, error + low_error);
        Self { hi, lo }
    }

    #[inline]
    pub fn add_double(self, other: f64) -> Self {
        let (hi, error) = two_sum(self.hi, other);
        let (hi, lo) = fast_two_sum(hi, error + self.lo);
        Self { hi, lo }
    }

    #[inline]
    pub fn subtract(self, other: Self) -> Self {
        self.add(other.negated())
    }

    #[inline]
    pub fn multiply(self, other: Self) -> Self {
        let (hi, error) = two_product(self.hi, other.hi);
        let (hi, lo) = fast_two_sum(hi, error + (self.hi * other.lo + self.lo * other.hi));
        Self { hi, lo }
    }

    #[inline]
    pub fn multiply_double(self, other: f64) -> Self {
        let (hi, error) = two_product(self.hi, other);
        let (hi, lo) = fast_two_sum(hi, error + self.lo * other);
        Self { hi, lo }
    }

    /// Multiplies by a whole number. The products of a number of up to 26 bits with the halves of a double are exact.
    #[inline]
    pub fn multiply_count(self, count: f64) -> Self {
        if count.abs() >= COUNT_MAX {
            return self.multiply_double(count);
        }
        let (high, low) = split(self.hi);
        let (hi, error) = fast_two_sum(high * count, low * count);
        let (hi, lo) = fast_two_sum(hi, error + self.lo * count);
        Self { hi, lo }
    }

    /// Quotient with two digits of 53 bits each. The second digit is computed from the remainder that the first digit leaves
    /// (Joldes et al., algorithm 17).
    #[inline]
    pub fn divide(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let product = other.multiply_double(first);
        let rest = (self.hi - product.hi) + (self.lo - product.lo);
        let (hi, lo) = fast_two_sum(first, rest / other.hi);
        Self { hi, lo }
    }

    /// As [`DoubleDouble::divide`] (algorithm 15).
    #[inline]
    pub fn divide_double(self, other: f64) -> Self {
        let first = self.hi / other;
        let (product, error) = two_product(first, other);
        let rest = ((self.hi - product) - error) + self.lo;
        let (hi, lo) = fast_two_sum(first, rest / other);
        Self { hi, lo }
    }

    /// Multiplies by a power of two. The result is exact unless it is too small or too large for a double.
    #[inline]
    pub fn scaled(self, factor: f64) -> Self {
        Self { hi: self.hi * factor, lo: self.lo * factor }
    }

    pub fn negated(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }

    /// The nearest double.
    pub fn value(self) -> f64 {
        self.hi + self.lo
    }
}

/// Values up to this absolute exponent need no scaling: the product of four values does not overflow, and the low half
/// of a square does not underflow.
const EXPONENT_PLAIN_MAX: i32 = 200;

/// Exponent of the power of two by which the values must be divided so that their products are exact. It is 0 for
/// nearly all values. Ignores NaN.
pub fn exponent_of(values: &[f64]) -> i32 {
    const LANES: usize = 4;
    let (blocks, rest) = values.as_chunks::<LANES>();
    let mut largest = [0.0_f64; LANES];
    for block in blocks {
        for lane in 0..LANES {
            let value = block[lane].abs();
            largest[lane] = if value > largest[lane] { value } else { largest[lane] };
        }
    }
    let largest = largest.iter().chain(rest).fold(0.0_f64, |largest, value| largest.max(value.abs()));
    exponent_for(largest)
}

/// As [`exponent_of`], given the largest absolute value.
#[inline]
pub fn exponent_for(largest: f64) -> i32 {
    if largest == 0.0 || !largest.is_finite() {
        return 0;
    }
    let exponent = binary_exponent(largest);
    if exponent.abs() <= EXPONENT_PLAIN_MAX { 0 } else { exponent }
}

/// The binary logarithm of a positive number, rounded down; -1023 to -1074 for subnormal numbers.
fn binary_exponent(value: f64) -> i32 {
    let biased = (value.to_bits() >> 52) as i32;
    if biased > 0 { biased - 1023 } else { binary_exponent(value * power_of_two(52)) - 52 }
}

/// 2^exponent, for -1022 to 1023.
pub fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits(u64::from((exponent + 1023).unsigned_abs()) << 52)
}

/// `value * 2^exponent`, even if `2^exponent` is not a double.
pub fn scale(value: f64, exponent: i32) -> f64 {
    let clamped = exponent.clamp(-2_100, 2_100);
    let half = clamped / 3;
    value * power_of_two(half) * power_of_two(half) * power_of_two(clamped - 2 * half)
}

/// Factor that converts values divided by 2^from into values divided by 2^to. Callers convert to a smaller exponent only if all
/// values are 0; every factor is correct for 0.
pub fn scale_down(from: i32, to: i32) -> f64 {
    if to > from { scale(1.0, from - to) } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Integers of up to 50 bits. Their products are exact in a [`DoubleDouble`].
    fn integers() -> impl Strategy<Value = i64> {
        -(1_i64 << 50)..1_i64 << 50
    }

    #[expect(clippy::cast_possible_truncation, reason = "halves are whole numbers here")]
    fn exact(value: DoubleDouble) -> i128 {
        value.hi as i128 + value.lo as i128
    }

    fn dd(value: i64) -> DoubleDouble {
        DoubleDouble::of_integer(value)
    }

    proptest! {
        #[test]
        fn sums_and_products_are_exact(a in integers(), b in integers(), c: i64, d: i64) {
            prop_assert_eq!(exact(dd(a).multiply(dd(b))), i128::from(a) * i128::from(b));
            prop_assert_eq!(exact(dd(c).add(dd(d))), i128::from(c) + i128::from(d));
            prop_assert_eq!(exact(dd(c).subtract(dd(d))), i128::from(c) - i128::from(d));
        }

        #[test]
        fn a_quotient_times_the_divisor_is_the_dividend(a: i64, b in 1..i64::MAX) {
            let back = dd(a).divide(dd(b)).multiply(dd(b));
            let off = back.subtract(dd(a)).value().abs();
            prop_assert!(off <= 1e-30 * dd(a).value().abs(), "{:?}", back);
        }

        #[test]
        fn scaling_is_exact(value in prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO) {
            let exponent = exponent_of(&[value]);
            let scaled = scale(value, -exponent);
            prop_assert!(scaled == 0.0 || (1e-62..1e62).contains(&scaled.abs()), "{} 2^{}", value, exponent);
            prop_assert_eq!(scale(scaled, exponent), value);
        }
    }
}
