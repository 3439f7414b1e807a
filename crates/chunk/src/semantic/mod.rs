//! How can samples be changed to take less space? The change is off by default. Rules of the configuration enable it for the
//! series that their matchers accept, with a limit on the error.
//!
//! The methods are pure functions from samples to samples, one method per file. They replace numbers by numbers that the codecs
//! of a chunk encode in fewer bytes. A result is kept only if it is within the tolerance and takes fewer bytes than the unchanged
//! numbers. A configured aggregation is always applied.
//!
//! Path of one sample. Before: `store` merges small chunks into a large one and applies the policy of the series. After:
//! `encode_group`.

mod aggregate;
mod counter;
mod error;
mod grid;
mod linear;
mod rounding;
mod size;
mod times;
mod trace;
mod wavelet;

use std::ops::Range;

use tacho_model::Timestamp;

pub use self::aggregate::aggregate;
pub use self::counter::{Movement, is_counter_name};
pub use self::error::SemanticError;
use self::size::column_bytes;
pub use self::times::compact_times;
use crate::loss::{Aggregation, Loss, Method, Tolerance};
use crate::values::{ValueColumn, Values};

/// The permitted loss for the samples of a series. The default is lossless.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Semantic {
    /// Limit on the change of a time, ns.
    pub time: u64,
    /// Limit on the change of a value.
    pub value: Option<Tolerance>,
    /// The method that changes values, if `value` permits this.
    pub method: Method,
    /// The aggregation to one value per time step, which is applied first.
    pub aggregation: Option<Aggregation>,
}

impl Default for Semantic {
    fn default() -> Self {
        Self { time: 0, value: None, method: Method::Linear, aggregation: None }
    }
}

/// Why values are unchanged although a loss was permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The series may be a counter, and differences of counters must stay exact.
    Counter,
    /// No simplified form within the tolerance is smaller.
    NotSmaller,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reduced {
    /// Strictly ascending times. The first is the first original time or, with aggregation, the last original time in the first
    /// step.
    pub at: Vec<Timestamp>,
    pub values: ValueColumn,
    /// The loss of the values; `None` if they are lossless.
    pub loss: Option<Loss>,
    /// Largest difference between a time and the original time, ns.
    pub time_error_max: u64,
    /// Why no method changed the values although `Semantic::value` permitted it.
    pub kept: Option<Kept>,
}

impl Semantic {
    /// Whether no loss is permitted.
    pub const fn is_lossless(&self) -> bool {
        self.time == 0 && self.value.is_none() && self.aggregation.is_none()
    }

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

/// Aggregates samples if requested, then changes times and values as permitted if that saves space. `life` is the known
/// movement of the series. Values of a possible counter are only aggregated.
///
/// # Errors
/// If the settings are invalid, if there are not as many values as times, or if times are not strictly ascending.
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

/// Changes the values at the indexes `exact` within the tolerance. An earlier call changed the other values; they are not changed
/// again. Tries the requested method and rounding, and returns the column with the fewest bytes. The loss names the method of
/// this column. Integers can only be rounded.
///
/// # Errors
/// If no column takes fewer bytes than `values`.
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

/// Columns that may be smaller, with the method of each.
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

/// A part with at least this number of values is replaced by the smallest of its candidates. A shorter part is replaced by the
/// first candidate.
const PART_VALUES_MIN: usize = 16;

/// The values, with each part replaced by a candidate of the method that is within the tolerance ([`PART_VALUES_MIN`] states
/// which one). `None` if the method changes no part.
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
        // The size of a few values alone does not show their size within the column.
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

/// Largest permitted change of `value`.
const fn allowed(value: f64, tolerance: Tolerance) -> f64 {
    match tolerance {
        Tolerance::Absolute(bound) => bound,
        Tolerance::Relative(share) => share * value.abs(),
    }
}

/// Largest difference between `moved` and `values`, absolute or relative like `tolerance`. `None` if it exceeds the tolerance, if
/// a value that is not finite differs in any bit, or if types or lengths differ.
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

fn encoded_bytes(values: Values<'_>) -> usize {
    column_bytes(&values.words(), values.value_type())
}
