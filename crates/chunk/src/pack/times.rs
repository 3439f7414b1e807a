//! Times in packed columns: any order, smallest when they are regular.

use std::ops::Range;

use tacho_model::{TimeRange, Timestamp};

use super::{BLOCK, Blocks, PackedSteps, Steps, grow, next_block, put_steps, spread, steps_of, width_byte};
use crate::Error;
use crate::bytes::Reader;

/// Moments in order of arrival, ns. One moment takes [`size_of`] this and 8 bytes of heap.
///
/// Equal when the same moments came in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedTimes {
    /// Never empty once there was a moment, so that the last one is at hand.
    tail: Vec<Timestamp>,
    blocks: Option<Box<Blocks>>,
}

/// Units that the steps of a block may all be multiples of, ns.
const UNITS: [i64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];

impl PackedTimes {
    pub fn push(&mut self, at: Timestamp) {
        if self.tail.len() == self.tail.capacity() {
            self.make_room();
        }
        self.tail.push(at);
    }

    #[cold]
    fn make_room(&mut self) {
        if self.tail.len() < BLOCK {
            return grow(&mut self.tail);
        }
        put(self.blocks.get_or_insert_default().make_room(), &self.tail);
        self.tail.clear();
    }

    pub fn len(&self) -> usize {
        self.packed() + self.tail.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// The moment that came first.
    pub fn first(&self) -> Option<Timestamp> {
        self.blocks().next().map(|block| block.first).or_else(|| self.tail.first().copied())
    }

    /// The moment that came last.
    pub fn last(&self) -> Option<Timestamp> {
        self.tail.last().copied()
    }

    /// Memory beside this struct, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.tail.capacity() * size_of::<Timestamp>() + self.blocks.as_ref().map_or(0, |b| b.heap_bytes())
    }

    /// Appends the moments at these places, as far as there are any. Blocks before and behind them are not unpacked.
    pub fn read(&self, places: Range<usize>, out: &mut Vec<Timestamp>) {
        let places = places.start..places.end.min(self.len());
        out.reserve(places.len());
        let mut block_at = 0;
        for block in self.blocks().take(places.end.div_ceil(BLOCK)) {
            let start = places.start.saturating_sub(block_at);
            if start < BLOCK {
                let before = out.len();
                block.unpack(out);
                out.truncate(before + BLOCK.min(places.end - block_at));
                out.drain(before..before + start);
            }
            block_at += BLOCK;
        }
        let packed = self.packed();
        let tail = places.start.saturating_sub(packed)..places.end.saturating_sub(packed);
        out.extend_from_slice(self.tail.get(tail).unwrap_or_default());
    }

    /// The places of a range of moments. For columns whose moments never fall.
    pub fn places(&self, range: TimeRange) -> Range<usize> {
        let first = self.count_while(|at| at < range.start);
        first..self.count_while(|at| at <= range.end).max(first)
    }

    /// How many moments stand before the first that is not `wanted`; none behind that one is wanted either.
    fn count_while(&self, wanted: impl Fn(Timestamp) -> bool) -> usize {
        let packed = self.packed();
        if self.tail.first().is_some_and(|first| wanted(*first)) {
            return packed + self.tail.partition_point(|at| wanted(*at));
        }
        let mut block_at = 0;
        let mut last_wanted = None;
        for block in self.blocks().take_while(|block| wanted(block.first)) {
            last_wanted = Some((block_at, block));
            block_at += BLOCK;
        }
        last_wanted.map_or(0, |(block_at, block)| {
            let mut at = Vec::with_capacity(BLOCK);
            block.unpack(&mut at);
            block_at + at.partition_point(|at| wanted(*at))
        })
    }

    fn packed(&self) -> usize {
        self.blocks.as_ref().map_or(0, |blocks| blocks.count * BLOCK)
    }

    fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let mut reader = Reader::new(self.blocks.as_ref().map_or(&[], |blocks| blocks.bytes.as_slice()));
        std::iter::from_fn(move || next_block(&mut reader, Block::take))
    }
}

/// The steps as multiples of a unit, when all are.
fn divided<const UNIT: i64>(steps: &Steps) -> Option<Steps> {
    steps.iter().all(|step| step % UNIT == 0).then(|| steps.map(|step| step / UNIT))
}

