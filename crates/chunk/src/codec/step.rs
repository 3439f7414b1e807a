//! Each number is the one before plus the same step: the times of a regular series.

use tacho_model::ValueType;

use super::{Codec, Numbers};
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

    fn encode(&self, numbers: Numbers<'_>, _: u8) -> Option<Vec<u8>> {
        let [first, second, ..] = numbers.words else { return None };
        let step = second.wrapping_sub(*first);
        let pairs = || numbers.words.iter().zip(numbers.words.iter().skip(1));
        let regular = || pairs().all(|(a, b)| b.wrapping_sub(*a) == step);
        if numbers.kind == ValueType::F64 || !regular() {
            return None;
        }
        let mut out = vec![];
        put_scalar(&mut out, *first, numbers.kind);
        put_varint(&mut out, zigzag(step.cast_signed()));
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let first = reader.scalar(kind, "first of a step column")?;
        let step = unzigzag(reader.varint("step")?).cast_unsigned();
        reader.end("step")?;
        Ok(std::iter::successors(Some(first), |word| Some(word.wrapping_add(step))).take(count).collect())
    }

    fn settles(&self) -> bool {
        true
    }
}
