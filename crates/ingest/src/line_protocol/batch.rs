//! Values in the order of the lines become series with all their values.

use std::collections::HashMap;

use tacho_model::{Batch, Body, Entry, EntrySeries, Sample, SampleSeries, Timestamp, Value};

use super::series::{IN_STRINGS, SeriesIndex, SeriesTable};
use super::text::unescape;

/// The values of a body so far, and how many each series had in the last one.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// The numbers and texts of a line; they have no time yet.
    numbers: Vec<(SeriesIndex, Value)>,
    texts: Vec<(SeriesIndex, Body)>,
    samples: Vec<SampleSeries>,
    /// The series of `samples`.
    order: Vec<SeriesIndex>,
    /// How many of `samples` began with each line that began some.
    runs: Vec<usize>,
    entries: Vec<EntrySeries>,
    entry_slots: HashMap<SeriesIndex, usize>,
    slots: Vec<Slot>,
    /// Number of the body.
    body: u32,
    /// Samples that lists may still be made for beforehand.
    prealloc: usize,
}

/// Where a series' samples are gathered.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The last body that had some, and the position in its list.
    body: u32,
    position: u32,
    /// How many there were then: probably as many as now.
    count: u32,
}

/// Memory of an entry beside its text, while its list grows and is there twice, bytes.
const TEXT_BYTES: usize = 128;
/// Values of one line that take no memory to speak of before it is kept.
const VALUES_FEW: usize = 10_000;

/// A field with its comma has four bytes at least: what a body cannot hold, no list is made for.
const FIELD_BYTES_MIN: usize = 4;

impl Gathering {
    pub(super) fn begin_body(&mut self, bytes: usize) {
        self.body = self.body.wrapping_add(1).max(1);
        self.prealloc = bytes / FIELD_BYTES_MIN;
    }

    #[inline]
    pub(super) fn add_number(&mut self, series: SeriesIndex, value: Value) {
        self.numbers.push((series, value));
    }

    pub(super) fn add_text(&mut self, series: SeriesIndex, raw: &str) {
        self.texts.push((series, Body::Text(unescape(raw, IN_STRINGS).into())));
    }

    /// Memory that the values of the line take, bytes: in the lists that they go to, and here where a line has many.
    pub(super) fn line_bytes(&self) -> usize {
        let lists = 3 * size_of::<Sample>() * self.numbers.len() + TEXT_BYTES * self.texts.len();
        if self.numbers.len() + self.texts.len() < VALUES_FEW { lists } else { 2 * lists }
    }

    /// The line is not good: nothing of it is kept.
    pub(super) fn drop_line(&mut self) {
        self.numbers.clear();
        self.texts.clear();
    }

    pub(super) fn keep_line(&mut self, table: &SeriesTable, at: Timestamp) {
        let before = self.samples.len();
        for nth in 0..self.numbers.len() {
            let Some((series, value)) = self.numbers.get(nth).copied() else { break };
            let slot = self.slots.get(series as usize).filter(|slot| slot.body == self.body);
            let position = match slot {
                Some(slot) => slot.position,
                None => self.begin_list(table, series),
            };
            if let Some(list) = self.samples.get_mut(position as usize) {
                list.samples.push(Sample { at, value });
            }
        }
        self.numbers.clear();
        if self.samples.len() > before {
            self.runs.push(self.samples.len() - before);
        }
        for (series, body) in self.texts.drain(..) {
            let Some(labels) = table.labels(series) else { continue };
            let slot = *self.entry_slots.entry(series).or_insert_with(|| {
                self.entries.push(EntrySeries { labels: labels.clone(), entries: Vec::with_capacity(1) });
                self.entries.len() - 1
            });
            if let Some(list) = self.entries.get_mut(slot) {
                list.entries.push(Entry { at, body });
            }
        }
    }

    /// The first sample of a series in this body. Its list is made as long as it became the last time.
    #[cold]
    fn begin_list(&mut self, table: &SeriesTable, series: SeriesIndex) -> u32 {
        let position = u32::try_from(self.samples.len()).unwrap_or(u32::MAX);
        if self.slots.len() < table.series_count() {
            self.slots.resize(table.series_count(), Slot::default());
        }
        let Some(labels) = table.labels(series) else { return u32::MAX };
        let Some(slot) = self.slots.get_mut(series as usize) else { return u32::MAX };
        let count = (slot.count as usize).min(self.prealloc);
        self.prealloc -= count;
        (slot.body, slot.position) = (self.body, position);
        // One at least: a list that grows has room for four at once.
        let samples = Vec::with_capacity(count.max(1));
        self.samples.push(SampleSeries { labels: labels.clone(), samples });
        self.order.push(series);
        position
    }

    /// Series in the order in which they came first, each with its values in theirs, and the runs of those that one line began.
    pub(super) fn take_batch(&mut self) -> (Batch, Vec<usize>) {
        for (series, list) in self.order.drain(..).zip(&self.samples) {
            if let Some(slot) = self.slots.get_mut(series as usize) {
                slot.count = u32::try_from(list.samples.len()).unwrap_or(u32::MAX);
            }
        }
        self.entry_slots.clear();
        let (samples, entries) = (std::mem::take(&mut self.samples), std::mem::take(&mut self.entries));
        (Batch { samples, entries, executions: Vec::new() }, std::mem::take(&mut self.runs))
    }

    /// Memory that is kept from one body to the next, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<(SeriesIndex, Value)>()
            + self.texts.capacity() * size_of::<(SeriesIndex, Body)>()
            + self.order.capacity() * size_of::<SeriesIndex>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.entry_slots.capacity() * size_of::<(SeriesIndex, usize)>()
    }
}
