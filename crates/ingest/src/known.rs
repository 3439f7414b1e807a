//! Which samples of one body belong to known series, which the store finds by their spelling? Such samples need no labels
//! ([ADR 0018](../../../docs/adr/0018-many-series.md)).
//!
//! If two samples of a series have the same time, the later one in the body must win. But the store takes the samples of known
//! series before all other samples of the body. Therefore a series that once got labels in a body is not found later in this body
//! ([`FindSeries`]). And after a series that gets labels although the store may know it, no more series are found
//! ([`Known::end`]).

use tacho_model::{
    FindSeries, KNOWN_LABELS_BYTES_MAX, KnownSamples, KnownSeries, Sample, Spelling, SpellingKeys,
};

/// Memory of one sample while a body is decoded, bytes.
pub const SAMPLE_BYTES: usize = KnownSamples::PEAK_BYTES;
/// A decoder releases the locks of the finder after it has read this many bytes of the body. The number of lookups is limited by
/// the finder itself.
const BYTES_AT_ONCE: usize = 16 << 10;

pub struct Known<'f> {
    keys: SpellingKeys,
    /// `None` when no more series of the body are looked up.
    finder: Option<&'f mut dyn FindSeries>,
    samples: KnownSamples,
    /// Number of runs (adjacent samples of one series) after the samples were last grouped.
    runs_grouped: usize,
    /// Bytes of the body that were read since the locks were released.
    read: usize,
}

impl<'f> Known<'f> {
    pub fn new(finder: &'f mut dyn FindSeries) -> Self {
        let keys = finder.keys().clone();
        Self { keys, finder: Some(finder), samples: KnownSamples::default(), runs_grouped: 0, read: 0 }
    }

    pub const fn keys(&self) -> &SpellingKeys {
        &self.keys
    }

    pub const fn has_ended(&self) -> bool {
        self.finder.is_none()
    }

    /// The series with this spelling, if the store knows it. If the labels of the known series of the body would then exceed
    /// [`KNOWN_LABELS_BYTES_MAX`], ends the lookups and returns `None`. `pending`: bytes of the labels of series that were found
    /// and whose samples are not added yet.
    #[inline]
    pub fn find(&mut self, spelling: Spelling, pending: usize) -> Option<KnownSeries> {
        let series = self.finder.as_mut()?.find(spelling)?;
        if !self.has_room(pending + usize::from(series.labels_bytes)) {
            self.end();
            return None;
        }
        Some(series)
    }

    /// Whether the limit permits labels of this size. The labels of a series count once for each run of its samples, until
    /// [`KnownSamples::group`] joins the runs. Grouping takes time, so it is repeated only after the number of runs has doubled.
    fn has_room(&mut self, labels_bytes: usize) -> bool {
        let fits = |samples: &KnownSamples| samples.labels_bytes() + labels_bytes <= KNOWN_LABELS_BYTES_MAX;
        if fits(&self.samples) {
            return true;
        }
        if self.samples.runs() < 2 * self.runs_grouped {
            return false;
        }
        self.release();
        self.samples.group();
        self.runs_grouped = self.samples.runs();
        fits(&self.samples)
    }

    #[inline]
    pub fn push(&mut self, series: KnownSeries, sample: Sample) {
        self.samples.push(series, sample);
    }

    /// Notes that the decoder has read or is about to read so many bytes of the body.
    #[inline]
    pub fn read(&mut self, bytes: usize) {
        self.read += bytes;
        if self.read > BYTES_AT_ONCE {
            self.release();
        }
    }

    /// Releases the locks of the finder, before work that takes more than some microseconds.
    pub fn release(&mut self) {
        self.read = 0;
        if let Some(finder) = &mut self.finder {
            finder.release();
        }
    }

    /// Ends the lookups: all further series of the body get labels.
    pub fn end(&mut self) {
        self.release();
        self.finder = None;
    }

    pub fn into_samples(mut self) -> KnownSamples {
        self.end();
        self.samples.group();
        self.samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listed::List;
    use tacho_model::Value;

    const SAMPLE: Sample = Sample { at: 0, value: Value::U64(0) };
    const LABELS_BYTES: u16 = u16::MAX;
    /// Number of series whose labels reach the limit.
    const SERIES: u32 = KNOWN_LABELS_BYTES_MAX.div_ceil(LABELS_BYTES as usize) as u32;

    /// Whether a series with labels of 9 bytes is found after samples of other series in this order.
    fn finds(order: impl Iterator<Item = u32>) -> bool {
        let mut list = List::new(|keys| vec![keys.labels(b"m")]);
        let spelling = list.known[0];
        let mut known = Known::new(&mut list);
        order.for_each(|number| known.push(series(number), SAMPLE));
        known.find(spelling, 0).is_some()
    }

    const fn series(number: u32) -> KnownSeries {
        KnownSeries { number, note: 0, labels_bytes: LABELS_BYTES }
    }

    #[test]
    fn the_labels_of_each_series_count_once_in_every_order() {
        assert!(finds(0..SERIES - 1));
        assert!(!finds(0..SERIES + 1));
        let by_time = |series: u32| (0..4).flat_map(move |_| 0..series);
        assert!(finds(by_time(SERIES - 1)));
        assert!(!finds(by_time(SERIES + 1)));
    }

    #[test]
    fn samples_are_grouped_again_only_after_the_runs_have_doubled() {
        let mut list = List::new(|keys| vec![keys.labels(b"m")]);
        let spelling = list.known[0];
        let mut known = Known::new(&mut list);
        (0..2).flat_map(|_| 0..SERIES - 1).for_each(|number| known.push(series(number), SAMPLE));
        assert!(known.find(spelling, 0).is_some());
        // The limit is reached again before the number of runs has doubled.
        (0..3).for_each(|number| known.push(series(number), SAMPLE));
        assert!(known.find(spelling, 0).is_none());
        // No more series are looked up.
        known.samples = KnownSamples::default();
        assert!(known.find(spelling, 0).is_none());
    }

    #[test]
    fn pending_labels_count() {
        let mut list = List::new(|keys| vec![keys.labels(b"m")]);
        let spelling = list.known[0];
        for (pending, expect) in [(KNOWN_LABELS_BYTES_MAX - 9, true), (KNOWN_LABELS_BYTES_MAX - 8, false)] {
            assert_eq!(Known::new(&mut list).find(spelling, pending).is_some(), expect, "{pending}");
        }
    }

    #[test]
    fn locks_are_released_after_some_bytes() {
        let mut list = List::new(|_| Vec::new());
        let mut known = Known::new(&mut list);
        (0..8).for_each(|_| known.read(BYTES_AT_ONCE / 4));
        known.read(1);
        known.end();
        assert_eq!(list.released, 2);
    }
}
