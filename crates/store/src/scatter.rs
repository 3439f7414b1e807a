//! Counts the chunks that the times of records need, and selects the records that the limit on chunks refuses.
//!
//! A chunk that a flush writes spans at most two days, except a chunk of long calls. Records that are further apart need
//! separate chunks, and a driver may keep the key of every chunk in memory. A megabyte of such samples can need 100,000
//! chunks. Live records enter a new window of two days only every two days, and therefore need almost no extra chunks.
//!
//! Path of one record. Before: `intake.rs` received its batch. After: `commit.rs` writes it to the journal.

use std::fmt;
use std::sync::Arc;

use tacho_model::{Batch, Kind, KnownSamples, Segment, TimeRange, Timestamp};

use crate::arrival::Refused;
use crate::keys::CHUNK_SPAN_MAX_NS;

/// Estimated memory of a small chunk while its generation is flushed, bytes: its row and its encoded records.
pub const CHUNK_BYTES: usize = 256;

const WINDOW_NS: i64 = CHUNK_SPAN_MAX_NS.cast_signed();

/// Follows the times of a series through windows of two days.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Start of the window. The first possible window starts at the earliest time.
    start: Timestamp,
}

impl Walk {
    pub const fn from(at: Timestamp) -> Self {
        Self { start: at.div_euclid(WINDOW_NS).saturating_mul(WINDOW_NS) }
    }

    /// Whether this time is in another window than the previous one. Divides only in that case, because this function
    /// runs for every sample.
    #[inline]
    pub const fn changes_window(&mut self, at: Timestamp) -> bool {
        if at.wrapping_sub(self.start).cast_unsigned() < CHUNK_SPAN_MAX_NS {
            return false;
        }
        *self = Self::from(at);
        true
    }
}

/// Number of times that are in another window than the time before them. The times need at most one chunk more than this
/// number. The limits on the records and bytes of a chunk may cause further chunks.
pub fn window_changes(mut times: impl Iterator<Item = Timestamp>) -> usize {
    let Some(first) = times.next() else { return 0 };
    let mut walk = Walk::from(first);
    times.filter(|at| walk.changes_window(*at)).count()
}

/// The sum of [`window_changes`] over all series of a batch and the known series.
pub fn window_changes_of(batch: &Batch, known: &KnownSamples) -> usize {
    let known = known.iter().map(|(_, samples)| window_changes(samples.iter().map(|s| s.at)));
    let samples = batch.samples.iter().map(|series| window_changes(series.samples.iter().map(|s| s.at)));
    let entries = batch.entries.iter().map(|series| window_changes(series.entries.iter().map(|e| e.at)));
    let segments =
        batch.executions.iter().map(|series| window_changes(series.segments.iter().map(|s| s.start)));
    known.chain(samples).chain(entries).chain(segments).sum()
}

/// The times of live records. At the limit on chunks, only these times are accepted.
pub const fn live(now: Timestamp) -> TimeRange {
    TimeRange::new(now.saturating_sub(WINDOW_NS), now.saturating_add(WINDOW_NS))
}

/// Numbers of chunks that are compared with the limit `max` when a batch arrives.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    pub max: usize,
    pub stored: usize,
    /// Upper estimate for the records in memory before the batch, from their times.
    pub in_memory: usize,
    /// Upper estimate for the records of the batch, from their times.
    pub of_batch: usize,
}

impl Estimate {
    pub const fn is_over(&self) -> bool {
        self.stored.saturating_add(self.in_memory).saturating_add(self.of_batch) > self.max
    }
}

/// For example: `limit of 9 chunks (chunks_max): 5 are stored, records in memory take up to 3 more and this batch up to 2,
/// estimated from their times`.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { max, stored, in_memory, of_batch } = *self;
        write!(f, "limit of {max} chunks (chunks_max): {stored} are stored")?;
        if stored <= max {
            write!(f, ", records in memory take up to {in_memory} more and this batch up to {of_batch}")?;
            write!(f, ", estimated from their times")?;
        }
        Ok(())
    }
}

/// Removes the records outside of `live`, and notes them as refused by the limit on chunks.
pub fn keep_live(batch: &mut Arc<Batch>, live: TimeRange, estimate: Estimate, refused: &mut Refused) {
    let mut note = |kind, position, labels, (far, all): (usize, usize)| {
        let why = format!(
            "{estimate}; records more than two days from now are refused (of this series: {far} of {all})"
        );
        refused.add(kind, position, (labels, far), &why);
    };
    for (position, series) in batch.samples.iter().enumerate() {
        let far = series.samples.iter().filter(|s| !live.contains(s.at)).count();
        if far > 0 {
            note(Kind::Sample, position, &series.labels, (far, series.samples.len()));
        }
    }
    for (position, series) in batch.entries.iter().enumerate() {
        let far = series.entries.iter().filter(|e| !live.contains(e.at)).count();
        if far > 0 {
            note(Kind::Entry, position, &series.labels, (far, series.entries.len()));
        }
    }
    for (position, series) in batch.executions.iter().enumerate() {
        let far: Vec<&Segment> = series.segments.iter().filter(|s| !live.contains(s.start)).collect();
        if !far.is_empty() {
            // Refused executions are counted as completed calls, not as segments.
            let calls = far.iter().map(|segment| segment.calls_completed()).sum();
            let all = series.segments.iter().map(Segment::calls_completed).sum();
            note(Kind::Execution, position, &series.labels, (calls, all));
        }
    }
    if refused.series > 0 {
        let kept = Arc::make_mut(batch);
        kept.samples.iter_mut().for_each(|series| series.samples.retain(|s| live.contains(s.at)));
        kept.entries.iter_mut().for_each(|series| series.entries.retain(|e| live.contains(e.at)));
        kept.executions.iter_mut().for_each(|series| series.segments.retain(|s| live.contains(s.start)));
        // Series without records stay, so that the positions of the other series do not change. `arrival::admit` removes
        // them.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_change_is_a_step_into_another_window_of_two_days() {
        let day = WINDOW_NS / 2;
        for (times, expect) in [
            (&[][..], 0),
            (&[5], 0),
            (&[0, WINDOW_NS - 1], 0),
            (&[0, WINDOW_NS], 1),
            (&[-1, 0], 1),
            (&[day, day + WINDOW_NS, day], 2),
            (&[0, day, 2 * day, 3 * day, 4 * day], 2),
            (&[i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1], 1),
        ] {
            assert_eq!(window_changes(times.iter().copied()), expect, "{times:?}");
        }
        assert_eq!(live(i64::MAX).end, i64::MAX);
    }
}
