//! Order statistics, as Prometheus computes them.

use std::cmp::Ordering;

/// NaN before everything else.
pub fn by_value(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// The `q`-quantile by linear interpolation between the two nearest ranks; changes the order of `values`.
/// NaN without values or with `q` NaN; -Inf below 0, +Inf above 1.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "ranks are below the number of values in memory"
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

/// The value of a rank, from 0, and that of the next one; of the last rank it is the same. Sorts no more than it needs.
pub fn neighbours(values: &mut [f64], rank: usize) -> (f64, f64) {
    // Counters are in order already, and NaN is in order with nothing.
    if values.is_sorted_by(|a, b| a <= b) {
        return (values[rank], values[(rank + 1).min(values.len() - 1)]);
    }
    let (_, lower, above) = values.select_nth_unstable_by(rank, by_value);
    let upper =
        above.iter().copied().reduce(|best, next| if by_value(&next, &best).is_lt() { next } else { best });
    (*lower, upper.unwrap_or(*lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(q: f64, values: &[f64], expect: f64) {
        let got = quantile(q, &mut values.to_vec());
        assert!(got == expect || got.is_nan() && expect.is_nan(), "{q} of {values:?}: {got}");
    }

    #[test]
    fn interpolates_and_knows_its_ends() {
        check(0.5, &[3.0, 1.0, 2.0], 2.0);
        check(0.25, &[0.0, 1.0], 0.25);
        check(1.0, &[0.0, 1.0], 1.0);
        check(0.5, &[], f64::NAN);
        check(f64::NAN, &[1.0], f64::NAN);
        check(-0.1, &[1.0], f64::NEG_INFINITY);
        check(1.1, &[1.0], f64::INFINITY);
        check(1.0, &[f64::NAN, 1.0], 1.0);
    }
}
