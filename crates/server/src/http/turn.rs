//! Work that keeps a processor busy: away from the threads that serve others, and only so much of it at a time.
//!
//! A turn is kept until the work has ended, even when nobody waits for its outcome any more: so the number of threads that
//! work stays bounded, whoever leaves.

use std::sync::Arc;

use tacho_query::Cancel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use crate::metrics::registry::{Counter, Gauge};

pub type Turn = OwnedSemaphorePermit;

/// Waits for a turn.
pub async fn turn(turns: &Arc<Semaphore>) -> Result<Turn, ApiError> {
    turns.clone().acquire_owned().await.map_err(|e| ApiError::internal(e.to_string()))
}

/// Runs `work` on a thread where it may take long.
pub async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| ApiError::internal(format!("work ended: {e}")))
}

/// A question as long as its client waits: dropped before it is answered, it cancels what works on it.
pub struct Asked {
    pub cancel: Cancel,
    cancelled: Counter,
    is_answered: bool,
}

impl Asked {
    pub fn new(cancelled: Counter) -> Self {
        Self { cancel: Cancel::default(), cancelled, is_answered: false }
    }

    pub fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_answered {
            self.cancel.cancel();
            self.cancelled.add(1);
        }
    }
}

/// Counts work for as long as it goes on.
pub struct Running(Gauge);

impl Running {
    pub fn new(gauge: Gauge) -> Self {
        gauge.add(1);
        Self(gauge)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}
