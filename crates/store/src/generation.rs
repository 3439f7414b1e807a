//! A generation: one journal file and its memtable.
//!
//! Path of one record. Before: `commit.rs` wrote it to the journal. Here: it can be read (`read/`). After: `commit.rs` seals the
//! generation, and `flush.rs` puts it into the driver.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tacho_model::{Kind, SeriesId, TimeRange};
use tokio::time::Instant;

use crate::arrival::Arrival;
use crate::journal::Lack;
use crate::memtable::{OpenEntries, OpenExecutions, OpenSeries};
use crate::mutation::Mutation;
use crate::scatter::CHUNK_BYTES;
use crate::spans::Spans;

/// Memory of one additional open series, bytes: its map entry and its vectors.
const SERIES_BYTES: usize = 160;
/// Memory of one remembered session, bytes.
const SESSION_BYTES: usize = 64;

/// A journal file, with the state that the flush of its generation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFile {
    pub path: PathBuf,
    /// Length of the part of the file with the records of the generation, bytes.
    pub length: u64,
    /// Whether a write failed and could not be undone. The file must then be cut to `length` before the generation is
    /// flushed.
    pub cut: bool,
    /// Damaged records that were skipped. If there are any, the file is kept for inspection.
    pub damaged: Option<Lack>,
}

#[derive(Debug)]
pub struct Generation {
    pub number: u64,
    /// Samples, by the number of the series in the index.
    pub samples: OpenSeries,
    pub entries: HashMap<SeriesId, OpenEntries>,
    pub executions: HashMap<SeriesId, OpenExecutions>,
    /// The last frame number of each session in this generation.
    pub sessions: HashMap<u128, u64>,
    /// Estimated memory of the generation, bytes.
    pub bytes: usize,
    /// Chunks that the generation needs because of its times, beyond one per series. This is an upper estimate.
    pub window_changes: usize,
    pub times: Spans,
    /// Start of the generation. Monotonic, so that a jump of the clock does not change when the
    /// generation is sealed.
    pub since: Instant,
    pub journal: JournalFile,
}

impl Generation {
    pub fn new(number: u64, journal: JournalFile) -> Self {
        Self {
            number,
            samples: OpenSeries::default(),
            entries: HashMap::new(),
            executions: HashMap::new(),
            sessions: HashMap::new(),
            bytes: 0,
            window_changes: 0,
            times: Spans::default(),
            since: Instant::now(),
            journal,
        }
    }

    /// Adds records that are on disk. `numbers` are the index numbers of the series of samples with labels, in the order of the
    /// batch. `times` are those of the samples (`changes::times`).
    pub fn apply(&mut self, arrival: &Arrival, numbers: &[u32], times: &[TimeRange]) {
        if let Some(origin) = arrival.origin
            && self.sessions.insert(origin.session, origin.seq).is_none()
        {
            self.bytes += SESSION_BYTES;
        }
        times.iter().for_each(|times| self.times.add(*times));
        let sample_changes = self.samples.window_changes();
        for (series, samples) in arrival.known().iter() {
            self.bytes += self.samples.push(series.number, samples);
        }
        for ((_, series), number) in arrival.samples().zip(numbers) {
            self.bytes += self.samples.push(*number, &series.samples);
        }
        let mut window_changes = self.samples.window_changes() - sample_changes;
        for (id, series) in arrival.entries() {
            grow(&mut self.entries, &mut self.bytes, id, OpenEntries::bytes, |open| {
                window_changes += series.entries.iter().filter(|entry| open.push((*entry).clone())).count();
            });
        }
        // Counts the window changes of samples and entries only. The blocks of executions count their own memory.
        self.bytes += window_changes * CHUNK_BYTES;
        for (id, series) in arrival.executions() {
            grow(&mut self.executions, &mut self.bytes, id, OpenExecutions::bytes, |open| {
                let before = open.growing();
                series.segments.iter().for_each(|segment| open.push(segment, &series.operations));
                window_changes += open.growing().saturating_sub(before.max(1));
            });
        }
        self.window_changes += window_changes;
    }

    /// Every series with entries or executions in this generation, in a fixed order.
    pub fn series(&self) -> Vec<(Kind, SeriesId)> {
        let entries = self.entries.keys().map(|id| (Kind::Entry, *id));
        let executions = self.executions.keys().map(|id| (Kind::Execution, *id));
        let mut series: Vec<(Kind, SeriesId)> = entries.chain(executions).collect();
        series.sort_unstable();
        series
    }

    /// Whether the generation has records of this kind of the series. `number` is the position of the series in the
    /// index.
    pub fn holds(&self, kind: Kind, id: SeriesId, number: u32) -> bool {
        match kind {
            Kind::Sample => self.samples.get(number).is_some(),
            Kind::Entry => self.entries.contains_key(&id),
            Kind::Execution => self.executions.contains_key(&id),
        }
    }
}

/// Changes the open records of a series and updates the memory total.
fn grow<T: Default>(
    open: &mut HashMap<SeriesId, T>,
    total: &mut usize,
    id: SeriesId,
    bytes: impl Fn(&T) -> usize,
    change: impl FnOnce(&mut T),
) {
    let series = open.entry(id).or_insert_with(|| {
        *total += SERIES_BYTES;
        T::default()
    });
    let before = bytes(series);
    change(series);
    *total = (*total + bytes(series)).saturating_sub(before);
}

/// The generations in memory: at most one active generation, and the sealed ones that wait for their flush.
#[derive(Debug)]
pub struct Generations {
    pub active: Option<Generation>,
    /// Sealed generations, oldest first. They are flushed in this order.
    pub sealed: std::collections::VecDeque<Arc<Generation>>,
    pub next: u64,
}

impl Generations {
    /// The oldest generation in memory. Records of this and later generations are read from memory, records of
    /// earlier generations from the driver.
    pub fn oldest(&self) -> u64 {
        let active = self.active.as_ref().map(|active| active.number);
        self.sealed.front().map(|sealed| sealed.number).or(active).unwrap_or(self.next)
    }

    pub fn holds(&self, kind: Kind, id: SeriesId, number: u32) -> bool {
        let sealed = self.sealed.iter().map(|sealed| &**sealed);
        sealed.chain(&self.active).any(|generation| generation.holds(kind, id, number))
    }

    /// Bytes of the journals of these generations.
    pub fn journal_bytes(&self) -> u64 {
        let sealed = self.sealed.iter().map(|generation| generation.journal.length);
        sealed.chain(self.active.iter().map(|active| active.journal.length)).sum()
    }

    /// Whether a stop may leave all records in their journals. The journals must have at most `bytes_max` together, and none
    /// of them may need a cut.
    pub fn may_stay(&self, bytes_max: u64) -> bool {
        let sealed = self.sealed.iter().map(|sealed| &**sealed);
        let is_cut = |generation: &Generation| generation.journal.cut && !Mutation::StopKeepsRefused.is_on();
        self.journal_bytes() <= bytes_max && !sealed.chain(&self.active).any(is_cut)
    }

    /// The last generation that waits for its flush; 0 if there is none.
    pub fn sealed_through(&self) -> u64 {
        self.sealed.back().map_or(0, |sealed| sealed.number)
    }
}
