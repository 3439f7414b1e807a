//! Request ids: unique, 36 characters long, and small in the store.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tacho_model::mix64;

/// An id of 128 bits. The high half identifies the run, the low half is `mix64` of a counter.
///
/// Displayed as 8-4-4-4-12 lower-case hexadecimal digits like a UUID (RFC 9562), but without version and variant bits.
/// The store inverts `mix64` and keeps the counter instead of 16 random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestId {
    pub run: u64,
    pub low: u64,
}

impl RequestId {
    /// The `traceparent` (W3C Trace Context, version 00, sampled). The id is the trace id, and its low half is the parent span.
    pub fn traceparent(&self) -> String {
        format!("00-{:016x}{:016x}-{:016x}-01", self.run, self.low, self.low.max(1))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, low) = (self.run, self.low);
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
        write!(f, "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xffff_ffff_ffff)
    }
}

/// The ids of one run, for all connections.
#[derive(Debug)]
pub struct RequestIds {
    run: u64,
    next: AtomicU64,
}

impl RequestIds {
    /// A `run` of 0 is replaced by 1, because a trace id of 0 is invalid.
    pub fn new(run: u64) -> Self {
        Self { run: run.max(1), next: AtomicU64::new(1) }
    }

    pub fn next(&self) -> RequestId {
        RequestId { run: self.run, low: mix64(self.next.fetch_add(1, Ordering::Relaxed)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_36_characters_and_is_the_trace_id() {
        let ids = RequestIds::new(0x0123_4567_89ab_cdef);
        let id = ids.next();
        assert_eq!(id.to_string(), "01234567-89ab-cdef-5692-161d100b05e5");
        assert_eq!(id.to_string().len(), 36);
        assert_eq!(id.traceparent(), "00-0123456789abcdef5692161d100b05e5-5692161d100b05e5-01");
        assert_ne!(ids.next(), id);
    }
}
