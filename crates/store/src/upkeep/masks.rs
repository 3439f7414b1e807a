//! Masks hide records of a series from readers. Masked records are deleted or past their retention, but their rows still
//! exist.

use std::sync::Arc;

use tacho_model::{Labels, SeriesId, TimeRange, Timestamp};

use super::clock::TrustedClock;
use super::tombstones::{Mask, Tombstones};
use crate::guarded::Guarded;
use crate::kept::SummedDays;
use crate::options::Options;
use crate::policy::{expired_before, summaries_expired_before};
use crate::rollup::{day_of, range_of};

pub struct Masks {
    pub summed: Arc<Guarded<SummedDays>>,
    pub tombstones: Arc<Guarded<Tombstones>>,
    pub options: Arc<Options>,
    pub clock: Arc<TrustedClock>,
}

impl Masks {
    /// Returns a function from labels to the current masks of a series of samples or entries. `None` in the usual case that no
    /// series has masks.
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
            masks.extend(expired(expired_before(policies.keep(labels), None, now)));
            masks
        })
    }

    /// The current masks of a series of calls, and the times of its expired calls that have kept summaries.
    pub fn of_calls(
        &self,
        id: SeriesId,
        labels: impl FnOnce() -> Option<Arc<Labels>>,
    ) -> (Vec<Mask>, Option<TimeRange>) {
        let (tombstones, policies) = (self.tombstones.read().clone(), &self.options.policies);
        let until = self.summed.read().until(id);
        let is_masked = until > Timestamp::MIN || !tombstones.is_empty() || !policies.retention.is_empty();
        let Some(labels) = is_masked.then(labels).flatten() else {
            return (Vec::new(), None);
        };
        let (retention, now) = (policies.keep(&labels), self.clock.now());
        let mut masks = tombstones.masks(&labels);
        masks.extend(expired(expired_before(retention, Some(until), now)));
        // A day expires as a whole.
        let from = range_of(day_of(summaries_expired_before(retention, now))).start;
        let last = until.checked_sub(1);
        (masks, last.map(|last| TimeRange::new(from, last)).filter(|expired| !expired.is_empty()))
    }

    /// For each rule of retention, the time before which the records of its series are masked now.
    pub fn expired_before(&self) -> Vec<Timestamp> {
        let rules = &self.options.policies.retention;
        let now = if rules.is_empty() { 0 } else { self.clock.now() };
        rules.iter().map(|rule| now.saturating_sub_unsigned(rule.then.keep)).collect()
    }
}

/// Masks the records before this time, in all generations.
fn expired(before: Timestamp) -> Option<Mask> {
    let last = before.checked_sub(1)?;
    Some(Mask { id: 0, range: TimeRange::new(Timestamp::MIN, last), through: u64::MAX })
}
