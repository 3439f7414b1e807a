//! Everything of some series, slice by slice: never more than a slice in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tacho_model::{Entry, Kind, Labels, Matcher, Sample, SeriesId, TimeRange};
use tacho_store::{Damages, Read, Result, Store};

use super::tally::Tally;
use super::thinned::Thinned;
use crate::http::json::float;

/// Records of a slice, about: chunks are not cut.
const SLICE_RECORDS: usize = 32_768;
/// Chunks of entries of a slice, about: each may hold a MiB of texts, however few they are.
const SLICE_ENTRY_CHUNKS: usize = 32;

/// A series and the kind of its records.
#[derive(Clone, Debug)]
pub struct Selected {
    pub kind: Kind,
    pub id: SeriesId,
    pub labels: Arc<Labels>,
}

/// Series of samples and entries, or of one of them, that any of the selectors accepts, in order of their labels.
pub fn find(store: &Store, selectors: &[Vec<Matcher>], only: Option<Kind>) -> Vec<Selected> {
    find_while(store, selectors, only, &|| true).unwrap_or_default()
}

/// As [`find`], as long as somebody `waits`; else `None`.
pub fn find_while(
    store: &Store,
    selectors: &[Vec<Matcher>],
    only: Option<Kind>,
    waits: &dyn Fn() -> bool,
) -> Option<Vec<Selected>> {
    let mut found = BTreeMap::new();
    let wanted = |kind: &Kind| only.is_none_or(|only| only == *kind);
    for kind in [Kind::Sample, Kind::Entry].into_iter().filter(wanted) {
        for matchers in selectors {
            let series = store.find_while(kind, matchers, waits)?.into_iter();
            found.extend(series.map(|(id, labels)| ((labels.clone(), kind), Selected { kind, id, labels })));
        }
    }
    Some(found.into_values().collect())
}

/// Names of all labels of these series.
pub fn label_names(found: &[Selected]) -> BTreeSet<String> {
    found.iter().flat_map(|series| series.labels.iter().map(|(name, _)| name.to_owned())).collect()
}

/// Some records of one series, in order of time.
pub struct Slice {
    pub labels: Arc<Labels>,
    pub records: Records,
    pub bounds: Bounds,
}

/// How far what is stored of a series may be from what was recorded; nothing at all unless the store was told to give
/// something up.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Bounds {
    /// In the unit of the values; infinite where a share of an infinity is allowed.
    #[serde(with = "float")]
    pub value: f64,
    pub time_ns: u64,
    /// Values that stand for all that were recorded in a step of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinned: Option<Thinned>,
}

impl Bounds {
    pub fn are_exact(&self) -> bool {
        *self == Self::default()
    }

    pub fn widen(&mut self, other: Self) {
        self.value = self.value.max(other.value);
        self.time_ns = self.time_ns.max(other.time_ns);
        let both = [self.thinned, other.thinned].into_iter().flatten();
        self.thinned = both.max_by_key(|thinned| thinned.step_ns);
    }
}

pub enum Records {
    Samples(Vec<Sample>),
    Entries(Vec<Entry>),
}

/// What was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Totals {
    /// With at least one record.
    pub series: u64,
    /// Of these, those that are not exact.
    pub lossy: u64,
    /// The widest of all series.
    pub bounds: Bounds,
    pub samples: Tally,
    pub entries: Tally,
}

/// Reads series after series.
pub struct Reader {
    store: Arc<Store>,
    range: TimeRange,
    /// Of which it was not yet looked whether some series are not known.
    kinds: Vec<Kind>,
    todo: VecDeque<Selected>,
    /// What is left of the first of `todo`, once it was begun.
    slices: Option<VecDeque<TimeRange>>,
    /// Of the first of `todo`.
    bounds: Bounds,
    any: bool,
    pub totals: Totals,
    /// What could not be read, where that is allowed; else the first of it is an error.
    damages: Option<Damages>,
}

impl Reader {
    /// Reads all records, or fails.
    ///
    /// `only`: of which kind the series of `todo` are, as [`find`] was told.
    pub fn new(store: Arc<Store>, todo: Vec<Selected>, only: Option<Kind>, range: TimeRange) -> Self {
        Self {
            store,
            range,
            kinds: only.map_or_else(|| vec![Kind::Sample, Kind::Entry], |only| vec![only]),
            todo: todo.into(),
            slices: None,
            bounds: Bounds::default(),
            any: false,
            totals: Totals::default(),
            damages: None,
        }
    }

