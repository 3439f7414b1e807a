//! How do callers append a batch? With the labels of all its series, or with the numbers of series that the store knows.
//!
//! Path of one record. Before: `server/src/access/writer.rs` has its batch. Here: `intake.rs` checks it. After: `submit.rs`
//! passes it to the journal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tacho_model::{Batch, KnownSamples};

use super::Store;
use crate::Result;
use crate::arrival::{Appended, Origin};
use crate::commit::closed;
use crate::index::{self, Learned, Spellings};
use crate::intake::Admitted;

impl Store {
    /// Stores a batch. On `Ok`, the batch is on disk, except for the records that a limit on series, labels or chunks refused.
    /// The limits on series and labels refuse all records of a new series. The limit on chunks refuses only records that are
    /// far from the present time. The answer counts the refused series and names the first ones. On an error, no part of the
    /// batch is stored. Exception: a batch without origin that takes more than a quarter of the memory
    /// budget, or may not fit into one journal record, is stored in parts (`store/submit.rs`). Pass an `Arc` to
    /// keep a copy for a repetition. An empty batch with an origin marks its frames as accepted.
    ///
    /// Frames of one session may arrive in any order. A frame with a number below the highest one is stored if the number
    /// is in a known gap of the session (`sessions.rs`). Otherwise the answer is `Repeated`.
    ///
    /// # Errors
    /// `Invalid` when a record is not well formed or too large, when a batch with an origin takes more than a quarter of the
    /// memory budget or does not fit into one journal record, or when only some of its frames were stored before; `Full` when
    /// the sender should wait; `StorageFull` when the disk is full; `Io` when the journal cannot be written; `Closed` when the
    /// store is closed or its journal's thread has ended.
    pub async fn append(&self, batch: impl Into<Arc<Batch>>, origin: Option<Origin>) -> Result<Appended> {
        self.append_known(batch, KnownSamples::default(), origin).await
    }

    /// Like [`Store::append`], with samples of known series ([`Store::spellings`]). They are stored before those of `batch`.
    ///
    /// # Errors
    /// Like [`Store::append`], and `Full` when a known series has left the index since it was found.
    pub async fn append_known(
        &self,
        batch: impl Into<Arc<Batch>>,
        mut known: KnownSamples,
        origin: Option<Origin>,
    ) -> Result<Appended> {
        let batch = batch.into();
        if self.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        if batch.is_empty() && known.is_empty() && origin.is_none() {
            return Ok(Appended::Stored);
        }
        // Answered even when memory is full, because a repeated batch takes no memory.
        if let Some(answered) = origin.and_then(|origin| self.intake.repeated(origin)) {
            return answered;
        }
        // Changes nothing if the decoder has grouped them already.
        known.group();
        let ticket = self.intake.hold(&known)?;
        let Admitted { batch, known, refused, chunks } = self.intake.admit(batch, known);
        if refused.series == 0 {
            return self.keep((batch, known), origin, (chunks, ticket)).await;
        }
        if !batch.is_empty() || !known.is_empty() || origin.is_some() {
            self.keep((batch, known), origin, (chunks, ticket)).await?;
        }
        Ok(Appended::Partly(refused))
    }

    /// The spellings by which senders name the series of this store.
    pub fn spellings(&self) -> Spellings {
        self.intake.index.read().spellings().clone()
    }

    /// Notes the spellings of series whose samples were stored. Ends early when the store is closed.
    pub fn learn(&self, learned: &[Learned]) {
        let goes_on = || !self.closed.load(Ordering::Relaxed);
        index::learn(&self.intake.index, learned, self.intake.options.index_bytes_max, goes_on);
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::{
        FindSeries, KnownSeries, Labels, ManualClock, Matcher, NAME, Sample, SampleSeries, TimeRange, Value,
    };

    use super::*;
    use crate::{ErrorKind, MemoryDriver, Options};

    const SAMPLE: Sample = Sample { at: 1, value: Value::I64(1) };

    #[tokio::test]
    async fn a_series_with_samples_on_their_way_is_not_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { merge_in_background: false, ..Options::default() };
        let (driver, clock) = (Arc::new(MemoryDriver::new()), Arc::new(ManualClock::new(1_000)));
        let store = Store::open(driver, directory.path(), options, clock).await.unwrap();
        let labels = Arc::new(Labels::new([(NAME, "m")]).unwrap());
        let samples = vec![SampleSeries { labels: labels.clone(), samples: vec![SAMPLE] }];
        store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
        let spellings = store.spellings();
        let spelling = spellings.finder().keys().labels(b"m");
        store.learn(&[Learned { id: labels.id(), spelling, note: 0, labels_bytes: 11 }]);
        let known = |number| {
            let mut known = KnownSamples::default();
            known.push(KnownSeries { number, note: 0, labels_bytes: 11 }, Sample { at: 2, ..SAMPLE });
            known
        };
        let empty = async || {
            store.delete(&[Matcher::equal(NAME, "m")], TimeRange::ALL).await.unwrap();
            store.flush().await.unwrap();
            store.sweep().await.unwrap();
            store.stats().upkeep.series_forgotten
        };
        let ticket = store.intake.hold(&known(0)).unwrap();
        assert_eq!(empty().await, 0);
        // The samples arrive, without labels.
        store.append_known(Batch::default(), known(0), None).await.unwrap();
        drop(ticket);
        assert_eq!(store.samples(labels.id(), TimeRange::ALL).await.unwrap().len(), 1);
        assert_eq!(empty().await, 1);
        assert_eq!(spellings.finder().find(spelling), None);
        let error = store.append_known(Batch::default(), known(0), None).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Full { .. }) && store.series_count() == [0; 3], "{error}");
        // A number that the index never had is not a series either.
        assert!(store.append_known(Batch::default(), known(7), None).await.is_err());
    }
}
