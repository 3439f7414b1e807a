//! Which rows does a merge take, by which rules, and which does it make?

use bytes::Bytes;
use tacho_chunk::semantic::{Movement, Semantic};
use tacho_chunk::{Aggregation, ExecutionBlock};
use tacho_model::Timestamp;

use super::super::sequence;
use super::super::tombstones::Mask;
use crate::group::resent::Overhang;
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, Span};
use crate::policy::{ChunkSettings, Policy};

/// A row to be replaced.
#[derive(Clone, Debug)]
pub struct Source {
    pub key: ChunkKey,
    /// Overhang of the times of its samples.
    pub overhang: Overhang,
    pub chunk: Bytes,
}

/// The rules for one member at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatment {
    pub masks: Vec<Mask>,
    /// Records before it are expired.
    pub expired_before: Timestamp,
    /// Samples up to this time are downsampled; a step ends there.
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

    /// Whether a record is dropped.
    pub fn drops(&self, generation: u64, at: Timestamp) -> bool {
        at < self.expired_before || self.masks.iter().any(|mask| mask.hides(generation, at))
    }
}

/// The last end of a step up to this time: a step is `(k * step - step, k * step]`.
pub fn end_of_step(at: Timestamp, to: Aggregation) -> Timestamp {
    at.saturating_sub(at.rem_euclid(to.step.max(1)))
}

/// How new chunks are cut and written.
#[derive(Clone, Copy, Debug)]
pub struct Cutting {
    /// Records per chunk, about.
    pub records: usize,
    /// Chunks that end before it are not expected to grow: one-time reductions are applied.
    pub settled_before: Timestamp,
}

/// A row that a merge writes, without its number and its prefix.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub span: Span,
    pub start: Timestamp,
    pub overhang: Overhang,
    pub generation: u64,
    /// The key of the row whose rest this is: the rest keeps its place among the rows of its generation.
    pub rest_of: Option<ChunkKey>,
    /// Samples, entries, or completed calls.
    pub records: u64,
    pub chunk: Bytes,
}

/// Result of a merge.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// In order of time, rests last.
    pub rows: Vec<Made>,
    /// Records read.
    pub records: u64,
    /// Samples replaced by a later one of the same time.
    pub replaced: u64,
    /// By member: changes and descents in samples that no merge has read before.
    pub moved: Vec<(u16, Movement)>,
}

impl Source {
    /// Whether no merge wrote it.
    pub const fn is_fresh(&self) -> bool {
        !sequence::of_merge(self.key.number)
    }
}

/// The index of an unreadable source, and the reason.
#[derive(Debug)]
pub struct Unreadable {
    pub source: usize,
    pub error: tacho_chunk::Error,
}

/// The span class of a chunk that covers this time.
pub(super) fn span_of(start: Timestamp, end: Timestamp) -> Span {
    if end.abs_diff(start) <= CHUNK_SPAN_MAX_NS { Span::Short } else { Span::Wide }
}

/// Generation of a merged row: the largest of its sources.
pub(super) fn generation(sources: &[Source]) -> u64 {
    sources.iter().map(|source| source.key.generation).max().unwrap_or(0)
}

/// Adds the index of the source.
pub(super) fn failed(source: usize) -> impl Fn(tacho_chunk::Error) -> Unreadable {
    move |error| Unreadable { source, error }
}

/// Completed calls of a block as the statistics count them.
pub(super) fn calls(block: &ExecutionBlock) -> u64 {
    block.calls() as u64
}
