//! Differences of one to ten bytes, without fixed overhead: the best form for few numbers.

use tacho_model::ValueType;

use super::{Codec, Look};
use crate::Error;
use crate::bytes::{Reader, put_varint, unzigzag, varint_bytes, zigzag};

pub(super) struct Varint;

/// Maximum number of values. For more, other codecs are at most a few bytes larger, and decode faster.
const COUNT_MAX: usize = 4_096;

/// Differences (mod 2^64) from the previous number, as zigzag. The first number is compared with 0.
fn differences(words: &[u64]) -> impl Iterator<Item = u64> {
    let mut before = 0;
    words
        .iter()
        .map(move |word| zigzag(word.wrapping_sub(std::mem::replace(&mut before, *word)).cast_signed()))
}

/// Size of `words` in this form, bytes. A smaller size means that the numbers are more ordered.
pub(crate) fn cost(words: impl IntoIterator<Item = u64>) -> u64 {
    let words: Vec<u64> = words.into_iter().collect();
    differences(&words).map(|n| u64::from(varint_bytes(n))).sum()
}

impl Codec for Varint {
    fn tag(&self) -> u8 {
        3
    }

    fn name(&self) -> &'static str {
        "varint"
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind == ValueType::F64 || look.numbers.words.len() > COUNT_MAX {
            return None;
        }
        let count = look.sample().count();
        let bytes: u64 = look.runs().map(|run| cost(run.iter().copied())).sum();
        Some((bytes * 8) as f64 / count as f64)
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let numbers = look.numbers;
        let mut out = Vec::with_capacity(numbers.words.len() * 2);
        for difference in differences(numbers.words) {
            put_varint(&mut out, difference);
        }
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        if bytes.len() < count {
            return Err(Error::Short { what: "varint numbers", wanted: count, left: bytes.len() });
        }
        let mut reader = Reader::new(bytes);
        let mut words = Vec::with_capacity(count);
        let mut word = 0u64;
        for _ in 0..count {
            word = word.wrapping_add(unzigzag(reader.varint("difference")?).cast_unsigned());
            words.push(word);
        }
        reader.end("varint numbers")?;
        Ok(words)
    }
}
