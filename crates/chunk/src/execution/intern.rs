//! Which number has this thing? Each is kept once, numbered in order of appearance.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};

/// A table in which equal things have one position. Items are stored once; the index holds hashes only.
#[derive(Clone, Debug)]
pub(super) struct Interner<T> {
    items: Vec<T>,
    /// Hash (or the next free number after it, where two hashes meet) to position.
    positions: HashMap<u64, u32>,
    hasher: RandomState,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: vec![], positions: HashMap::new(), hasher: RandomState::default() }
    }
}

/// Equal tables have equal items in equal order; how they are found does not matter.
impl<T: PartialEq> PartialEq for Interner<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> Interner<T> {
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    pub(super) fn get(&self, position: u32) -> Option<&T> {
        self.items.get(usize::try_from(position).ok()?)
    }

    /// Position of the item that looks like `key`, made when it is not there. `key` hashes as an item's key does.
    pub(super) fn intern<K: Hash + ?Sized>(
        &mut self,
        key: &K,
        same: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> u32 {
        let Ok(position) = self.try_intern(key, same, || Ok::<T, Infallible>(make()));
        position
    }

    /// As [`Self::intern`], for things that cannot always be made.
    pub(super) fn try_intern<K: Hash + ?Sized, E>(
        &mut self,
        key: &K,
        same: impl Fn(&T) -> bool,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<u32, E> {
        let mut hash = self.hasher.hash_one(key);
        while let Some(position) = self.positions.get(&hash) {
            if self.get(*position).is_some_and(&same) {
                return Ok(*position);
            }
            hash = hash.wrapping_add(1);
        }
        // A table of 2^32 items would not fit a block by far; past it items would only lose their uniqueness.
        let position = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(make()?);
        self.positions.insert(hash, position);
        Ok(position)
    }

    /// Puts an item that comes next, as a decoder does. Of equal items the first is found later.
    pub(super) fn add<K: Hash + ?Sized>(&mut self, key: &K, item: T)
    where
        T: PartialEq,
    {
        let mut hash = self.hasher.hash_one(key);
        let mut fresh = true;
        while let (true, Some(position)) = (fresh, self.positions.get(&hash)) {
            fresh = self.get(*position) != Some(&item);
            hash = hash.wrapping_add(1);
        }
        if fresh {
            self.positions.insert(hash, u32::try_from(self.items.len()).unwrap_or(u32::MAX));
        }
        self.items.push(item);
    }
}
