//! Which series does a sender mean by a text that it has sent before?
//!
//! For each series, the table has an entry of 16 bytes with the last [`Spelling`] that was written for the
//! series. It also has hash tables from spellings to numbers of series. Entry and hash tables together take about 27 bytes per
//! series.
//! A series has one spelling at a time. A spelling is forgotten with its series.
//!
//! ```text
//!   number of a series / PAGE -> page -> entry: spelling, note      a page without spellings takes no memory
//!   bits of a spelling -> one of SHARDS hash tables -> number       a table grows and shrinks in a short time
//! ```
//! The table has its own lock, so that decoders do not wait for the index. Code that needs both locks takes the lock of the
//! index first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLockReadGuard};

use hashbrown::HashTable;
use tacho_model::{FindSeries, KnownSeries, SeriesId, Spelling, SpellingKeys};

use super::numbers::SeriesNumber;
use crate::guarded::Guarded;
use crate::options::draw_id;
use crate::size::in_memory;

/// Number of spellings that are looked up or added under one lock. The lock is held for about 0.2 ms.
const AT_ONCE: usize = 1_024;
/// Number of entries of a page.
const PAGE: usize = 256;
const PAGE_BYTES: usize = PAGE * size_of::<Entry>();
/// Number of hash tables. A table is moved when it grows: with a million series, 16,000 numbers at once.
const SHARDS: usize = 64;
/// A hash table that is filled to less than 1/`SPARSE` of its capacity is moved to a smaller one.
const SPARSE: usize = 8;

#[derive(Clone, Copy, Debug)]
pub struct Learned {
    pub id: SeriesId,
    pub spelling: Spelling,
    /// A number of the caller's choice, returned with the series when it is found.
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
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// [`Spelling::NONE`] if the series has no known spelling.
    spelling: Spelling,
    note: u16,
    labels_bytes: u16,
}

/// Entries of [`PAGE`] series with adjacent numbers.
#[derive(Debug, Default)]
struct Page {
    /// Empty if no series has a spelling.
    entries: Box<[Entry]>,
    /// Number of series with a spelling.
    known: usize,
}

#[derive(Debug)]
struct Table {
    pages: Vec<Page>,
    /// The numbers of the series that have a spelling.
    places: [HashTable<SeriesNumber>; SHARDS],
    known: usize,
    /// Number of spellings that were added.
    added: u64,
    /// Memory of the entries and of the hash tables, bytes.
    bytes: usize,
}

impl Default for Spellings {
    /// An empty table with random keys from the operating system.
    fn default() -> Self {
        Self::new(draw_id)
    }
}

impl Spellings {
    /// An empty table with random keys.
    pub fn new(draw_id: fn() -> u128) -> Self {
        let keys = SpellingKeys::new([draw_id().to_le_bytes(), draw_id().to_le_bytes()]);
        Self(Arc::new(Shared {
            keys,
            table: Guarded::default(),
            bytes: AtomicUsize::new(0),
            known: AtomicUsize::new(0),
        }))
    }

    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    pub fn known(&self) -> usize {
        self.0.known.load(Ordering::Relaxed)
    }

    pub fn finder(&self) -> Finder<'_> {
        Finder {
            shared: &self.0,
            table: None,
            left: 0,
            last: 0,
            added: 0,
            has_missed: false,
            has_ended: false,
        }
    }

    /// Adds spellings of series with these numbers, until the table takes `bytes_max`. The caller holds the lock of the index, so
    /// that no series is forgotten in the meantime.
    pub(super) fn add(&self, all: impl Iterator<Item = (SeriesNumber, Learned)>, bytes_max: usize) {
        let mut table = self.0.table.write();
        for (number, learned) in all {
            if table.bytes() + PAGE_BYTES > bytes_max {
                break;
            }
            table.add(number, learned);
        }
        self.update(&table);
    }

    pub(super) fn forget(&self, number: SeriesNumber) {
        let mut table = self.0.table.write();
        table.forget(number);
        self.update(&table);
    }

    fn update(&self, table: &Table) {
        self.0.bytes.store(table.bytes(), Ordering::Relaxed);
        self.0.known.store(table.known, Ordering::Relaxed);
    }
}

impl Default for Table {
    fn default() -> Self {
        let places = std::array::from_fn(|_| HashTable::new());
        Self { pages: Vec::new(), places, known: 0, added: 0, bytes: 0 }
    }
}

const fn page_of(number: SeriesNumber) -> (usize, usize) {
    (number as usize / PAGE, number as usize % PAGE)
}

