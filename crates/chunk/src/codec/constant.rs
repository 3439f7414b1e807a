//! Columns in which all numbers are equal, bit for bit.

use tacho_model::ValueType;

use super::{Codec, Look};
use crate::Error;
use crate::bytes::{Reader, put_scalar};

pub(super) struct Constant;

impl Codec for Constant {
    fn tag(&self) -> u8 {
        1
    }

    fn name(&self) -> &'static str {
        "constant"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        let (first, rest) = look.numbers.words.split_first()?;
        rest.iter().all(|word| word == first).then_some(0.0)
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let mut out = vec![];
        put_scalar(&mut out, *look.numbers.words.first()?, look.numbers.kind);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let word = reader.scalar(kind, "constant")?;
        reader.end("constant")?;
        Ok(vec![word; count])
    }
}
