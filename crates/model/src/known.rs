//! Which samples belong to series that the store knows? Such samples have the number of their series instead
//! of its labels.
//!
//! A sender repeats the text of its series in every request. The store keeps a keyed hash of this text per series, the
//! *spelling*. A decoder hashes the text and asks the store for the series, so it makes no labels
//! ([ADR 0018](../../../docs/adr/0018-many-series.md)).
//!
//! Path of one record. Before: a decoder in `ingest` reads a text. After: `store/src/intake.rs` checks that the series still
//! exist.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::Sample;

const SPELLING_BYTES: usize = 12;

/// The first 96 bits of a keyed 128-bit hash of the text that a sender writes for a series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spelling([u8; SPELLING_BYTES]);

impl Spelling {
    /// Marks a series without a spelling.
    pub const NONE: Self = Self([0; SPELLING_BYTES]);

    fn of(hasher: &SipHasher13) -> Self {
        let mut all = [0; SPELLING_BYTES];
        let hash = hasher.finish128().as_bytes();
        all.iter_mut().zip(hash).for_each(|(byte, of_hash)| *byte = of_hash);
        Self(all)
    }

    /// The first 64 bits, for a hash table.
    pub fn bits(&self) -> u64 {
        self.0.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

/// The secret keys of the hash: one for line protocol, one for remote write. SipHash is a pseudo-random function (Aumasson,
/// Bernstein, INDOCRYPT 2012): without the keys, no sender can construct two texts with the same hash.
#[derive(Clone)]
pub struct SpellingKeys {
    lines: SipHasher13,
    labels: SipHasher13,
}

impl SpellingKeys {
    pub fn new(keys: [[u8; 16]; 2]) -> Self {
        let [lines, labels] = keys.map(|key| SipHasher13::new_with_key(&key));
        Self { lines, labels }
    }

    /// Hashes the head of a line in line protocol: measurement and tags. [`SpelledHead::field`] adds the key of a field.
    pub fn head(&self, head: &[u8]) -> SpelledHead {
        let mut hasher = self.lines;
        hasher.write(head);
        // Spaces in a head are escaped, so this space ends the head.
        hasher.write(b" ");
        SpelledHead(hasher)
    }

    /// The spelling of the encoded labels of a series in remote write.
    pub fn labels(&self, encoded: &[u8]) -> Spelling {
        let mut hasher = self.labels;
        hasher.write(encoded);
        Spelling::of(&hasher)
    }
}

impl fmt::Debug for SpellingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SpellingKeys")
    }
}

#[derive(Clone)]
pub struct SpelledHead(SipHasher13);

impl SpelledHead {
    #[inline]
    pub fn field(&self, key: &[u8]) -> Spelling {
        let mut hasher = self.0;
        hasher.write(key);
        Spelling::of(&hasher)
    }
}

/// A series that the store has found by its spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSeries {
    /// Number of the series in the index of the store.
    pub number: u32,
    /// The number that the caller of `Store::learn` gave to the series. The server gives the number of the series' service.
    pub note: u16,
    /// Length of the canonical labels, bytes.
    pub labels_bytes: u16,
}

/// Finds series by their spelling while one body is decoded.
///
/// Other threads add spellings at the same time. After a failed lookup, a finder finds no spelling that was added after this
/// lookup. So if some samples of a series get its number and others get its labels, those with the number are earlier in the
/// body.
pub trait FindSeries {
    fn keys(&self) -> &SpellingKeys;

    fn find(&mut self, spelling: Spelling) -> Option<KnownSeries>;

    /// Releases the locks that `find` holds. A decoder calls this before work that takes more than some microseconds.
    fn release(&mut self);
}

/// Limit on the labels of all series in a [`KnownSamples`], bytes. The journal may have to write all these labels in one record.
/// A decoder treats the series above the limit as unknown and creates their labels.
pub const KNOWN_LABELS_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownSamples {
    runs: Vec<Run>,
    samples: Vec<Sample>,
    labels_bytes: usize,
}

/// Adjacent samples of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    series: KnownSeries,
    /// Position after its last sample.
    end: u32,
}

