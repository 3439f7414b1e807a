//! What another codec wrote, compressed as bytes: where the numbers are no arithmetic but repeat, and where it is asked for.

use tacho_model::ValueType;

use super::{Codec, Encoded, Look, decode, plain, planes, squeeze};
use crate::bytes::{Reader, put_varint};
use crate::{Compression, Effort, Error};

/// Codecs over codecs, one for each way to compress.
pub(super) static ALL: [Compressed; 3] = [
    Compressed { tag: 16, name: "lz4", compression: Compression::Lz4 },
    Compressed { tag: 17, name: "gzip", compression: Compression::Gzip },
    Compressed { tag: 18, name: "zstd-nested", compression: Compression::Zstd },
];

pub(super) struct Compressed {
    tag: u8,
    name: &'static str,
    compression: Compression,
}

/// Bytes of what is inside, for each number, at most: no codec writes more.
const INSIDE_BYTES_MAX: usize = 16;
/// What is inside may have tables too, bytes.
const INSIDE_TABLES_BYTES_MAX: usize = 4_096;
/// Fewer bytes than this never pay.
const BYTES_MIN: usize = 64;
/// Bits a number above which planes are worth a try that nobody asked for.
const PAYS_ABOVE: f64 = 12.0;

/// Compresses a column as it was written, or its numbers as bytes, whichever is smallest; `None` when nothing saves a sixteenth.
pub(super) fn compress(look: &Look<'_>, written: &Encoded) -> Option<Encoded> {
    let auto = look.encoding.compression == Compression::Auto;
    let tried = !auto
        || (look.encoding.effort == Effort::Thorough && look.bits_each(written.bytes.len()) > PAYS_ABOVE);
    if look.depth > 0 || written.bytes.len() < BYTES_MIN || !tried {
        return None;
    }
    let compression = if auto { Compression::Zstd } else { look.encoding.compression };
    let tag = ALL.iter().find(|codec| codec.compression == compression)?.tag;
    let words = look.numbers.words;
    let planes = Encoded { codec: planes::TAG, bytes: planes::encode(words) };
    let plain = plain::encode(look.numbers);
    // What nobody asked for is only tried where it is likely to pay.
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

    /// It takes what another codec has written, not numbers: see [`compress`].
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
