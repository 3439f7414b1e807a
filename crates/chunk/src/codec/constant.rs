//! All numbers are one number, bit for bit.

use tacho_model::ValueType;

use super::{Codec, Numbers};
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

    fn encode(&self, numbers: Numbers<'_>, _: u8) -> Option<Vec<u8>> {
        let (first, rest) = numbers.words.split_first()?;
        if rest.iter().any(|word| word != first) {
            return None;
        }
        let mut out = vec![];
        put_scalar(&mut out, *first, numbers.kind);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let word = reader.scalar(kind, "constant")?;
        reader.end("constant")?;
        Ok(vec![word; count])
    }

    fn settles(&self) -> bool {
        true
    }
}
