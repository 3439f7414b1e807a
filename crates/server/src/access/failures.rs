//! How often did an address send a wrong token? Bounds guesses, and the lines about guesses in the audit log.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tacho_model::Timestamp;

use super::minute::Minute;
use super::networks::Networks;

/// Limit on the wrong tokens of one address per minute. IPv6 addresses with the same first 64 bits count as one. Further wrong
/// tokens get 429 (agents get the error `TooManyConnections`), and are not in the audit log.
pub const FAILURES_MAX: u32 = 10;

#[derive(Debug, Default)]
pub struct Failures(Mutex<Networks<(), Minute>>);

impl Failures {
    /// Counts a wrong token.
    ///
    /// # Errors
    /// The seconds to wait after too many wrong tokens.
    pub fn note(&self, address: Option<IpAddr>, now: Timestamp) -> Result<(), u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = all.of(address, (), |minute| minute.is_over(now));
        if minute.count(now) <= FAILURES_MAX {
            return Ok(());
        }
        let left = minute.left_ns(now);
        Err(u64::try_from(left / 1_000_000_000).unwrap_or(0) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::networks::NETWORKS_MAX;
    use super::*;

    const WINDOW_NS: i64 = 60_000_000_000;

    #[test]
    fn failures_are_bounded_per_address_and_minute() {
        let failures = Failures::default();
        let address = |text: &str| Some(text.parse().unwrap());
        for _ in 0..FAILURES_MAX {
            assert_eq!(failures.note(address("2001:db8::1"), 5), Ok(()));
        }
        assert_eq!(failures.note(address("2001:db8::2"), 5), Err(61));
        assert_eq!(failures.note(address("10.0.0.1"), 5), Ok(()));
        assert_eq!(failures.note(address("2001:db8::1"), 5 + WINDOW_NS), Ok(()));
        for n in 0..2 * NETWORKS_MAX as u32 {
            let _ = failures.note(Some(IpAddr::V4(n.into())), 6 + WINDOW_NS);
        }
        assert!(failures.0.lock().unwrap().len() <= NETWORKS_MAX + 1);
    }
}
