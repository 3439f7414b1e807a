//! What is known about a column without decoding it? Its extremes, its sum, and its first and last value.

use tacho_model::{TimeRange, Timestamp, Value, ValueType};

use crate::values::Values;

/// Statistics of a column, in the type of the column. `min`, `max` and `sum` ignore NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Number of values that are not NaN.
    pub count: usize,
    /// The extremes are NaN if all values are NaN.
    pub min: Value,
    pub max: Value,
    pub sum: Sum,
    /// The first and last value in stored order.
    pub first: Value,
    pub last: Value,
}

/// Statistics of consecutive samples, as f64 for PromQL. No sample is NaN, and the sum is finite, so that the statistics can
/// replace the samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Time of the first sample.
    pub start: Timestamp,
    /// Time of the last sample.
    pub end: Timestamp,
    /// At least 1.
    pub count: usize,
    pub min: f64,
    pub max: f64,
    /// Compensated sum.
    pub sum: f64,
    pub first: f64,
    pub last: f64,
}

/// The sum of integers is exact. The sum of f64 is compensated, with an error of usually at most two ulp. Chunks of version 1
/// have a plain sum instead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    F64(f64),
    Integer(i128),
}

impl Sum {
    #[expect(clippy::cast_precision_loss, reason = "the caller needs an f64")]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::F64(sum) => sum,
            Self::Integer(sum) => sum as f64,
        }
    }
}

impl Stats {
    /// The statistics as f64, for a column of `count` samples with times from `range.start` to `range.end`. `None` if a value is
    /// NaN or the sum is not finite.
    pub fn summary(&self, range: TimeRange, count: usize) -> Option<Summary> {
        let plain = self.count == count && self.sum.as_f64().is_finite();
        plain.then_some(Summary {
            start: range.start,
            end: range.end,
            count,
            min: self.min.as_f64(),
            max: self.max.as_f64(),
            sum: self.sum.as_f64(),
            first: self.first.as_f64(),
            last: self.last.as_f64(),
        })
    }

    /// Statistics of at least one value.
    pub(crate) fn of(values: Values<'_>) -> Self {
        match values {
            Values::F64(v) => float_stats(v),
            Values::I64(v) => integer_stats(v, Value::I64),
            Values::U64(v) => integer_stats(v, Value::U64),
        }
    }

    /// Statistics of `count` equal values.
    #[expect(clippy::cast_precision_loss, reason = "a count is below 2^53")]
    pub(crate) fn of_uniform(value: Value, count: usize) -> Self {
        let each = count as i128;
        let (count, sum) = match value {
            Value::F64(v) if v.is_nan() => return float_stats(&[v]),
            Value::F64(v) => (count, Sum::F64(v * count as f64)),
            Value::I64(v) => (count, Sum::Integer(i128::from(v) * each)),
            Value::U64(v) => (count, Sum::Integer(i128::from(v) * each)),
        };
        Self { count, min: value, max: value, sum, first: value, last: value }
    }
}

/// Number of partial sums that are computed in parallel.
const LANES: usize = 4;

/// A sum with its rounding error (Neumaier, ZAMM 54, 1974). The error of an addition is computed with Knuth's algorithm,
/// which has no branch.
#[derive(Clone, Copy, Default)]
struct Compensated {
    sum: f64,
    lost: f64,
}

impl Compensated {
    const fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let of_value = sum - self.sum;
        self.lost += (self.sum - (sum - of_value)) + (value - of_value);
        self.sum = sum;
    }

    const fn total(self) -> f64 {
        let total = self.sum + self.lost;
        // With infinities, `lost` is NaN, and the sum is correct without it.
        if total.is_finite() { total } else { self.sum }
    }
}

/// Compensated sum of all values except NaN.
pub(crate) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut sum = Compensated::default();
    values.into_iter().filter(|value| !value.is_nan()).for_each(|value| sum.add(value));
    sum.total()
}

#[derive(Clone, Copy)]
struct Lane {
    count: usize,
    min: f64,
    max: f64,
    sum: Compensated,
}

impl Lane {
    const EMPTY: Self = Self {
        count: 0,
        min: f64::INFINITY,
        max: f64::NEG_INFINITY,
        sum: Compensated { sum: 0.0, lost: 0.0 },
    };

    /// Comparisons with NaN are false, so NaN does not change the extremes.
    fn add(&mut self, value: f64) {
        self.count += usize::from(!value.is_nan());
        self.min = if value < self.min { value } else { self.min };
        self.max = if value > self.max { value } else { self.max };
        self.sum.add(if value.is_nan() { 0.0 } else { value });
    }

