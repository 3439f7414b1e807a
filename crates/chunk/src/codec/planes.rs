//! The lowest bytes of all numbers, then their second bytes, and so on, which compresses better than interleaved bytes.

use tacho_model::ValueType;

use super::{Codec, Look};
use crate::Error;

pub(super) struct Planes;

pub(super) const TAG: u8 = 19;

pub(super) fn encode(words: &[u64]) -> Vec<u8> {
    let plane = |shift: u32| words.iter().map(move |word| (word >> shift).to_le_bytes()[0]);
    (0..64).step_by(8).flat_map(plane).collect()
}

impl Codec for Planes {
    fn tag(&self) -> u8 {
        TAG
    }

    fn name(&self) -> &'static str {
        "planes"
    }

    /// As large as the plain form, so it is useful only with compression (`compressed.rs`).
    fn estimate(&self, _: &Look<'_>) -> Option<f64> {
        None
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        Some(encode(look.numbers.words))
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let wanted = count.saturating_mul(8);
        if bytes.len() < wanted {
            return Err(Error::Short { what: "planes", wanted, left: bytes.len() });
        }
        if bytes.len() > wanted {
            return Err(Error::Trailing { what: "planes", left: bytes.len() - wanted });
        }
        let mut words = vec![0; count];
        for (shift, plane) in (0..64).step_by(8).zip(bytes.chunks_exact(count.max(1))) {
            for (word, byte) in words.iter_mut().zip(plane) {
                *word |= u64::from(*byte) << shift;
            }
        }
        Ok(words)
    }
}
