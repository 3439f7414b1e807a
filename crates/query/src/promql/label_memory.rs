//! How much memory do the labels created by a query take?
//!
//! Series in the index share labels, but the result of a query may have new labels for each series: `label_replace` and
//! `group_left` write texts into all label sets, `rate` drops the name, `count_values` creates a label set for each value. Labels
//! are counted when a node creates them, not when a node passes them on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tacho_model::Labels;

use crate::{Cancel, Error};

use super::params::Params;

/// Memory of a row and its label set, without the texts.
const SET_BYTES: usize = 192;

/// Counts the bytes of labels and checks the limit.
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

    /// Counts labels that were created for a result.
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

    /// Loops that create labels call this in each iteration. An iteration takes much longer than this check, and a cancelled
    /// query stops soon.
    pub fn check_cancel(&self) -> Result<(), Error> {
        self.cancel.check()
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Called after a node is computed. `taken` is the number of bytes that remain after the node's operands are released.
    pub fn settle(&self, taken: usize) {
        self.taken.store(taken, Ordering::Relaxed);
    }
}

pub fn bytes_of(labels: &Labels) -> usize {
    SET_BYTES + labels.canonical_bytes()
}
