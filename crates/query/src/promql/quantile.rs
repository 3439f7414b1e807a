//! How are order statistics computed? The results equal those of Prometheus.

use std::cmp::Ordering;

/// Compares values; NaN is before all numbers.
pub fn by_value(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// The `q`-quantile, by linear interpolation between the two nearest ranks. May change the order of `values`. Returns
/// NaN if `values` is empty or `q` is NaN, -Inf if `q` is below 0, and +Inf if `q` is above 1.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks are smaller than the number of values in memory"
)]
pub fn quantile(q: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    let rank = q * (values.len() - 1) as f64;
    let below = rank.floor();
    let weight = rank - below;
    let (lower, upper) = neighbours(values, below as usize);
    lower * (1.0 - weight) + upper * weight
}

/// The value of a rank, counted from 0, and the value of the next rank (the same value for the last rank).
pub fn neighbours(values: &mut [f64], rank: usize) -> (f64, f64) {
    // Values of counters are often sorted already. A slice with NaN and other values never counts as sorted.
    if values.is_sorted_by(|a, b| a <= b) {
        return (values[rank], values[(rank + 1).min(values.len() - 1)]);
    }
    if !values.iter().fold(false, |any, value| any | value.is_nan()) {
        let mut keys: Vec<i64> = values.iter().copied().map(key).collect();
        let (_, lower, above) = keys.select_nth_unstable(rank);
        let upper = above.iter().copied().min().unwrap_or(*lower);
        return (of_key(*lower), of_key(upper));
    }
    let (_, lower, above) = values.select_nth_unstable_by(rank, by_value);
    let upper =
        above.iter().copied().reduce(|best, next| if by_value(&next, &best).is_lt() { next } else { best });
    (*lower, upper.unwrap_or(*lower))
}

/// An integer with the same order as the value, where -0.0 is below 0.0. Integers are compared much faster than
/// doubles.
const fn key(value: f64) -> i64 {
    turn(value.to_bits().cast_signed())
}

const fn of_key(key: i64) -> f64 {
    f64::from_bits(turn(key).cast_unsigned())
}

/// If the sign is set, inverts all other bits.
const fn turn(bits: i64) -> i64 {
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(q: f64, values: &[f64], expect: f64) {
        let got = quantile(q, &mut values.to_vec());
        assert!(got == expect || got.is_nan() && expect.is_nan(), "{q} of {values:?}: {got}");
    }

    #[test]
    fn quantiles_interpolate_between_ranks_and_are_infinite_outside_0_to_1() {
        check(0.5, &[3.0, 1.0, 2.0], 2.0);
        check(0.25, &[0.0, 1.0], 0.25);
        check(1.0, &[0.0, 1.0], 1.0);
        check(0.5, &[], f64::NAN);
        check(f64::NAN, &[1.0], f64::NAN);
        check(-0.1, &[1.0], f64::NEG_INFINITY);
        check(1.1, &[1.0], f64::INFINITY);
        check(1.0, &[f64::NAN, 1.0], 1.0);
    }

    #[test]
    fn keys_have_the_order_of_their_values() {
        let (least, tiny) = (f64::NEG_INFINITY, f64::MIN_POSITIVE);
        let values = [least, f64::MIN, -1.5, -1.0, -tiny, -0.0, 0.0, tiny, 1.0, 2.5, f64::MAX, f64::INFINITY];
        assert!(values.is_sorted_by(|a, b| key(*a) < key(*b)));
        assert!(values.iter().all(|value| of_key(key(*value)).to_bits() == value.to_bits()));
    }

    proptest! {
        #[test]
        fn neighbours_equal_those_in_the_sorted_values(
            values in prop::collection::vec(prop_oneof![-9.0..9.0, Just(1.0), Just(f64::INFINITY)], 1..60),
            rank in any::<prop::sample::Index>(),
            nan in any::<bool>(),
        ) {
            let mut values = values;
            if nan {
                values.push(f64::NAN);
            }
            let rank = rank.index(values.len());
            let mut sorted = values.clone();
            sorted.sort_by(by_value);
            let expect = (sorted[rank], sorted[(rank + 1).min(sorted.len() - 1)]);
            let got = neighbours(&mut values, rank);
            prop_assert_eq!((got.0.to_bits(), got.1.to_bits()), (expect.0.to_bits(), expect.1.to_bits()));
        }
    }
}
