//! Values in the order of the lines become series with all their values.

use std::collections::HashMap;

use tacho_model::{Batch, Body, Entry, EntrySeries, Sample, SampleSeries, Timestamp, Value};

use super::series::{IN_STRINGS, SeriesIndex, SeriesTable};
use super::text::unescape;

/// The values of a body so far.
#[derive(Debug, Default)]
pub(super) struct Kept {
    samples: Vec<(SeriesIndex, Sample)>,
    entries: Vec<(SeriesIndex, Entry)>,
    /// Position in the batch of each series' samples, [`NOWHERE`] for those that have none.
    slots: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

/// How many samples and entries there were.
pub(super) type Mark = (usize, usize);

impl Kept {
    pub(super) const fn len(&self) -> Mark {
        (self.samples.len(), self.entries.len())
    }

    #[inline]
    pub(super) fn add_number(&mut self, series: SeriesIndex, value: Value) {
        self.samples.push((series, Sample { at: 0, value }));
    }

    pub(super) fn add_text(&mut self, series: SeriesIndex, raw: &str) {
        let body = Body::Text(unescape(raw, IN_STRINGS).into());
        self.entries.push((series, Entry { at: 0, body }));
    }

    /// Of all that came since.
    pub(super) fn set_time(&mut self, (samples, entries): Mark, at: Timestamp) {
        self.samples.iter_mut().skip(samples).for_each(|(_, sample)| sample.at = at);
        self.entries.iter_mut().skip(entries).for_each(|(_, entry)| entry.at = at);
    }

    pub(super) fn truncate(&mut self, (samples, entries): Mark) {
        self.samples.truncate(samples);
        self.entries.truncate(entries);
    }

    /// Series in the order in which they came first, each with its values in theirs. Counted first, so that each list
    /// is allocated once.
    pub(super) fn take_batch(&mut self, table: &SeriesTable) -> Batch {
        let mut counts: Vec<(SeriesIndex, usize)> = Vec::new();
        self.slots.clear();
        self.slots.resize(table.series_count(), NOWHERE);
        for (series, _) in &self.samples {
            let Some(slot) = self.slots.get_mut(*series as usize) else { continue };
            if let Some((_, count)) = counts.get_mut(*slot as usize) {
                *count += 1;
            } else {
                *slot = u32::try_from(counts.len()).unwrap_or(NOWHERE);
                counts.push((*series, 1));
            }
        }
        let lists = counts.into_iter().filter_map(|(series, count)| {
            Some(SampleSeries { labels: table.labels(series)?.clone(), samples: Vec::with_capacity(count) })
        });
        let mut samples: Vec<SampleSeries> = lists.collect();
        for (series, sample) in self.samples.drain(..) {
            let slot = self.slots.get(series as usize).copied().unwrap_or(NOWHERE);
            if let Some(list) = samples.get_mut(slot as usize) {
                list.samples.push(sample);
            }
        }
        Batch { samples, entries: self.take_entries(table), executions: Vec::new() }
    }

    fn take_entries(&mut self, table: &SeriesTable) -> Vec<EntrySeries> {
        let mut lists: Vec<EntrySeries> = Vec::new();
        let mut slots: HashMap<SeriesIndex, usize> = HashMap::new();
        for (series, entry) in self.entries.drain(..) {
            let Some(labels) = table.labels(series) else { continue };
            let slot = *slots.entry(series).or_insert_with(|| {
                lists.push(EntrySeries { labels: labels.clone(), entries: Vec::new() });
                lists.len() - 1
            });
            if let Some(list) = lists.get_mut(slot) {
                list.entries.push(entry);
            }
        }
        lists
    }
}
