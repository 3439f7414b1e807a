//! Which decimal numbers are within the tolerance of each value? The methods `linear` and `wavelet` choose from these numbers.
//! The codecs `decimal` and `lines` store the chosen numbers exactly and in few bytes.

use super::allowed;
use crate::codec::decimal;
use crate::loss::Tolerance;

/// Limit on the absolute value of integers. The codecs might not get a larger integer back from its float and the exponent.
const INTEGER_MAX: f64 = (1u64 << 50) as f64;
/// Largest exponent that the codecs support.
const EXPONENT_MAX: u8 = 15;

/// The integers within the tolerance of a value, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) low: i64,
    pub(super) high: i64,
}

impl Interval {
    /// The interval for a value that is not finite. Such a value is kept and does not restrict the lines.
    const FREE: Self = Self { low: i64::MIN / 4, high: i64::MAX / 4 };

    pub(super) fn common(self, other: Self) -> Option<Self> {
        let common = Self { low: self.low.max(other.low), high: self.high.min(other.high) };
        (common.low <= common.high).then_some(common)
    }

    pub(super) const fn middle(self) -> i64 {
        self.low.midpoint(self.high)
    }
}

/// For each value, the interval of the integers for which `integer / 10^exponent` is within the tolerance of the value.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) exponent: u8,
    pub(super) intervals: Vec<Interval>,
}

fn power(exponent: u8) -> f64 {
    10f64.powi(exponent.into())
}

/// The exponents to try: the lowest exponent for which `10^-exponent` is at most the smallest permitted change (values that must
/// not change are ignored), and the next `finer` exponents. Omits an exponent if the integer of a value would not be below
/// `INTEGER_MAX`.
pub(super) fn exponents(values: &[f64], tolerance: Tolerance, finer: u8) -> impl Iterator<Item = u8> + use<> {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let allowed = finite().map(|value| allowed(value, tolerance)).filter(|bound| *bound > 0.0);
    let smallest = allowed.fold(f64::INFINITY, f64::min);
    let largest = finite().fold(0.0f64, |largest, value| largest.max(value.abs()));
    let coarsest =
        (0..=EXPONENT_MAX).find(|exponent| smallest.is_finite() && smallest * power(*exponent) >= 1.0);
    let finest = coarsest.map(|coarsest| coarsest.saturating_add(finer).min(EXPONENT_MAX));
    let range = coarsest.zip(finest).map(|(coarsest, finest)| coarsest..=finest);
    range.into_iter().flatten().filter(move |exponent| largest * power(*exponent) < INTEGER_MAX)
}

impl Grid {
    /// The grid of the numbers with `exponent` decimals. `None` if a value has no such number within its tolerance.
    pub(super) fn of(values: &[f64], tolerance: Tolerance, exponent: u8) -> Option<Self> {
        let interval = |value: &f64| {
            if value.is_finite() { interval(*value, tolerance, exponent) } else { Some(Interval::FREE) }
        };
        Some(Self { exponent, intervals: values.iter().map(interval).collect::<Option<_>>()? })
    }

    /// The floats that the integers represent. Values that are not finite are kept.
    pub(super) fn floats(&self, integers: &[i64], values: &[f64]) -> Vec<f64> {
        let float = |integer: i64| f64::from_bits(decimal::float(integer, self.exponent));
        let one = |(value, integer): (&f64, &i64)| if value.is_finite() { float(*integer) } else { *value };
        values.iter().zip(integers).map(one).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "an end beyond the range of i64 saturates, and `clamp` limits both ends"
)]
fn interval(value: f64, tolerance: Tolerance, exponent: u8) -> Option<Interval> {
    let bound = allowed(value, tolerance);
    let near = |integer: &i64| {
        let float = f64::from_bits(decimal::float(*integer, exponent));
        (float - value).abs() <= bound
    };
    let limit = INTEGER_MAX as i64;
    let low = (((value - bound) * power(exponent)).ceil() as i64).clamp(-limit, limit);
    let high = (((value + bound) * power(exponent)).floor() as i64).clamp(-limit, limit);
    // The products were rounded, so each end may be off by one.
    let low = (low..=low + 1).find(near)?;
    let high = (high - 1..=high).rev().find(near)?;
    (low <= high).then_some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_reach_to_the_bound() {
        let values = [1.0, -0.25, 0.0, f64::NAN, 1e6];
        let grid = Grid::of(&values, Tolerance::Absolute(0.055), 2).unwrap();
        let ends: Vec<(i64, i64)> = grid.intervals.iter().map(|i| (i.low, i.high)).collect();
        assert_eq!(ends[..3], [(95, 105), (-30, -20), (-5, 5)]);
        assert_eq!((grid.intervals[3], ends[4]), (Interval::FREE, (99_999_995, 100_000_005)));
        let grid = Grid::of(&[200.0, 0.0], Tolerance::Relative(0.01), 0).unwrap();
        assert_eq!(grid.intervals, [Interval { low: 198, high: 202 }, Interval { low: 0, high: 0 }]);
        assert!(Grid::of(&[0.3], Tolerance::Absolute(0.1), 0).is_none());
    }

    #[test]
    fn exponents_follow_the_tolerance() {
        let of = |values: &[f64], bound| exponents(values, Tolerance::Absolute(bound), 2).collect::<Vec<_>>();
        assert_eq!(of(&[1.0], 0.05), [2, 3, 4]);
        assert_eq!(of(&[1.0, f64::INFINITY], 20.0), [0, 1, 2]);
        assert_eq!(of(&[1e14], 20.0), [0, 1]);
        assert_eq!(of(&[1e300], 20.0), []);
        assert_eq!(of(&[1.0], 0.0), []);
    }
}
