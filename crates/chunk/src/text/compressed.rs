//! Lengths, followed by all bytes compressed together. Used for log lines, statements and names.

use tacho_model::ValueType;

use super::{Codec, Strings, Texts, put_lengths};
use crate::bytes::Reader;
use crate::codec::{squeeze, take_nested};
use crate::limits::CHUNK_TEXT_BYTES_MAX;
use crate::{Compression, Encoding, Error};

pub(super) static ZSTD: Compressed = Compressed { tag: 33, compression: Compression::Zstd };
pub(super) static LZ4: Compressed = Compressed { tag: 35, compression: Compression::Lz4 };
pub(super) static GZIP: Compressed = Compressed { tag: 36, compression: Compression::Gzip };

pub(super) struct Compressed {
    tag: u8,
    compression: Compression,
}

/// Minimum size for compression, bytes. Below it, compression saves nothing.
const BYTES_MIN: usize = 48;

impl Codec for Compressed {
    fn tag(&self) -> u8 {
        self.tag
    }

    fn name(&self) -> &'static str {
        self.compression.name()
    }

    fn encode(&self, strings: Strings<'_>, depth: u8, encoding: &Encoding) -> Option<Vec<u8>> {
        let wanted = match encoding.compression {
            Compression::Auto => Compression::Zstd,
            compression => compression,
        };
        let plain = strings.concat();
        if self.compression != wanted || plain.len() < BYTES_MIN {
            return None;
        }
        let mut out = vec![];
        put_lengths(&mut out, strings, depth, encoding);
        out.extend_from_slice(&squeeze::compress(&plain, self.compression, encoding.effort)?);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error> {
        let mut reader = Reader::new(bytes);
        let lengths = take_nested(&mut reader, count, ValueType::U64, depth)?;
        let total = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
        let size = usize::try_from(total).ok().filter(|size| *size <= CHUNK_TEXT_BYTES_MAX);
        let max = CHUNK_TEXT_BYTES_MAX as u64;
        let size = size.ok_or(Error::Limit { what: "bytes of strings", value: total, max })?;
        Texts::cut(squeeze::decompress(reader.rest(), size, self.compression)?, &lengths)
    }
}
