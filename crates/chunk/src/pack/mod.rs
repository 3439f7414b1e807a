//! How are the columns of an open chunk kept in little memory, and still filled one record at a time?
//!
//! A column is append-only: a raw tail of at most [`BLOCK`] numbers, and before it blocks of exactly that many, each packed at
//! once when the tail is full and the next number comes. Numbers stay in order of arrival and come back bit for bit.
//!
//! ```text
//!  column:      block | block | ..      tail: number, number ..
//!
//!  of times:    i64 first | u8 unit | u8 width | zigzag low | BLOCK - 1 numbers of width bits
//!  of values:   u8 form | u8 parameter | u8 width | zigzag first | zigzag low | BLOCK - 1 numbers of width bits
//! ```
//! The numbers are differences between neighbours, less the lowest of the block (a frame of reference: Goldstein, Ramakrishnan,
//! Shaft, ICDE 1998). This never leaves memory, so it has no version and no page of its own.
//!
//! Path of one record: before, the store's open chunk pushes it; after, it is read from here, or sealed into a chunk.

mod times;
mod values;

pub use self::times::PackedTimes;
pub use self::values::PackedValues;

use crate::Error;
use crate::bits::{bytes_of, put_bits, take_bits, width_of};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

/// Numbers of a block. More pack a little better and make the raw tail of an active column larger (1 KiB now).
pub const BLOCK: usize = 128;

/// Differences between the neighbours of a block, mod 2^64.
type Steps = [i64; BLOCK - 1];
/// What is packed of a block: steps above the lowest one, or changed bits.
type Numbers = [u64; BLOCK - 1];

/// Full blocks, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Blocks {
    count: usize,
    bytes: Vec<u8>,
}

impl Blocks {
    /// Room for one more block. Grows by a quarter instead of doubling: most of what an open store holds lies here.
    fn make_room(&mut self) -> &mut Vec<u8> {
        self.count += 1;
        if self.bytes.capacity() - self.bytes.len() < BLOCK {
            self.bytes.reserve_exact((self.bytes.len() / 4).max(BLOCK));
        }
        &mut self.bytes
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }
}

/// Doubles a tail's capacity, up to a block; `Vec` itself would begin with four.
fn grow<T>(tail: &mut Vec<T>) {
    tail.reserve_exact((tail.len() * 2).clamp(1, BLOCK) - tail.len());
}

/// Differences between the neighbours of a full block.
fn steps_of(numbers: impl IntoIterator<Item = i64>) -> Steps {
    let mut steps = [0; BLOCK - 1];
    let mut numbers = numbers.into_iter();
    let mut before = numbers.next().unwrap_or(0);
    for (step, number) in steps.iter_mut().zip(numbers) {
        *step = number.wrapping_sub(before);
        before = number;
    }
    steps
}

/// Lowest step, and the bits that all take above it.
fn spread(steps: &Steps) -> (i64, u32) {
    let (low, high) = steps.iter().fold((i64::MAX, i64::MIN), |(low, high), s| (low.min(*s), high.max(*s)));
    (low, width_of(high.wrapping_sub(low).cast_unsigned()))
}

fn put_steps(out: &mut Vec<u8>, steps: &Steps, low: i64, width: u32) {
    put_varint(out, zigzag(low));
    put_bits(out, &steps.map(|step| step.wrapping_sub(low).cast_unsigned()), width);
}

/// The width as a byte: it is at most 64.
const fn width_byte(width: u32) -> u8 {
    width.to_le_bytes()[0]
}

/// Steps as they are packed.
struct PackedSteps<'a> {
    width: u32,
    low: i64,
    bytes: &'a [u8],
}

impl<'a> PackedSteps<'a> {
    /// `low` and the numbers.
    fn take(reader: &mut Reader<'a>, width: u8) -> Result<Self, Error> {
        let width = u32::from(width);
        let low = unzigzag(reader.varint("lowest step")?);
        Ok(Self { width, low, bytes: reader.take(bytes_of(BLOCK - 1, width), "steps")? })
    }

    fn numbers(&self) -> Numbers {
        let mut numbers = [0; BLOCK - 1];
        take_bits(self.bytes, self.width, &mut numbers);
        numbers
    }

    /// Appends `finish` of `first` and of what comes when one step after the other, times `unit`, is added to it.
    fn add_up<T>(&self, first: i64, unit: i64, out: &mut Vec<T>, finish: impl Fn(i64) -> T) {
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

/// The next block's parameters. Its bytes were written here and never left memory: that they do not read back is our own error.
fn next_block<'a, T>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Result<T, Error>,
) -> Option<T> {
    if reader.left() == 0 {
        return None;
    }
    let block = read(reader);
    debug_assert!(block.is_ok(), "a packed block does not read back: {:?}", block.err());
    block.ok()
}
