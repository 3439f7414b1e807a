//! How are samples aggregated to one value per time step?

use tacho_model::{Timestamp, Value};

use super::error::SemanticError;
use crate::loss::{Aggregate, Aggregation, Loss, Tolerance};
use crate::stats::{Sum, sum};
use crate::values::{ValueColumn, Values};

/// Returns the aggregated samples and the loss. Each step that has samples gets one sample, at the time of its last sample. As in
/// PromQL, a step is open at the start and closed at the end. Steps end at multiples of `step` ns since the Unix epoch.
///
/// Minimum, maximum, first and last have the type of the values. Sums have this type too, unless the sum of a step overflows:
/// then all sums are f64. Averages are f64, counts are u64. All functions ignore NaN. If a step has only NaN, its count is 0 and
/// all other functions return NaN.
///
/// # Errors
/// If the step is not above 0, if there are not as many values as times, or if times are not strictly ascending.
pub fn aggregate(
    at: &[Timestamp],
    values: Values<'_>,
    aggregation: Aggregation,
) -> Result<(Vec<Timestamp>, ValueColumn, Loss), SemanticError> {
    check(at, values)?;
    let Aggregation { step, how } = aggregation;
    if step <= 0 {
        return Err(SemanticError::Step { got: step });
    }
    let mut times = Vec::new();
    let mut rows = Vec::new();
    let mut rest = 0..at.len();
    while let Some(first) = at.get(rest.start) {
        let end = end_of(*first, step);
        let places = rest.start..at.partition_point(|at| *at <= end);
        rest.start = places.end;
        times.extend(at.get(places.clone()).and_then(<[Timestamp]>::last));
        rows.push(places);
    }
    let column = match values {
        Values::F64(v) => {
            let numbers = rows.iter().map(|places| v.get(places.clone()).unwrap_or_default());
            floats(numbers, how)
        }
        Values::I64(v) => {
            let numbers = rows.iter().map(|places| v.get(places.clone()).unwrap_or_default());
            integers(numbers, how, ValueColumn::I64, Value::I64)
        }
        Values::U64(v) => {
            let numbers = rows.iter().map(|places| v.get(places.clone()).unwrap_or_default());
            integers(numbers, how, ValueColumn::U64, Value::U64)
        }
    };
    let (bound, achieved) = (Tolerance::Absolute(0.0), 0.0);
    Ok((times, column, Loss { aggregation: Some(aggregation), method: None, bound, achieved }))
}

/// Checks that times and values are valid samples of one series.
pub(super) fn check(at: &[Timestamp], values: Values<'_>) -> Result<(), SemanticError> {
    if at.len() != values.len() {
        return Err(SemanticError::Length { times: at.len(), values: values.len() });
    }
    if at.is_sorted_by(|a, b| a < b) { Ok(()) } else { Err(SemanticError::Order) }
}

/// The lowest multiple of `step` at or after `at`; the maximum timestamp if there is none.
const fn end_of(at: Timestamp, step: i64) -> Timestamp {
    let past = at.rem_euclid(step);
    if past == 0 { at } else { at.saturating_add(step - past) }
}