/// Bits that a hash table of less than 2^40 buckets does not use.
fn shard_of(spelling: Spelling) -> usize {
    in_memory(spelling.bits() >> 40) % SHARDS
}

fn entry_of(pages: &[Page], number: SeriesNumber) -> Entry {
    let (page, at) = page_of(number);
    pages.get(page).and_then(|page| page.entries.get(at)).copied().unwrap_or_default()
}

impl Table {
    const fn bytes(&self) -> usize {
        self.bytes + self.pages.capacity() * size_of::<Page>()
    }

    /// The series with a spelling. Tries `guess` first.
    fn find(&self, guess: SeriesNumber, spelling: Spelling) -> Option<(SeriesNumber, Entry)> {
        if spelling == Spelling::NONE {
            return None;
        }
        let guessed = entry_of(&self.pages, guess);
        if guessed.spelling == spelling {
            return Some((guess, guessed));
        }
        let is_it = |number: &SeriesNumber| entry_of(&self.pages, *number).spelling == spelling;
        let number = *self.places.get(shard_of(spelling))?.find(spelling.bits(), is_it)?;
        Some((number, entry_of(&self.pages, number)))
    }

    fn add(&mut self, number: SeriesNumber, learned: Learned) {
        let Learned { spelling, note, labels_bytes, .. } = learned;
        if spelling == Spelling::NONE {
            return;
        }
        let before = entry_of(&self.pages, number).spelling;
        if before != spelling {
            // Another series has this spelling only if two texts have the same hash.
            if let Some((other, _)) = self.find(number, spelling) {
                self.forget(other);
            }
            self.forget(number);
            self.added += 1;
            self.known += 1;
        }
        let (page, at) = page_of(number);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, Page::default);
        }
        let Some(page) = self.pages.get_mut(page) else { return };
        if page.entries.is_empty() {
            page.entries = vec![Entry::default(); PAGE].into();
            self.bytes += PAGE_BYTES;
        }
        if let Some(entry) = page.entries.get_mut(at) {
            *entry = Entry { spelling, note, labels_bytes };
        }
        if before != spelling {
            page.known += 1;
            self.change_places(spelling, |places, bits| {
                places.insert_unique(spelling.bits(), number, bits);
            });
        }
    }

    /// Changes the hash table of a spelling. The function also gets the hash of each number.
    fn change_places(
        &mut self,
        spelling: Spelling,
        change: impl FnOnce(&mut HashTable<SeriesNumber>, &dyn Fn(&SeriesNumber) -> u64),
    ) {
        let Self { places, pages, bytes, .. } = self;
        let Some(places) = places.get_mut(shard_of(spelling)) else { return };
        let before = places.allocation_size();
        change(places, &|number| entry_of(pages, *number).spelling.bits());
        *bytes = *bytes + places.allocation_size() - before;
    }

    fn forget(&mut self, number: SeriesNumber) {
        let (page, at) = page_of(number);
        let Some(spelling) = self.pages.get(page).and_then(|page| Some(page.entries.get(at)?.spelling))
        else {
            return;
        };
        if spelling == Spelling::NONE {
            return;
        }
        self.known -= 1;
        // The number is removed before its entry, because a hash table gets the hashes of all its numbers from the entries.
        self.change_places(spelling, |places, bits| {
            if let Ok(place) = places.find_entry(spelling.bits(), |other| *other == number) {
                place.remove();
            }
            if places.len() * SPARSE < places.capacity() {
                places.shrink_to(2 * places.len(), bits);
            }
        });
        let Some(page) = self.pages.get_mut(page) else { return };
        if let Some(entry) = page.entries.get_mut(at) {
            *entry = Entry::default();
        }
        page.known -= 1;
        if page.known == 0 {
            page.entries = Box::default();
            self.bytes -= PAGE_BYTES;
        }
    }
}

/// Finds series by their spellings while one body is decoded. Holds the lock of the table for at most [`AT_ONCE`] lookups, and
/// not after a failed one, because then the decoder makes labels.
pub struct Finder<'a> {
    shared: &'a Shared,
    table: Option<RwLockReadGuard<'a, Table>>,
    /// Number of lookups until the lock is released.
    left: usize,
    /// The series that was found last. Senders repeat the order in which their series were added.
    last: SeriesNumber,
    /// Number of spellings that had been added at the last lookup.
    added: u64,
    has_missed: bool,
    /// Whether spellings were added after a lookup had failed. From then on, nothing is found.
    has_ended: bool,
}

