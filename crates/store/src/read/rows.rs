//! Selects the rows of one partition that a reader uses: the rows that its snapshot sees and that no other row replaces.
//! Damaged rows are included, so that they are reported.

use std::collections::VecDeque;
use std::ops::{Bound, Range};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use tacho_chunk::Chunk;
use tacho_model::{Kind, Labels, SeriesId, TimeRange};

use super::{Reader, Steps};
use crate::damage::{Damage, Damages};
use crate::driver::{Cut, Damaged, Parts, Row, Scan, Scanned};
use crate::group::resent::Overhang;
use crate::group::row::{Remains, Replacement, Split, remains, replacement_bytes, split_value};
use crate::keys::{ChunkKey, Span, chunk_row_scan, chunk_scan, spans};
use crate::upkeep::{Mask, Snapshot, alive};
use crate::{Error, ErrorKind, Result};

pub struct Found {
    pub key: ChunkKey,
    pub overhang: Overhang,
    /// The whole chunk or the requested parts. Of a damaged row, the bytes after the prefix: they may be an intact chunk,
    /// because a chunk has its own checksums.
    pub chunk: Bytes,
    /// Size of the whole chunk, bytes.
    pub whole: usize,
    pub damaged: Option<Box<str>>,
    /// Size of the key and of the part of the value that was read, bytes.
    pub row_bytes: usize,
}

