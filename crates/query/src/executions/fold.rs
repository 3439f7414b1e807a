//! How is an answer computed without all blocks in memory? Block by block, in one or more passes.
//!
//! The caller reads the blocks from the store and passes each one to [`Fold::add`]; it may free the block afterwards. The
//! memory of an analysis depends on what it counts (operations, services, the limit of a search), not on the number of calls.
//! `limits.rs` bounds the rows that an analysis joins.
//!
//! Some questions join rows of different blocks: a segment and the call that caused it, or the rows of one trace. The keys of
//! these rows are collected in one pass and looked up in the next one. Rows are joined only with rows of the same trace. If there
//! are too many keys, the traces are shared out among [`Rounds`] by a hash of their ids, and the passes are repeated for each
//! round.

use tacho_chunk::{AttributeData, CallSummary, ExecutionBlock, SummarizedChunk};
use tacho_model::{Labels, TraceId};

use super::conditions::AttributeTest;
use super::limits::Incomplete;
use super::source::{Source, SourceBlock};

/// Which blocks a pass reads. A fold ignores other blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The blocks of the service in the filter.
    Service,
    /// The blocks with a trace that [`Fold::wants`].
    Traces,
    /// The blocks with a value of this attribute that [`Fold::wants_value`]. They may lack segments without such a value.
    Attribute(&'static str),
    All,
}

impl Scope {
    /// Whether the blocks of the pass depend on the state of the fold.
    pub const fn is_part(self) -> bool {
        matches!(self, Self::Traces | Self::Attribute(_))
    }
}

/// A question that is answered by passes over blocks.
///
/// Blocks that arrive between two passes may be missing in the first pass. Their calls then count as calls without a cause.
pub trait Fold {
    type Answer;

    /// Ends the current pass and starts the next one. `None` when the answer is complete.
    fn pass(&mut self) -> Option<Scope>;

    /// Whether a pass over [`Scope::Traces`] needs this trace.
    fn wants(&self, _: TraceId) -> bool {
        true
    }

    /// The traces that a pass over [`Scope::Traces`] may need, if they are known. [`Fold::wants`] may refuse some of them.
    fn wanted(&self) -> Option<Vec<TraceId>> {
        None
    }

    /// Whether the blocks of the current pass over [`Scope::Traces`] may lack the segments of other traces.
    fn takes_traces_alone(&self) -> bool {
        false
    }

    /// Whether a pass over [`Scope::Attribute`] needs blocks with this value.
    fn wants_value(&self, _: &AttributeData) -> bool {
        true
    }

    /// The value that [`Fold::wants_value`] accepts, as text, if it is known. `wants_value` also accepts the integer with this
    /// decimal text.
    fn wanted_value(&self) -> Option<AttributeData> {
        None
    }

    /// Called before a pass over a service or over all series that reads the range again from the store. Blocks of an earlier
    /// pass may be chunks with a summary now. Without this call, such a pass gets the blocks of an earlier one, and no summaries.
    fn reread(&mut self) {}

    /// Adds a block to the current pass.
    fn add(&mut self, labels: &Labels, block: &ExecutionBlock) {
        self.add_source(Source { labels, block });
    }

    /// Like [`Fold::add`], with names for missing labels.
    fn add_source(&mut self, source: Source<'_>);

    /// Whether the current pass accepts summaries of chunks instead of their blocks.
    fn takes_summaries(&self) -> bool {
        false
    }

    /// Adds a summary to the current pass. If the summary is not enough, returns false: the pass needs the blocks. With
    /// `is_only`, the calls have expired, and nothing else has their figures: the fold uses the summary even if its slots are
    /// longer than the steps of the answer; the calls of such a slot count in its first step. A summary has calls outside of the
    /// range only if they have expired.
    fn add_summary(&mut self, _: &Labels, _: &CallSummary, _is_only: bool) -> bool {
        false
    }

    /// Whether the answer counts all calls of a summary, even those outside of the range.
    fn counts_whole_summaries(&self) -> bool {
        true
    }

    /// Whether the current pass ranks chunks by their summaries, so that it does not need all chunks.
    fn ranks_chunks(&self) -> bool {
        false
    }

    /// The rank of a chunk, which may extend beyond the range. The pass gets the blocks of chunks by descending rank. `None`
    /// if the pass does not need the chunk.
    fn rank(&mut self, _: &Labels, _: SummarizedChunk<'_>) -> Option<u64> {
        Some(u64::MAX)
    }

    /// Whether the pass still needs a chunk with this rank and this number of segments. Called directly before the chunk is
    /// read; if false, the pass does not get the blocks of the chunk.
    fn needs_rank(&mut self, _: u64, _: usize) -> bool {
        true
    }

    /// A test that a segment must pass so that the current pass, which ranks chunks, needs the segment. `None`: the pass needs
    /// all segments.
    fn first_test(&self) -> Option<AttributeTest> {
        None
    }

    /// Counts the segments of a chunk or block that was examined with [`Fold::first_test`].
    fn examined(&mut self, _: usize) {}

    /// What the answer lacks because a limit was reached. Called after the last pass.
    fn incomplete(&self) -> Vec<Incomplete> {
        vec![]
    }

    /// The answer, after the last pass.
    fn finish(self) -> Self::Answer;
}

/// Computes an answer from blocks in memory. Like the store, it skips blocks without a wanted trace or attribute.
pub fn over<F: Fold>(blocks: &[SourceBlock], mut fold: F) -> F::Answer {
    while let Some(scope) = fold.pass() {
        for SourceBlock { labels, block } in blocks {
            if is_needed(&fold, scope, block) && passes(&mut fold, block) {
                fold.add(labels, block);
            }
        }
    }
    fold.finish()
}

fn is_needed(fold: &impl Fold, scope: Scope, block: &ExecutionBlock) -> bool {
    block.rows().any(|row| match scope {
        Scope::Service | Scope::All => true,
        Scope::Traces => fold.wants(row.trace()),
        Scope::Attribute(key) => row.attributes().any(|a| **a.key == *key && fold.wants_value(a.value)),
    })
}

/// Whether a segment of the block passes the first test of the pass, if there is one.
pub(super) fn passes(fold: &mut impl Fold, block: &ExecutionBlock) -> bool {
    fold.first_test().is_none_or(|test| {
        fold.examined(block.len());
        block.rows().any(|row| row.attributes().any(|a| test.takes(a.key, a.value)))
    })
}

/// Limit on the binary logarithm of the number of rounds.
const BITS_MAX: u32 = 8;

/// The share of the traces that the current passes examine. If there is one round, it examines all traces.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rounds {
    bits: u32,
    round: u64,
}

impl Rounds {
    pub(super) const fn takes(self, trace: TraceId) -> bool {
        self.takes_hash(trace.hash64())
    }

    pub(super) const fn takes_hash(self, hash: u64) -> bool {
        hash & ((1 << self.bits) - 1) == self.round
    }

    /// Doubles the number of rounds, so that the share of the current round halves. Returns false without an effect after the
    /// first round, or at the limit of rounds.
    pub(super) const fn split(&mut self) -> bool {
        let can = self.round == 0 && self.bits < BITS_MAX;
        if can {
            self.bits += 1;
        }
        can
    }

    pub(super) const fn is_first(self) -> bool {
        self.round == 0
    }

    /// Whether there are several rounds.
    pub(super) const fn is_split(self) -> bool {
        self.bits > 0
    }

    /// Starts the next round. Returns whether there is one.
    pub(super) const fn next(&mut self) -> bool {
        self.round += 1;
        self.round < 1 << self.bits
    }
}
