//! Checks a batch: limits on records and on new series. Also estimates its memory.
//!
//! Path of one record. Before: `store/append.rs` receives the [`Batch`]. Here: the task of the caller checks the batch, for
//! `intake.rs` and `store/submit.rs`. After: `commit.rs` writes it to the journal and adds it to the memtable.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

use tacho_model::limits::{ATTRIBUTE_BYTES_MAX, ENTRY_BYTES_MAX, OPERATION_BYTES_MAX};
use tacho_model::{
    AttributeValue, Batch, Entry, EntrySeries, ExecutionSeries, Kind, KnownSamples, KnownSeries, Labels,
    Sample, SampleSeries, Segment, SegmentError, SeriesId,
};

use crate::index::{Admission, Bounds, Index};
use crate::kinds::of_kind_mut;
use crate::{Error, Result};

/// Identifies a batch of a sender. Each frame number is accepted once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Random number that the sender draws when its process starts.
    pub session: u128,
    /// Number of the first frame in the batch. Journals of versions 1 and 2 do not state this number; it is then 0.
    pub first: u64,
    /// Number of the last frame. Frame numbers rise from 1; gaps are allowed.
    pub seq: u64,
}

impl Origin {
    pub const fn one(session: u128, seq: u64) -> Self {
        Self { session, first: seq, seq }
    }

    /// Whether the two batches have a frame in common.
    pub const fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.seq && other.first <= self.seq
    }

    /// Whether this batch has all frames of the other.
    pub const fn contains(&self, other: &Self) -> bool {
        self.first <= other.first && other.seq <= self.seq
    }
}

/// Result of an append. All accepted records are on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Appended {
    Stored,
    /// A limit refused some records of these series. All other records were stored.
    Partly(Refused),
    /// A batch of this origin was stored before. Nothing was added.
    Repeated,
}

/// Series that a limit refused. Most limits refuse only new series. The limit on the labels of one batch also refuses existing
/// series, and the limit on chunks refuses records far from the present time. All other records of the batch are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    pub series: usize,
    /// Refused records by kind: samples, entries, completed calls.
    pub records: [usize; 3],
    /// Each refused series with labels, with the number of its refused records.
    pub of_series: Vec<(Kind, Arc<Labels>, usize)>,
    /// Refused samples of known series, by the note that the caller of `Store::learn` gave to their series. No labels are made
    /// for these series.
    pub of_notes: BTreeMap<u16, usize>,
    /// The first [`REFUSED_NAMED_MAX`] refused series.
    pub named: Vec<RefusedSeries>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedSeries {
    pub kind: Kind,
    /// Index of the series in the batch's list of its kind, or in the known series.
    pub position: usize,
    /// The reason, including the labels of the series.
    pub reason: String,
}

/// Limit on the refused series of a batch that are listed with a reason.
pub const REFUSED_NAMED_MAX: usize = 16;

impl Refused {
    pub(crate) fn extend(&mut self, other: Self) {
        self.series += other.series;
        self.records.iter_mut().zip(other.records).for_each(|(sum, more)| *sum += more);
        self.of_series.extend(other.of_series);
        for (note, records) in other.of_notes {
            *self.of_notes.entry(note).or_default() += records;
        }
        self.named.extend(other.named);
        self.named.truncate(REFUSED_NAMED_MAX);
    }

    pub(crate) fn add(
        &mut self,
        kind: Kind,
        position: usize,
        (labels, records): (&Arc<Labels>, usize),
        why: &dyn Display,
    ) {
        self.series += 1;
        *of_kind_mut(&mut self.records, kind) += records;
        self.of_series.push((kind, Arc::clone(labels), records));
        self.name(kind, position, || labels.clone(), why);
    }

    /// Like [`Self::add`]. `labels` makes the labels of a series.
    pub(crate) fn add_known(
        &mut self,
        series: KnownSeries,
        position: usize,
        records: usize,
        (labels, why): (&dyn Fn(u32) -> Arc<Labels>, &dyn Display),
    ) {
        self.series += 1;
        *of_kind_mut(&mut self.records, Kind::Sample) += records;
        *self.of_notes.entry(series.note).or_default() += records;
        self.name(Kind::Sample, position, || labels(series.number), why);
    }

