//! Masks hide records of a series from readers. Masked records are deleted or past their retention, but their rows still
//! exist.

use std::sync::Arc;

use tacho_model::{Labels, TimeRange, Timestamp};

use super::clock::TrustedClock;
use super::tombstones::{Mask, Tombstones};
use crate::guarded::Guarded;
use crate::options::Options;

pub struct Masks {
    pub tombstones: Arc<Guarded<Tombstones>>,
    pub options: Arc<Options>,
    pub clock: Arc<TrustedClock>,
}

impl Masks {
    /// Returns a function from labels to the current masks of a series. `None` in the usual case that no series has
    /// masks.
    pub fn by_labels(&self) -> Option<impl Fn(&Labels) -> Vec<Mask>> {
        // Holds the lock of the list only while the pointers in it are copied. So a deletion does not wait while
        // patterns are matched.
        let (tombstones, policies) = (self.tombstones.read().clone(), &self.options.policies);
        if tombstones.is_empty() && policies.retention.is_empty() {
            return None;
        }
        let now = self.clock.now();
        Some(move |labels: &Labels| {
            let mut masks = tombstones.masks(labels);
            masks.extend(policies.keep(labels).map(|keep| expired(now, keep)));
            masks
        })
    }

    /// For each rule of retention, the time before which the records of its series are masked now.
    pub fn expired_before(&self) -> Vec<Timestamp> {
        let rules = &self.options.policies.retention;
        let now = if rules.is_empty() { 0 } else { self.clock.now() };
        rules.iter().map(|rule| now.saturating_sub_unsigned(rule.then)).collect()
    }
}

/// Masks the records that are older than `keep`, in all generations.
const fn expired(now: Timestamp, keep: u64) -> Mask {
    let last = now.saturating_sub_unsigned(keep).saturating_sub(1);
    Mask { id: 0, range: TimeRange::new(Timestamp::MIN, last), through: u64::MAX }
}
