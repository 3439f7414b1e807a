//! How are the samples of a series in the memtable kept in little memory, while samples are still appended?
//!
//! [`PackedSamples`] has blocks of exactly [`BLOCK`] samples, and a raw tail of at most [`BLOCK`] samples. When the tail is full
//! and the next sample arrives, the tail is packed into a block. Samples keep their order of arrival, and unpacking restores them
//! exactly.
//!
//! ```text
//!  samples:   block | block | ..       tail: (time, word), (time, word) ..
//!
//!  a block:   i64 first | u8 unit | u8 width | zigzag low | BLOCK - 1 numbers of width bits                          times.rs
//!             u8 form | u8 parameter | u8 width | zigzag first | zigzag low | BLOCK - 1 numbers of width bits        values.rs
//! ```
//! The numbers are differences between neighbours, minus the lowest difference of the block (frame of reference: Goldstein,
//! Ramakrishnan, Shaft, ICDE 1998), or the bits in which neighbours differ. Packed samples exist only in memory, so they have
//! no version and no format document.
//!
//! Path of one sample. Before: `store/src/memtable/samples.rs` pushes it. After: queries read it here, or a flush encodes it into
//! a chunk.

mod steps;
mod times;
mod values;

use tacho_model::{TimeRange, Timestamp};

use crate::Error;
use crate::bytes::Reader;
pub use steps::BLOCK;

/// Samples of one series. Each has a time and 64 bits of any type.
///
/// A series with one sample takes the size of this struct plus 16 bytes on the heap.
#[derive(Clone, Debug)]
pub struct PackedSamples {
    /// Never empty after the first sample, so the last sample is always available.
    tail: Vec<(Timestamp, u64)>,
    #[expect(
        clippy::box_collection,
        reason = "most series have no block, and this field is part of every series"
    )]
    blocks: Option<Box<Vec<u8>>>,
    /// Number of blocks. Blocks differ in size, so the length of `blocks` does not show it.
    count: u32,
    ordered: bool,
}

impl Default for PackedSamples {
    fn default() -> Self {
        Self { tail: Vec::new(), blocks: None, count: 0, ordered: true }
    }
}

impl PackedSamples {
    /// Appends a sample. Returns the number of bytes by which the memory grows.
    // Inlined, because another crate calls it for each sample.
    #[inline]
    pub fn push(&mut self, at: Timestamp, word: u64) -> usize {
        if let Some((last, _)) = self.tail.last() {
            self.ordered &= *last <= at;
        }
        let full = self.tail.len() == self.tail.capacity();
        let grown = if full { self.make_room() } else { 0 };
        self.tail.push((at, word));
        grown
    }

    /// Enlarges the tail, or packs it at its maximum length. Returns the number of bytes by which the memory grows.
    #[cold]
    fn make_room(&mut self) -> usize {
        let len = self.tail.len();
        let before = self.bytes();
        if len < BLOCK {
            // Capacities of 1, 2, 4 and so on. `Vec` would start with four.
            self.tail.reserve_exact((len * 2).clamp(1, BLOCK) - len);
            return self.bytes() - before;
        }
        let (mut at, mut words) = ([0; BLOCK], [0; BLOCK]);
        for ((at, word), sample) in at.iter_mut().zip(&mut words).zip(&self.tail) {
            (*at, *word) = *sample;
        }
        let out = self.blocks.get_or_insert_default();
        if out.capacity() - out.len() < BLOCK {
            // Grows by a quarter instead of doubling, because blocks take most of the memtable's memory.
            out.reserve_exact((out.len() / 4).max(BLOCK));
        }
        times::put(out, &at);
        values::put(out, &words);
        self.count += 1;
        self.tail.clear();
        self.bytes().saturating_sub(before)
    }

