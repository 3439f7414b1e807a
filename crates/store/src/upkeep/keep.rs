//! Keeps the summaries of calls that then expire (`kept/mod.rs`).
//!
//! Reads the calls of a day like a query: the summaries of chunks and roll-ups that are within an hour, and the calls of the
//! other chunks. Because readers and this task use the same read, masked and unflushed calls need no own rules here.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::TryStreamExt;
use tacho_chunk::{CallSummary, ExecutionBlock, RowRef};
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::Upkeep;
use crate::driver::{Delete, Row, Scan};
use crate::kept::{self, KeptKey, Level, hour_of, level_scan, until_row};
use crate::keys::{ChunkKey, chunk_scan, spans};
use crate::policy::Policy;
use crate::read::{Needed, Steps, Summed, series::executions};
use crate::rollup::{day_of, range_of};
use crate::{Error, ErrorKind, Result};

/// Summaries of an hour that are in memory before they are added up.
const SUMMARIES: usize = 64;
/// Limit on the kept summaries of an hour. An hour has more than a few only if its calls exceed the limits `SUMMARY_*_MAX`.
const SUMMARIES_OF_HOUR_MAX: usize = 1_024;
/// Segments that last longer than this have a summary of their own. A sum over a longer time has slots of more than a minute.
const LONG_NS: i64 = 2 * 3_600 * 1_000_000_000;
const HOUR_NS: i64 = 3_600 * 1_000_000_000;

/// The series with calls that may be due.
pub fn series(upkeep: &Upkeep) -> Vec<SeriesId> {
    let policies = &upkeep.store.options.policies;
    let summed = upkeep.store.summed.read();
    if summed.is_empty() && policies.retention.iter().all(|rule| rule.then.summaries.is_none()) {
        return Vec::new();
    }
    let index = upkeep.store.index.read();
    let all = index.of_kind(Kind::Execution).map(|number| (index.id(number), index.labels_of(number)));
    let is_due = |policy: Policy| policy.retention.is_some_and(|retention| retention.summaries.is_some());
    let due = all.filter(|(id, labels)| summed.has(*id) || is_due(policies.retention(labels, None)));
    due.map(|(id, _)| id).collect()
}

/// Keeps the summaries of the next day of a series, if its calls are older than their retention. Deletes kept summaries that are
/// expired. Returns whether more days may be due, and the bytes written.
///
/// # Errors
/// The error of the driver. The calls of the day then stay.
pub async fn keep_next(upkeep: &Arc<Upkeep>, series: SeriesId) -> Result<(bool, u64)> {
    let Some(labels) = upkeep.store.index.read().labels(series) else { return Ok((false, 0)) };
    let until = upkeep.store.summed.read().until(series);
    let policy = upkeep.store.options.policies.retention(&labels, Some(until));
    let now = upkeep.store.clock.now();
    let first_kept = day_of(policy.summaries_expired_before(now));
    expire(upkeep, series, range_of(first_kept).start).await?;
    let Some(retention) = policy.retention.filter(|retention| retention.summaries.is_some()) else {
        return Ok((false, 0));
    };
    let end = range_of(day_of(now.saturating_sub_unsigned(retention.keep))).start;
    let Some(day) = first_day(upkeep, series, TimeRange::new(until, end.saturating_sub(1))).await? else {
        return Ok((false, 0));
    };
    // No deletion takes effect between the read of the calls and the put of their summaries.
    let _gate = upkeep.gate.read().await;
    let (mut rows, until) = if day < first_kept {
        (Vec::new(), end.min(range_of(first_kept).start))
    } else {
        (day_rows(upkeep, series, day).await?, range_of(day).end.saturating_add(1))
    };
    rows.push(until_row(series, until));
    let bytes = rows.iter().map(|row| row.value.len() as u64).sum();
    upkeep.store.driver.put_to_free(rows).await?;
    upkeep.store.summed.write().set(series, until);
    upkeep.counts.days_kept.add(u64::from(day >= first_kept));
    Ok((true, bytes))
}

