//! Result of a read of samples: pieces of series, and the cost of the read.

use std::ops::AddAssign;

use tacho_chunk::{Aggregation, Summary, Times, ValueColumn};
use tacho_model::Sample;

use crate::damage::Damages;

#[derive(Clone, Debug, Default)]
pub struct SampleAnswer {
    /// One list for each requested series, in the order of the request. Pieces of a series ascend and do not overlap.
    pub series: Vec<Vec<Piece>>,
    /// How exact the samples of each series are, in the order of the request.
    pub exactness: Vec<Exactness>,
    pub report: ReadReport,
    /// Samples that are missing because they cannot be read.
    pub damages: Damages,
}

impl SampleAnswer {
    /// Summarised chunks contribute no samples.
    pub fn samples(&self) -> Vec<Sample> {
        self.series.iter().flatten().flat_map(Piece::samples).collect()
    }
}

#[derive(Clone, Debug)]
pub enum Piece {
    /// Samples of chunks or of memtables, within the requested range.
    Samples { times: Times, values: ValueColumn },
    /// Statistics of the series in one chunk. None of its values in the chunk is NaN, and their sum is finite. The chunk is
    /// inside one window of the query, and overlaps no other samples of the series.
    Summary(Summary),
}

impl Piece {
    /// Number of samples in this piece. A summary has none.
    pub fn len(&self) -> usize {
        match self {
            Self::Samples { values, .. } => values.len(),
            Self::Summary(_) => 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Samples { values, .. } if values.is_empty())
    }

    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        let parts = match self {
            Self::Samples { times, values } => Some(times.iter().zip(values.iter())),
            Self::Summary(_) => None,
        };
        parts.into_iter().flatten().map(|(at, value)| Sample { at, value })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Exactness {
    /// Upper bound of the difference between a stored time and the recorded time, ns.
    pub time_error_max: u64,
    /// Upper bound of the difference between a stored value and the recorded (or aggregated) value.
    pub value_error_max: f64,
    /// The aggregation with the longest step; `None` if no samples are aggregated.
    pub thinned: Option<Aggregation>,
}

impl Exactness {
    pub(crate) fn widen(&mut self, other: Self) {
        self.time_error_max = self.time_error_max.max(other.time_error_max);
        self.value_error_max = self.value_error_max.max(other.value_error_max);
        self.thinned = longest(self.thinned, other.thinned);
    }
}

/// Cost of a read. A chunk counts once, regardless of the number of its series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadReport {
    /// Chunks found. Each chunk is also counted as skipped, as answered from its statistics alone, or as decoded.
    pub chunks_seen: u64,
    pub chunks_skipped: u64,
    pub chunks_summarised: u64,
    pub chunks_decoded: u64,
    pub values_decoded: u64,
    pub bytes_read: u64,
    /// Bytes of the columns that chunks have for the answer, decoded or not: the times, and the values of the requested series.
    pub column_bytes: u64,
    /// Upper bound of the difference between a returned time and the recorded time, ns.
    pub time_error_max: u64,
    /// Upper bound of the difference between a returned value and the recorded value, in the unit of its series. For an
    /// aggregated value, this is the error bound that its chunk states.
    pub value_error_max: f64,
    /// The aggregation with the longest step among all values used.
    pub thinned: Option<Aggregation>,
}

/// The aggregation with the longer step.
pub fn longest(a: Option<Aggregation>, b: Option<Aggregation>) -> Option<Aggregation> {
    [a, b].into_iter().flatten().max_by_key(|aggregation| aggregation.step)
}

impl ReadReport {
    /// The report without the parts that depend on other series in the groups of the requested series. The other series lengthen
    /// the headers of chunks, and some chunks have only other series.
    #[must_use]
    pub const fn of_requested_series(self) -> Self {
        let chunks_seen = self.chunks_summarised + self.chunks_decoded;
        Self { chunks_seen, chunks_skipped: 0, bytes_read: self.column_bytes, ..self }
    }
}

impl AddAssign for ReadReport {
    fn add_assign(&mut self, other: Self) {
        self.chunks_seen += other.chunks_seen;
        self.chunks_skipped += other.chunks_skipped;
        self.chunks_summarised += other.chunks_summarised;
        self.chunks_decoded += other.chunks_decoded;
        self.values_decoded += other.values_decoded;
        self.bytes_read += other.bytes_read;
        self.column_bytes += other.column_bytes;
        self.time_error_max = self.time_error_max.max(other.time_error_max);
        self.value_error_max = self.value_error_max.max(other.value_error_max);
        self.thinned = longest(self.thinned, other.thinned);
    }
}
