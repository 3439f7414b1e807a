//! Samples: times and numbers, in their order.

use tacho_model::{Kind, Sample, TimeRange, Timestamp, Value, ValueType};

use crate::builder::Builder;
use crate::columns::Columns;
use crate::header::{Stats, Sum};
use crate::limits::CHUNK_RECORDS_MAX;
use crate::{Error, Header, Role, verify};

/// Values to be written, all of one type.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    F64(&'a [f64]),
    I64(&'a [i64]),
    U64(&'a [u64]),
}

/// Values as read, all of one type.
#[derive(Clone, Debug)]
pub enum ValueColumn {
    F64(Vec<f64>),
    I64(Vec<i64>),
    U64(Vec<u64>),
}

/// The samples of a chunk: `at[i]` goes with `values.get(i)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleColumns {
    pub at: Vec<Timestamp>,
    pub values: ValueColumn,
}

impl Values<'_> {
    pub const fn len(&self) -> usize {
        match self {
            Self::F64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::U64(v) => v.len(),
        }
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    const fn value_type(&self) -> ValueType {
        match self {
            Self::F64(_) => ValueType::F64,
            Self::I64(_) => ValueType::I64,
            Self::U64(_) => ValueType::U64,
        }
    }

    fn words(&self) -> Vec<u64> {
        match self {
            Self::F64(v) => v.iter().map(|v| v.to_bits()).collect(),
            Self::I64(v) => v.iter().map(|v| v.cast_unsigned()).collect(),
            Self::U64(v) => v.to_vec(),
        }
    }
}

impl ValueColumn {
    fn from_words(words: Vec<u64>, kind: ValueType) -> Self {
        match kind {
            ValueType::F64 => Self::F64(words.into_iter().map(f64::from_bits).collect()),
            ValueType::I64 => Self::I64(words.into_iter().map(u64::cast_signed).collect()),
            ValueType::U64 => Self::U64(words),
        }
    }

    pub const fn len(&self) -> usize {
        self.as_values().len()
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub const fn as_values(&self) -> Values<'_> {
        match self {
            Self::F64(v) => Values::F64(v.as_slice()),
            Self::I64(v) => Values::I64(v.as_slice()),
            Self::U64(v) => Values::U64(v.as_slice()),
        }
    }

    pub fn get(&self, at: usize) -> Option<Value> {
        match self {
            Self::F64(v) => v.get(at).copied().map(Value::F64),
            Self::I64(v) => v.get(at).copied().map(Value::I64),
            Self::U64(v) => v.get(at).copied().map(Value::U64),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Value> {
        (0..self.len()).map_while(|at| self.get(at))
    }

    /// The values as PromQL sees them; integers beyond 2^53 are rounded here.
    pub fn as_f64(&self) -> Vec<f64> {
        match self {
            Self::F64(v) => v.clone(),
            Self::I64(_) | Self::U64(_) => self.iter().map(Value::as_f64).collect(),
        }
    }
}

/// Bit for bit: NaN equals the same NaN.
impl PartialEq for ValueColumn {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.as_values(), other.as_values());
        a.value_type() == b.value_type() && a.words() == b.words()
    }
}

impl Eq for ValueColumn {}

impl SampleColumns {
    pub fn iter(&self) -> impl Iterator<Item = Sample> {
        self.at.iter().zip(self.values.iter()).map(|(at, value)| Sample { at: *at, value })
    }
}

/// Writes samples of one type; their order is kept.
///
/// # Panics
/// When there are none, more than [`CHUNK_RECORDS_MAX`], or not as many times as values.
pub fn encode_samples(at: &[Timestamp], values: Values<'_>) -> Vec<u8> {
    assert_eq!(at.len(), values.len(), "a sample is a time and a value");
    assert!(at.len() <= CHUNK_RECORDS_MAX, "{} samples in one chunk", at.len());
    let range = range(at.iter().copied());
    let words = values.words();
    let stats = match values {
        Values::F64(v) => float_stats(v),
        Values::I64(v) => integer_stats(v, Value::I64),
        Values::U64(v) => integer_stats(v, Value::U64),
    };

    let mut builder = Builder::default();
    builder.i64(Role::At, at);
    builder.numbers(Role::Value, &words, values.value_type());
    let bytes = builder.finish(Kind::Sample, at.len(), range, Some(stats), None);
    verify::samples(&bytes, at, &words, values.value_type());
    bytes
}

/// Reads what [`encode_samples`] wrote.
pub(crate) fn decode(header: &Header, mut columns: Columns<'_>) -> Result<SampleColumns, Error> {
    let Some(stats) = header.stats else { return Err(Error::value("statistics", 0u64)) };
    let kind = stats.first.value_type();
    let at = columns.i64(Role::At, header.count)?;
    let words = columns.numbers(Role::Value, header.count, kind)?;
    columns.end()?;
    Ok(SampleColumns { at, values: ValueColumn::from_words(words, kind) })
}

/// First and last of some moments.
///
/// # Panics
/// When there are none: an empty chunk is a programmer's error.
pub(crate) fn range(moments: impl Iterator<Item = Timestamp>) -> TimeRange {
    let range = moments.fold(TimeRange::new(Timestamp::MAX, Timestamp::MIN), |range, at| {
        TimeRange::new(range.start.min(at), range.end.max(at))
    });
    assert!(!range.is_empty(), "a chunk has at least one record");
    range
}

fn float_stats(values: &[f64]) -> Stats {
    let numbers = || values.iter().copied().filter(|v| !v.is_nan());
    Stats {
        count: numbers().count(),
        min: Value::F64(numbers().min_by(f64::total_cmp).unwrap_or(f64::NAN)),
        max: Value::F64(numbers().max_by(f64::total_cmp).unwrap_or(f64::NAN)),
        sum: Sum::F64(numbers().fold(0.0, |sum, v| sum + v)),
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

/// A value's words are what is compared in debug builds.
pub(crate) fn same(columns: &SampleColumns, at: &[Timestamp], words: &[u64], kind: ValueType) -> bool {
    columns.at == at && columns.values == ValueColumn::from_words(words.to_vec(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_and_value_agree() {
        for value in [Value::F64(-0.0), Value::I64(-1), Value::U64(u64::MAX)] {
            assert_eq!(crate::header::from_word(crate::header::to_word(value), value.value_type()), value);
        }
    }
}
