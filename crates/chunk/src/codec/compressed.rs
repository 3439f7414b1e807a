//! Byte compression of another codec's output, on request.

use tacho_model::ValueType;

use super::{Codec, Encoded, Look, decode, plain, squeeze};
use crate::bytes::{Reader, put_varint};
use crate::{Compression, Effort, Error};

/// The codecs that are written if lz4 or gzip is requested. For `Compression::Zstd`, `zstd` of [`super::LADDER`] is written.
pub(super) static WRITTEN: [Compressed; 2] = [
    Compressed { tag: 16, name: "lz4", compression: Compression::Lz4 },
    Compressed { tag: 17, name: "gzip", compression: Compression::Gzip },
];
/// Read only ([`super::READ_ONLY`]).
pub(super) static ZSTD_NESTED: Compressed =
    Compressed { tag: 18, name: "zstd-nested", compression: Compression::Zstd };

pub(super) struct Compressed {
    tag: u8,
    name: &'static str,
    compression: Compression,
}

/// Limit on the uncompressed bytes per number. No codec writes more.
const INSIDE_BYTES_MAX: usize = 16;
/// Allowance for tables in the uncompressed bytes.
const INSIDE_TABLES_BYTES_MAX: usize = 4_096;
/// Minimum size for compression, bytes. Below it, compression saves nothing.
const BYTES_MIN: usize = 64;
/// If a compression is requested, compresses both the encoded column `written` and the plain form of the column, and returns the
/// smaller output. `None` if no compression is requested, if the column is nested or short, or if the output saves less than a
/// sixteenth of `written`.
pub(super) fn compress(look: &Look<'_>, written: &Encoded) -> Option<Encoded> {
    let codec = WRITTEN.iter().find(|codec| codec.compression == look.encoding.compression)?;
    if look.depth > 0 || written.bytes.len() < BYTES_MIN {
        return None;
    }
    let over = |inside: &Encoded| {
        let mut bytes = vec![inside.codec];
        put_varint(&mut bytes, inside.bytes.len() as u64);
        bytes.extend_from_slice(&squeeze::compress(&inside.bytes, codec.compression, Effort::Fast)?);
        Some(Encoded { codec: codec.tag, bytes })
    };
    let plain = plain::encode(look.numbers);
    let candidates = [&plain, written].into_iter().filter_map(over);
    let smallest = candidates.min_by_key(|encoded| encoded.bytes.len())?;
    (smallest.bytes.len() <= written.bytes.len() - written.bytes.len() / 16).then_some(smallest)
}

impl Codec for Compressed {
    fn tag(&self) -> u8 {
        self.tag
    }

    fn name(&self) -> &'static str {
        self.name
    }

    /// Never a candidate, because this codec compresses columns that another codec has encoded. [`compress`] chooses it.
    fn estimate(&self, _: &Look<'_>) -> Option<f64> {
        None
    }

    fn encode(&self, _: &Look<'_>) -> Option<Vec<u8>> {
        None
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let tag = reader.byte("codec of a compressed column")?;
        if WRITTEN.iter().chain([&ZSTD_NESTED]).any(|codec| codec.tag == tag) {
            return Err(Error::value("codec of a compressed column", tag));
        }
        let most = count.saturating_mul(INSIDE_BYTES_MAX).saturating_add(INSIDE_TABLES_BYTES_MAX);
        let size = reader.size("bytes of a compressed column", most)?;
        let inside = squeeze::decompress(reader.rest(), size, self.compression)?;
        decode(tag, &inside, count, kind, depth)
    }
}
