//! Pseudo-random numbers from a seed. The same seed gives the same numbers.

use crate::mix64;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    /// Uniform in `0..n`, with a bias of at most `n / 2^64`; 0 for `n` = 0.
    pub const fn below(&mut self, n: u64) -> u64 {
        if n == 0 { 0 } else { self.next() % n }
    }

    /// True with probability `1 / n`; never for `n` = 0.
    pub const fn one_in(&mut self, n: u64) -> bool {
        n > 0 && self.below(n) == 0
    }
}
