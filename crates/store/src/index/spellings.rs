//! Which series does a sender mean by a text that it has sent before?
//!
//! For each series, [`Table`] has an entry of 16 bytes with the last [`Spelling`] that [`learn`] added for the series. It
//! also has a hash table from spellings to numbers of series. The entries and the hash table take about 27 bytes per series.
//! A series has one spelling at a time. A spelling is forgotten with its series.
//!
//! [`Table`] has its own lock, so that decoders do not wait for the lock of the index. Code that needs both locks takes the
//! lock of the index first.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, RwLockReadGuard};

use hashbrown::HashTable;
use tacho_model::{FindSeries, KnownSeries, SeriesId, Spelling, SpellingKeys};

use super::numbers::SeriesNumber;
use crate::guarded::Guarded;
use crate::options::draw_id;

/// Number of spellings that are looked up or added under one lock. The lock is held for about 0.2 ms.
const AT_ONCE: usize = 1_024;
/// `Table::entries` grows by 1/`GROWTH` of its length, because doubling would take up to 16 bytes more per series.
const GROWTH: usize = 8;

#[derive(Clone, Copy, Debug)]
pub struct Learned {
    pub id: SeriesId,
    pub spelling: Spelling,
    /// Returned with the series when it is found.
    pub note: u16,
    pub labels_bytes: u16,
}

/// The spellings of the series of one index. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Spellings(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    keys: SpellingKeys,
    table: Guarded<Table>,
    /// Memory of the table, bytes.
    bytes: AtomicUsize,
    known: AtomicUsize,
    /// Number of changes that added spellings.
    added: AtomicU64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// [`Spelling::NONE`] if the series has no known spelling.
    spelling: Spelling,
    note: u16,
    labels_bytes: u16,
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    /// The numbers of the series that have a spelling.
    places: HashTable<SeriesNumber>,
}

impl Default for Spellings {
    /// An empty table with random keys from the operating system.
    fn default() -> Self {
        let keys = SpellingKeys::new([draw_id().to_le_bytes(), draw_id().to_le_bytes()]);
        Self(Arc::new(Shared {
            keys,
            table: Guarded::default(),
            bytes: AtomicUsize::new(0),
            known: AtomicUsize::new(0),
            added: AtomicU64::new(0),
        }))
    }
}

impl Spellings {
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    pub fn known(&self) -> usize {
        self.0.known.load(Ordering::Relaxed)
    }

    pub fn finder(&self) -> Finder<'_> {
        let shared = &*self.0;
        Finder { shared, table: None, left: 0, last: 0, added: shared.added.load(Ordering::Acquire) }
    }

    /// Adds spellings of series with these numbers. The caller holds the lock of the index, so that no series is forgotten in the
    /// meantime.
    pub(super) fn add(&self, all: impl Iterator<Item = (SeriesNumber, Learned)>) {
        let mut table = self.0.table.write();
        for (number, learned) in all {
            table.add(number, learned);
        }
        self.update(&table);
        self.0.added.fetch_add(1, Ordering::Release);
    }

    pub(super) fn forget(&self, number: SeriesNumber) {
        let mut table = self.0.table.write();
        table.forget(number);
        self.update(&table);
    }

    fn update(&self, table: &Table) {
        self.0.bytes.store(table.bytes(), Ordering::Relaxed);
        self.0.known.store(table.places.len(), Ordering::Relaxed);
    }
}

