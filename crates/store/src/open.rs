//! Open chunks: the records of one series that are not encoded yet, as they grow and as they are read.
//!
//! Records stand in order of arrival; they are sorted when they are read or sealed (`seal.rs`), so late and
//! backfilled data cost nothing here.
//!
//! Path of one record: before, `generation.rs` adds it; after, `seal.rs` encodes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tacho_chunk::ExecutionBlock;
use tacho_model::{Entry, Operation, Sample, Segment, TimeRange, Timestamp, Value, ValueType};

use crate::keys::{CHUNK_SPAN_MAX_NS, Span};

/// Completed calls in one chunk of executions.
pub const CHUNK_CALLS_MAX: usize = 65_536;
/// Memory of one open chunk of executions, bytes: a hostile sender's distinct shapes cannot make a huge one.
pub const CHUNK_OPEN_BYTES_MAX: usize = 16 << 20;

/// Types of values in order of arrival; nearly always there is one.
#[derive(Debug)]
enum Types {
    One(ValueType),
    Mixed(Vec<ValueType>),
}

/// Samples of one series: time and 64 bits each.
#[derive(Debug)]
pub struct OpenSamples {
    at: Vec<Timestamp>,
    bits: Vec<u64>,
    types: Types,
    /// Times never fell so far.
    ordered: bool,
}

pub const fn to_bits(value: Value) -> u64 {
    match value {
        Value::F64(v) => v.to_bits(),
        Value::I64(v) => v.cast_unsigned(),
        Value::U64(v) => v,
    }
}

pub const fn from_bits(bits: u64, value_type: ValueType) -> Value {
    match value_type {
        ValueType::F64 => Value::F64(f64::from_bits(bits)),
        ValueType::I64 => Value::I64(bits.cast_signed()),
        ValueType::U64 => Value::U64(bits),
    }
}

impl Default for OpenSamples {
    fn default() -> Self {
        Self { at: Vec::new(), bits: Vec::new(), types: Types::One(ValueType::F64), ordered: true }
    }
}

impl OpenSamples {
    pub fn push(&mut self, sample: Sample) {
        let value_type = sample.value.value_type();
        match &mut self.types {
            Types::One(one) if *one == value_type => {}
            Types::One(one) if self.at.is_empty() => *one = value_type,
            Types::One(one) => {
                let mut mixed = vec![*one; self.at.len()];
                mixed.push(value_type);
                self.types = Types::Mixed(mixed);
            }
            Types::Mixed(types) => types.push(value_type),
        }
        self.ordered &= self.at.last().is_none_or(|last| *last <= sample.at);
        self.at.push(sample.at);
        self.bits.push(to_bits(sample.value));
    }

    fn get(&self, i: usize) -> Sample {
        let value_type = match &self.types {
            Types::One(one) => *one,
            Types::Mixed(types) => types[i],
        };
        Sample { at: self.at[i], value: from_bits(self.bits[i], value_type) }
    }

    pub const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Samples of a range in order of arrival.
    pub fn read(&self, range: TimeRange) -> Vec<Sample> {
        let places = if self.ordered {
            let first = self.at.partition_point(|at| *at < range.start);
            first..self.at.partition_point(|at| *at <= range.end).max(first)
        } else {
            0..self.at.len()
        };
        places.map(|i| self.get(i)).filter(|sample| range.contains(sample.at)).collect()
    }

    /// Memory, bytes.
    pub fn bytes(&self) -> usize {
        let types = match &self.types {
            Types::One(_) => 0,
            Types::Mixed(types) => types.capacity(),
        };
        (self.at.capacity() + self.bits.capacity()) * size_of::<u64>() + types
    }
}

/// Entries of one series.
#[derive(Debug, Default)]
pub struct OpenEntries {
    entries: Vec<Entry>,
    body_bytes: usize,
}

impl OpenEntries {
    pub fn push(&mut self, entry: Entry) {
        self.body_bytes += entry.body.as_bytes().len() + 16;
        self.entries.push(entry);
    }

