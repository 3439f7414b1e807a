//! How are numbers of a fixed bit width stored in sequence?
//!
//! Lowest bit first, without gaps, padded to a whole byte. Number `i` of `width` bits starts at bit `i * width`.

/// Number of bytes for `count` numbers of `width` bits.
pub(crate) const fn bytes_of(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Number of significant bits of `n`; 0 for 0.
pub(crate) const fn width_of(n: u64) -> u32 {
    64 - n.leading_zeros()
}

/// Appends numbers of any width, lowest bit first.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    word: u64,
    /// Number of used bits in `word`, below 64.
    filled: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, word: 0, filled: 0 }
    }

    /// Appends `number`, which must be below `2^width`.
    #[inline]
    pub(crate) fn put(&mut self, number: u64, width: u32) {
        self.word |= number << self.filled;
        self.filled += width;
        if self.filled >= 64 {
            self.out.extend_from_slice(&self.word.to_le_bytes());
            self.filled -= 64;
            self.word = number.checked_shr(width - self.filled).unwrap_or(0);
        }
    }

    /// Writes the remaining bits, and pads the last byte with zeros.
    pub(crate) fn finish(self) {
        let bytes = self.word.to_le_bytes();
        self.out.extend_from_slice(bytes.get(..bytes_of(1, self.filled)).unwrap_or_default());
    }
}

/// Appends numbers that are below `2^width`. Width 0 appends nothing.
pub(crate) fn put_bits(out: &mut Vec<u8>, numbers: &[u64], width: u32) {
    out.reserve(bytes_of(numbers.len(), width) + 8);
    let mut writer = BitWriter::new(out);
    for number in numbers {
        writer.put(*number, width);
    }
    writer.finish();
}

/// Eight bytes from `at` on as a word. Bytes after the end are read as zeros.
#[inline]
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_le_bytes(*word),
        None => word_at_end(bytes, at),
    }
}

/// Fewer than eight bytes, from `at` on, as a word. A column of repetitive numbers takes a fraction of a bit per number, so most
/// of its reads are in the last eight bytes. A copy of the slice would take several times as long.
#[inline]
fn word_at_end(bytes: &[u8], at: usize) -> u64 {
    let (word, start) = match bytes.last_chunk() {
        Some(last) => (u64::from_le_bytes(*last), bytes.len() - size_of::<u64>()),
        None => (bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
    };
    u32::try_from(at - start).ok().and_then(|bytes| word.checked_shr(bytes.saturating_mul(8))).unwrap_or(0)
}

/// Fills `numbers` with numbers of `width` (at most 64) bits. Bits after the end are read as zeros.
pub(crate) fn take_bits(bytes: &[u8], width: u32, numbers: &mut [u64]) {
    match width {
        0 => numbers.fill(0),
        1..=7 => take_groups::<8>(bytes, width, numbers),
        8..=14 => take_groups::<4>(bytes, width, numbers),
        15..=28 => take_groups::<2>(bytes, width, numbers),
        29..=57 => take_groups::<1>(bytes, width, numbers),
        _ => take_wide(bytes, width, numbers),
    }
}

/// Reads `N` numbers from each word. `N * width` is at most 57, because the first number may start at any bit of a byte.
fn take_groups<const N: usize>(bytes: &[u8], width: u32, numbers: &mut [u64]) {
    let mask = (1u64 << width) - 1;
    let mut bit = 0;
    let (groups, rest) = numbers.as_chunks_mut::<N>();
    for group in groups {
        let mut word = word_at(bytes, bit >> 3) >> (bit & 7);
        for number in group {
            *number = word & mask;
            word >>= width;
        }
        bit += N * width as usize;
    }
    for number in rest {
        *number = (word_at(bytes, bit >> 3) >> (bit & 7)) & mask;
        bit += width as usize;
    }
}

fn take_wide(bytes: &[u8], width: u32, numbers: &mut [u64]) {
    let mut bit = 0;
    for number in numbers {
        *number = bits_at(bytes, bit, width);
        bit += width as usize;
    }
}

/// The number of `width` (at most 64) bits that starts at `bit`.
#[inline(never)]
pub(crate) fn bits_at(bytes: &[u8], bit: usize, width: u32) -> u64 {
    let mut word = word_at(bytes, bit >> 3) >> (bit & 7);
    if width > 57 {
        word |= (word_at(bytes, (bit >> 3) + 8) << 1) << (63 - (bit & 7));
    }
    word & u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_read_as_written(words in prop::collection::vec(any::<u64>(), 0..200), width in 0u32..=64) {
            let mask = 1u64.checked_shl(width).unwrap_or(0).wrapping_sub(1);
            let numbers: Vec<u64> = words.iter().map(|word| word & mask).collect();
            let mut out = vec![7];
            put_bits(&mut out, &numbers, width);
            prop_assert_eq!(out.len(), 1 + bytes_of(numbers.len(), width));
            let mut read = vec![1; numbers.len()];
            take_bits(&out[1..], width, &mut read);
            prop_assert_eq!(read, numbers);
        }
    }

    #[test]
    fn bits_after_the_end_are_zeros() {
        let mut read = [9; 6];
        take_bits(&[0xff, 0xff], 5, &mut read);
        assert_eq!(read, [31, 31, 31, 1, 0, 0]);
    }
}
