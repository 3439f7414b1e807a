//! Encodes a checked batch as one journal record.
//!
//! The first record that uses a series, an operation or a text defines it for the rest of the file. As protection against damage,
//! the definitions of a record are repeated once, at the end of the first commit with a later record ([`Encoder::end_group`]).
//! The encoder remembers the definitions in the file. When a write fails, it forgets the definitions of the lost records
//! ([`Encoder::rollback`]).
//!
//! Path of one record. Before: `commit.rs` passes a checked batch. After: `writer.rs` makes it durable.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use tacho_model::{
    AttributeValue, Body, EntrySeries, EventKind, ExecutionSeries, Labels, Operation, Sample, Segment,
    SeriesId, Value,
};

use super::columns::Columns;
use super::format::{
    BLOCK_ENTRIES, BLOCK_EXECUTIONS, BLOCK_SAMPLES, BODY_BYTES, BODY_TEXT, CODE_ENTER, CODE_EXIT,
    CODE_EXIT_FAILED, DEFINITIONS_BYTES_MAX, FLAG_FRAMES, FLAG_ORIGIN, FLAG_REPEATS, RECORD_BYTES_MAX,
    SEGMENT_ATTRIBUTES, SEGMENT_CARRIED, SEGMENT_PARENT, TEXT_BYTES_MAX, TEXTS_MAX, VALUE_INTEGER,
    VALUE_TEXT, put_record,
};
use super::series::SeriesTable;
use crate::arrival::Arrival;
use crate::coding::{put_string, put_varint, put_zigzag};
use crate::index::Index;
use crate::{Error, Result};

/// Numbers of the definitions of one kind in one file, and the new definitions of the current record.
#[derive(Debug)]
struct Table<K> {
    numbers: HashMap<K, u64>,
    /// Number of the first new definition.
    first: u64,
    new: Vec<u8>,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { numbers: HashMap::new(), first: 0, new: Vec::new() }
    }
}

impl<K: std::hash::Hash + Eq> Table<K> {
    fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    fn number(&mut self, key: K, define: impl FnOnce(&mut Vec<u8>, &K)) -> u64 {
        let next = self.numbers.len() as u64;
        let new = &mut self.new;
        match self.numbers.entry(key) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                define(new, unknown.key());
                *unknown.insert(next)
            }
        }
    }

    /// Writes the definitions added since the last call.
    fn write_new(&mut self, out: &mut Vec<u8>) {
        put_varint(out, self.first);
        put_varint(out, self.len() - self.first);
        out.append(&mut self.new);
        self.first = self.len();
    }

    fn rollback(&mut self, length: u64) {
        self.numbers.retain(|_, number| *number < length);
        self.first = length;
        self.new.clear();
    }
}

/// Numbers of definitions at one moment, for a rollback. Not the mark in the file (`format.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    series: u64,
    operations: u64,
    texts: u64,
}

impl Mark {
    const fn is_within(&self, other: &Self) -> bool {
        self.series <= other.series && self.operations <= other.operations && self.texts <= other.texts
    }
}

/// Definitions of one record that will be repeated.
#[derive(Debug)]
struct Defined {
    bytes: Vec<u8>,
    /// Number of definitions in the file after this record.
    after: Mark,
}

/// State of one file. It is empty when the file is created.
#[derive(Debug, Default)]
pub struct Encoder {
    series: SeriesTable,
    operations: Table<Operation>,
    texts: Table<Arc<str>>,
    columns: Columns,
    blocks: Vec<u8>,
    payload: Vec<u8>,
    /// Numbers of definitions on disk. Later definitions are in records that are not on disk yet.
    durable: Mark,
    /// Definitions of earlier records that are not repeated yet. A later record may use them.
    once: Vec<Defined>,
    /// Definitions of the last record. No later record uses them yet.
    latest: Option<Defined>,
}

impl Encoder {
    /// Notes that the records encoded so far are on disk. A later rollback keeps their definitions.
    pub fn committed(&mut self) {
        self.durable = self.mark();
        self.once.clear();
    }

    /// Ends the records of one commit: appends the repetitions of definitions to `out`. If the record that first has these
    /// definitions is damaged, the records that use them stay readable.
    pub fn end_group(&mut self, synced: u64, out: &mut Vec<u8>) {
        for defined in &self.once {
            self.payload.clear();
            self.payload.push(FLAG_REPEATS);
            put_varint(&mut self.payload, synced);
            self.payload.extend_from_slice(&defined.bytes);
            put_record(out, &self.payload);
        }
    }

    /// Removes the definitions of the records since the last commit, because these records are lost.
    pub fn rollback(&mut self) {
        self.rollback_to(self.durable);
    }

