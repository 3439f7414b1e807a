//! Eight bytes per number: for columns that no other codec makes smaller by a sixteenth.

use tacho_model::ValueType;

use super::{Codec, Encoded, Look, Numbers};
use crate::Error;
use crate::bytes::{put_words, words};

pub(crate) const TAG: u8 = 0;

pub(super) struct Plain;

pub(super) fn encode(numbers: Numbers<'_>) -> Encoded {
    let mut bytes = vec![];
    put_words(&mut bytes, numbers.words);
    Encoded { codec: TAG, bytes }
}

impl Codec for Plain {
    fn tag(&self) -> u8 {
        TAG
    }

    fn name(&self) -> &'static str {
        "plain"
    }

    /// Never a candidate, because [`super::encode`] uses the plain form if no candidate is better.
    fn estimate(&self, _: &Look<'_>) -> Option<f64> {
        None
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        Some(encode(look.numbers).bytes)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        words(bytes, count, "plain numbers")
    }
}
