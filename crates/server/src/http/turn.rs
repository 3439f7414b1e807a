//! Runs CPU-bound work on blocking threads, with a limit on concurrent work.
//!
//! A permit is held until the work has ended, even if its client has disconnected. So the number of working threads stays
//! limited.

use std::sync::Arc;

use tacho_query::Cancel;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ApiError;
use crate::metrics::registry::{Counter, Gauge};

pub type Turn = OwnedSemaphorePermit;

pub async fn turn(turns: &Arc<Semaphore>) -> Result<Turn, ApiError> {
    turns.clone().acquire_owned().await.map_err(|e| ApiError::internal(e.to_string()))
}

pub async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|e| ApiError::internal(format!("work ended: {e}")))
}

/// Cancels the work of a query if dropped before the query is answered.
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
            // The cancellation is counted here, because the work may end before it checks for cancellation.
            self.cancelled.add(1);
            self.cancel.cancel();
        }
    }
}

/// Runs `work` on a blocking thread and cancels it when the client disconnects. `held` is kept until the work ends.
pub async fn watched<T: Send + 'static, H: Send + 'static>(
    asked: Asked,
    held: H,
    work: impl FnOnce(&Cancel) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let cancel = asked.cancel.clone();
    let done = away(move || {
        let done = work(&cancel);
        drop(held);
        done
    });
    let done = done.await;
    asked.answered();
    done?
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::registry::Family;

    fn asked(cancelled: &Family<Counter, 0>) -> Asked {
        Asked::new(cancelled.with([]))
    }

    fn work(begun: tokio::sync::oneshot::Sender<()>) -> impl FnOnce(&Cancel) -> Result<(), ApiError> {
        move |cancel| {
            begun.send(()).unwrap();
            loop {
                cancel.check()?;
                std::thread::yield_now();
            }
        }
    }

    #[tokio::test]
    async fn work_is_cancelled_and_its_permit_returned_when_the_client_disconnects() {
        let turns = Arc::new(Semaphore::new(1));
        let cancelled: Family<Counter, 0> = Family::new("cancelled", [], "");
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let held = turn(&turns).await.unwrap();
        let request = tokio::spawn(watched(asked(&cancelled), held, work(begun)));
        has_begun.await.unwrap();
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        let _next = turn(&turns).await.unwrap();
        assert_eq!(cancelled.with([]).get(), 1);
        assert_eq!(watched(asked(&cancelled), (), |_| Ok(7)).await.unwrap(), 7);
        assert_eq!(cancelled.with([]).get(), 1, "an answered query was counted as cancelled");
    }
}