impl Table {
    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.places.allocation_size()
    }

    fn entry(&self, number: SeriesNumber) -> Entry {
        self.entries.get(number as usize).copied().unwrap_or_default()
    }

    /// The series with a spelling. Tries `guess` first.
    fn find(&self, guess: SeriesNumber, spelling: Spelling) -> Option<(SeriesNumber, Entry)> {
        if spelling == Spelling::NONE {
            return None;
        }
        let guessed = self.entry(guess);
        if guessed.spelling == spelling {
            return Some((guess, guessed));
        }
        let number = *self.places.find(spelling.bits(), |number| self.entry(*number).spelling == spelling)?;
        Some((number, self.entry(number)))
    }

    fn add(&mut self, number: SeriesNumber, learned: Learned) {
        let Learned { spelling, note, labels_bytes, .. } = learned;
        if spelling == Spelling::NONE {
            return;
        }
        // Another series has this spelling only if two texts have the same hash.
        if let Some((other, _)) = self.find(number, spelling)
            && other != number
        {
            self.forget(other);
        }
        if self.entry(number).spelling != spelling {
            self.forget(number);
            self.grow(number as usize + 1);
            let Self { entries, places } = self;
            let bits = |number: &SeriesNumber| {
                entries.get(*number as usize).map_or(0, |entry| entry.spelling.bits())
            };
            places.insert_unique(spelling.bits(), number, bits);
        }
        if let Some(entry) = self.entries.get_mut(number as usize) {
            *entry = Entry { spelling, note, labels_bytes };
        }
    }

    fn grow(&mut self, len: usize) {
        if len > self.entries.capacity() {
            self.entries.reserve_exact((len + len / GROWTH).saturating_sub(self.entries.len()));
        }
        if len > self.entries.len() {
            self.entries.resize(len, Entry::default());
        }
    }

    fn forget(&mut self, number: SeriesNumber) {
        let Some(entry) = self.entries.get_mut(number as usize) else { return };
        let spelling = std::mem::take(entry).spelling;
        if spelling != Spelling::NONE
            && let Ok(place) = self.places.find_entry(spelling.bits(), |other| *other == number)
        {
            place.remove();
        }
    }
}

/// Finds series by their spellings while one body is decoded. Holds the lock of the table for at most
/// [`AT_ONCE`] lookups.
pub struct Finder<'a> {
    shared: &'a Shared,
    table: Option<RwLockReadGuard<'a, Table>>,
    /// Number of lookups until the lock is released.
    left: usize,
    /// The series that was found last. Senders repeat the order in which their series were added.
    last: SeriesNumber,
    /// `Shared::added` when the decoding of the body began.
    added: u64,
}

impl FindSeries for Finder<'_> {
    fn keys(&self) -> &SpellingKeys {
        &self.shared.keys
    }

    fn find(&mut self, spelling: Spelling) -> Option<KnownSeries> {
        if self.left == 0 {
            self.release();
            self.left = AT_ONCE;
        }
        self.left -= 1;
        let table = self.table.get_or_insert_with(|| self.shared.table.read());
        let (number, Entry { note, labels_bytes, .. }) = table.find(self.last.wrapping_add(1), spelling)?;
        self.last = number;
        Some(KnownSeries { number, note, labels_bytes })
    }

    fn has_changed(&mut self) -> bool {
        self.shared.added.load(Ordering::Acquire) != self.added
    }

    fn release(&mut self) {
        self.table = None;
    }
}

