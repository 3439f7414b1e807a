//! Here is a series and a range of time, give me its entries or executions: stored, sealed and open ones, each once. (Samples are
//! read by group: `group/read.rs`.)
//!
//! A generation is read from memory as long as it is there, from the driver afterwards. What is in memory is looked at
//! first; then chunks of those generations are ignored in the driver, however far their flush has come.
//!
//! Path of one record: before, `flush.rs` put its chunk into the driver; after, `server/src/http/` hands it to `query`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_chunk::{Chunk, ExecutionBlock, Header};
use tacho_model::{Entry, Kind, Labels, SeriesId, TimeRange};

use crate::damage::{Damage, Damages, Read, Unreadable};
use crate::driver::{Cut, Damaged, Driver, Row, Scanned};
use crate::generation::{Generation, Generations};
use crate::group::resent::Overhang;
use crate::group::row::{Remains, Replacement, Split, remains, split_value};
use crate::index::Index;
use crate::keys::{ChunkKey, Span, chunk_scan, spans};
use crate::memtable::{OpenEntries, OpenExecutions};
use crate::options::Options;
use crate::shared::Guarded;
use crate::upkeep::{Mask, Masks, Snapshot, Snapshots, alive};
use crate::{Error, ErrorKind, Result};

/// The parts of the store that a read uses. It changes none of them but for the count of unreadable rows.
pub struct Reader {
    pub driver: Arc<dyn Driver>,
    pub options: Arc<Options>,
    pub generations: Arc<Guarded<Generations>>,
    pub index: Arc<Guarded<Index>>,
    pub masks: Masks,
    pub snapshots: Arc<Snapshots>,
    pub unreadable: Arc<Unreadable>,
}

/// A chunk as it lies in the driver, for `tacho inspect`.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkInfo {
    pub start: i64,
    pub end: i64,
    pub generation: u64,
    /// Bytes of key and value; of a chunk of several series, what this one takes of them.
    pub bytes: usize,
    /// Which of the header's members the series is; 0 of entries and executions.
    pub member: u16,
    pub header: Header,
}

/// What memory holds of one series at one moment.
pub struct InMemory<T> {
    /// Chunks of this and later generations are in `parts`.
    pub oldest: u64,
    /// In order of generation.
    pub parts: Vec<T>,
}

/// `read` is called under the lock for the active generation only; sealed ones do not change any more.
pub fn read_memory<T>(reader: &Reader, read: impl Fn(&Generation) -> Option<T>) -> InMemory<T> {
    let generations = reader.generations.read();
    let oldest = generations.oldest();
    let Generations { active, sealed, .. } = &*generations;
    let sealed: Vec<Arc<Generation>> = sealed.iter().cloned().collect();
    let open = active.as_ref().and_then(&read);
    drop(generations);
    let parts = sealed.iter().filter_map(|generation| read(generation)).chain(open).collect();
    InMemory { oldest, parts }
}

pub async fn entries(reader: &Reader, id: SeriesId, range: TimeRange) -> Result<Read<Vec<Entry>>> {
    let snapshot = reader.snapshots.open();
    let read = |open: &OpenEntries, generation: &Generation| (generation.number, open.read(range));
    let memory = read_memory(reader, |generation| Some(read(generation.entries.get(&id)?, generation)));
    let decode = |chunk: Chunk<'_>| {
        let mut entries = chunk.entries()?;
        entries.retain(|entry| range.contains(entry.at));
        Ok(entries)
    };
    let masks = masks(reader, id);
    let wanted = Wanted { kind: Kind::Entry, id, range, oldest: memory.oldest, snapshot, masks: &masks };
    let Read { records: mut parts, damages } = stored(reader, &wanted, decode, |part| Ok(Some(part))).await?;
    parts.extend(memory.parts);
    for (generation, entries) in &mut parts {
        entries.retain(|entry| !masks.iter().any(|mask| mask.hides(*generation, entry.at)));
    }
    let mut all: Vec<Entry> = parts.into_iter().flat_map(|(_, entries)| entries).collect();
    all.sort_by_key(|entry| entry.at);
    Ok(Read { records: all, damages })
}

/// A block without the segments that begin where something was deleted; `None` when none is left.
fn mask_block(block: Arc<ExecutionBlock>, masks: &[Mask], generation: u64) -> Option<Arc<ExecutionBlock>> {
    let is_masked = |i: usize| masks.iter().any(|mask| mask.hides(generation, block.row(i).start()));
    if masks.is_empty() || !(0..block.len()).any(is_masked) {
        return Some(block);
    }
    let mut rest = ExecutionBlock::new();
    (0..block.len())
        .filter(|i| !is_masked(*i))
        .for_each(|i| rest.push(&block.segment(i), block.operations()));
    (!rest.is_empty()).then(|| Arc::new(rest))
}

