//! How does an admitted batch reach the journal? As one batch, or in parts if it takes more memory than one batch may take.
//!
//! Path of one record. Before: `intake.rs` removed the series that a limit refuses. After: `commit.rs` writes each part.

use std::sync::Arc;
use std::time::Duration;

use tacho_model::Batch;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::Store;
use crate::arrival::{Appended, Arrival, Origin};
use crate::budget::Reservation;
use crate::commit::{Append, Command, closed};
use crate::parts::Parts;
use crate::{ErrorKind, Result};

/// How long a part of a batch waits for memory after earlier parts are stored. A sender that repeats the whole batch would need
/// the same memory again.
const PATIENCE: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_millis(20);

impl Store {
    /// Writes an admitted batch. A batch with an origin is never divided, because its frames are stored once or not at all.
    pub(super) async fn keep(
        &self,
        batch: Arc<Batch>,
        origin: Option<Origin>,
        chunks: Reservation,
    ) -> Result<Appended> {
        // Checked before the first part is stored.
        let arrival = Arrival::check(batch, origin)?;
        let bytes_max = self.intake.batch_bytes_max();
        if origin.is_some() || arrival.bytes() <= bytes_max {
            return self.keep_whole(arrival, chunks).await;
        }
        for (stored, part) in Parts::new(arrival.into_batch(), bytes_max).enumerate() {
            let part = Arrival::new(Arc::new(part), None);
            if stored == 0 {
                self.keep_whole(part, self.intake.chunks.hold(0)).await?;
            } else {
                let kept = self.keep_when_free(part).await;
                kept.map_err(|error| error.with("parts of the batch that are stored", stored))?;
            }
        }
        drop(chunks);
        Ok(Appended::Stored)
    }

    async fn keep_when_free(&self, part: Arrival) -> Result<Appended> {
        let until = Instant::now() + PATIENCE;
        loop {
            while !self.intake.has_room(&part) && Instant::now() < until {
                sleep(WAIT).await;
            }
            match self.keep_whole(part.clone(), self.intake.chunks.hold(0)).await {
                // Another sender took the memory.
                Err(error) if matches!(error.kind(), ErrorKind::Full { .. }) && Instant::now() < until => {}
                kept => return kept,
            }
        }
    }

    async fn keep_whole(&self, arrival: Arrival, chunks: Reservation) -> Result<Appended> {
        // Held until the answer arrives, so that the batch is freed by this thread and not by the journal's thread.
        let held = arrival.clone();
        let reservation = self.intake.reserve(&arrival)?;
        let (reply, answer) = oneshot::channel();
        self.command(Command::Append(Append { arrival, reservation, chunks, reply }))?;
        let appended = answer.await.map_err(|_| closed())?;
        drop(held);
        appended
    }
}
