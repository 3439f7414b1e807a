//! Collects the values of all lines into one list per series.

use std::collections::HashMap;

use tacho_model::{Batch, Body, Entry, EntrySeries, Sample, SampleSeries, Timestamp, Value};

use super::series::{SeriesIndex, SeriesTable};
use super::text::{IN_STRINGS, unescape};

/// The values of a body so far, and the number of samples that each series had in its last body.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// The numbers and texts of the current line. The time of the line is not known yet.
    numbers: Vec<(SeriesIndex, Value)>,
    texts: Vec<(SeriesIndex, Body)>,
    samples: Vec<SampleSeries>,
    /// The series of each element of `samples`.
    order: Vec<SeriesIndex>,
    /// A line with series that are new in this body appends one run of elements to `samples`: one element for each new
    /// series. These are the lengths of the runs.
    runs: Vec<usize>,
    entries: Vec<EntrySeries>,
    entry_slots: HashMap<SeriesIndex, usize>,
    slots: Vec<Slot>,
    /// Number of the current body, from 1.
    body: u32,
    /// Number of samples for which capacity may still be reserved in advance.
    prealloc: usize,
}

/// The place at which the samples of a series are collected.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    /// The last body with samples of the series, and the position of the series in the list of that body.
    body: u32,
    position: u32,
    /// Number of samples of the series in the last finished body that has any. It predicts the number in the next such body.
    count: u32,
}

/// Memory of an entry in addition to its text, bytes. The list of entries exists twice while it grows.
const TEXT_BYTES: usize = 128;
/// If a line has fewer values than this, the memory of `numbers` and `texts` is negligible.
const VALUES_FEW: usize = 10_000;

/// Minimum bytes of a field with its comma. It limits the reserved capacity to the number of fields that a body can
/// contain.
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

    /// Memory of the line's values in `samples` and `entries`, bytes, without the bytes of the texts. If the line has many
    /// values, also their memory in `numbers` and `texts`.
    pub(super) fn line_bytes(&self) -> usize {
        let lists = 3 * size_of::<Sample>() * self.numbers.len() + TEXT_BYTES * self.texts.len();
        if self.numbers.len() + self.texts.len() < VALUES_FEW { lists } else { 2 * lists }
    }

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

    /// Adds the list of a series that has no samples in this body yet, and returns its position. Reserves space for as many
    /// samples as the series had in its last body with samples, as far as `prealloc` permits.
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
        // Reserves space for at least one sample, because a growing empty list takes space for four.
        let samples = Vec::with_capacity(count.max(1));
        self.samples.push(SampleSeries { labels: labels.clone(), samples });
        self.order.push(series);
        position
    }

    /// The series of samples in order of first appearance.
    pub(super) fn order(&self) -> impl Iterator<Item = SeriesIndex> {
        self.order.iter().copied()
    }

    /// Returns the series in order of first appearance, each with its values in order, and the lengths of the runs
    /// (`runs`).
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

    /// Memory kept from one body to the next, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.capacity() * size_of::<(SeriesIndex, Value)>()
            + self.texts.capacity() * size_of::<(SeriesIndex, Body)>()
            + self.order.capacity() * size_of::<SeriesIndex>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.entry_slots.capacity() * size_of::<(SeriesIndex, usize)>()
    }
}
