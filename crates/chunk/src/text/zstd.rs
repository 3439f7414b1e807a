//! Lengths, then all bytes as one Zstandard frame.

use tacho_model::ValueType;

use super::{Codec, Strings, Texts, put_lengths};
use crate::bytes::Reader;
use crate::codec::{pack, take_nested, unpack};
use crate::limits::CHUNK_TEXT_BYTES_MAX;
use crate::{Compression, Encoding, Error};

pub(super) struct Zstd;

/// Fewer bytes than this never pay for a frame.
const BYTES_MIN: usize = 48;

impl Codec for Zstd {
    fn tag(&self) -> u8 {
        33
    }

    fn name(&self) -> &'static str {
        "zstd"
    }

    fn encode(&self, strings: Strings<'_>, depth: u8, encoding: &Encoding) -> Option<Vec<u8>> {
        let plain = strings.concat();
        let barred = !matches!(encoding.compression, Compression::Auto | Compression::Zstd);
        if barred || plain.len() < BYTES_MIN {
            return None;
        }
        let mut out = vec![];
        put_lengths(&mut out, strings, depth, encoding);
        out.extend_from_slice(&pack(&plain)?);
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error> {
        let mut reader = Reader::new(bytes);
        let lengths = take_nested(&mut reader, count, ValueType::U64, depth)?;
        let total = lengths.iter().fold(0u64, |sum, length| sum.saturating_add(*length));
        let size = usize::try_from(total).ok().filter(|size| *size <= CHUNK_TEXT_BYTES_MAX);
        let max = CHUNK_TEXT_BYTES_MAX as u64;
        let size = size.ok_or(Error::Limit { what: "bytes of strings", value: total, max })?;
        Texts::cut(unpack(reader.rest(), size)?, &lengths)
    }
}