    fn join(mut self, other: Self) -> Self {
        self.count += other.count;
        self.min = if other.min < self.min { other.min } else { self.min };
        self.max = if other.max > self.max { other.max } else { self.max };
        self.sum.lost += other.sum.lost;
        self.sum.add(other.sum.sum);
        self
    }
}

fn float_stats(values: &[f64]) -> Stats {
    let mut lanes = [Lane::EMPTY; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            lane.add(*value);
        }
    }
    for (lane, value) in lanes.iter_mut().zip(rest) {
        lane.add(*value);
    }
    let all = lanes.into_iter().fold(Lane::EMPTY, Lane::join);
    let has = |zero: f64| values.iter().any(|value| value.to_bits() == zero.to_bits());
    let (min, max) = match (all.min, all.max) {
        _ if all.count == 0 => (f64::NAN, f64::NAN),
        // The total order distinguishes both zeros, but `<` and `>` treat them as equal.
        (min, max) => (
            if min == 0.0 { if has(-0.0) { -0.0 } else { 0.0 } } else { min },
            if max == 0.0 { if has(0.0) { 0.0 } else { -0.0 } } else { max },
        ),
    };
    Stats {
        count: all.count,
        min: Value::F64(min),
        max: Value::F64(max),
        sum: Sum::F64(all.sum.total()),
        first: Value::F64(values.first().copied().unwrap_or(f64::NAN)),
        last: Value::F64(values.last().copied().unwrap_or(f64::NAN)),
    }
}

fn integer_stats<T: Copy + Ord + Default + Into<i128>>(values: &[T], wrap: fn(T) -> Value) -> Stats {
    Stats {
        count: values.len(),
        min: wrap(values.iter().copied().min().unwrap_or_default()),
        max: wrap(values.iter().copied().max().unwrap_or_default()),
        sum: Sum::Integer(values.iter().map(|v| (*v).into()).sum()),
        first: wrap(values.first().copied().unwrap_or_default()),
        last: wrap(values.last().copied().unwrap_or_default()),
    }
}

pub(crate) const fn to_word(value: Value) -> u64 {
    match value {
        Value::F64(v) => v.to_bits(),
        Value::I64(v) => v.cast_unsigned(),
        Value::U64(v) => v,
    }
}

pub(crate) const fn from_word(word: u64, kind: ValueType) -> Value {
    match kind {
        ValueType::F64 => Value::F64(f64::from_bits(word)),
        ValueType::I64 => Value::I64(word.cast_signed()),
        ValueType::U64 => Value::U64(word),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_value_survives_conversion_to_a_word() {
        for value in [Value::F64(-0.0), Value::I64(-1), Value::U64(u64::MAX)] {
            assert_eq!(from_word(to_word(value), value.value_type()), value);
        }
    }

    #[test]
    fn a_sum_does_not_lose_small_values() {
        let values: Vec<f64> = [1.0, 1e100, 1.0, -1e100].into_iter().cycle().take(40_000).collect();
        assert_eq!(sum(values.iter().copied()), 20_000.0);
        let tenths = vec![0.1; 100_000];
        assert_eq!(float_stats(&tenths).sum, Sum::F64(10_000.0));
        let infinite = [1.0, f64::INFINITY, 2.0, f64::NAN];
        assert_eq!(float_stats(&infinite).sum, Sum::F64(f64::INFINITY));
        assert_eq!(sum(infinite), f64::INFINITY);
        assert!(sum([f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert_eq!(sum([f64::MAX, f64::MAX]), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn uniform_statistics_equal_those_of_the_values(value in any::<i32>(), count in 1usize..50) {
            let float = f64::from(value) / 8.0;
            prop_assert_eq!(Stats::of_uniform(Value::F64(float), count), float_stats(&vec![float; count]));
            let integer = i64::from(value);
            let wrap = Value::I64;
            prop_assert_eq!(Stats::of_uniform(wrap(integer), count), integer_stats(&vec![integer; count], wrap));
        }

        #[test]
        fn extremes_follow_the_total_order(values in prop::collection::vec(
            prop::sample::select(vec![0.0, -0.0, 1.5, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]), 1..12)) {
            let stats = float_stats(&values);
            let numbers = || values.iter().copied().filter(|v| !v.is_nan());
            let (min, max) = (numbers().min_by(f64::total_cmp), numbers().max_by(f64::total_cmp));
            prop_assert_eq!(stats.count, numbers().count());
            prop_assert_eq!(stats.min, Value::F64(min.unwrap_or(f64::NAN)));
            prop_assert_eq!(stats.max, Value::F64(max.unwrap_or(f64::NAN)));
        }
    }
}