impl Found {
    /// Decodes a row. Returns `None` if the snapshot does not see it.
    pub fn of(row: Scanned<Cut>, snapshot: &Snapshot) -> Result<Option<(Self, Option<Replacement>, u64)>> {
        let (Ok(Cut { row: Row { partition, clustering, value, .. }, .. })
        | Err(Damaged { partition, clustering, value, .. })) = &row;
        if !snapshot.sees(partition, clustering) {
            return Ok(None);
        }
        let key = ChunkKey::decode(clustering)?;
        let row_bytes = partition.len() + clustering.len() + value.len();
        let split = match split_value(value) {
            // A version error in a damaged row is ignored, because its bytes cannot be trusted.
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
            // The prefix of a damaged row is not trusted, so the row does not replace any other row. Another row replaces
            // the damaged row only if the damaged row is certain to be older.
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

    /// Whether the row has data to read or damage to report.
    pub fn counts(&self) -> bool {
        !self.chunk.is_empty() || self.damaged.is_some()
    }

    /// Time range of its records, or the longest possible range if the header is unreadable.
    pub fn range(&self) -> TimeRange {
        let start = self.key.start;
        let longest = TimeRange::new(start, start.saturating_add_unsigned(self.key.span.span_max_ns()));
        let header = Chunk::open(&self.chunk);
        header.map_or(longest, |chunk| TimeRange::new(chunk.header().start, chunk.header().end))
    }

    /// The reason why the row cannot be read. A chunk of a newer version is returned as an error.
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

/// An unreadable row, or a row with an unreadable column.
pub struct Lost {
    pub key: ChunkKey,
    pub range: TimeRange,
    pub reason: Arc<str>,
}

impl Lost {
    /// The damage that a reader of one series reports for the row. Empty if the row is masked or outside the requested
    /// range.
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

/// The rows of one partition that the snapshot sees and that no other row replaces.
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

/// Like [`live`], for partitions that may not fit into memory. A row is passed to `each` as soon as the scan is past the last
/// time of the row. Every merge that replaces the row has a row that starts at this time or before. Rows of span classes other
/// than [`Span::Short`] come last.
pub async fn each_live(
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
            // An unreadable row is also passed to `each`, so that it is reported.
            let end = Chunk::open(&row.chunk).map_or(start, |chunk| chunk.header().end);
            held.push_back((end, row, merge));
            while held.front().is_some_and(|(end, ..)| *end < start)
                && let Some((_, row, merge)) = held.pop_front()
            {
                hand_out(row, merge, &replacements, &mut each)?;
                // Processing a chunk takes milliseconds, so other tasks may run in between.
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

/// Number of rows whose fronts (header and filters) are read at once. A front usually takes about 10 KiB.
pub const FRONTS: usize = 64;

/// Like [`each_live`], for chunks with filters. Reads the header and the filters of each chunk first, and the whole row only if
/// `is_needed` accepts them. Rows without a readable front are needed.
pub async fn each_needed(
    reader: &Reader,
    place: (Kind, SeriesId),
    range: TimeRange,
    snapshot: &Snapshot,
    (is_needed, steps): (impl Fn(&ChunkKey, &Chunk<'_>) -> bool, Steps<'_>),
    mut each: impl FnMut(Found) -> Result<()>,
) -> Result<()> {
    let is_row_needed = |row: &Found| {
        let front = Chunk::open_front(&row.chunk, row.whole);
        row.damaged.is_some() || row.counts() && front.map_or(true, |front| is_needed(&row.key, &front))
    };
    let rows = fronts(reader, place, (range, Arc::new(front)), snapshot, is_row_needed).await?;
    let needed = rows.into_iter().filter(|(_, is_needed)| *is_needed).map(|(key, _)| key);
    let needed: Vec<ChunkKey> = needed.collect();
    let all = needed.len();
    let needed = needed.into_iter().enumerate().inspect(|(done, _)| steps(*done, all)).map(|(_, key)| key);
    each_of(reader, place, needed, snapshot, &mut each).await
}

/// Reads the selected parts of the rows of a partition, and passes each row to `decide`. Returns the results for the rows that
/// no other row replaces.
pub async fn fronts<T>(
    reader: &Reader,
    (kind, partition): (Kind, SeriesId),
    (range, parts): (TimeRange, Parts),
    snapshot: &Snapshot,
    decide: impl Fn(&Found) -> T,
) -> Result<Vec<(ChunkKey, T)>> {
    let (mut keys, mut decided) = (Vec::new(), Vec::new());
    for span in spans(kind) {
        let mut scan = Scan { limit: Some(FRONTS), ..chunk_scan(kind, partition, *span, range) };
        loop {
            let rows =
                reader.driver.read_parts(vec![scan.clone()], parts.clone()).await?.pop().unwrap_or_default();
            let Some(Ok(Cut { row: Row { clustering, .. }, .. }) | Err(Damaged { clustering, .. })) =
                rows.last()
            else {
                break;
            };
            scan.from = Bound::Excluded(clustering.clone());
            let is_last = rows.len() < FRONTS;
            for row in rows {
                let Some((row, replacement, merge)) = Found::of(row, snapshot)? else { continue };
                decided.push(decide(&row));
                keys.push((row.key, replacement, merge));
            }
            if is_last {
                break;
            }
        }
    }
    let alive = alive(&keys);
    let rows = keys.into_iter().map(|(key, ..)| key).zip(decided).zip(alive);
    Ok(rows.filter(|(_, alive)| *alive).map(|(row, _)| row).collect())
}

pub async fn each_of(
    reader: &Reader,
    place: (Kind, SeriesId),
    keys: impl IntoIterator<Item = ChunkKey>,
    snapshot: &Snapshot,
    each: &mut impl FnMut(Found) -> Result<()>,
) -> Result<()> {
    for key in keys {
        row_of(reader, place, &key, snapshot).await?.map_or(Ok(()), &mut *each)?;
        // Processing a chunk takes milliseconds, so other tasks may run in between.
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The row with this key; `None` if the snapshot does not see it, or if it has nothing to read.
pub async fn row_of(
    reader: &Reader,
    (kind, partition): (Kind, SeriesId),
    key: &ChunkKey,
    snapshot: &Snapshot,
) -> Result<Option<Found>> {
    let rows = reader.driver.read(vec![chunk_row_scan(kind, partition, key)]).await?;
    let Some(row) = rows.into_iter().flatten().next() else { return Ok(None) };
    Ok(Found::of(row.map(Cut::from), snapshot)?.map(|(row, ..)| row).filter(Found::counts))
}

/// The header and the filters of a chunk, with the prefix of its row.
fn front(_: usize, value: &[u8]) -> Option<Vec<Range<usize>>> {
    let before = replacement_bytes(value)?;
    let front = Chunk::front_bytes(value.get(before..)?)?;
    let end = before.checked_add(front)?;
    Some(std::iter::once(0..end).collect())
}

/// The header of a chunk, with the prefix of its row.
pub fn head(_: usize, value: &[u8]) -> Option<Vec<Range<usize>>> {
    let before = replacement_bytes(value)?;
    let header = Chunk::summary_parts(value.get(before..)?)?.into_iter().next()?;
    Some(std::iter::once(0..before.checked_add(header.end)?).collect())
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

pub fn unreadable(error: tacho_chunk::Error) -> Error {
    let kind = match error {
        tacho_chunk::Error::Version { .. } => ErrorKind::Version,
        _ => ErrorKind::Corrupt,
    };
    Error::new(kind, "cannot read chunk").caused_by(error)
}
