//! Reads all records of some series, slice by slice. At a time, the memory has one slice, or the slices of several short series.
//! Together, these series have at most about as many records as one slice.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tacho_api::export::{Bounds, Thinned, Totals};
use tacho_ingest::json_lines;
use tacho_model::{Entry, Kind, Labels, Matcher, Sample, SeriesId, TimeRange};
use tacho_store::{Damages, Exactness, Piece, Read, Result, Unfound};

use crate::access::View;

/// Approximate number of records of a slice. Chunks are not split.
pub(super) const SLICE_RECORDS: usize = 32_768;
const SERIES_AT_ONCE: usize = 128;
/// If an attempt to read several series together fails because they are not short, this many series are read one by one.
const SERIES_ALONE: usize = 16;
/// Approximate number of chunks in a slice of entries. The number is low, because an entry may have 1 MiB of text.
const SLICE_ENTRY_CHUNKS: usize = 8;
/// Approximate bytes of the entries that are formatted at a time. An entry is not split. Escapes may make the output six times
/// as long.
const PART_BYTES: usize = 1 << 18;

#[derive(Clone, Debug)]
pub struct Selected {
    pub kind: Kind,
    pub id: SeriesId,
    pub labels: Arc<Labels>,
}

/// Finds the series that at least one selector accepts, in the order of their labels. `only`: the kind of the series. Without
/// it, series of samples and of entries.
pub fn find(store: &View, selectors: &[Vec<Matcher>], only: Option<Kind>) -> Vec<Selected> {
    find_while(store, selectors, only, &|| true).unwrap_or_default()
}

/// The same as [`find`], but returns `None` as soon as `waits` returns false.
pub fn find_while(
    store: &View,
    selectors: &[Vec<Matcher>],
    only: Option<Kind>,
    waits: &dyn Fn() -> bool,
) -> Option<Vec<Selected>> {
    find_within(store, selectors, only, usize::MAX, waits).ok()
}

/// The same as [`find`], for at most `series_max` series of all selectors together.
///
/// # Errors
/// When the selectors accept more series, or as soon as `waits` returns false.
pub fn find_within(
    store: &View,
    selectors: &[Vec<Matcher>],
    only: Option<Kind>,
    series_max: usize,
    waits: &dyn Fn() -> bool,
) -> std::result::Result<Vec<Selected>, Unfound> {
    let mut found = Vec::new();
    let wanted = |kind: &Kind| only.is_none_or(|only| only == *kind);
    for kind in [Kind::Sample, Kind::Entry].into_iter().filter(wanted) {
        // Several selectors may accept a series. Its labels are kept once.
        let mut known = HashSet::new();
        for matchers in selectors {
            let series =
                store.find_within(kind, matchers, series_max - found.len().min(series_max), waits)?;
            let new = |(id, _): &(SeriesId, Arc<Labels>)| selectors.len() == 1 || known.insert(*id);
            found.extend(series.into_iter().filter(new).map(|(id, labels)| Selected { kind, id, labels }));
        }
    }
    found.sort_unstable_by(|a, b| (&a.labels, a.kind).cmp(&(&b.labels, b.kind)));
    Ok(found)
}

