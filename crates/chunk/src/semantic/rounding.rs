//! How are values rounded to fewer digits? Integers stay integers.

use super::{allowed, grid};
use crate::loss::Tolerance;
use crate::values::{ValueColumn, Values};

/// Columns within the tolerance. Floats may exceed it by rounding errors, so the caller must check them.
pub(super) fn candidates(values: Values<'_>, tolerance: Tolerance) -> impl Iterator<Item = ValueColumn> {
    let columns = match values {
        Values::F64(floats) => match tolerance {
            Tolerance::Absolute(bound) => decimal(floats, bound).into_iter().map(ValueColumn::F64).collect(),
            Tolerance::Relative(share) => vec![ValueColumn::F64(binary(floats, share))],
        },
        Values::I64(integers) => {
            let round = |v: &i64| i64::try_from(integer((*v).into(), tolerance)).unwrap_or(*v);
            vec![ValueColumn::I64(integers.iter().map(round).collect())]
        }
        Values::U64(integers) => {
            let round = |v: &u64| u64::try_from(integer((*v).into(), tolerance)).unwrap_or(*v);
            vec![ValueColumn::U64(integers.iter().map(round).collect())]
        }
    };
    columns.into_iter()
}

/// Rounds to multiples of a number that is at most twice the bound. Tries two such numbers: the largest one with as few decimals
/// as possible, and the largest one with one more decimal.
fn decimal(values: &[f64], bound: f64) -> Vec<Vec<f64>> {
    let round = |exponent: u8| {
        let power = 10f64.powi(exponent.into());
        let times = (2.0 * bound * power).floor();
        let one = |value: &f64| {
            let rounded = (value * power / times).round() * times / power;
            // Avoids -0.0, because the codecs store it as an exception.
            if value.is_finite() && rounded.is_finite() { rounded + 0.0 } else { *value }
        };
        (times >= 1.0).then(|| values.iter().map(one).collect())
    };
    grid::exponents(values, Tolerance::Absolute(2.0 * bound), 1).filter_map(round).collect()
}

/// Keeps as many bits of the mantissa as a relative error of at most `share` requires.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 52")]
fn binary(values: &[f64], share: f64) -> Vec<f64> {
    let kept = (-(2.0 * share).log2()).ceil().clamp(0.0, 52.0) as u32;
    let dropped = 52 - kept;
    let half = (1u64 << dropped) >> 1;
    let one = |value: &f64| {
        let rounded = f64::from_bits(value.to_bits().wrapping_add(half) >> dropped << dropped);
        if value.is_normal() && rounded.is_finite() { rounded } else { *value }
    };
    values.iter().map(one).collect()
}

/// Rounds to a multiple of the largest number that keeps the tolerance: `2 * bound + 1`. With a relative tolerance,
/// rounds to a multiple of the largest power of two up to that number, so that values of similar size share a divisor.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "rounded down; the caller compares"
)]
fn integer(value: i128, tolerance: Tolerance) -> i128 {
    let bound = allowed(value as f64, tolerance).floor().min(9e18) as i128;
    let step = match tolerance {
        Tolerance::Absolute(_) => 2 * bound + 1,
        Tolerance::Relative(_) => 1 << (2 * bound + 1).ilog2(),
    };
    (value + step / 2).div_euclid(step) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first candidate.
    fn round(values: &[f64], tolerance: Tolerance) -> Vec<f64> {
        match candidates(Values::F64(values), tolerance).next() {
            Some(ValueColumn::F64(rounded)) => rounded,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn floats_lose_digits() {
        let values = [1.234, -0.02, 99.97, f64::INFINITY];
        assert_eq!(round(&values, Tolerance::Absolute(0.05)), [1.2, 0.0, 100.0, f64::INFINITY]);
        assert_eq!(round(&[1.234, 1000.0], Tolerance::Relative(0.01)), [1.234375, 1000.0]);
    }

    #[test]
    fn integers_stay_integers() {
        assert_eq!([0, 2, 3, 7, 8, -3].map(|v| integer(v, Tolerance::Absolute(2.9))), [0, 0, 5, 5, 10, -5]);
        assert_eq!([3, 100, 1_003].map(|v| integer(v, Tolerance::Relative(0.02))), [3, 100, 992]);
        assert_eq!(integer(5, Tolerance::Absolute(0.4)), 5);
    }
}
