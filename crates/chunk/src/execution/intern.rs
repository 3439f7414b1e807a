//! What is the index of an item? Each distinct item is stored once, numbered in order of first appearance.

use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};

/// A table of items. The index contains only their hashes.
#[derive(Clone, Debug)]
pub(crate) struct Interner<T> {
    items: Vec<T>,
    /// Index by hash. After a collision, the key is the next free number instead of the hash.
    positions: HashMap<u64, u32>,
    hasher: RandomState,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: vec![], positions: HashMap::new(), hasher: RandomState::default() }
    }
}

/// Tables are equal if their items are equal and in the same order.
impl<T: PartialEq> PartialEq for Interner<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> Interner<T> {
    pub(crate) fn items(&self) -> &[T] {
        &self.items
    }

    pub(crate) fn get(&self, position: u32) -> Option<&T> {
        self.items.get(usize::try_from(position).ok()?)
    }

    /// Memory of the tables, without the memory that the items refer to, bytes.
    pub(crate) fn bytes(&self) -> usize {
        // An entry of the hash table and its control byte. At most seven of eight places are used.
        let place = size_of::<(u64, u32)>() + 1;
        self.items.capacity() * size_of::<T>() + self.positions.capacity().div_ceil(7) * 8 * place
    }

    /// Index of the item for which `same` is true. `make` creates a missing item. `key` must have the same hash as the item.
    pub(crate) fn intern<K: Hash + ?Sized>(
        &mut self,
        key: &K,
        same: impl Fn(&T) -> bool,
        make: impl FnOnce() -> T,
    ) -> u32 {
        let Ok(position) = self.try_intern(key, same, || Ok::<T, Infallible>(make()));
        position
    }

    /// Like [`Self::intern`], but the creation of the item may fail.
    pub(crate) fn try_intern<K: Hash + ?Sized, E>(
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
        // A block has far fewer than 2^32 items (`ExecutionBlock::is_full`).
        let position = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(make()?);
        self.positions.insert(hash, position);
        Ok(position)
    }

    /// Appends an item even if an equal item exists, because encoded indexes count both. Lookups find the first of the equal
    /// items.
    pub(crate) fn add<K: Hash + ?Sized>(&mut self, key: &K, item: T)
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
