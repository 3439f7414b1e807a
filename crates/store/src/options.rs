//! What may be set, with its unit and its default.

use std::sync::Arc;
use std::time::Duration;

use crate::disk::{Disk, RealDisk};

#[derive(Clone)]
pub struct Options {
    /// A generation is sealed when its open chunks or its journal take this many bytes.
    pub seal_bytes: usize,
    /// A generation is sealed when its first record is this old, by a clock that does not jump.
    pub seal_age: Duration,
    /// Memory for records that are not in the driver yet, bytes; past it senders are told to wait.
    /// At least twice `seal_bytes` is used.
    pub open_bytes_max: usize,
    /// How long a sender is told to wait.
    pub retry_after: Duration,
    /// Series of all kinds, about 1 KB of memory each. Batches that are under way together may pass it by a little.
    pub series_max: usize,
    /// A session that is silent for so long is forgotten.
    pub session_age_max: Duration,
    /// Sessions remembered at most.
    pub sessions_max: usize,
    /// First and longest wait after a flush that failed.
    pub flush_wait_first: Duration,
    pub flush_wait_max: Duration,
    /// Where the journal lies.
    pub disk: Arc<dyn Disk>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seal_bytes: 64 << 20,
            seal_age: Duration::from_secs(30 * 60),
            open_bytes_max: 256 << 20,
            retry_after: Duration::from_secs(1),
            series_max: 10_000_000,
            session_age_max: Duration::from_secs(7 * 86_400),
            sessions_max: 100_000,
            flush_wait_first: Duration::from_millis(100),
            flush_wait_max: Duration::from_secs(30),
            disk: Arc::new(RealDisk),
        }
    }
}