impl<'a> Finder<'a> {
    fn lock(&mut self) -> &RwLockReadGuard<'a, Table> {
        let Self { shared, table, added, has_missed, has_ended, .. } = self;
        table.get_or_insert_with(|| {
            let table = shared.table.read();
            *has_ended |= *has_missed && table.added != *added;
            *added = table.added;
            table
        })
    }
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
        let guess = self.last.wrapping_add(1);
        let found = self.lock().find(guess, spelling).filter(|_| !self.has_ended);
        let Some((number, Entry { note, labels_bytes, .. })) = found else {
            self.has_missed = true;
            self.release();
            return None;
        };
        self.last = number;
        Some(KnownSeries { number, note, labels_bytes })
    }

    fn release(&mut self) {
        self.table = None;
    }
}

/// Adds the spellings of those series that have samples in the index, until the index has no memory left or `goes_on` returns
/// false. Between parts of [`AT_ONCE`], no lock is held. A thread that waits to write gets the lock of the index then, because
/// `RwLock` lets no new reader pass it.
pub fn learn(
    index: &Guarded<super::Index>,
    learned: &[Learned],
    bytes_max: usize,
    goes_on: impl Fn() -> bool,
) {
    for some in learned.chunks(AT_ONCE) {
        if !goes_on() {
            return;
        }
        let index = index.read();
        let bytes_max = bytes_max.saturating_sub(index.bytes);
        let mut before = None;
        let numbered = some.iter().filter_map(|learned| {
            before = index.number_after(before, learned.id);
            let number = before.filter(|number| index.is_of(tacho_model::Kind::Sample, *number))?;
            Some((number, *learned))
        });
        index.spellings.add(numbered, bytes_max);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use tacho_model::{Kind, Labels};

    use super::*;
    use crate::index::Index;

    fn learned(labels: &Labels, spelling: Spelling) -> Learned {
        Learned { id: labels.id(), spelling, note: 3, labels_bytes: 9 }
    }

    /// An index with series `m0`, `m1`, ..., and what is learned about them.
    fn index(series: usize) -> (Guarded<Index>, Spellings, Vec<Learned>) {
        let mut index = Index::default();
        let spellings = index.spellings().clone();
        let all = (0..series).map(|n| {
            let labels = Labels::new([("__name__", &*format!("m{n}"))]).unwrap();
            index.add(Kind::Sample, labels.id(), &labels);
            learned(&labels, spelling(&spellings, n))
        });
        let all = all.collect();
        (Guarded::new(index), spellings, all)
    }

    fn spelling(spellings: &Spellings, n: usize) -> Spelling {
        spellings.finder().keys().head(format!("m{n}").as_bytes()).field(b"value")
    }

    fn found(spellings: &Spellings, n: usize) -> Option<usize> {
        let series = spellings.finder().find(spelling(spellings, n))?;
        Some(series.number as usize)
    }

    #[test]
    fn spellings_are_found_until_their_series_is_forgotten() {
        let (index, spellings, all) = index(2_000);
        let found = |n| found(&spellings, n);
        assert_eq!(found(7), None);
        learn(&index, &all, usize::MAX, || true);
        assert!((0..2_000).all(|n| found(n) == Some(n)));
        assert_eq!(
            spellings.finder().find(all[7].spelling),
            Some(KnownSeries { number: 7, note: 3, labels_bytes: 9 })
        );
        assert!((2_000 * 20..2_000 * 32).contains(&spellings.bytes()), "{} bytes", spellings.bytes());
        index.write().remove(Kind::Sample, 7);
        assert_eq!((found(7), found(8), spellings.known()), (None, Some(8), 1_999));
        // A series that returns has another number.
        let labels = Labels::new([("__name__", "m7")]).unwrap();
        index.write().add(Kind::Sample, labels.id(), &labels);
        assert_eq!(found(7), None);
        learn(&index, &all, usize::MAX, || true);
        assert_eq!(found(7), Some(2_000));
    }

    #[test]
    fn a_spelling_that_is_added_after_a_failed_lookup_is_not_found() {
        let (index, spellings, all) = index(4);
        let learn = |all: &[Learned]| learn(&index, all, usize::MAX, || true);
        learn(&all[..2]);
        let finder = || {
            let mut finder = spellings.finder();
            assert!(finder.find(all[0].spelling).is_some());
            finder
        };
        let (mut hit, mut missed) = (finder(), finder());
        assert_eq!(missed.find(all[3].spelling), None);
        hit.release();
        // What is known already is no change.
        learn(&all[..2]);
        assert!(missed.find(all[1].spelling).is_some());
        missed.release();
        learn(&all[2..]);
        assert!(hit.find(all[3].spelling).is_some() && hit.find(all[2].spelling).is_some());
        assert_eq!([3, 2, 1, 0].map(|n: usize| missed.find(all[n].spelling)), [None; 4]);
    }

    #[test]
    fn the_table_is_unlocked_after_some_lookups_and_after_a_failed_one() {
        let (index, spellings, all) = index(2);
        learn(&index, &all[..1], usize::MAX, || true);
        let is_locked = || spellings.0.table.try_write().is_none();
        let mut finder = spellings.finder();
        for lookup in 0..3 * AT_ONCE {
            assert_eq!(finder.left, (AT_ONCE - lookup % AT_ONCE) % AT_ONCE, "{lookup}");
            assert!(finder.find(all[0].spelling).is_some() && is_locked());
        }
        assert_eq!((finder.find(all[1].spelling), is_locked()), (None, false));
        assert!(finder.find(all[0].spelling).is_some() && is_locked());
        finder.release();
        assert!(!is_locked());
    }

    #[test]
    fn memory_is_freed_with_the_series() {
        const SERIES: usize = 40_000;
        let (index, spellings, all) = index(SERIES);
        learn(&index, &all, usize::MAX, || true);
        let full = spellings.bytes();
        let forget = |n: usize| index.write().remove(Kind::Sample, u32::try_from(n).unwrap());
        // Forgets the first half of the series, then all series of the other pages except one of each page, then these.
        (0..SERIES / 2).for_each(forget);
        assert!(spellings.bytes() < full * 3 / 4, "{} of {full}", spellings.bytes());
        (SERIES / 2..SERIES).filter(|n| n % PAGE != 9).for_each(forget);
        assert!((0..SERIES).all(|n| found(&spellings, n) == (n >= SERIES / 2 && n % PAGE == 9).then_some(n)));
        (SERIES / 2..SERIES).filter(|n| n % PAGE == 9).for_each(forget);
        assert_eq!(spellings.known(), 0);
        assert!(spellings.bytes() < full / 50, "{} of {full}", spellings.bytes());
    }

    #[test]
    fn learning_stops_when_the_store_is_closed() {
        let (index, spellings, all) = index(3 * AT_ONCE);
        let left = Cell::new(2);
        learn(&index, &all, usize::MAX, || left.replace(left.get() - 1) > 0);
        assert_eq!(spellings.known(), 2 * AT_ONCE);
    }

    #[test]
    fn a_series_without_samples_and_a_full_index_learn_nothing() {
        let labels = Labels::new([("__name__", "m")]).unwrap();
        let mut index = Index::default();
        index.add(Kind::Entry, labels.id(), &labels);
        let spellings = index.spellings().clone();
        let spelling = spellings.finder().keys().labels(b"m");
        let index = Guarded::new(index);
        let learn = |bytes_max| learn(&index, &[learned(&labels, spelling)], bytes_max, || true);
        learn(usize::MAX);
        assert_eq!(spellings.known(), 0);
        index.write().add(Kind::Sample, labels.id(), &labels);
        let bytes = index.read().bytes();
        learn(bytes + PAGE_BYTES - 1);
        assert_eq!(spellings.known(), 0);
        learn(bytes + PAGE_BYTES);
        assert_eq!(spellings.known(), 1);
        index.write().remove(Kind::Sample, 0);
        assert_eq!(spellings.known(), 0, "the series has no samples any more");
    }

    proptest! {
        /// Compares the table with a map of each series' last spelling.
        #[test]
        fn the_table_equals_a_map(
            steps in proptest::collection::vec((0u32..600, 0u8..60, any::<bool>()), 0..400),
        ) {
            let keys = Spellings::default();
            let spelling = |text: u8| keys.finder().keys().labels(&[text]);
            let (mut table, mut map) = (Table::default(), BTreeMap::<u32, u8>::new());
            for (number, text, add) in steps {
                let number = number / 20 * 20;
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
                let places: usize = table.places.iter().map(HashTable::len).sum();
                prop_assert_eq!((table.known, places), (map.len(), map.len()));
                for text in 0..60 {
                    let expect = map.iter().find(|(_, other)| **other == text).map(|(number, _)| *number);
                    let found = table.find(number, spelling(text)).map(|(number, _)| number);
                    prop_assert_eq!(found, expect);
                }
                let pages = table.pages.iter().filter(|page| !page.entries.is_empty()).count();
                let allocated: usize = table.places.iter().map(HashTable::allocation_size).sum();
                prop_assert_eq!(table.bytes, pages * PAGE_BYTES + allocated);
                let mut used: Vec<u32> = map.keys().map(|number| number / 256).collect();
                used.dedup();
                prop_assert_eq!(pages, used.len());
            }
        }
    }
}
