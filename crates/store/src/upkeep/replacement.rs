//! Builds the rows that a merge writes. Each of them states the range of rows that it replaces.
//!
//! The first new row starts where the first replaced row started, so that a reader in order of time finds it before any
//! replaced row. If the first records were dropped, an empty row is put at that start until the replaced rows are
//! deleted.

use bytes::Bytes;
use tacho_chunk::semantic::Movement;
use tacho_model::{Kind, SeriesId, TimeRange};

use super::facts::State;
use super::merge::{Made, Merged};
use super::sequence::Sequence;
use super::snapshots::Place;
use super::window::{Known, Partition};
use crate::driver::{Row, Table};
use crate::group::resent::Overhang;
use crate::group::row::Replacement;
use crate::keys::{ChunkKey, Span};
use crate::stats::Stored;

/// Rows that replace others atomically. (The prefix of one such row is [`Replacement`].)
#[derive(Clone, Debug)]
pub struct RowReplacement {
    pub kind: Kind,
    /// Times of the records of the replaced rows.
    pub times: TimeRange,
    pub new: Vec<Row>,
    pub replaced: Vec<Place>,
    /// New rows without a chunk. They are deleted after the replaced rows.
    pub empty: Vec<Place>,
    /// Counts of the replaced rows and of the new rows.
    pub before: Stored,
    pub after: Stored,
    /// Samples replaced by later samples with the same time.
    pub samples_replaced: u64,
    /// Number of replaced rows with only expired records.
    pub expired: u64,
    /// How often the values of each series changed and fell, in samples that were not counted before (`lives.rs`).
    pub moved: Vec<(SeriesId, Movement)>,
}

/// Assigns keys to new rows. One builder is used per window.
pub struct RowBuilder<'a> {
    partition: Partition,
    merge: u64,
    sequence: &'a Sequence,
    series: &'a [SeriesId],
}

impl<'a> RowBuilder<'a> {
    /// `seen` is the highest merge number in the window.
    pub fn new(partition: Partition, seen: u64, sequence: &'a Sequence, series: &'a [SeriesId]) -> Self {
        Self { partition, merge: sequence.merge(seen), sequence, series }
    }

    pub const fn kind(&self) -> Kind {
        self.partition.kind
    }

    pub fn build(&self, sources: &[Known], merged: Merged) -> RowReplacement {
        let keys = || sources.iter().map(|row| row.facts.key);
        let first = keys().map(|key| key.start).min().unwrap_or(0);
        let starts = TimeRange::new(first, keys().map(|key| key.start).max().unwrap_or(0));
        let through = keys().map(|key| key.generation).max().unwrap_or(0);
        let replacement = Replacement { merge: self.merge, starts, through };
        let mut before = Stored::default();
        sources.iter().for_each(|row| before += stored(row));
        let moved =
            |(member, moved): &(u16, Movement)| Some((*self.series.get(usize::from(*member))?, *moved));
        let mut built = RowReplacement {
            kind: self.partition.kind,
            times: TimeRange::new(first, sources.iter().map(|row| row.facts.end).max().unwrap_or(first)),
            new: Vec::new(),
            replaced: keys().map(|key| (self.partition.key(), key.encode())).collect(),
            empty: Vec::new(),
            before,
            after: Stored::default(),
            samples_replaced: merged.replaced,
            expired: sources.iter().filter(|row| row.facts.state == State::Expired).count() as u64,
            moved: merged.moved.iter().filter_map(moved).collect(),
        };
        if merged.rows.iter().all(|row| row.start > first) {
            let number = self.sequence.row();
            let key = ChunkKey { span: Span::Short, start: first, generation: through, number };
            built.empty.push((self.partition.key(), key.encode()));
            built.new.push(self.row(key, &replacement, Overhang::default(), &Bytes::new()));
        }
        for made in merged.rows {
            built.after += Stored { chunks: 1, bytes: made.chunk.len() as u64, records: made.records };
            let row = self.name(made, &replacement);
            built.new.push(row);
        }
        built
    }

    fn name(&self, made: Made, replacement: &Replacement) -> Row {
        let Made { span, start, overhang, generation, rest_of, chunk, .. } = made;
        let (number, replacement) = match rest_of {
            // The merge ended inside a source row. The new row has the later records of the source row, and its prefix names
            // only the start of the source row. This distinguishes it from a row that begins because a chunk was full.
            Some(key) => {
                let starts = TimeRange::new(key.start, key.start);
                // Entries with the same time are in the order of their row numbers, so a rest keeps the number of its
                // source row. The rest of a row of samples may be several rows, which need different numbers.
                let number = if self.kind() == Kind::Entry { key.number } else { self.sequence.row() };
                (number, Replacement { starts, ..*replacement })
            }
            None => (self.sequence.row(), *replacement),
        };
        self.row(ChunkKey { span, start, generation, number }, &replacement, overhang, &chunk)
    }

    fn row(&self, key: ChunkKey, replacement: &Replacement, overhang: Overhang, chunk: &Bytes) -> Row {
        Row {
            table: Table::Chunks,
            partition: self.partition.key(),
            clustering: key.encode(),
            value: replacement.encode(overhang, chunk),
        }
    }
}

/// The amount that a row adds to the statistics.
fn stored(row: &Known) -> Stored {
    Stored { chunks: 1, bytes: row.source.chunk.len() as u64, records: row.facts.values as u64 }
}

impl RowReplacement {
    pub fn places(&self) -> Vec<Place> {
        self.new.iter().map(|row| (row.partition.clone(), row.clustering.clone())).collect()
    }
}
