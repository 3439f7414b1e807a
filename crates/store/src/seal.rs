//! Open chunks become encoded ones: sorted, cut, and named.
//!
//! What comes out follows from the records and the generation alone: a seal that is repeated after a crash gives
//! the same keys and values, so that a flush may be repeated without storing anything twice.
//!
//! Path of one record: before, it lay in an open chunk (`generation.rs`); after, `flush.rs` puts it into the driver.

use std::ops::Range;

use bytes::Bytes;
use tacho_chunk::{Values, encode_entries, encode_executions, encode_samples};
use tacho_model::{Entry, Kind, Sample, SeriesId, TimeRange, Timestamp, Value, ValueType};

use crate::driver::{Row, Table};
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, Span, chunk_partition};
use crate::open::{OpenEntries, OpenExecutions, OpenSamples};

/// Samples or entries in one chunk.
pub const CHUNK_VALUES_MAX: usize = 8_192;
/// Bodies of entries in one chunk, bytes: a read of one entry decodes no more than this beside it.
pub const CHUNK_BODIES_BYTES_MAX: usize = 1 << 20;

/// The chunks of one series and kind in one generation.
#[derive(Debug, Default)]
pub struct Sealed {
    pub rows: Vec<Row>,
    /// Samples, entries, or completed calls in them.
    pub records: u64,
}

/// Gives the chunks of one series and kind their numbers.
pub struct Sealer {
    kind: Kind,
    series: SeriesId,
    generation: u64,
    sealed: Sealed,
}

impl Sealer {
    pub const fn new(kind: Kind, series: SeriesId, generation: u64) -> Self {
        Self { kind, series, generation, sealed: Sealed { rows: Vec::new(), records: 0 } }
    }

    pub fn samples(mut self, open: &OpenSamples) -> Sealed {
        let samples = latest(open.read(TimeRange::ALL), open.is_ordered());
        for value_type in [ValueType::F64, ValueType::I64, ValueType::U64] {
            let (at, values): (Vec<Timestamp>, Vec<Value>) = samples
                .iter()
                .filter(|s| s.value.value_type() == value_type)
                .map(|s| (s.at, s.value))
                .unzip();
            for cut in cuts(&at, |_| 0) {
                let bytes = encode(&at[cut.clone()], &values[cut.clone()], value_type);
                self.put(Span::Short, at[cut.start], cut.len(), bytes);
            }
        }
        self.sealed
    }

    pub fn entries(mut self, open: &OpenEntries) -> Sealed {
        let mut entries = open.read(TimeRange::ALL);
        entries.sort_by_key(|entry| entry.at);
        let at: Vec<Timestamp> = entries.iter().map(|entry| entry.at).collect();
        for cut in cuts(&at, |i| entries[i].body.as_bytes().len()) {
            let chunk: &[Entry] = &entries[cut.clone()];
            self.put(Span::Short, at[cut.start], cut.len(), encode_entries(chunk));
        }
        self.sealed
    }

    pub fn executions(mut self, open: &OpenExecutions) -> Sealed {
        for (bucket, block) in open.blocks() {
            self.put(bucket.span, block.range().start, block.calls(), encode_executions(block));
        }
        self.sealed
    }

    fn put(&mut self, span: Span, start: Timestamp, records: usize, bytes: Vec<u8>) {
        let number = u32::try_from(self.sealed.rows.len()).unwrap_or(u32::MAX);
        let key = ChunkKey { span, start, generation: self.generation, number };
        self.sealed.records += records as u64;
        self.sealed.rows.push(Row {
            table: Table::Chunks,
            partition: chunk_partition(self.kind, self.series),
            clustering: key.encode(),
            value: Bytes::from(bytes),
        });
    }
}

/// Sorted by time; of equal times the one that came last.
pub fn latest(mut samples: Vec<Sample>, ordered: bool) -> Vec<Sample> {
    if !ordered {
        samples.sort_by_key(|sample| sample.at);
    }
    // Keeps the last of each run: `dedup_by` hands over (later, earlier) and removes the later.
    samples.dedup_by(|later, earlier| {
        let same = later.at == earlier.at;
        if same {
            *earlier = *later;
        }
        same
    });
    samples
}

fn encode(at: &[Timestamp], values: &[Value], value_type: ValueType) -> Vec<u8> {
    match value_type {
        ValueType::F64 => {
            let values: Vec<f64> = values.iter().map(|v| v.as_f64()).collect();
            encode_samples(at, Values::F64(&values))
        }
        ValueType::I64 => {
            let pick = |v: &Value| if let Value::I64(v) = v { Some(*v) } else { None };
            encode_samples(at, Values::I64(&values.iter().filter_map(pick).collect::<Vec<_>>()))
        }
        ValueType::U64 => {
            let pick = |v: &Value| if let Value::U64(v) = v { Some(*v) } else { None };
            encode_samples(at, Values::U64(&values.iter().filter_map(pick).collect::<Vec<_>>()))
        }
    }
}

/// Where to cut sorted records: by number, by span, and by what `weight` says of each in bytes.
fn cuts(at: &[Timestamp], weight: impl Fn(usize) -> usize) -> Vec<Range<usize>> {
    let mut cuts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for i in 0..at.len() {
        bytes += weight(i);
        let long = at[i].abs_diff(at[start]) > CHUNK_SPAN_MAX_NS;
        if i > start && (i - start >= CHUNK_VALUES_MAX || long || bytes > CHUNK_BODIES_BYTES_MAX) {
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
            let cuts: Vec<_> = cuts(at, |_| weight).into_iter().map(|cut| (cut.start, cut.end)).collect();
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

    #[test]
    fn the_last_of_equal_times_wins() {
        let sample = |at, v| Sample { at, value: Value::I64(v) };
        let samples = vec![sample(2, 1), sample(1, 2), sample(2, 3), sample(1, 4), sample(3, 5)];
        assert_eq!(latest(samples, false), [sample(1, 4), sample(2, 3), sample(3, 5)]);
    }
}
