//! Here is a series and a range of time, give me records: stored, sealed and open ones, each once.
//!
//! A generation is read from memory as long as it is there, from the driver afterwards. What is in memory is looked at
//! first; then chunks of those generations are ignored in the driver, however far their flush has come.
//!
//! Path of one record: before, `flush.rs` put its chunk into the driver; after, `server/src/http/` hands it to `query`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::TryStreamExt;
use tacho_chunk::{Chunk, ExecutionBlock, Header};
use tacho_model::{Entry, Kind, Sample, SeriesId, TimeRange};

use crate::driver::Row;
use crate::generation::{Generation, Generations};
use crate::keys::{ChunkKey, chunk_scan, spans};
use crate::seal::latest;
use crate::shared::Shared;
use crate::{Error, ErrorKind, Result};

/// A chunk as it lies in the driver, for `tacho inspect`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkInfo {
    pub start: i64,
    pub end: i64,
    pub generation: u64,
    /// Bytes of key and value.
    pub bytes: usize,
    pub header: Header,
}

/// What memory holds of one series at one moment.
struct Snapshot<T> {
    /// Chunks of this and later generations are in `parts`.
    oldest: u64,
    /// In order of generation.
    parts: Vec<T>,
}

/// `read` is called under the lock for the active generation only; sealed ones do not change any more.
fn snapshot<T>(shared: &Shared, read: impl Fn(&Generation) -> Option<T>) -> Snapshot<T> {
    let generations = shared.generations.read();
    let oldest = generations.oldest();
    let Generations { active, sealed, .. } = &*generations;
    let sealed: Vec<Arc<Generation>> = sealed.iter().cloned().collect();
    let open = active.as_ref().and_then(&read);
    drop(generations);
    let parts = sealed.iter().filter_map(|generation| read(generation)).chain(open).collect();
    Snapshot { oldest, parts }
}

pub async fn samples(shared: &Shared, id: SeriesId, range: TimeRange) -> Result<Vec<Sample>> {
    let memory = snapshot(shared, |generation| generation.samples.get(&id).map(|open| open.read(range)));
    let decode = |chunk: Chunk<'_>| {
        let columns = chunk.samples()?;
        Ok(columns.iter().filter(|sample| range.contains(sample.at)).collect::<Vec<_>>())
    };
    let mut parts = stored(shared, Kind::Sample, id, range, memory.oldest, decode, |_| Ok(true)).await?;
    parts.extend(memory.parts);
    let all = parts.concat();
    let ordered = all.is_sorted_by_key(|sample| sample.at);
    Ok(latest(all, ordered))
}

pub async fn entries(shared: &Shared, id: SeriesId, range: TimeRange) -> Result<Vec<Entry>> {
    let memory = snapshot(shared, |generation| generation.entries.get(&id).map(|open| open.read(range)));
    let decode = |chunk: Chunk<'_>| {
        let mut entries = chunk.entries()?;
        entries.retain(|entry| range.contains(entry.at));
        Ok(entries)
    };
    let mut parts = stored(shared, Kind::Entry, id, range, memory.oldest, decode, |_| Ok(true)).await?;
    parts.extend(memory.parts);
    let mut all: Vec<Entry> = parts.into_iter().flatten().collect();
    all.sort_by_key(|entry| entry.at);
    Ok(all)
}

/// `room`: bytes that blocks may still take, over all reads that share it. A block that `keep` refuses takes none: it is
/// let go before the next one is decoded.
pub async fn executions(
    shared: &Shared,
    id: SeriesId,
    range: TimeRange,
    room: &AtomicUsize,
    keep: impl Fn(&ExecutionBlock) -> bool,
) -> Result<Vec<Arc<ExecutionBlock>>> {
    let memory = snapshot(shared, |generation| generation.executions.get(&id).map(|open| open.read(range)));
    let decode = |chunk: Chunk<'_>| chunk.executions().map(Arc::new);
    let admit = |block: &Arc<ExecutionBlock>| {
        if !keep(block) {
            return Ok(false);
        }
        take_room(room, block.bytes()).map(|()| true)
    };
    let mut blocks = stored(shared, Kind::Execution, id, range, memory.oldest, decode, admit).await?;
    for block in memory.parts.into_iter().flatten() {
        if admit(&block)? {
            blocks.push(block);
        }
    }
    Ok(blocks)
}

