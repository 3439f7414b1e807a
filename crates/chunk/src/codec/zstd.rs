//! Zstandard (RFC 8878) over the plain bytes: patterns that repeat but are no arithmetic.

use tacho_model::ValueType;

use super::{Codec, Numbers};
use crate::Error;
use crate::bytes::{put_words, words};

pub(super) struct Zstd;

/// zstd's own default: beyond it time grows faster than bytes shrink.
const LEVEL: i32 = 3;
/// Fewer numbers than this never pay for a frame.
const COUNT_MIN: usize = 16;
/// Numbers tried first; the rest follows only when these become less than half as large.
const PROBE: usize = 4_096;

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

    fn encode(&self, numbers: Numbers<'_>, _: u8) -> Option<Vec<u8>> {
        if numbers.words.len() < COUNT_MIN {
            return None;
        }
        let mut plain = vec![];
        if let Some((probe, _)) = numbers.words.split_at_checked(PROBE) {
            put_words(&mut plain, probe);
            if pack(&plain)?.len() * 2 > plain.len() {
                return None;
            }
            plain.clear();
        }
        put_words(&mut plain, numbers.words);
        pack(&plain)
    }

    fn decode(&self, bytes: &[u8], count: usize, _: ValueType, _: u8) -> Result<Vec<u64>, Error> {
        words(&unpack(bytes, count.saturating_mul(8))?, count, "zstd numbers")
    }
}
