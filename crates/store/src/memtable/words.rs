//! The values of the open samples of one series, packed into few bytes while values are still appended.
//!
//! ```text
//!   u16 used | u8 scale | zigzag varint of each difference between neighbours | i64 last number | unused
//! ```
//! For f64, a number is the value times 10^`scale` if this is exact for all values, or else the bits of the value. For i64 and
//! u64, it is the bits of the value. Differences wrap. The first number is the last number minus all differences.
//! The bytes exist only in memory, so they have no version and no format document.

use tacho_model::ValueType;
use tacho_model::varint::{self, unzigzag, zigzag};

const HEAD_BYTES: usize = 3;
const LAST_BYTES: usize = 8;
/// The length of the buffer is a multiple of this, because the allocator rounds up to it.
const STEP_BYTES: usize = 16;

const FACTORS: [f64; 4] = [1.0, 10.0, 100.0, 1_000.0];
/// The scale of a series of f64 whose numbers are the bits of the values.
const BITS: u8 = 4;

/// A word is a value as 64 bits.
#[derive(Debug)]
pub struct Words(Box<[u8]>);

impl Words {
    pub fn new(first: u64, value_type: ValueType) -> Self {
        Self::of(&[first], value_type)
    }

    /// Packs words with the smallest scale that fits all of them.
    fn of(words: &[u64], value_type: ValueType) -> Self {
        let fits = |scale: &u8| words.iter().all(|word| number_of(*word, value_type, *scale).is_some());
        let scale = (0..BITS).find(fits).unwrap_or(BITS);
        let mut all = Self(Box::from([0; STEP_BYTES]));
        all.put(0, &[0, 0, scale]);
        let mut numbers = words.iter().filter_map(|word| number_of(*word, value_type, scale));
        all.end(HEAD_BYTES, numbers.next().unwrap_or(0));
        numbers.for_each(|number| all.push_number(number));
        all
    }

    pub fn push(&mut self, word: u64, value_type: ValueType) {
        if let Some(number) = number_of(word, value_type, self.scale()) {
            return self.push_number(number);
        }
        let mut words = self.unpack(value_type);
        words.push(word);
        *self = Self::of(&words, value_type);
    }

    fn push_number(&mut self, number: i64) {
        let at = self.used().saturating_sub(LAST_BYTES);
        let difference = zigzag(number.wrapping_sub(self.last()));
        let bytes = varint::varint_bytes(difference) as usize;
        let end = at + bytes + LAST_BYTES;
        if end > self.0.len() {
            self.grow(end);
        }
        match difference.to_le_bytes() {
            // Most differences are small.
            [low, ..] if bytes == 1 => self.put(at, &[low]),
            [low, high, ..] if bytes == 2 => self.put(at, &[low | 0x80, high << 1 | low >> 7]),
            _ => self.put_long(at, bytes, difference),
        }
        self.end(at + bytes, number);
    }

    fn put_long(&mut self, at: usize, bytes: usize, mut difference: u64) {
        for (place, left) in self.0.iter_mut().skip(at).take(bytes).zip((0..bytes).rev()) {
            let more = if left > 0 { 0x80 } else { 0 };
            *place = (difference.to_le_bytes()[0] & 0x7f) | more;
            difference >>= 7;
        }
    }

    /// Writes the last number at this place, and the number of used bytes.
    fn end(&mut self, at: usize, last: i64) {
        let used = u16::try_from(at + LAST_BYTES).unwrap_or(u16::MAX);
        self.put(at, &last.to_le_bytes());
        self.put(0, &used.to_le_bytes());
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.0.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) {
        // The buffer grows by a quarter and is not doubled, because most of the memtable's memory is here.
        let len = needed.max(self.0.len() / 4 * 5).next_multiple_of(STEP_BYTES);
        let mut bytes = Vec::with_capacity(len);
        bytes.extend_from_slice(&self.0);
        bytes.resize(len, 0);
        self.0 = bytes.into_boxed_slice();
    }

    fn used(&self) -> usize {
        self.0.first_chunk().map_or(0, |used| usize::from(u16::from_le_bytes(*used)))
    }

    fn scale(&self) -> u8 {
        self.0.get(2).copied().unwrap_or(BITS)
    }

    fn last(&self) -> i64 {
        self.0
            .get(..self.used())
            .and_then(|used| used.last_chunk())
            .map_or(0, |last| i64::from_le_bytes(*last))
    }

