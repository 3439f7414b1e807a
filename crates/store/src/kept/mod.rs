//! Kept summaries: the summaries of calls that have expired.
//!
//! A rule of retention may keep the summaries of calls longer than the calls (`policy.rs`). The calls of a series then expire by
//! whole days (UTC). Before the calls of a day expire, the upkeep stores their summaries: for each hour, and for the whole day.
//!
//! ```text
//!   days    ──[ kept summaries ]──[ kept summaries ]──┃──[ calls ]──[ calls ]──
//!                                              summed until
//! ```
//! The upkeep puts the summaries of a day and the new end of the summed days in one `put`. Readers then ignore the calls before
//! this time, and use the kept summaries. So each call counts once, also after a crash. A call belongs to the hour in which its
//! segment starts.
//!
//! ```text
//!   row.rs  the rows, as bytes
//! ```
//! Path of one record. Before: `upkeep/keep.rs` adds its call to a kept summary. After: `read/kept.rs` reads the kept summary.

mod row;

use std::collections::HashMap;

use tacho_model::{SeriesId, Timestamp};

pub use row::{
    HOUR_NS, KeptKey, Level, UNTIL, all_scan, decode_until, delete_days, delete_until, deleted, hour_of,
    level_scan, row, series_of, summary, until_row, until_scan,
};

/// The end of the summed days of each series that has one. The calls before this time have expired.
#[derive(Debug, Default)]
pub struct SummedDays(HashMap<SeriesId, Timestamp>);

impl SummedDays {
    /// [`Timestamp::MIN`] for a series without summed days.
    pub fn until(&self, series: SeriesId) -> Timestamp {
        self.0.get(&series).copied().unwrap_or(Timestamp::MIN)
    }

    pub fn has(&self, series: SeriesId) -> bool {
        self.0.contains_key(&series)
    }

    pub fn set(&mut self, series: SeriesId, until: Timestamp) {
        self.0.insert(series, until);
    }

    pub fn remove(&mut self, series: SeriesId) {
        self.0.remove(&series);
    }

    pub fn series(&self) -> Vec<SeriesId> {
        self.0.keys().copied().collect()
    }
}
