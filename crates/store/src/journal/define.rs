//! What does a reader of a journal keep of a series that the journal defines? Its labels, or its number in the index.
//!
//! This folder and `index/` use each other: a start of the store adds the series of a journal to the index ([`Numbered`]).

use std::sync::Arc;

use tacho_model::{Batch, Families, KnownSamples, KnownSeries, LabelError, Labels, Sample, SampleSeries};

use crate::guarded::Guarded;
use crate::index::{Index, SeriesNumber};

#[derive(Debug, Default)]
pub struct Records {
    pub batch: Batch,
    pub known: KnownSamples,
}

pub trait Define {
    type Series: Clone;

    /// The series with these canonical labels, and the memory of its labels while the file is read, bytes.
    ///
    /// # Errors
    /// The labels are malformed.
    fn define(&mut self, canonical: &[u8]) -> Result<(Self::Series, usize), LabelError>;

    fn labels(&self, series: &Self::Series) -> Arc<Labels>;

    /// Adds samples of a series to a batch. Adjacent samples of one series form one list.
    fn add(&self, records: &mut Records, series: Self::Series, samples: &[Sample]);
}

/// Keeps the labels. For readers that do not add the series to an index.
#[derive(Debug, Default)]
pub struct Labelled(Families);

impl Define for Labelled {
    type Series = Arc<Labels>;

    fn define(&mut self, canonical: &[u8]) -> Result<(Arc<Labels>, usize), LabelError> {
        let labels = self.0.read(canonical)?;
        let bytes = labels.own_bytes();
        Ok((Arc::new(labels), bytes))
    }

    fn labels(&self, series: &Arc<Labels>) -> Arc<Labels> {
        series.clone()
    }

    fn add(&self, records: &mut Records, labels: Arc<Labels>, samples: &[Sample]) {
        let all = &mut records.batch.samples;
        match all.last_mut() {
            Some(last) if Arc::ptr_eq(&last.labels, &labels) => last.samples.extend_from_slice(samples),
            _ => all.push(SampleSeries { labels, samples: samples.to_vec() }),
        }
    }
}

/// Adds the series to the index and keeps their numbers. For a start of the store, which needs no [`Labels`] of series that have
/// only samples.
#[derive(Debug)]
pub struct Numbered {
    index: Arc<Guarded<Index>>,
    /// Series that the file has added to the index.
    added: Vec<SeriesNumber>,
}

impl Numbered {
    pub const fn new(index: Arc<Guarded<Index>>) -> Self {
        Self { index, added: Vec::new() }
    }

    /// Removes the added series that have no records. The file defines such a series, but its records are damaged, or belong to
    /// batches that the journals contain twice.
    pub fn remove_unused(self) {
        let mut index = self.index.write();
        self.added.into_iter().for_each(|number| index.forget_unused(number));
    }
}

impl Define for Numbered {
    type Series = SeriesNumber;

    fn define(&mut self, canonical: &[u8]) -> Result<(SeriesNumber, usize), LabelError> {
        let mut index = self.index.write();
        let before = index.len();
        let number = index.add_without_kind(canonical)?;
        if index.len() > before {
            self.added.push(number);
        }
        // No `Labels` are kept, so they take no memory. The limit on the index was checked when the record was written.
        Ok((number, 0))
    }

    fn labels(&self, series: &SeriesNumber) -> Arc<Labels> {
        self.index.read().labels_of(*series)
    }

    fn add(&self, records: &mut Records, number: SeriesNumber, samples: &[Sample]) {
        let series = KnownSeries { number, note: 0, labels_bytes: 0 };
        samples.iter().for_each(|sample| records.known.push(series, *sample));
    }
}
