//! Keeps the summaries of calls that then expire (`kept/mod.rs`).
//!
//! Reads the calls of a day like a query: the summaries of chunks and roll-ups that are within an hour, and the calls of the
//! other chunks. Because readers and this task use the same read, deleted and unflushed calls need no own rules here.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tacho_chunk::ExecutionBlock;
use tacho_model::{Kind, Labels, SeriesId, TimeRange, Timestamp};

use super::Upkeep;
use super::forget::first;
use super::hours::Hours;
use crate::Result;
use crate::driver::{Order, Row, Scan};
use crate::kept::{self, Level, level_scan, until_row};
use crate::keys::{ChunkKey, chunk_scan, spans};
use crate::policy::{Retention, summaries_expired_before};
use crate::read::{Needed, Steps, Summed, SummedOf, read_memory, series::executions};
use crate::rollup::{day_of, range_of};

/// The series with calls or kept summaries that may be due.
///
/// # Errors
/// `Closed` when the selection ended early.
pub async fn series(upkeep: &Arc<Upkeep>) -> Result<Vec<SeriesId>> {
    let keeps = |retention: &Retention| retention.summaries.is_some();
    let mut due = upkeep.store.summed.read().series();
    if upkeep.store.options.policies.retention.iter().any(|rule| keeps(&rule.then)) {
        let all: Vec<(SeriesId, Arc<Labels>)> = {
            let index = upkeep.store.index.read();
            index.of_kind(Kind::Execution).map(|n| (index.id(n), index.labels_of(n))).collect()
        };
        // Patterns are not tried under the lock of the index.
        let policies = Arc::clone(&upkeep.store.options.policies);
        let select = move || -> Vec<SeriesId> {
            let kept =
                all.into_iter().filter(|(_, labels)| policies.keep(labels).as_ref().is_some_and(keeps));
            kept.map(|(id, _)| id).collect()
        };
        due.extend(upkeep.in_thread("selection of series", select).await?);
        due.sort_unstable();
        due.dedup();
    }
    Ok(due)
}

/// Keeps the summaries of the next day of a series, if its calls are older than their retention. Returns the number of bytes
/// written; `None` if no day is due.
///
/// # Errors
/// The error of the driver. The calls of the day then stay.
pub async fn keep_next(upkeep: &Arc<Upkeep>, series: SeriesId) -> Result<Option<u64>> {
    let Some(retention) = retention(upkeep, series).filter(|retention| retention.summaries.is_some()) else {
        return Ok(None);
    };
    let until = upkeep.store.summed.read().until(series);
    let now = upkeep.store.clock.now();
    let first_kept = range_of(day_of(summaries_expired_before(Some(retention), now))).start;
    let end = range_of(day_of(retention.too_old_before(now))).start;
    let due = TimeRange::new(until, end.saturating_sub(1));
    let Some(day) = first_day(upkeep, series, due).await?.map(range_of) else { return Ok(None) };
    let before = upkeep.store.tombstones.read().ids();
    let (mut rows, next) = if day.end < first_kept {
        (Vec::new(), Some(first_kept))
    } else {
        day_rows(upkeep, series, day).await?
    };
    // Skips the days without calls, but never goes beyond the last chunk: the clock may be wrong, and later calls must not count
    // as expired.
    let until = match next.filter(|_| rows.is_empty()) {
        Some(next) => {
            let last =
                last_start(upkeep, series, due).await?.map_or(day.end, |last| range_of(day_of(last)).end);
            let next = range_of(day_of(next)).start;
            next.min(end).min(last.max(day.end).saturating_add(1)).max(day.end.saturating_add(1))
        }
        None => day.end.saturating_add(1),
    };
    let has_rows = !rows.is_empty();
    rows.push(until_row(series, until));
    let bytes = rows.iter().map(|row| row.value.len() as u64).sum();
    let _gate = upkeep.gate.read().await;
    if upkeep.store.tombstones.read().ids() != before {
        // The summaries may have calls that a deletion covers. The day is read again.
        return Ok(Some(0));
    }
    upkeep.store.driver.put_to_free(rows).await?;
    upkeep.store.summed.write().set(series, until);
    upkeep.counts.days_kept.add(u64::from(has_rows));
    Ok(Some(bytes))
}

fn retention(upkeep: &Upkeep, series: SeriesId) -> Option<Retention> {
    let labels = upkeep.store.index.read().labels(series)?;
    upkeep.store.options.policies.keep(&labels)
}

