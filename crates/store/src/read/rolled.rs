//! Which summaries does a read get? Those of the largest roll-ups that it can use, and those of the other chunks.

use std::cmp::Reverse;
use std::sync::Arc;

use tacho_chunk::CallSummary;
use tacho_model::{Kind, SeriesId, TimeRange};

use super::Reader;
use super::rows::{FRONTS, Found, head};
use super::summed::{Summed, SummedOf};
use super::usage::{Usage, Use, usage_of};
use crate::driver::{Cut, Row, Scanned};
use crate::group::row::Replacement;
use crate::keys::{ChunkKey, chunk_row_scan};
use crate::rollup::{Rollup, heads, row_scan, summary, survey};
use crate::upkeep::Snapshot;
use crate::{Error, ErrorKind, Result};

/// The chunks that a read still needs, after it has used roll-ups: those whose calls are certainly needed, and those with a
/// summary. `accepts` gets the summaries of roll-ups. `None` if no roll-up can be used.
pub async fn rolled(
    reader: &Reader,
    (kind, series): (Kind, SeriesId),
    range: TimeRange,
    snapshot: &Snapshot,
    usage: Usage<'_>,
    accepts: impl Fn(Summed<'_>) -> bool,
) -> Result<Option<(Vec<ChunkKey>, Vec<ChunkKey>)>> {
    if kind != Kind::Execution {
        return Ok(None);
    }
    let driver = &*reader.driver;
    let found = heads(driver, series, range).await?;
    if found.0.is_empty() {
        return Ok(None);
    }
    let learn = |row: Scanned<Cut>| learn(row, snapshot, usage);
    let sees = |partition: &[u8], clustering: &[u8]| snapshot.sees(partition, clustering);
    let Some(mut survey) = survey(driver, series, range, found, sees, Arc::new(head), learn).await? else {
        return Ok(None);
    };
    // `None`: not known yet.
    let mut uses: Vec<Option<Use>> = survey.chunks.iter().map(|(_, use_of)| *use_of).collect();
    let mut is_taken = vec![false; uses.len()];
    survey.rollups.sort_unstable_by_key(|rollup| Reverse((rollup.key.level, rollup.chunks.len())));
    for rollup in &survey.rollups {
        let places = || rollup.chunks.iter().filter_map(|chunk| survey.position(&chunk.key));
        if places().any(|at| is_taken.get(at).copied().unwrap_or(true)) {
            continue;
        }
        let is_done = match usage(rollup.generations(), rollup.range, true) {
            Use::Nothing => true,
            Use::Calls => false,
            Use::Summary => {
                let of = SummedOf::Chunks(rollup.range);
                let read = read_summary(reader, series, rollup).await?;
                read.is_some_and(|summary| accepts(Summed { summary: &summary, of }))
            }
        };
        for at in places().filter(|_| is_done) {
            uses.get_mut(at).into_iter().for_each(|use_of| *use_of = Some(Use::Nothing));
            is_taken.get_mut(at).into_iter().for_each(|is_taken| *is_taken = true);
        }
    }
    let chunks = survey.chunks.iter().map(|(chunk, _)| chunk.key);
    let unread = chunks.clone().zip(&mut uses).filter(|(_, use_of)| use_of.is_none()).collect();
    read_uses(reader, (kind, series), unread, snapshot, usage).await?;
    let of = |wanted: Use| {
        chunks.clone().zip(&uses).filter(|(_, use_of)| **use_of == Some(wanted)).map(|(key, _)| key).collect()
    };
    Ok(Some((of(Use::Calls), of(Use::Summary))))
}

/// Reads the headers of chunks, and sets how the reader uses each of them. `None` if the snapshot does not see the row.
pub async fn read_uses(
    reader: &Reader,
    (kind, series): (Kind, SeriesId),
    mut unread: Vec<(ChunkKey, &mut Option<Use>)>,
    snapshot: &Snapshot,
    usage: Usage<'_>,
) -> Result<()> {
    for some in unread.chunks_mut(FRONTS) {
        let scans = some.iter().map(|(key, _)| chunk_row_scan(kind, series, key)).collect();
        let rows = reader.driver.read_parts(scans, Arc::new(head)).await?;
        for ((_, use_of), row) in some.iter_mut().zip(rows) {
            let learnt = row.into_iter().next().map(|row| learn(row, snapshot, usage)).transpose()?.flatten();
            **use_of = learnt.map(|(use_of, ..)| use_of);
        }
    }
    Ok(())
}

/// How the reader uses a chunk, from the header in its row. `None` if the snapshot does not see the row.
pub fn learn(
    row: Scanned<Cut>,
    snapshot: &Snapshot,
    usage: Usage<'_>,
) -> Result<Option<(Use, Option<Replacement>, u64)>> {
    let found = Found::of(row, snapshot)?;
    Ok(found.map(|(row, replacement, merge)| (usage_of(&row, usage), replacement, merge)))
}

/// The summary of a roll-up. `None` if it is damaged, of a newer version, or was deleted. Also `None` if the upkeep has written
/// another roll-up with the same key since the head was read, because it has other chunks.
pub async fn read_summary(reader: &Reader, series: SeriesId, rollup: &Rollup) -> Result<Option<CallSummary>> {
    let rows = reader.driver.read(vec![row_scan(series, &rollup.key)]).await?;
    let Some(row) = rows.into_iter().flatten().next() else { return Ok(None) };
    let same = |row: Row| Ok(if Rollup::decode(&row)? == *rollup { Some(summary(&row)?) } else { None });
    match row.map_err(Error::from).and_then(same) {
        Ok(summary) => Ok(summary),
        Err(error) if error.kind() == ErrorKind::Version => Ok(None),
        Err(error) => {
            tracing::warn!(%error, "damaged roll-up ignored: the summaries of its chunks are read");
            Ok(None)
        }
    }
}