    pub fn len(&self) -> usize {
        self.count as usize * BLOCK + self.tail.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// Whether no time is earlier than the previous time.
    pub const fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// Time of the sample that arrived first.
    pub fn first_at(&self) -> Option<Timestamp> {
        self.blocks().next().map(|block| block.times.first).or_else(|| Some(self.tail.first()?.0))
    }

    /// The sample that arrived last.
    pub fn last(&self) -> Option<(Timestamp, u64)> {
        self.tail.last().copied()
    }

    /// Memory of this struct and its heap allocations, bytes.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.as_ref().map_or(0, |blocks| size_of::<Vec<u8>>() + blocks.capacity());
        size_of::<Self>() + self.tail.capacity() * size_of::<(Timestamp, u64)>() + blocks
    }

    /// Appends all samples, in order of arrival, to `at` and `words`.
    pub fn unpack_into(&self, at: &mut Vec<Timestamp>, words: &mut Vec<u64>) {
        at.reserve(self.len());
        words.reserve(self.len());
        self.unpack_range(TimeRange::new(Timestamp::MIN, Timestamp::MAX), at, words);
    }

    /// Appends the samples of a range, in order of arrival, to `at` and `words`. If the samples are ordered by time,
    /// unpacks only blocks that may overlap the range.
    pub fn unpack_range(&self, range: TimeRange, at: &mut Vec<Timestamp>, words: &mut Vec<u64>) {
        let mut blocks = self.blocks().peekable();
        while let Some(block) = blocks.next() {
            let next = blocks.peek().map(|next| next.times.first).or_else(|| Some(self.tail.first()?.0));
            if self.ordered && block.times.first > range.end {
                return;
            }
            if self.ordered && next.is_some_and(|next| next < range.start) {
                continue;
            }
            let len = at.len();
            block.times.unpack(at);
            block.values.unpack(words);
            keep(range, len, at, words);
        }
        let tail = self.tail.iter().filter(|(at, _)| range.contains(*at));
        at.extend(tail.clone().map(|(at, _)| *at));
        words.extend(tail.map(|(_, word)| *word));
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let mut reader = Reader::new(self.blocks.as_ref().map_or(&[], |blocks| blocks.as_slice()));
        std::iter::from_fn(move || {
            if reader.left() == 0 {
                return None;
            }
            let block = Block::take(&mut reader);
            // Blocks exist only in memory, so a block that cannot be decoded is a bug.
            debug_assert!(block.is_ok(), "a packed block cannot be decoded: {:?}", block.err());
            block.ok()
        })
    }
}

/// A block with decoded parameters.
struct Block<'a> {
    times: times::Block<'a>,
    values: values::Block<'a>,
}

impl<'a> Block<'a> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        Ok(Self { times: times::Block::take(reader)?, values: values::Block::take(reader)? })
    }
}

