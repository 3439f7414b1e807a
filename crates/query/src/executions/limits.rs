//! How much may the joins of an analysis hold, and what does an answer lack when a limit is reached?

use std::fmt;

/// Limits of the joins of one analysis. Above `causes` or `parented`, the traces are shared out among more rounds. If another
/// limit is exceeded, the answer is [`Incomplete`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Rows that wait for their next part, and separately rows that wait for their previous part. About 64 bytes each, in a
    /// search more.
    pub(super) waiting: usize,
    /// Rows of segments with a parent, in a round that can be split; 24 bytes each.
    pub(super) causes: usize,
    /// Rows of segments with a parent, in a round that cannot be split. More rounds do not help if few traces have most of
    /// these rows.
    pub(super) causes_of_round: usize,
    /// Traces with a segment that has a parent, in one round; 8 bytes each.
    pub(super) parented: usize,
    /// Traces with the requested request id.
    pub(super) requested: usize,
    /// Candidates that a search for traces by their entries compares.
    pub(super) candidates: usize,
    /// Calls in several parts that may meet the conditions of a search; about 200 bytes each.
    pub(super) spanning: usize,
    /// Traces of earlier pages of a search for calls; 24 bytes each.
    pub(super) pages: usize,
}

impl Limits {
    const USUAL: Self = Self {
        waiting: 1 << 19,
        causes: 1 << 21,
        causes_of_round: 1 << 22,
        parented: 1 << 22,
        requested: 100_000,
        candidates: 200_000,
        spanning: 100_000,
        pages: 1 << 20,
    };
    /// For blocks that are all in memory: the caller bounds their segments.
    pub(super) const IN_MEMORY: Self =
        Self { causes: usize::MAX, causes_of_round: usize::MAX, ..Self::USUAL };
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Why an answer is incomplete: a limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// Parts of segments that were not joined with the next or the previous part.
    Parts { omitted: u64, limit: usize },
    /// Segments with a caller that count as if they had none.
    Causes { omitted: u64, limit: usize },
    /// Traces beyond those that the search compared may belong to the answer.
    Candidates { limit: usize },
    /// Segments with the requested request id whose traces were not examined.
    Requests { omitted: u64, limit: usize },
    /// Calls in several parts that were not examined; each of their parts with a wanted attribute counts.
    Spanning { omitted: u64, limit: usize },
    /// Calls of traces of earlier pages that were not noted.
    Pages { omitted: u64, limit: usize },
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parts { omitted, limit } => write!(
                f,
                "{omitted} parts of long calls were not joined, because more than {limit} parts wait for their next or \
                 previous part: times of calls that span several parts may be too short"
            ),
            Self::Causes { omitted, limit } => write!(
                f,
                "the callers of {omitted} segments were not searched, because a few traces together have more than {limit} \
                 segments with a caller: edges between services may be missing, and self times of HTTP clients may be too long"
            ),
            Self::Candidates { limit } => {
                write!(f, "only {limit} traces could be compared: other traces may belong to this answer")
            }
            Self::Requests { omitted, limit } => write!(
                f,
                "more than {limit} traces have this request id: {omitted} further segments with it were omitted"
            ),
            Self::Spanning { omitted, limit } => write!(
                f,
                "more than {limit} long calls in several parts have such an attribute: {omitted} further parts with it were \
                 omitted"
            ),
            Self::Pages { omitted, limit } => write!(
                f,
                "more than {limit} traces are on earlier pages: traces of {omitted} further calls may be in this answer again"
            ),
        }?;
        f.write_str("; narrow start and end")
    }
}
