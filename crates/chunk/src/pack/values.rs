//! Values in packed columns: words of 64 bits, whatever they stand for.

use std::ops::Range;

use tacho_model::ValueType;

use super::{
    BLOCK, Blocks, Numbers, PackedSteps, Steps, grow, next_block, put_steps, spread, steps_of, width_byte,
};
use crate::Error;
use crate::bits::{put_bits, width_of};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};
use crate::codec::{decimal, integer};

/// Values of one type in order of arrival. One value takes [`size_of`] this and 8 bytes of heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedValues {
    /// Never empty once there was a value, so that the last one is at hand.
    tail: Vec<u64>,
    blocks: Option<Box<Blocks>>,
    value_type: ValueType,
}

/// What the words of a block are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Steps between the words.
    Words,
    /// Steps between whole numbers, which `f64` hold.
    Whole,
    /// Steps between whole numbers; `f64` hold them over 10 to the parameter.
    Decimal,
    /// Bits in which neighbours differ; the parameter says how far they are shifted.
    Xor,
}

impl Form {
    const ALL: [Self; 4] = [Self::Words, Self::Whole, Self::Decimal, Self::Xor];
}

impl PackedValues {
    pub const fn new(value_type: ValueType) -> Self {
        Self { tail: Vec::new(), blocks: None, value_type }
    }

    pub const fn value_type(&self) -> ValueType {
        self.value_type
    }

    /// Appends the 64 bits of a value.
    pub fn push(&mut self, word: u64) {
        if self.tail.len() == self.tail.capacity() {
            self.make_room();
        }
        self.tail.push(word);
    }

    #[cold]
    fn make_room(&mut self) {
        if self.tail.len() < BLOCK {
            return grow(&mut self.tail);
        }
        put(self.blocks.get_or_insert_default().make_room(), &self.tail, self.value_type);
        self.tail.clear();
    }

    pub fn len(&self) -> usize {
        self.packed() + self.tail.len()
    }

    pub const fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// The value that came last.
    pub fn last(&self) -> Option<u64> {
        self.tail.last().copied()
    }

    /// Memory beside this struct, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.tail.capacity() * size_of::<u64>() + self.blocks.as_ref().map_or(0, |b| b.heap_bytes())
    }

    /// Appends the values at these places, as far as there are any. Blocks before and behind them are not unpacked.
    pub fn read(&self, places: Range<usize>, out: &mut Vec<u64>) {
        let places = places.start..places.end.min(self.len());
        out.reserve(places.len());
        let mut block_at = 0;
        let mut reader = Reader::new(self.blocks.as_ref().map_or(&[], |blocks| blocks.bytes.as_slice()));
        while let Some(block) = next_block(&mut reader, Block::take).filter(|_| block_at < places.end) {
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

    fn packed(&self) -> usize {
        self.blocks.as_ref().map_or(0, |blocks| blocks.count * BLOCK)
    }
}

fn put(out: &mut Vec<u8>, words: &[u64], value_type: ValueType) {
    if value_type == ValueType::F64 && put_float(out, words) {
        return;
    }
    let steps = steps_of(words.iter().map(|word| word.cast_signed()));
    put_integers(out, Form::Words, 0, words.first().map_or(0, |word| word.cast_signed()), &steps);
}

fn put_integers(out: &mut Vec<u8>, form: Form, parameter: u8, first: i64, steps: &Steps) {
    let (low, width) = spread(steps);
    out.extend([form as u8, parameter, width_byte(width)]);
    put_varint(out, zigzag(first));
    put_steps(out, steps, low, width);
}

/// Whether one of the forms of floats is smaller than steps between their words.
fn put_float(out: &mut Vec<u8>, words: &[u64]) -> bool {
    let Some(first) = words.first() else { return false };
    if words.iter().all(|word| integer::whole(*word).is_some()) {
        let whole = |word: &u64| integer::whole(*word).unwrap_or(0).cast_signed();
        put_integers(out, Form::Whole, 0, whole(first), &steps_of(words.iter().map(whole)));
        return true;
    }
    if let Some(exponent) = decimal::exponent(words.iter().copied()) {
        let scaled = |word: &u64| decimal::scaled(*word, exponent).unwrap_or(0);
        put_integers(out, Form::Decimal, exponent, scaled(first), &steps_of(words.iter().map(scaled)));
        return true;
    }
    put_changes(out, words, *first)
}

fn put_changes(out: &mut Vec<u8>, words: &[u64], first: u64) -> bool {
    let mut changes: Numbers = [0; BLOCK - 1];
    for (change, (before, word)) in changes.iter_mut().zip(words.iter().zip(words.iter().skip(1))) {
        *change = before ^ word;
    }
    let all = changes.iter().fold(0, |all, change| all | change);
    let shift = all.trailing_zeros() & 63;
    let width = width_of(all >> shift);
    if width >= spread(&steps_of(words.iter().map(|word| word.cast_signed()))).1 {
        return false;
    }
    out.extend([Form::Xor as u8, width_byte(shift), width_byte(width)]);
    put_varint(out, zigzag(first.cast_signed()));
    put_varint(out, 0);
    put_bits(out, &changes.map(|change| change >> shift), width);
    true
}

/// A block with its parameters read.
struct Block<'a> {
    form: Form,
    parameter: u8,
    first: i64,
    steps: PackedSteps<'a>,
}

