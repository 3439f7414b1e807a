//! What may be given up to take less space? Off by default, set for series by their labels, and never more than was allowed.
//!
//! Everything here is a pure function from samples to samples: numbers are replaced by others that the codecs of a chunk write
//! in fewer bytes, so what was verified is what a reader decodes. One method is one file. Each result is compared with the
//! original before it is taken, and with the lossless form: where it is not smaller, nothing is given up.
//!
//! Path of one sample: before, `store` merges small chunks into a large one and asks its policy; after, `encode_group`.

mod aggregate;
mod counter;
mod grid;
mod linear;
mod rounding;
mod times;
mod trace;
mod wavelet;

use std::ops::Range;

use tacho_model::{Timestamp, ValueType};

pub use self::aggregate::aggregate;
pub use self::counter::{Movement, is_counter_name};
pub use self::times::compact_times;
use crate::codec::{self, Numbers};
use crate::loss::{Aggregation, Loss, Method, Tolerance};
use crate::values::{ValueColumn, Values};

/// What may be given up in the samples of a series. The default gives up nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Semantic {
    /// ns by which a time may be moved.
    pub time: u64,
    /// How far a value may be moved.
    pub value: Option<Tolerance>,
    /// How values are made simpler, when they may be moved.
    pub method: Method,
    /// Done first: one value for each step of time.
    pub aggregation: Option<Aggregation>,
}

impl Default for Semantic {
    fn default() -> Self {
        Self { time: 0, value: None, method: Method::Linear, aggregation: None }
    }
}

/// Settings that cannot be followed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SemanticError {
    #[error("tolerance is {got}, a number that is not negative is wanted")]
    Tolerance { got: f64 },
    #[error("relative tolerance is {got}, less than 1 is wanted: 1 would allow everything to be 0")]
    Share { got: f64 },
    #[error("step of an aggregation is {got} ns, more than 0 is wanted")]
    Step { got: i64 },
    #[error("{times} times and {values} values are no samples")]
    Length { times: usize, values: usize },
    #[error("times do not ascend strictly")]
    Order,
}

/// Why the values are as they were recorded although they could have been moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It may be a counter, each of whose differences counts.
    Counter,
    /// The other form is not smaller.
    NotSmaller,
}

/// Samples of which something may have been given up.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// Strictly ascending; the first is that of the original, or the last of its step.
    pub at: Vec<Timestamp>,
    pub values: ValueColumn,
    /// What has been given up in the values; `None`: nothing.
    pub loss: Option<Loss>,
    /// Largest distance in ns between a time and the original's.
    pub time_error_max: u64,
    /// Why nothing has, when something could have.
    pub kept: Option<Kept>,
}

impl Semantic {
    /// Whether nothing is given up.
    pub const fn is_lossless(&self) -> bool {
        self.time == 0 && self.value.is_none() && self.aggregation.is_none()
    }

    /// Whether the settings can be followed.
    pub fn check(&self) -> Result<(), SemanticError> {
        match self.value {
            Some(Tolerance::Absolute(got) | Tolerance::Relative(got)) if !(got.is_finite() && got >= 0.0) => {
                return Err(SemanticError::Tolerance { got });
            }
            Some(Tolerance::Relative(got)) if got >= 1.0 => return Err(SemanticError::Share { got }),
            _ => {}
        }
        match self.aggregation {
            Some(Aggregation { step, .. }) if step <= 0 => Err(SemanticError::Step { got: step }),
            _ => Ok(()),
        }
    }
}

/// Gives up what may be given up, where that saves space. `life` is what is known of the series: values of what may be a counter
/// stay as they are.
///
/// # Errors
/// When the settings cannot be followed, or these are no samples: as many times as values, strictly ascending.
pub fn apply(
    at: &[Timestamp],
    values: Values<'_>,
    semantic: &Semantic,
    life: &Movement,
) -> Result<Reduced, SemanticError> {
    semantic.check()?;
    let (at, column, aggregated) = match semantic.aggregation {
        Some(aggregation) => {
            let (at, column, loss) = aggregate(at, values, aggregation)?;
            (at, column, Some(loss))
        }
        None => {
            aggregate::check(at, values)?;
            (at.to_vec(), values.to_column(), None)
        }
    };
    let (at, time_error_max) = compact_times(&at, semantic.time);
    let simpler = semantic.value.map(|tolerance| match life.is_gauge() {
        true => {
            let exact = 0..column.len();
            simplify(column.as_values(), &[exact], semantic.method, tolerance)
        }
        false => Err(Kept::Counter),
    });
    Ok(match simpler {
        Some(Ok((values, loss))) => {
            let loss = Some(Loss { aggregation: semantic.aggregation, ..loss });
            Reduced { at, values, loss, time_error_max, kept: None }
        }
        Some(Err(kept)) => Reduced { at, values: column, loss: aggregated, time_error_max, kept: Some(kept) },
        None => Reduced { at, values: column, loss: aggregated, time_error_max, kept: None },
    })
}

