//! A hash table from ids to numbers. It stores numbers only: the ids are stored elsewhere.

use std::hash::{BuildHasher, RandomState};

use tacho_model::SeriesId;

/// Place of a series in the index; rises from 0, of this process only.
pub type SeriesNumber = u32;

/// Open addressing with linear probing, at most three quarters full (Knuth, TAOCP 6.4, algorithm L): 5 to 11 bytes
/// an id, where a `HashMap` of 128-bit keys takes 38 to 75.
#[derive(Debug)]
pub struct Numbers {
    places: Vec<u32>,
    len: usize,
    /// Ids are hashes, but a sender could choose series whose ids share some bits.
    seed: u64,
}

const FREE: u32 = u32::MAX;
const PLACES_MIN: usize = 16;

impl Default for Numbers {
    fn default() -> Self {
        Self { places: Vec::new(), len: 0, seed: RandomState::new().hash_one(0) }
    }
}

impl Numbers {
    /// Multiplicative hashing (TAOCP 6.4) of the id's low half: the upper bits of the product depend on all of it.
    fn first(&self, id: SeriesId) -> usize {
        let mixed = (id.0 as u64 ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.places.len() - 1)
    }

    /// `id_of` returns the id of an inserted number.
    pub fn find(&self, id: SeriesId, id_of: impl Fn(u32) -> SeriesId) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.first(id);
        loop {
            match self.places[at] {
                FREE => return None,
                number if id_of(number) == id => return Some(number),
                _ => at = (at + 1) & (self.places.len() - 1),
            }
        }
    }

    /// The id must not be in the table.
    pub fn insert(&mut self, id: SeriesId, number: u32, id_of: impl Fn(u32) -> SeriesId) {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            let places = vec![FREE; (self.places.len() * 2).max(PLACES_MIN)];
            let before = std::mem::replace(&mut self.places, places);
            before.into_iter().filter(|n| *n != FREE).for_each(|n| self.put(id_of(n), n));
        }
        self.put(id, number);
        self.len += 1;
    }

    /// The id must be in the table.
    pub fn remove(&mut self, id: SeriesId, id_of: impl Fn(u32) -> SeriesId) {
        let mask = self.places.len() - 1;
        let mut hole = self.first(id);
        while self.places[hole] != FREE && id_of(self.places[hole]) != id {
            hole = (hole + 1) & mask;
        }
        if self.places[hole] == FREE {
            return;
        }
        self.len -= 1;
        // Later entries that would not be found any more move into the hole (TAOCP 6.4, algorithm R).
        let mut at = hole;
        loop {
            self.places[hole] = FREE;
            loop {
                at = (at + 1) & mask;
                if self.places[at] == FREE {
                    return;
                }
                let first = self.first(id_of(self.places[at]));
                if at.wrapping_sub(first) & mask >= at.wrapping_sub(hole) & mask {
                    break;
                }
            }
            self.places[hole] = self.places[at];
            hole = at;
        }
    }

    fn put(&mut self, id: SeriesId, number: u32) {
        let mut at = self.first(id);
        while self.places[at] != FREE {
            at = (at + 1) & (self.places.len() - 1);
        }
        self.places[at] = number;
    }

    pub const fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn inserted_numbers_are_found_until_removed(steps in proptest::collection::vec((0u32..40, any::<bool>()), 0..300)) {
            // Ids that differ in few bits and collide in the table.
            let id_of = |number: u32| SeriesId(u128::from(number) << 60 | u128::from(number % 5));
            let mut numbers = Numbers::default();
            let mut here = std::collections::BTreeSet::new();
            for (number, insert) in steps {
                if insert && here.insert(number) {
                    numbers.insert(id_of(number), number, id_of);
                } else if !insert && here.remove(&number) {
                    numbers.remove(id_of(number), id_of);
                }
                let found: Vec<u32> = (0..40).filter_map(|n| numbers.find(id_of(n), id_of)).collect();
                prop_assert_eq!(found, here.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
