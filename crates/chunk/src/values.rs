//! What was measured at each time? Columns of numbers of one type.

use std::ops::Range;

use tacho_model::{Value, ValueType};

/// Values to encode, all of one type.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    F64(&'a [f64]),
    I64(&'a [i64]),
    U64(&'a [u64]),
}

/// Decoded values, all of one type.
#[derive(Clone, Debug)]
pub enum ValueColumn {
    F64(Vec<f64>),
    I64(Vec<i64>),
    U64(Vec<u64>),
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

    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::F64(_) => ValueType::F64,
            Self::I64(_) => ValueType::I64,
            Self::U64(_) => ValueType::U64,
        }
    }

    pub fn to_column(&self) -> ValueColumn {
        match self {
            Self::F64(v) => ValueColumn::F64(v.to_vec()),
            Self::I64(v) => ValueColumn::I64(v.to_vec()),
            Self::U64(v) => ValueColumn::U64(v.to_vec()),
        }
    }

    /// The 64 bits of each value.
    pub fn words(&self) -> Vec<u64> {
        match self {
            Self::F64(v) => v.iter().map(|v| v.to_bits()).collect(),
            Self::I64(v) => v.iter().map(|v| v.cast_unsigned()).collect(),
            Self::U64(v) => v.to_vec(),
        }
    }
}

impl ValueColumn {
    /// The inverse of [`Values::words`].
    pub fn from_words(words: Vec<u64>, kind: ValueType) -> Self {
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

    pub const fn value_type(&self) -> ValueType {
        self.as_values().value_type()
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

    /// Overwrites the values from index `from` on. If the types differ or the values do not fit, returns false and changes
    /// nothing.
    pub fn put(&mut self, from: usize, values: Values<'_>) -> bool {
        fn put<T: Copy>(all: &mut [T], from: usize, values: &[T]) -> bool {
            let places = from..from.saturating_add(values.len());
            all.get_mut(places).map(|places| places.copy_from_slice(values)).is_some()
        }
        match (self, values) {
            (Self::F64(all), Values::F64(values)) => put(all, from, values),
            (Self::I64(all), Values::I64(values)) => put(all, from, values),
            (Self::U64(all), Values::U64(values)) => put(all, from, values),
            _ => false,
        }
    }

    /// Keeps the values at `places`, clipped to the end.
    #[must_use]
    pub fn part(mut self, places: Range<usize>) -> Self {
        fn keep<T>(values: &mut Vec<T>, places: Range<usize>) {
            values.truncate(places.end);
            values.drain(..places.start.min(values.len()));
        }
        match &mut self {
            Self::F64(v) => keep(v, places),
            Self::I64(v) => keep(v, places),
            Self::U64(v) => keep(v, places),
        }
        self
    }

    /// A copy of the values at `places`, clipped to the end.
    #[must_use]
    pub fn copy_of(&self, places: Range<usize>) -> Self {
        fn copy<T: Copy>(values: &[T], places: Range<usize>) -> Vec<T> {
            let end = places.end.min(values.len());
            values.get(places.start..end).unwrap_or_default().to_vec()
        }
        match self {
            Self::F64(v) => Self::F64(copy(v, places)),
            Self::I64(v) => Self::I64(copy(v, places)),
            Self::U64(v) => Self::U64(copy(v, places)),
        }
    }

    /// The values as PromQL uses them. Integers above 2^53 are rounded.
    pub fn into_f64(self) -> Vec<f64> {
        match self {
            Self::F64(v) => v,
            Self::I64(v) => v.into_iter().map(|v| Value::I64(v).as_f64()).collect(),
            Self::U64(v) => v.into_iter().map(|v| Value::U64(v).as_f64()).collect(),
        }
    }
}

/// Compares bits, so that a NaN equals the same NaN.
impl PartialEq for ValueColumn {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::F64(a), Self::F64(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
            }
            (Self::I64(a), Self::I64(b)) => a == b,
            (Self::U64(a), Self::U64(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for ValueColumn {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_clipped_at_the_end() {
        let column = ValueColumn::I64(vec![1, 2, 3, 4]);
        for (places, left) in [(1..3, vec![2, 3]), (0..9, vec![1, 2, 3, 4]), (3..3, vec![]), (7..9, vec![])] {
            assert_eq!(column.copy_of(places.clone()), ValueColumn::I64(left.clone()));
            assert_eq!(column.clone().part(places), ValueColumn::I64(left));
        }
    }
}