/// Adds the spellings of those series that have samples in the index. Stops when further spellings might take the index above
/// `bytes_max`.
pub fn learn(index: &Guarded<super::Index>, learned: &[Learned], bytes_max: usize) {
    for some in learned.chunks(AT_ONCE) {
        let index = index.read();
        if index.bytes() + some.len() * 2 * size_of::<Entry>() > bytes_max {
            return;
        }
        let mut before = None;
        let numbered = some.iter().filter_map(|learned| {
            before = index.number_after(before, learned.id);
            let number = before.filter(|number| index.is_of(tacho_model::Kind::Sample, *number))?;
            Some((number, *learned))
        });
        index.spellings.add(numbered);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tacho_model::{Kind, Labels};

    use super::*;
    use crate::index::Index;

    fn learned(labels: &Labels, spelling: Spelling) -> Learned {
        Learned { id: labels.id(), spelling, note: 3, labels_bytes: 9 }
    }

    #[test]
    fn spellings_are_found_until_their_series_is_forgotten() {
        let labels = |name: &str| Labels::new([("__name__", name)]).unwrap();
        let mut index = Index::default();
        let all: Vec<Labels> = (0..2_000).map(|n| labels(&format!("m{n}"))).collect();
        for labels in &all {
            index.add(Kind::Sample, labels.id(), labels);
        }
        let spellings = index.spellings().clone();
        let spelling = |n: usize| spellings.finder().keys().head(format!("m{n}").as_bytes()).field(b"value");
        let index = Guarded::new(index);
        let list: Vec<Learned> =
            all.iter().enumerate().map(|(n, labels)| learned(labels, spelling(n))).collect();
        let mut early = spellings.finder();
        assert_eq!(early.find(spelling(1)), None);
        early.release();
        learn(&index, &list, usize::MAX);
        assert!(early.has_changed() && !spellings.finder().has_changed());
        let found = |n: usize| spellings.finder().find(spelling(n)).map(|series| series.number as usize);
        assert!((0..2_000).all(|n| found(n) == Some(n)));
        assert_eq!(
            spellings.finder().find(spelling(7)),
            Some(KnownSeries { number: 7, note: 3, labels_bytes: 9 })
        );
        assert!((2_000 * 20..2_000 * 32).contains(&spellings.bytes()), "{} bytes", spellings.bytes());
        index.write().remove(Kind::Sample, 7);
        assert_eq!((found(7), found(8), spellings.known()), (None, Some(8), 1_999));
        // A removed series gets a new number when it is added again.
        index.write().add(Kind::Sample, all[7].id(), &all[7]);
        assert_eq!(found(7), None);
        learn(&index, &list, usize::MAX);
        assert_eq!(found(7), Some(2_000));
    }

    #[test]
    fn a_series_without_samples_and_a_full_index_learn_nothing() {
        let labels = Labels::new([("__name__", "m")]).unwrap();
        let mut index = Index::default();
        index.add(Kind::Entry, labels.id(), &labels);
        let spellings = index.spellings().clone();
        let spelling = spellings.finder().keys().labels(b"m");
        let index = Guarded::new(index);
        learn(&index, &[learned(&labels, spelling)], usize::MAX);
        assert_eq!(spellings.known(), 0);
        index.write().add(Kind::Sample, labels.id(), &labels);
        learn(&index, &[learned(&labels, spelling)], index.read().bytes());
        assert_eq!(spellings.known(), 0);
        learn(&index, &[learned(&labels, spelling)], usize::MAX);
        assert_eq!(spellings.known(), 1);
        index.write().remove(Kind::Sample, 0);
        assert_eq!(spellings.known(), 0, "the series has only entries left");
    }

    proptest! {
        /// Compares the table with a map of each series' last spelling.
        #[test]
        fn the_table_equals_a_map(
            steps in proptest::collection::vec((0u32..40, 0u8..60, any::<bool>()), 0..400),
        ) {
            let keys = Spellings::default();
            let spelling = |text: u8| keys.finder().keys().labels(&[text]);
            let (mut table, mut map) = (Table::default(), BTreeMap::<u32, u8>::new());
            for (number, text, add) in steps {
                if add {
                    let learned =
                        Learned { id: SeriesId(0), spelling: spelling(text), note: 0, labels_bytes: 0 };
                    table.add(number, learned);
                    map.retain(|_, other| *other != text);
                    map.insert(number, text);
                } else {
                    table.forget(number);
                    map.remove(&number);
                }
                prop_assert_eq!(table.places.len(), map.len());
                for text in 0..60 {
                    let expect = map.iter().find(|(_, other)| **other == text).map(|(number, _)| *number);
                    let found = table.find(number, spelling(text)).map(|(number, _)| number);
                    prop_assert_eq!(found, expect);
                }
            }
        }
    }
}
