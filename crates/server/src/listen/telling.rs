//! The rules of a session to its agent: the list that holds now, after WELCOME and whenever it changes.
//!
//! Step before: `control/mod.rs` holds the rules. Step after: the agent, whose answer `connection.rs` takes.

use tacho_ingest::wire::ServerFrame;
use tacho_model::Clock;

use super::farewell::Stop;
use super::outgoing::Outgoing;
use crate::control::Presence;

/// Runs until it is dropped, or the peer takes nothing any more. A list that the peer has not taken yet is the only
/// one that waits for it, however often the rules change meanwhile.
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
