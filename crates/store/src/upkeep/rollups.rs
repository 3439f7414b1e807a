//! Writes roll-ups: sums of the summaries of many chunks (`rollup/`). Deletes roll-ups that are no longer valid.
//!
//! Work is done for one series and one day at a time, after a flush or a merge has changed the chunks of that day. A failure is
//! not repeated at once: without a roll-up, readers use the summaries of the chunks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tacho_chunk::{CallSummary, Chunk, ExecutionBlock};
use tacho_model::{Kind, SeriesId, TimeRange, Timestamp};

use super::Upkeep;
use super::snapshots::Place;
use crate::driver::{Cut, Delete, Driver, Row, Scan, Scanned, Table};
use crate::group::row::{Replacement, Split, split_value};
use crate::keys::{ChunkKey, Span, chunk_place, chunk_row_scan, chunk_scan};
use crate::read::{row_head, row_summary};
use crate::rollup::{
    self, DAY_ITEMS_MIN, DAY_LEVEL, FAN, Item, Plan, RolledChunk, Rollup, RollupKey, day_of, heads, plan,
    range_of, series_of, survey,
};
use crate::{ErrorKind, Result};

/// Time from the end of a day to its roll-up. Until then, most late calls of the day have arrived.
const ENDED_AFTER: Duration = Duration::from_secs(3_600);

/// A series and a day (UTC), since the Unix epoch.
type SeriesDay = (SeriesId, i64);

/// Days whose chunks have changed since their roll-ups were written.
#[derive(Debug, Default)]
pub struct ChangedDays(Mutex<Days>);

#[derive(Debug, Default)]
struct Days {
    /// Days with chunks of a generation that is not completely flushed. A repeated flush may write these chunks differently.
    held: BTreeSet<SeriesDay>,
    /// In the order in which they were noted, so that each gets its turn.
    ready: VecDeque<SeriesDay>,
    is_ready: HashSet<SeriesDay>,
    /// Days that have not ended, or whose roll-ups were not written. They are ready again when they have ended.
    open: BTreeSet<SeriesDay>,
}

impl Days {
    fn add(&mut self, days: impl IntoIterator<Item = SeriesDay>) {
        for day in days {
            if self.is_ready.insert(day) {
                self.ready.push_back(day);
            }
        }
    }
}

impl ChangedDays {
    fn lock(&self) -> MutexGuard<'_, Days> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports that a flush has put these rows into the Chunks table. Their days are held until [`Self::release`].
    pub fn note(&self, rows: &[Row]) {
        let days: Vec<SeriesDay> =
            rows.iter().filter_map(|row| day_of_row(&row.partition, &row.clustering)).collect();
        self.lock().held.extend(days);
    }

    /// Makes all held days ready. Called when a flush has ended.
    pub fn release(&self) {
        let days = &mut *self.lock();
        let held = std::mem::take(&mut days.held);
        days.add(held);
    }

    /// Reports that a merge has put or replaced these rows.
    pub fn note_merged(&self, places: &[Place]) {
        let day = |(partition, clustering): &Place| day_of_row(partition, clustering);
        let days: Vec<SeriesDay> = places.iter().filter_map(day).collect();
        self.lock().add(days);
    }

    /// Reports that a roll-up is damaged. Returns whether the row is a roll-up.
    pub fn note_damaged(&self, partition: &[u8], clustering: &[u8]) -> bool {
        let Some(series) = series_of(partition) else { return false };
        self.lock().add(RollupKey::decode(clustering).ok().map(|key| (series, key.day)));
        true
    }

    /// The number of ready days.
    pub fn ready(&self) -> usize {
        self.lock().ready.len()
    }

    fn take(&self) -> Option<SeriesDay> {
        let days = &mut *self.lock();
        let day = days.ready.pop_front()?;
        days.is_ready.remove(&day);
        Some(day)
    }

    /// Makes the open days ready that have ended now.
    pub fn close(&self, now: Timestamp) {
        let days = &mut *self.lock();
        let ended: Vec<SeriesDay> =
            days.open.iter().filter(|(_, day)| has_ended(*day, now)).copied().collect();
        days.open.retain(|day| !ended.contains(day));
        days.add(ended);
    }

