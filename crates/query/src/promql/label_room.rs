//! How much memory may the labels take that a query makes?
//!
//! In the index series share what they have in common, and a result of few points may have labels of its own for each:
//! `label_replace` and `group_left` write texts into all of them, `rate` takes a name off, `count_values` makes a set for each
//! value. What nodes pass on unchanged costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_model::Labels;

use crate::{Cancel, Error};

use super::plan::Params;
use super::rows::Value;

/// Memory of a row and its set of labels beside their texts.
const SET_BYTES: usize = 192;

/// Counts labels against the limit; several threads may.
#[derive(Debug)]
pub struct LabelRoom {
    bytes_max: usize,
    taken: AtomicUsize,
    cancel: Cancel,
}

impl LabelRoom {
    pub fn new(params: &Params) -> Self {
        let (bytes_max, cancel) = (params.limits.label_bytes_max, params.cancel.clone());
        Self { bytes_max, taken: AtomicUsize::new(0), cancel }
    }

    /// For labels that were made and go into a result.
    pub fn keep(&self, labels: Arc<Labels>) -> Result<Arc<Labels>, Error> {
        let bytes = bytes_of(&labels);
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken > self.bytes_max {
            return Err(Error::limit(
                "bytes for labels of intermediate results",
                taken as u128,
                self.bytes_max,
            ));
        }
        Ok(labels)
    }

    /// Where each row takes long, for as many labels are asked for.
    pub fn check_cancel(&self) -> Result<(), Error> {
        self.cancel.check()
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// A node has its value: of what it made and what its operands had, only that is left.
    pub fn settle(&self, taken: usize) {
        self.taken.store(taken, Ordering::Relaxed);
    }
}

fn bytes_of(labels: &Labels) -> usize {
    SET_BYTES + labels.canonical_bytes()
}

/// What the labels of a value take if nobody else has them.
pub fn label_bytes(value: &Value<'_>) -> usize {
    match value {
        Value::Vector(rows) => rows.iter().map(|row| bytes_of(&row.labels)).sum(),
        Value::Ranges(ranges) => ranges.series.iter().map(|series| bytes_of(&series.labels)).sum(),
        Value::Scalar(_) | Value::Text(_) => 0,
    }
}