/// The first day with a chunk in a range.
async fn first_day(upkeep: &Upkeep, series: SeriesId, range: TimeRange) -> Result<Option<i64>> {
    let mut first: Option<Timestamp> = None;
    if range.is_empty() {
        return Ok(None);
    }
    for span in spans(Kind::Execution) {
        let scan = Scan { limit: Some(1), ..chunk_scan(Kind::Execution, series, *span, range) };
        let row = upkeep.store.driver.scan(scan).await?.try_next().await?;
        let clustering = row.map(|row| row.map_or_else(|damaged| damaged.clustering, |row| row.clustering));
        if let Some(key) = clustering.map(|clustering| ChunkKey::decode(&clustering)).transpose()? {
            first = Some(first.map_or(key.start, |first| first.min(key.start)));
        }
    }
    Ok(first.map(|start| day_of(start.max(range.start))))
}

/// Deletes the kept summaries before this time, which is the start of a day.
async fn expire(upkeep: &Upkeep, series: SeriesId, before: Timestamp) -> Result<()> {
    let Some(last) = before.checked_sub(1) else { return Ok(()) };
    let range = TimeRange::new(Timestamp::MIN, last);
    if upkeep.store.summed.read().has(series) && is_kept(upkeep, series, range).await? {
        upkeep.store.driver.delete(Vec::<Delete>::from(kept::delete_days(series, range))).await?;
    }
    Ok(())
}

/// Whether there is a kept summary in a range.
async fn is_kept(upkeep: &Upkeep, series: SeriesId, range: TimeRange) -> Result<bool> {
    for level in [Level::Day, Level::Hour] {
        let scan = Scan { limit: Some(1), ..level_scan(series, level, range) };
        if upkeep.store.driver.scan(scan).await?.try_next().await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The kept summaries of a day. None if the day has some already: then the row with the end of the summed days was lost, and some
/// calls of the day may have been deleted since.
async fn day_rows(upkeep: &Arc<Upkeep>, series: SeriesId, day: i64) -> Result<Vec<Row>> {
    let range = range_of(day);
    if is_kept(upkeep, series, range).await? {
        return Ok(Vec::new());
    }
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    let mut start = range.start;
    while start < range.end {
        let summaries = of_hour(upkeep, series, hour_of(start)).await?;
        for (number, summary) in (0..).zip(&summaries) {
            rows.push(kept::row(series, &KeptKey { level: Level::Hour, start, number }, summary));
        }
        all.extend(summaries);
        start = start.saturating_add(HOUR_NS);
    }
    let add = move || CallSummary::merged(&all.iter().collect::<Vec<_>>());
    // Without a summary of the day, readers add those of its hours.
    if let Some(summary) = in_thread(upkeep, add).await? {
        let key = KeptKey { level: Level::Day, start: range.start, number: 0 };
        rows.push(kept::row(series, &key, &summary));
    }
    Ok(rows)
}

async fn in_thread<T: Send + 'static>(
    upkeep: &Upkeep,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let ended = |e| Error::new(ErrorKind::Closed, "sum of summaries did not end").caused_by(e);
    upkeep.store.options.threads.start(work).join().await.map_err(ended)
}

/// The summaries of the calls of all segments that start in an hour.
async fn of_hour(upkeep: &Upkeep, series: SeriesId, hour: TimeRange) -> Result<Vec<CallSummary>> {
    let sums = Mutex::new(Sums::new(hour));
    let lock = || sums.lock().unwrap_or_else(PoisonError::into_inner);
    let accept = |summed: Result<Summed<'_>, String>| {
        let Ok(Summed { summary, .. }) = summed else { return false };
        // A reader needs what other summaries lack. Their calls have it.
        let is_enough = summary.is_by_minute() && summary.links.is_some();
        if is_enough {
            lock().push(summary.clone());
        }
        is_enough
    };
    let add = |block: &ExecutionBlock| {
        lock().add(block);
        false
    };
    let steps: Steps<'_> = &|_, _| ();
    let needed = (Needed::Unsummarized(&accept), steps);
    let room = AtomicUsize::new(usize::MAX);
    let read = executions(&upkeep.store.reader, series, hour, &room, needed, add).await?;
    if let Err(error) = read.damages.check() {
        tracing::warn!(%series, %error, "unreadable calls are missing in the kept summaries");
    }
    let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
    in_thread(upkeep, move || sums.finish(series)).await
}