    pub fn unpack(&self, value_type: ValueType) -> Vec<u64> {
        let end = self.used().saturating_sub(LAST_BYTES);
        let mut packed = self.0.get(HEAD_BYTES..end).unwrap_or_default();
        let mut words = Vec::with_capacity(packed.len() + 1);
        while let Ok(difference) = varint::read(&mut packed) {
            words.push(difference);
        }
        words.push(0);
        let (mut number, scale) = (self.last(), self.scale());
        for place in words.iter_mut().rev() {
            // `number` is the number of the next place. `place` holds the difference between that number and the number of
            // this place.
            number = number.wrapping_sub(unzigzag(*place));
            *place = word_of(number, value_type, scale);
        }
        words
    }

    /// Heap memory, bytes.
    pub const fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// The number of a word at this scale; `None` if the word cannot be restored from its number.
fn number_of(word: u64, value_type: ValueType, scale: u8) -> Option<i64> {
    let bits = word.cast_signed();
    let Some(factor) = FACTORS.get(usize::from(scale)).filter(|_| value_type == ValueType::F64) else {
        return Some(bits);
    };
    let value = f64::from_bits(word);
    // The nearest integer, without a call of `round`. If it is wrong, the word is not restored from it.
    #[expect(clippy::cast_possible_truncation, reason = "a word that is not restored has no number")]
    let number = match scale {
        0 => value as i64,
        _ => (value * factor + 0.5_f64.copysign(value)) as i64,
    };
    (word_of(number, value_type, scale) == word).then_some(number)
}

#[expect(clippy::cast_precision_loss, reason = "`number_of` refuses a word that is not restored")]
fn word_of(number: i64, value_type: ValueType, scale: u8) -> u64 {
    match FACTORS.get(usize::from(scale)) {
        // A division by 1 would cost as much as any other.
        Some(_) if value_type == ValueType::F64 && scale == 0 => (number as f64).to_bits(),
        Some(factor) if value_type == ValueType::F64 => (number as f64 / factor).to_bits(),
        _ => number.cast_unsigned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pack(words: &[u64], value_type: ValueType) -> Words {
        let mut packed = Words::new(words[0], value_type);
        for (word, count) in words[1..].iter().zip(2..) {
            packed.push(*word, value_type);
            assert_eq!(packed.unpack(value_type), words[..count]);
        }
        packed
    }

    fn floats(values: impl IntoIterator<Item = f64>) -> Vec<u64> {
        values.into_iter().map(f64::to_bits).collect()
    }

    #[test]
    fn values_of_counters_and_decimals_take_few_bytes() {
        let check = |words: &[u64], expect: usize| {
            assert_eq!(pack(words, ValueType::F64).bytes(), expect);
        };
        check(&floats([7.0]), 16);
        check(&floats([1e6; 6]), 16);
        check(&floats((0..6).map(|n| f64::from(n * 60))), 16);
        check(&floats((0..40).map(|n| 1e9 + f64::from(n * 5_000))), 112);
        check(&floats((0..40).map(|n| f64::from(n % 7) / 100.0)), 64);
    }

    #[test]
    fn special_values_are_restored_exactly() {
        // Floats below this magnitude represent each integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let special = [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::MIN_POSITIVE,
            EXACT - 1.0,
            -EXACT,
            EXACT,
            EXACT * 1e3,
            -EXACT * 1_024.0,
            EXACT * 1_024.0,
            0.5,
            0.499_999_999_999_999_94,
            0.1,
            1.001,
            1e300,
        ];
        for before in [0, 1, 9] {
            for value in special {
                let words = floats(std::iter::repeat_n(5.0, before).chain([value, 6.5, value]));
                pack(&words, ValueType::F64);
            }
        }
        for value_type in [ValueType::I64, ValueType::U64] {
            pack(&[0, u64::MAX, 1 << 63, 1, i64::MAX.cast_unsigned()], value_type);
        }
    }

    fn decimals() -> impl Strategy<Value = u64> {
        (0_i32..99_999).prop_map(|n| (f64::from(n) / 100.0).to_bits())
    }

    proptest! {
        #[test]
        fn words_are_restored(
            words in prop::collection::vec(prop_oneof![any::<u64>(), decimals()], 1..60),
            float in any::<bool>(),
        ) {
            pack(&words, if float { ValueType::F64 } else { ValueType::U64 });
        }
    }
}
