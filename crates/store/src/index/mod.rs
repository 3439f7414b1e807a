//! The index of series: their labels and groups, and the selection of series by matchers.
//!
//! ```text
//!   numbers.rs    id -> number                      groups.rs       series -> its groups -> their members
//!   pairs.rs      number of a pair -> name, value   labels.rs       series -> its labels
//!   postings.rs   label, value -> numbers           select.rs       matchers -> numbers
//!   bitmap.rs     sets of numbers in a selection    cardinality.rs  cost of labels
//!   admission.rs  limits on new series              spellings.rs    text of a sender -> number
//! ```
//! The index is in memory. It is loaded from the Series table when a store is opened (`recover.rs`), and extended when a
//! batch contains a new series (`commit.rs`).

mod admission;
mod bitmap;
mod cardinality;
mod groups;
mod labels;
mod numbers;
mod pairs;
mod postings;
mod select;
mod spellings;

use std::collections::BTreeMap;
use std::sync::Arc;

use tacho_model::{Kind, LabelError, Labels, SeriesId};

pub use admission::{Admission, Bounds};
pub use cardinality::{Cardinality, LabelCost};
pub use groups::{Group, GroupNumber, Place};
pub use labels::{SERIES_AT_ONCE, labels_of_all};
pub use numbers::{Numbers, SeriesNumber, as_number, id_at};
pub use select::{Unfound, find, select, select_any};
pub use spellings::{Finder, Learned, Spellings, learn};

use bitmap::Bitmap;
use groups::Groups;
use pairs::{PairNumber, Pairs};
use postings::Postings;

use crate::kinds::{of_kind, of_kind_mut};
use crate::pages::Pages;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    fn add(&mut self, kind: Kind) {
        self.0 |= 1 << kind as u8;
    }

    fn take(&mut self, kind: Kind) {
        self.0 &= !(1 << kind as u8);
    }
}

#[derive(Debug)]
struct Series {
    id: [u8; 16],
    /// The labels, sorted by name.
    pairs: Box<[PairNumber]>,
    kinds: Kinds,
    /// Kinds with a row in the Series table.
    persisted: Kinds,
}

/// Memory of a series in all tables of the index, without its labels, bytes. Includes the tables of groups, and the temporary
/// copy of a table that grows.
const SERIES_BYTES: usize = 128;
/// Memory of one label of a series, bytes: the number of the pair, and two copies of the number of the series in postings.
const NUMBER_BYTES: usize = 16;
/// Memory of one value of a label without its text, bytes. Includes the key and the postings in `Label::values`, a share of the
/// tree node, the item in `pairs.rs`, and the overhead of the allocator.
const VALUE_BYTES: usize = 144;
/// Memory of one label in the map without its name, bytes.
const LABEL_BYTES: usize = 184;

/// Number of series of a page. A group has at most as many members.
const PAGE: usize = 64;

/// Most series have at most this many labels. Space for them is reserved while a series is added.
const PAIRS_USUAL: usize = 16;

#[derive(Debug)]
struct Label {
    name: Arc<str>,
    values: BTreeMap<Arc<str>, Valued>,
    /// Series with the label. `None` while the label has no values.
    carriers: Option<Postings>,
}

/// Series with one value of a label.
#[derive(Debug)]
struct Valued {
    postings: Postings,
    pair: PairNumber,
}

#[derive(Debug, Default)]
pub struct Index {
    series: Pages<Series, PAGE>,
    /// The number of the next series.
    next: SeriesNumber,
    numbers: Numbers,
    groups: Groups,
    labels: BTreeMap<Arc<str>, Label>,
    pairs: Pairs,
    /// Series of each kind, in the order of [`Kind::ALL`].
    kinds: [Bitmap; 3],
    counts: [usize; 3],
    /// Estimated memory without `spellings`, bytes. Updated when series are added or removed.
    bytes: usize,
    spellings: Spellings,
}

/// The id of a series; 0 for a removed series.
fn id_of(series: &Pages<Series, PAGE>, number: SeriesNumber) -> SeriesId {
    SeriesId(series.get(number).map_or(0, |series| u128::from_be_bytes(series.id)))
}

/// Memory of a series with this number of labels, without new names and values.
const fn bytes_of(labels: usize) -> usize {
    SERIES_BYTES + NUMBER_BYTES * labels
}

impl Index {
    /// An empty index whose spellings have random keys.
    pub fn new(draw_id: fn() -> u128) -> Self {
        Self { spellings: Spellings::new(draw_id), ..Self::default() }
    }

    /// Number of series of all kinds. A series with samples and entries counts once.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Estimated memory of the index, bytes. [`Bounds::bytes_max`] limits it.
    pub fn bytes(&self) -> usize {
        self.bytes + self.spellings.bytes()
    }