fn take_room(room: &AtomicUsize, bytes: usize) -> Result<()> {
    let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
    taken.map(drop).map_err(|left| {
        let message = format!("block of {bytes} bytes does not fit into the {left} that are left");
        Error::new(ErrorKind::Limit, message)
    })
}

/// Every chunk of a series in the driver; open and sealed ones are not there yet.
pub async fn chunks(shared: &Shared, kind: Kind, id: SeriesId) -> Result<Vec<ChunkInfo>> {
    let mut infos = Vec::new();
    for span in spans(kind) {
        let mut rows = shared.driver.scan(chunk_scan(kind, id, *span, TimeRange::ALL)).await?;
        while let Some(row) = rows.try_next().await? {
            let key = ChunkKey::decode(&row.clustering)?;
            let place = |e| unreadable(id, &key, e);
            let header = Chunk::open(&row.value).map_err(place)?.header().clone();
            let bytes = row.partition.len() + row.clustering.len() + row.value.len();
            let (start, end) = (header.start, header.end);
            infos.push(ChunkInfo { start, end, generation: key.generation, bytes, header });
        }
    }
    Ok(infos)
}

/// Decoded chunks of generations before `oldest` that overlap the range, in order of generation and number. What
/// `admit` does not want is let go, and its first error ends the read, before more is decoded.
async fn stored<T>(
    shared: &Shared,
    kind: Kind,
    id: SeriesId,
    range: TimeRange,
    oldest: u64,
    decode: impl Fn(Chunk<'_>) -> Result<T, tacho_chunk::Error>,
    admit: impl Fn(&T) -> Result<bool>,
) -> Result<Vec<T>> {
    let mut found: Vec<((u64, u32), T)> = Vec::new();
    if range.is_empty() {
        return Ok(Vec::new());
    }
    for span in spans(kind) {
        let mut rows = shared.driver.scan(chunk_scan(kind, id, *span, range)).await?;
        while let Some(row) = rows.try_next().await? {
            let key = ChunkKey::decode(&row.clustering)?;
            if key.generation >= oldest {
                continue;
            }
            match read_chunk(&row, range, &decode) {
                Ok(Some(part)) => {
                    if admit(&part)? {
                        found.push(((key.generation, key.number), part));
                    }
                }
                Ok(None) => {}
                Err(error @ tacho_chunk::Error::Version { .. }) => return Err(unreadable(id, &key, error)),
                Err(error) => {
                    // One bad chunk must not hide all the good ones.
                    shared.counters.chunks_unreadable.add(1);
                    tracing::error!(error = %unreadable(id, &key, error), "chunk left out of an answer");
                }
            }
            // A driver has many rows at hand, and a chunk takes milliseconds: others want their turn between two.
            tokio::task::yield_now().await;
        }
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(found.into_iter().map(|(_, part)| part).collect())
}

fn read_chunk<T>(
    row: &Row,
    range: TimeRange,
    decode: impl Fn(Chunk<'_>) -> Result<T, tacho_chunk::Error>,
) -> Result<Option<T>, tacho_chunk::Error> {
    let chunk = Chunk::open(&row.value)?;
    let header = chunk.header();
    if TimeRange::new(header.start, header.end).overlaps(&range) { decode(chunk).map(Some) } else { Ok(None) }
}

fn unreadable(id: SeriesId, key: &ChunkKey, error: tacho_chunk::Error) -> Error {
    let kind = match error {
        tacho_chunk::Error::Version { .. } => ErrorKind::Version,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, "cannot read chunk")
        .with("series", id)
        .with("start", key.start)
        .with("generation", key.generation)
        .caused_by(error)
}
