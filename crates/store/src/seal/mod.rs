//! Encodes the records of a sealed generation as chunks: sorts and cuts them, and gives the chunks their keys.
//!
//! ```text
//!   samples.rs  samples of a group
//!   series.rs   entries or executions of a series
//! ```
//! The result depends only on the records, their generation, the groups, and the limits of a chunk. A seal that is repeated
//! after a crash gives the same keys and values, so a repeated flush stores no record twice.
//!
//! Path of one record. Before: it was in memory, not encoded (`memtable/`). After: `flush.rs` puts its chunk into the driver.

pub mod samples;
pub mod series;

use std::ops::Range;

use bytes::Bytes;
use tacho_model::{Kind, SeriesId, Timestamp};

use crate::driver::{Row, Table};
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, Span, chunk_partition};

/// Limit on the entries of a chunk, and default limit on the samples of each series of a chunk.
pub const CHUNK_VALUES_MAX: usize = 8_192;
/// Largest permitted limit on the samples of each series of a chunk. A row of 64 such columns, with 8 bytes per value, stays
/// below the 64 MiB limit of drivers.
pub const CHUNK_VALUES_LIMIT: usize = 65_536;
/// Limit on the bodies of entries per chunk, bytes. A read of one entry decodes at most this much.
pub const CHUNK_BODIES_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
pub struct Sealed {
    pub rows: Vec<Row>,
    /// Number of samples, entries, or completed calls in the chunks.
    pub records: u64,
    /// Number of samples that are not in the chunks because samples that arrived later have the same times.
    pub replaced: u64,
}

/// Collects the chunks of one partition and numbers them.
struct Sealer {
    kind: Kind,
    /// Id of the group for samples, id of the series for other kinds.
    id: SeriesId,
    generation: u64,
    sealed: Sealed,
}

impl Sealer {
    const fn new(kind: Kind, id: SeriesId, generation: u64) -> Self {
        Self { kind, id, generation, sealed: Sealed { rows: Vec::new(), records: 0, replaced: 0 } }
    }

    fn finish(self) -> Sealed {
        self.sealed
    }

    fn put(&mut self, span: Span, start: Timestamp, records: usize, bytes: Vec<u8>) {
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

/// Cuts sorted records by number, by span, and by `weight` in bytes.
fn cuts(at: &[Timestamp], count_max: usize, weight: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let Some(mut first) = at.first() else { return cuts };
    let (mut start, mut bytes) = (0, 0);
    for (i, time) in at.iter().enumerate() {
        bytes += weight(i);
        let long = time.abs_diff(*first) > CHUNK_SPAN_MAX_NS;
        if i > start && (i - start >= count_max || long || bytes > CHUNK_BODIES_BYTES_MAX) {
            cuts.push(start..i);
            (start, first, bytes) = (i, time, weight(i));
        }
    }
    cuts.push(start..at.len());
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_cut_only_beyond_a_limit() {
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
