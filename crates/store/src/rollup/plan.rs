//! Which roll-ups of a day are written next?
//!
//! Each 16 chunks without a roll-up get one, in the order of their keys, and so do each 16 roll-ups of one level. If chunks
//! arrive in the order of time, a part of a day has at most 15 roll-ups of each level, and 15 chunks, at each of its ends.
//! Roll-ups of late chunks overlap others in time. When the day has ended, one more roll-up sums up all its chunks. It is
//! replaced when 16 more chunks of the day have arrived.

use std::collections::{BTreeMap, HashSet};

use super::row::{DAY_LEVEL, ROLLUP_CHUNKS_MAX, RolledChunk, Rollup, RollupKey, order};
use crate::keys::ChunkKey;

/// Chunks, or roll-ups of one level, that one roll-up sums up. With fewer, more bytes are written; with more, a reader reads
/// more summaries at the ends of its range.
pub const FAN: usize = 16;
/// A day of fewer chunks and roll-ups is not summed up when it has ended: a few summaries are read quickly, and the chunks of a
/// quiet service may be smaller than a roll-up.
pub const DAY_ITEMS_MIN: usize = 4;

/// A summary that a roll-up adds up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    Chunk(RolledChunk),
    Rollup(RollupKey),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub key: RollupKey,
    /// All chunks of the roll-up, ascending by key.
    pub chunks: Vec<RolledChunk>,
    /// The summaries of these chunks. Each chunk is in one of them.
    pub items: Vec<Item>,
    /// The roll-up of the day that the new one replaces, if its key is different.
    pub replaced: Option<RollupKey>,
}

/// The next roll-ups of a day, all of one level. `chunks` are the living chunks that begin on this day, ascending by key;
/// `rollups` are the valid roll-ups of the day. Empty if nothing is to do.
pub fn plan(day: i64, has_ended: bool, chunks: &[RolledChunk], rollups: &[Rollup]) -> Vec<Plan> {
    let (of_day, parts): (Vec<&Rollup>, Vec<&Rollup>) =
        rollups.iter().partition(|rollup| rollup.key.level == DAY_LEVEL);
    let largest = largest(parts);
    let rolled: HashSet<ChunkKey> = keys(&largest).collect();
    let alone: Vec<RolledChunk> =
        chunks.iter().filter(|chunk| !rolled.contains(&chunk.key)).copied().collect();
    let full = alone.chunks_exact(FAN).filter_map(|chunks| Plan::new(day, 1, chunks, &[]));
    let of_chunks: Vec<Plan> = full.collect();
    if !of_chunks.is_empty() {
        return of_chunks;
    }
    let mut levels: BTreeMap<u8, Vec<&Rollup>> = BTreeMap::new();
    for rollup in largest.iter().filter(|rollup| rollup.key.level < DAY_LEVEL - 1) {
        levels.entry(rollup.key.level).or_default().push(rollup);
    }
    let of_level = |(level, rollups): (&u8, &Vec<&Rollup>)| -> Vec<Plan> {
        rollups.chunks_exact(FAN).filter_map(|rollups| Plan::new(day, level + 1, &[], rollups)).collect()
    };
    if let Some(plans) = levels.iter().map(of_level).find(|plans| !plans.is_empty()) {
        return plans;
    }
    let in_day: HashSet<ChunkKey> = keys(&of_day).collect();
    let late = chunks.iter().filter(|chunk| !in_day.contains(&chunk.key)).count();
    let is_due = if of_day.is_empty() { alone.len() + largest.len() >= DAY_ITEMS_MIN } else { late >= FAN };
    let plan = (has_ended && is_due).then(|| Plan::new(day, DAY_LEVEL, &alone, &largest)).flatten();
    let replaced = of_day.first().map(|rollup| rollup.key);
    plan.into_iter().map(|plan| Plan { replaced: replaced.filter(|key| *key != plan.key), ..plan }).collect()
}

/// The roll-ups that no larger roll-up contains, ascending by first chunk.
fn largest(mut by_level: Vec<&Rollup>) -> Vec<&Rollup> {
    by_level.sort_unstable_by_key(|rollup| (std::cmp::Reverse(rollup.key.level), order(&rollup.key.first)));
    let mut taken = HashSet::new();
    by_level.retain(|rollup| {
        let is_largest = keys(&[*rollup]).all(|key| !taken.contains(&key));
        taken.extend(keys(&[*rollup]).filter(|_| is_largest));
        is_largest
    });
    by_level.sort_unstable_by_key(|rollup| order(&rollup.key.first));
    by_level
}

