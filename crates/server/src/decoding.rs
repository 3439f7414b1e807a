//! Memory budgets of request bodies that are being read, queued, decoded, or written to disk, and of the records of frames.
//!
//! The records of a body take at most a constant plus a fixed multiple of its bytes (`tacho_ingest::budget`). This module limits
//! the total. A request gets 503 with Retry-After if there is no memory for its body, or if a write waits longer than
//! [`PATIENCE`] for a permit, or for memory for its records.
//!
//! Path of one record: `http/body.rs` reads the body of a request with a [`Hold`] on its bytes. `http/write.rs` and
//! `http/import.rs` decode the body with a second [`Hold`] on the records. The second [`Hold`] is reduced to the real size of
//! the records, and kept until they are on disk.

use std::sync::Arc;
use std::time::Duration;

use tacho_ingest::budget::memory_bytes_max;
use tacho_model::{AttributeValue, Batch};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Limit on the writes that are decompressed, decoded and appended concurrently. The journal can sync them together.
const WRITES_MAX: usize = 16;
/// Size limit of bodies other than writes, far above any PromQL query that a user or Grafana sends in a form.
pub const FORM_BYTES_MAX: usize = 1 << 20;
/// How long a write waits for a permit, and then again for memory.
const PATIENCE: Duration = Duration::from_secs(10);
/// Value of Retry-After, seconds.
pub const RETRY_AFTER: u64 = 1;
/// Bytes per permit. A semaphore grants at most 2^32 - 1 permits at once, so one permit per byte would not suffice.
const UNIT: usize = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    #[error(
        "earlier bodies leave too little of the {max} bytes of memory for {what}: retry later, or raise {setting}"
    )]
    Memory { max: usize, what: &'static str, setting: &'static str },
    #[error("{WRITES_MAX} writes are being decoded or stored already: retry later")]
    Writes,
}

pub struct Decoding {
    turns: Arc<Semaphore>,
    bodies: Pool,
    records: Pool,
}

impl Decoding {
    /// `bytes_max`: memory limit for the records of all bodies. If the largest body needs more, the limit is that need. The
    /// bodies themselves may take `WRITES_MAX * max(body_bytes_max, FORM_BYTES_MAX)`.
    pub fn new(bytes_max: usize, body_bytes_max: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(WRITES_MAX)),
            bodies: Pool::new(
                body_bytes_max.max(FORM_BYTES_MAX).saturating_mul(WRITES_MAX),
                "request bodies",
                "body-bytes-max",
            ),
            records: Pool::new(
                bytes_max.max(memory_bytes_max(body_bytes_max)),
                "records that are decoded",
                "decoding-bytes-max",
            ),
        }
    }

    pub async fn turn(&self) -> Result<OwnedSemaphorePermit, Busy> {
        let turn = tokio::time::timeout(PATIENCE, self.turns.clone().acquire_owned()).await;
        turn.ok().and_then(Result::ok).ok_or(Busy::Writes)
    }

    /// An empty reservation for a body that is being read or decompressed.
    pub fn body(&self) -> Hold {
        Hold { pool: self.bodies.clone(), permits: None }
    }

    /// `body_bytes` is the size of the body after decompression.
    pub async fn records(&self, body_bytes: usize) -> Result<Hold, Busy> {
        let pool = self.records.clone();
        let wanted = pool.permits.clone().acquire_many_owned(units(memory_bytes_max(body_bytes)));
        let permits = tokio::time::timeout(PATIENCE, wanted).await.ok().and_then(Result::ok);
        let permits = permits.ok_or_else(|| pool.busy())?;
        Ok(Hold { pool, permits: Some(permits) })
    }
}

#[derive(Clone)]
struct Pool {
    permits: Arc<Semaphore>,
    max: usize,
    what: &'static str,
    setting: &'static str,
}

impl Pool {
    fn new(max: usize, what: &'static str, setting: &'static str) -> Self {
        let permits = Arc::new(Semaphore::new((max / UNIT + 1).min(Semaphore::MAX_PERMITS)));
        Self { permits, max, what, setting }
    }

    const fn busy(&self) -> Busy {
        Busy::Memory { max: self.max, what: self.what, setting: self.setting }
    }
}

