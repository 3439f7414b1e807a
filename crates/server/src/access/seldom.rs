//! Is a line about refusals due? Bounds the lines in the audit log about refusals that a client can cause at any rate.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tacho_model::Timestamp;

use super::failures::network;

const PAUSE_NS: i64 = 60_000_000_000;
/// Limit on the pairs of address and reason that are distinguished. Further addresses share one entry for each reason.
const CLIENTS_MAX: usize = 4_096;

/// Refusals of one kind. They get at most one line a minute.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seldom {
    noted: Option<Timestamp>,
    /// Refusals since the last line.
    count: u64,
}

impl Seldom {
    /// Counts refusals. If a line is due, returns the number of refusals since the line before.
    pub fn count(&mut self, refusals: u64, now: Timestamp) -> Option<u64> {
        self.count = self.count.saturating_add(refusals);
        if self.is_recent(now) {
            return None;
        }
        self.noted = Some(now);
        Some(std::mem::take(&mut self.count))
    }

    fn is_recent(&self, now: Timestamp) -> bool {
        self.noted.is_some_and(|noted| (0..PAUSE_NS).contains(&now.saturating_sub(noted)))
    }
}

/// Refusals of clients without a valid token, by address and reason.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<HashMap<(Option<IpAddr>, &'static str), Seldom>>);

impl Strangers {
    /// The same as [`Seldom::count`], for one refusal.
    pub fn count(&self, address: Option<IpAddr>, reason: &'static str, now: Timestamp) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = (address.map(network), reason);
        if all.len() >= CLIENTS_MAX && !all.contains_key(&key) {
            all.retain(|_, seldom| seldom.is_recent(now));
            if all.len() >= CLIENTS_MAX {
                key.0 = None;
            }
        }
        all.entry(key).or_default().count(1, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_get_one_line_a_minute_with_their_number() {
        let mut seldom = Seldom::default();
        let at = |seconds: i64| 1_000_000 + seconds * 1_000_000_000;
        assert_eq!(seldom.count(2, at(0)), Some(2));
        assert_eq!((seldom.count(3, at(1)), seldom.count(1, at(59))), (None, None));
        assert_eq!(seldom.count(1, at(60)), Some(5));
        // The clock was set back.
        assert_eq!(seldom.count(1, at(-9)), Some(1));
    }

    #[test]
    fn addresses_and_reasons_are_distinguished_up_to_a_limit() {
        let strangers = Strangers::default();
        let address = |text: &str| Some(text.parse().unwrap());
        assert_eq!(strangers.count(address("2001:db8::1"), "missing", 5), Some(1));
        assert_eq!(strangers.count(address("2001:db8::2"), "missing", 5), None);
        assert_eq!(strangers.count(address("2001:db8::2"), "origin", 5), Some(1));
        assert_eq!(strangers.count(address("10.0.0.1"), "missing", 5), Some(1));
        assert_eq!(strangers.count(address("2001:db8::1"), "missing", 5 + PAUSE_NS), Some(2));
        let lines = (0..2 * CLIENTS_MAX as u32)
            .filter_map(|n| strangers.count(Some(IpAddr::V4(n.into())), "missing", 6 + PAUSE_NS))
            .count();
        assert!(lines <= CLIENTS_MAX + 1, "{lines}");
        assert!(strangers.0.lock().unwrap().len() <= CLIENTS_MAX + 1);
    }
}
