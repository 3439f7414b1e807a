//! Codec for floats that share most bits with the previous float. Stores the differing bits, shifted right by the number
//! of low bits that no number of the column uses.
//!
//! The idea is from Gorilla (Pelkonen et al., VLDB 2015) and Chimp (Liakos, Papakonstantinopoulou, Kotidis, VLDB 2022). Unlike
//! there, the differing bits are a nested column, for which the best codec is chosen.

use tacho_model::ValueType;

use super::{Codec, Look, Numbers, Part, take_nested_part};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Xor;

/// Bits per number. If an earlier estimate is at most this, the floats are probably integers or decimals, for which other codecs
/// take less space. With `Effort::Fast`, this codec is then not tried.
const PAYS_ABOVE: f64 = 6.0;

/// Bits in which each word differs from the previous one. The first word is compared with 0.
fn changes(words: &[u64]) -> Vec<u64> {
    let mut before = 0;
    words.iter().map(|word| *word ^ std::mem::replace(&mut before, *word)).collect()
}

impl Codec for Xor {
    fn tag(&self) -> u8 {
        13
    }

    fn name(&self) -> &'static str {
        "xor"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind != ValueType::F64 || look.depth > 1 || !look.leaves(PAYS_ABOVE) {
            return None;
        }
        let shift = look.sample().fold(0, |all, word| all | word).trailing_zeros() & 63;
        let run = |run: &[u64]| changes(run).into_iter().skip(1).map(|change| change >> shift).collect();
        look.bits_of(look.runs().map(run).collect())
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let mut changes = changes(look.numbers.words);
        let shift = changes.iter().fold(0, |all, change| all | change).trailing_zeros() & 63;
        changes.iter_mut().for_each(|change| *change >>= shift);
        let mut out = vec![shift.to_le_bytes()[0]];
        look.put_nested(&mut out, Numbers::u64(&changes));
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        self.decode_part(bytes, &Part::whole(count), kind, depth)
    }

    fn decode_part(&self, bytes: &[u8], part: &Part, _: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let shift = reader.byte("shift of differing bits")?;
        if shift > 63 {
            return Err(Error::value("shift of differing bits", shift));
        }
        let mut words = take_nested_part(&mut reader, &part.until_end(), ValueType::U64, depth)?;
        reader.end("xor column")?;
        let mut word = 0;
        for change in &mut words {
            word ^= *change << shift;
            *change = word;
        }
        words.drain(..part.places.start.min(words.len()));
        Ok(words)
    }
}
