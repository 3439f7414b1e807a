//! What a read of samples answers: pieces of series, and what it took to find them.

use std::ops::AddAssign;

use tacho_chunk::{Aggregation, Summary, Times, ValueColumn};
use tacho_model::Sample;

use crate::damage::Damages;

/// Samples of several series.
#[derive(Clone, Debug, Default)]
pub struct SampleAnswer {
    /// In the order in which they were asked for. Pieces of a series ascend and do not overlap.
    pub series: Vec<Vec<Piece>>,
    pub report: ReadReport,
    /// Samples that should be among them and could not be read.
    pub damages: Damages,
}

impl SampleAnswer {
    /// The samples of all series one after the other; none of those that are summarised.
    pub fn samples(&self) -> Vec<Sample> {
        self.series.iter().flatten().flat_map(Piece::samples).collect()
    }
}

/// Some samples of one series.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Cut to the range that was asked for.
    Samples { times: Times, values: ValueColumn },
    /// Of a chunk that no window of the query cuts, without NaN, and with no other samples of the series among its own.
    Summary(Summary),
}

impl Piece {
    /// The samples one by one; none of a summary.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        let parts = match self {
            Self::Samples { times, values } => Some(times.iter().zip(values.iter())),
            Self::Summary(_) => None,
        };
        parts.into_iter().flatten().map(|(at, value)| Sample { at, value })
    }
}

/// What a read cost. A chunk is a row of the driver, whatever number of series it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadReport {
    /// Seen, and then skipped, answered from their statistics alone, or decoded.
    pub chunks_seen: u64,
    pub chunks_skipped: u64,
    pub chunks_summarised: u64,
    pub chunks_decoded: u64,
    pub values_decoded: u64,
    pub bytes_read: u64,
    /// By how much a time may differ from the one that was recorded, ns: the largest of all that was used.
    pub time_error_max: u64,
    /// By how much a value may differ, in the unit of its series: the largest of all that was used. Where values stand for
    /// several that were recorded, from what they say of these.
    pub value_error_max: f64,
    /// Values that stand for all of a step of time: the longest step of all that was used.
    pub thinned: Option<Aggregation>,
}

/// The one with the longer step.
pub fn longest(a: Option<Aggregation>, b: Option<Aggregation>) -> Option<Aggregation> {
    [a, b].into_iter().flatten().max_by_key(|aggregation| aggregation.step)
}

impl AddAssign for ReadReport {
    fn add_assign(&mut self, other: Self) {
        self.chunks_seen += other.chunks_seen;
        self.chunks_skipped += other.chunks_skipped;
        self.chunks_summarised += other.chunks_summarised;
        self.chunks_decoded += other.chunks_decoded;
        self.values_decoded += other.values_decoded;
        self.bytes_read += other.bytes_read;
        self.time_error_max = self.time_error_max.max(other.time_error_max);
        self.value_error_max = self.value_error_max.max(other.value_error_max);
        self.thinned = longest(self.thinned, other.thinned);
    }
}
