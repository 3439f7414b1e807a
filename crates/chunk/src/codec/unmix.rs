//! Ids that are mixed values of a counter ([`mix64`]): agents create trace and span ids in this way. The codec undoes the mixing
//! and encodes the values of the counter.

use tacho_model::{ValueType, mix64, unmix64};

use super::{Codec, Look, Numbers, take_nested, varint};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Unmix;

/// Number of values at the start of the column that show whether the codec helps.
const PROBE: usize = 64;

/// Whether the numbers are clearly more ordered when the mixing is undone.
fn helps(words: &[u64]) -> bool {
    let probe = || words.iter().take(PROBE).copied();
    varint::cost(probe().map(unmix64)) * 4 < varint::cost(probe()) * 3
}

impl Codec for Unmix {
    fn tag(&self) -> u8 {
        8
    }

    fn name(&self) -> &'static str {
        "unmix"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind != ValueType::U64 || look.depth > 0 || !helps(look.numbers.words) {
            return None;
        }
        look.bits_after(|word| Some(unmix64(word)))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let counters: Vec<u64> = look.numbers.words.iter().map(|word| unmix64(*word)).collect();
        let mut out = vec![];
        look.put_nested(&mut out, Numbers::u64(&counters));
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let counters = take_nested(&mut reader, count, ValueType::U64, depth)?;
        reader.end("unmix column")?;
        Ok(counters.into_iter().map(mix64).collect())
    }
}
