//! What must be known about the samples of a window to compute a function?
//!
//! The digest of some samples can be joined with the digest of the samples that follow. Therefore overlapping windows
//! share work (`slide.rs`). For many functions, the summary in the header of a chunk ([`Summary`]) is enough to digest a chunk
//! that is completely within a window. The functions that read digests are in `functions/`.

use tacho_chunk::Summary;
use tacho_model::Timestamp;

use super::fold::{Fold, Neumaier};
use super::grid::seconds;
use super::series::Run;

pub trait Digest: Clone + Send {
    /// Whether the summaries of chunks are sufficient. If true, [`Digest::of_summary`] always returns a digest.
    const FROM_SUMMARIES: bool = false;

    fn of(run: &Run<'_>) -> Self;

    fn of_summary(_: &Summary) -> Option<Self> {
        None
    }

    /// Adds the digest of the samples that follow.
    fn join(&mut self, later: &Self);
}

/// Every fold of values is a digest; it ignores the times of the values.
impl<F: Fold + Send> Digest for F {
    const FROM_SUMMARIES: bool = F::FROM_SUMMARIES;

    fn of(run: &Run<'_>) -> Self {
        F::of(run.values)
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        F::of_summary(summary)
    }

    fn join(&mut self, later: &Self) {
        F::join(self, later);
    }
}

/// First and last sample, and the number of samples.
#[derive(Clone, Debug)]
pub struct Ends {
    pub first: (Timestamp, f64),
    pub last: (Timestamp, f64),
    pub count: usize,
}

impl Digest for Ends {
    const FROM_SUMMARIES: bool = true;

    fn of(run: &Run<'_>) -> Self {
        let (first, last) = run.ends();
        Self { first, last, count: run.values.len() }
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        let (first, last) = ((summary.start, summary.first), (summary.end, summary.last));
        Some(Self { first, last, count: summary.count })
    }

    fn join(&mut self, later: &Self) {
        self.last = later.last;
        self.count += later.count;
    }
}

/// Two digests of the same samples, for a function that needs both.
impl<A: Digest, B: Digest> Digest for (A, B) {
    const FROM_SUMMARIES: bool = A::FROM_SUMMARIES && B::FROM_SUMMARIES;

    fn of(run: &Run<'_>) -> Self {
        (A::of(run), B::of(run))
    }

    fn of_summary(summary: &Summary) -> Option<Self> {
        A::of_summary(summary).zip(B::of_summary(summary))
    }

    fn join(&mut self, later: &Self) {
        self.0.join(&later.0);
        self.1.join(&later.1);
    }
}

/// The ends of a counter and its resets.
#[derive(Clone, Debug)]
pub struct Counter {
    pub ends: Ends,
    /// Sum of the last values before the resets.
    pub lost: Neumaier,
    pub resets: usize,
}

impl Digest for Counter {
    fn of(run: &Run<'_>) -> Self {
        let (before, after) = (&run.values[..run.values.len() - 1], &run.values[1..]);
        // The compiler vectorises a loop that only counts the resets. Most counters never reset.
        let resets = before.iter().zip(after).map(|(before, after)| usize::from(after < before)).sum();
        let mut lost = Neumaier::default();
        if resets > 0 {
            let falls = before.iter().zip(after).filter(|(before, after)| after < before);
            falls.for_each(|(before, _)| lost.add(*before));
        }
        Self { ends: Ends::of(run), lost, resets }
    }

    fn join(&mut self, later: &Self) {
        if later.ends.first.1 < self.ends.last.1 {
            self.lost.add(self.ends.last.1);
            self.resets += 1;
        }
        self.lost.join(&later.lost);
        self.resets += later.resets;
        self.ends.join(&later.ends);
    }
}

/// Area under the line segments between samples, value * seconds.
#[derive(Clone, Debug)]
pub struct Area {
    pub ends: Ends,
    pub area: Neumaier,
}

impl Area {
    fn between(before: (Timestamp, f64), after: (Timestamp, f64)) -> f64 {
        // Average of both values. Large values do not overflow, and small values keep their last digit.
        seconds(after.0.saturating_sub(before.0)) * f64::midpoint(before.1, after.1)
    }
}

impl Digest for Area {
    fn of(run: &Run<'_>) -> Self {
        let mut area = Neumaier::default();
        run.iter().zip(run.iter().skip(1)).for_each(|(before, after)| area.add(Self::between(before, after)));
        Self { ends: Ends::of(run), area }
    }

    fn join(&mut self, later: &Self) {
        self.area.add(Self::between(self.ends.last, later.ends.first));
        self.area.join(&later.area);
        self.ends.join(&later.ends);
    }
}

/// Number of changes of the value.
#[derive(Clone, Debug)]
pub struct Changes {
    first: f64,
    last: f64,
    pub count: usize,
}

impl Changes {
    fn differ(before: f64, after: f64) -> bool {
        before != after && !(before.is_nan() && after.is_nan())
    }
}

impl Digest for Changes {
    fn of(run: &Run<'_>) -> Self {
        let pairs = run.values.iter().zip(&run.values[1..]);
        let count = pairs.filter(|(before, after)| Self::differ(**before, **after)).count();
        Self { first: run.values[0], last: run.values[run.values.len() - 1], count }
    }

    fn join(&mut self, later: &Self) {
        self.count += later.count + usize::from(Self::differ(self.last, later.first));
        self.last = later.last;
    }
}
