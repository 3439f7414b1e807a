//! Values by key, for a limited number of keys. Bounds the memory and the log lines that clients can cause by using many keys.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub struct Bounded<K, V>(HashMap<K, V>);

impl<K, V> Default for Bounded<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V: Default> Bounded<K, V> {
    /// The value of a key. At the limit, values for which `is_over` returns true are removed. If `keys_max` values are left,
    /// further keys have the value of the key `shared`.
    pub fn of(&mut self, key: K, (keys_max, shared): (usize, K), is_over: impl Fn(&V) -> bool) -> &mut V {
        let mut place = key;
        if self.0.len() >= keys_max && !self.0.contains_key(&place) {
            self.0.retain(|_, value| !is_over(value));
            if self.0.len() >= keys_max {
                place = shared;
            }
        }
        self.0.entry(place).or_default()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_above_the_limit_share_a_value_until_values_are_over() {
        let mut bounded: Bounded<&str, u32> = Bounded::default();
        let mut add = |key, number| {
            let value = bounded.of(key, (2, "shared"), |value| *value >= 10);
            *value += number;
            *value
        };
        assert_eq!((add("a", 1), add("b", 2), add("c", 3), add("d", 4)), (1, 2, 3, 7));
        // The value of "a" is over and is removed, but "b" and "shared" are still two keys.
        assert_eq!((add("a", 9), add("e", 5)), (10, 12));
        // Now the values of "b" and "shared" are over.
        assert_eq!((add("b", 8), add("f", 6)), (10, 6));
        assert_eq!(bounded.len(), 1);
    }
}
