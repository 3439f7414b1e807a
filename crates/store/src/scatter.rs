//! Counts the chunks that the times of records need, and selects the records that the limit on chunks refuses.
//!
//! A chunk that a flush writes spans at most two days, except a chunk of long calls. Records that are further apart need
//! separate chunks, and a driver may keep the key of every chunk in memory. A megabyte of such samples can need 100,000
//! chunks. Live records enter a new window of two days only every two days, and therefore need almost no extra chunks.
//!
//! Path of one record. Before: `intake.rs` received its batch. After: `commit.rs` writes it to the journal.

use std::fmt;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use tacho_model::{Batch, Kind, KnownSamples, Labels, Segment, SeriesId, TimeRange, Timestamp};

use crate::arrival::Refused;
use crate::guarded::Guarded;
use crate::index::{Index, SeriesNumber};
use crate::keys::CHUNK_SPAN_MAX_NS;

/// Estimated memory of a small chunk while its generation is flushed, bytes: its row and its encoded records.
pub const CHUNK_BYTES: usize = 256;

const WINDOW_NS: i64 = CHUNK_SPAN_MAX_NS.cast_signed();

/// Follows the times of a series through windows of two days.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// Start of the window: a multiple of two days, or `Timestamp::MIN` for the first possible window.
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

/// Number of records whose window differs from that of the previous record of their series, over all series of a batch. The times
/// of the records require at most one chunk per series plus this number. The limits on the records and bytes of a chunk may cause
/// further chunks. A batch may have several lists of one series, for example if its body is ordered by time: they count as one
/// list.
pub fn window_changes_of(batch: &Batch, known: &KnownSamples, index: &Guarded<Index>) -> usize {
    let Batch { samples, entries, executions } = batch;
    let labelled = samples.iter().map(|series| (series.labels.id(), series.samples.as_slice()));
    let entries = entries.iter().map(|series| (series.labels.id(), series.entries.as_slice()));
    let segments = executions.iter().map(|series| (series.labels.id(), series.segments.as_slice()));
    let of_known = known.samples().iter().map(|sample| sample.at);
    let of_labelled = samples.iter().flat_map(|series| &series.samples).map(|sample| sample.at);
    let of_samples = if are_in_one_window(of_known.chain(of_labelled)) {
        0
    } else {
        let index = index.read();
        let known = known.iter().map(|(series, samples)| (index.id(series.number), samples));
        changes_by_series(known.chain(labelled), |sample| sample.at)
    };
    of_samples
        + changes_by_series(entries, |entry| entry.at)
        + changes_by_series(segments, |segment| segment.start)
}

fn are_in_one_window(mut times: impl Iterator<Item = Timestamp>) -> bool {
    let Some(first) = times.next() else { return true };
    let mut walk = Walk::from(first);
    !times.any(|at| walk.changes_window(at))
}

