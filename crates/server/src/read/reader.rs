//! Reads all records of some series, slice by slice. At most one slice is in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tacho_api::export::{Bounds, Thinned, Totals};
use tacho_api::tally::Tally;
use tacho_ingest::json_lines;
use tacho_model::{Entry, Kind, Labels, Matcher, Sample, SeriesId, TimeRange};
use tacho_store::{Damages, Read, Result};

use crate::access::View;

/// Approximate number of records of a slice. Chunks are not split.
const SLICE_RECORDS: usize = 32_768;
/// Approximate number of chunks in a slice of entries. It is low, because even a few entries may have 1 MiB of text each.
const SLICE_ENTRY_CHUNKS: usize = 8;
/// Approximate bytes of the entries that are formatted at a time. An entry is not split. Escapes may make the output six times
/// as long.
const PART_BYTES: usize = 1 << 18;

/// A series and the kind of its records.
#[derive(Clone, Debug)]
pub struct Selected {
    pub kind: Kind,
    pub id: SeriesId,
    pub labels: Arc<Labels>,
}

/// Finds the series that at least one selector accepts, in the order of their labels. `only`: the kind of the series; without
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

/// The names of all labels of these series.
pub fn label_names(found: &[Selected]) -> BTreeSet<String> {
    found.iter().flat_map(|series| series.labels.iter().map(|(name, _)| name.to_owned())).collect()
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
    /// Splits a slice of entries into slices of a few entries each, so that little memory is needed to format each.
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

    /// Formats the records as JSON lines. Records that are not exact have a member `within`, which importers ignore.
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

/// Reads one series after the other.
pub struct Reader {
    store: View,
    range: TimeRange,
    /// Kinds for which the reader has not yet checked whether unreadable series may be missing.
    kinds: Vec<Kind>,
    todo: VecDeque<Selected>,
    /// The unread ranges of the first series of `todo`. `None` before that series is begun.
    slices: Option<VecDeque<TimeRange>>,
    /// Error bounds of the first series of `todo`.
    bounds: Bounds,
    any: bool,
    pub totals: Totals,
    /// The unreadable records so far. `None` if unreadable records are not allowed and cause an error.
    damages: Option<Damages>,
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
            todo: todo.into(),
            slices: None,
            bounds: Bounds::default(),
            any: false,
            totals: Totals::default(),
            damages: None,
        }
    }

    /// If allowed, skips unreadable records and reports them at the end.
    #[must_use]
    pub fn over_damage(mut self, is_allowed: bool) -> Self {
        self.damages = is_allowed.then(Damages::default);
        self
    }

    /// Unreadable records so far.
    pub fn damages(&self) -> Damages {
        self.damages.clone().unwrap_or_default()
    }

    /// Takes the records of a read. Collects its damages if unreadable records are allowed.
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

    /// The next slice that has records. `None` at the end.
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

/// Count and checksum of the records of one series in the store.
/// A series that may not be read counts as one without records.
pub async fn tally(store: &View, series: Selected, range: TimeRange) -> Result<Tally> {
    let kind = series.kind;
    if !store.admits(&series.labels) {
        return Ok(Tally::default());
    }
    let mut reader = Reader::new(store.clone(), vec![series], Some(kind), range);
    while reader.next().await?.is_some() {}
    Ok(if kind == Kind::Entry { reader.totals.entries } else { reader.totals.samples })
}

/// Splits the range at starts of chunks, so that each part has about [`SLICE_RECORDS`] records. Also returns the error bounds of
/// the chunks.
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
    use tacho_model::{NAME, Sample, Value};

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
}
