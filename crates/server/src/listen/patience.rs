//! Timeouts for a peer.

use std::time::Duration;

use tacho_ingest::wire::HEARTBEAT_MS;

#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For HELLO, from the time of connecting.
    pub greeting: Duration,
    /// For any byte: three heartbeats.
    pub silence: Duration,
    /// For a complete frame, from its first byte.
    pub frame: Duration,
    /// For the peer to read what is sent.
    pub write: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let silence = Duration::from_millis(3 * HEARTBEAT_MS);
        Self { greeting: Duration::from_secs(10), silence, frame: Duration::from_secs(60), write: silence }
    }
}