    /// Makes the days of these series ready that have enough chunks, and no roll-up of the whole day; the newest first. Called
    /// once, because an earlier process may have left work.
    ///
    /// # Errors
    /// The driver's error.
    pub async fn note_all(&self, driver: &dyn Driver, all: Vec<SeriesId>) -> Result<()> {
        let mut found = Vec::new();
        for series in all {
            let mut days: BTreeMap<i64, usize> = BTreeMap::new();
            let chunks = chunk_scan(Kind::Execution, series, Span::Short, TimeRange::ALL);
            let mut count = |clustering: &[u8]| {
                let day = ChunkKey::decode(clustering).ok().map(|key| day_of(key.start));
                day.into_iter().for_each(|day| *days.entry(day).or_default() += 1);
            };
            driver.keys_of(&chunks, &mut count).await?;
            let mut remove = |clustering: &[u8]| {
                let key = RollupKey::decode(clustering).ok().filter(|key| key.level == DAY_LEVEL);
                if let Some(key) = key {
                    days.remove(&key.day);
                }
            };
            driver.keys_of(&Scan::all(Table::Meta, rollup::partition(series)), &mut remove).await?;
            found.extend(
                days.into_iter().filter(|(_, chunks)| *chunks >= DAY_ITEMS_MIN).map(|(day, _)| (series, day)),
            );
            tokio::task::yield_now().await;
        }
        found.sort_unstable_by_key(|(_, day)| Reverse(*day));
        self.lock().add(found);
        Ok(())
    }
}

fn day_of_row(partition: &[u8], clustering: &[u8]) -> Option<SeriesDay> {
    let (kind, series) = chunk_place(partition)?;
    let key = ChunkKey::decode(clustering).ok()?;
    (kind == Kind::Execution && key.span == Span::Short).then(|| (series, day_of(key.start)))
}

fn has_ended(day: i64, now: Timestamp) -> bool {
    let wait = i64::try_from(ENDED_AFTER.as_nanos()).unwrap_or(i64::MAX);
    range_of(day).end < now.saturating_sub(wait)
}

/// Writes the roll-ups of the next day that needs some, and returns the bytes that were read and written. `None` if there is no
/// such day.
pub async fn roll_up(upkeep: &Arc<Upkeep>) -> Option<Result<u64>> {
    let (series, day) = upkeep.store.inbox.days.take()?;
    let has_ended = has_ended(day, upkeep.store.clock.now());
    let result = roll_up_day(upkeep, series, day, has_ended).await;
    if !has_ended || result.is_err() {
        upkeep.store.inbox.days.lock().open.insert((series, day));
    }
    Some(result)
}

/// Roll-ups that are written without a pause. The rest of the day is ready again.
const WRITTEN_AT_ONCE: usize = 64;

