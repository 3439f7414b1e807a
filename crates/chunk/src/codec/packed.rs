//! Differences from the previous number, in blocks of 128. A block stores its lowest difference, and the distance of each
//! difference from the lowest one in as many bits as the largest distance needs (frame of reference: Goldstein,
//! Ramakrishnan, Shaft, ICDE 1998). Decoding is faster than with most other codecs.

use tacho_model::ValueType;

use super::{Codec, Look, Part};
use crate::Error;
use crate::bits::{bytes_of, put_bits, take_bits, width_of};
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

pub(super) struct Packed;

/// Differences per block.
const BLOCK: usize = 128;
/// Approximate size of the data before the numbers of a block, bytes.
const BLOCK_BYTES: usize = 3;

/// The lowest difference, and the bit width of the largest distance from it.
fn frame(steps: &[i64]) -> (i64, u32) {
    let (low, high) = steps.iter().fold((i64::MAX, i64::MIN), |(low, high), s| (low.min(*s), high.max(*s)));
    (low, width_of(high.wrapping_sub(low).cast_unsigned()))
}

/// Differences (mod 2^64) from the previous number. The first word has no difference.
fn steps(words: &[u64]) -> Vec<i64> {
    words.iter().zip(words.iter().skip(1)).map(|(a, b)| b.wrapping_sub(*a).cast_signed()).collect()
}

impl Codec for Packed {
    fn tag(&self) -> u8 {
        11
    }

    fn name(&self) -> &'static str {
        "packed"
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind == ValueType::F64 || look.numbers.words.len() < 3 {
            return None;
        }
        let blocks =
            |run: &[u64]| steps(run).chunks(BLOCK).map(|b| b.len() * frame(b).1 as usize).sum::<usize>();
        let (bits, count) =
            look.runs().fold((0, 0), |(bits, count), run| (bits + blocks(run), count + run.len()));
        Some(bits as f64 / count as f64 + (BLOCK_BYTES * 8) as f64 / BLOCK as f64 + look.bits_each(3))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let words = look.numbers.words;
        let mut out = Vec::with_capacity(words.len());
        put_varint(&mut out, zigzag(words.first()?.cast_signed()));
        for block in steps(words).chunks(BLOCK) {
            let (low, width) = frame(block);
            out.push(width.to_le_bytes()[0]);
            put_varint(&mut out, zigzag(low));
            let above: Vec<u64> = block.iter().map(|step| step.wrapping_sub(low).cast_unsigned()).collect();
            put_bits(&mut out, &above, width);
        }
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        self.decode_part(bytes, &Part::whole(count), kind, depth)
    }

    /// Reads whole blocks, and stops after the last block of the part.
    fn decode_part(&self, bytes: &[u8], part: &Part, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        let Part { count, places } = part;
        let mut reader = Reader::new(bytes);
        let steps = places.end.saturating_sub(1).next_multiple_of(BLOCK);
        let mut words = vec![0; steps.saturating_add(1).min(*count)];
        let mut word = unzigzag(reader.varint("first packed number")?).cast_unsigned();
        let Some((first, rest)) = words.split_first_mut() else { return Ok(words) };
        *first = word;
        for block in rest.chunks_mut(BLOCK) {
            let width = reader.byte("width of a block")?;
            if width > 64 {
                return Err(Error::value("width of a block", width));
            }
            let low = unzigzag(reader.varint("lowest of a block")?).cast_unsigned();
            let bytes = reader.take(bytes_of(block.len(), width.into()), "packed numbers")?;
            take_bits(bytes, width.into(), block);
            for step in block {
                word = word.wrapping_add(low).wrapping_add(*step);
                *step = word;
            }
        }
        if words.len() == *count {
            reader.end("packed numbers")?;
        }
        words.truncate(places.end);
        words.drain(..places.start.min(words.len()));
        Ok(words)
    }

    fn slowness(&self) -> f64 {
        0.96
    }
}
