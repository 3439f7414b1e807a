//! How is a column of byte strings encoded in the fewest bytes?
//!
//! The encoder tries all permitted codecs of a list (the ladder), and keeps the smallest output. The codecs of numbers have a
//! ladder of their own (`codec/mod.rs`).
//!
//! This file and the files of the codecs use each other: the ladder lists the codecs, and a codec implements [`Codec`]. A codec
//! with a nested column of strings encodes this column with the ladder.

mod compressed;
mod dictionary;
mod plain;
mod templates;

use crate::bytes::{Reader, put_varint};
use crate::codec::{Encoded, Numbers, encode_nested};
use crate::limits::{CHUNK_TEXT_BYTES_MAX, NESTING_MAX};
use crate::{Encoding, Error};

/// Byte strings to encode.
pub(crate) type Strings<'a> = &'a [&'a [u8]];

/// Decoded byte strings: one buffer, and the end of each string in it.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    pub(crate) fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn get(&self, at: usize) -> Option<&[u8]> {
        let start = match at.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(at)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map_while(|at| self.get(at))
    }

    /// Splits `bytes` into strings of these lengths. The lengths must cover `bytes` exactly.
    fn cut(bytes: Vec<u8>, lengths: &[u64]) -> Result<Self, Error> {
        let mut ends = Vec::with_capacity(lengths.len());
        let mut end = 0usize;
        for length in lengths {
            let next = usize::try_from(*length).ok().and_then(|length| end.checked_add(length));
            end = next
                .filter(|end| *end <= bytes.len())
                .ok_or_else(|| Error::value("length of a string", *length))?;
            ends.push(end);
        }
        if end < bytes.len() {
            return Err(Error::Trailing { what: "strings", left: bytes.len() - end });
        }
        Ok(Self { bytes, ends })
    }
}

/// A codec for byte strings; see [`crate::codec`] for the contract.
trait Codec: Sync {
    fn tag(&self) -> u8;
    fn name(&self) -> &'static str;
    /// `None` if the strings do not suit the codec, or if the codec is no longer written.
    fn encode(&self, _: Strings<'_>, _depth: u8, _: &Encoding) -> Option<Vec<u8>> {
        None
    }
    fn decode(&self, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error>;
}

static LADDER: [&dyn Codec; 5] =
    [&plain::Plain, &compressed::ZSTD, &compressed::LZ4, &compressed::GZIP, &templates::Templates];

/// Codecs that can be read but are no longer written, because they saved too little
/// (docs/adr/0012-codecs-that-earn-their-place.md).
static READ_ONLY: [&dyn Codec; 1] = [&dictionary::Dictionary];

fn all() -> impl Iterator<Item = &'static dyn Codec> {
    LADDER.into_iter().chain(READ_ONLY)
}

fn find(tag: u8) -> Option<&'static dyn Codec> {
    all().find(|codec| codec.tag() == tag)
}

/// Name of a codec of byte strings, for display.
pub(crate) fn name(tag: u8) -> Option<&'static str> {
    find(tag).map(|codec| codec.name())
}

/// Tags and names of the codecs, other than plain, that an encoder may choose with `Compression::Auto`.
pub(crate) fn written() -> impl Iterator<Item = (u8, &'static str)> {
    let written = LADDER.iter().map(|codec| (codec.tag(), codec.name()));
    written.filter(|(tag, _)| ![plain::TAG, compressed::LZ4.tag(), compressed::GZIP.tag()].contains(tag))
}

/// Encodes byte strings in the smallest form found; plain if no form saves a sixteenth of the plain form, or if the strings have
/// more than `CHUNK_TEXT_BYTES_MAX` bytes.
pub(crate) fn encode(strings: Strings<'_>, depth: u8, encoding: &Encoding) -> Encoded {
    let mut best = plain::encode(strings, depth, encoding);
    let mut best_bytes = best.bytes.len() - best.bytes.len() / 16;
    if strings.iter().map(|s| s.len()).sum::<usize>() > CHUNK_TEXT_BYTES_MAX {
        return best;
    }
    for codec in LADDER.iter().filter(|codec| encoding.codecs.has(codec.tag())) {
        if let Some(bytes) = codec.encode(strings, depth, encoding).filter(|bytes| bytes.len() < best_bytes) {
            best_bytes = bytes.len();
            best = Encoded { codec: codec.tag(), bytes };
        }
    }
    best
}

