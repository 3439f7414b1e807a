//! Which rows are parts of one segment that follow each other? Rows arrive in any order.
//!
//! A row that ends with open calls waits for the next part, and a row that carries calls waits for the previous part. Both leave
//! memory when they meet. Parts arrive almost in the order of time, so few rows wait at the same time.

use std::collections::HashMap;

use tacho_chunk::RowRef;
use tacho_model::TraceId;

/// Limit on the rows that wait for a next part, and on those that wait for a previous part. Further rows do not wait: their
/// segments count as if the other part were missing.
const WAITING_MAX: usize = 1 << 19;

/// Trace, span base, and number of the earlier part.
type Key = (TraceId, u64, u32);

/// `E`: kept of the end of a part; `S`: kept of the start of the part after it.
pub(super) struct Parts<E, S> {
    ends: HashMap<Key, E>,
    starts: HashMap<Key, S>,
}

impl<E, S> Default for Parts<E, S> {
    fn default() -> Self {
        Self { ends: HashMap::new(), starts: HashMap::new() }
    }
}

impl<E, S> Parts<E, S> {
    /// Adds the end of a row with calls that are still open. Returns it again if no further row can wait.
    pub(super) fn end(&mut self, row: RowRef<'_>, end: E) -> Met<E, S> {
        let key = (row.trace(), row.base(), row.part());
        match self.starts.remove(&key) {
            Some(start) => Met::Pair(end, start),
            None if self.ends.len() >= WAITING_MAX => Met::Alone(end),
            None => {
                self.ends.insert(key, end);
                Met::Waits
            }
        }
    }

    /// Adds the start of a row that carries calls. Returns the end of the previous part, if it is known.
    pub(super) fn start(&mut self, row: RowRef<'_>, start: S) -> Option<(E, S)> {
        let key = (row.trace(), row.base(), row.part().checked_sub(1)?);
        if let Some(end) = self.ends.remove(&key) {
            return Some((end, start));
        }
        if self.starts.len() < WAITING_MAX {
            self.starts.insert(key, start);
        }
        None
    }

    /// The ends that no other part follows. Forgets all rows.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = E> + use<E, S> {
        self.starts.clear();
        std::mem::take(&mut self.ends).into_values()
    }
}

/// What became of the end of a part.
pub(super) enum Met<E, S> {
    /// The next part is known.
    Pair(E, S),
    /// It waits for the next part.
    Waits,
    /// It cannot wait.
    Alone(E),
}

/// Whether calls of the row are open at its end.
pub(super) fn is_open(row: RowRef<'_>) -> bool {
    let shape = row.shape();
    shape.completed() < shape.calls().len()
}
