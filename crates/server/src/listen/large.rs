//! A connection needs a [`Turn`], a permit, to buffer a frame larger than `incoming::SMALL_BYTES_MAX`. A connection whose frame
//! stalls while another connection waits for a turn is closed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::metrics::registry::Counter;

/// Time limit for each `PROGRESS_BYTES` of a large frame. A slower frame loses its turn as soon as another connection waits for
/// a turn. Without this limit, a few stalled frames (`LARGE_FRAMES_MAX` of `shared.rs`) would keep all turns.
const TURN_TIME: Duration = Duration::from_secs(2);
const PROGRESS_BYTES: usize = 256 << 10;

pub(super) struct LargeFrames {
    turns: Semaphore,
    waiting: AtomicUsize,
    came: Notify,
    slow: Counter,
}

/// Dropping it ends the turn.
pub(super) struct Turn<'a> {
    _permit: SemaphorePermit<'a>,
    since: Instant,
    /// Bytes of the frame that arrived after `since`.
    bytes: usize,
}

impl Turn<'_> {
    pub(super) fn progress(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes >= PROGRESS_BYTES {
            (self.since, self.bytes) = (Instant::now(), 0);
        }
    }
}

/// A connection counts as waiting while this value exists.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LargeFrames {
    pub(super) fn new(most: usize, slow: Counter) -> Self {
        Self { turns: Semaphore::new(most), waiting: AtomicUsize::new(0), came: Notify::new(), slow }
    }

    /// Waits for a turn. Cancel-safe.
    pub(super) async fn turn(&self) -> Option<Turn<'_>> {
        let turn = |permit| Turn { _permit: permit, since: Instant::now(), bytes: 0 };
        if let Ok(permit) = self.turns.try_acquire() {
            return Some(turn(permit));
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(&self.waiting);
        self.came.notify_waiters();
        let permit = self.turns.acquire().await;
        drop(waiting);
        permit.ok().map(turn)
    }

    /// Resolves when less than `PROGRESS_BYTES` arrived in [`TURN_TIME`] and another connection waits.
    pub(super) async fn lost(&self, turn: &Turn<'_>) {
        tokio::time::sleep_until(turn.since + TURN_TIME).await;
        loop {
            let came = self.came.notified();
            if self.waiting.load(Ordering::Relaxed) > 0 {
                self.slow.add(1);
                return;
            }
            came.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test(start_paused = true)]
    async fn a_turn_without_progress_is_lost_when_another_connection_waits() {
        let slow = Counter::default();
        let frames = LargeFrames::new(1, slow.clone());
        let first = frames.turn().await.unwrap();
        tokio::time::sleep(10 * TURN_TIME).await;
        let mut lost = Box::pin(frames.lost(&first));
        assert!(lost.as_mut().now_or_never().is_none(), "a turn was lost although no other connection waits");
        let second = frames.turn();
        tokio::pin!(second);
        assert!(second.as_mut().now_or_never().is_none());
        lost.as_mut().await;
        drop(lost);
        drop(first);
        let second = second.await.unwrap();
        assert_eq!((slow.get(), frames.waiting.load(Ordering::Relaxed)), (1, 0));
        let third = frames.turn();
        tokio::pin!(third);
        assert!(third.as_mut().now_or_never().is_none());
        assert!(frames.lost(&second).now_or_never().is_none(), "a turn was lost right after its begin");
    }
}
