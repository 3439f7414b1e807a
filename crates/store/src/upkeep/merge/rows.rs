//! Inputs and outputs of a merge: the source rows, the rules for each member, and the new rows.

use bytes::Bytes;
use tacho_chunk::semantic::{Movement, Semantic};
use tacho_chunk::{Aggregation, ExecutionBlock};
use tacho_model::Timestamp;

use super::super::sequence;
use super::super::tombstones::Mask;
use crate::group::resent::Overhang;
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, Span};
use crate::policy::{ChunkSettings, Policy};

#[derive(Clone, Debug)]
pub struct Source {
    pub key: ChunkKey,
    pub overhang: Overhang,
    pub chunk: Bytes,
}

/// The rules for one member at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatment {
    pub masks: Vec<Mask>,
    /// Records before this time are expired.
    pub expired_before: Timestamp,
    /// Samples up to this time are downsampled. The time is the end of a step.
    pub thin: Option<(Timestamp, Aggregation)>,
    pub semantic: Option<Semantic>,
    pub chunks: ChunkSettings,
}

impl Treatment {
    pub fn new(policy: &Policy, masks: Vec<Mask>, now: Timestamp) -> Self {
        let thin = policy.downsampling.map(|down| {
            let before = now.saturating_sub_unsigned(down.after);
            (end_of_step(before, down.to), down.to)
        });
        let (semantic, chunks) = (policy.semantic, policy.chunks);
        Self { masks, expired_before: policy.expired_before(now), thin, semantic, chunks }
    }

    pub fn drops(&self, generation: u64, at: Timestamp) -> bool {
        at < self.expired_before || self.masks.iter().any(|mask| mask.hides(generation, at))
    }
}

/// The last end of a step at or before this time. A step is `(k * step - step, k * step]`.
pub fn end_of_step(at: Timestamp, to: Aggregation) -> Timestamp {
    at.saturating_sub(at.rem_euclid(to.step.max(1)))
}

#[derive(Clone, Copy, Debug)]
pub struct Cutting {
    /// Approximate number of times (of samples), or limit on entries, per chunk. Not used for executions.
    pub records: usize,
    /// Chunks that end before this time are not expected to grow. Lossy reductions, which are done once, are applied to
    /// them.
    pub settled_before: Timestamp,
}

/// A row that a merge writes, without its number and its prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub span: Span,
    pub start: Timestamp,
    pub overhang: Overhang,
    pub generation: u64,
    /// If a merge ends inside a source row, the later records of that row go into a row of their own, the rest. For a rest,
    /// this is the key of its source row. A rest of entries keeps the number in this key (`replacement.rs`).
    pub rest_of: Option<ChunkKey>,
    /// Number of samples, entries, or completed calls.
    pub records: u64,
    pub chunk: Bytes,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// New rows ordered by time. Rests of source rows are last.
    pub rows: Vec<Made>,
    pub records: u64,
    /// Samples replaced by later samples with the same time.
    pub replaced: u64,
    /// How often the values of each member changed and fell, in samples that were not counted before (`lives.rs`).
    pub moved: Vec<(u16, Movement)>,
}

impl Source {
    /// Whether a flush wrote the row. Only for samples, because a rest of entries keeps the number of its source row.
    pub const fn is_fresh(&self) -> bool {
        !sequence::of_merge(self.key.number)
    }
}

/// The index of an unreadable source, and the reason why it cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    pub source: usize,
    pub error: tacho_chunk::Error,
}

pub(super) fn span_of(start: Timestamp, end: Timestamp) -> Span {
    if end.abs_diff(start) <= CHUNK_SPAN_MAX_NS { Span::Short } else { Span::Wide }
}

/// Generation of a merged row: the largest generation of its sources.
pub(super) fn generation(sources: &[Source]) -> u64 {
    sources.iter().map(|source| source.key.generation).max().unwrap_or(0)
}

pub(super) fn failed(source: usize) -> impl Fn(tacho_chunk::Error) -> Unreadable {
    move |error| Unreadable { source, error }
}

/// Number of completed calls in a block, counted as in the statistics.
pub(super) fn calls(block: &ExecutionBlock) -> u64 {
    block.calls() as u64
}
