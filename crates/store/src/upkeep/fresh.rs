//! Counts for each partition the chunks that no merge has read. The counts are in memory, so that the usual choice of
//! merges needs no read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tacho_model::Timestamp;

use super::window::{Partition, Stretch};
use crate::driver::Row;
use crate::keys::ChunkKey;

/// The part at the end of a partition that may be merged with later chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Chunks that no merge has read.
    pub chunks: u32,
    /// Start of the first fresh chunk. If the rows directly before it are not full, the start of the earliest of these rows.
    pub from: Timestamp,
    /// Whether it is known that no earlier row reaches into this part.
    pub clean: bool,
}

impl Tail {
    pub fn and(self, other: Self) -> Self {
        // The tail with the earlier start also says whether the boundary is clean. Chunks with a later start do not
        // change that.
        let first = if other.from < self.from { other } else { self };
        Self { chunks: self.chunks + other.chunks, ..first }
    }

    pub const fn stretch(&self) -> Stretch {
        if self.clean { Stretch::From(self.from) } else { Stretch::Around(self.from) }
    }
}

type Key = [u8; 17];

/// Tails of the partitions with fresh chunks, or with merged chunks that are not full.
#[derive(Debug, Default)]
pub struct Fresh(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    /// Partitions that a merge may read now.
    ready: HashMap<Key, Tail>,
    /// Partitions with chunks of a generation that is not completely flushed. A merge skips such chunks. These partitions
    /// therefore wait for the end of the flush, which may fail and be retried for hours.
    held: HashMap<Key, Tail>,
}

impl Fresh {
    fn lock(&self) -> MutexGuard<'_, Lists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts rows that a flush has put into the Chunks table. They are held until [`Fresh::release`].
    pub fn note(&self, rows: &[Row]) {
        let mut lists = self.lock();
        for row in rows {
            let Ok(partition) = Key::try_from(row.partition.as_slice()) else { continue };
            let Ok(key) = ChunkKey::decode(&row.clustering) else { continue };
            add(&mut lists.held, partition, Tail { chunks: 1, from: key.start, clean: false });
        }
    }

    /// Makes all held partitions ready. Called when a flush has ended. The next flush may have added chunks already; a merge
    /// skips these, and they are added back.
    pub fn release(&self) {
        let mut lists = self.lock();
        for (partition, tail) in std::mem::take(&mut lists.held) {
            add(&mut lists.ready, partition, tail);
        }
    }

    /// Adds back chunks that a job has skipped, because their generation is not completely flushed.
    pub fn hold(&self, partition: &Partition, tail: Tail) {
        if let Ok(key) = Key::try_from(partition.key().as_slice()) {
            add(&mut self.lock().held, key, tail);
        }
    }

    /// Removes the ready partitions with at least this many fresh chunks from the list, and returns them, ordered by key. The
    /// caller gives back the chunks that it does not merge.
    pub fn take(&self, chunks: u32) -> Vec<(Partition, Tail)> {
        let mut lists = self.lock();
        let mut taken: Vec<(Key, Tail)> = lists.ready.extract_if(|_, tail| tail.chunks >= chunks).collect();
        taken.sort_unstable_by_key(|(key, _)| *key);
        taken.into_iter().filter_map(|(key, tail)| Some((Partition::decode(&key)?, tail))).collect()
    }

    /// Removes one ready partition from the list, and returns its tail. The tail does not stay in the list, because the
    /// caller's job may change the boundary, which may then no longer be clean.
    pub fn take_one(&self, partition: &Partition) -> Option<Tail> {
        self.lock().ready.remove(&Key::try_from(partition.key().as_slice()).ok()?)
    }

    /// Adds a tail: the rows at the end of the partition that are not full after a merge, with 0 fresh chunks, or the chunks of a
    /// job that did not read them.
    pub fn give_back(&self, partition: &Partition, tail: Tail) {
        if let Ok(key) = Key::try_from(partition.key().as_slice()) {
            add(&mut self.lock().ready, key, tail);
        }
    }

    /// Number of fresh chunks in all partitions, and in ready partitions with enough chunks for a merge.
    pub fn chunks(&self, enough: u32) -> (u64, u64) {
        let lists = self.lock();
        let held: u64 = lists.held.values().map(|tail| u64::from(tail.chunks)).sum();
        lists.ready.values().fold((held, 0), |(sum, due), tail| {
            let chunks = u64::from(tail.chunks);
            (sum + chunks, due + if tail.chunks >= enough { chunks } else { 0 })
        })
    }
}

fn add(all: &mut HashMap<Key, Tail>, partition: Key, tail: Tail) {
    all.entry(partition).and_modify(|known| *known = known.and(tail)).or_insert(tail);
}

#[cfg(test)]
mod tests {
    use tacho_model::{Kind, SeriesId};

    use super::*;
    use crate::driver::Table;
    use crate::keys::Span;

    #[test]
    fn partitions_are_taken_when_they_have_enough() {
        let partition = |id| Partition { kind: Kind::Sample, id: SeriesId(id) };
        let row = |id, start| Row {
            table: Table::Chunks,
            partition: partition(id).key(),
            clustering: ChunkKey { span: Span::Short, start, generation: 1, number: 0 }.encode(),
            value: bytes::Bytes::new(),
        };
        let tail = |chunks, from, clean| Tail { chunks, from, clean };
        let fresh = Fresh::default();
        let note = |rows: &[Row]| {
            fresh.note(rows);
            fresh.release();
        };
        note(&[row(1, 5), row(1, 3), row(2, 9), row(1, 7)]);
        assert_eq!(fresh.chunks(2), (4, 3));
        assert_eq!(fresh.take(2), [(partition(1), tail(3, 3, false))]);
        fresh.give_back(&partition(1), tail(0, 3, true));
        note(&[row(1, 4)]);
        assert_eq!(fresh.take(1).len(), 2);
        fresh.give_back(&partition(1), tail(0, 3, true));
        note(&[row(1, 4), row(1, 3)]);
        assert_eq!(fresh.take(2), [(partition(1), tail(2, 3, true))]);
        fresh.give_back(&partition(1), tail(0, 3, true));
        note(&[row(1, 2), row(1, 3)]);
        assert_eq!(fresh.take(2), [(partition(1), tail(2, 2, false))]);
    }

    #[test]
    fn chunks_of_an_unfinished_flush_are_counted_and_not_taken() {
        let partition = Partition { kind: Kind::Sample, id: SeriesId(1) };
        let tail = |chunks, from| Tail { chunks, from, clean: false };
        let fresh = Fresh::default();
        fresh.give_back(&partition, tail(1, 5));
        fresh.hold(&partition, tail(2, 3));
        assert_eq!((fresh.chunks(1), fresh.take(2)), ((3, 1), vec![]));
        fresh.release();
        fresh.release();
        assert_eq!(fresh.take(2), [(partition, tail(3, 3))]);
    }
}
