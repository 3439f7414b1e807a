//! Floats that are exact integers, except -0.0. The codec only decodes existing chunks; new chunks use `decimal` with zero
//! decimals.

use tacho_model::ValueType;

use super::{Codec, Part, take_nested_part};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Integer;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the integer is converted back and compared"
)]
pub(crate) fn whole(word: u64) -> Option<u64> {
    let integer = f64::from_bits(word) as i64;
    ((integer as f64).to_bits() == word).then_some(integer.cast_unsigned())
}

#[expect(clippy::cast_precision_loss, reason = "the encoder accepts only exactly decodable integers")]
pub(crate) const fn float(integer: u64) -> u64 {
    (integer.cast_signed() as f64).to_bits()
}

impl Codec for Integer {
    fn tag(&self) -> u8 {
        7
    }

    fn name(&self) -> &'static str {
        "integer"
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        self.decode_part(bytes, &Part::whole(count), kind, depth)
    }

    fn decode_part(&self, bytes: &[u8], part: &Part, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        if kind != ValueType::F64 {
            return Err(Error::value("type of an integer column", kind as u8));
        }
        let mut reader = Reader::new(bytes);
        let integers = take_nested_part(&mut reader, part, ValueType::I64, depth)?;
        reader.end("integer column")?;
        Ok(integers.into_iter().map(float).collect())
    }
}
