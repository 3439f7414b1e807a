//! Ids that are a mixed counter: undo the mixing and find the counter. Agents make their trace and span ids so.

use tacho_model::{ValueType, mix64, unmix64};

use super::{Codec, Numbers, put_nested, take_nested, varint};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Unmix;

/// Numbers looked at before the whole column is tried.
const PROBE: usize = 64;

/// Whether there is clearly more order in the numbers once the mixing is undone.
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

    fn encode(&self, numbers: Numbers<'_>, depth: u8) -> Option<Vec<u8>> {
        if numbers.kind != ValueType::U64 || depth > 0 || !helps(numbers.words) {
            return None;
        }
        let counters: Vec<u64> = numbers.words.iter().map(|word| unmix64(*word)).collect();
        let mut out = vec![];
        put_nested(&mut out, Numbers::u64(&counters), depth);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let counters = take_nested(&mut reader, count, ValueType::U64, depth)?;
        reader.end("unmix column")?;
        Ok(counters.into_iter().map(mix64).collect())
    }
}
