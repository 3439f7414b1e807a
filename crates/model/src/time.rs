//! Time: nanoseconds UTC, ranges, units of durations, and the injected clock.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

/// Nanoseconds since 1970-01-01T00:00:00Z. The type covers the years 1677 to 2262.
pub type Timestamp = i64;

const SECOND_NS: i64 = 1_000_000_000;

/// Units of durations in text, each with its length in ns, in the order in which they may follow each other. PromQL and
/// the API share this table. They have different rules for the numbers before the units.
pub const DURATION_UNITS: [(&str, i64); 7] = [
    ("y", 365 * 86_400 * SECOND_NS),
    ("w", 7 * 86_400 * SECOND_NS),
    ("d", 86_400 * SECOND_NS),
    ("h", 3_600 * SECOND_NS),
    ("m", 60 * SECOND_NS),
    ("s", SECOND_NS),
    ("ms", SECOND_NS / 1_000),
];

/// A closed time range, `start..=end`, in nanoseconds UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeRange {
    pub start: Timestamp,
    pub end: Timestamp,
}

impl TimeRange {
    pub const ALL: Self = Self { start: i64::MIN, end: i64::MAX };
    /// Contains no timestamp. Its union with another range, by the smaller start and the larger end, is the other range.
    pub const EMPTY: Self = Self { start: i64::MAX, end: i64::MIN };

    pub const fn new(start: Timestamp, end: Timestamp) -> Self {
        Self { start, end }
    }

    pub const fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at <= self.end
    }

    pub const fn overlaps(&self, other: &Self) -> bool {
        self.start <= other.end && other.start <= self.end
    }

    pub const fn is_empty(&self) -> bool {
        self.start > self.end
    }
}

impl fmt::Display for TimeRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.start, self.end)
    }
}

/// Source of the current time. It is passed in, so that a test controls the time.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the Unix epoch. May jump in either direction.
    fn now(&self) -> Timestamp;
}

/// A clock that moves only when it is set.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub const fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.0.load(Ordering::SeqCst)
    }
}