impl KnownSamples {
    /// Memory of a run with one sample, bytes.
    const BYTES: usize = size_of::<Run>() + size_of::<Sample>();
    /// Highest memory of a run with one sample while samples are added and grouped, bytes. Lists that grow have up to twice the
    /// space that they need, and [`Self::group`] makes a copy with the help of a list of 8 bytes per run.
    pub const PEAK_BYTES: usize = 3 * Self::BYTES + 8;

    #[inline]
    pub fn push(&mut self, series: KnownSeries, sample: Sample) {
        self.samples.push(sample);
        self.end_run(series);
    }

    pub fn extend(&mut self, series: KnownSeries, samples: &[Sample]) {
        if !samples.is_empty() {
            self.samples.extend_from_slice(samples);
            self.end_run(series);
        }
    }

    #[inline]
    fn end_run(&mut self, series: KnownSeries) {
        let end = u32::try_from(self.samples.len()).unwrap_or(u32::MAX);
        match self.runs.last_mut().filter(|run| run.series.number == series.number) {
            Some(run) => run.end = end,
            None => {
                self.runs.push(Run { series, end });
                self.labels_bytes += usize::from(series.labels_bytes);
            }
        }
    }

    /// Puts all samples of a series into one run, in their order, and sorts the runs by the numbers of the series. Bodies that
    /// are ordered by time have many runs of each series.
    pub fn group(&mut self) {
        if self.is_grouped() {
            return;
        }
        let place = |(nth, run): (u64, &Run)| u64::from(run.series.number) << 32 | nth;
        let mut places: Vec<u64> = (0..).zip(&self.runs).map(place).collect();
        places.sort_unstable();
        let mut grouped = Self {
            runs: Vec::with_capacity(self.runs.len()),
            samples: Vec::with_capacity(self.samples.len()),
            labels_bytes: 0,
        };
        for place in places {
            let nth = usize::try_from(place & u64::from(u32::MAX)).unwrap_or(usize::MAX);
            if let Some((series, samples)) = self.get(nth) {
                grouped.extend(series, samples);
            }
        }
        *self = grouped;
    }

    /// Whether each series has one run, and the runs are sorted.
    pub fn is_grouped(&self) -> bool {
        self.runs.is_sorted_by(|a, b| a.series.number < b.series.number)
    }

    /// The run at this position.
    pub fn get(&self, nth: usize) -> Option<(KnownSeries, &[Sample])> {
        let run = self.runs.get(nth)?;
        let begin =
            nth.checked_sub(1).and_then(|before| self.runs.get(before)).map_or(0, |before| before.end);
        Some((run.series, self.samples.get(begin as usize..run.end as usize).unwrap_or_default()))
    }

    /// All runs. A series has one run if the samples are grouped.
    pub fn iter(&self) -> impl Iterator<Item = (KnownSeries, &[Sample])> {
        (0..self.runs.len()).filter_map(|nth| self.get(nth))
    }

    /// The number of the series of each run.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().map(|run| run.series.number)
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Removes the samples that `keep` refuses, and the series that have none left.
    pub fn retain(&mut self, keep: impl Fn(&Sample) -> bool) {
        let Self { runs, samples, labels_bytes } = self;
        let (mut begin, mut kept) = (0, 0);
        runs.retain_mut(|run| {
            let (end, before) = (run.end as usize, kept);
            for at in begin..end {
                if samples.get(at).is_some_and(&keep) {
                    samples.swap(kept, at);
                    kept += 1;
                }
            }
            begin = end;
            run.end = u32::try_from(kept).unwrap_or(u32::MAX);
            if kept == before {
                *labels_bytes -= usize::from(run.series.labels_bytes);
            }
            kept > before
        });
        samples.truncate(kept);
    }

    /// Number of runs. It is the number of series if the samples are grouped.
    pub const fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Bytes of the labels of all runs.
    pub const fn labels_bytes(&self) -> usize {
        self.labels_bytes
    }

