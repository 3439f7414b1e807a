//! Zstandard (RFC 8878) over the plain bytes: for repeating patterns without arithmetic order.

use tacho_model::ValueType;

use super::{Codec, Look, squeeze};
use crate::bytes::{put_words, words};
use crate::{Compression, Effort, Error};

pub(super) struct Zstd;

/// Minimum number of values. For fewer values, a frame takes more bytes than compression saves.
const COUNT_MIN: usize = 16;
/// Bits per number. With `Effort::Fast`, the codec is not tried if an earlier estimate is at most this.
const PAYS_ABOVE: f64 = 16.0;

impl Codec for Zstd {
    fn tag(&self) -> u8 {
        5
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    /// Estimated by compressing the sample.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        let barred = !matches!(look.encoding.compression, Compression::Auto | Compression::Zstd);
        if barred || look.numbers.words.len() < COUNT_MIN || !look.leaves(PAYS_ABOVE) {
            return None;
        }
        let sample: Vec<u64> = look.sample().collect();
        let mut plain = vec![];
        put_words(&mut plain, &sample);
        Some(
            (squeeze::compress(&plain, Compression::Zstd, Effort::Fast)?.len() * 8) as f64
                / sample.len() as f64,
        )
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let mut plain = vec![];
        put_words(&mut plain, look.numbers.words);
        squeeze::compress(&plain, Compression::Zstd, Effort::Fast)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        words(&squeeze::decompress(bytes, count.saturating_mul(8), Compression::Zstd)?, count, "zstd numbers")
    }

    fn slowness(&self) -> f64 {
        1.05
    }
}
