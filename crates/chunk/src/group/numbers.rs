//! How are the numbers of a header stored in few bytes? A float is stored as an integer and a number of decimals, if that is
//! exact. The statistics of a column are stored as differences from its minimum.

use tacho_model::{Value, ValueType};

use crate::Error;
use crate::bytes::{Reader, put_varint, put_varint128, put_zigzag128, unzigzag};
use crate::stats::{Stats, Sum, from_word, to_word};

/// The number of decimals that marks a column whose floats are stored unchanged in the header.
pub(super) const RAW: u8 = 15;
/// 2^53: limit on the absolute value of an integer that represents a float.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
/// Powers of ten by number of decimals. All of them are exact in f64.
const POWERS: [f64; RAW as usize] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];

fn power(decimals: u8) -> Option<f64> {
    POWERS.get(usize::from(decimals)).copied()
}

/// The integer `m` for which `m / 10^decimals` is exactly this float.
#[expect(clippy::cast_possible_truncation, reason = "an integer of at most 2^53")]
fn scaled(float: f64, decimals: u8) -> Option<i128> {
    let power = power(decimals)?;
    let m = (float * power).round();
    let same = m.abs() <= WHOLE_MAX && ((m + 0.0) / power).to_bits() == float.to_bits();
    same.then_some(i128::from(m as i64))
}

/// The smallest number of decimals that represents all values: 0 for integers, [`RAW`] if there is none.
pub(super) fn decimals(values: &[Value]) -> u8 {
    let fits = |decimals: &u8| values.iter().all(|value| to_integer(*value, *decimals).is_some());
    (0..RAW).find(fits).unwrap_or(RAW)
}

