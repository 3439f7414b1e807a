//! Which refusals of requests without an accepted token get a line in the audit log? A client can cause such refusals as fast as
//! it sends requests, so the number of lines is limited.

use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use tacho_model::Timestamp;

use super::networks::Networks;
use crate::seldom::Seldom;

/// Refusals of requests without an accepted token, by network and reason.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<Networks<&'static str, Seldom>>);

impl Strangers {
    /// The same as [`Seldom::count`], for one refusal.
    pub fn count(&self, address: Option<IpAddr>, reason: &'static str, now: Timestamp) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.of(address, reason, |seldom| !seldom.is_recent(now)).count(1, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::networks::NETWORKS_MAX;
    use super::*;
    use crate::seldom::PAUSE_NS;

    #[test]
    fn networks_and_reasons_are_distinguished_up_to_a_limit() {
        let strangers = Strangers::default();
        let address = |text: &str| Some(text.parse().unwrap());
        assert_eq!(strangers.count(address("2001:db8::1"), "missing", 5), Some(1));
        assert_eq!(strangers.count(address("2001:db8::2"), "missing", 5), None);
        assert_eq!(strangers.count(address("2001:db8::2"), "origin", 5), Some(1));
        assert_eq!(strangers.count(address("10.0.0.1"), "missing", 5), Some(1));
        assert_eq!(strangers.count(address("2001:db8::1"), "missing", 5 + PAUSE_NS), Some(2));
        let lines = (0..2 * NETWORKS_MAX as u32)
            .filter_map(|n| strangers.count(Some(IpAddr::V4(n.into())), "missing", 6 + PAUSE_NS))
            .count();
        assert!(lines <= NETWORKS_MAX + 1, "{lines}");
        assert!(strangers.0.lock().unwrap().len() <= NETWORKS_MAX + 1);
    }
}