    fn mark(&self) -> Mark {
        Mark { series: self.series.len(), operations: self.operations.len(), texts: self.texts.len() }
    }

    fn rollback_to(&mut self, mark: Mark) {
        self.series.rollback(mark.series);
        self.operations.rollback(mark.operations);
        self.texts.rollback(mark.texts);
        self.once.retain(|defined| defined.after.is_within(&mark));
        self.latest.take_if(|defined| !defined.after.is_within(&mark));
    }

    pub fn encode(&mut self, arrival: &Arrival, synced: u64, out: &mut Vec<u8>) -> Result<()> {
        self.encode_known(arrival, &Index::default(), synced, out)
    }

    /// Appends the record to `out`. `index` has the labels of the known series. `synced` is the number of bytes of the file that
    /// are on disk.
    ///
    /// # Errors
    /// `Invalid` if the new labels or the record are above a limit. Nothing is appended.
    pub fn encode_known(
        &mut self,
        arrival: &Arrival,
        index: &Index,
        synced: u64,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let mark = self.mark();
        self.put_blocks(arrival, index);
        let labels_bytes = self.series.labels_bytes();
        if labels_bytes > DEFINITIONS_BYTES_MAX {
            let message =
                format!("new labels of {labels_bytes} bytes in a batch are over {DEFINITIONS_BYTES_MAX}");
            self.rollback_to(mark);
            return Err(Error::invalid(message));
        }
        self.payload.clear();
        self.payload.push(match arrival.origin {
            Some(origin) if origin.first != origin.seq => FLAG_ORIGIN | FLAG_FRAMES,
            Some(_) => FLAG_ORIGIN,
            None => 0,
        });
        put_varint(&mut self.payload, synced);
        if let Some(origin) = arrival.origin {
            self.payload.extend_from_slice(&origin.session.to_be_bytes());
            put_varint(&mut self.payload, origin.seq);
            if origin.first != origin.seq {
                put_varint(&mut self.payload, origin.seq.saturating_sub(origin.first));
            }
        }
        let before = self.payload.len();
        self.series.write_new(&mut self.payload);
        self.operations.write_new(&mut self.payload);
        self.texts.write_new(&mut self.payload);
        let definitions = before..self.payload.len();
        self.payload.extend_from_slice(&self.blocks);
        if self.payload.len() > RECORD_BYTES_MAX {
            let bytes = self.payload.len();
            let message = format!("batch of {bytes} bytes is over {RECORD_BYTES_MAX}: send it in parts");
            self.rollback_to(mark);
            return Err(Error::invalid(message));
        }
        put_record(out, &self.payload);
        self.once.extend(self.latest.take());
        let after = self.mark();
        if after != mark {
            self.latest =
                Some(Defined { bytes: self.payload.get(definitions).unwrap_or_default().to_vec(), after });
        }
        Ok(())
    }

    fn put_blocks(&mut self, arrival: &Arrival, index: &Index) {
        self.blocks.clear();
        for (known, samples) in arrival.known().iter() {
            let number = self.series.number(index.id(known.number), || index.labels_of(known.number));
            self.put_samples(number, samples);
        }
        for (id, series) in arrival.samples() {
            let number = self.series_number(id, &series.labels);
            self.put_samples(number, &series.samples);
        }
        self.columns.end(&mut self.blocks);
        for (id, series) in arrival.entries() {
            let number = self.series_number(id, &series.labels);
            put_entries(&mut self.blocks, number, series);
        }
        for (id, series) in arrival.executions() {
            let number = self.series_number(id, &series.labels);
            self.put_executions(number, series);
        }
    }

    fn series_number(&mut self, id: SeriesId, labels: &Arc<Labels>) -> u64 {
        self.series.number(id, || labels.clone())
    }

    fn put_samples(&mut self, series_number: u64, samples: &[Sample]) {
        if !self.columns.add(&mut self.blocks, series_number, samples) {
            self.columns.end(&mut self.blocks);
            put_mixed(&mut self.blocks, series_number, samples);
        }
    }

    fn put_executions(&mut self, series_number: u64, series: &ExecutionSeries) {
        let define = |new: &mut Vec<u8>, operation: &Operation| {
            new.push(operation.kind as u8);
            put_string(new, operation.name.as_bytes());
        };
        let numbers: Vec<u64> =
            series.operations.iter().map(|o| self.operations.number(o.clone(), define)).collect();
        self.blocks.push(BLOCK_EXECUTIONS);
        put_varint(&mut self.blocks, series_number);
        put_varint(&mut self.blocks, series.segments.len() as u64);
        let mut before = 0i64;
        for segment in &series.segments {
            self.put_segment(segment, before, &numbers);
            before = segment.start;
        }
    }

