//! Floats as integers with the same order, so that floats close to each other become integers close to each other.

use tacho_model::ValueType;

use super::{Codec, Look, Numbers, take_nested};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Ordered;

/// Bits per number. If an earlier estimate is at most this, the floats are probably integers or decimals, for which other codecs
/// take less space. With `Effort::Fast`, this codec is then not tried.
const PAYS_ABOVE: f64 = 16.0;

/// The rank of a float in the total order of IEEE 754 (5.10), as a signed integer. All bits of a negative float except the sign
/// are inverted, so the function is its own inverse.
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
