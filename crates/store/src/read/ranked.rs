//! Reads the rows of calls that a search needs, best first.
//!
//! The search gives each summary a rank: the highest rank that a matching call of these calls can have. The rank of a roll-up is
//! at least those of its chunks. So a roll-up is replaced by its parts (smaller roll-ups, and chunks) only when its rank is the
//! highest one left and the search still needs it: a best-first search of a tree with bounds. Most summaries are not read.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use tacho_chunk::SummarizedChunk;
use tacho_model::{Kind, SeriesId, TimeRange};

use super::rolled::{learn, read_summary, read_uses};
use super::rows::{Found, each_of, head};
use super::summaries::{each_summary, used};
use super::usage::{Usage, Use};
use super::{Reader, Steps};
use crate::Result;
use crate::driver::{Cut, Scanned};
use crate::keys::ChunkKey;
use crate::rollup::{Rollup, Survey, heads, survey};
use crate::upkeep::Snapshot;

/// Gets a summary. Returns the highest rank of its calls; `None` if the reader does not need them. For a damaged summary of a
/// chunk, it gets a text.
pub type Rank<'a> = &'a (dyn Fn(Result<SummarizedChunk<'_>, String>) -> Option<u64> + Sync);

/// Reads the chunks by descending rank, those without a usable summary first. Each is read only if `is_needed` accepts its rank
/// and its number of segments.
pub async fn each_ranked(
    reader: &Reader,
    place: (Kind, SeriesId),
    range: TimeRange,
    snapshot: &Snapshot,
    usage: Usage<'_>,
    (rank, is_needed, steps): (Rank<'_>, impl Fn(u64, usize) -> bool, Steps<'_>),
    mut each: impl FnMut(Found) -> Result<()>,
) -> Result<()> {
    let (queue, items) = (BinaryHeap::new(), 0);
    let mut search = Search { reader, place, snapshot, usage, rank, survey: None, queue, items };
    let found = heads(&*reader.driver, place.1, range).await?;
    if !found.0.is_empty() && place.0 == Kind::Execution {
        let learn = |row: Scanned<Cut>| learn(row, snapshot, usage);
        let sees = |partition: &[u8], clustering: &[u8]| snapshot.sees(partition, clustering);
        let driver = &*reader.driver;
        search.survey = survey(driver, place.1, range, found, sees, Arc::new(head), learn).await?;
    }
    let all = match &mut search.survey {
        Some(survey) => {
            survey.rollups.sort_unstable_by_key(|rollup| Reverse((rollup.key.level, rollup.chunks.len())));
            let all: Vec<usize> = (0..survey.chunks.len()).collect();
            search.split(&all, 0).await?;
            all.len()
        }
        None => search.add_all(range).await?,
    };
    let mut done = 0;
    while let Some(Item { rank, segments, of, .. }) = search.queue.pop() {
        steps(done, all);
        if !is_needed(rank, segments) {
            done += of.chunks();
            continue;
        }
        match of {
            Of::Chunk(key) => {
                each_of(reader, place, [key], snapshot, &mut each).await?;
                done += 1;
            }
            Of::Rollup { chunks, number } => search.split(&chunks, number + 1).await?,
        }
    }
    Ok(())
}

/// A part of the calls that may be needed.
struct Item {
    rank: u64,
    /// Counts the items.
    nth: usize,
    segments: usize,
    of: Of,
}

impl Item {
    /// Of equal ranks, the first one is read first.
    const fn order(&self) -> (u64, Reverse<usize>) {
        (self.rank, Reverse(self.nth))
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Item {}

enum Of {
    Chunk(ChunkKey),
    /// The positions of its chunks in the survey, and its number in the list of roll-ups.
    Rollup {
        chunks: Vec<usize>,
        number: usize,
    },
}

impl Of {
    fn chunks(&self) -> usize {
        match self {
            Self::Chunk(_) => 1,
            Self::Rollup { chunks, .. } => chunks.len(),
        }
    }
}

struct Search<'a> {
    reader: &'a Reader,
    place: (Kind, SeriesId),
    snapshot: &'a Snapshot,
    usage: Usage<'a>,
    rank: Rank<'a>,
    /// The chunks and the roll-ups, the largest ones first. `None` without roll-ups.
    survey: Option<Survey<Use>>,
    queue: BinaryHeap<Item>,
    items: usize,
}

impl Search<'_> {
    fn push(&mut self, rank: u64, segments: usize, of: Of) {
        self.queue.push(Item { rank, nth: self.items, segments, of });
        self.items += 1;
    }

    /// Adds all chunks of a range. Returns their number.
    async fn add_all(&mut self, range: TimeRange) -> Result<usize> {
        let Self { reader, place, snapshot, usage, .. } = *self;
        let (certain, summed) = used(reader, place, range, snapshot, usage).await?;
        let all = certain.len() + summed.len();
        self.add_chunks(certain, &summed).await?;
        Ok(all)
    }

    /// Adds chunks whose calls are certainly needed, and chunks with summaries.
    async fn add_chunks(&mut self, certain: Vec<ChunkKey>, summed: &[ChunkKey]) -> Result<()> {
        certain.into_iter().for_each(|key| self.push(u64::MAX, 0, Of::Chunk(key)));
        let Self { reader, place, snapshot, rank, .. } = *self;
        let mut ranked = Vec::new();
        let add = |key: &ChunkKey, summary: Option<Result<SummarizedChunk<'_>, String>>| {
            let segments =
                summary.as_ref().and_then(|chunk| chunk.as_ref().ok()).map_or(0, |chunk| chunk.segments);
            ranked.extend(summary.map_or(Some(u64::MAX), rank).map(|rank| (rank, segments, *key)));
        };
        each_summary(reader, place, summed, snapshot, add).await?;
        ranked.into_iter().for_each(|(rank, segments, key)| self.push(rank, segments, Of::Chunk(key)));
        Ok(())
    }

    /// Adds the parts of some chunks: the largest usable roll-ups, from this number on, that have only these chunks, and the
    /// other chunks. The chunks are positions in the survey, ascending.
    async fn split(&mut self, chunks: &[usize], from: usize) -> Result<()> {
        let mut is_left = vec![false; self.survey.as_ref().map_or(0, |survey| survey.chunks.len())];
        chunks.iter().for_each(|at| is_left.get_mut(*at).into_iter().for_each(|left| *left = true));
        let mut number = from;
        while let Some((rollup, positions)) = self.survey.as_ref().and_then(|survey| {
            let rollup = survey.rollups.get(number)?;
            Some((rollup.clone(), rollup.chunks.iter().map(|chunk| survey.position(&chunk.key)).collect()))
        }) {
            let positions: Option<Vec<usize>> = positions;
            let whole = positions.filter(|own| own.iter().all(|at| is_left.get(*at) == Some(&true)));
            if let Some(chunks) = whole
                && self.add_rollup(&rollup, &chunks, number).await?
            {
                chunks.iter().for_each(|at| is_left.get_mut(*at).into_iter().for_each(|left| *left = false));
            }
            number += 1;
        }
        let Self { reader, place, snapshot, usage, .. } = *self;
        let Some(survey) = &self.survey else { return Ok(()) };
        let left = survey.chunks.iter().zip(is_left).filter(|(_, is_left)| *is_left);
        let mut uses: Vec<(ChunkKey, Option<Use>)> =
            left.map(|((chunk, use_of), _)| (chunk.key, *use_of)).collect();
        let unread = uses.iter_mut().filter(|(_, use_of)| use_of.is_none());
        read_uses(reader, place, unread.map(|(key, use_of)| (*key, use_of)).collect(), snapshot, usage)
            .await?;
        let of = |wanted: Use| -> Vec<ChunkKey> {
            uses.iter().filter(|(_, use_of)| *use_of == Some(wanted)).map(|(key, _)| *key).collect()
        };
        self.add_chunks(of(Use::Calls), &of(Use::Summary)).await
    }

    /// Returns whether the roll-up is enough for now, so that its chunks need not be added.
    async fn add_rollup(&mut self, rollup: &Rollup, chunks: &[usize], number: usize) -> Result<bool> {
        match (self.usage)(rollup.generations(), rollup.range, true) {
            Use::Nothing => return Ok(true),
            Use::Calls => return Ok(false),
            Use::Summary => {}
        }
        let Some(summary) = read_summary(self.reader, self.place.1, rollup).await? else { return Ok(false) };
        let segments = usize::try_from(rollup.segments).unwrap_or(usize::MAX);
        let summarized = SummarizedChunk { summary: &summary, segments, range: rollup.range };
        if let Some(rank) = (self.rank)(Ok(summarized)) {
            self.push(rank, segments, Of::Rollup { chunks: chunks.to_vec(), number });
        }
        Ok(true)
    }
}
