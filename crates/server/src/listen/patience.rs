//! Timeouts for a peer.

use std::time::Duration;

use tacho_ingest::wire::HEARTBEAT_MS;

#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time limit for HELLO, after the connection is accepted and the TLS handshake, if any, is done.
    pub greeting: Duration,
    /// Time limit for the next byte: three heartbeats.
    pub silence: Duration,
    /// Time limit for a complete frame, from its first byte.
    pub frame: Duration,
    /// Time limit for the peer to read sent bytes.
    pub write: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let silence = Duration::from_millis(3 * HEARTBEAT_MS);
        Self { greeting: Duration::from_secs(10), silence, frame: Duration::from_secs(60), write: silence }
    }
}