/// The first day with calls in a range, in the driver or in memory. Of a segment that continues from an earlier day, the first
/// day of the range counts.
async fn first_day(upkeep: &Upkeep, series: SeriesId, range: TimeRange) -> Result<Option<i64>> {
    if range.is_empty() {
        return Ok(None);
    }
    let reader = &upkeep.store.reader;
    let in_memory = read_memory(reader, |generation| {
        let blocks = generation.executions.get(&series)?.read(range).into_iter();
        let first = |block: Arc<ExecutionBlock>| {
            block.rows().map(|row| row.start()).filter(|start| range.contains(*start)).min()
        };
        blocks.filter_map(first).min()
    });
    let mut first = in_memory.parts.into_iter().min();
    for span in spans(Kind::Execution) {
        let scan = chunk_scan(Kind::Execution, series, *span, range);
        if let Some(start) = start_of(upkeep, scan).await? {
            first = Some(first.map_or(start, |first| first.min(start)));
        }
    }
    Ok(first.map(|start| day_of(start.max(range.start))))
}

/// The start of the last chunk in a range. `None` also if the driver cannot scan in this order.
async fn last_start(upkeep: &Upkeep, series: SeriesId, range: TimeRange) -> Result<Option<Timestamp>> {
    let mut last = None;
    for span in spans(Kind::Execution).iter().filter(|_| upkeep.store.driver.capabilities().reverse) {
        let scan = chunk_scan(Kind::Execution, series, *span, range);
        last = last.max(start_of(upkeep, Scan { order: Order::Descending, ..scan }).await?);
    }
    Ok(last)
}

/// The start of the first chunk of a scan.
async fn start_of(upkeep: &Upkeep, scan: Scan) -> Result<Option<Timestamp>> {
    let row = first(&*upkeep.store.driver, scan).await?;
    let clustering = row.map(|row| row.map_or_else(|damaged| damaged.clustering, |row| row.clustering));
    Ok(clustering.map(|clustering| ChunkKey::decode(&clustering)).transpose()?.map(|key| key.start))
}

/// Deletes the expired kept summaries of a series.
///
/// # Errors
/// The error of the driver.
pub async fn expire(upkeep: &Upkeep, series: SeriesId) -> Result<()> {
    let before = summaries_expired_before(retention(upkeep, series), upkeep.store.clock.now());
    let Some(last) = range_of(day_of(before)).start.checked_sub(1) else { return Ok(()) };
    let range = TimeRange::new(Timestamp::MIN, last);
    if upkeep.store.summed.read().has(series) && is_kept(upkeep, series, range).await? {
        upkeep.store.driver.delete(kept::delete_days(series, range).into()).await?;
    }
    Ok(())
}

/// Whether there is a kept summary in a range.
async fn is_kept(upkeep: &Upkeep, series: SeriesId, range: TimeRange) -> Result<bool> {
    for level in [Level::Day, Level::Hour] {
        if first(&*upkeep.store.driver, level_scan(series, level, range)).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The kept summaries of a day, and the start of a later segment that was seen. No summaries if the day has some already: then
/// the row with the end of the summed days was lost, and some calls of the day may have been deleted since.
async fn day_rows(
    upkeep: &Upkeep,
    series: SeriesId,
    day: TimeRange,
) -> Result<(Vec<Row>, Option<Timestamp>)> {
    if is_kept(upkeep, series, day).await? {
        return Ok((Vec::new(), None));
    }
    let hours = Mutex::new(Hours::new(day));
    let lock = || hours.lock().unwrap_or_else(PoisonError::into_inner);
    let accept = |summed: Result<Summed<'_>, String>| match summed {
        Ok(Summed { summary, of: SummedOf::Chunks(times) }) => lock().add_summary(summary, times),
        _ => false,
    };
    let add = |block: &ExecutionBlock| {
        lock().add_block(block);
        false
    };
    let steps: Steps<'_> = &|_, _| ();
    let (needed, room) = ((Needed::Unsummarized(&accept), steps), AtomicUsize::new(usize::MAX));
    let read = executions(&upkeep.store.reader, series, day, &room, needed, add).await?;
    let mut hours = hours.into_inner().unwrap_or_else(PoisonError::into_inner);
    let damages = read.damages;
    damages.named().iter().for_each(|damage| hours.lose(damage.range));
    if damages.more() > 0 {
        hours.lose(day);
    }
    if let Err(error) = damages.check() {
        tracing::warn!(%series, %error, "unreadable calls are missing in the kept summaries");
    }
    let next = hours.next();
    Ok((upkeep.in_thread("sum of summaries", move || hours.rows(series)).await?, next))
}
