//! Checks a batch before it goes to the journal: repetition, limits on series and chunks, disk space and memory budget.
//!
//! Path of one record. Before: `store/append.rs` receives the batch. After: `store/submit.rs` passes it to the journal.

use std::sync::Arc;

use tacho_model::{Batch, Clock, KnownSamples};

use crate::arrival::{self, Appended, Origin, Refused};
use crate::budget::{Budget, Reservation};
use crate::commit::repeated;
use crate::guarded::Guarded;
use crate::in_flight::{InFlight, Ticket};
use crate::index::Index;
use crate::options::Options;
use crate::scatter::{self, Estimate};
use crate::sessions::Sessions;
use crate::shared::{Metadata, RecordSpace};
use crate::stats::Counters;
use crate::{Error, ErrorKind, Result};

pub struct Intake {
    pub options: Arc<Options>,
    pub index: Arc<Guarded<Index>>,
    pub in_flight: Arc<InFlight>,
    pub sessions: Arc<Guarded<Sessions>>,
    pub space: Arc<RecordSpace>,
    pub budget: Arc<Budget>,
    /// Number of chunks that the records in memory need because of their times. The limit applies to the sum of this number
    /// and the number of stored chunks.
    pub chunks: Arc<Budget>,
    pub metadata: Arc<Metadata>,
    pub clock: Arc<dyn Clock>,
    pub counters: Arc<Counters>,
}

pub struct Admitted {
    pub batch: Arc<Batch>,
    pub known: Arc<KnownSamples>,
    pub refused: Refused,
    pub chunks: Reservation,
}

impl Intake {
    /// The answer to a batch that was stored before in full or in part; `None` for a new batch.
    pub fn repeated(&self, origin: Origin) -> Option<Result<Appended>> {
        let standing = self.sessions.read().standing(origin);
        repeated(&self.counters, standing, origin)
    }

    /// Keeps the known series of a batch in the index until the ticket is dropped. The samples must be grouped. `None` if there
    /// are no known series.
    ///
    /// # Errors
    /// `Full` when one of them has left the index since the batch was decoded. When the sender repeats the batch, the decoder
    /// does not find the series, and makes its labels.
    pub fn hold(&self, known: &KnownSamples) -> Result<Option<Arc<Ticket>>> {
        if known.is_empty() {
            return Ok(None);
        }
        let index = self.index.read();
        if known.numbers().all(|number| index.has_samples(number)) {
            return Ok(Some(Arc::new(self.in_flight.register(known))));
        }
        let kind = ErrorKind::Full { retry_after: self.options.retry_after };
        Err(Error::new(kind, "a series of the batch was deleted while the batch was decoded: send it again"))
    }

    /// Removes from a batch the series that a limit refuses. At the limit on chunks, also removes records far from the present
    /// time. The reservation covers the chunks of the batch until it is in the memtable. The caller has held the known
    /// series ([`Self::hold`]).
    pub fn admit(&self, mut batch: Arc<Batch>, mut known: KnownSamples) -> Admitted {
        let of_batch = scatter::window_changes_of(&batch, &known, &self.index);
        let chunks = self.chunks.hold(of_batch);
        let estimate = self.estimate(of_batch);
        let mut far = Refused::default();
        if estimate.is_over() {
            far = self.refuse_far(&mut batch, &mut known, estimate);
        }
        let bounds = self.options.bounds();
        let (batch, mut refused) = arrival::admit(batch, &self.index.read(), bounds, known.labels_bytes());
        if refused.series > 0 {
            self.counters.series_refused.add(refused.series as u64);
        }
        refused.extend(far);
        Admitted { batch, known: Arc::new(known), refused, chunks }
    }

    fn refuse_far(&self, batch: &mut Arc<Batch>, known: &mut KnownSamples, estimate: Estimate) -> Refused {
        let mut refused = Refused::default();
        let live = scatter::live(self.clock.now());
        let labels = |number| self.index.read().labels_of(number);
        scatter::keep_live_known(known, &labels, live, estimate, &mut refused);
        scatter::keep_live(batch, live, estimate, &mut refused);
        self.counters.records_far_refused.add(refused.records.iter().sum::<usize>() as u64);
        refused
    }

    /// The counts of stored chunks, and of chunks for the records of other batches in memory. This batch needs `of_batch` chunks.
    fn estimate(&self, of_batch: usize) -> Estimate {
        let stored: u64 = self.metadata.stored.read().iter().map(|stored| stored.chunks).sum();
        let stored = usize::try_from(stored).unwrap_or(usize::MAX);
        let in_memory = self.chunks.used().saturating_sub(of_batch);
        Estimate { max: self.chunks.max(), stored, in_memory, of_batch }
    }

    /// Reserves memory for a checked batch of this size.
    ///
    /// # Errors
    /// Like [`Self::try_reserve`]; `Full` when the rest of the memory budget is too small.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation> {
        self.try_reserve(bytes)?.ok_or_else(|| self.full())
    }

    /// Reserves memory for a checked batch of this size. `None` when the rest of the memory budget is too small.
    ///
    /// # Errors
    /// `StorageFull` when the disk has too little free space; `Invalid` when the batch is larger than a quarter of the memory
    /// budget.
    pub fn try_reserve(&self, bytes: usize) -> Result<Option<Reservation>> {
        if let Err(error) = self.space.check() {
            self.counters.batches_disk_full.add(1);
            return Err(error);
        }
        let batch_bytes_max = self.batch_bytes_max();
        if bytes > batch_bytes_max {
            let message = format!("batch of {bytes} bytes is over {batch_bytes_max}: send it in parts");
            return Err(Error::invalid(message));
        }
        Ok(self.budget.reserve(bytes))
    }

    /// Limit on the estimated memory of one batch of the journal, bytes.
    pub fn batch_bytes_max(&self) -> usize {
        self.budget.max() / 4
    }

    fn full(&self) -> Error {
        self.counters.batches_full.add(1);
        let (used, max) = (self.budget.used(), self.budget.max());
        let kind = ErrorKind::Full { retry_after: self.options.retry_after };
        Error::new(kind, format!("{used} of {max} bytes for open records are in use"))
    }
}
