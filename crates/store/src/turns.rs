//! In which order does the journal's thread commit waiting batches?
//!
//! A large batch takes as long as thousands of small ones. Groups of small batches and groups of large batches take turns, so
//! that small batches do not wait for all large ones.

use std::collections::VecDeque;

#[derive(Debug)]
pub struct Turns<T> {
    small: VecDeque<T>,
    large: VecDeque<T>,
    /// Whether the current group has large batches.
    is_large: bool,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        // As if a large batch was committed last, so that small ones begin.
        Self { small: VecDeque::new(), large: VecDeque::new(), is_large: true }
    }
}

impl<T> Turns<T> {
    pub fn push(&mut self, is_large: bool, batch: T) {
        if is_large { self.large.push_back(batch) } else { self.small.push_back(batch) }
    }

    /// Begins a group.
    pub fn begin(&mut self) {
        self.is_large = self.small.is_empty() || (!self.is_large && !self.large.is_empty());
    }

    pub fn next(&mut self) -> Option<T> {
        if self.is_large { self.large.pop_front() } else { self.small.pop_front() }
    }

    pub fn is_empty(&self) -> bool {
        self.small.is_empty() && self.large.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_batches_take_turns() {
        let mut turns = Turns::default();
        for (is_large, batch) in [(true, 10), (false, 1), (true, 11), (false, 2), (true, 12)] {
            turns.push(is_large, batch);
        }
        let mut group = |most: usize, late: &[i32]| {
            turns.begin();
            let group: Vec<i32> = std::iter::from_fn(|| turns.next()).take(most).collect();
            late.iter().for_each(|batch| turns.push(false, *batch));
            group
        };
        assert_eq!(group(9, &[3]), [1, 2]);
        assert_eq!(group(1, &[4]), [10]);
        assert_eq!(group(9, &[5]), [3, 4]);
        assert_eq!(group(9, &[]), [11, 12]);
        assert_eq!(group(9, &[]), [5]);
        assert_eq!(group(9, &[]), Vec::<i32>::new());
        assert!(turns.is_empty());
    }
}
