//! Hash table that maps hashes to positions in a list. The list is stored elsewhere.

/// Open addressing with linear probing. The table is at most half full (Knuth, TAOCP 6.4, algorithm L).
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Pairs of hash and position. The number of slots is a power of two.
    places: Vec<(u64, u32)>,
    len: usize,
}

const FREE: (u64, u32) = (0, u32::MAX);
const PLACES_MIN: usize = 64;

impl Places {
    pub(super) const fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<(u64, u32)>()
    }

    fn first(hash: u64, mask: usize) -> usize {
        // The conversion cannot fail, because the result is at most `mask`.
        usize::try_from(hash & mask as u64).unwrap_or_default()
    }

    /// `is_it` returns whether the element at a position is the wanted one.
    pub(super) fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = Self::first(hash, mask);
        while let Some((other, position)) = self.places.get(at).filter(|place| **place != FREE) {
            if *other == hash && is_it(*position) {
                return Some(*position);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Inserts an element that is not in the table yet.
    pub(super) fn insert(&mut self, hash: u64, position: u32) {
        if (self.len + 1) * 2 > self.places.len() {
            let places = vec![FREE; (self.places.len() * 2).max(PLACES_MIN)];
            let before = std::mem::replace(&mut self.places, places);
            before.into_iter().filter(|place| *place != FREE).for_each(|place| self.put(place));
        }
        self.put((hash, position));
        self.len += 1;
    }

    /// Removes an element if it is in the table.
    pub(super) fn remove(&mut self, hash: u64, position: u32) {
        let mask = self.places.len().saturating_sub(1);
        let at = |at: usize| self.places.get(at).copied().unwrap_or(FREE);
        let mut hole = Self::first(hash, mask);
        while at(hole) != (hash, position) {
            if at(hole) == FREE {
                return;
            }
            hole = (hole + 1) & mask;
        }
        self.len -= 1;
        // Elements that could no longer be found because of the free slot are moved into it (TAOCP 6.4, algorithm
        // R).
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let place = self.places.get(next).copied().unwrap_or(FREE);
            if place == FREE {
                break;
            }
            let first = Self::first(place.0, mask);
            if next.wrapping_sub(first) & mask >= next.wrapping_sub(hole) & mask {
                self.set(hole, place);
                hole = next;
            }
        }
        self.set(hole, FREE);
    }

    fn set(&mut self, at: usize, place: (u64, u32)) {
        if let Some(old) = self.places.get_mut(at) {
            *old = place;
        }
    }

    fn put(&mut self, place: (u64, u32)) {
        let mask = self.places.len().saturating_sub(1);
        let mut at = Self::first(place.0, mask);
        while self.places.get(at).is_some_and(|other| *other != FREE) {
            at = (at + 1) & mask;
        }
        self.set(at, place);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn inserted_elements_are_found_until_removed(steps in proptest::collection::vec((0u32..60, any::<bool>()), 0..300)) {
            // The hashes collide.
            let hash = |position: u32| u64::from(position % 7);
            let mut places = Places::default();
            let mut here = std::collections::BTreeSet::new();
            for (position, insert) in steps {
                if insert && here.insert(position) {
                    places.insert(hash(position), position);
                } else if !insert {
                    here.remove(&position);
                    places.remove(hash(position), position);
                }
                let found = (0..60).filter(|n| places.find(hash(*n), |other| other == *n).is_some());
                prop_assert_eq!(found.collect::<Vec<_>>(), here.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
