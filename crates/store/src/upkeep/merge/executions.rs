//! Merges rows of executions. Short segments are moved into larger blocks of their day, long segments into larger blocks
//! of any days.
//!
//! Each segment is stored only once, and segments need no order, so overlapping rows need no work. A row that is alone in
//! its bucket keeps its bytes, unless some of its records are dropped.

use std::collections::BTreeMap;

use tacho_chunk::{Chunk, ExecutionBlock, encode_executions};
use tacho_model::Timestamp;

use super::rows::{Made, Merged, Source, Treatment, Unreadable, calls, failed};
use crate::group::resent::Overhang;
use crate::keys::Span;
use crate::memtable::{CHUNK_CALLS_MAX, CHUNK_OPEN_BYTES_MAX, SEGMENT_SHORT_MAX_NS};

/// Span class of a row, and for short rows the day of the first record, as in the memtable. Rows with the same bucket may be
/// merged.
fn bucket(source: &Source) -> (Span, i64) {
    let day = source.key.start.div_euclid(SEGMENT_SHORT_MAX_NS.cast_signed());
    (source.key.span, if source.key.span == Span::Short { day } else { 0 })
}

pub fn merge(sources: &[Source], treatment: &Treatment) -> Result<Merged, Unreadable> {
    let mut buckets: BTreeMap<(Span, i64), Vec<(usize, &Source)>> = BTreeMap::new();
    for (place, source) in sources.iter().enumerate() {
        buckets.entry(bucket(source)).or_default().push((place, source));
    }
    let mut merged = Merged::default();
    for ((span, _), places) in buckets {
        // The largest generation of the rows in this bucket only. With a larger generation, a tombstone would no longer
        // mask records of the bucket.
        let generation = places.iter().map(|(_, source)| source.key.generation).max().unwrap_or(0);
        let mut growing = Growing::default();
        for (place, source) in &places {
            let block = read(source).map_err(failed(*place))?;
            merged.records += calls(&block);
            let dropped = |start| treatment.drops(source.key.generation, start);
            if places.len() == 1 && !block.rows().any(|row| dropped(row.start())) {
                merged.rows.push(Made { generation, ..carried(source, &block) });
                continue;
            }
            growing.push_all(&block, dropped);
        }
        merged.rows.extend(growing.finish().map(|block| made(span, generation, &block)));
    }
    merged.rows.sort_by_key(|row| row.start);
    Ok(merged)
}

fn read(source: &Source) -> Result<ExecutionBlock, tacho_chunk::Error> {
    Chunk::open(&source.chunk)?.executions()
}

fn made(span: Span, generation: u64, block: &ExecutionBlock) -> Made {
    let start = block.range().start;
    Made {
        span,
        start,
        overhang: Overhang::default(),
        generation,
        rest_of: None,
        records: calls(block),
        chunk: encode_executions(block).into(),
    }
}

/// A row that only gets a new key.
fn carried(source: &Source, block: &ExecutionBlock) -> Made {
    let (span, start) = (source.key.span, source.key.start);
    let (records, chunk) = (calls(block), source.chunk.clone());
    Made { span, start, overhang: Overhang::default(), generation: 0, rest_of: None, records, chunk }
}

/// Collects segments into blocks of limited size.
#[derive(Default)]
struct Growing {
    block: ExecutionBlock,
    full: Vec<ExecutionBlock>,
}

impl Growing {
    fn push_all(&mut self, block: &ExecutionBlock, dropped: impl Fn(Timestamp) -> bool) {
        for row in block.rows().filter(|row| !dropped(row.start())) {
            self.block.push_row(row);
            let grown = &self.block;
            if grown.calls() >= CHUNK_CALLS_MAX || grown.bytes() >= CHUNK_OPEN_BYTES_MAX || grown.is_full() {
                self.full.push(std::mem::take(&mut self.block));
            }
        }
    }

    fn finish(mut self) -> impl Iterator<Item = ExecutionBlock> {
        if !self.block.is_empty() {
            self.full.push(self.block);
        }
        self.full.into_iter()
    }
}