    /// Goes on where something cannot be read, and tells it in the end.
    #[must_use]
    pub fn over_damage(mut self, is_allowed: bool) -> Self {
        self.damages = is_allowed.then(Damages::default);
        self
    }

    /// What could not be read so far.
    pub fn damages(&self) -> Damages {
        self.damages.clone().unwrap_or_default()
    }

    /// # Errors
    /// `Corrupt` when something is missing, unless that is allowed.
    fn take<T>(&mut self, Read { records, damages }: Read<T>) -> Result<T> {
        match &mut self.damages {
            Some(all) => all.extend(damages),
            None => damages.check()?,
        }
        Ok(records)
    }

    /// The next slice with a record; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Slice>> {
        for kind in std::mem::take(&mut self.kinds) {
            let damages = self.store.lacks(kind);
            self.take(Read { records: (), damages })?;
        }
        while let Some(series) = self.todo.front().cloned() {
            let slices = match &mut self.slices {
                Some(slices) => slices,
                none => {
                    let (slices, bounds) = slices(&self.store, series.kind, series.id, self.range).await?;
                    self.bounds = bounds;
                    none.insert(slices)
                }
            };
            let Some(range) = slices.pop_front() else {
                if std::mem::take(&mut self.any) {
                    self.totals.series += 1;
                    self.totals.lossy += u64::from(!self.bounds.are_exact());
                    self.totals.bounds.widen(self.bounds);
                }
                self.slices = None;
                self.todo.pop_front();
                continue;
            };
            if let Some(slice) = self.read(&series, range).await? {
                self.any = true;
                return Ok(Some(slice));
            }
        }
        Ok(None)
    }

    async fn read(&mut self, series: &Selected, range: TimeRange) -> Result<Option<Slice>> {
        let labels = Arc::clone(&series.labels);
        let records = if series.kind == Kind::Entry {
            let read = self.store.read_entries(series.id, range).await?;
            let entries = self.take(read)?;
            entries.iter().for_each(|entry| self.totals.entries.entry(series.id, entry));
            Records::Entries(entries)
        } else {
            let room = AtomicUsize::new(usize::MAX);
            let answer = self.store.read_samples(&[series.id], range, None, &room).await?;
            let samples = answer.samples();
            let samples = self.take(Read { records: samples, damages: answer.damages })?;
            samples.iter().for_each(|sample| self.totals.samples.sample(series.id, sample));
            Records::Samples(samples)
        };
        let bounds = self.bounds;
        Ok((!records.is_empty()).then_some(Slice { labels, records, bounds }))
    }
}

impl Records {
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Samples(samples) => samples.is_empty(),
            Self::Entries(entries) => entries.is_empty(),
        }
    }
}

/// Counts and sums what the store holds of one series.
pub async fn tally(store: &Arc<Store>, series: Selected, range: TimeRange) -> Result<Tally> {
    let kind = series.kind;
    let mut reader = Reader::new(Arc::clone(store), vec![series], Some(kind), range);
    while reader.next().await?.is_some() {}
    Ok(if kind == Kind::Entry { reader.totals.entries } else { reader.totals.samples })
}

/// Cuts the range where chunks begin, so that each part holds about [`SLICE_RECORDS`]; and how exact the chunks are.
async fn slices(
    store: &Store,
    kind: Kind,
    id: SeriesId,
    range: TimeRange,
) -> Result<(VecDeque<TimeRange>, Bounds)> {
    let mut bounds = Bounds::default();
    let mut chunks: Vec<(i64, usize)> = Vec::new();
    // What cannot be read of them is told when their records are read.
    for chunk in store.read_chunks(kind, id).await?.records {
        if !TimeRange::new(chunk.start, chunk.end).overlaps(&range) {
            continue;
        }
        let member = chunk.header.member(chunk.member);
        let value = member.map_or(0.0, |member| member.value_error_max());
        let thinned = member.and_then(|member| member.loss?.aggregation).map(Thinned::of);
        bounds.widen(Bounds { value, time_ns: chunk.header.time_error_max, thinned });
        let least = if kind == Kind::Entry { SLICE_RECORDS / SLICE_ENTRY_CHUNKS } else { 0 };
        chunks.push((chunk.start, chunk.header.count.max(least)));
    }
    chunks.sort_unstable();
    let mut out = VecDeque::new();
    let (mut start, mut records) = (range.start, 0);
    for (at, count) in chunks {
        if records > 0 && records + count > SLICE_RECORDS && at > start {
            out.push_back(TimeRange::new(start, at - 1));
            (start, records) = (at, 0);
        }
        records += count;
    }
    out.push_back(TimeRange::new(start, range.end));
    Ok((out, bounds))
}