/// Decodes `count` byte strings. The caller has checked `count` against a limit.
pub(crate) fn decode(tag: u8, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error> {
    let codec = find(tag).ok_or_else(|| Error::value("codec of strings", tag))?;
    if depth > NESTING_MAX {
        return Err(Error::limit("nesting of columns", depth.into(), NESTING_MAX.into()));
    }
    codec.decode(bytes, count, depth)
}

fn put_nested(out: &mut Vec<u8>, strings: Strings<'_>, depth: u8, encoding: &Encoding) {
    let encoded = encode(strings, depth + 1, encoding);
    out.push(encoded.codec);
    put_varint(out, encoded.bytes.len() as u64);
    out.extend_from_slice(&encoded.bytes);
}

fn take_nested(reader: &mut Reader<'_>, count: usize, depth: u8) -> Result<Texts, Error> {
    let tag = reader.byte("codec of nested strings")?;
    let size = reader.size("bytes of nested strings", reader.left())?;
    decode(tag, reader.take(size, "nested strings")?, count, depth + 1)
}

/// Writes lengths as a nested column, for codecs that store all strings contiguously.
fn put_lengths(out: &mut Vec<u8>, strings: Strings<'_>, depth: u8, encoding: &Encoding) {
    let lengths: Vec<u64> = strings.iter().map(|string| string.len() as u64).collect();
    encode_nested(out, Numbers::u64(&lengths), depth, encoding);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{AttributeData, Compression, Effort};

    fn strings() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let like = |pattern: &'static str| prop::collection::vec(pattern.prop_map(String::into_bytes), 0..60);
        prop_oneof![
            like("(GET|POST) /cart/[0-9]{1,3}"),
            like(".{0,20}"),
            like("[ab]"),
            templates(),
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..30),
        ]
    }

    /// Lines of a few templates, with every kind of slot.
    fn templates() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let number = prop_oneof![0u64..20, 0u64..2_000, any::<u64>()];
        let line = (0..6, number, any::<u128>()).prop_map(|(form, number, id)| {
            match form {
                0 => format!("{number} ms"),
                1 => format!("at 03:{:02}:{:02}.{:09}", number % 60, number / 7 % 60, number % 1_000_000_000),
                2 => format!("trace={id:032x} span={number:016x} level=info"),
                3 => AttributeData::Id([number, number / 3]).to_string(),
                4 => format!("user {} in zone x{}y{}z{}", number % 3, number % 2, number % 5, number % 7),
                _ => format!("a\u{11}b {number}"),
            }
            .into_bytes()
        });
        prop::collection::vec(line, 0..300)
    }

    proptest! {
        #[test]
        fn strings_round_trip_with_every_compression(strings in strings()) {
            let borrowed: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
            for compression in Compression::ALL {
                let encoding = Encoding { compression, effort: Effort::Fast, ..Encoding::default() };
                let encoded = encode(&borrowed, 0, &encoding);
                let read = decode(encoded.codec, &encoded.bytes, strings.len(), 0).unwrap();
                prop_assert!(read.iter().eq(borrowed.iter().copied()), "{:?}", name(encoded.codec));
            }
        }

        #[test]
        fn no_codec_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0usize..600) {
            for codec in all() {
                if let Ok(texts) = codec.decode(&bytes, count, 0) {
                    prop_assert_eq!(texts.iter().count(), count, "{}", codec.name());
                }
            }
        }
    }

    #[test]
    fn the_requested_compression_is_used() {
        // There are too few lines for templates.
        let line: Vec<String> = (0..30).map(|n| format!("GET /cart/{n} took {} ms", n * 7 % 90)).collect();
        let lines: Vec<&[u8]> = line.iter().map(String::as_bytes).collect();
        let chosen =
            |compression| name(encode(&lines, 0, &Encoding { compression, ..Encoding::default() }).codec);
        assert_eq!(chosen(Compression::Auto), Some("zstd"));
        assert_eq!(chosen(Compression::None), Some("plain"));
        assert_eq!(chosen(Compression::Lz4), Some("lz4"));
        assert_eq!(chosen(Compression::Gzip), Some("gzip"));
    }
}
