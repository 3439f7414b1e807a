//! Numbers for sessions and rules that do not reveal how many sessions or rules exist.

use std::hash::{BuildHasher, Hash, RandomState};

/// A random secret, which changes when the server restarts.
#[derive(Default)]
pub struct Numbers(RandomState);

impl Numbers {
    /// 53 bits, because JSON numbers represent them exactly.
    pub fn of(&self, of: impl Hash) -> u64 {
        self.0.hash_one(of) >> 11
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_the_same_but_cannot_be_predicted() {
        let (one, other) = (Numbers::default(), Numbers::default());
        let all = |numbers: &Numbers| (1..=1_000u64).map(|id| numbers.of(id)).collect::<Vec<_>>();
        assert_eq!(all(&one), all(&one));
        assert_ne!(all(&one), all(&other));
        let mut distinct = all(&one);
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 1_000);
        assert!(distinct.iter().all(|number| *number < 1 << 53));
    }
}