/// Moves the values at the places `exact` within the tolerance; the others were moved before, and stay. Rounding is always tried
/// beside the method that is asked for, and the smallest column is taken; its loss says what was done to it. Of integers only
/// rounding is possible.
pub fn simplify(
    values: Values<'_>,
    exact: &[Range<usize>],
    method: Method,
    tolerance: Tolerance,
) -> Result<(ValueColumn, Loss), Kept> {
    let mut best = (encoded_bytes(values), None);
    let mut offer = |method, column: ValueColumn| {
        let Some(achieved) = error_max(values, column.as_values(), tolerance) else { return };
        let bytes = encoded_bytes(column.as_values());
        if bytes < best.0 {
            let loss = Loss { aggregation: None, method: Some(method), bound: tolerance, achieved };
            best = (bytes, Some((column, loss)));
        }
    };
    match exact {
        [all] if *all == (0..values.len()) => {
            candidates(values, method, tolerance)
                .into_iter()
                .for_each(|(method, column)| offer(method, column));
        }
        parts => {
            for method in [Method::Rounding, method] {
                if let Some(column) = patched(values, parts, method, tolerance) {
                    offer(method, column);
                }
            }
        }
    }
    best.1.ok_or(Kept::NotSmaller)
}

/// Columns that may be smaller, and how each was made.
fn candidates(values: Values<'_>, method: Method, tolerance: Tolerance) -> Vec<(Method, ValueColumn)> {
    let mut columns: Vec<_> =
        rounding::candidates(values, tolerance).map(|column| (Method::Rounding, column)).collect();
    if let Values::F64(floats) = values {
        let lines = match method {
            Method::Linear => linear::candidates(floats, tolerance),
            Method::Wavelet => wavelet::candidates(floats, tolerance),
            Method::Rounding => vec![],
        };
        columns.extend(lines.into_iter().map(|column| (method, ValueColumn::F64(column))));
    }
    columns
}

/// Values of a part from which on its own size is asked for.
const PART_VALUES_MIN: usize = 16;

/// The values with each of the parts in the smallest form that the method has for it. Parts that it cannot move stay as they
/// are. `None` when all do.
fn patched(
    values: Values<'_>,
    parts: &[Range<usize>],
    method: Method,
    tolerance: Tolerance,
) -> Option<ValueColumn> {
    let mut column = values.to_column();
    let mut moved = false;
    for part in parts {
        let exact = values.to_column().part(part.clone());
        let of_method =
            candidates(exact.as_values(), method, tolerance).into_iter().filter(|(by, _)| *by == method);
        let fits =
            |column: &ValueColumn| error_max(exact.as_values(), column.as_values(), tolerance).is_some();
        let columns = of_method.map(|(_, column)| column).filter(fits);
        // What a few values take alone says nothing of what they take among others.
        let bytes = |column: &ValueColumn| match column.len() {
            ..PART_VALUES_MIN => 0,
            _ => encoded_bytes(column.as_values()),
        };
        if let Some(smallest) = columns.min_by_key(bytes) {
            moved |= column.put(part.start, smallest.as_values());
        }
    }
    moved.then_some(column)
}

/// How far `value` may be moved.
const fn allowed(value: f64, tolerance: Tolerance) -> f64 {
    match tolerance {
        Tolerance::Absolute(bound) => bound,
        Tolerance::Relative(share) => share * value.abs(),
    }
}

/// Largest difference of `moved` to `values`, as `tolerance` measures it. `None` when one is beyond the tolerance, or when what
/// is no finite number is not the same, bit for bit.
#[expect(clippy::cast_precision_loss, reason = "a difference above 2^53 is rounded; it is then compared")]
fn error_max(values: Values<'_>, moved: Values<'_>, tolerance: Tolerance) -> Option<f64> {
    let mut largest = 0.0f64;
    let mut compare = |value: f64, difference: f64| {
        let share = match tolerance {
            Tolerance::Absolute(_) => difference,
            Tolerance::Relative(_) if difference > 0.0 => difference / value.abs(),
            Tolerance::Relative(_) => 0.0,
        };
        largest = largest.max(share);
        difference <= allowed(value, tolerance) && share <= tolerance.amount()
    };
    let fits = match (values, moved) {
        (Values::F64(a), Values::F64(b)) if a.len() == b.len() => a.iter().zip(b).all(|(a, b)| {
            let finite = a.is_finite() && b.is_finite();
            if finite { compare(*a, (a - b).abs()) } else { a.to_bits() == b.to_bits() }
        }),
        (Values::I64(a), Values::I64(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| compare(*a as f64, a.abs_diff(*b) as f64))
        }
        (Values::U64(a), Values::U64(b)) if a.len() == b.len() => {
            a.iter().zip(b).all(|(a, b)| compare(*a as f64, a.abs_diff(*b) as f64))
        }
        _ => false,
    };
    fits.then_some(largest)
}

/// Bytes that a column of these values takes in a chunk.
fn encoded_bytes(values: Values<'_>) -> usize {
    column_bytes(&values.words(), values.value_type())
}

fn column_bytes(words: &[u64], kind: ValueType) -> usize {
    match words.split_first() {
        Some((first, rest)) if rest.iter().any(|word| word != first) => {
            codec::encode(Numbers { words, kind }, 0, &crate::Encoding::thorough()).bytes.len()
        }
        _ => 0,
    }
}
