//! Reads the entries or executions of one series in a time range, from the driver and from memory. Each record is read
//! once.
//!
//! Path of one record. Before: `flush.rs` put its chunk into the driver. After: `server/src/http/` passes it to `query`.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use tacho_chunk::{AttributeData, CallSummary, Chunk, ExecutionBlock, REQUEST_ID, SummarizedChunk};
use tacho_model::{Entry, Kind, SeriesId, TimeRange, TraceId};

use super::rows::{Found, Lost, each_live, each_needed};
use super::summaries::{each_ranked, each_unsummarized};
use super::usage::Use;
use super::{Reader, read_memory, take_room};
use crate::Result;
use crate::damage::{Damages, Read};
use crate::generation::Generation;
use crate::keys::ChunkKey;
use crate::memtable::{OpenEntries, OpenExecutions};
use crate::upkeep::{Mask, Snapshot};

pub async fn entries(reader: &Reader, id: SeriesId, range: TimeRange) -> Result<Read<Vec<Entry>>> {
    let snapshot = reader.snapshots.open();
    let read = |open: &OpenEntries, generation: &Generation| (generation.number, open.read(range));
    let memory = read_memory(reader, |generation| Some(read(generation.entries.get(&id)?, generation)));
    let decode = |chunk: Chunk<'_>, _| {
        let mut entries = chunk.entries()?;
        entries.retain(|entry| range.contains(entry.at));
        Ok(Some(entries))
    };
    let masks = reader.masks_of(id);
    let wanted = Wanted { kind: Kind::Entry, id, range, oldest: memory.oldest, snapshot, masks: &masks };
    let Read { records: mut parts, damages } =
        stored(reader, &wanted, None, decode, |part| Ok(Some(part))).await?;
    parts.extend(memory.parts);
    for (generation, entries) in &mut parts {
        entries.retain(|entry| !masks.iter().any(|mask| mask.hides(*generation, entry.at)));
    }
    let mut all: Vec<Entry> = parts.into_iter().flat_map(|(_, entries)| entries).collect();
    all.sort_by_key(|entry| entry.at);
    Ok(Read { records: all, damages })
}

/// A block without its masked segments; `None` if no segment is left.
fn mask_block(block: Arc<ExecutionBlock>, masks: &[Mask], generation: u64) -> Option<Arc<ExecutionBlock>> {
    let is_masked = |i: usize| masks.iter().any(|mask| mask.hides(generation, block.row(i).start()));
    if masks.is_empty() || !(0..block.len()).any(is_masked) {
        return Some(block);
    }
    let mut rest = ExecutionBlock::new();
    (0..block.len()).filter(|i| !is_masked(*i)).for_each(|i| rest.push_row(block.row(i)));
    (!rest.is_empty()).then(|| Arc::new(rest))
}

/// Which blocks a read needs. Of stored blocks that it does not need, only the filters are read, or a few columns are decoded.
#[derive(Clone, Copy)]
pub enum Needed<'a> {
    All,
    /// All, except those of stored chunks with a summary that the function accepts (returns `true`). The function gets
    /// the summary of each chunk that is wholly in the range and has no masked records. For a damaged summary, the
    /// function gets a text.
    Unsummarized(&'a (dyn Fn(Result<&CallSummary, String>) -> bool + Sync)),
    /// Those that a search needs. Blocks in memory and chunks without a usable summary are read first, then the other chunks
    /// by descending rank. The range may cut chunks that have a rank.
    Ranked {
        /// The rank of a chunk; `None` if the chunk is not needed. For a damaged summary, the function gets a text.
        rank: &'a (dyn Fn(Result<SummarizedChunk<'_>, String>) -> Option<u64> + Sync),
        /// Whether a chunk with this rank and this number of segments is still needed. Called directly before it is read.
        is_needed: &'a (dyn Fn(u64, usize) -> bool + Sync),
        /// Of the chunks that are still needed, only those with a segment that has this attribute are decoded. The blocks may
        /// lack other segments.
        having: Option<Having<'a>>,
    },
    /// Those with a segment of an accepted trace.
    Traces {
        accepts: &'a (dyn Fn(TraceId) -> bool + Sync),
        /// Whether the blocks may lack the segments of other traces.
        only: bool,
        /// All accepted traces, if they are known.
        known: Option<&'a [TraceId]>,
    },
    /// Those with an accepted value of the attribute with this key. The blocks may lack other segments.
    Attribute {
        key: &'a str,
        accepts: &'a (dyn Fn(&AttributeData) -> bool + Sync),
        /// All accepted values, if they are known. An integer has the same meaning as its decimal text.
        known: Option<&'a [AttributeData]>,
    },
}