async fn roll_up_day(upkeep: &Arc<Upkeep>, series: SeriesId, day: i64, has_ended: bool) -> Result<u64> {
    let (driver, days) = (&*upkeep.store.driver, &upkeep.store.inbox.days);
    let flushed = upkeep.store.progress.borrow().flushed;
    let range = range_of(day);
    let found = heads(driver, series, range).await?;
    let surveyed = survey(driver, series, range, found, |_, _| true, Arc::new(row_head), learn).await?;
    let Some(survey) = surveyed else { return Ok(0) };
    if survey.chunks.iter().any(|(chunk, _)| chunk.key.generation > flushed) {
        days.lock().held.insert((series, day));
        // If the flush has ended in the meantime, no later flush may end.
        if upkeep.store.progress.borrow().flushed > flushed {
            days.release();
        }
    }
    let is_of_day =
        |key: &ChunkKey| key.span == Span::Short && day_of(key.start) == day && key.generation <= flushed;
    let chunks = survey
        .chunks
        .into_iter()
        .filter(|(chunk, has_calls)| is_of_day(&chunk.key) && has_calls.unwrap_or(true));
    let mut chunks: Vec<RolledChunk> = chunks.map(|(chunk, _)| chunk).collect();
    let rollups = survey.rollups.into_iter().filter(|rollup| rollup.key.day == day);
    let (mut rollups, surplus) = one_of_day(rollups.collect());
    let stale = survey.stale.iter().chain(&surplus).map(|key| rollup::delete_row(series, key));
    let stale: Vec<Delete> = stale.collect();
    if !stale.is_empty() {
        driver.delete(stale).await?;
    }
    let (mut bytes, mut written) = (0, 0);
    loop {
        let plans = plan(day, has_ended, &chunks, &rollups);
        if plans.is_empty() {
            return Ok(bytes);
        }
        for plan in plans {
            if written == WRITTEN_AT_ONCE {
                days.lock().add([(series, day)]);
                return Ok(bytes);
            }
            let mut read = Summaries::default();
            for items in plan.items.chunks(FAN) {
                read.items(driver, series, items).await?;
            }
            bytes += read.bytes;
            let mut omitted = std::mem::take(&mut read.unusable);
            delete_rollups(driver, series, &omitted).await?;
            let built =
                if omitted.is_empty() { build(upkeep, series, plan.clone(), read).await? } else { None };
            let Some((row, rollup)) = built else {
                if omitted.is_empty() {
                    // All summaries can be read, but the sum exceeds a limit.
                    omitted.extend(plan.items);
                }
                tracing::debug!(%series, day, items = omitted.len(), "summaries cannot be added to a roll-up");
                chunks.retain(|chunk| !omitted.contains(&Item::Chunk(*chunk)));
                rollups.retain(|rollup| !omitted.contains(&Item::Rollup(rollup.key)));
                continue;
            };
            bytes += row.value.len() as u64;
            driver.put(vec![row]).await?;
            upkeep.counts.rollups.add(1);
            written += 1;
            if let Some(replaced) = plan.replaced {
                driver.delete(vec![rollup::delete_row(series, &replaced.encode())]).await?;
            }
            rollups.retain(|known| known.key != rollup.key && Some(known.key) != plan.replaced);
            rollups.push(rollup);
        }
    }
}

/// Deletes the roll-ups among these items, whose summaries cannot be read, so that they are written again.
async fn delete_rollups(driver: &dyn Driver, series: SeriesId, items: &HashSet<Item>) -> Result<()> {
    let key = |item: &Item| match item {
        Item::Rollup(key) => Some(rollup::delete_row(series, &key.encode())),
        Item::Chunk(_) => None,
    };
    let deletes: Vec<Delete> = items.iter().filter_map(key).collect();
    if deletes.is_empty() { Ok(()) } else { driver.delete(deletes).await }
}

/// Separates the roll-ups of the whole day that are smaller than another one: the delete of a replaced one has failed. Returns
/// the other roll-ups, and the keys of the separated ones.
fn one_of_day(rollups: Vec<Rollup>) -> (Vec<Rollup>, Vec<Vec<u8>>) {
    let of_day = rollups.iter().filter(|rollup| rollup.key.level == DAY_LEVEL);
    let largest = of_day.max_by_key(|rollup| rollup.chunks.len()).map(|rollup| rollup.key);
    let (kept, surplus): (Vec<Rollup>, Vec<Rollup>) =
        rollups.into_iter().partition(|rollup| rollup.key.level != DAY_LEVEL || Some(rollup.key) == largest);
    (kept, surplus.iter().map(|rollup| rollup.key.encode()).collect())
}

/// Whether a row has calls that can be rolled up. A merge may write a row without a chunk. Like for a reader, a damaged row
/// replaces no other row.
fn learn(row: Scanned<Cut>) -> Result<Option<(bool, Option<Replacement>, u64)>> {
    let damaged = (false, None, u64::MAX);
    let Ok(Cut { row, .. }) = row else { return Ok(Some(damaged)) };
    match split_value(&row.value) {
        Ok(Split { replacement, chunk, .. }) => {
            let merge = replacement.map_or(0, |replacement| replacement.merge);
            Ok(Some((!chunk.is_empty(), replacement, merge)))
        }
        Err(error) if error.kind() == ErrorKind::Version => Err(error),
        Err(_) => Ok(Some(damaged)),
    }
}

/// The summaries that a roll-up adds up.
#[derive(Default)]
struct Summaries {
    summaries: Vec<CallSummary>,
    range: Option<TimeRange>,
    /// Number of segments; 0 if that of a part is not known.
    segments: u64,
    unusable: HashSet<Item>,
    bytes: u64,
}