    #[expect(clippy::indexing_slicing, reason = "an arrival has no operation beyond the table of its series")]
    fn put_segment(&mut self, segment: &Segment, before: i64, operations: &[u64]) {
        let mut flags = 0;
        flags |= if segment.parent.is_some() { SEGMENT_PARENT } else { 0 };
        flags |= if segment.carried.is_empty() { 0 } else { SEGMENT_CARRIED };
        flags |= if segment.attributes.is_empty() { 0 } else { SEGMENT_ATTRIBUTES };
        self.blocks.push(flags);
        self.blocks.extend_from_slice(&segment.trace.0.to_be_bytes());
        self.blocks.extend_from_slice(&segment.base.to_le_bytes());
        put_varint(&mut self.blocks, segment.part.into());
        put_varint(&mut self.blocks, segment.first_call.into());
        self.put_textref(&segment.thread);
        put_zigzag(&mut self.blocks, segment.start.wrapping_sub(before));
        if let Some(parent) = segment.parent {
            self.blocks.extend_from_slice(&parent.0.to_le_bytes());
        }
        if !segment.carried.is_empty() {
            put_varint(&mut self.blocks, segment.carried.len() as u64);
        }
        for carried in &segment.carried {
            put_varint(&mut self.blocks, operations[carried.operation as usize]);
            put_varint(&mut self.blocks, carried.call.into());
            put_varint(&mut self.blocks, carried.age);
        }
        put_varint(&mut self.blocks, segment.events.len() as u64);
        for event in &segment.events {
            put_varint(&mut self.blocks, event.delta);
            let code = match event.kind {
                EventKind::Exit => CODE_EXIT,
                EventKind::ExitFailed => CODE_EXIT_FAILED,
                EventKind::Enter(operation) => CODE_ENTER + operations[operation as usize],
            };
            put_varint(&mut self.blocks, code);
        }
        self.put_attributes(segment);
    }

    fn put_attributes(&mut self, segment: &Segment) {
        if !segment.attributes.is_empty() {
            put_varint(&mut self.blocks, segment.attributes.len() as u64);
        }
        for attribute in &segment.attributes {
            put_varint(&mut self.blocks, attribute.call.into());
            self.put_textref(&attribute.key);
            match &attribute.value {
                AttributeValue::Text(text) => {
                    self.blocks.push(VALUE_TEXT);
                    put_string(&mut self.blocks, text.as_bytes());
                }
                AttributeValue::Integer(number) => {
                    self.blocks.push(VALUE_INTEGER);
                    put_zigzag(&mut self.blocks, *number);
                }
            }
        }
    }

    fn put_textref(&mut self, text: &Arc<str>) {
        let room = self.texts.numbers.len() < TEXTS_MAX && text.len() <= TEXT_BYTES_MAX;
        let number = match self.texts.numbers.get(text) {
            Some(number) => Some(*number),
            None if room => {
                Some(self.texts.number(text.clone(), |new, text| put_string(new, text.as_bytes())))
            }
            None => None,
        };
        match number {
            Some(number) => put_varint(&mut self.blocks, number + 1),
            None => {
                self.blocks.push(0);
                put_string(&mut self.blocks, text.as_bytes());
            }
        }
    }
}

/// Writes the samples of a series with values of several types: one block for each run of one type.
fn put_mixed(out: &mut Vec<u8>, series: u64, samples: &[Sample]) {
    for run in samples.chunk_by(|a, b| a.value.value_type() == b.value.value_type()) {
        let Some(first) = run.first() else { continue };
        out.push(BLOCK_SAMPLES);
        put_varint(out, series);
        out.push(first.value.value_type() as u8);
        put_varint(out, run.len() as u64);
        let mut before = 0i64;
        for sample in run {
            put_zigzag(out, sample.at.wrapping_sub(before));
            before = sample.at;
            match sample.value {
                Value::F64(value) => out.extend_from_slice(&value.to_bits().to_le_bytes()),
                Value::I64(value) => put_zigzag(out, value),
                Value::U64(value) => put_varint(out, value),
            }
        }
    }
}

fn put_entries(out: &mut Vec<u8>, series_number: u64, series: &EntrySeries) {
    out.push(BLOCK_ENTRIES);
    put_varint(out, series_number);
    put_varint(out, series.entries.len() as u64);
    let mut before = 0i64;
    for entry in &series.entries {
        put_zigzag(out, entry.at.wrapping_sub(before));
        before = entry.at;
        out.push(match entry.body {
            Body::Text(_) => BODY_TEXT,
            Body::Bytes(_) => BODY_BYTES,
        });
        put_string(out, entry.body.as_bytes());
    }
}