fn to_integer(value: Value, decimals: u8) -> Option<i128> {
    match value {
        Value::F64(v) => scaled(v, decimals),
        Value::I64(v) => Some(v.into()),
        Value::U64(v) => Some(v.into()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "results above 2^53 are refused")]
fn float(m: i128, decimals: u8, what: &'static str) -> Result<f64, Error> {
    let whole = i64::try_from(m).ok().map(|m| m as f64).filter(|whole| whole.abs() <= WHOLE_MAX);
    let quotient = whole.zip(power(decimals)).map(|(whole, power)| whole / power);
    quotient.ok_or_else(|| beyond(what, m))
}

/// The error for an integer `m` that no value of the type can have. The message has the absolute value of `m`, but at most
/// `u64::MAX`.
fn beyond(what: &'static str, m: i128) -> Error {
    Error::value(what, u64::try_from(m.unsigned_abs()).unwrap_or(u64::MAX))
}

fn from_integer(m: i128, kind: ValueType, decimals: u8, what: &'static str) -> Result<Value, Error> {
    Ok(match kind {
        ValueType::F64 => Value::F64(float(m, decimals, what)?),
        ValueType::I64 => Value::I64(i64::try_from(m).map_err(|_| beyond(what, m))?),
        ValueType::U64 => Value::U64(u64::try_from(m).map_err(|_| beyond(what, m))?),
    })
}

pub(super) fn put_value(out: &mut Vec<u8>, value: Value, decimals: u8) {
    match (value, to_integer(value, decimals)) {
        (Value::U64(v), _) => put_varint(out, v),
        (_, Some(m)) => put_zigzag128(out, m),
        (_, None) => out.extend_from_slice(&to_word(value).to_le_bytes()),
    }
}

/// Decodes the output of [`put_value`].
pub(super) fn take_value(reader: &mut Reader<'_>, kind: ValueType, decimals: u8) -> Result<Value, Error> {
    if decimals == RAW {
        return Ok(from_word(u64::from_le_bytes(reader.array("value")?), kind));
    }
    from_integer(take_integer(reader, kind)?, kind, decimals, "value")
}

fn take_integer(reader: &mut Reader<'_>, kind: ValueType) -> Result<i128, Error> {
    let m = reader.varint("value")?;
    Ok(if kind == ValueType::U64 { m.into() } else { unzigzag(m).into() })
}

/// The sum of `stats` minus `count * min`, in units of `10^-decimals`. `None` if the result is negative or not an exact integer.
fn sum_above_min(stats: &Stats, min: i128, decimals: u8) -> Option<u128> {
    let sum = match stats.sum {
        Sum::Integer(sum) => sum,
        Sum::F64(sum) => scaled(sum, decimals)?,
    };
    let least = min.checked_mul(i128::try_from(stats.count).ok()?)?;
    u128::try_from(sum.checked_sub(least)?).ok()
}

/// Writes the statistics of a column of `count` values.
pub(super) fn put_stats(out: &mut Vec<u8>, stats: &Stats, count: usize, decimals: u8) {
    let nans = (count.saturating_sub(stats.count) as u64) << 1;
    let values = [stats.max, stats.first, stats.last];
    let raw_sum = stats.sum.as_f64().to_le_bytes();
    let Some(min) = to_integer(stats.min, decimals) else {
        put_varint(out, nans);
        [stats.min].iter().chain(&values).for_each(|v| out.extend_from_slice(&to_word(*v).to_le_bytes()));
        return out.extend_from_slice(&raw_sum);
    };
    let left = sum_above_min(stats, min, decimals);
    put_varint(out, nans | u64::from(left.is_none()));
    put_value(out, stats.min, decimals);
    for value in values {
        let above = to_integer(value, decimals).unwrap_or(min) - min;
        put_varint128(out, above.unsigned_abs());
    }
    match left {
        Some(left) => put_varint128(out, left),
        None => out.extend_from_slice(&raw_sum),
    }
}

/// Decodes the output of [`put_stats`].
pub(super) fn take_stats(
    reader: &mut Reader<'_>,
    count: usize,
    kind: ValueType,
    decimals: u8,
) -> Result<Stats, Error> {
    let field = reader.varint("number of NaNs")?;
    let (nans, raw_sum) = (field >> 1, field & 1 == 1);
    let Some(nans) = usize::try_from(nans).ok().filter(|nans| *nans <= count) else {
        return Err(Error::Limit { what: "number of NaNs", value: nans, max: count as u64 });
    };
    let numbers = count - nans;
    if decimals == RAW {
        return take_raw(reader, numbers, kind);
    }
    let least = take_integer(reader, kind)?;
    let min = from_integer(least, kind, decimals, "min")?;
    let mut value = |what| {
        let above = i128::from(reader.varint(what)?);
        from_integer(least + above, kind, decimals, what)
    };
    let (max, first, last) = (value("max")?, value("first")?, value("last")?);
    let sum = if raw_sum && kind == ValueType::F64 {
        Sum::F64(f64::from_le_bytes(reader.array("sum")?))
    } else if raw_sum {
        return Err(Error::value("form of the sum", 1u8));
    } else {
        let left = i128::try_from(reader.varint128("sum")?).map_err(|_| Error::value("sum", u64::MAX))?;
        let sum = least.saturating_mul(numbers as i128).saturating_add(left);
        if kind == ValueType::F64 { Sum::F64(float(sum, decimals, "sum")?) } else { Sum::Integer(sum) }
    };
    Ok(Stats { count: numbers, min, max, sum, first, last })
}

fn take_raw(reader: &mut Reader<'_>, numbers: usize, kind: ValueType) -> Result<Stats, Error> {
    let mut value = |what| Ok(from_word(u64::from_le_bytes(reader.array(what)?), kind));
    let (min, max, first, last) = (value("min")?, value("max")?, value("first")?, value("last")?);
    let sum = Sum::F64(f64::from_le_bytes(reader.array("sum")?));
    Ok(Stats { count: numbers, min, max, sum, first, last })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::values::{ValueColumn, Values};

    /// Encodes and decodes statistics; returns the number of bytes.
    fn check(values: Values<'_>) -> usize {
        let stats = Stats::of(values);
        let decimals = decimals(&[stats.min, stats.max, stats.first, stats.last]);
        let mut out = vec![];
        put_stats(&mut out, &stats, values.len(), decimals);
        let mut reader = Reader::new(&out);
        let read = take_stats(&mut reader, values.len(), values.value_type(), decimals).unwrap();
        assert_eq!(format!("{read:?}"), format!("{stats:?}"));
        assert_eq!(reader.end("statistics"), Ok(()));
        out.len()
    }

    proptest! {
        #[test]
        fn statistics_are_read_as_written(words in prop::collection::vec(prop_oneof![any::<u64>(), 0u64..1000], 1..40)) {
            for kind in [ValueType::F64, ValueType::I64, ValueType::U64] {
                check(ValueColumn::from_words(words.clone(), kind).as_values());
            }
            let prices: Vec<f64> = words.iter().map(|word| (word % 100_000) as f64 / 100.0).collect();
            prop_assert!(check(Values::F64(&prices)) <= 24);
        }
    }

    #[test]
    fn floats_that_are_not_decimal_are_stored_unchanged() {
        for (values, bytes) in [
            (vec![0.25, 0.5], 6),
            (vec![1.0 / 3.0, 1.0], 41),
            (vec![-0.0, 1.0], 41),
            (vec![f64::INFINITY, 1.0], 41),
            (vec![f64::NAN, f64::NAN], 41),
            (vec![9.007_199_254_740_993e15, -9.007_199_254_740_993e15], 34),
        ] {
            assert_eq!(check(Values::F64(&values)), bytes, "{values:?}");
        }
        check(Values::I64(&[i64::MIN, i64::MAX, i64::MIN]));
        check(Values::U64(&[u64::MAX; 3]));
    }
}
