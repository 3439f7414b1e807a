//! Numbers that are a base plus multiples of something: times in whole milliseconds, counters in the high bits of an id.

use tacho_model::ValueType;

use super::{Codec, Numbers, put_nested, take_nested};
use crate::Error;
use crate::bytes::{Reader, put_scalar, put_varint};

pub(super) struct Multiple;

/// Greatest common divisor of all differences to `low`; ends early at 1.
fn common_divisor(words: &[u64], low: u64) -> u64 {
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

    fn encode(&self, numbers: Numbers<'_>, depth: u8) -> Option<Vec<u8>> {
        let low = match numbers.kind {
            ValueType::F64 => return None,
            ValueType::I64 => numbers.words.iter().map(|w| w.cast_signed()).min()?.cast_unsigned(),
            ValueType::U64 => *numbers.words.iter().min()?,
        };
        let divisor = common_divisor(numbers.words, low);
        if divisor < 2 || depth > 1 {
            return None;
        }
        let quotients: Vec<u64> = numbers.words.iter().map(|word| word.wrapping_sub(low) / divisor).collect();
        let mut out = vec![];
        put_scalar(&mut out, low, numbers.kind);
        put_varint(&mut out, divisor);
        put_nested(&mut out, Numbers::u64(&quotients), depth);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let low = reader.scalar(kind, "low of a multiple column")?;
        let divisor = reader.varint("multiple")?;
        let quotients = take_nested(&mut reader, count, ValueType::U64, depth)?;
        reader.end("multiple column")?;
        Ok(quotients.into_iter().map(|q| low.wrapping_add(q.wrapping_mul(divisor))).collect())
    }
}