pub fn label_names(found: &[Selected]) -> BTreeSet<String> {
    let names: BTreeSet<&str> =
        found.iter().flat_map(|series| series.labels.iter().map(|(name, _)| name)).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Consecutive records of one series, in the order of time.
pub struct Slice {
    pub labels: Arc<Labels>,
    pub records: Records,
    pub bounds: Bounds,
}

pub enum Records {
    Samples(Vec<Sample>),
    Entries(Vec<Entry>),
}

impl Slice {
    /// Splits a slice of entries into slices of about [`PART_BYTES`] each, which need little memory for formatting. A slice of
    /// samples stays whole.
    pub fn parts(self) -> VecDeque<Self> {
        let Self { labels, records, bounds } = self;
        let part = |records| Self { labels: Arc::clone(&labels), records, bounds };
        let entries = match records {
            Records::Samples(_) => return VecDeque::from([part(records)]),
            Records::Entries(entries) => entries,
        };
        let mut parts = VecDeque::new();
        let (mut of_part, mut bytes) = (Vec::new(), 0);
        for entry in entries {
            bytes += entry.body.as_bytes().len();
            of_part.push(entry);
            if bytes >= PART_BYTES {
                parts.push_back(part(Records::Entries(std::mem::take(&mut of_part))));
                bytes = 0;
            }
        }
        if !of_part.is_empty() {
            parts.push_back(part(Records::Entries(of_part)));
        }
        parts
    }

    /// Formats the records as JSON lines. If `bounds` permits an error, each line has a member `within`, which importers ignore.
    pub fn lines(&self) -> String {
        let mut out = String::new();
        match &self.records {
            Records::Samples(samples) => json_lines::write_samples(&mut out, &self.labels, samples),
            Records::Entries(entries) => json_lines::write_entries(&mut out, &self.labels, entries),
        }
        if self.bounds.are_exact() {
            return out;
        }
        let within = serde_json::json!(self.bounds);
        let open = |line: &str| format!("{},\"within\":{within}}}\n", line.strip_suffix('}').unwrap_or(line));
        out.lines().map(open).collect()
    }
}

/// A series without its labels. A reader may keep millions of keys, so a key has only 17 bytes.
struct Key {
    id: [u8; 16],
    kind: Kind,
}

impl Key {
    const fn id(&self) -> SeriesId {
        SeriesId(u128::from_be_bytes(self.id))
    }
}

/// Bytes that a [`Reader`] keeps for this number of series.
pub const fn list_bytes(series: usize) -> usize {
    series * size_of::<Key>()
}

pub struct Reader {
    store: View,
    range: TimeRange,
    /// Kinds for which the reader has not yet checked whether damage may hide whole series.
    kinds: Vec<Kind>,
    todo: VecDeque<Key>,
    /// The unread ranges of the first series of `todo`. `None` before that series is begun.
    slices: Option<VecDeque<TimeRange>>,
    bounds: Bounds,
    /// Number of records that were read of the first series of `todo`.
    records: usize,
    together: Together,
    ready: VecDeque<Slice>,
    pub totals: Totals,
    /// The unreadable records so far. `None` if an unreadable record is an error.
    damages: Option<Damages>,
}

/// How many series of samples are read together. The number grows while the series are short.
pub(super) struct Together {
    series: usize,
    /// Number of series that are read alone before the next attempt to read several.
    alone: usize,
}

impl Default for Together {
    fn default() -> Self {
        Self { series: 1, alone: 0 }
    }
}

impl Together {
    pub(super) const fn series(&self) -> usize {
        if self.alone > 0 { 1 } else { self.series }
    }

    /// Adapts the numbers after a read of this many series, which had `records` records in total.
    pub(super) fn read(&mut self, series: usize, records: usize) {
        self.alone = self.alone.saturating_sub(1);
        let fitting = SLICE_RECORDS.saturating_mul(series) / records.max(1);
        self.series = fitting.clamp(1, SERIES_AT_ONCE.min(2 * series));
    }

    /// Adapts the numbers after an attempt to read several series together failed because they were not short.
    pub(super) const fn failed(&mut self) {
        *self = Self { series: 1, alone: SERIES_ALONE };
    }
}

impl Reader {
    /// A reader that fails at the first unreadable record.
    ///
    /// `only`: the kind of the series of `todo`, as passed to [`find`].
    pub fn new(store: View, todo: Vec<Selected>, only: Option<Kind>, range: TimeRange) -> Self {
        Self {
            store,
            range,
            kinds: only.map_or_else(|| vec![Kind::Sample, Kind::Entry], |only| vec![only]),
            // The labels of all series may take much memory, so the reader gets them again from the store, series by series.
            todo: todo.into_iter().map(|Selected { kind, id, .. }| Key { id: id.to_bytes(), kind }).collect(),
            slices: None,
            bounds: Bounds::default(),
            records: 0,
            together: Together::default(),
            ready: VecDeque::new(),
            totals: Totals::default(),
            damages: None,
        }
    }

    /// With `is_allowed`, skips unreadable records and collects them for [`Self::damages`].
    #[must_use]
    pub fn over_damage(mut self, is_allowed: bool) -> Self {
        self.damages = is_allowed.then(Damages::default);
        self
    }

    pub fn damages(&self) -> Damages {
        self.damages.clone().unwrap_or_default()
    }

    /// Collects the damages of a read, if they are allowed.
    ///
    /// # Errors
    /// `Corrupt` when records cannot be read, unless that is allowed.
    fn take<T>(&mut self, Read { records, damages }: Read<T>) -> Result<T> {
        match &mut self.damages {
            Some(all) => all.extend(damages),
            None => damages.check()?,
        }
        Ok(records)
    }

    /// `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Slice>> {
        if self.ready.is_empty() {
            self.ready = self.next_slices().await?;
        }
        Ok(self.ready.pop_front())
    }

    /// The next slices that have records: one slice, or all samples of several short series. Empty at the end.
    pub async fn next_slices(&mut self) -> Result<VecDeque<Slice>> {
        if !self.ready.is_empty() {
            return Ok(std::mem::take(&mut self.ready));
        }
        for kind in std::mem::take(&mut self.kinds) {
            let damages = self.store.lacks(kind);
            self.take(Read { records: (), damages })?;
        }
        while let Some(first) = self.todo.front() {
            let (id, kind) = (first.id(), first.kind);
            let slices = match self.short_series() {
                0 | 1 => match self.store.labels_of(id) {
                    Some(labels) => self.next_of(&Selected { kind, id, labels }).await?.into_iter().collect(),
                    None => {
                        self.leave();
                        continue;
                    }
                },
                series => self.read_together(series).await?,
            };
            if !slices.is_empty() {
                return Ok(slices);
            }
        }
        Ok(VecDeque::new())
    }

    /// Number of series at the front of `todo` that the next read may read together.
    fn short_series(&self) -> usize {
        let is_begun = self.slices.is_some();
        let samples = self.todo.iter().take_while(|series| series.kind == Kind::Sample);
        if is_begun { 1 } else { samples.take(self.together.series()).count() }
    }

    /// Reads all samples of this number of series at the front of `todo`. Returns nothing if the series are not short. Then
    /// [`Self::short_series`] returns 1 for some time, so that they are read one by one.
    async fn read_together(&mut self, series: usize) -> Result<VecDeque<Slice>> {
        let wanted: Vec<(SeriesId, TimeRange)> =
            self.todo.iter().take(series).map(|key| (key.id(), self.range)).collect();
        let Some(answer) = self.store.read_short_samples(&wanted, SLICE_RECORDS).await? else {
            self.together.failed();
            return Ok(VecDeque::new());
        };
        self.take(Read { records: (), damages: answer.damages })?;
        let (mut slices, mut records) = (VecDeque::new(), 0);
        let read = answer.series.into_iter().zip(answer.exactness);
        for (key, (pieces, exactness)) in self.todo.drain(..series).zip(read) {
            let id = key.id();
            let samples: Vec<Sample> = pieces.iter().flat_map(Piece::samples).collect();
            if samples.is_empty() {
                continue;
            }
            let Some(labels) = self.store.labels_of(id) else { continue };
            records += samples.len();
            samples.iter().for_each(|sample| self.totals.samples.sample(id, sample));
            let bounds = bounds(exactness);
            count_series(&mut self.totals, bounds);
            slices.push_back(Slice { labels, records: Records::Samples(samples), bounds });
        }
        self.together.read(series, records);
        Ok(slices)
    }

    /// The next slice of the first series of `todo`. `None` if the slice is empty, or at the end of the series.
    async fn next_of(&mut self, series: &Selected) -> Result<Option<Slice>> {
        let slices = match &mut self.slices {
            Some(slices) => slices,
            none => {
                let (slices, bounds) = slices(&self.store, series.kind, series.id, self.range).await?;
                self.bounds = bounds;
                none.insert(slices)
            }
        };
        if let Some(range) = slices.pop_front() {
            return self.read(series, range).await;
        }
        if self.records > 0 {
            count_series(&mut self.totals, self.bounds);
        }
        let records = std::mem::take(&mut self.records);
        if series.kind == Kind::Sample {
            self.together.read(1, records);
        }
        self.leave();
        Ok(None)
    }

    fn leave(&mut self) {
        (self.slices, self.records) = (None, 0);
        self.todo.pop_front();
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
        self.records += records.len();
        let bounds = self.bounds;
        Ok((!records.is_empty()).then_some(Slice { labels, records, bounds }))
    }
}