pub struct Hold {
    pool: Pool,
    permits: Option<OwnedSemaphorePermit>,
}

impl Hold {
    pub fn more(&mut self, bytes: usize) -> Result<(), Busy> {
        let more = self.pool.permits.clone().try_acquire_many_owned(units(bytes));
        let more = more.map_err(|_| self.pool.busy())?;
        match &mut self.permits {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    pub fn shrink(&mut self, bytes: usize) {
        shrink(self.permits.as_mut(), bytes);
    }
}

fn shrink(permits: Option<&mut OwnedSemaphorePermit>, bytes: usize) {
    let Some(held) = permits else { return };
    let beyond = held.num_permits().saturating_sub(units(bytes) as usize);
    drop(held.split(beyond));
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Memory budget for the records of frames. Frames get memory in the order in which they ask for it.
pub struct Frames(Arc<Semaphore>);

impl Frames {
    pub fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes_max / UNIT)))
    }

    /// Waits for the memory that a frame of this size may take. `None` when the budget is closed.
    pub async fn room(&self, frame_bytes: usize) -> Option<FrameRoom> {
        let wanted = units(memory_bytes_max(frame_bytes));
        self.0.clone().acquire_many_owned(wanted).await.ok().map(FrameRoom)
    }
}

pub struct FrameRoom(OwnedSemaphorePermit);

impl FrameRoom {
    /// Reduces the reservation to the size of the frame and the real size of its records.
    pub fn keep(&mut self, frame_bytes: usize, batch: &Batch) {
        shrink(Some(&mut self.0), frame_bytes + batch_bytes(batch));
    }
}

/// Approximate memory of the records of a batch, bytes. Shared names are not included.
pub fn batch_bytes(batch: &Batch) -> usize {
    const SERIES_BYTES: usize = 256;
    const OPEN_SEGMENT_BYTES: usize = 320;
    let samples: usize = batch.samples.iter().map(|s| SERIES_BYTES + 24 * s.samples.capacity()).sum();
    let entries = batch.entries.iter().map(|series| {
        let texts: usize = series.entries.iter().map(|e| 64 + e.body.as_bytes().len()).sum();
        SERIES_BYTES + texts
    });
    let segments = batch.executions.iter().flat_map(|series| &series.segments).map(|segment| {
        let texts = segment.attributes.iter().map(|attribute| match &attribute.value {
            AttributeValue::Text(text) => 64 + text.len(),
            AttributeValue::Integer(_) => 64,
        });
        OPEN_SEGMENT_BYTES + 16 * (segment.events.len() + segment.carried.len()) + texts.sum::<usize>()
    });
    samples + entries.sum::<usize>() + segments.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_without_memory_waits_and_is_then_refused() {
        let decoding = Decoding::new(0, 1 << 20);
        let mut first = decoding.records(1 << 20).await.unwrap();
        let busy = decoding.records(0).await.map(drop).unwrap_err();
        assert!(busy.to_string().contains("leave too little of the 67108864 bytes"), "{busy}");
        // Reducing a reservation releases memory immediately.
        first.shrink(40 << 20);
        let second = decoding.records(0).await.unwrap();
        assert!(decoding.records(1 << 20).await.is_err());
        drop((first, second));
        assert!(decoding.records(1 << 20).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_are_charged_for_the_bytes_received() {
        let decoding = Decoding::new(0, 1 << 20);
        let mut bodies: Vec<Hold> = (0..16).map(|_| decoding.body()).collect();
        for body in &mut bodies {
            (0..16).for_each(|_| body.more(64 << 10).unwrap());
        }
        let mut more = decoding.body();
        let busy = more.more(64 << 10).unwrap_err().to_string();
        assert!(busy.contains("request bodies: retry later, or raise body-bytes-max"), "{busy}");
        bodies.pop();
        assert!(more.more(64 << 10).is_ok());
        let turns: Vec<_> = (0..WRITES_MAX).map(|_| decoding.turn()).collect();
        let turns = futures_util::future::join_all(turns).await;
        assert!(turns.iter().all(Result::is_ok) && decoding.turn().await.is_err());
    }
}
