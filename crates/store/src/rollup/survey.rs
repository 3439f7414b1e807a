//! Which chunks of a series are alive, and which of its roll-ups are valid?
//!
//! A roll-up lists the keys of its chunks, with the facts that decide which rows are alive. So only the rows of the other chunks
//! are read.

use std::sync::Arc;

use tacho_model::{Kind, SeriesId, TimeRange};

use super::row::{RolledChunk, Rollup, day_of, days_scan, head_parts, order, range_of};
use crate::driver::{Cut, Driver, Parts, Scanned};
use crate::group::row::Replacement;
use crate::keys::{CHUNK_SPAN_MAX_NS, ChunkKey, chunk_partition, chunk_row_scan, chunk_scan, spans};
use crate::upkeep::alive;
use crate::{ErrorKind, Result};

/// Rows that are read at once.
const ROWS: usize = 64;

/// The living chunks and the valid roll-ups of a part of a series. `T` is what the caller learns from a row.
pub struct Survey<T> {
    /// The living chunks, ascending by span class and key. Chunks that are in no valid roll-up have a `T`.
    pub chunks: Vec<(RolledChunk, Option<T>)>,
    pub rollups: Vec<Rollup>,
    /// Roll-ups that are not valid, and damaged ones: the keys of their rows.
    pub stale: Vec<Vec<u8>>,
}

impl<T> Survey<T> {
    /// The index of a living chunk.
    pub fn position(&self, key: &ChunkKey) -> Option<usize> {
        self.chunks.binary_search_by_key(&order(key), |(chunk, _)| order(&chunk.key)).ok()
    }
}

/// What is known about the row of a chunk.
enum State<T> {
    Unread,
    /// A roll-up lists the chunk.
    Rolled(RolledChunk),
    /// The row was read; with its merge number, and what the caller learnt from it.
    Read(RolledChunk, u64, T),
    /// The row was deleted after its key was listed.
    Gone,
}

impl<T> State<T> {
    /// The facts for [`alive`].
    fn row(&self) -> Option<(ChunkKey, Option<Replacement>, u64)> {
        match self {
            Self::Unread | Self::Gone => None,
            Self::Rolled(chunk) => {
                let merge = chunk.replacement.map_or(0, |replacement| replacement.merge);
                Some((chunk.key, chunk.replacement, merge))
            }
            Self::Read(chunk, merge, _) => Some((chunk.key, chunk.replacement, *merge)),
        }
    }

    fn chunk(self) -> Option<(RolledChunk, Option<T>)> {
        match self {
            Self::Unread | Self::Gone => None,
            Self::Rolled(chunk) => Some((chunk, None)),
            Self::Read(chunk, _, facts) => Some((chunk, Some(facts))),
        }
    }
}