impl Summaries {
    fn add(&mut self, Part { summary, range, segments }: Part) {
        let is_known = segments > 0 && (self.segments > 0 || self.summaries.is_empty());
        self.segments = if is_known { self.segments.saturating_add(segments) } else { 0 };
        let whole = self
            .range
            .map_or(range, |known| TimeRange::new(known.start.min(range.start), known.end.max(range.end)));
        self.range = Some(whole);
        self.summaries.push(summary);
    }

    async fn items(&mut self, driver: &dyn Driver, series: SeriesId, items: &[Item]) -> Result<()> {
        let scan = |item: &Item| match item {
            Item::Chunk(chunk) => chunk_row_scan(Kind::Execution, series, &chunk.key),
            Item::Rollup(key) => rollup::row_scan(series, key),
        };
        let scans: Vec<Scan> = items.iter().map(scan).collect();
        let is_chunk: Vec<bool> = items.iter().map(|item| matches!(item, Item::Chunk(_))).collect();
        let parts = move |at: usize, front: &[u8]| {
            if is_chunk.get(at).copied().unwrap_or(false) { row_summary(at, front) } else { None }
        };
        let rows = driver.read_parts(scans, Arc::new(parts)).await?;
        for (item, rows) in items.iter().zip(rows) {
            tokio::task::yield_now().await;
            let Some(Ok(cut)) = rows.into_iter().next() else {
                self.unusable.insert(item.clone());
                continue;
            };
            self.bytes += cut.row.value.len() as u64;
            let summary = match item {
                Item::Rollup(_) => of_rollup(&cut),
                Item::Chunk(chunk) => match of_chunk(&cut) {
                    Some(summary) => Some(summary),
                    None => self.of_calls(driver, series, chunk).await?,
                },
            };
            match summary {
                Some(part) => self.add(part),
                None => drop(self.unusable.insert(item.clone())),
            }
        }
        Ok(())
    }

    /// The summary of a chunk that has none, because it has few calls.
    async fn of_calls(
        &mut self,
        driver: &dyn Driver,
        series: SeriesId,
        chunk: &RolledChunk,
    ) -> Result<Option<Part>> {
        let rows = driver.read(vec![chunk_row_scan(Kind::Execution, series, &chunk.key)]).await?;
        let Some(Ok(row)) = rows.into_iter().flatten().next() else { return Ok(None) };
        self.bytes += row.value.len() as u64;
        let chunk = split_value(&row.value)?.chunk;
        let block = Chunk::open(&chunk).and_then(|chunk| chunk.executions()).ok();
        let part = |block: ExecutionBlock| {
            let segments = block.len() as u64;
            Some(Part { summary: CallSummary::of(&block)?, range: block.range(), segments })
        };
        Ok(block.and_then(part))
    }
}

/// A summary that is added to a sum, with the times and the number of its segments.
struct Part {
    summary: CallSummary,
    range: TimeRange,
    /// 0 if it is not known.
    segments: u64,
}

fn of_rollup(cut: &Cut) -> Option<Part> {
    let Rollup { range, segments, .. } = Rollup::decode(&cut.row).ok()?;
    Some(Part { summary: rollup::summary(&cut.row).ok()?, range, segments })
}

fn of_chunk(cut: &Cut) -> Option<Part> {
    let Split { chunk, .. } = split_value(&cut.row.value).ok()?;
    let whole = cut.whole - (cut.row.value.len() - chunk.len());
    let header = Chunk::open_header(&chunk, whole).ok()?;
    let summary = Chunk::open_summary(&chunk, whole).ok()??;
    let segments = header.tables.map_or(0, |tables| tables.segments) as u64;
    Some(Part { summary, range: TimeRange::new(header.start, header.end), segments })
}

/// The row of a plan. `None` if the sum exceeds a limit of summaries.
async fn build(
    upkeep: &Upkeep,
    series: SeriesId,
    plan: Plan,
    read: Summaries,
) -> Result<Option<(Row, Rollup)>> {
    let work = move || {
        let summaries: Vec<&CallSummary> = read.summaries.iter().collect();
        let (summary, range) = (CallSummary::merged(&summaries)?, read.range?);
        let rollup = Rollup { key: plan.key, chunks: plan.chunks, range, segments: read.segments };
        Some((rollup::row(series, &rollup, &summary), rollup))
    };
    upkeep.in_thread("roll-up", work).await
}