fn masks(reader: &Reader, id: SeriesId) -> Vec<Mask> {
    let Some(masks) = reader.masks.by_labels() else { return Vec::new() };
    // Patterns are not tried while others wait for the index.
    let labels = reader.index.read().labels(id).cloned();
    labels.map_or_else(Vec::new, |labels| masks(&labels))
}

/// `room`: bytes that blocks may still take, over all reads that share it. A block that `keep` refuses takes none: it is
/// let go before the next one is decoded.
pub async fn executions(
    reader: &Reader,
    id: SeriesId,
    range: TimeRange,
    room: &AtomicUsize,
    keep: impl Fn(&ExecutionBlock) -> bool,
) -> Result<Read<Vec<Arc<ExecutionBlock>>>> {
    let snapshot = reader.snapshots.open();
    let read = |open: &OpenExecutions, generation: &Generation| (generation.number, open.read(range));
    let memory = read_memory(reader, |generation| Some(read(generation.executions.get(&id)?, generation)));
    let masks = masks(reader, id);
    let admit = |(generation, block): (u64, Arc<ExecutionBlock>)| {
        let block = mask_block(block, &masks, generation).filter(|block| keep(block));
        if let Some(block) = &block {
            take_room(room, block.bytes(), "bytes of a block")?;
        }
        Ok(block)
    };
    let wanted = Wanted { kind: Kind::Execution, id, range, oldest: memory.oldest, snapshot, masks: &masks };
    let mut read = stored(reader, &wanted, |chunk| chunk.executions().map(Arc::new), admit).await?;
    for (generation, open) in memory.parts {
        for block in open {
            read.records.extend(admit((generation, block))?);
        }
    }
    Ok(read)
}

pub fn take_room(room: &AtomicUsize, amount: usize, unit: &str) -> Result<()> {
    let taken = room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount));
    taken.map(drop).map_err(|left| {
        let message = format!("{amount} {unit} do not fit into the {left} that are left");
        Error::new(ErrorKind::Limit, message)
    })
}

/// Every chunk of a series in the driver; open and sealed ones are not there yet.
pub async fn chunks(reader: &Reader, kind: Kind, id: SeriesId) -> Result<Read<Vec<ChunkInfo>>> {
    let snapshot = reader.snapshots.open();
    let mut read: Read<Vec<ChunkInfo>> = Read::default();
    let masks = masks(reader, id);
    for (group, member) in partitions(reader, kind, id) {
        let each = |found: Found| {
            let Found { key, chunk, row_bytes, .. } = &found;
            match Chunk::open(chunk) {
                Ok(chunk) => {
                    let header = chunk.into_header();
                    if let Some(bytes) = share(&header, member, *row_bytes) {
                        let (start, end, generation) = (header.start, header.end, key.generation);
                        read.records.push(ChunkInfo { start, end, generation, bytes, member, header });
                    }
                }
                Err(error) => {
                    let reason = found.reason((kind, group), error)?;
                    reader.unreadable.note((kind, group), key, &reason);
                    let lost = Lost { key: *key, range: found.range(), reason };
                    read.damages.extend(lost.of(kind, labels(reader, id), TimeRange::ALL, &masks));
                }
            }
            Ok(())
        };
        each_live(reader, (kind, group), TimeRange::ALL, &snapshot, each).await?;
    }
    read.records.sort_by_key(|info| (info.start, info.generation));
    Ok(read)
}

fn labels(reader: &Reader, id: SeriesId) -> Option<Arc<Labels>> {
    reader.index.read().labels(id).cloned()
}

/// Where a series lies: ids of partitions, and its member number in each; 0 of entries and executions.
fn partitions(reader: &Reader, kind: Kind, id: SeriesId) -> Vec<(SeriesId, u16)> {
    if kind != Kind::Sample {
        return vec![(id, 0)];
    }
    let index = reader.index.read();
    let Some(number) = index.number(id) else { return Vec::new() };
    index.groups_of(number).map(|(group, member)| (index.group(group).id, member)).collect()
}

/// What a member takes of the bytes of its row: its own and an equal share of what all have in common. `None` when the
/// chunk holds nothing of it.
fn share(header: &Header, member: u16, row_bytes: usize) -> Option<usize> {
    if header.kind != Kind::Sample {
        return Some(row_bytes);
    }
    let own = header.members.iter().find(|info| info.member == member)?.bytes;
    let columns: usize = header.members.iter().map(|info| info.bytes).sum();
    Some(own + row_bytes.saturating_sub(columns) / header.members.len().max(1))
}