    pub const fn spellings(&self) -> &Spellings {
        &self.spellings
    }

    /// Whether the index has this series with samples.
    pub fn has_samples(&self, number: SeriesNumber) -> bool {
        self.is_of(Kind::Sample, number)
    }

    /// Number of series by kind, in the order of [`Kind::ALL`].
    pub const fn counts(&self) -> [usize; 3] {
        self.counts
    }

    pub fn number(&self, id: SeriesId) -> Option<SeriesNumber> {
        self.numbers.find(id, |number| self.id(number))
    }

    /// Like [`Index::number`], for the series that follows `before` in a batch. Tries the next number first, because senders
    /// repeat the order in which their series were added.
    pub fn number_after(&self, before: Option<SeriesNumber>, id: SeriesId) -> Option<SeriesNumber> {
        let next = before.map_or(0, |before| before.saturating_add(1));
        let is_next = self.series.get(next).is_some_and(|series| series.id == id.to_bytes());
        if is_next { Some(next) } else { self.number(id) }
    }

    /// The id of a series; 0 after the series was removed.
    pub fn id(&self, number: SeriesNumber) -> SeriesId {
        id_of(&self.series, number)
    }

    pub fn is_of(&self, kind: Kind, number: SeriesNumber) -> bool {
        self.series.get(number).is_some_and(|series| series.kinds.has(kind))
    }

    pub fn has(&self, kind: Kind, id: SeriesId) -> bool {
        self.get(id).is_some_and(|s| s.kinds.has(kind))
    }

    fn get(&self, id: SeriesId) -> Option<&Series> {
        self.series.get(self.number(id)?)
    }

    /// The labels of a series, by number of the pair. Empty after the series was removed.
    pub fn pairs_of(&self, number: SeriesNumber) -> &[PairNumber] {
        self.series.get(number).map_or(&[], |series| &series.pairs)
    }

    /// Adds a series, or adds a kind to a known series. `id` must be the id of `labels`.
    pub fn add(&mut self, kind: Kind, id: SeriesId, labels: &Labels) -> SeriesNumber {
        let number = self.number(id).unwrap_or_else(|| self.add_new(id, labels.iter()));
        self.add_kind(kind, number);
        number
    }

    /// Like [`Index::add`], for canonical bytes. Makes no [`Labels`] if the bytes are valid, because a start of the store adds
    /// all series of the Series table in this way.
    ///
    /// # Errors
    /// The bytes are not canonical labels.
    pub fn add_canonical(&mut self, kind: Kind, canonical: &[u8]) -> Result<SeriesNumber, LabelError> {
        let number = self.add_without_kind(canonical)?;
        self.add_kind(kind, number);
        Ok(number)
    }

    /// Adds a series that has no records yet. Its kinds are added with its records, or [`Index::forget_unused`] removes it.
    ///
    /// # Errors
    /// The bytes are not canonical labels.
    pub fn add_without_kind(&mut self, canonical: &[u8]) -> Result<SeriesNumber, LabelError> {
        let mut pairs = Vec::with_capacity(PAIRS_USUAL);
        if let Some(id) = Labels::split_canonical(canonical, &mut pairs) {
            return Ok(self.number(id).unwrap_or_else(|| self.add_new(id, pairs.iter().copied())));
        }
        let labels = Labels::from_canonical(canonical)?;
        Ok(self.number(labels.id()).unwrap_or_else(|| self.add_new(labels.id(), labels.iter())))
    }

    pub fn add_kind(&mut self, kind: Kind, number: SeriesNumber) {
        let Some(series) = self.series.get_mut(number).filter(|series| !series.kinds.has(kind)) else {
            return;
        };
        series.kinds.add(kind);
        of_kind_mut(&mut self.kinds, kind).insert(number);
        *of_kind_mut(&mut self.counts, kind) += 1;
    }

    pub fn forget_unused(&mut self, number: SeriesNumber) {
        if self.series.get(number).is_some_and(|series| series.kinds == Kinds::default()) {
            self.forget(number);
        }
    }

