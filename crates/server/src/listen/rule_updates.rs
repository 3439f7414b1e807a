//! Sends the current list of rules to an agent: after WELCOME, and when the rules have changed.
//!
//! Step before: `control/mod.rs` holds the rules. Step after: the agent applies the rules, and `connection.rs` reads its
//! response.

use tacho_ingest::wire::ServerFrame;
use tacho_model::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::farewell::Stop;
use super::outgoing::Outgoing;
use crate::control::Presence;

/// Memory limit for the lists that are being sent, over all connections, bytes.
const LISTS_BYTES_MAX: usize = 64 << 20;
const UNIT: usize = 1 << 10;
/// A list exists as rules and as a frame, and the buffer of the frame may double.
const COPIES: usize = 4;

pub(super) struct Lists(Semaphore);

impl Default for Lists {
    fn default() -> Self {
        Self(Semaphore::new(LISTS_BYTES_MAX / UNIT))
    }
}

impl Lists {
    /// Waits for the memory of a list. Lists of less than 256 bytes need none.
    async fn permit(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        let units = (COPIES * bytes / UNIT).min(LISTS_BYTES_MAX / UNIT);
        self.0.acquire_many(u32::try_from(units).ok()?).await.ok()
    }
}

/// Ends with an error when a list cannot be sent, because the peer has disconnected or does not read. At most one list waits
/// for the peer, even if the rules change often.
pub(super) async fn run(
    presence: &Presence<'_>,
    outgoing: &Outgoing,
    clock: &dyn Clock,
    lists: &Lists,
) -> Result<(), Stop> {
    let Some(mut changes) = presence.changes() else { return std::future::pending().await };
    loop {
        // The memory is held until the list is written, so that agents that do not read cannot fill the memory with lists.
        let permit = lists.permit(presence.list_bytes()).await;
        if let Some(probes) = presence.due(clock.now()) {
            outgoing.deliver(ServerFrame::Probes(probes)).await?;
        }
        drop(permit);
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn long_lists_of_many_agents_share_a_memory_budget() {
        let lists = Lists::default();
        let mut permits: Vec<_> = (0..16).map(|_| lists.permit(1 << 20).now_or_never().unwrap()).collect();
        assert!(
            lists.permit(1 << 20).now_or_never().is_none(),
            "a list got a permit although 64 MiB are in use"
        );
        assert!(lists.permit(100).now_or_never().is_some(), "a short list must not wait for memory");
        permits.pop();
        assert!(lists.permit(1 << 20).now_or_never().is_some());
        drop(permits);
        assert!(
            lists.permit(usize::MAX / 8).now_or_never().is_some(),
            "a list must take at most the whole budget"
        );
    }
}
