//! Floats as integers in the same order: neighbours that are near each other are near as integers too.

use tacho_model::ValueType;

use super::{Codec, Look, Numbers, take_nested};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Ordered;

/// Bits a number above which floats may be smaller than the integers that they are.
const PAYS_ABOVE: f64 = 16.0;

/// The place of a float among all floats, as a signed integer: negative ones are turned round, as IEEE 754 orders them (5.10).
pub(super) const fn rank(word: u64) -> u64 {
    let below = (word.cast_signed() >> 63).cast_unsigned();
    word ^ (below >> 1)
}

impl Codec for Ordered {
    fn tag(&self) -> u8 {
        14
    }

    fn name(&self) -> &'static str {
        "ordered"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind != ValueType::F64 || look.depth > 1 || !look.leaves(PAYS_ABOVE) {
            return None;
        }
        look.bits_after(|word| Some(rank(word)))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let ranks: Vec<u64> = look.numbers.words.iter().map(|word| rank(*word)).collect();
        let mut out = vec![];
        look.put_nested(&mut out, Numbers { words: &ranks, kind: ValueType::I64 });
        Some(out)
    }

    /// Turning round twice is the way back.
    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        if kind != ValueType::F64 {
            return Err(Error::value("type of an ordered column", kind as u8));
        }
        let mut reader = Reader::new(bytes);
        let ranks = take_nested(&mut reader, count, ValueType::I64, depth)?;
        reader.end("ordered column")?;
        Ok(ranks.into_iter().map(rank).collect())
    }
}