fn changes_by_series<'a, R: 'a>(
    lists: impl Iterator<Item = (SeriesId, &'a [R])>,
    at: impl Fn(&R) -> Timestamp,
) -> usize {
    let mut walks = HashMap::new();
    let lists = lists.filter_map(|(id, list)| Some((id, list, at(list.first()?))));
    let changes = lists.map(|(id, list, first)| {
        let walk = walks.entry(id).or_insert_with(|| Walk::from(first));
        list.iter().filter(|record| walk.changes_window(at(record))).count()
    });
    changes.sum()
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

/// Why records of a series are refused.
struct Far {
    estimate: Estimate,
    far: usize,
    all: usize,
}

impl fmt::Display for Far {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { estimate, far, all } = self;
        let rule = "records more than two days from now are refused";
        write!(f, "{estimate}; {rule} (of this series: {far} of {all})")
    }
}

/// Removes the samples outside of `live`, and notes them as refused by the limit on chunks. `labels` makes the labels of the
/// series that a message names.
pub fn keep_live_known(
    known: &mut KnownSamples,
    labels: &dyn Fn(SeriesNumber) -> Arc<Labels>,
    live: TimeRange,
    estimate: Estimate,
    refused: &mut Refused,
) {
    for (position, (series, samples)) in known.iter().enumerate() {
        let far = samples.iter().filter(|sample| !live.contains(sample.at)).count();
        if far > 0 {
            let why = Far { estimate, far, all: samples.len() };
            refused.add_known(series, position, far, (labels, &why));
        }
    }
    known.retain(|sample| live.contains(sample.at));
}

/// Removes the records outside of `live`, and notes them as refused by the limit on chunks.
pub fn keep_live(batch: &mut Arc<Batch>, live: TimeRange, estimate: Estimate, refused: &mut Refused) {
    let before = refused.series;
    let mut note = |kind, position, labels, (far, all): (usize, usize)| {
        refused.add(kind, position, (labels, far), &Far { estimate, far, all });
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
    if refused.series > before {
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
    use tacho_model::{KnownSeries, NAME, Sample, SampleSeries, Value};

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
            let lists = || times.chunks(2).map(|list| (SeriesId(1), list));
            assert_eq!(changes_by_series(lists(), |at| *at), expect, "{times:?}");
            assert_eq!(are_in_one_window(times.iter().copied()), expect == 0, "{times:?}");
        }
        assert_eq!(live(i64::MAX).end, i64::MAX);
    }

    /// The window changes of a batch. A sample is given as (series, time).
    fn changes(known: &[(u32, i64)], labelled: &[(u32, i64)], index: &Guarded<Index>) -> usize {
        let mut samples = KnownSamples::default();
        let sample = |at| Sample { at, value: Value::U64(0) };
        for (number, at) in known {
            samples.push(KnownSeries { number: *number, note: 0, labels_bytes: 0 }, sample(*at));
        }
        samples.group();
        let labelled = labelled.iter().map(|(number, at)| SampleSeries {
            labels: index.read().labels_of(*number),
            samples: vec![sample(*at)],
        });
        window_changes_of(&Batch { samples: labelled.collect(), ..Batch::default() }, &samples, index)
    }

    #[test]
    fn the_changes_of_a_series_count_in_every_order_of_the_batch() {
        let mut index = Index::default();
        for name in ["a", "b", "c"] {
            let labels = Labels::new([(NAME, name)]).unwrap();
            index.add(Kind::Sample, labels.id(), &labels);
        }
        let index = Guarded::new(index);
        let by_series: Vec<(u32, i64)> =
            (0..3).flat_map(|series| (0..4).map(move |window| (series, window * WINDOW_NS))).collect();
        let by_time: Vec<(u32, i64)> =
            (0..4).flat_map(|window| (0..3).map(move |series| (series, window * WINDOW_NS))).collect();
        for all in [by_series, by_time] {
            for known in 0..=all.len() {
                let (known, labelled) = all.split_at(known);
                assert_eq!(changes(known, labelled, &index), 9, "{known:?} {labelled:?}");
            }
        }
        // Each series is in one window.
        let apart = [(0, 0), (1, WINDOW_NS), (2, 0), (1, WINDOW_NS), (0, 1)];
        assert_eq!([changes(&apart, &[], &index), changes(&[], &apart, &index)], [0, 0]);
    }

    #[test]
    fn known_samples_far_from_the_present_are_refused_like_labelled_ones() {
        let labels = |number: u32| Arc::new(Labels::new([(NAME, &*format!("m{number}"))]).unwrap());
        let all = (0..40).map(|at| (at % 20, if at < 34 { 0 } else { WINDOW_NS * 2 }));
        let (mut known, mut samples) = (KnownSamples::default(), Vec::new());
        for (number, at) in all {
            let sample = Sample { at, value: Value::U64(0) };
            known.push(KnownSeries { number, note: 7, labels_bytes: 9 }, sample);
            samples.push((number, sample));
        }
        known.group();
        samples.sort_by_key(|(number, _)| *number);
        let series = samples.chunk_by(|a, b| a.0 == b.0).map(|samples| SampleSeries {
            labels: labels(samples[0].0),
            samples: samples.iter().map(|(_, sample)| *sample).collect(),
        });
        let mut batch = Arc::new(Batch { samples: series.collect(), ..Batch::default() });
        let estimate = Estimate { max: 1, stored: 1, in_memory: 0, of_batch: 1 };
        let (mut of_batch, mut of_known) = (Refused::default(), Refused::default());
        keep_live(&mut batch, live(2 * WINDOW_NS), estimate, &mut of_batch);
        keep_live_known(&mut known, &labels, live(2 * WINDOW_NS), estimate, &mut of_known);
        assert_eq!((of_batch.series, of_batch.records), (20, [34, 0, 0]));
        assert_eq!((of_known.series, of_known.records), (20, [34, 0, 0]));
        assert_eq!(of_known.named, of_batch.named);
        assert_eq!(of_known.of_notes, [(7, 34)].into());
        assert!(of_known.of_series.is_empty() && known.samples().len() == 6 && known.runs() == 6);
    }
}
