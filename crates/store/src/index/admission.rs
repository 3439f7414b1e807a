//! Limits on new series, checked before their records are stored.

use std::collections::{HashMap, HashSet};

use tacho_model::{Labels, SeriesId};

use super::{Index, LABEL_BYTES, SeriesNumber, VALUE_BYTES, bytes_of};
use crate::journal::format::DEFINITIONS_BYTES_MAX;

/// The limits. Concurrent batches may exceed them slightly. A series with several new label names may exceed `label_names_max`,
/// because each of its names is checked alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub series_max: usize,
    pub label_names_max: usize,
    pub label_values_max: usize,
    /// Limit on the memory of the index with all labels ([`Index::bytes`]).
    pub bytes_max: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("limit of {max} series is reached")]
    Series { max: usize },
    #[error("labels of one batch take more than {max} bytes when written out: send the batch in parts")]
    Written { max: usize },
    #[error("limit of {max} bytes for the index of series and their labels is reached")]
    Bytes { max: usize },
    #[error("label {name:?} is new, and the limit of {max} names of labels is reached")]
    Names { name: String, max: usize },
    #[error("label {name:?} already has {values} values, at most {max} are allowed (new: {begins:?})")]
    Values { name: String, values: usize, max: usize, begins: String },
}

/// Checks the series of one batch. Admits a series if one journal record can define it and the earlier series of the batch
/// ([`DEFINITIONS_BYTES_MAX`]). A new series must also be within [`Bounds`]. An admitted new series counts towards these limits.
pub struct Admission<'a> {
    index: &'a Index,
    bounds: Bounds,
    /// The series of the index that the last successful lookup found.
    before: Option<SeriesNumber>,
    series: HashSet<SeriesId>,
    /// New values of the admitted series, by label name.
    values: HashMap<&'a str, HashSet<&'a str>>,
    /// Memory of all admitted new series.
    bytes: usize,
    /// Bytes of the canonical labels of the series checked so far, and of the series in the batch's `KnownSamples`. The
    /// journal record of the batch defines at most these series. It defines no refused series, and no series that an earlier
    /// record of its file defines.
    pub(super) written: usize,
}

const SHOWN_CHARS_MAX: usize = 32;

impl<'a> Admission<'a> {
    /// `written`: bytes of the labels of the series in the batch's `KnownSamples`. The journal record of the batch may have to
    /// define these series, too.
    pub fn new(index: &'a Index, bounds: Bounds, written: usize) -> Self {
        Self {
            index,
            bounds,
            before: None,
            series: HashSet::new(),
            values: HashMap::new(),
            bytes: 0,
            written,
        }
    }

    pub fn admit(&mut self, labels: &'a Labels) -> Result<(), Refusal> {
        let written = self.written + labels.canonical_bytes();
        if written > DEFINITIONS_BYTES_MAX {
            return Err(Refusal::Written { max: DEFINITIONS_BYTES_MAX });
        }
        self.written = written;
        if let Some(known) = self.index.number_after(self.before, labels.id()) {
            self.before = Some(known);
            return Ok(());
        }
        if self.series.contains(&labels.id()) {
            return Ok(());
        }
        if self.index.len() + self.series.len() >= self.bounds.series_max {
            return Err(Refusal::Series { max: self.bounds.series_max });
        }
        let new: Vec<(&str, &str)> = labels.iter().filter(|(n, v)| self.is_new(n, v)).collect();
        new.iter().try_for_each(|(name, value)| self.room(name, value))?;
        let values: usize = new.iter().map(|(name, value)| self.value_bytes(name, value)).sum();
        let bytes = self.bytes + values + bytes_of(labels.len());
        if self.index.bytes() + bytes > self.bounds.bytes_max {
            return Err(Refusal::Bytes { max: self.bounds.bytes_max });
        }
        self.bytes = bytes;
        for (name, value) in new {
            self.values.entry(name).or_default().insert(value);
        }
        self.series.insert(labels.id());
        Ok(())
    }

    fn is_new(&self, name: &str, value: &str) -> bool {
        let known = self.index.labels.get(name).is_some_and(|label| label.values.contains_key(value));
        !known && self.values.get(name).is_none_or(|values| !values.contains(value))
    }

    /// Memory of a new value, plus the memory of its label name if the name is new.
    fn value_bytes(&self, name: &str, value: &str) -> usize {
        let is_known = self.index.labels.contains_key(name) || self.values.contains_key(name);
        VALUE_BYTES + value.len() + if is_known { 0 } else { LABEL_BYTES + name.len() }
    }

    fn room(&self, name: &str, value: &str) -> Result<(), Refusal> {
        let known = self.index.labels.get(name).map(|label| label.values.len());
        let coming = self.values.get(name).map(HashSet::len);
        if known.is_none() && coming.is_none() {
            let names = self.values.keys().filter(|name| !self.index.labels.contains_key(**name)).count();
            let max = self.bounds.label_names_max;
            if self.index.labels.len() + names >= max {
                return Err(Refusal::Names { name: name.to_owned(), max });
            }
        }
        let (values, max) = (known.unwrap_or(0) + coming.unwrap_or(0), self.bounds.label_values_max);
        if values < max {
            return Ok(());
        }
        let begins = value.chars().take(SHOWN_CHARS_MAX).collect();
        Err(Refusal::Values { name: name.to_owned(), values, max, begins })
    }
}
