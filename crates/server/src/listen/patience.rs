//! How long does the listener wait for a peer?

use std::time::Duration;

use tacho_ingest::wire::HEARTBEAT_MS;

#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For HELLO, from the moment of connecting.
    pub greeting: Duration,
    /// For any byte at all: three heartbeats.
    pub silence: Duration,
    /// For a whole frame, from its first byte on, however slowly the others drip.
    pub frame: Duration,
    /// For the peer to take what is sent.
    pub write: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let silence = Duration::from_millis(3 * HEARTBEAT_MS);
        Self { greeting: Duration::from_secs(10), silence, frame: Duration::from_secs(60), write: silence }
    }
}
