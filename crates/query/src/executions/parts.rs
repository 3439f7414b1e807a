//! Which rows are parts of one segment that follow each other? Rows arrive in any order.
//!
//! A row that ends with open calls waits for the next part, and a row that carries calls waits for the previous part. Parts
//! arrive almost in the order of time, so few rows wait at the same time.

use std::collections::HashMap;

use tacho_chunk::{Edge, LoosePart, PartKey, RowRef, part_gap};
use tacho_model::Timestamp;

use super::limits::Incomplete;

/// `E`: the facts about the end of a part. `S`: the facts about the start of the next part.
pub(super) struct Parts<E, S> {
    /// Both maps have the key of the earlier part.
    ends: HashMap<PartKey, E>,
    starts: HashMap<PartKey, S>,
    /// Limit on the size of each map. Further rows do not wait: their segments count as if the other part were missing.
    max: usize,
    /// Number of rows that did not wait because of `max`.
    omitted: u64,
}

impl<E, S> Parts<E, S> {
    pub(super) fn new(max: usize) -> Self {
        Self { ends: HashMap::new(), starts: HashMap::new(), max, omitted: 0 }
    }

    /// Adds the end of a row with calls that are still open.
    pub(super) fn end(&mut self, row: RowRef<'_>, end: E) -> Met<E, S> {
        self.end_of(PartKey { trace: row.trace(), base: row.base(), part: row.part() }, end)
    }

    /// Adds the end of a part with calls that are still open.
    pub(super) fn end_of(&mut self, key: PartKey, end: E) -> Met<E, S> {
        match self.starts.remove(&key) {
            Some(start) => Met::Pair(end, start),
            None if self.ends.len() >= self.max => {
                self.omitted += 1;
                Met::Alone(end)
            }
            None => {
                self.ends.insert(key, end);
                Met::Waits
            }
        }
    }

    /// Adds the start of a row that carries calls. Returns it with the end of the previous part, if that end is known.
    pub(super) fn start(&mut self, row: RowRef<'_>, start: S) -> Option<(E, S)> {
        let part = row.part().checked_sub(1)?;
        self.start_of(PartKey { trace: row.trace(), base: row.base(), part }, start)
    }

    /// Adds the start of the part after `key`. Returns it with the end of `key`, if that end is known.
    pub(super) fn start_of(&mut self, key: PartKey, start: S) -> Option<(E, S)> {
        if let Some(end) = self.ends.remove(&key) {
            return Some((end, start));
        }
        if self.starts.len() < self.max {
            self.starts.insert(key, start);
        } else {
            self.omitted += 1;
        }
        None
    }

    pub(super) fn incomplete(&self) -> Option<Incomplete> {
        let Self { omitted, max: limit, .. } = *self;
        (omitted > 0).then_some(Incomplete::Parts { omitted, limit })
    }

    /// Removes all rows. Returns the ends that no other part follows.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = E> + use<E, S> {
        self.starts.clear();
        std::mem::take(&mut self.ends).into_values()
    }
}

/// The time of the last event of a part. For the next part: the number of its innermost carried call, if that call counts, and
/// the time of its first event.
impl Parts<Timestamp, (Option<u32>, Timestamp)> {
    /// Adds a loose part of a summary. `number` gets the operation of the innermost carried call. If both parts are known and the
    /// call counts, returns its number and the time between the parts, ns.
    pub(super) fn add_loose(
        &mut self,
        part: &LoosePart,
        number: impl FnOnce(u32) -> Option<u32>,
    ) -> Option<(u32, u64)> {
        let met = match part.edge {
            Edge::End(end) => match self.end_of(part.key, end) {
                Met::Pair(end, start) => Some((end, start)),
                Met::Waits | Met::Alone(_) => None,
            },
            Edge::Start(operation, at) => self.start_of(part.key, (number(operation), at)),
        };
        met.and_then(|(end, (number, start))| Some((number?, part_gap(end, start))))
    }
}

pub(super) enum Met<E, S> {
    /// The next part is known.
    Pair(E, S),
    /// The end waits for the next part.
    Waits,
    /// The end cannot wait, because too many rows wait already.
    Alone(E),
}