    fn add_new<'a>(
        &mut self,
        id: SeriesId,
        pairs: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    ) -> SeriesNumber {
        let number = self.next;
        self.next = number.saturating_add(1);
        self.bytes += bytes_of(pairs.len());
        let pairs = pairs.map(|(name, value)| self.add_pair(name, value, number)).collect();
        let (kinds, persisted) = (Kinds::default(), Kinds::default());
        self.series.insert(number, Series { id: id.to_bytes(), pairs, kinds, persisted });
        let Self { numbers, series, .. } = self;
        numbers.insert(id, number, |n| id_of(series, n));
        number
    }

    /// Adds a series to the postings of one of its labels. Returns the number of the pair.
    fn add_pair(&mut self, name: &str, value: &str, number: SeriesNumber) -> PairNumber {
        // Looked up by `&str` first, because name and value are usually known.
        let label = match self.labels.get_mut(name) {
            Some(label) => label,
            None => {
                self.bytes += LABEL_BYTES + name.len();
                let name: Arc<str> = name.into();
                let label = Label { name: name.clone(), values: BTreeMap::new(), carriers: None };
                self.labels.entry(name).or_insert(label)
            }
        };
        match &mut label.carriers {
            Some(carriers) => carriers.push(number),
            none => *none = Some(Postings::One(number)),
        }
        if let Some(Valued { postings, pair }) = label.values.get_mut(value) {
            postings.push(number);
            return *pair;
        }
        self.bytes += VALUE_BYTES + value.len();
        let value: Arc<str> = value.into();
        let pair = self.pairs.add(&label.name, &value);
        label.values.insert(value, Valued { postings: Postings::One(number), pair });
        pair
    }

    /// Removes a kind from a series. After its last kind, the series leaves the index. Its number is not reused.
    pub fn remove(&mut self, kind: Kind, number: SeriesNumber) {
        let Some(series) = self.series.get_mut(number) else { return };
        series.persisted.take(kind);
        if series.kinds.has(kind) {
            series.kinds.take(kind);
            let is_last = series.kinds == Kinds::default();
            if kind == Kind::Sample {
                self.spellings.forget(number);
            }
            of_kind_mut(&mut self.kinds, kind).take(number);
            *of_kind_mut(&mut self.counts, kind) -= 1;
            if is_last {
                self.forget(number);
            }
        }
    }

    fn forget(&mut self, number: SeriesNumber) {
        let id = self.id(number);
        let Self { numbers, series, pairs: texts, labels, .. } = self;
        numbers.remove(id, |n| id_of(series, n));
        let Some(Series { pairs, .. }) = series.remove(number) else { return };
        let mut bytes = bytes_of(pairs.len());
        for pair in pairs {
            let (name, value) = texts.get(pair);
            let Some(label) = labels.get_mut(name) else { continue };
            label.carriers = label.carriers.take().and_then(|carriers| carriers.without(number));
            let Some((key, Valued { postings, .. })) = label.values.remove_entry(value) else { continue };
            if let Some(postings) = postings.without(number) {
                label.values.insert(key, Valued { postings, pair });
                continue;
            }
            bytes += VALUE_BYTES + value.len();
            if label.values.is_empty() {
                bytes += LABEL_BYTES + name.len();
                labels.remove(name);
            }
            texts.remove(pair);
        }
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Numbers of all series of a kind, ascending.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = SeriesNumber> {
        of_kind(&self.kinds, kind).iter()
    }

    pub fn is_persisted(&self, kind: Kind, id: SeriesId) -> bool {
        self.get(id).is_some_and(|s| s.persisted.has(kind))
    }

    pub fn set_persisted(&mut self, kind: Kind, id: SeriesId) {
        if let Some(series) = self.number(id).and_then(|number| self.series.get_mut(number)) {
            series.persisted.add(kind);
        }
    }

    /// Adds a group of samples and returns its number. The row of the group in the Series table exists or is about to be written,
    /// so the members now count as persisted. A known group is not changed. The first group of a series is its home.
    pub fn add_group(&mut self, id: SeriesId, members: &[SeriesNumber]) -> GroupNumber {
        for member in members {
            if let Some(series) = self.series.get_mut(*member) {
                series.persisted.add(Kind::Sample);
            }
        }
        self.groups.add(id, members)
    }

    /// Removes a group after its partition has become empty and its row was deleted. The number of the group is not reused.
    pub fn remove_group(&mut self, number: GroupNumber) {
        self.groups.remove(number);
    }

    pub fn groups(&self) -> impl Iterator<Item = GroupNumber> {
        self.groups.numbers()
    }

    pub fn group(&self, number: GroupNumber) -> Group<'_> {
        self.groups.get(number)
    }

    pub fn group_number(&self, id: SeriesId) -> Option<GroupNumber> {
        self.groups.number(id)
    }

    /// The group for new samples of a series, and the member number of the series in it.
    pub fn home(&self, number: SeriesNumber) -> Option<Place> {
        self.groups.home(number)
    }

    /// All groups that may hold samples of a series, the home first.
    pub fn groups_of(&self, number: SeriesNumber) -> impl Iterator<Item = Place> {
        self.groups.of(number)
    }
}

#[cfg(test)]
mod tests;