/// The summaries of an hour. Those without links, and those with slots of more than a minute, are not added to the others,
/// because the sum would lack links or minutes.
struct Sums {
    hour: TimeRange,
    by_form: BTreeMap<(bool, bool), Vec<CallSummary>>,
    /// Segments whose calls exceed the limits of a summary.
    omitted: usize,
}

impl Sums {
    const fn new(hour: TimeRange) -> Self {
        Self { hour, by_form: BTreeMap::new(), omitted: 0 }
    }

    fn push(&mut self, summary: CallSummary) {
        let form = (summary.links.is_some(), summary.is_by_minute());
        let of_form = self.by_form.entry(form).or_default();
        of_form.push(summary);
        if of_form.len().is_multiple_of(SUMMARIES) {
            reduce(of_form);
        }
    }

    /// Adds the segments of a block that start in the hour.
    fn add(&mut self, block: &ExecutionBlock) {
        let is_long = |row: &RowRef<'_>| row.range().end.saturating_sub(self.hour.end) > LONG_NS;
        let is_usual = |row: &RowRef<'_>| self.hour.contains(row.start()) && !is_long(row);
        if block.rows().all(|row| is_usual(&row)) {
            return self.add_all(block);
        }
        let (mut usual, mut long) = (ExecutionBlock::new(), Vec::new());
        for row in block.rows().filter(|row| self.hour.contains(row.start())) {
            if is_long(&row) {
                let mut alone = ExecutionBlock::new();
                alone.push_row(row);
                long.push(alone);
            } else {
                usual.push_row(row);
            }
        }
        for block in long.iter().chain([&usual]).filter(|block| !block.is_empty()) {
            self.add_all(block);
        }
    }

    fn add_all(&mut self, block: &ExecutionBlock) {
        if let Some(summary) = CallSummary::by_minute(block) {
            return self.push(summary);
        }
        if block.len() < 2 {
            self.omitted += block.len();
            return;
        }
        let (mut first, mut second) = (ExecutionBlock::new(), ExecutionBlock::new());
        for (at, row) in block.rows().enumerate() {
            if at < block.len() / 2 { first.push_row(row) } else { second.push_row(row) }
        }
        self.add_all(&first);
        self.add_all(&second);
    }

    fn finish(mut self, series: SeriesId) -> Vec<CallSummary> {
        self.by_form.values_mut().for_each(reduce);
        let mut all: Vec<CallSummary> = self.by_form.into_values().flatten().collect();
        let surplus = all.len().saturating_sub(SUMMARIES_OF_HOUR_MAX);
        all.truncate(SUMMARIES_OF_HOUR_MAX);
        if self.omitted > 0 || surplus > 0 {
            let Self { omitted, hour, .. } = self;
            tracing::warn!(%series, %hour, segments = omitted, summaries = surplus, "kept summaries are not complete");
        }
        all
    }
}

/// Adds up summaries. The result has several if their sum exceeds a limit.
fn reduce(summaries: &mut Vec<CallSummary>) {
    if summaries.len() < 2 {
        return;
    }
    if let Some(sum) = CallSummary::merged(&summaries.iter().collect::<Vec<_>>()) {
        *summaries = vec![sum];
        return;
    }
    let mut rest = summaries.split_off(summaries.len() / 2);
    reduce(summaries);
    reduce(&mut rest);
    summaries.append(&mut rest);
}