fn count_series(totals: &mut Totals, bounds: Bounds) {
    totals.series += 1;
    totals.lossy += u64::from(!bounds.are_exact());
    totals.bounds.widen(bounds);
}

fn bounds(Exactness { time_error_max, value_error_max, thinned }: Exactness) -> Bounds {
    Bounds { value: value_error_max, time_ns: time_error_max, thinned: thinned.map(Thinned::of) }
}

impl Records {
    pub fn len(&self) -> usize {
        match self {
            Self::Samples(samples) => samples.len(),
            Self::Entries(entries) => entries.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Splits the range at starts of chunks, so that each part has about [`SLICE_RECORDS`] records. A part of entries has at most
/// about [`SLICE_ENTRY_CHUNKS`] chunks. Also returns the error bounds of the chunks.
async fn slices(
    store: &View,
    kind: Kind,
    id: SeriesId,
    range: TimeRange,
) -> Result<(VecDeque<TimeRange>, Bounds)> {
    let mut bounds = Bounds::default();
    let mut chunks: Vec<(i64, usize)> = Vec::new();
    // Unreadable chunks are reported when their records are read.
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

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_ingest::rows::Rows;
    use tacho_ingest::time_text::TimeZone;
    use tacho_model::{Batch, EntrySeries, ManualClock, NAME, Sample, SampleSeries, Value};
    use tacho_store::{MemoryDriver, Options, Store};

    #[test]
    fn long_entries_are_formatted_in_parts() {
        let labels = Arc::new(Labels::new([(NAME, "a")]).unwrap());
        let texts = [1, PART_BYTES - 1, 1, 3 * PART_BYTES, 5].map(|bytes| "x".repeat(bytes));
        let entry =
            |(text, at): (&String, i64)| Entry { at, body: tacho_model::Body::Text(text.as_str().into()) };
        let entries: Vec<Entry> = texts.iter().zip(0..).map(entry).collect();
        let slice = |entries| Slice {
            labels: labels.clone(),
            records: Records::Entries(entries),
            bounds: Bounds::default(),
        };
        let counts: Vec<usize> = slice(entries.clone())
            .parts()
            .iter()
            .map(|part| match &part.records {
                Records::Entries(entries) => entries.len(),
                Records::Samples(_) => 0,
            })
            .collect();
        assert_eq!(counts, [2, 2, 1]);
        let text: String = slice(entries.clone()).parts().iter().map(Slice::lines).collect();
        let block = json_lines::JsonLines::new(TimeZone::UTC).decode(text.as_bytes(), 0);
        let back: Vec<Entry> = block.batch.entries.into_iter().flat_map(|series| series.entries).collect();
        assert!(back == entries && block.broken.is_empty());
    }

    #[test]
    fn inexact_records_are_marked_and_can_be_imported() {
        let labels = Arc::new(Labels::new([(NAME, "a")]).unwrap());
        let samples = vec![Sample { at: 0, value: Value::F64(1.0) }, Sample { at: 1, value: Value::I64(2) }];
        let bounds = Bounds { value: 0.5, time_ns: 7, thinned: None };
        let text = Slice { labels, records: Records::Samples(samples.clone()), bounds }.lines();
        assert_eq!(text.matches(r#","within":{"time_ns":7,"value":0.5}}"#).count(), 2, "{text}");
        let block = json_lines::JsonLines::new(TimeZone::UTC).decode(text.as_bytes(), 0);
        assert_eq!(block.broken, vec![]);
        let back: Vec<Sample> = block.batch.samples.into_iter().flat_map(|series| series.samples).collect();
        assert_eq!(back, samples);
    }

    fn series(nth: usize, samples: Vec<Sample>) -> SampleSeries {
        let labels = Labels::new([(NAME, "a"), ("nth", &format!("{nth:04}"))]).unwrap();
        SampleSeries { labels: Arc::new(labels), samples }
    }

    fn sample(at: i64) -> Sample {
        Sample { at, value: Value::I64(at) }
    }

    async fn store(place: &tempfile::TempDir) -> Arc<Store> {
        let clock = Arc::new(ManualClock::new(0));
        Store::open(Arc::new(MemoryDriver::new()), place.path(), Options::default(), clock).await.unwrap()
    }

    #[tokio::test]
    async fn short_series_are_read_together_and_others_alone() {
        let place = tempfile::tempdir().unwrap();
        let store = store(&place).await;
        let append = async |samples| store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
        // One sample each, but the series 50, 51, 120 and 150 have more samples than a slice.
        let count = |nth| if [50, 51, 120, 150].contains(&nth) { SLICE_RECORDS as i64 + 1 } else { 1 };
        append((0..200).map(|nth| series(nth, (0..count(nth)).map(sample).collect())).collect()).await;
        store.flush().await.unwrap();
        // Some series have many chunks of one sample each.
        for round in 1..=6 {
            let many = (60..70).chain(150..152);
            append(many.map(|nth| series(nth, vec![sample(1_000_000 + round)])).collect()).await;
            store.flush().await.unwrap();
        }
        // Some samples are only in memory.
        append((180..300).map(|nth| series(nth, vec![sample(2_000_000), sample(2_000_001)])).collect()).await;
        let text = Entry { at: 5, body: tacho_model::Body::Text("text".into()) };
        let entries = vec![EntrySeries { labels: series(7, vec![]).labels, entries: vec![text] }];
        store.append(Batch { entries, ..Batch::default() }, None).await.unwrap();

        let view = View::whole(store.clone());
        for range in [TimeRange::ALL, TimeRange::new(1_000_003, 2_000_000)] {
            let found = find(&view, &[vec![]], None);
            assert_eq!(found.len(), 301);
            let (mut expect, mut totals) = (Vec::new(), Totals::default());
            for Selected { id, labels, .. } in found.iter().filter(|series| series.kind == Kind::Sample) {
                let samples = store.samples(*id, range).await.unwrap();
                samples.iter().for_each(|sample| totals.samples.sample(*id, sample));
                totals.series += u64::from(!samples.is_empty());
                expect.extend(samples.into_iter().map(|sample| (labels.clone(), sample)));
            }
            let (mut got, mut entries) = (Vec::new(), 0);
            let mut reader = Reader::new(view.clone(), found, None, range);
            while let Some(Slice { labels, records, bounds }) = reader.next().await.unwrap() {
                assert!(bounds.are_exact());
                match records {
                    Records::Samples(samples) => {
                        got.extend(samples.into_iter().map(|sample| (labels.clone(), sample)));
                    }
                    Records::Entries(read) => entries += read.len() as u64,
                }
            }
            assert!(
                got == expect,
                "{} samples were read, and differ from the {} expected ones",
                got.len(),
                expect.len()
            );
            assert_eq!(entries, u64::from(range.contains(5)));
            totals.series += entries;
            totals.entries = reader.totals.entries;
            assert_eq!(reader.totals, totals);
        }
    }

    #[tokio::test]
    async fn the_number_of_short_series_that_are_read_together_doubles_up_to_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let store = store(&place).await;
        let samples = (0..1_000).map(|nth| series(nth, vec![sample(1)])).collect();
        store.append(Batch { samples, ..Batch::default() }, None).await.unwrap();
        store.flush().await.unwrap();
        let view = View::whole(store);
        let found = find(&view, &[vec![]], None);
        let mut reader = Reader::new(view, found, None, TimeRange::ALL);
        let mut reads = Vec::new();
        loop {
            match reader.next_slices().await.unwrap().len() {
                0 => break,
                series => reads.push(series),
            }
        }
        assert_eq!(reads, [1, 2, 4, 8, 16, 32, 64, 128, 128, 128, 128, 128, 128, 105]);
    }
}