/// Segments that have an accepted value of the attribute with this key.
#[derive(Clone, Copy)]
pub struct Having<'a> {
    pub key: &'a str,
    pub accepts: &'a (dyn Fn(&AttributeData) -> bool + Sync),
    /// Gets the number of segments of each chunk or block that was examined.
    pub examined: &'a (dyn Fn(usize) + Sync),
}

/// Limit on the ids that are looked up in a filter. A filter also accepts 1 % of the ids that the chunk does not have. With more
/// ids, it would accept most chunks.
const FILTERED_IDS_MAX: usize = 200;

/// If more than one in this number of segments is needed, the whole chunk is decoded.
const SELECTED_SHARE: usize = 4;

impl Needed<'_> {
    /// Whether a chunk with this front may have a needed block.
    fn takes_front(self, front: &Chunk<'_>) -> bool {
        // Damaged filters exclude nothing.
        let Ok(Some(filters)) = front.filters() else { return true };
        match self {
            Self::Traces { known: Some(ids), .. } if ids.len() <= FILTERED_IDS_MAX => {
                ids.iter().any(|id| filters.may_have_trace(*id))
            }
            Self::Attribute { key: REQUEST_ID, known: Some(ids), .. } if ids.len() <= FILTERED_IDS_MAX => {
                ids.iter().any(|id| filters.may_have_request(id))
            }
            _ => true,
        }
    }

    /// The needed segments of a chunk; `None` if all segments are needed.
    fn segments(self, chunk: &Chunk<'_>) -> Result<Option<Vec<bool>>, tacho_chunk::Error> {
        match self {
            Self::All | Self::Unsummarized(_) | Self::Ranked { having: None, .. } => Ok(None),
            Self::Traces { accepts, .. } => {
                Ok(Some(chunk.execution_traces()?.into_iter().map(accepts).collect()))
            }
            Self::Attribute { key, accepts, .. }
            | Self::Ranked { having: Some(Having { key, accepts, .. }), .. } => {
                chunk.segments_with(key, &accepts).map(Some)
            }
        }
    }

    /// Decodes the needed segments of a chunk; `None` if there are none.
    fn decode(self, chunk: &Chunk<'_>) -> Result<Option<ExecutionBlock>, tacho_chunk::Error> {
        let Some(kept) = self.segments(chunk)? else { return chunk.executions().map(Some) };
        let count = kept.iter().filter(|kept| **kept).count();
        let is_whole =
            matches!(self, Self::Traces { only: false, .. }) || count > kept.len() / SELECTED_SHARE;
        match count {
            0 => Ok(None),
            _ if is_whole => chunk.executions().map(Some),
            _ => chunk.selected_executions(&kept).map(Some),
        }
    }

    fn examined(self, segments: usize) {
        if let Self::Ranked { having: Some(having), .. } = self {
            (having.examined)(segments);
        }
    }

    fn takes_block(self, block: &ExecutionBlock) -> bool {
        self.examined(block.len());
        block.rows().any(|row| match self {
            Self::All | Self::Unsummarized(_) | Self::Ranked { having: None, .. } => true,
            Self::Traces { accepts, .. } => accepts(row.trace()),
            Self::Attribute { key, accepts, .. }
            | Self::Ranked { having: Some(Having { key, accepts, .. }), .. } => {
                row.attributes().any(|a| **a.key == *key && accepts(a.value))
            }
        })
    }
}

/// Reads executions. `room` is the limit on the bytes of blocks; several reads may share it. A block that `keep`
/// refuses is freed before the next block is decoded, so it does not count towards `room`.
pub async fn executions(
    reader: &Reader,
    id: SeriesId,
    range: TimeRange,
    room: &AtomicUsize,
    needed: Needed<'_>,
    keep: impl Fn(&ExecutionBlock) -> bool,
) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
    let snapshot = reader.snapshots.open();
    let read = |open: &OpenExecutions, generation: &Generation| (generation.number, open.read(range));
    let memory = read_memory(reader, |generation| Some(read(generation.executions.get(&id)?, generation)));
    let masks = reader.masks_of(id);
    let admit = |(generation, block): (u64, Arc<ExecutionBlock>)| {
        let block = mask_block(block, &masks, generation).filter(|block| keep(block));
        if let Some(block) = &block {
            take_room(room, block.memory_bytes(), "bytes of a block")?;
        }
        Ok(block)
    };
    let wanted = Wanted { kind: Kind::Execution, id, range, oldest: memory.oldest, snapshot, masks: &masks };
    let decode = |chunk: Chunk<'_>, is_intact| {
        needed.examined(chunk.header().tables.map_or(0, |tables| tables.segments));
        // Single columns are not trusted in a damaged row, so its whole chunk is decoded.
        let block = if is_intact { needed.decode(&chunk)? } else { Some(chunk.executions()?) };
        Ok(block.map(Arc::new))
    };
    let mut recent = Vec::new();
    for (generation, open) in memory.parts {
        for block in open.into_iter().filter(|block| needed.takes_block(block)) {
            recent.extend(admit((generation, block))?);
        }
    }
    let mut read = stored(reader, &wanted, Some(needed), decode, admit).await?;
    read.records.extend(recent);
    Ok(read)
}

