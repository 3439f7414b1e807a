//! Numbers that merges and their rows are told apart by: they rise over the whole life of the store.
//!
//! A merge looks at a part of a partition only. Were its number one more than those it sees, a row that it does not see could
//! stand for a new one of a lower number; were its rows counted from those it sees, a new row could have the key of another.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of rows that merges write have this bit, those that a flush counts do not.
const OF_MERGE: u32 = 1 << 31;

/// The number that the name of a row was made of, but for its upper bits; 0 of a row that a flush wrote.
pub const fn row_sequence(number: u32) -> u64 {
    if of_merge(number) { (number & !OF_MERGE) as u64 } else { 0 }
}

/// Was a row of that number written by a merge?
pub const fn of_merge(number: u32) -> bool {
    number & OF_MERGE > 0
}

#[derive(Debug)]
pub struct Sequence(AtomicU64);

impl Sequence {
    pub const fn new(last: u64) -> Self {
        Self(AtomicU64::new(last))
    }

    /// What the next process must begin with. To be put with the rows that were named.
    pub fn last(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn next(&self, least: u64) -> u64 {
        let next = |last: u64| last.max(least) + 1;
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |last| Some(next(last))).map_or(0, next)
    }

    /// Above all that were given, and above `seen`, which is only more where an older version has merged.
    pub fn merge(&self, seen: u64) -> u64 {
        self.next(seen)
    }

    /// For a row. They begin again after two thousand million, when no row of the same key is left.
    pub fn row(&self) -> u32 {
        OF_MERGE | (self.next(0) & u64::from(OF_MERGE - 1)) as u32
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
