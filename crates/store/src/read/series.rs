//! Reads the entries or executions of one series in a time range, from the driver and from memory. Each record is read
//! once.
//!
//! Path of one record. Before: `flush.rs` put its chunk into the driver. After: `server/src/http/` passes it to `query`.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt, TryStreamExt};
use tacho_chunk::{AttributeData, Chunk, ExecutionBlock, REQUEST_ID, SummarizedChunk};
use tacho_model::{Entry, Kind, SeriesId, TimeRange, TraceId};

use super::kept::kept;
use super::ranked::each_ranked;
use super::rows::{Found, Lost, each_live, each_needed, row_of};
use super::summaries::unsummarized;
use super::summed::Summed;
use super::usage::Use;
use super::{Reader, Steps, read_memory, take_room};
use crate::damage::{Damages, Read};
use crate::generation::Generation;
use crate::keys::ChunkKey;
use crate::memtable::{OpenEntries, OpenExecutions};
use crate::upkeep::{Mask, Snapshot};
use crate::{Error, ErrorKind, Result};

pub async fn entries(reader: &Reader, id: SeriesId, range: TimeRange) -> Result<Read<Vec<Entry>>> {
    let snapshot = reader.snapshots.open();
    let read = |open: &OpenEntries, generation: &Generation| (generation.number, open.read(range));
    let memory = read_memory(reader, |generation| Some(read(generation.entries.get(&id)?, generation)));
    let decode = |chunk: Chunk<'_>, _| {
        let mut entries = chunk.entries()?;
        entries.retain(|entry| range.contains(entry.at));
        Ok(Some(entries))
    };
    let masks = reader.masks_of(Kind::Entry, id);
    let wanted = Wanted { kind: Kind::Entry, id, range, oldest: memory.oldest, snapshot, masks: &masks };
    let mut collected = Collected::new(reader, &wanted);
    if !range.is_empty() {
        let each = |row| collected.add(row, decode, |part| Ok(Some(part)));
        each_live(reader, (Kind::Entry, id), range, &wanted.snapshot, each).await?;
    }
    let Read { records: mut parts, damages } = collected.finish();
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
    /// the summary of each chunk that is wholly in the range and has no masked records, and the kept summaries of expired calls.
    /// For a damaged summary of a chunk, the function gets a text.
    Unsummarized(&'a (dyn Fn(Result<Summed<'_>, String>) -> bool + Sync)),
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
/// refuses is freed at once, so it does not count towards `room`.
pub async fn executions(
    reader: &Reader,
    id: SeriesId,
    range: TimeRange,
    room: &AtomicUsize,
    (needed, steps): (Needed<'_>, Steps<'_>),
    keep: impl Fn(&ExecutionBlock) -> bool,
) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
    let snapshot = reader.snapshots.open();
    let read = |open: &OpenExecutions, generation: &Generation| (generation.number, open.read(range));
    let memory = read_memory(reader, |generation| Some(read(generation.executions.get(&id)?, generation)));
    let (masks, expired) = reader.masks.of_calls(id, || reader.labels_of(id));
    let admit = |(generation, block): (u64, Arc<ExecutionBlock>)| {
        let block = mask_block(block, &masks, generation).filter(|block| keep(block));
        if let Some(block) = &block {
            take_room(room, block.memory_bytes(), "bytes of a block")?;
        }
        Ok(block)
    };
    let wanted = Wanted { kind: Kind::Execution, id, range, oldest: memory.oldest, snapshot, masks: &masks };
    let mut recent = Vec::new();
    for (generation, open) in memory.parts {
        for block in open.into_iter().filter(|block| needed.takes_block(block)) {
            recent.extend(admit((generation, block))?);
        }
    }
    let mut read = stored(reader, &wanted, (needed, steps), admit).await?;
    if let (Needed::Unsummarized(accepts), Some(expired)) = (needed, expired) {
        read.damages.extend(kept(reader, id, range, expired, |summed| accepts(Ok(summed))).await?);
    }
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

/// The decoded chunks that a read has admitted.
struct Collected<'a, U> {
    reader: &'a Reader,
    wanted: &'a Wanted<'a>,
    /// With generation and number of the chunk.
    found: Vec<((u64, u32), U)>,
    damages: Damages,
}

impl<'a, U> Collected<'a, U> {
    fn new(reader: &'a Reader, wanted: &'a Wanted<'a>) -> Self {
        Self { reader, wanted, found: Vec::new(), damages: Damages::default() }
    }