impl<'a> Block<'a> {
    fn take(reader: &mut Reader<'a>) -> Result<Self, Error> {
        let [form, parameter, width] = reader.array("form and width")?;
        let form = *Form::ALL.get(usize::from(form)).ok_or(Error::value("form of words", form))?;
        let first = unzigzag(reader.varint("first word")?);
        Ok(Self { form, parameter, first, steps: PackedSteps::take(reader, width)? })
    }

    fn unpack(&self, out: &mut Vec<u64>) {
        match self.form {
            Form::Words => self.steps.add_up(self.first, 1, out, i64::cast_unsigned),
            Form::Whole => self.steps.add_up(self.first, 1, out, |n| integer::float(n.cast_unsigned())),
            Form::Decimal => self.steps.add_up(self.first, 1, out, |n| decimal::float(n, self.parameter)),
            Form::Xor => {
                let mut word = self.first.cast_unsigned();
                out.push(word);
                out.extend(self.steps.numbers().into_iter().map(|change| {
                    word ^= change << (self.parameter & 63);
                    word
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Pushes words and reads them back, all and some; returns bytes for each.
    fn check(value_type: ValueType, words: &[u64]) -> f64 {
        let mut packed = PackedValues::new(value_type);
        for (n, word) in words.iter().enumerate() {
            packed.push(*word);
            assert_eq!((packed.len(), packed.last()), (n + 1, Some(*word)));
        }
        assert_eq!((packed.value_type(), packed.is_empty()), (value_type, words.is_empty()));
        let len = words.len();
        for places in [0..len, 0..usize::MAX, len / 3..len / 2, len / 2..len / 2, len / 4..len + 5, len..len]
        {
            let mut read = vec![3];
            packed.read(places.clone(), &mut read);
            assert_eq!(read[1..], words[places.start..places.end.min(len)], "{places:?}");
        }
        (packed.heap_bytes() + size_of::<PackedValues>()) as f64 / len.max(1) as f64
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
        fn all_values_come_back(
            numbers in prop::collection::vec(any::<u64>(), 0..600),
            word in word(),
            value_type in prop::sample::select(vec![ValueType::F64, ValueType::I64, ValueType::U64]),
        ) {
            let words: Vec<u64> = numbers.into_iter().map(word).collect();
            check(value_type, &words);
        }
    }

    #[test]
    fn what_is_like_its_neighbours_takes_little() {
        let bytes_max = |value_type, words: Vec<u64>, max: f64| {
            let bytes = check(value_type, &words);
            assert!(bytes <= max, "{bytes} bytes a value, at most {max} are allowed");
        };
        let state = |n: u64| 50 + tacho_model::mix64(n) % 5;
        bytes_max(ValueType::F64, vec![1], 48.0);
        bytes_max(ValueType::F64, vec![1.5f64.to_bits(); 8_000], 0.25);
        bytes_max(ValueType::F64, (0..8_000).map(|n| (state(n) as f64).to_bits()).collect(), 0.8);
        bytes_max(ValueType::F64, (0..8_000).map(|n| (state(n) as f64 / 10.0).to_bits()).collect(), 0.8);
        bytes_max(ValueType::U64, (0..8_000).map(state).collect(), 0.8);
        bytes_max(ValueType::I64, (0..8_000).map(tacho_model::mix64).collect(), 10.5);
    }
}