/// Surveys the chunks that a read of `range` scans, and all other chunks of the day of the first one. `heads` is the result of
/// [`heads`] for the same range. `sees` is whether the reader sees the chunk with this partition and clustering. `parts` selects
/// the bytes of a row that `learn` gets; `learn` returns `None` for a row that the reader does not see. `None` if the driver
/// cannot list keys without reading values.
pub async fn survey<T>(
    driver: &dyn Driver,
    series: SeriesId,
    range: TimeRange,
    (heads, mut stale): Heads,
    sees: impl Fn(&[u8], &[u8]) -> bool + Sync,
    parts: Parts,
    mut learn: impl FnMut(Scanned<Cut>) -> Result<Option<(T, Option<Replacement>, u64)>>,
) -> Result<Option<Survey<T>>> {
    let Some(keys) = keys(driver, series, range, sees).await? else { return Ok(None) };
    let mut states: Vec<State<T>> = keys.iter().map(|_| State::Unread).collect();
    let position = |key: &ChunkKey| keys.binary_search_by_key(&order(key), order).ok();
    let is_known = |rollup: &Rollup| rollup.chunks.iter().all(|chunk| position(&chunk.key).is_some());
    let (mut rollups, unknown): (Vec<Rollup>, Vec<Rollup>) = heads.into_iter().partition(is_known);
    stale.extend(unknown.iter().map(|rollup| rollup.key.encode()));
    for chunk in rollups.iter().flat_map(|rollup| &rollup.chunks) {
        let state = position(&chunk.key).and_then(|at| states.get_mut(at));
        state.into_iter().for_each(|state| *state = State::Rolled(*chunk));
    }
    let unread = keys.iter().zip(&mut states).filter(|(_, state)| matches!(state, State::Unread));
    let mut unread: Vec<(&ChunkKey, &mut State<T>)> = unread.collect();
    for some in unread.chunks_mut(ROWS) {
        let scans = some.iter().map(|(key, _)| chunk_row_scan(Kind::Execution, series, key)).collect();
        for ((key, state), rows) in some.iter_mut().zip(driver.read_parts(scans, Arc::clone(&parts)).await?) {
            let learnt = rows.into_iter().next().map(&mut learn).transpose()?.flatten();
            **state = learnt.map_or(State::Gone, |(facts, replacement, merge)| {
                State::Read(RolledChunk { key: **key, replacement }, merge, facts)
            });
        }
    }
    let (places, rows): (Vec<usize>, Vec<_>) =
        states.iter().enumerate().filter_map(|(at, state)| Some((at, state.row()?))).unzip();
    for (at, is_alive) in places.into_iter().zip(alive(&rows)) {
        if let Some(state) = states.get_mut(at).filter(|_| !is_alive) {
            *state = State::Gone;
        }
    }
    let chunks = states.into_iter().filter_map(State::chunk).collect();
    let mut survey = Survey { chunks, rollups: vec![], stale };
    rollups.retain(|rollup| {
        let is_valid = rollup.chunks.iter().all(|chunk| survey.position(&chunk.key).is_some());
        survey.stale.extend((!is_valid).then(|| rollup.key.encode()));
        is_valid
    });
    survey.rollups = rollups;
    Ok(Some(survey))
}

/// The keys of the chunks, ascending. `None` if the driver cannot list them.
async fn keys(
    driver: &dyn Driver,
    series: SeriesId,
    range: TimeRange,
    sees: impl Fn(&[u8], &[u8]) -> bool + Sync,
) -> Result<Option<Vec<ChunkKey>>> {
    let partition = chunk_partition(Kind::Execution, series);
    let first = range_of(first_day(range)).start;
    let range = TimeRange::new(first.saturating_add_unsigned(CHUNK_SPAN_MAX_NS), range.end);
    let mut keys = Vec::new();
    for span in spans(Kind::Execution) {
        let mut add = |clustering: &[u8]| {
            keys.extend(sees(&partition, clustering).then(|| ChunkKey::decode(clustering)));
        };
        if !driver.keys_of(&chunk_scan(Kind::Execution, series, *span, range), &mut add).await? {
            return Ok(None);
        }
    }
    keys.into_iter().collect::<Result<_>>().map(Some)
}

/// Roll-ups, and the keys of rows that are not a valid roll-up.
pub type Heads = (Vec<Rollup>, Vec<Vec<u8>>);

/// The first day of the chunks that a read of `range` scans.
fn first_day(range: TimeRange) -> i64 {
    day_of(range.start.saturating_sub_unsigned(CHUNK_SPAN_MAX_NS))
}

/// The roll-ups of the chunks that a read of `range` scans. Those of a newer version are ignored.
pub async fn heads(driver: &dyn Driver, series: SeriesId, range: TimeRange) -> Result<Heads> {
    let days = days_scan(series, (first_day(range), day_of(range.end)));
    let rows = driver.read_parts(vec![days], Arc::new(|_, front| head_parts(front))).await?;
    let (mut heads, mut stale) = (Vec::new(), Vec::new());
    let ignored = "damaged roll-up ignored: the summaries of its chunks are read";
    for row in rows.into_iter().flatten() {
        let row = match row {
            Ok(Cut { row, .. }) => row,
            Err(damaged) => {
                tracing::warn!(%damaged, "{ignored}");
                stale.push(damaged.clustering);
                continue;
            }
        };
        match Rollup::decode(&row) {
            Ok(rollup) => heads.push(rollup),
            Err(error) if error.kind() == ErrorKind::Version => {}
            Err(error) => {
                tracing::warn!(%error, "{ignored}");
                stale.push(row.clustering);
            }
        }
    }
    Ok((heads, stale))
}