fn floats<'a>(rows: impl Iterator<Item = &'a [f64]>, how: Aggregate) -> ValueColumn {
    let numbers = |row: &'a [f64]| row.iter().copied().filter(|value| !value.is_nan());
    let one = |row: &'a [f64]| {
        let count = numbers(row).count();
        match how {
            _ if count == 0 => f64::NAN,
            Aggregate::Avg => mean(sum(numbers(row)), count),
            Aggregate::Min => numbers(row).min_by(f64::total_cmp).unwrap_or(f64::NAN),
            Aggregate::Max => numbers(row).max_by(f64::total_cmp).unwrap_or(f64::NAN),
            Aggregate::Sum | Aggregate::Count => sum(numbers(row)),
            Aggregate::Last => numbers(row).next_back().unwrap_or(f64::NAN),
            Aggregate::First => numbers(row).next().unwrap_or(f64::NAN),
        }
    };
    match how {
        Aggregate::Count => ValueColumn::U64(rows.map(|row| numbers(row).count() as u64).collect()),
        _ => ValueColumn::F64(rows.map(one).collect()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a count is below 2^53")]
fn mean(sum: f64, count: usize) -> f64 {
    sum / count as f64
}

/// Each row has the values of one step. No row may be empty.
fn integers<'a, T: Copy + Ord + Default + Into<i128> + TryFrom<i128> + 'a>(
    rows: impl Iterator<Item = &'a [T]> + Clone,
    how: Aggregate,
    column: fn(Vec<T>) -> ValueColumn,
    value: fn(T) -> Value,
) -> ValueColumn {
    let total = |row: &'a [T]| row.iter().map(|v| (*v).into()).sum::<i128>();
    let pick = |one: fn(&'a [T]) -> Option<T>| {
        column(rows.clone().map(|row| one(row).unwrap_or_default()).collect())
    };
    match how {
        Aggregate::Avg => {
            let average = |row: &'a [T]| mean(Sum::Integer(total(row)).as_f64(), row.len());
            ValueColumn::F64(rows.map(average).collect())
        }
        Aggregate::Sum => {
            let exact: Option<Vec<T>> = rows.clone().map(|row| T::try_from(total(row)).ok()).collect();
            let rounded = || rows.clone().map(|row| sum(row.iter().map(|v| value(*v).as_f64()))).collect();
            exact.map_or_else(|| ValueColumn::F64(rounded()), column)
        }
        Aggregate::Count => ValueColumn::U64(rows.map(|row| row.len() as u64).collect()),
        Aggregate::Min => pick(|row| row.iter().copied().min()),
        Aggregate::Max => pick(|row| row.iter().copied().max()),
        Aggregate::Last => pick(|row| row.last().copied()),
        Aggregate::First => pick(|row| row.first().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: [i64; 6] = [-3, 1, 10, 11, 25, 30];

    /// Aggregates to steps of 10 with every function.
    fn check(values: Values<'_>) -> Vec<ValueColumn> {
        let one = |how| {
            let aggregation = Aggregation { step: 10, how };
            let (times, column, loss) = aggregate(&AT, values, aggregation).unwrap();
            assert_eq!((times, loss.aggregation), (vec![-3, 10, 11, 30], Some(aggregation)));
            column
        };
        Aggregate::ALL.into_iter().map(one).collect()
    }

    #[test]
    fn nan_is_ignored_in_aggregates_of_floats() {
        let nan = f64::NAN;
        let columns = check(Values::F64(&[4.0, 1.0, 3.0, nan, nan, 7.0]));
        for (column, wanted) in columns.iter().zip([
            [4.0, 2.0, nan, 7.0],
            [4.0, 1.0, nan, 7.0],
            [4.0, 3.0, nan, 7.0],
            [4.0, 4.0, nan, 7.0],
            [4.0, 3.0, nan, 7.0],
            [4.0, 1.0, nan, 7.0],
        ]) {
            assert_eq!(*column, ValueColumn::F64(wanted.to_vec()));
        }
        assert_eq!(columns[6], ValueColumn::U64(vec![1, 2, 0, 1]));
    }

    #[test]
    fn aggregates_of_integers_are_integers_except_averages_and_overflowing_sums() {
        let columns = check(Values::I64(&[4, 1, 3, -9, 2, 2]));
        assert_eq!(columns[0], ValueColumn::F64(vec![4.0, 2.0, -9.0, 2.0]));
        for (column, wanted) in columns[1..6].iter().zip([
            [4, 1, -9, 2],
            [4, 3, -9, 2],
            [4, 4, -9, 4],
            [4, 3, -9, 2],
            [4, 1, -9, 2],
        ]) {
            assert_eq!(*column, ValueColumn::I64(wanted.to_vec()));
        }
        let large = u64::MAX;
        let columns = check(Values::U64(&[1, large, large, 1, 1, 1]));
        assert_eq!(columns[3], ValueColumn::F64(vec![1.0, 2.0 * large as f64, 1.0, 2.0]));
    }

    #[test]
    fn invalid_series_and_steps_are_refused() {
        let sum =
            |at: &[i64], step| aggregate(at, Values::I64(&[1, 2]), Aggregation { step, how: Aggregate::Sum });
        let refused = |at: &[i64], step| sum(at, step).unwrap_err();
        assert_eq!(refused(&[1, 2], 0).to_string(), "step of an aggregation is 0 ns, must be above 0");
        assert_eq!(refused(&[1], 1).to_string(), "1 times, but 2 values");
        assert_eq!(refused(&[2, 2], 1).to_string(), "times are not strictly ascending");
        let (times, column, _) = sum(&[i64::MAX - 1, i64::MAX], 1_000).unwrap();
        assert_eq!((times, column), (vec![i64::MAX], ValueColumn::I64(vec![3])));
    }
}