struct Wanted<'a> {
    kind: Kind,
    id: SeriesId,
    range: TimeRange,
    /// The first generation in memory.
    oldest: u64,
    snapshot: Snapshot,
    masks: &'a [Mask],
}

impl Wanted<'_> {
    /// `may_cut`: a summary is used even if the range cuts the chunk. Chunks of generations in memory are not used.
    fn usage(&self, (first, last): (u64, u64), times: TimeRange, has_summary: bool, may_cut: bool) -> Use {
        if first >= self.oldest || !times.overlaps(&self.range) {
            return Use::Nothing;
        }
        let is_within = self.range.contains(times.start) && self.range.contains(times.end);
        let is_usable = last < self.oldest && !self.masks.iter().any(|mask| mask.may_hide(first, &times));
        if has_summary && (is_within || may_cut) && is_usable { Use::Summary } else { Use::Calls }
    }
}

/// Decoded chunks that overlap the range, ordered by generation and number. Only generations before `oldest` are included.
/// `needed` is for executions; without it all rows are read. `decode` gets whether the row of the chunk is
/// intact, and may omit a chunk. `admit` gets each decoded chunk with its generation before the next chunk is
/// decoded: a refused chunk is freed, and an error ends the read.
async fn stored<T, U>(
    reader: &Reader,
    wanted: &Wanted<'_>,
    needed: Option<Needed<'_>>,
    decode: impl Fn(Chunk<'_>, bool) -> Result<Option<T>, tacho_chunk::Error>,
    admit: impl Fn((u64, T)) -> Result<Option<U>>,
) -> Result<Read<Vec<U>>> {
    let mut found: Vec<((u64, u32), U)> = Vec::new();
    let mut damages = Damages::default();
    let Wanted { kind, id, range, masks, .. } = *wanted;
    if range.is_empty() {
        return Ok(Read { records: Vec::new(), damages });
    }
    let each = |row: Found| {
        let key = &row.key;
        if key.generation >= wanted.oldest {
            return Ok(());
        }
        match read_chunk(&row.chunk, range, |chunk| decode(chunk, row.damaged.is_none())) {
            Ok(Some(part)) => {
                let admitted = admit((key.generation, part))?;
                found.extend(admitted.map(|part| ((key.generation, key.number), part)));
            }
            Ok(None) => {}
            // A damaged chunk is reported, and the read continues.
            Err(error) => {
                let reason = row.reason((kind, id), error)?;
                reader.unreadable.note((kind, id), key, &reason);
                let lost = Lost { key: *key, range: row.range(), reason };
                damages.extend(lost.of(kind, reader.labels_of(id), range, masks));
            }
        }
        Ok(())
    };
    match needed {
        None => each_live(reader, (kind, id), range, &wanted.snapshot, each).await?,
        Some(Needed::Unsummarized(accepts)) => {
            let usage = |generations: (u64, u64), times: TimeRange, has_summary: bool| {
                wanted.usage(generations, times, has_summary, false)
            };
            each_unsummarized(reader, (kind, id), range, &wanted.snapshot, &usage, accepts, each).await?;
        }
        Some(Needed::Ranked { rank, is_needed, .. }) => {
            let usage = |generations: (u64, u64), times: TimeRange, has_summary: bool| {
                wanted.usage(generations, times, has_summary, true)
            };
            let ranking = (rank, is_needed);
            each_ranked(reader, (kind, id), range, &wanted.snapshot, &usage, ranking, each).await?;
        }
        Some(needed) => {
            let is_needed = |key: &ChunkKey, front: &Chunk<'_>| {
                key.generation < wanted.oldest && times(front).overlaps(&range) && needed.takes_front(front)
            };
            each_needed(reader, (kind, id), range, &wanted.snapshot, is_needed, each).await?;
        }
    }
    found.sort_by_key(|(place, _)| *place);
    Ok(Read { records: found.into_iter().map(|(_, part)| part).collect(), damages })
}

fn read_chunk<T>(
    chunk: &Bytes,
    range: TimeRange,
    decode: impl Fn(Chunk<'_>) -> Result<Option<T>, tacho_chunk::Error>,
) -> Result<Option<T>, tacho_chunk::Error> {
    let chunk = Chunk::open(chunk)?;
    if times(&chunk).overlaps(&range) { decode(chunk) } else { Ok(None) }
}

fn times(chunk: &Chunk<'_>) -> TimeRange {
    TimeRange::new(chunk.header().start, chunk.header().end)
}
