//! Open entries and executions become chunks: sorted, cut, and named. Samples are sealed by group (`group/seal.rs`).
//!
//! What comes out follows from the records and the generation alone: a seal that is repeated after a crash gives
//! the same keys and values, so that a flush may be repeated without storing anything twice.
//!
//! Path of one record: before, it lay in an open chunk (`generation.rs`); after, `flush.rs` puts it into the driver.

use std::ops::Range;

use bytes::Bytes;
use tacho_chunk::{Encoding, encode_entries, encode_executions};
use tacho_model::{Entry, Kind, SeriesId, TimeRange, Timestamp};

use crate::driver::{Row, Table};
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, Span, chunk_partition};
use crate::memtable::{OpenEntries, OpenExecutions};

/// Samples of a series, or entries, in one chunk, when nothing else is set.
pub const CHUNK_VALUES_MAX: usize = 8_192;
/// The most that may be set: a row of 64 such columns, 8 bytes a value, stays below the 64 MiB that a driver takes.
pub const CHUNK_VALUES_LIMIT: usize = 65_536;
/// Bodies of entries in one chunk, bytes: a read of one entry decodes no more than this beside it.
pub const CHUNK_BODIES_BYTES_MAX: usize = 1 << 20;

/// The chunks of one partition in one generation.
#[derive(Debug, Default)]
pub struct Sealed {
    pub rows: Vec<Row>,
    /// Samples, entries, or completed calls in them.
    pub records: u64,
    /// Samples that are not in them, for later ones have their times.
    pub replaced: u64,
}

/// Gives the chunks of one partition their numbers.
pub struct Sealer {
    kind: Kind,
    /// Of samples their group's, of others their series'.
    id: SeriesId,
    generation: u64,
    sealed: Sealed,
}

impl Sealer {
    pub const fn new(kind: Kind, id: SeriesId, generation: u64) -> Self {
        Self { kind, id, generation, sealed: Sealed { rows: Vec::new(), records: 0, replaced: 0 } }
    }

    pub fn finish(self) -> Sealed {
        self.sealed
    }

    pub fn entries(mut self, open: &OpenEntries) -> Sealed {
        let mut entries = open.read(TimeRange::ALL);
        entries.sort_by_key(|entry| entry.at);
        let at: Vec<Timestamp> = entries.iter().map(|entry| entry.at).collect();
        for cut in cuts(&at, CHUNK_VALUES_MAX, |i| entries[i].body.as_bytes().len()) {
            let chunk: &[Entry] = &entries[cut.clone()];
            self.put(Span::Short, at[cut.start], cut.len(), encode_entries(chunk, &Encoding::default()));
        }
        self.sealed
    }

    pub fn executions(mut self, open: &OpenExecutions) -> Sealed {
        for (bucket, block) in open.blocks() {
            self.put(bucket.span, block.range().start, block.calls(), encode_executions(block));
        }
        self.sealed
    }

    pub fn put(&mut self, span: Span, start: Timestamp, records: usize, bytes: Vec<u8>) {
        let number = u32::try_from(self.sealed.rows.len()).unwrap_or(u32::MAX);
        let key = ChunkKey { span, start, generation: self.generation, number };
        self.sealed.records += records as u64;
        self.sealed.rows.push(Row {
            table: Table::Chunks,
            partition: chunk_partition(self.kind, self.id),
            clustering: key.encode(),
            value: Bytes::from(bytes),
        });
    }
}

/// Where to cut sorted records: by number, by span, and by what `weight` says of each in bytes.
pub fn cuts(at: &[Timestamp], count_max: usize, weight: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for i in 0..at.len() {
        bytes += weight(i);
        let long = at[i].abs_diff(at[start]) > CHUNK_SPAN_MAX_NS;
        if i > start && (i - start >= count_max || long || bytes > CHUNK_BODIES_BYTES_MAX) {
            cuts.push(start..i);
            (start, bytes) = (i, weight(i));
        }
    }
    if start < at.len() {
        cuts.push(start..at.len());
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_the_limit_and_one_past_it() {
        let check = |at: &[i64], weight: usize, expect: &[(usize, usize)]| {
            let cuts: Vec<_> =
                cuts(at, CHUNK_VALUES_MAX, |_| weight).into_iter().map(|cut| (cut.start, cut.end)).collect();
            assert_eq!(cuts, expect);
        };
        let many: Vec<i64> = (0..8_193).collect();
        check(&[], 0, &[]);
        check(&many[..8_192], 0, &[(0, 8_192)]);
        check(&many, 0, &[(0, 8_192), (8_192, 8_193)]);
        let span = CHUNK_SPAN_MAX_NS.cast_signed();
        check(&[0, span], 0, &[(0, 2)]);
        check(&[0, span + 1], 0, &[(0, 1), (1, 2)]);
        check(&[i64::MIN, i64::MAX], 0, &[(0, 1), (1, 2)]);
        check(&[0, 1, 2], 1 << 19, &[(0, 2), (2, 3)]);
        check(&[0, 1], 1 << 21, &[(0, 1), (1, 2)]);
    }
}