    fn name(&mut self, kind: Kind, position: usize, labels: impl FnOnce() -> Arc<Labels>, why: &dyn Display) {
        if self.named.len() < REFUSED_NAMED_MAX {
            let shown = shortened(labels().to_string());
            self.named.push(RefusedSeries { kind, position, reason: format!("series {shown}: {why}") });
        }
    }
}

/// Limit on the characters of a series' labels in a message; bounds the length of the response.
const SHOWN_CHARS_MAX: usize = 500;

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(SHOWN_CHARS_MAX) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Removes from a batch the series that a limit refuses, and all series without records. The journal record of the batch may also
/// have to define known series, with labels of `known_bytes` bytes.
pub fn admit(batch: Arc<Batch>, index: &Index, bounds: Bounds, known_bytes: usize) -> (Arc<Batch>, Refused) {
    let mut refused = Refused::default();
    let mut out = HashSet::new();
    let samples = batch.samples.iter().map(|s| &s.labels).enumerate();
    let entries = batch.entries.iter().map(|s| &s.labels).enumerate();
    let executions = batch.executions.iter().map(|s| &s.labels).enumerate();
    let all = samples.map(|s| (Kind::Sample, s)).chain(entries.map(|s| (Kind::Entry, s)));
    let mut admission = Admission::new(index, bounds, known_bytes);
    let mut has_empty = false;
    for (kind, (position, labels)) in all.chain(executions.map(|s| (Kind::Execution, s))) {
        if is_empty(&batch, kind, position) {
            has_empty = true;
        } else if let Err(why) = admission.admit(labels) {
            refused.add(kind, position, (labels, records(&batch, kind, position)), &why);
            out.insert(labels.id());
        }
    }
    if out.is_empty() && !has_empty {
        return (batch, refused);
    }
    let mut kept = Arc::unwrap_or_clone(batch);
    kept.samples.retain(|s| !s.samples.is_empty() && !out.contains(&s.labels.id()));
    kept.entries.retain(|s| !s.entries.is_empty() && !out.contains(&s.labels.id()));
    kept.executions.retain(|s| !s.segments.is_empty() && !out.contains(&s.labels.id()));
    (Arc::new(kept), refused)
}

fn is_empty(batch: &Batch, kind: Kind, position: usize) -> bool {
    match kind {
        Kind::Sample => batch.samples.get(position).is_none_or(|s| s.samples.is_empty()),
        Kind::Entry => batch.entries.get(position).is_none_or(|s| s.entries.is_empty()),
        Kind::Execution => batch.executions.get(position).is_none_or(|s| s.segments.is_empty()),
    }
}

/// Number of records of one series of a batch. Called only for refused series, because a count of completed calls
/// reads all events.
fn records(batch: &Batch, kind: Kind, position: usize) -> usize {
    match kind {
        Kind::Sample => batch.samples.get(position).map_or(0, |s| s.samples.len()),
        Kind::Entry => batch.entries.get(position).map_or(0, |s| s.entries.len()),
        Kind::Execution => {
            let segments = batch.executions.get(position).into_iter().flat_map(|s| &s.segments);
            segments.map(Segment::calls_completed).sum()
        }
    }
}

/// A batch that passed all checks. The caller of `Store::append` may also keep the batch, to append it
/// again after an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrival {
    pub origin: Option<Origin>,
    batch: Arc<Batch>,
    known: Arc<KnownSamples>,
}

impl Arrival {
    /// Checks the limits that the later steps rely on.
    ///
    /// # Errors
    /// `Invalid` when a record breaks a limit.
    pub fn check(batch: Arc<Batch>, known: Arc<KnownSamples>, origin: Option<Origin>) -> Result<Self> {
        batch.entries.iter().try_for_each(check_entries)?;
        batch.executions.iter().try_for_each(check_executions)?;
        Ok(Self { origin, batch, known })
    }

    /// Wraps a batch that [`Arrival::check`] or the journal's decoder has already checked.
    pub fn new(batch: Arc<Batch>, origin: Option<Origin>) -> Self {
        Self { origin, batch, known: Arc::default() }
    }

    /// Like [`Self::new`], with samples of known series.
    pub fn with_known(batch: Batch, known: KnownSamples, origin: Option<Origin>) -> Self {
        Self { origin, batch: Arc::new(batch), known: Arc::new(known) }
    }

    /// The records with labels and those of known series, for a new division into batches.
    pub fn into_parts(self) -> (Arc<Batch>, Arc<KnownSamples>) {
        (self.batch, self.known)
    }

