//! The types of Tachograph: labels, series, samples, entries, executions, batches, limits.
//!
//! This crate has no async, no I/O, and does not read the system's clock. Timestamps are `i64` nanoseconds since the Unix
//! epoch, UTC, everywhere.

#![deny(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation))]

mod batch;
mod canonical;
mod execution;
mod families;
mod known;
mod labels;
pub mod limits;
mod matcher;
mod pattern;
mod random;
mod re2;
mod record;
mod time;
pub mod varint;
mod windows;

pub use batch::{Batch, EntrySeries, ExecutionSeries, SampleSeries};
pub use execution::{
    Attribute, AttributeValue, Carried, Event, EventKind, Operation, OperationIndex, OperationKind, Segment,
    SegmentError, SpanId, TraceId, mix64, unmix64,
};
pub use families::Families;
pub use known::{
    FindSeries, KNOWN_LABELS_BYTES_MAX, KnownSamples, KnownSeries, SpelledHead, Spelling, SpellingKeys,
};
pub use labels::{LabelError, Labels, SeriesId};
pub use matcher::{MatchOp, Matcher, MatcherError};
pub use pattern::{Candidates, PatternBudget, Rewrite};
pub use random::Random;
pub use record::{Body, Entry, Kind, Sample, Value, ValueType};
pub use time::{Clock, DURATION_UNITS, ManualClock, TimeRange, Timestamp};
pub use windows::Windows;

/// Label with the name of a series, as in Prometheus.
pub const NAME: &str = "__name__";
