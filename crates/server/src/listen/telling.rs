//! Sends the rules of a session to its agent: the current list, after WELCOME and after each change.
//!
//! Step before: `control/mod.rs` holds the rules. Step after: the agent, whose response `connection.rs` reads.

use tacho_ingest::wire::ServerFrame;
use tacho_model::Clock;

use super::farewell::Stop;
use super::outgoing::Outgoing;
use crate::control::Presence;

/// Runs until it is dropped, or the peer reads nothing more. At most one list waits for the peer, however often the rules
/// change in between.
pub(super) async fn run(presence: &Presence<'_>, outgoing: &Outgoing, clock: &dyn Clock) -> Result<(), Stop> {
    let Some(mut changes) = presence.changes() else { return std::future::pending().await };
    loop {
        if let Some(probes) = presence.due(clock.now()) {
            outgoing.deliver(ServerFrame::Probes(probes)).await?;
        }
        if changes.changed().await.is_err() {
            return std::future::pending().await;
        }
    }
}