/// A row of a partition that counts.
pub struct Found {
    pub key: ChunkKey,
    /// Of the times of its samples.
    pub overhang: Overhang,
    /// Whole, or its parts; of a damaged row what is left of it. It has checksums of its own.
    pub chunk: Bytes,
    /// Bytes of the whole chunk.
    pub whole: usize,
    /// Why the row cannot be read, where it is damaged.
    pub damaged: Option<Box<str>>,
    /// Of key and value.
    row_bytes: usize,
}

impl Found {
    /// `None` when the snapshot does not see the row.
    fn of(row: Scanned<Cut>, snapshot: &Snapshot) -> Result<Option<(Self, Option<Replacement>, u64)>> {
        let (Ok(Cut { row: Row { partition, clustering, value, .. }, .. })
        | Err(Damaged { partition, clustering, value, .. })) = &row;
        if !snapshot.sees(partition, clustering) {
            return Ok(None);
        }
        let key = ChunkKey::decode(clustering)?;
        let row_bytes = partition.len() + clustering.len() + value.len();
        let split = match split_value(value) {
            // A damaged row says nothing about versions.
            Err(error) if row.is_ok() && error.kind() == ErrorKind::Version => {
                return Err(error.with("start", key.start));
            }
            split => split,
        };
        let (replacement, merge, overhang, chunk) = match &split {
            Ok(Split { replacement, overhang, chunk }) if row.is_ok() => {
                let merge = replacement.map_or(0, |replacement| replacement.merge);
                (*replacement, merge, *overhang, chunk.clone())
            }
            // What a damaged row says of others is not believed: it must not hide any of them. And nothing hides it of which it
            // is not certain that it is older.
            _ => {
                let Remains { merge, chunk } = remains(value);
                (None, merge.unwrap_or(u64::MAX), Overhang::default(), chunk)
            }
        };
        let mut found = Self { key, overhang, whole: chunk.len(), chunk, row_bytes, damaged: None };
        match (row, split) {
            (Ok(Cut { row, whole }), Ok(_)) => found.whole += whole - row.value.len(),
            (Ok(_), Err(error)) => found.damaged = Some(error.to_string().into()),
            (Err(damaged), _) => found.damaged = Some(damaged.reason),
        }
        Ok(Some((found, replacement, merge)))
    }

    /// Is there anything in it that should be read?
    fn counts(&self) -> bool {
        !self.chunk.is_empty() || self.damaged.is_some()
    }

    /// In which its records lie, as far as the row can say.
    pub fn range(&self) -> TimeRange {
        let start = self.key.start;
        let longest = TimeRange::new(start, start.saturating_add_unsigned(self.key.span.span_max_ns()));
        let header = Chunk::open(&self.chunk);
        header.map_or(longest, |chunk| TimeRange::new(chunk.header().start, chunk.header().end))
    }

    /// Why it cannot be read. A chunk of a newer version is an error.
    pub fn reason(&self, (kind, partition): (Kind, SeriesId), error: tacho_chunk::Error) -> Result<Arc<str>> {
        if let Some(reason) = &self.damaged {
            return Ok(Arc::from(&**reason));
        }
        if let tacho_chunk::Error::Version { .. } = error {
            let (start, generation) = (self.key.start, self.key.generation);
            let error = unreadable(error).with("kind", kind.name()).with("partition", partition);
            return Err(error.with("start", start).with("generation", generation));
        }
        Ok(error.to_string().into())
    }
}

/// A row, or a column of it, that cannot be read.
pub struct Lost {
    pub key: ChunkKey,
    pub range: TimeRange,
    pub reason: Arc<str>,
}

impl Lost {
    /// What of it a reader of one series misses: nothing where it is hidden from him, or outside of what he asked for.
    pub fn of(&self, kind: Kind, labels: Option<Arc<Labels>>, asked: TimeRange, masks: &[Mask]) -> Damages {
        let range = TimeRange::new(self.range.start.max(asked.start), self.range.end.min(asked.end));
        let hides = |mask: &Mask| {
            mask.hides(self.key.generation, range.start) && mask.hides(self.key.generation, range.end)
        };
        let mut damages = Damages::default();
        if !range.is_empty() && !masks.iter().any(hides) {
            damages.add(Damage { kind, labels, range, reason: self.reason.clone() });
        }
        damages
    }
}