    /// Entries of a range in order of arrival.
    pub fn read(&self, range: TimeRange) -> Vec<Entry> {
        self.entries.iter().filter(|entry| range.contains(entry.at)).cloned().collect()
    }

    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>() + self.body_bytes
    }
}

/// Segments up to this long lie with others of their day, so that a block spans at most two days.
const SEGMENT_SHORT_MAX_NS: u64 = CHUNK_SPAN_MAX_NS / 2;

/// Which block a segment goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bucket {
    pub span: Span,
    /// Days since the epoch of the segment's first moment; 0 for long ones.
    day: i64,
}

impl Bucket {
    /// The segment has passed `Segment::check`: its times do not overflow.
    fn of(segment: &Segment) -> Self {
        let age = segment.carried.iter().map(|c| c.age).max().unwrap_or(0);
        let first = segment.start.saturating_sub_unsigned(age);
        if age.saturating_add(segment.duration()) > SEGMENT_SHORT_MAX_NS {
            return Self { span: Span::Long, day: 0 };
        }
        Self { span: Span::Short, day: first.div_euclid(SEGMENT_SHORT_MAX_NS.cast_signed()) }
    }
}

/// Segments of one series in blocks: one growing for each day, and full ones.
#[derive(Debug, Default)]
pub struct OpenExecutions {
    /// Shared with readers: a push while somebody reads copies the block once.
    growing: BTreeMap<Bucket, Arc<ExecutionBlock>>,
    full: Vec<(Bucket, Arc<ExecutionBlock>)>,
    full_bytes: usize,
}

/// Memory of an empty block with its tables, bytes.
const BLOCK_BYTES: usize = 1_024;

impl OpenExecutions {
    pub fn push(&mut self, segment: &Segment, operations: &[Operation]) {
        let bucket = Bucket::of(segment);
        let block = self.growing.entry(bucket).or_default();
        Arc::make_mut(block).push(segment, operations);
        if block.calls() >= CHUNK_CALLS_MAX || block.bytes() >= CHUNK_OPEN_BYTES_MAX || block.is_full() {
            self.full_bytes += block.bytes() + BLOCK_BYTES;
            self.full.extend(self.growing.remove(&bucket).map(|block| (bucket, block)));
        }
    }

    /// All blocks in the order in which a seal numbers them.
    pub fn blocks(&self) -> impl Iterator<Item = (Bucket, &Arc<ExecutionBlock>)> {
        let full = self.full.iter().map(|(bucket, block)| (*bucket, block));
        full.chain(self.growing.iter().map(|(bucket, block)| (*bucket, block)))
    }

    pub fn read(&self, range: TimeRange) -> Vec<Arc<ExecutionBlock>> {
        self.blocks().filter(|(_, block)| block.range().overlaps(&range)).map(|(_, b)| b.clone()).collect()
    }

    pub fn bytes(&self) -> usize {
        let growing: usize = self.growing.values().map(|block| block.bytes() + BLOCK_BYTES).sum();
        growing + self.full_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_any_type_and_order_are_read_as_they_came() {
        let mut open = OpenSamples::default();
        let samples =
            [(5, Value::U64(u64::MAX)), (7, Value::F64(-0.0)), (6, Value::I64(-1)), (6, Value::U64(1))];
        let samples = samples.map(|(at, value)| Sample { at, value });
        samples.iter().for_each(|s| open.push(*s));
        assert_eq!(open.read(TimeRange::ALL), samples);
        assert_eq!(open.read(TimeRange::new(6, 6)), samples[2..]);
        assert!(!open.is_ordered());
        assert_eq!(open.read(TimeRange::new(8, 2)), []);
    }

    #[test]
    fn an_ordered_series_is_searched() {
        let mut open = OpenSamples::default();
        (0..100).for_each(|at| open.push(Sample { at: at / 2, value: Value::I64(at) }));
        assert!(open.is_ordered());
        assert_eq!(open.read(TimeRange::new(10, 11)).len(), 4);
        assert_eq!(open.read(TimeRange::new(11, 10)).len(), 0);
    }
}
