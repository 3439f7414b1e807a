//! A base plus multiples of a divisor: times in whole milliseconds, or counters in the high bits of an id.

use tacho_model::ValueType;

use super::{Codec, Look, Numbers, Part, take_nested_part};
use crate::Error;
use crate::bytes::{Reader, put_scalar, put_varint};

pub(super) struct Multiple;

/// The smallest number; `None` for floats.
fn lowest(words: impl Iterator<Item = u64>, kind: ValueType) -> Option<u64> {
    match kind {
        ValueType::F64 => None,
        ValueType::I64 => words.map(u64::cast_signed).min().map(i64::cast_unsigned),
        ValueType::U64 => words.min(),
    }
}

/// Greatest common divisor of all differences from `low`. Stops early at 1.
pub(super) fn common_divisor(words: impl Iterator<Item = u64>, low: u64) -> u64 {
    let mut divisor = 0u64;
    for word in words {
        let (mut a, mut b) = (word.wrapping_sub(low), divisor);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        divisor = a;
        if divisor == 1 {
            break;
        }
    }
    divisor
}

impl Codec for Multiple {
    fn tag(&self) -> u8 {
        9
    }

    fn name(&self) -> &'static str {
        "multiple"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.depth > 1 {
            return None;
        }
        let low = lowest(look.sample(), look.numbers.kind)?;
        let divisor = Some(common_divisor(look.sample(), low)).filter(|divisor| *divisor > 1)?;
        look.bits_after(|word| Some(word.wrapping_sub(low) / divisor))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let numbers = look.numbers;
        let low = lowest(numbers.words.iter().copied(), numbers.kind)?;
        let divisor = common_divisor(numbers.words.iter().copied(), low);
        if divisor < 2 {
            return None;
        }
        let quotients: Vec<u64> = numbers.words.iter().map(|word| word.wrapping_sub(low) / divisor).collect();
        let mut out = vec![];
        put_scalar(&mut out, low, numbers.kind);
        put_varint(&mut out, divisor);
        look.put_nested(&mut out, Numbers::u64(&quotients));
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        self.decode_part(bytes, &Part::whole(count), kind, depth)
    }

    fn decode_part(&self, bytes: &[u8], part: &Part, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let low = reader.scalar(kind, "low of a multiple column")?;
        let divisor = reader.varint("multiple")?;
        let quotients = take_nested_part(&mut reader, part, ValueType::U64, depth)?;
        reader.end("multiple column")?;
        Ok(quotients.into_iter().map(|q| low.wrapping_add(q.wrapping_mul(divisor))).collect())
    }
}
