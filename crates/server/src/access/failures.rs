//! How often did an address send a wrong token? Bounds guesses, and the lines about guesses in the audit log.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tacho_model::Timestamp;

/// Limit on the wrong tokens of one address per minute. Further wrong tokens get 429 (agents the error `TooManyConnections`),
/// and are not in the audit log.
pub const FAILURES_MAX: u32 = 10;
const WINDOW_NS: i64 = 60_000_000_000;
/// Limit on the addresses that are distinguished. Further addresses share one entry.
const ADDRESSES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub struct Failures(Mutex<HashMap<Option<IpAddr>, Window>>);

#[derive(Clone, Copy, Debug)]
struct Window {
    begun: Timestamp,
    count: u32,
}

impl Failures {
    /// Counts a wrong token.
    ///
    /// # Errors
    /// The seconds to wait after too many wrong tokens.
    pub fn note(&self, address: Option<IpAddr>, now: Timestamp) -> Result<(), u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |window: &Window| !(0..WINDOW_NS).contains(&now.saturating_sub(window.begun));
        let mut key = address.map(network);
        if all.len() >= ADDRESSES_MAX && !all.contains_key(&key) {
            all.retain(|_, window| !is_over(window));
            if all.len() >= ADDRESSES_MAX {
                key = None;
            }
        }
        let window = all.entry(key).or_insert(Window { begun: now, count: 0 });
        if is_over(window) {
            *window = Window { begun: now, count: 0 };
        }
        window.count = window.count.saturating_add(1);
        if window.count <= FAILURES_MAX {
            return Ok(());
        }
        let left = WINDOW_NS - now.saturating_sub(window.begun);
        Err(u64::try_from(left / 1_000_000_000).unwrap_or(0) + 1)
    }
}

/// A wrong token counts for an IPv4 address, or for the first 64 bits of an IPv6 address. A client usually has all addresses
/// with these bits.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6([a, b, c, d, 0, 0, 0, 0].into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for n in 0..2 * ADDRESSES_MAX as u32 {
            let _ = failures.note(Some(IpAddr::V4(n.into())), 6 + WINDOW_NS);
        }
        assert!(failures.0.lock().unwrap().len() <= ADDRESSES_MAX + 1);
    }
}
