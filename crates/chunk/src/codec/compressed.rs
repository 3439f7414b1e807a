//! Byte compression of another codec's output. Used for numbers that repeat without arithmetic order, and on request.

use tacho_model::ValueType;

use super::{Codec, Encoded, Look, decode, plain, planes, squeeze};
use crate::bytes::{Reader, put_varint};
use crate::{Compression, Effort, Error};

pub(super) static ALL: [Compressed; 3] = [
    Compressed { tag: 16, name: "lz4", compression: Compression::Lz4 },
    Compressed { tag: 17, name: "gzip", compression: Compression::Gzip },
    Compressed { tag: 18, name: "zstd-nested", compression: Compression::Zstd },
];

/// Tag and name of the codec that is tried without a request.
pub(super) fn written() -> impl Iterator<Item = (u8, &'static str)> {
    let zstd = ALL.iter().filter(|codec| codec.compression == Compression::Zstd);
    zstd.map(|codec| (codec.tag, codec.name))
}

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
/// Bits per number above which a thorough encoder tries planes without a request.
const PAYS_ABOVE: f64 = 12.0;

/// Compresses the encoded column, or its numbers as bytes, and returns the smallest output. `None` if nothing is tried, or
/// if the output saves less than a sixteenth of `written`.
pub(super) fn compress(look: &Look<'_>, written: &Encoded) -> Option<Encoded> {
    let auto = look.encoding.compression == Compression::Auto;
    let tried = !auto
        || (look.encoding.effort == Effort::Thorough && look.bits_each(written.bytes.len()) > PAYS_ABOVE);
    if look.depth > 0 || written.bytes.len() < BYTES_MIN || !tried {
        return None;
    }
    let compression = if auto { Compression::Zstd } else { look.encoding.compression };
    let tag = ALL.iter().find(|codec| codec.compression == compression)?.tag;
    let permitted = |tag| !auto || look.encoding.codecs.has(tag);
    if !permitted(tag) || !permitted(planes::TAG) {
        return None;
    }
    let words = look.numbers.words;
    let planes = Encoded { codec: planes::TAG, bytes: planes::encode(words) };
    let plain = plain::encode(look.numbers);
    // Without a request, only the most promising form is tried.
    let inside = if auto { vec![&planes] } else { vec![&planes, &plain, written] };
    let over = |inside: &Encoded| {
        let mut bytes = vec![inside.codec];
        put_varint(&mut bytes, inside.bytes.len() as u64);
        bytes.extend_from_slice(&squeeze::compress(&inside.bytes, compression, Effort::Fast)?);
        Some(Encoded { codec: tag, bytes })
    };
    let candidates = inside.into_iter().filter_map(over);
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

    /// The ladder never chooses this codec, because it compresses encoded columns. [`compress`] chooses it.
    fn estimate(&self, _: &Look<'_>) -> Option<f64> {
        None
    }

    fn encode(&self, _: &Look<'_>) -> Option<Vec<u8>> {
        None
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let tag = reader.byte("codec of a compressed column")?;
        if ALL.iter().any(|codec| codec.tag == tag) {
            return Err(Error::value("codec of a compressed column", tag));
        }
        let most = count.saturating_mul(INSIDE_BYTES_MAX).saturating_add(INSIDE_TABLES_BYTES_MAX);
        let size = reader.size("bytes of a compressed column", most)?;
        let inside = squeeze::decompress(reader.rest(), size, self.compression)?;
        decode(tag, &inside, count, kind, depth)
    }
}