/// Removes samples outside of the range. Only samples from index `len` on are checked.
fn keep(range: TimeRange, len: usize, at: &mut Vec<Timestamp>, words: &mut Vec<u64>) {
    let (Some(new_at), Some(new_words)) = (at.get_mut(len..), words.get_mut(len..)) else { return };
    if new_at.iter().all(|at| range.contains(*at)) {
        return;
    }
    let mut kept = 0;
    for i in 0..new_at.len() {
        if new_at.get(i).is_some_and(|at| range.contains(*at)) {
            new_at.swap(kept, i);
            new_words.swap(kept, i);
            kept += 1;
        }
    }
    at.truncate(len + kept);
    words.truncate(len + kept);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpacked(packed: &PackedSamples, range: TimeRange) -> Vec<(Timestamp, u64)> {
        let (mut at, mut words) = (vec![3], vec![4]);
        packed.unpack_range(range, &mut at, &mut words);
        assert_eq!((at.remove(0), words.remove(0)), (3, 4), "existing samples must not change");
        assert_eq!(at.len(), words.len());
        at.into_iter().zip(words).collect()
    }

    /// Pushes samples and reads all of them and some ranges. Returns bytes per sample.
    fn check(samples: &[(Timestamp, u64)]) -> f64 {
        let mut packed = PackedSamples::default();
        let mut bytes = packed.bytes();
        for (n, (at, word)) in samples.iter().enumerate() {
            bytes += packed.push(*at, *word);
            assert_eq!((packed.len(), packed.last(), packed.bytes()), (n + 1, Some((*at, *word)), bytes));
        }
        assert_eq!(
            (packed.first_at(), packed.is_empty()),
            (samples.first().map(|s| s.0), samples.is_empty())
        );
        assert_eq!(packed.is_ordered(), samples.is_sorted_by_key(|sample| sample.0));
        let time = |at: usize| samples.get(at).map_or(0, |sample| sample.0);
        let len = samples.len();
        for (start, end) in [(0, len), (len / 3, len / 2), (len / 2, len / 2), (len / 4, len), (len, 0)] {
            let range = TimeRange::new(time(start).saturating_add(1), time(end));
            let wanted: Vec<_> = samples.iter().copied().filter(|(at, _)| range.contains(*at)).collect();
            assert_eq!(unpacked(&packed, range), wanted, "{range:?}");
        }
        let (mut at, mut words) = (vec![], vec![]);
        packed.unpack_into(&mut at, &mut words);
        assert_eq!(at.into_iter().zip(words).collect::<Vec<_>>(), samples);
        packed.bytes() as f64 / len.max(1) as f64
    }

    fn word() -> impl Strategy<Value = fn(u64) -> u64> {
        prop::sample::select(vec![
            (|n| n) as fn(u64) -> u64,
            |n| n % 9,
            |n| ((n % 1_000) as f64).to_bits(),
            |n| ((n % 1_000) as f64 / 100.0).to_bits(),
            |n| (n as f64).sqrt().to_bits(),
            |n| f64::NAN.to_bits() | (n % 3),
            |n| [0.0, -0.0, f64::INFINITY, f64::NAN, 1e300, 5e-324][n as usize % 6].to_bits(),
            |n| [i64::MIN as u64, u64::MAX, 0][n as usize % 3],
        ])
    }

    proptest! {
        #[test]
        fn all_samples_round_trip(
            numbers in prop::collection::vec(any::<u64>(), 0..600),
            word in word(),
            unit in prop::sample::select(vec![0, 1, 1_000, 1_000_000, 1_000_000_000, 1 << 40, 1 << 62]),
            first in any::<i64>(),
            ordered in any::<bool>(),
        ) {
            let mut at = first;
            let sample = |number: &u64| {
                let step = ((number % 1_000) as i64).saturating_mul(unit);
                at = if ordered { at.saturating_add(step) } else { at.wrapping_add(step - unit / 4 * 3) };
                (at, word(*number))
            };
            let samples: Vec<_> = numbers.iter().map(sample).collect();
            check(&samples);
        }
    }

    #[test]
    fn an_idle_series_is_small_and_a_regular_one_is_packed() {
        let bytes_max = |count: i64, word: fn(u64) -> u64, max: f64| {
            let samples: Vec<_> = (0..count).map(|n| (n * 10_000_000_000, word(n as u64))).collect();
            let bytes = check(&samples);
            assert!(bytes <= max, "{bytes} bytes a sample, at most {max} are allowed");
        };
        let state = |n| 50 + tacho_model::mix64(n) % 5;
        bytes_max(1, |_| 1, 56.0);
        bytes_max(8_000, |_| 1.5f64.to_bits(), 0.5);
        bytes_max(8_000, state, 1.1);
        bytes_max(8_000, |n| ((50 + tacho_model::mix64(n) % 5) as f64).to_bits(), 1.1);
        bytes_max(8_000, |n| ((50 + tacho_model::mix64(n) % 5) as f64 / 10.0).to_bits(), 1.1);
        bytes_max(8_000, tacho_model::mix64, 10.8);
    }
}
