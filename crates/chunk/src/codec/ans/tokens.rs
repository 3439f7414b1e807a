//! Which differences share a token? Each difference becomes a token of a small alphabet, with extra bits.
//!
//! Zigzag numbers below [`LITERALS`] are tokens themselves. The larger numbers from one power of two to the next share four
//! tokens, which state the top three bits. The bits below are stored without entropy coding.

use crate::bytes::{unzigzag, zigzag};

/// One-byte tokens: 16 literals, and four for each power of two from 2^4 to 2^63.
pub(crate) const TOKENS: usize = 256;
/// Numbers below this are tokens without extra bits.
pub(super) const LITERALS: u8 = 16;

/// How the differences of a column are reduced to small numbers, and the estimated cost.
#[derive(Clone, Copy, Debug)]
pub(in crate::codec) struct Plan {
    /// 0: the numbers themselves; 1: differences; 2: differences of differences.
    pub(super) order: u8,
    /// The median. It is subtracted from each difference.
    pub(super) centre: i64,
    /// Estimated bits per number: the entropy of the sample's tokens, with extra bits.
    pub(in crate::codec) bits: f64,
}

/// The token of a number, and the number of its extra low bits.
#[inline]
pub(super) const fn token(number: u64) -> (u8, u32) {
    if number < LITERALS as u64 {
        return (number.to_le_bytes()[0], 0);
    }
    let top = 63 - number.leading_zeros();
    let quarter = (number >> (top - 2)) & 3;
    let token = LITERALS as u64 + ((top - 4) * 4) as u64 + quarter;
    (token.to_le_bytes()[0], top - 2)
}

/// The smallest number of a token, and the number of its extra bits.
pub(super) const fn range_of(token: u8) -> (u64, u32) {
    if token < LITERALS {
        return (token as u64, 0);
    }
    let above = (token - LITERALS) as u32;
    let bits = above / 4 + 2;
    ((4 + (above % 4) as u64) << bits, bits)
}

/// [`range_of`] for all tokens.
pub(super) static RANGES: [(u64, u32); TOKENS] = {
    let mut ranges = [(0, 0); TOKENS];
    let (mut rest, mut token) = (ranges.as_mut_slice(), 0);
    while let Some((range, others)) = rest.split_first_mut() {
        *range = range_of(token);
        (rest, token) = (others, token.wrapping_add(1));
    }
    ranges
};

/// The cheapest plan for a column, estimated from sampled runs.
pub(in crate::codec) fn plan<'a>(runs: impl Iterator<Item = &'a [u64]> + Clone, order_max: u8) -> Plan {
    let mut best = Plan { order: 0, centre: 0, bits: f64::INFINITY };
    for order in 0..=order_max {
        let mut sample: Vec<i64> = vec![];
        for run in runs.clone() {
            differences(run, order, &mut sample);
        }
        let middle = sample.len() / 2;
        if sample.is_empty() {
            continue;
        }
        let centre = *sample.select_nth_unstable(middle).1;
        let bits = cost(sample.iter().map(|step| zigzag(step.wrapping_sub(centre))));
        // A higher order takes more time to decode, so it must save space.
        if bits < best.bits * 0.98 - 0.01 {
            best = Plan { order, centre, bits };
        }
    }
    best
}

/// Appends the differences of the given order within a run.
fn differences(run: &[u64], order: u8, out: &mut Vec<i64>) {
    let at = |i: usize| run.get(i).copied().unwrap_or(0);
    let step = |i: usize| match order {
        0 => at(i),
        1 => at(i).wrapping_sub(at(i - 1)),
        _ => at(i).wrapping_sub(at(i - 1).wrapping_mul(2)).wrapping_add(at(i - 2)),
    };
    out.extend((usize::from(order)..run.len()).map(|i| step(i).cast_signed()));
}

/// Bits per number: entropy of the tokens (Shannon 1948) plus the extra bits.
#[expect(clippy::cast_precision_loss, reason = "counts of a sample")]
fn cost(numbers: impl Iterator<Item = u64>) -> f64 {
    let mut counts = [0u32; TOKENS];
    let (mut more, mut total) = (0u64, 0u32);
    for number in numbers {
        let (token, bits) = token(number);
        if let Some(count) = counts.get_mut(usize::from(token)) {
            *count += 1;
        }
        more += u64::from(bits);
        total += 1;
    }
    let all = f64::from(total);
    let entropy = |count: &u32| f64::from(*count) * (all / f64::from(*count)).log2();
    let tokens: f64 = counts.iter().filter(|count| **count > 0).map(entropy).sum();
    // One more bit, because a column may have several tokens even if its sample has only one token.
    (tokens + more as f64 + 1.0) / all
}

/// The difference for a zigzag number.
pub(super) const fn step_of(number: u64, centre: i64) -> u64 {
    unzigzag(number).wrapping_add(centre).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_cover_all_numbers_in_order() {
        let mut next = 0u64;
        for number in 0..=u8::MAX {
            let (low, bits) = range_of(number);
            assert_eq!(low, next, "token {number} must start where the previous one ends");
            for inside in [low, low + (1 << bits) / 2, low + ((1 << bits) - 1)] {
                assert_eq!(token(inside), (number, bits));
            }
            next = low.wrapping_add(1 << bits);
        }
        assert_eq!(next, 0, "the last token must end at 2^64");
    }
}