    /// Samples of known series. They arrived before those of [`Self::samples`], if a series has both.
    pub fn known(&self) -> &KnownSamples {
        &self.known
    }

    /// All samples. The samples of one series are in order of arrival.
    pub fn all_samples(&self) -> impl Iterator<Item = &Sample> {
        self.known.samples().iter().chain(self.samples().flat_map(|(_, series)| &series.samples))
    }

    pub fn samples(&self) -> impl Iterator<Item = (SeriesId, &SampleSeries)> {
        self.batch.samples.iter().filter(|s| !s.samples.is_empty()).map(|s| (s.labels.id(), s))
    }

    /// Number of series of all kinds, including series without records.
    pub fn series_count(&self) -> usize {
        let Batch { samples, entries, executions, .. } = &*self.batch;
        self.known.runs() + samples.len() + entries.len() + executions.len()
    }

    pub fn entries(&self) -> impl Iterator<Item = (SeriesId, &EntrySeries)> {
        self.batch.entries.iter().filter(|s| !s.entries.is_empty()).map(|s| (s.labels.id(), s))
    }

    pub fn executions(&self) -> impl Iterator<Item = (SeriesId, &ExecutionSeries)> {
        self.batch.executions.iter().filter(|s| !s.segments.is_empty()).map(|s| (s.labels.id(), s))
    }

    /// All series that arrived with labels and with records, in the order of their kinds.
    pub fn series(&self) -> impl Iterator<Item = (Kind, SeriesId, &Arc<Labels>)> {
        let samples = self.samples().map(|(id, s)| (Kind::Sample, id, &s.labels));
        let entries = self.entries().map(|(id, s)| (Kind::Entry, id, &s.labels));
        let executions = self.executions().map(|(id, s)| (Kind::Execution, id, &s.labels));
        samples.chain(entries).chain(executions)
    }

    /// Records by kind: samples, entries, completed calls.
    pub fn counts(&self) -> [usize; 3] {
        let [samples, entries, executions] = self.batch.counts();
        [samples + self.known.samples().len(), entries, executions]
    }
}

/// Estimated memory of a series of samples without its samples, bytes.
pub const SERIES_BYTES: usize = 64;
/// Estimated memory of one sample, bytes.
pub const SAMPLE_BYTES: usize = 16;

pub fn entry_bytes(entry: &Entry) -> usize {
    64 + entry.body.as_bytes().len()
}

/// Estimated memory of the segments of a series, bytes.
pub fn execution_bytes(series: &ExecutionSeries) -> usize {
    let of_segment = |s: &Segment| 200 + 16 * (s.events.len() + s.carried.len()) + 64 * s.attributes.len();
    series.segments.iter().map(of_segment).sum()
}

fn check_entries(series: &EntrySeries) -> Result<()> {
    match series.entries.iter().map(|e| e.body.as_bytes().len()).find(|bytes| *bytes > ENTRY_BYTES_MAX) {
        None => Ok(()),
        Some(bytes) => Err(Error::invalid(format!("entry of {bytes} bytes is over {ENTRY_BYTES_MAX}"))
            .with("series", &series.labels)),
    }
}

fn check_executions(series: &ExecutionSeries) -> Result<()> {
    let place = |error: Error| error.with("series", &series.labels);
    if let Some(long) = series.operations.iter().find(|o| o.name.len() > OPERATION_BYTES_MAX) {
        let bytes = long.name.len();
        let message = format!("operation name of {bytes} bytes is over {OPERATION_BYTES_MAX}");
        return Err(place(Error::invalid(message)));
    }
    for segment in &series.segments {
        let refused = |error: SegmentError| {
            place(Error::invalid("segment is refused").with("trace", segment.trace)).caused_by(error)
        };
        segment.check(series.operations.len()).map_err(refused)?;
        let long = segment.attributes.iter().find_map(|a| match &a.value {
            AttributeValue::Text(text) if text.len() > ATTRIBUTE_BYTES_MAX => Some((a, text.len())),
            _ => None,
        });
        if let Some((attribute, bytes)) = long {
            let message = format!("attribute value of {bytes} bytes is over {ATTRIBUTE_BYTES_MAX}");
            return Err(place(Error::invalid(message)).with("attribute", &attribute.key));
        }
    }
    Ok(())
}
