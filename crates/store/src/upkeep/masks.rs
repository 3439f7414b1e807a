//! What of a series must a reader not see, though it lies there still? What was deleted, and what has had its time.

use tacho_model::{Labels, TimeRange, Timestamp};

use super::tombstones::Mask;
use crate::shared::Shared;

/// The masks of a series at this moment, by its labels. `None` when no series has any, as is usual.
pub fn masks_by_labels(shared: &Shared) -> Option<impl Fn(&Labels) -> Vec<Mask>> {
    // A copy of some pointers: patterns are not tried while a deletion waits for the list.
    let (tombstones, policies) = (shared.tombstones.read().clone(), &shared.options.policies);
    if tombstones.is_empty() && policies.retention.is_empty() {
        return None;
    }
    let now = shared.now();
    Some(move |labels: &Labels| {
        let mut masks = tombstones.masks(labels);
        masks.extend(policies.keep(labels).map(|keep| expired(now, keep)));
        masks
    })
}

/// Hides what is older than `keep`, whenever it came.
const fn expired(now: Timestamp, keep: u64) -> Mask {
    let last = now.saturating_sub_unsigned(keep).saturating_sub(1);
    Mask { id: 0, range: TimeRange::new(Timestamp::MIN, last), through: u64::MAX }
}