    /// Number of samples by the note of their series.
    pub fn notes(&self) -> impl Iterator<Item = (u16, u64)> {
        let mut counts: Vec<u64> = Vec::new();
        for (series, samples) in self.iter() {
            let note = usize::from(series.note);
            if note >= counts.len() {
                counts.resize(note + 1, 0);
            }
            if let Some(count) = counts.get_mut(note) {
                *count += samples.len() as u64;
            }
        }
        (0..=u16::MAX).zip(counts).filter(|(_, count)| *count > 0)
    }

    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub const fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.samples.capacity() * size_of::<Sample>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn series(number: u32, note: u16) -> KnownSeries {
        KnownSeries { number, note, labels_bytes: 10 }
    }

    /// Samples at 0, 1, 2, ... of these series.
    fn known(all: &[(u32, u16)]) -> KnownSamples {
        let mut known = KnownSamples::default();
        for (at, (number, note)) in (0..).zip(all) {
            known.push(series(*number, *note), Sample { at, value: Value::I64(at) });
        }
        known
    }

    fn runs(known: &KnownSamples) -> Vec<(u32, Vec<i64>)> {
        known
            .iter()
            .map(|(series, samples)| (series.number, samples.iter().map(|s| s.at).collect()))
            .collect()
    }

    #[test]
    fn adjacent_samples_of_a_series_are_one_run_and_all_are_one_after_grouping() {
        let mut known = known(&[(7, 1), (7, 1), (3, 0), (7, 1), (9, 0), (3, 0)]);
        assert_eq!(runs(&known), [(7, vec![0, 1]), (3, vec![2]), (7, vec![3]), (9, vec![4]), (3, vec![5])]);
        let notes = |known: &KnownSamples| known.notes().collect::<Vec<_>>();
        assert_eq!((known.runs(), known.labels_bytes(), notes(&known)), (5, 50, vec![(0, 3), (1, 3)]));
        assert!(!known.is_grouped() && known.bytes() >= 6 * size_of::<Sample>());
        known.group();
        assert_eq!(runs(&known), [(3, vec![2, 5]), (7, vec![0, 1, 3]), (9, vec![4])]);
        assert_eq!((known.runs(), known.labels_bytes(), notes(&known)), (3, 30, vec![(0, 3), (1, 3)]));
        let grouped = known.clone();
        known.group();
        assert!(known == grouped && known.is_grouped() && known.get(3).is_none());
    }

    #[test]
    fn series_without_samples_are_removed() {
        let mut known = known(&[(7, 1), (7, 1), (3, 0), (7, 1), (9, 0)]);
        known.retain(|sample| ![0, 2].contains(&sample.at));
        assert_eq!(
            (runs(&known), known.labels_bytes()),
            (vec![(7, vec![1]), (7, vec![3]), (9, vec![4])], 30)
        );
        known.retain(|_| false);
        assert!(known.is_empty() && known.runs() == 0 && known.labels_bytes() == 0);
    }

    #[test]
    fn the_limit_on_memory_counts_the_size_of_a_run() {
        assert_eq!((size_of::<Run>(), KnownSamples::PEAK_BYTES), (12, 116));
    }

    #[test]
    fn a_spelling_depends_on_the_key_the_protocol_and_every_byte() {
        let keys = SpellingKeys::new([[1; 16], [2; 16]]);
        let other = SpellingKeys::new([[3; 16], [2; 16]]);
        let all = [
            keys.head(b"m,a=1").field(b"v"),
            keys.head(b"m,a=1").field(b"w"),
            keys.head(b"m,a=2").field(b"v"),
            keys.head(b"m").field(b",a=1 v"),
            other.head(b"m,a=1").field(b"v"),
            keys.labels(b"m,a=1 v"),
        ];
        for (nth, one) in all.iter().enumerate() {
            assert!(*one != Spelling::NONE && all.iter().skip(nth + 1).all(|later| later != one), "{nth}");
        }
        assert_eq!(all[0], keys.head(b"m,a=1").field(b"v"));
        assert!(!format!("{keys:?}").contains('1'), "the keys are secret");
    }
}
