//! Zstandard (RFC 8878) over the plain bytes: patterns that repeat but are no arithmetic.

use tacho_model::ValueType;

use super::{Codec, Look};
use crate::bytes::{put_words, words};
use crate::{Compression, Error};

pub(super) struct Zstd;

/// zstd's own default: beyond it time grows faster than bytes shrink.
const LEVEL: i32 = 3;
/// Fewer numbers than this never pay for a frame.
const COUNT_MIN: usize = 16;
/// Bits a number below which what is there is left alone.
const PAYS_ABOVE: f64 = 16.0;

/// One frame, or `None` when the library fails (it only does so for want of memory).
pub(crate) fn pack(plain: &[u8]) -> Option<Vec<u8>> {
    ::zstd::bulk::compress(plain, LEVEL).ok()
}

/// Exactly `size` bytes out of one frame. The caller has checked `size` against a limit.
pub(crate) fn unpack(bytes: &[u8], size: usize) -> Result<Vec<u8>, Error> {
    let damaged = |reason: String| Error::Codec { codec: "zstd", reason };
    let plain = ::zstd::bulk::decompress(bytes, size).map_err(|error| damaged(error.to_string()))?;
    if plain.len() == size { Ok(plain) } else { Err(damaged(format!("{} bytes of {size}", plain.len()))) }
}

impl Codec for Zstd {
    fn tag(&self) -> u8 {
        5
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    /// By what the sample becomes. Where numbers are small after other codecs, it is not worth the time.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        let barred = !matches!(look.encoding.compression, Compression::Auto | Compression::Zstd);
        if barred || look.numbers.words.len() < COUNT_MIN || !look.leaves(PAYS_ABOVE) {
            return None;
        }
        let sample: Vec<u64> = look.sample().collect();
        let mut plain = vec![];
        put_words(&mut plain, &sample);
        Some((pack(&plain)?.len() * 8) as f64 / sample.len() as f64)
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let mut plain = vec![];
        put_words(&mut plain, look.numbers.words);
        pack(&plain)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        words(&unpack(bytes, count.saturating_mul(8))?, count, "zstd numbers")
    }

    fn slowness(&self) -> f64 {
        1.05
    }
}
