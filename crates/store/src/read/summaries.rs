//! Reads the rows of one partition of calls. Reads the summary of a chunk instead of its calls where the caller accepts it.

use std::ops::Range;
use std::sync::Arc;

use tacho_chunk::{Chunk, SummarizedChunk};
use tacho_model::{Kind, SeriesId, TimeRange};

use super::Reader;
use super::rolled::rolled;
use super::rows::{FRONTS, Found, fronts, head};
use super::summed::Summed;
use super::usage::{Usage, Use, usage_of};
use crate::Result;
use crate::group::row::replacement_bytes;
use crate::keys::{ChunkKey, chunk_row_scan};
use crate::upkeep::Snapshot;

/// The rows whose calls are needed. First passes the summaries of roll-ups to `accepts`. Reads the header of each other chunk,
/// and passes its facts to `usage`. Then reads the summaries of the chunks with [`Use::Summary`], and passes them to `accepts`.
/// For a damaged summary, `accepts` gets a text. The result has the rows with [`Use::Calls`], those without a summary, and
/// those whose summary `accepts` refuses.
pub async fn unsummarized(
    reader: &Reader,
    place: (Kind, SeriesId),
    range: TimeRange,
    snapshot: &Snapshot,
    usage: Usage<'_>,
    accepts: impl Fn(Result<Summed<'_>, String>) -> bool,
) -> Result<Vec<ChunkKey>> {
    let of_rollups = rolled(reader, place, range, snapshot, usage, |summed| accepts(Ok(summed))).await?;
    let (mut needed, summed) = match of_rollups {
        Some(keys) => keys,
        None => used(reader, place, range, snapshot, usage).await?,
    };
    let add = |key: &ChunkKey, summary: Option<Result<SummarizedChunk<'_>, String>>| {
        let is_used = summary.is_some_and(|summary| accepts(summary.map(Summed::of_chunk)));
        needed.extend((!is_used).then_some(*key));
    };
    each_summary(reader, place, &summed, snapshot, add).await?;
    Ok(needed)
}

/// The rows whose calls are certainly needed, and the rows with a summary.
pub async fn used(
    reader: &Reader,
    place: (Kind, SeriesId),
    range: TimeRange,
    snapshot: &Snapshot,
    usage: Usage<'_>,
) -> Result<(Vec<ChunkKey>, Vec<ChunkKey>)> {
    let rows = fronts(reader, place, (range, Arc::new(head)), snapshot, |row| usage_of(row, usage)).await?;
    let of = |wanted: Use| rows.iter().filter(move |(_, usage)| *usage == wanted).map(|(key, _)| *key);
    Ok((of(Use::Calls).collect(), of(Use::Summary).collect()))
}

/// Passes the summary of each row to `add`: a text for a damaged summary; `None` if the row is damaged or has no summary, or if a
/// newer version wrote the summary.
pub async fn each_summary(
    reader: &Reader,
    place: (Kind, SeriesId),
    keys: &[ChunkKey],
    snapshot: &Snapshot,
    mut add: impl FnMut(&ChunkKey, Option<Result<SummarizedChunk<'_>, String>>),
) -> Result<()> {
    for keys in keys.chunks(FRONTS) {
        let scans = keys.iter().map(|key| chunk_row_scan(place.0, place.1, key)).collect();
        let rows = reader.driver.read_parts(scans, Arc::new(summary)).await?;
        for (key, row) in keys.iter().zip(rows) {
            let found = row.into_iter().next().map(|row| Found::of(row, snapshot)).transpose()?.flatten();
            let Some((row, ..)) = found else { continue };
            let header = Chunk::open_header(&row.chunk, row.whole);
            match (header, Chunk::open_summary(&row.chunk, row.whole)) {
                (Ok(header), Ok(Some(summary))) if row.damaged.is_none() => {
                    let segments = header.tables.map_or(0, |tables| tables.segments);
                    let range = TimeRange::new(header.start, header.end);
                    add(key, Some(Ok(SummarizedChunk { summary: &summary, segments, range })));
                }
                (_, Ok(_) | Err(tacho_chunk::Error::SummaryVersion { .. })) => add(key, None),
                (_, Err(_)) if row.damaged.is_some() => add(key, None),
                (_, Err(error)) => add(key, Some(Err(summary_words(place, key, &error)))),
            }
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn summary_words((kind, partition): (Kind, SeriesId), key: &ChunkKey, error: &tacho_chunk::Error) -> String {
    let (start, generation) = (key.start, key.generation);
    format!("{error} (kind {}, partition {partition}, start {start}, generation {generation})", kind.name())
}

/// The header and the summary of a chunk, with the prefix of its row.
pub fn summary(_: usize, value: &[u8]) -> Option<Vec<Range<usize>>> {
    let before = replacement_bytes(value)?;
    let parts = Chunk::summary_parts(value.get(before..)?)?.into_iter();
    let mut parts: Vec<Range<usize>> = parts
        .map(|part| Some(part.start.checked_add(before)?..part.end.checked_add(before)?))
        .collect::<Option<_>>()?;
    parts.first_mut()?.start = 0;
    Some(parts)
}
