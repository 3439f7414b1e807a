//! How are differences between neighbours packed? As distances from the lowest difference, with the bit width of the largest
//! distance.

use crate::Error;
use crate::bits::{bytes_of, put_bits, take_bits, width_of};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

/// Samples per block. Larger blocks pack slightly better, but also enlarge the raw tail of an active series (2 KiB).
pub const BLOCK: usize = 128;

/// Differences between neighbouring numbers of a block, mod 2^64.
pub(super) type Steps = [i64; BLOCK - 1];
/// The numbers that a block packs: distances of the steps from the lowest step, or the bits in which neighbours differ.
pub(super) type Numbers = [u64; BLOCK - 1];

pub(super) fn steps_of(numbers: impl IntoIterator<Item = i64>) -> Steps {
    let mut steps = [0; BLOCK - 1];
    let mut numbers = numbers.into_iter();
    let mut before = numbers.next().unwrap_or(0);
    for (step, number) in steps.iter_mut().zip(numbers) {
        *step = number.wrapping_sub(before);
        before = number;
    }
    steps
}

/// The lowest step, and the bit width of the largest distance from it.
pub(super) fn spread(steps: &Steps) -> (i64, u32) {
    let (low, high) = steps.iter().fold((i64::MAX, i64::MIN), |(low, high), s| (low.min(*s), high.max(*s)));
    (low, width_of(high.wrapping_sub(low).cast_unsigned()))
}

/// Writes `low` and the distances of the steps from it.
pub(super) fn put_steps(out: &mut Vec<u8>, steps: &Steps, low: i64, width: u32) {
    put_varint(out, zigzag(low));
    put_bits(out, &steps.map(|step| step.wrapping_sub(low).cast_unsigned()), width);
}

/// The width as a byte. A width is at most 64.
pub(super) const fn width_byte(width: u32) -> u8 {
    width.to_le_bytes()[0]
}

pub(super) struct PackedSteps<'a> {
    pub(super) width: u32,
    pub(super) low: i64,
    bytes: &'a [u8],
}

impl<'a> PackedSteps<'a> {
    /// Reads the output of [`put_steps`]. The numbers stay packed.
    pub(super) fn take(reader: &mut Reader<'a>, width: u8) -> Result<Self, Error> {
        let width = u32::from(width);
        let low = unzigzag(reader.varint("lowest step")?);
        Ok(Self { width, low, bytes: reader.take(bytes_of(BLOCK - 1, width), "steps")? })
    }

    pub(super) fn numbers(&self) -> Numbers {
        let mut numbers = [0; BLOCK - 1];
        take_bits(self.bytes, self.width, &mut numbers);
        numbers
    }

    /// Adds the steps, each multiplied by `unit`, to `first`. Appends `finish(first)` and, after each step, `finish` of the sum.
    pub(super) fn add_up<T>(&self, first: i64, unit: i64, out: &mut Vec<T>, finish: impl Fn(i64) -> T) {
        let low = self.low.wrapping_mul(unit);
        let mut number = first;
        out.push(finish(first));
        if self.width == 0 {
            out.extend((1..BLOCK).map(|_| {
                number = number.wrapping_add(low);
                finish(number)
            }));
            return;
        }
        out.extend(self.numbers().iter().map(|step| {
            number = number.wrapping_add(low).wrapping_add(step.cast_signed().wrapping_mul(unit));
            finish(number)
        }));
    }
}
