//! Each number is the previous number plus a constant step: the times of a regular series.

use tacho_model::ValueType;

use super::{Codec, Look};
use crate::Error;
use crate::bytes::{Reader, put_scalar, put_varint, unzigzag, zigzag};

pub(super) struct Step;

impl Codec for Step {
    fn tag(&self) -> u8 {
        2
    }

    fn name(&self) -> &'static str {
        "step"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        let [first, second, ..] = look.numbers.words else { return None };
        let step = second.wrapping_sub(*first);
        let mut pairs = look.numbers.words.iter().zip(look.numbers.words.iter().skip(1));
        let regular = look.numbers.kind != ValueType::F64 && pairs.all(|(a, b)| b.wrapping_sub(*a) == step);
        regular.then_some(0.0)
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let [first, second, ..] = look.numbers.words else { return None };
        let mut out = vec![];
        put_scalar(&mut out, *first, look.numbers.kind);
        put_varint(&mut out, zigzag(second.wrapping_sub(*first).cast_signed()));
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let first = reader.scalar(kind, "first of a step column")?;
        let step = unzigzag(reader.varint("step")?).cast_unsigned();
        reader.end("step")?;
        Ok(std::iter::successors(Some(first), |word| Some(word.wrapping_add(step))).take(count).collect())
    }
}