    /// Decodes the chunk of a row, and adds it. See [`Self::take`].
    fn add<T>(
        &mut self,
        row: Found,
        decode: impl Fn(Chunk<'_>, bool) -> Result<Option<T>, tacho_chunk::Error>,
        admit: impl Fn((u64, T)) -> Result<Option<U>>,
    ) -> Result<()> {
        if row.key.generation >= self.wanted.oldest {
            return Ok(());
        }
        let decoded = read_chunk(&row.chunk, self.wanted.range, |chunk| decode(chunk, row.damaged.is_none()));
        self.take(row, decoded, admit)
    }

    /// Passes a decoded chunk with its generation to `admit`, which returns what is collected. An error of `admit` ends the read.
    fn take<T>(
        &mut self,
        row: Found,
        decoded: Result<Option<T>, tacho_chunk::Error>,
        admit: impl Fn((u64, T)) -> Result<Option<U>>,
    ) -> Result<()> {
        let (key, Wanted { kind, id, range, masks, .. }) = (&row.key, self.wanted);
        let (kind, id, range) = (*kind, *id, *range);
        match decoded {
            Ok(Some(part)) => {
                let admitted = admit((key.generation, part))?;
                self.found.extend(admitted.map(|part| ((key.generation, key.number), part)));
            }
            Ok(None) => {}
            // A damaged chunk is reported, and the read continues.
            Err(error) => {
                let reason = row.reason((kind, id), error)?;
                self.reader.unreadable.note((kind, id), key, &reason);
                let lost = Lost { key: *key, range: row.range(), reason };
                self.damages.extend(lost.of(kind, self.reader.labels_of(id), range, masks));
            }
        }
        Ok(())
    }

    /// The collected items, ordered by generation and number.
    fn finish(mut self) -> Read<Vec<U>> {
        self.found.sort_by_key(|(place, _)| *place);
        Read { records: self.found.into_iter().map(|(_, part)| part).collect(), damages: self.damages }
    }
}

/// The stored blocks that overlap the range. Only generations before `oldest` are included. `admit` gets each block before the
/// next one is decoded, except with [`Needed::Unsummarized`]: then the next blocks are decoded at the same time.
async fn stored(
    reader: &Reader,
    wanted: &Wanted<'_>,
    (needed, steps): (Needed<'_>, Steps<'_>),
    admit: impl Fn((u64, Arc<ExecutionBlock>)) -> Result<Option<Arc<ExecutionBlock>>>,
) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
    let mut collected = Collected::new(reader, wanted);
    let Wanted { kind, id, range, ref snapshot, .. } = *wanted;
    if range.is_empty() {
        return Ok(collected.finish());
    }
    let decode = |chunk: Chunk<'_>, is_intact| {
        needed.examined(chunk.header().tables.map_or(0, |tables| tables.segments));
        // Single columns are not trusted in a damaged row, so its whole chunk is decoded.
        let block = if is_intact { needed.decode(&chunk)? } else { Some(chunk.executions()?) };
        Ok(block.map(Arc::new))
    };
    match needed {
        Needed::Unsummarized(accepts) => {
            let usage = |generations: (u64, u64), times: TimeRange, has_summary: bool| {
                wanted.usage(generations, times, has_summary, false)
            };
            let keys = unsummarized(reader, (kind, id), range, snapshot, &usage, accepts).await?;
            let (mut done, all) = (0, keys.len());
            let mut rows = std::pin::pin!(decoded_ahead(reader, id, range, snapshot, keys));
            while let Some((row, block)) = rows.try_next().await? {
                steps(done, all);
                done += 1;
                if row.key.generation < wanted.oldest {
                    collected.take(row, block.map(|block| block.map(Arc::new)), &admit)?;
                }
                // An analysis of a block takes milliseconds, so other tasks may run in between.
                tokio::task::yield_now().await;
            }
        }
        Needed::Ranked { rank, is_needed, .. } => {
            let usage = |generations: (u64, u64), times: TimeRange, has_summary: bool| {
                wanted.usage(generations, times, has_summary, true)
            };
            let each = |row| collected.add(row, decode, &admit);
            each_ranked(reader, (kind, id), range, snapshot, &usage, (rank, is_needed, steps), each).await?;
        }
        needed => {
            let is_needed = |key: &ChunkKey, front: &Chunk<'_>| {
                key.generation < wanted.oldest && times(front).overlaps(&range) && needed.takes_front(front)
            };
            let each = |row| collected.add(row, decode, &admit);
            each_needed(reader, (kind, id), range, snapshot, (is_needed, steps), each).await?;
        }
    }
    Ok(collected.finish())
}

/// Rows of one series that are read and decoded at the same time. A decoded block takes some megabytes.
const AHEAD: usize = 2;

/// The rows with these keys, in this order, each with its decoded block; `None` for a block outside of the range. Threads of
/// their own decode the blocks, so that the caller can analyse a block at the same time.
fn decoded_ahead<'a>(
    reader: &'a Reader,
    id: SeriesId,
    range: TimeRange,
    snapshot: &'a Snapshot,
    keys: Vec<ChunkKey>,
) -> impl Stream<Item = Result<(Found, Result<Option<ExecutionBlock>, tacho_chunk::Error>)>> + 'a {
    let decoded = move |key: ChunkKey| async move {
        let Some(row) = row_of(reader, (Kind::Execution, id), &key, snapshot).await? else { return Ok(None) };
        let chunk = row.chunk.clone();
        let decode = move || read_chunk(&chunk, range, |chunk| chunk.executions().map(Some));
        let ended = |e| Error::new(ErrorKind::Closed, "decoding of a chunk did not end").caused_by(e);
        let block = reader.options.threads.start(decode).join().await.map_err(ended)?;
        Ok(Some((row, block)))
    };
    stream::iter(keys).map(decoded).buffered(AHEAD).try_filter_map(|row| async move { Ok(row) })
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
