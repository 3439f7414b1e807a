//! Adds up the calls of a day, hour by hour, to kept summaries.

use std::collections::BTreeMap;

use tacho_chunk::{CallSummary, ExecutionBlock, RowRef};
use tacho_model::{SeriesId, TimeRange, Timestamp};

use crate::driver::Row;
use crate::kept::{self, HOUR_NS, KeptKey, Level, hour_of};

/// Summaries of an hour that are in memory before they are added up.
const SUMMARIES: usize = 64;
/// Limit on the summaries of an hour. An hour has more than a few only if its calls exceed the limits `SUMMARY_*_MAX`.
const SUMMARIES_MAX: usize = 256;
/// Limit on the parts (cells, points and others) of all summaries of a day in memory, some 200 MB. Busy services have 100,000.
const PARTS_MAX: usize = 1 << 21;
/// The sum of summaries over more than four hours has slots of more than a minute. So segments that began, or had open calls,
/// long before their hour, or that end long after it, have summaries of their own.
const BEFORE_NS: i64 = 50 * HOUR_NS / 60;
const AFTER_NS: i64 = 2 * HOUR_NS;

/// The summaries of a day in memory.
pub struct Hours {
    day: TimeRange,
    /// By the start of the hour.
    hours: BTreeMap<Timestamp, Hour>,
    /// The first segment after the day.
    next: Option<Timestamp>,
    /// Parts of the summaries of all hours.
    parts: usize,
}

/// Summaries with the same form can be added without a loss: segments within a few hours or not, with links or without.
type Form = (bool, bool);

#[derive(Default)]
struct Hour {
    by_form: BTreeMap<Form, Sums>,
    lacks_calls: bool,
}

#[derive(Default)]
struct Sums {
    summaries: Vec<CallSummary>,
    /// The sum exceeds a limit, so it is not tried again.
    is_full: bool,
}

fn parts(summary: &CallSummary) -> usize {
    let buckets: usize = summary.cells.iter().map(|cell| cell.buckets.len()).sum();
    let requests: usize = summary.requests.iter().map(|slot| slot.buckets.len()).sum();
    summary.cells.len()
        + summary.points.len()
        + summary.links.as_ref().map_or(0, Vec::len)
        + buckets
        + requests
}

impl Hours {
    pub const fn new(day: TimeRange) -> Self {
        Self { day, hours: BTreeMap::new(), next: None, parts: 0 }
    }

    /// The first segment after the day that was seen.
    pub const fn next(&self) -> Option<Timestamp> {
        self.next
    }

    /// Adds the summary of chunks with these times, if they are within an hour, and it has all figures that readers need.
    pub fn add_summary(&mut self, summary: &CallSummary, times: TimeRange) -> bool {
        let hour = hour_of(times.start);
        let is_within = hour.contains(times.end) && self.day.contains(times.start);
        let is_added = is_within && summary.is_by_minute() && summary.links.is_some();
        if is_added {
            self.push(hour.start, (false, true), summary.clone());
        }
        is_added
    }

    /// Adds the segments of a block that start on the day.
    pub fn add_block(&mut self, block: &ExecutionBlock) {
        let mut blocks: BTreeMap<(Timestamp, bool), ExecutionBlock> = BTreeMap::new();
        for row in block.rows() {
            let start = row.start();
            if self.day.contains(start) {
                let hour = hour_of(start);
                blocks.entry((hour.start, is_long(&row, hour))).or_default().push_row(row);
            } else if start > self.day.end {
                self.next = Some(self.next.map_or(start, |next| next.min(start)));
            }
        }
        for ((hour, is_long), block) in &blocks {
            self.add_rows(*hour, *is_long, block);
        }
    }

    fn add_rows(&mut self, hour: Timestamp, is_long: bool, block: &ExecutionBlock) {
        let summary = if is_long { CallSummary::of(block) } else { CallSummary::by_minute(block) };
        // A single segment with very many operations may have a summary only in another form.
        let summary = summary.or_else(|| (block.len() < 2).then(|| CallSummary::of(block))?);
        if let Some(summary) = summary {
            let form = (is_long || !summary.is_by_minute(), summary.links.is_some());
            return self.push(hour, form, summary);
        }
        if block.len() < 2 {
            self.hours.entry(hour).or_default().lacks_calls = true;
            return;
        }
        let (mut first, mut second) = (ExecutionBlock::new(), ExecutionBlock::new());
        for (at, row) in block.rows().enumerate() {
            if at < block.len() / 2 { first.push_row(row) } else { second.push_row(row) }
        }
        self.add_rows(hour, is_long, &first);
        self.add_rows(hour, is_long, &second);
    }

    fn push(&mut self, hour: Timestamp, form: Form, summary: CallSummary) {
        let Self { hours, parts: all, .. } = self;
        let hour = hours.entry(hour).or_default();
        let sums = hour.by_form.entry(form).or_default();
        let added = parts(&summary);
        if sums.summaries.len() >= SUMMARIES_MAX || all.saturating_add(added) > PARTS_MAX {
            hour.lacks_calls = true;
            return;
        }
        *all += added;
        sums.summaries.push(summary);
        if sums.summaries.len() >= SUMMARIES && !sums.is_full {
            let before: usize = sums.summaries.iter().map(parts).sum();
            sums.reduce();
            *all = *all - before + sums.summaries.iter().map(parts).sum::<usize>();
        }
    }

    /// Notes that calls in this range could not be read.
    pub fn lose(&mut self, range: TimeRange) {
        let overlapping = self.hours.iter_mut().filter(|(start, _)| hour_of(**start).overlaps(&range));
        overlapping.for_each(|(_, hour)| hour.lacks_calls = true);
    }

    /// The rows of the hours and of the day. Takes long.
    pub fn rows(mut self, series: SeriesId) -> Vec<Row> {
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        let lacks_calls = self.hours.values().any(|hour| hour.lacks_calls);
        let mut is_full = false;
        for (start, hour) in &mut self.hours {
            hour.by_form.values_mut().for_each(Sums::reduce);
            is_full |= hour.by_form.values().any(|sums| sums.is_full);
            let summaries = hour.by_form.values().flat_map(|sums| &sums.summaries);
            for (number, summary) in (0..).zip(summaries) {
                let key = KeptKey { level: Level::Hour, start: *start, number };
                rows.push(kept::row(series, &key, summary, hour.lacks_calls));
                all.push(summary);
            }
        }
        // Without a summary of the day, readers add those of its hours.
        if let Some(summary) = CallSummary::merged(&all).filter(|_| !is_full) {
            let key = KeptKey { level: Level::Day, start: self.day.start, number: 0 };
            rows.push(kept::row(series, &key, &summary, lacks_calls));
        }
        if lacks_calls {
            let day = self.day;
            tracing::warn!(%series, %day, "calls are missing in the kept summaries: unreadable, or above a limit of summaries");
        }
        rows
    }
}

impl Sums {
    /// Adds the summaries up. Several are left if their sum exceeds a limit.
    fn reduce(&mut self) {
        if self.is_full || self.summaries.len() < 2 {
            return;
        }
        match CallSummary::merged(&self.summaries.iter().collect::<Vec<_>>()) {
            Some(sum) => self.summaries = vec![sum],
            None => self.is_full = true,
        }
    }
}

/// Whether the events of a segment, or the starts of its calls, are far from the hour.
fn is_long(row: &RowRef<'_>, hour: TimeRange) -> bool {
    let range = row.range();
    hour.start.saturating_sub(range.start) > BEFORE_NS || range.end.saturating_sub(hour.end) > AFTER_NS
}
