//! Counts the chunks that the times of records need, and selects the records that the limit on chunks refuses.
//!
//! A chunk spans at most two days. Records that are further apart need separate chunks, and a driver may keep the key
//! of every chunk in memory. A megabyte of such samples can need 100,000 chunks. Live records enter a new window of two
//! days only every two days, and therefore need almost no extra chunks.
//!
//! Path of one record. Before: `intake.rs` received its batch. After: `commit.rs` writes it to the journal.

use std::sync::Arc;

use tacho_model::{Batch, Kind, Segment, TimeRange, Timestamp};

use crate::arrival::Refused;
use crate::keys::CHUNK_SPAN_MAX_NS;

/// Memory of a chunk while it is sealed, bytes: its row and its encoded records.
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
    pub const fn moves(&mut self, at: Timestamp) -> bool {
        if at.wrapping_sub(self.start).cast_unsigned() < CHUNK_SPAN_MAX_NS {
            return false;
        }
        *self = Self::from(at);
        true
    }
}

/// Number of consecutive times that are in different windows. The number of chunks is at most one more.
pub fn moves(mut times: impl Iterator<Item = Timestamp>) -> usize {
    let Some(first) = times.next() else { return 0 };
    let mut walk = Walk::from(first);
    times.filter(|at| walk.moves(*at)).count()
}

/// The sum of [`moves`] over all series of a batch.
pub fn moves_of(batch: &Batch) -> usize {
    let samples = batch.samples.iter().map(|series| moves(series.samples.iter().map(|s| s.at)));
    let entries = batch.entries.iter().map(|series| moves(series.entries.iter().map(|e| e.at)));
    let segments = batch.executions.iter().map(|series| moves(series.segments.iter().map(|s| s.start)));
    samples.chain(entries).chain(segments).sum()
}

/// The times that are accepted at the limit on chunks: the times of live records.
pub const fn live(now: Timestamp) -> TimeRange {
    TimeRange::new(now.saturating_sub(WINDOW_NS), now.saturating_add(WINDOW_NS))
}

/// Removes the records outside of `live`, and adds them to `refused` with the limit of `max` chunks as the reason.
pub fn keep_live(batch: &mut Arc<Batch>, live: TimeRange, max: usize, refused: &mut Refused) {
    let mut note = |kind, position, labels, (far, all): (usize, usize)| {
        let why = format!(
            "limit of {max} chunks is reached, so {far} of {all} records are refused: they are more than two days from now"
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
            // A record is a completed call.
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
    fn a_move_is_a_step_into_another_window_of_two_days() {
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
            assert_eq!(moves(times.iter().copied()), expect, "{times:?}");
        }
        assert_eq!(live(i64::MAX).end, i64::MAX);
    }
}