fn keys<'a>(rollups: &'a [&Rollup]) -> impl Iterator<Item = ChunkKey> + use<'a> {
    rollups.iter().flat_map(|rollup| rollup.chunks.iter().map(|chunk| chunk.key))
}

impl Plan {
    /// `None` if the roll-up would have too many chunks.
    fn new(day: i64, level: u8, alone: &[RolledChunk], rollups: &[&Rollup]) -> Option<Self> {
        let mut chunks: Vec<RolledChunk> =
            rollups.iter().flat_map(|rollup| rollup.chunks.iter().copied()).collect();
        chunks.extend(alone);
        chunks.sort_unstable_by_key(|chunk| order(&chunk.key));
        let first = chunks.first()?.key;
        let items = alone.iter().copied().map(Item::Chunk);
        let items = items.chain(rollups.iter().map(|rollup| Item::Rollup(rollup.key))).collect();
        let key = RollupKey { day, level, first };
        (chunks.len() <= ROLLUP_CHUNKS_MAX).then_some(Self { key, chunks, items, replaced: None })
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::TimeRange;

    use super::*;
    use crate::keys::Span;

    fn chunk(start: i64) -> RolledChunk {
        let key = ChunkKey { span: Span::Short, start, generation: 1, number: 0 };
        RolledChunk { key, replacement: None }
    }

    /// Writes all roll-ups that are planned. Returns them with their numbers of items, and checks that the items of a roll-up
    /// have each of its chunks once.
    fn write_all(
        has_ended: bool,
        chunks: &[RolledChunk],
        rollups: &mut Vec<Rollup>,
    ) -> Vec<(u8, usize, usize)> {
        let mut written = vec![];
        loop {
            let plans = plan(0, has_ended, chunks, rollups);
            if plans.is_empty() {
                return written;
            }
            for Plan { key, chunks: planned, items, replaced } in plans {
                let chunks_of = |item: &Item| match item {
                    Item::Chunk(chunk) => vec![*chunk],
                    Item::Rollup(key) => {
                        rollups.iter().find(|rollup| rollup.key == *key).unwrap().chunks.clone()
                    }
                };
                let mut all: Vec<RolledChunk> = items.iter().flat_map(chunks_of).collect();
                all.sort_by_key(|chunk| order(&chunk.key));
                assert_eq!(all, planned);
                written.push((key.level, items.len(), planned.len()));
                rollups.retain(|rollup| rollup.key != key && Some(rollup.key) != replaced);
                rollups.push(Rollup { key, chunks: planned, range: TimeRange::new(0, 0), segments: 0 });
            }
        }
    }

    #[test]
    fn sixteen_of_a_level_are_rolled_up() {
        let chunks: Vec<RolledChunk> = (0..300).map(chunk).collect();
        let mut rollups = vec![];
        assert_eq!(write_all(false, &chunks[..15], &mut rollups), []);
        assert_eq!(write_all(false, &chunks[..40], &mut rollups), [(1, 16, 16), (1, 16, 16)]);
        let written = write_all(false, &chunks, &mut rollups);
        assert_eq!(written.iter().filter(|(level, ..)| *level == 1).count(), 16);
        assert_eq!(written.iter().find(|(level, ..)| *level == 2), Some(&(2, 16, 256)));
        assert_eq!(rollups.len(), 19);
        assert_eq!(write_all(false, &chunks, &mut rollups), []);
    }

    #[test]
    fn an_ended_day_has_one_roll_up_of_all_chunks() {
        let chunks: Vec<RolledChunk> = (0..40).map(|n| chunk(n * 10)).collect();
        let mut rollups = vec![];
        assert_eq!(write_all(true, &chunks[..3], &mut rollups), []);
        // Two roll-ups and eight chunks.
        assert_eq!(write_all(true, &chunks, &mut rollups), [(1, 16, 16), (1, 16, 16), (DAY_LEVEL, 10, 40)]);
        // The first late chunk changes the key of the roll-up of the day.
        let mut more = [&chunks[..], &(0..15).map(|n| chunk(-1 - n)).collect::<Vec<_>>()].concat();
        more.sort_by_key(|chunk| order(&chunk.key));
        let written = write_all(true, &more, &mut rollups);
        assert_eq!(written, [(1, 16, 16)], "15 late chunks and a chunk that was alone");
        more.insert(0, chunk(-100));
        assert_eq!(write_all(true, &more, &mut rollups), [(DAY_LEVEL, 11, 56)]);
        let of_day: Vec<_> = rollups.iter().filter(|rollup| rollup.key.level == DAY_LEVEL).collect();
        assert_eq!(of_day.len(), 1);
    }
}
