//! Detects files whose times were probably read in the wrong unit: all times are before 1990.

use jiff::Timestamp as Moment;
use serde::{Deserialize, Serialize};
use tacho_ingest::time_text::{TimeFormat, Unit};
use tacho_model::{Batch, Timestamp};

/// 1990-01-01T00:00:00Z. Imported measurements are rarely older.
const EARLY_END: Timestamp = 631_152_000_000_000_000;

/// The unit in which numeric times were read, and the way to set another unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The unit in ns. `None` when it differs between rows.
    pub ns: Option<i64>,
    /// The option that sets the unit. For JSON lines, the name of the member sets it.
    pub remedy: &'static str,
}

/// The first timestamp in a file, and whether any of its timestamps is in 1990 or later.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Early {
    first: Option<Timestamp>,
    late: bool,
}

impl Counted {
    /// The unit of this format. `None` when times are texts, which have no unit.
    pub const fn by(format: &TimeFormat) -> Option<Self> {
        match format {
            TimeFormat::Epoch(unit) => {
                Some(Self::of(*unit, "--time-format epoch, epoch-ms, epoch-us or epoch-ns"))
            }
            TimeFormat::Iso | TimeFormat::Pattern(_) => None,
        }
    }

    pub const fn of(unit: Unit, remedy: &'static str) -> Self {
        Self { ns: Some(unit.nanoseconds()), remedy }
    }

    /// The part of a message `, which is 1700000000 read as ns`.
    fn describe(self, at: Timestamp) -> String {
        let Some(ns) = self.ns else { return String::new() };
        let name = match ns {
            1 => "ns",
            1_000 => "us",
            1_000_000 => "ms",
            1_000_000_000 => "s",
            60_000_000_000 => "m",
            _ => "h",
        };
        format!(", which is {} read as {name}", at / ns)
    }
}

impl Early {
    /// Checks the times of a batch. `now` is the time of records without a time.
    pub fn see(&mut self, batch: &Batch, now: Timestamp) {
        if self.late {
            return;
        }
        let samples = batch.samples.iter().flat_map(|series| series.samples.iter().map(|sample| sample.at));
        let entries = batch.entries.iter().flat_map(|series| series.entries.iter().map(|entry| entry.at));
        for at in samples.chain(entries).filter(|at| *at != now) {
            self.first.get_or_insert(at);
            self.late = at >= EARLY_END;
            if self.late {
                return;
            }
        }
    }

    /// The warning at the end of the file, if all times are early.
    pub fn doubt(&self, counted: Counted) -> Option<String> {
        let at = self.first.filter(|_| !self.late)?;
        let moment = Moment::from_nanosecond(at.into()).map_or_else(|_| at.to_string(), |at| at.to_string());
        let (said, remedy) = (counted.describe(at), counted.remedy);
        Some(format!(
            "all its times are before 1990: the first is {moment}{said}; {remedy} sets the unit of numbers"
        ))
    }
}
