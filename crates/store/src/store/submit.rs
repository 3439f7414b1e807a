//! How does an admitted batch reach the journal? As one batch, or in parts if it takes more memory or bytes than one batch may
//! take.
//!
//! Path of one record. Before: `intake.rs` removed the series that a limit refuses. After: `commit.rs` writes each part.

use std::sync::Arc;
use std::time::Duration;

use tacho_model::{Batch, KnownSamples};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::Store;
use crate::Result;
use crate::arrival::{Appended, Arrival, Origin};
use crate::budget::Reservation;
use crate::commit::{Append, Command, closed};
use crate::in_flight::Ticket;
use crate::parts::{Cost, Parts};

/// How long the later parts of a batch wait for memory, together. They are not refused at once, because a sender that repeats
/// the whole batch would need the same memory again. The wait is less than the usual time limit of a request, because a
/// request that ends without an answer states no reason.
const PATIENCE: Duration = Duration::from_secs(30);
const WAIT: Duration = Duration::from_millis(20);

impl Store {
    /// Writes an admitted batch. A batch with an origin is never divided, because its frames are stored once or not at all.
    pub(super) async fn keep(
        &self,
        (batch, known): (Arc<Batch>, Arc<KnownSamples>),
        origin: Option<Origin>,
        (chunks, ticket): (Reservation, Option<Arc<Ticket>>),
    ) -> Result<Appended> {
        // Checked before the first part is stored.
        let arrival = Arrival::check(batch, known, origin)?;
        let (cost, max) = (Cost::of(&arrival), Cost::max(self.intake.batch_bytes_max()));
        if origin.is_some() || cost.is_within(max) {
            let memory = self.intake.reserve(cost.memory)?;
            return self.keep_whole(arrival, memory, (chunks, ticket)).await;
        }
        let (batch, known) = arrival.into_parts();
        let until = Instant::now() + PATIENCE;
        for (stored, part) in Parts::new(Arc::unwrap_or_clone(batch), known, max).enumerate() {
            let part = Arrival::with_known(part.batch, part.known, None);
            // The caller may stop waiting while the journal has a part, so each part keeps the known series in the index.
            let held = (self.intake.chunks.hold(0), ticket.clone());
            let bytes = Cost::of(&part).memory;
            if stored == 0 {
                let memory = self.intake.reserve(bytes)?;
                self.keep_whole(part, memory, held).await?;
            } else {
                let kept = match self.memory_until(until, bytes).await {
                    Ok(memory) => self.keep_whole(part, memory, held).await,
                    Err(error) => Err(error),
                };
                kept.map_err(|error| error.with("parts of the batch that are stored", stored))?;
            }
        }
        drop(chunks);
        Ok(Appended::Stored)
    }

    /// Waits for the memory of a part, at most until `until`.
    async fn memory_until(&self, until: Instant, bytes: usize) -> Result<Reservation> {
        while Instant::now() < until {
            match self.intake.try_reserve(bytes)? {
                Some(memory) => return Ok(memory),
                None => sleep(WAIT).await,
            }
        }
        self.intake.reserve(bytes)
    }

    async fn keep_whole(
        &self,
        arrival: Arrival,
        reservation: Reservation,
        (chunks, ticket): (Reservation, Option<Arc<Ticket>>),
    ) -> Result<Appended> {
        // Held until the answer arrives, so that the batch is freed by this thread and not by the journal's thread.
        let held = arrival.clone();
        let (reply, answer) = oneshot::channel();
        self.command(Command::Append(Append { arrival, reservation, chunks, ticket, reply }))?;
        let appended = answer.await.map_err(|_| closed())?;
        drop(held);
        appended
    }
}
