//! The times of open samples. A list of times is stored once for all series that have it.
//!
//! The lists are a tree. A node is a time, and the path from the root to it is the list of times of a series, in order of
//! arrival. Series with the same times so far are at the same node.
//!
//! ```text
//!   root -- 10 -- 20 -- 30     three series with the times 10, 20, 30 are at the node of 30
//!                  \-- 31      one series with the times 10, 20, 31
//! ```

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tacho_model::Timestamp;

pub type Node = u32;

/// The node of the empty list.
pub const ROOT: Node = 0;

/// This many nodes are made without regard to their use. Further nodes are made only while the further nodes are fewer than half
/// of the samples that use nodes, because a node takes more memory than a time.
const NODES_FREE: usize = 1 << 15;

#[derive(Clone, Copy, Debug)]
struct Step {
    at: Timestamp,
    before: Node,
    count: u32,
    /// The node to which the last series went from here; the root if none did.
    next: Node,
}

#[derive(Debug)]
pub struct SharedTimes {
    steps: Vec<Step>,
    /// Nodes by the node before them and their time.
    places: HashTable<Node>,
    hasher: RandomState,
    /// Number of calls of [`Self::follow`] that returned a node.
    uses: usize,
}

impl Default for SharedTimes {
    fn default() -> Self {
        let root = Step { at: 0, before: ROOT, count: 0, next: ROOT };
        Self { steps: vec![root], places: HashTable::new(), hasher: RandomState::default(), uses: 0 }
    }
}

impl SharedTimes {
    #[expect(clippy::indexing_slicing, reason = "every node is a position, and steps are not removed")]
    fn step(&self, node: Node) -> Step {
        self.steps[node as usize]
    }

    /// The node of the list of `before` and one more time. `None` if there is no such node, and the times of the series differ
    /// too much for a new one.
    // Inlined, because it runs for each sample.
    #[inline]
    pub fn follow(&mut self, before: Node, at: Timestamp) -> Option<Node> {
        let next = self.step(before).next;
        if next == ROOT || self.step(next).at != at {
            return self.search(before, at);
        }
        self.uses += 1;
        Some(next)
    }

    #[cold]
    fn search(&mut self, before: Node, at: Timestamp) -> Option<Node> {
        let Self { steps, places, hasher, uses } = self;
        let key = |node: Node| steps.get(node as usize).map(|step| (step.before, step.at));
        let hash = hasher.hash_one((before, at));
        let known = places.find(hash, |node| key(*node) == Some((before, at))).copied();
        let next = match known {
            Some(next) => next,
            None if steps.len() >= NODES_FREE + *uses / 2 => return None,
            None => {
                let next = Node::try_from(steps.len()).ok()?;
                let again = |node: &Node| key(*node).map_or(0, |key| hasher.hash_one(key));
                places.insert_unique(hash, next, again);
                let count = steps.get(before as usize)?.count + 1;
                steps.push(Step { at, before, count, next: ROOT });
                next
            }
        };
        steps.get_mut(before as usize)?.next = next;
        *uses += 1;
        Some(next)
    }

    pub fn count(&self, node: Node) -> usize {
        self.step(node).count as usize
    }

    pub fn last(&self, node: Node) -> Timestamp {
        self.step(node).at
    }

    /// The times of a list, in order of arrival.
    pub fn list(&self, mut node: Node) -> Vec<Timestamp> {
        let mut at = Vec::with_capacity(self.count(node));
        while node != ROOT {
            let step = self.step(node);
            at.push(step.at);
            node = step.before;
        }
        at.reverse();
        at
    }

    /// Heap memory, bytes.
    pub fn bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>() + self.places.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(times: &mut SharedTimes, at: &[Timestamp]) -> Option<Node> {
        at.iter().try_fold(ROOT, |node, at| times.follow(node, *at))
    }

    #[test]
    fn equal_lists_have_one_node() {
        let mut times = SharedTimes::default();
        let lists: [&[Timestamp]; 7] =
            [&[10, 20, 30], &[10, 20, 31], &[10, 20, 30, 30], &[20, 10], &[10], &[Timestamp::MIN, 0], &[0]];
        let nodes: Vec<Node> = lists.iter().map(|at| walk(&mut times, at).unwrap()).collect();
        for (at, node) in lists.iter().zip(&nodes) {
            assert_eq!(walk(&mut times, at), Some(*node));
            assert_eq!(times.list(*node), *at);
            assert_eq!((times.count(*node), times.last(*node)), (at.len(), *at.last().unwrap()));
        }
        // The root, and ten different prefixes of the lists.
        assert_eq!(times.steps.len(), 11);
        assert_eq!(times.list(ROOT), []);
    }

    #[test]
    fn different_times_are_refused_when_they_would_take_much_memory() {
        let mut times = SharedTimes::default();
        let taken = (0..1_000_000).take_while(|at| times.follow(ROOT, *at).is_some()).count();
        assert!((NODES_FREE..=2 * NODES_FREE).contains(&taken), "{taken}");
        assert!(times.follow(ROOT, 5).is_some(), "a known list was not found");
        (0..2 * NODES_FREE).for_each(|_| _ = times.follow(ROOT, 5));
        assert!(
            times.follow(ROOT, 1_000_000).is_some(),
            "after many uses of shared times, new times must get nodes"
        );
    }
}
