//! Masks: which records of a series a reader must not see, because they are deleted or past their retention, although their rows
//! still exist.

use std::sync::Arc;

use tacho_model::{Labels, TimeRange, Timestamp};

use super::clock::TrustedClock;
use super::tombstones::{Mask, Tombstones};
use crate::guarded::Guarded;
use crate::options::Options;

/// Inputs of masks.
pub struct Masks {
    pub tombstones: Arc<Guarded<Tombstones>>,
    pub options: Arc<Options>,
    pub clock: Arc<TrustedClock>,
}

impl Masks {
    /// The current masks of a series, by its labels. `None` when no series has any, which is the usual case.
    pub fn by_labels(&self) -> Option<impl Fn(&Labels) -> Vec<Mask>> {
        // A copy of some pointers: patterns are not tried while a deletion waits for the list.
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
}

/// Masks records older than `keep`, of every generation.
const fn expired(now: Timestamp, keep: u64) -> Mask {
    let last = now.saturating_sub_unsigned(keep).saturating_sub(1);
    Mask { id: 0, range: TimeRange::new(Timestamp::MIN, last), through: u64::MAX }
}
