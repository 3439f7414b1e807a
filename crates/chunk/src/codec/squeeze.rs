//! How are bytes compressed, and how are they decompressed within a size limit?

use std::cell::RefCell;
use std::io::{Read, Write};

use ::zstd::bulk::{Compressor, Decompressor};

use crate::{Compression, Effort, Error};

/// The default level of zstd. Above it, the time increases faster than the size decreases.
const ZSTD_LEVEL: i32 = 3;
/// Takes seven times as long as the default level, and makes texts a sixth smaller. Higher levels save another sixth,
/// but take thirty times as long as the default level.
const ZSTD_LEVEL_THOROUGH: i32 = 12;

thread_local! {
    /// Compressors are reused, because creating one costs as much as compressing a short column.
    static COMPRESSORS: RefCell<[Option<Compressor<'static>>; 2]> = const { RefCell::new([None, None]) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Writes one LZ4 block, one Zstandard frame (also for [`Compression::Auto`]) or one gzip member. `None` for
/// [`Compression::None`], or if the library lacks memory.
pub(crate) fn compress(plain: &[u8], compression: Compression, effort: Effort) -> Option<Vec<u8>> {
    match compression {
        Compression::None => None,
        Compression::Lz4 => Some(lz4_flex::block::compress(plain)),
        Compression::Auto | Compression::Zstd => COMPRESSORS.with_borrow_mut(|[fast, thorough]| {
            let (kept, level) = match effort {
                Effort::Fast => (fast, ZSTD_LEVEL),
                Effort::Thorough => (thorough, ZSTD_LEVEL_THOROUGH),
            };
            if kept.is_none() {
                *kept = Compressor::new(level).ok();
            }
            kept.as_mut()?.compress(plain).ok()
        }),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
            encoder.write_all(plain).ok()?;
            encoder.finish().ok()
        }
    }
}

/// Decompresses to exactly `size` bytes. The caller has checked `size` against a limit.
pub(crate) fn decompress(bytes: &[u8], size: usize, compression: Compression) -> Result<Vec<u8>, Error> {
    let codec = if compression == Compression::Auto { Compression::Zstd.name() } else { compression.name() };
    let damaged = |reason: String| Error::Codec { codec, reason };
    let plain = match compression {
        Compression::None => bytes.to_vec(),
        Compression::Lz4 => {
            lz4_flex::block::decompress(bytes, size).map_err(|error| damaged(error.to_string()))?
        }
        Compression::Auto | Compression::Zstd => DECOMPRESSOR.with_borrow_mut(|kept| {
            let decompressor = match kept {
                Some(decompressor) => decompressor,
                None => kept.insert(Decompressor::new().map_err(|error| damaged(error.to_string()))?),
            };
            decompressor.decompress(bytes, size).map_err(|error| damaged(error.to_string()))
        })?,
        Compression::Gzip => {
            let mut plain = Vec::with_capacity(size);
            let mut decoder = flate2::read::GzDecoder::new(bytes).take(size as u64 + 1);
            decoder.read_to_end(&mut plain).map_err(|error| damaged(error.to_string()))?;
            plain
        }
    };
    if plain.len() == size { Ok(plain) } else { Err(damaged(format!("{} bytes of {size}", plain.len()))) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_round_trip(bytes in prop::collection::vec(0u8..4, 0..2_000)) {
            for compression in Compression::ALL {
                let Some(packed) = compress(&bytes, compression, Effort::Thorough) else { continue };
                prop_assert_eq!(decompress(&packed, bytes.len(), compression), Ok(bytes.clone()));
                prop_assert!(decompress(&packed, bytes.len() + 1, compression).is_err());
                if let Some(less) = bytes.len().checked_sub(1) {
                    prop_assert!(decompress(&packed, less, compression).is_err());
                }
            }
        }

        #[test]
        fn damage_is_an_error_or_bytes_of_that_size(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 0usize..4_000) {
            for compression in Compression::ALL {
                if let Ok(plain) = decompress(&bytes, size, compression) {
                    prop_assert_eq!(plain.len(), size);
                }
            }
        }
    }
}
