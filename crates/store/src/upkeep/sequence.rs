//! Sequence numbers of merges and of the rows that they write. They rise over the whole life of the store.
//!
//! Numbers cannot be derived from the rows that a merge reads, because a merge reads only a part of a partition. One
//! above the highest merge number of the read rows could be too low: an unread row could then replace the new rows. A row
//! number derived from the read rows could be in use already: a new row could then have the key of another row.

use std::sync::atomic::{AtomicU64, Ordering};

/// This bit is set in the numbers of rows that merges write, and not set in those of a flush. Exception: if a merge
/// ends inside a row of entries, the row with the remaining entries keeps the number of its source row (`replacement.rs`).
const OF_MERGE: u32 = 1 << 31;

/// The lower bits of the sequence number of a row; 0 for a number that a flush assigned.
pub const fn row_sequence(number: u32) -> u64 {
    if of_merge(number) { (number & !OF_MERGE) as u64 } else { 0 }
}

/// Whether a merge assigned this number.
pub const fn of_merge(number: u32) -> bool {
    number & OF_MERGE > 0
}

#[derive(Debug)]
pub struct Sequence(AtomicU64);

impl Sequence {
    pub const fn new(last: u64) -> Self {
        Self(AtomicU64::new(last))
    }

    /// The last assigned number. It must be put with the rows that use it, because the next process continues after it.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn next(&self, least: u64) -> u64 {
        let next = |last: u64| last.max(least) + 1;
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last))).map_or(0, next)
    }

    /// A number above all assigned numbers and above `seen`. `seen` exceeds the assigned numbers only after merges by an
    /// older version of this program.
    pub fn merge(&self, seen: u64) -> u64 {
        self.next(seen)
    }

    /// A number for a row. The numbers repeat after `2^31` numbers. By then, no earlier row with the same key is
    /// left.
    pub fn row(&self) -> u32 {
        OF_MERGE | u32::try_from(self.next(0) & u64::from(OF_MERGE - 1)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_rise() {
        let sequence = Sequence::new(7);
        assert_eq!([sequence.merge(0), sequence.merge(20), sequence.merge(3)], [8, 21, 22]);
        assert_eq!((sequence.row(), sequence.last()), (OF_MERGE | 23, 23));
        assert!(of_merge(sequence.row()) && !of_merge(7));
        assert_eq!(Sequence::new(u64::from(u32::MAX)).row(), OF_MERGE);
    }
}