fn put(out: &mut Vec<u8>, tail: &[Timestamp]) {
    let steps = steps_of(tail.iter().copied());
    let with = |unit: u8| move |steps| (unit, steps);
    let (unit, steps) = None
        .or_else(|| divided::<{ UNITS[3] }>(&steps).map(with(3)))
        .or_else(|| divided::<{ UNITS[2] }>(&steps).map(with(2)))
        .or_else(|| divided::<{ UNITS[1] }>(&steps).map(with(1)))
        .unwrap_or((0, steps));
    let (low, width) = spread(&steps);
    out.extend_from_slice(&tail.first().copied().unwrap_or_default().to_le_bytes());
    out.extend([unit, width_byte(width)]);
    put_steps(out, &steps, low, width);
}

/// A block with its parameters read.
struct Block<'a> {
    first: Timestamp,
    unit: i64,
    steps: PackedSteps<'a>,
}

impl<'a> Block<'a> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let first = Timestamp::from_le_bytes(reader.array("first time")?);
        let [unit, width] = reader.array("unit and width")?;
        let unit = *UNITS.get(usize::from(unit)).ok_or(Error::value("unit of times", unit))?;
        Ok(Self { first, unit, steps: PackedSteps::take(reader, width)? })
    }

    fn unpack(&self, out: &mut Vec<Timestamp>) {
        self.steps.add_up(self.first, self.unit, out, |at| at);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pushes moments and reads them back, all and some; returns bytes for each.
    fn check(moments: &[Timestamp]) -> f64 {
        let mut packed = PackedTimes::default();
        for (n, at) in moments.iter().enumerate() {
            packed.push(*at);
            assert_eq!((packed.len(), packed.last()), (n + 1, Some(*at)));
        }
        assert_eq!((packed.first(), packed.is_empty()), (moments.first().copied(), moments.is_empty()));
        let len = moments.len();
        for places in [0..len, 0..usize::MAX, len / 3..len / 2, len / 2..len / 2, len / 4..len + 5, len..len]
        {
            let mut read = vec![3];
            packed.read(places.clone(), &mut read);
            assert_eq!(read[1..], moments[places.start..places.end.min(len)], "{places:?}");
        }
        if moments.is_sorted() {
            let at = |place: usize| moments.get(place).copied().unwrap_or(Timestamp::MAX);
            for (start, end) in [(0, len), (len / 3, len / 2), (len / 4, len), (len, 0)] {
                let range = TimeRange::new(at(start).saturating_sub(1), at(end));
                let first = moments.partition_point(|at| *at < range.start);
                let wanted = first..moments.partition_point(|at| *at <= range.end).max(first);
                assert_eq!(packed.places(range), wanted, "{range:?}");
            }
        }
        (packed.heap_bytes() + size_of::<PackedTimes>()) as f64 / len.max(1) as f64
    }

    proptest! {
        #[test]
        fn all_moments_come_back(
            numbers in prop::collection::vec(any::<u64>(), 0..600),
            unit in prop::sample::select(vec![0, 1, 1_000, 1_000_000, 1_000_000_000, 1 << 40, 1 << 62]),
            first in any::<i64>(),
            ordered in any::<bool>(),
        ) {
            let mut at = first;
            let moments: Vec<Timestamp> = numbers.iter().map(|number| {
                let step = ((number % 1_000) as i64).saturating_mul(unit);
                at = if ordered { at.saturating_add(step) } else { at.wrapping_add(step - 300i64.saturating_mul(unit)) };
                at
            }).collect();
            check(&moments);
        }
    }

    #[test]
    fn regular_times_take_next_to_nothing() {
        let bytes_max = |moments: Vec<Timestamp>, max: f64| {
            let bytes = check(&moments);
            assert!(bytes <= max, "{bytes} bytes a moment, at most {max} are allowed");
        };
        bytes_max(vec![1], 40.0);
        bytes_max((0..8_000).map(|n| n * 10_000_000_000).collect(), 0.3);
        let jitter = |n: i64| (n * 1_000 + tacho_model::mix64(n as u64) as i64 % 50) * 1_000_000;
        bytes_max((0..8_000).map(jitter).collect(), 1.6);
    }

    #[test]
    fn equal_pushes_are_equal() {
        let packed = |step: i64| {
            let mut packed = PackedTimes::default();
            (0..300).for_each(|n| packed.push(n * step));
            packed
        };
        assert_eq!(packed(3), packed(3));
        assert_ne!(packed(3), packed(4));
    }
}