/// Of the rows of one partition those that the snapshot sees and that no other replaces.
pub fn live(rows: impl Iterator<Item = Scanned<Cut>>, snapshot: &Snapshot) -> Result<Vec<Found>> {
    let (mut keys, mut found) = (Vec::new(), Vec::new());
    for row in rows {
        if let Some((row, replacement, merge)) = Found::of(row, snapshot)? {
            keys.push((row.key, replacement, merge));
            found.push(row);
        }
    }
    let alive = alive(&keys).into_iter().zip(found).filter(|(alive, found)| *alive && found.counts());
    Ok(alive.map(|(_, found)| found).collect())
}

/// As [`live`], for partitions that need not fit into memory: rows are handed out as soon as the scan is past their end, for
/// what replaces a row begins before it. Rows of the rarer span classes come last.
async fn each_live(
    reader: &Reader,
    (kind, partition): (Kind, SeriesId),
    range: TimeRange,
    snapshot: &Snapshot,
    mut each: impl FnMut(Found) -> Result<()>,
) -> Result<()> {
    let (mut replacements, mut held, mut last) = (Vec::new(), VecDeque::new(), Vec::new());
    for span in spans(kind).iter().rev() {
        let mut rows = reader.driver.scan(chunk_scan(kind, partition, *span, range)).await?;
        while let Some(row) = rows.try_next().await? {
            let Some((row, replacement, merge)) = Found::of(row.map(Cut::from), snapshot)? else { continue };
            let start = row.key.start;
            replacements.extend(replacement);
            if *span != Span::Short {
                last.push((row, merge));
                continue;
            }
            // One that cannot be read is handed out to be reported.
            let end = Chunk::open(&row.chunk).map_or(start, |chunk| chunk.header().end);
            held.push_back((end, row, merge));
            while held.front().is_some_and(|(end, ..)| *end < start)
                && let Some((_, row, merge)) = held.pop_front()
            {
                hand_out(row, merge, &replacements, &mut each)?;
                // A chunk takes milliseconds: others want their turn between two.
                tokio::task::yield_now().await;
            }
        }
    }
    for (row, merge) in held.into_iter().map(|(_, row, merge)| (row, merge)).chain(last) {
        hand_out(row, merge, &replacements, &mut each)?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn hand_out(
    row: Found,
    merge: u64,
    replacements: &[Replacement],
    each: &mut impl FnMut(Found) -> Result<()>,
) -> Result<()> {
    let dead = replacements.iter().any(|replacement| replacement.replaces(&row.key, merge));
    if dead || !row.counts() { Ok(()) } else { each(row) }
}

/// What is read of one series of entries or executions.
struct Wanted<'a> {
    kind: Kind,
    id: SeriesId,
    range: TimeRange,
    /// Generations from this one on are in memory.
    oldest: u64,
    snapshot: Snapshot,
    masks: &'a [Mask],
}

/// Decoded chunks of generations before the oldest in memory that overlap the range, in order of generation and number, with
/// their generation. What `admit` does not want is let go, and its first error ends the read, before more is decoded.
async fn stored<T, U>(
    reader: &Reader,
    wanted: &Wanted<'_>,
    decode: impl Fn(Chunk<'_>) -> Result<T, tacho_chunk::Error>,
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
        match read_chunk(&row.chunk, range, &decode) {
            Ok(Some(part)) => {
                let admitted = admit((key.generation, part))?;
                found.extend(admitted.map(|part| ((key.generation, key.number), part)));
            }
            Ok(None) => {}
            // One bad chunk must not hide all the good ones.
            Err(error) => {
                let reason = row.reason((kind, id), error)?;
                reader.unreadable.note((kind, id), key, &reason);
                let lost = Lost { key: *key, range: row.range(), reason };
                damages.extend(lost.of(kind, labels(reader, id), range, masks));
            }
        }
        Ok(())
    };
    each_live(reader, (kind, id), range, &wanted.snapshot, each).await?;
    found.sort_by_key(|(place, _)| *place);
    Ok(Read { records: found.into_iter().map(|(_, part)| part).collect(), damages })
}

fn read_chunk<T>(
    chunk: &Bytes,
    range: TimeRange,
    decode: impl Fn(Chunk<'_>) -> Result<T, tacho_chunk::Error>,
) -> Result<Option<T>, tacho_chunk::Error> {
    let chunk = Chunk::open(chunk)?;
    let header = chunk.header();
    if TimeRange::new(header.start, header.end).overlaps(&range) { decode(chunk).map(Some) } else { Ok(None) }
}

pub fn unreadable(error: tacho_chunk::Error) -> Error {
    let kind = match error {
        tacho_chunk::Error::Version { .. } => ErrorKind::Version,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, "cannot read chunk").caused_by(error)
}
