//! How is a column of numbers written in the fewest bytes?
//!
//! One codec is one file and one line in [`LADDER`]. The encoder tries those that may help, within bounded effort, and takes the
//! smallest; where none saves a sixteenth of the plain form, the plain form stays, because it decodes fastest.
//! One more codec = its file, its line, its row in `docs/format/chunk.md`.

mod constant;
mod dictionary;
mod integer;
mod multiple;
mod pco;
mod plain;
mod step;
mod unmix;
mod varint;
mod zstd;

use tacho_model::ValueType;

use crate::Error;
use crate::bytes::{Reader, put_varint};
use crate::limits::NESTING_MAX;

pub(crate) use self::varint::cost as disorder;
pub(crate) use self::zstd::{pack, unpack};

/// A column to be written: 64-bit words and what they stand for.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<'a> {
    pub(crate) words: &'a [u64],
    pub(crate) kind: ValueType,
}

impl<'a> Numbers<'a> {
    pub(crate) const fn u64(words: &'a [u64]) -> Self {
        Self { words, kind: ValueType::U64 }
    }
}

/// A column as written.
pub(crate) struct Encoded {
    pub(crate) codec: u8,
    pub(crate) bytes: Vec<u8>,
}

/// One way to write numbers. `depth` is 0 for a column of the chunk and grows with nesting.
trait Codec: Sync {
    /// The tag on disk.
    fn tag(&self) -> u8;
    fn name(&self) -> &'static str;
    /// `None` when the numbers cannot be written this way or it is plain that it would not pay. Never called with no numbers.
    fn encode(&self, numbers: Numbers<'_>, depth: u8) -> Option<Vec<u8>>;
    /// `count` words, or an error; allocates in proportion to `count` and the bytes only.
    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error>;
    /// Whether nothing can be smaller: the search ends here.
    fn settles(&self) -> bool {
        false
    }
}

/// All codecs, in the order in which they are tried: of two of one size the earlier, simpler one is taken.
static LADDER: [&dyn Codec; 10] = [
    &constant::Constant,
    &step::Step,
    &varint::Varint,
    &integer::Integer,
    &unmix::Unmix,
    &multiple::Multiple,
    &pco::Pco,
    &dictionary::Dictionary,
    &zstd::Zstd,
    &plain::Plain,
];

fn find(tag: u8) -> Option<&'static dyn Codec> {
    LADDER.iter().find(|codec| codec.tag() == tag).copied()
}

/// Name of a codec of numbers, for people.
pub(crate) fn name(tag: u8) -> Option<&'static str> {
    find(tag).map(|codec| codec.name())
}

/// Writes a column in the smallest form that is found.
pub(crate) fn encode(numbers: Numbers<'_>, depth: u8) -> Encoded {
    let plain_bytes = numbers.words.len() * 8;
    let mut best = Encoded { codec: plain::TAG, bytes: vec![] };
    let mut best_bytes = plain_bytes - plain_bytes / 16 + 1;
    if numbers.words.is_empty() {
        return best;
    }
    for codec in LADDER {
        let Some(bytes) = codec.encode(numbers, depth) else { continue };
        if bytes.len() < best_bytes {
            best_bytes = bytes.len();
            best = Encoded { codec: codec.tag(), bytes };
            if codec.settles() {
                return best;
            }
        }
    }
    if best.codec == plain::TAG { plain::encode(numbers) } else { best }
}

/// Reads a column of `count` words. The caller has checked `count` against a limit.
pub(crate) fn decode(
    tag: u8,
    bytes: &[u8],
    count: usize,
    kind: ValueType,
    depth: u8,
) -> Result<Vec<u64>, Error> {
    let codec = find(tag).ok_or(Error::value("codec of numbers", tag))?;
    if depth > NESTING_MAX {
        return Err(Error::limit("nesting of columns", depth.into(), NESTING_MAX.into()));
    }
    if count == 0 {
        return Reader::new(bytes).end("column of no numbers").map(|()| vec![]);
    }
    let words = codec.decode(bytes, count, kind, depth)?;
    debug_assert_eq!(words.len(), count, "{} yields as many numbers as asked for", codec.name());
    Ok(words)
}

/// Writes a column inside another one: `u8 codec`, `varint bytes`, the bytes.
pub(crate) fn put_nested(out: &mut Vec<u8>, numbers: Numbers<'_>, depth: u8) {
    let encoded = encode(numbers, depth + 1);
    out.push(encoded.codec);
    put_varint(out, encoded.bytes.len() as u64);
    out.extend_from_slice(&encoded.bytes);
}

/// Reads what [`put_nested`] wrote.
pub(crate) fn take_nested(
    reader: &mut Reader<'_>,
    count: usize,
    kind: ValueType,
    depth: u8,
) -> Result<Vec<u64>, Error> {
    let tag = reader.byte("codec of a nested column")?;
    let size = reader.size("bytes of a nested column", reader.left())?;
    decode(tag, reader.take(size, "nested column")?, count, kind, depth + 1)
}
