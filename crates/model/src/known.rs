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
    /// The number that the caller of `Store::learn` gave to the series. The server uses the number of its service.
    pub note: u16,
    /// Length of the canonical labels, bytes.
    pub labels_bytes: u16,
}

/// Finds series by their spelling. The answers may change while a body is decoded.
pub trait FindSeries {
    fn keys(&self) -> &SpellingKeys;

    fn find(&mut self, spelling: Spelling) -> Option<KnownSeries>;

    /// Whether spellings were added since the finder was created.
    fn has_changed(&mut self) -> bool;

    /// Releases the locks that earlier calls of `find` took.
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
    notes: Vec<u64>,
}

/// Adjacent samples of one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    number: u32,
    /// Position after its last sample.
    end: u32,
}

impl KnownSamples {
    /// Memory of a run with one sample, bytes.
    pub const BYTES: usize = size_of::<Run>() + size_of::<Sample>();

    #[inline]
    pub fn push(&mut self, series: KnownSeries, sample: Sample) {
        self.samples.push(sample);
        let end = u32::try_from(self.samples.len()).unwrap_or(u32::MAX);
        match self.runs.last_mut().filter(|run| run.number == series.number) {
            Some(run) => run.end = end,
            None => {
                self.runs.push(Run { number: series.number, end });
                self.labels_bytes += usize::from(series.labels_bytes);
            }
        }
        let note = usize::from(series.note);
        if note >= self.notes.len() {
            self.notes.resize(note + 1, 0);
        }
        if let Some(count) = self.notes.get_mut(note) {
            *count += 1;
        }
    }

    /// Each run of adjacent samples of a series, with the number of the series. A series may have several runs.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[Sample])> {
        let mut begin = 0;
        self.runs.iter().map(move |run| {
            let samples = self.samples.get(begin..run.end as usize).unwrap_or_default();
            begin = run.end as usize;
            (run.number, samples)
        })
    }

    /// The numbers of the series. A number may be repeated.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().map(|run| run.number)
    }

    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Number of runs. It is at least the number of series.
    pub fn series_count(&self) -> usize {
        self.runs.len()
    }

    pub const fn labels_bytes(&self) -> usize {
        self.labels_bytes
    }

    /// Number of samples by the note of their series.
    pub fn notes(&self) -> impl Iterator<Item = (u16, u64)> {
        (0..=u16::MAX).zip(self.notes.iter().copied()).filter(|(_, count)| *count > 0)
    }

    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub const fn bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>()
            + self.samples.capacity() * size_of::<Sample>()
            + self.notes.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    fn series(number: u32, note: u16) -> KnownSeries {
        KnownSeries { number, note, labels_bytes: 10 }
    }

    #[test]
    fn adjacent_samples_of_a_series_are_one_run() {
        let mut known = KnownSamples::default();
        for (at, (number, note)) in (0..).zip([(7, 1), (7, 1), (3, 0), (7, 1)]) {
            known.push(series(number, note), Sample { at, value: Value::I64(at) });
        }
        let runs: Vec<(u32, Vec<i64>)> =
            known.iter().map(|(number, samples)| (number, samples.iter().map(|s| s.at).collect())).collect();
        assert_eq!(runs, [(7, vec![0, 1]), (3, vec![2]), (7, vec![3])]);
        assert_eq!((known.series_count(), known.labels_bytes()), (3, 30));
        assert_eq!(known.notes().collect::<Vec<_>>(), [(0, 1), (1, 3)]);
        assert!(!known.is_empty() && known.bytes() >= 4 * size_of::<Sample>());
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
