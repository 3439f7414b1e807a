//! Here are rows of one partition, give me fewer that hold the same: pure, one file for each kind of record.
//!
//! ```text
//!   samples.rs      columns of members: which values count (picks.rs), thinned out when old
//!   lossy.rs        these cut anew, and what may be given up
//!   entries.rs      sorted by time, those of one time in the order in which they came
//!   executions.rs   segments pushed into larger blocks of their day
//! ```
//! What a tombstone hides and what has had its time is left out on the way.

mod columns;
mod entries;
mod executions;
mod lossy;
mod picks;
mod samples;

use bytes::Bytes;
use tacho_chunk::semantic::{Movement, Semantic};
use tacho_chunk::{Aggregation, ExecutionBlock};
use tacho_model::{Kind, Timestamp};

use super::sequence;
use super::tombstones::Mask;
use crate::group::resent::Overhang;
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, Span};
use crate::policy::{ChunkSettings, Policy};

/// A row that is to be replaced.
#[derive(Clone, Debug)]
pub struct Source {
    pub key: ChunkKey,
    /// Of the times of its samples.
    pub overhang: Overhang,
    pub chunk: Bytes,
}

/// What the rules say of one member at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatment {
    pub masks: Vec<Mask>,
    /// Records before it have had their time.
    pub expired_before: Timestamp,
    /// Samples up to this moment are thinned out; a step ends there.
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

    /// Is a record left out?
    pub fn drops(&self, generation: u64, at: Timestamp) -> bool {
        at < self.expired_before || self.masks.iter().any(|mask| mask.hides(generation, at))
    }
}

/// The last end of a step up to this moment: a step is `(k * step - step, k * step]`.
pub fn end_of_step(at: Timestamp, to: Aggregation) -> Timestamp {
    at.saturating_sub(at.rem_euclid(to.step.max(1)))
}

/// How new chunks are cut and written.
#[derive(Clone, Copy, Debug)]
pub struct Cutting {
    /// Records of one chunk, about.
    pub records: usize,
    /// Chunks that end before it are not expected to grow any more: they may be given what is done once.
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

/// What becomes of the sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Merged {
    /// In order of time, rests last.
    pub rows: Vec<Made>,
    /// Records read.
    pub records: u64,
    /// Samples that a later one of the same time has replaced.
    pub replaced: u64,
    /// By member: how it has moved, in samples that no merge has met before.
    pub moved: Vec<(u16, Movement)>,
}

impl Source {
    /// Has no merge written it?
    pub const fn is_fresh(&self) -> bool {
        !sequence::of_merge(self.key.number)
    }
}

/// A source that cannot be read: which, and why.
#[derive(Debug)]
pub struct Unreadable {
    pub source: usize,
    pub error: tacho_chunk::Error,
}

/// Merges what `sources` hold up to and with `until`; what they hold after it stays as it is. `members` has one treatment
/// for each member of the group; so has `lives`, how it has moved as far as is known.
pub fn merge(
    kind: Kind,
    sources: &[Source],
    members: &[Treatment],
    lives: &[Movement],
    until: Timestamp,
    cutting: &Cutting,
) -> Result<Merged, Unreadable> {
    let one = members.first().cloned().unwrap_or_default();
    match kind {
        Kind::Sample => samples::merge(sources, members, lives, until, cutting),
        Kind::Entry => entries::merge(sources, &one, until, cutting),
        Kind::Execution => executions::merge(sources, &one),
    }
}

/// The class of a chunk that covers this time.
fn span_of(start: Timestamp, end: Timestamp) -> Span {
    if end.abs_diff(start) <= CHUNK_SPAN_MAX_NS { Span::Short } else { Span::Wide }
}

/// Generation that a merged row has: the largest of its sources.
fn generation(sources: &[Source]) -> u64 {
    sources.iter().map(|source| source.key.generation).max().unwrap_or(0)
}

/// Sequence the source.
fn failed(source: usize) -> impl Fn(tacho_chunk::Error) -> Unreadable {
    move |error| Unreadable { source, error }
}

/// Completed calls of a block as the statistics count them.
fn calls(block: &ExecutionBlock) -> u64 {
    block.calls() as u64
}
