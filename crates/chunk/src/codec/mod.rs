//! How is a column of numbers encoded in the fewest bytes?
//!
//! Codecs estimate their output size, most of them from a sample (`look.rs`). One or several codecs with the best estimates
//! encode the column, depending on the effort, and the smallest output is kept. If no output saves a sixteenth of the plain
//! form, the plain form is kept, because it decodes fastest. Finally, a requested compression (`compressed.rs`) may compress
//! the output. A new codec needs a file, a line in [`LADDER`], a row in `docs/format/chunk.md`, and a golden file
//! (`crates/chunk/examples/golden_chunk.rs`).
//!
//! This file and the files of the codecs use each other: the ladder lists the codecs, and a codec implements [`Codec`] and
//! encodes nested columns with the ladder.

mod ans;
mod compressed;
mod constant;
pub(crate) mod decimal;
mod dictionary;
mod except;
pub(crate) mod integer;
pub(crate) mod lines;
mod look;
mod multiple;
mod ordered;
mod packed;
mod pco;
mod plain;
mod planes;
pub(crate) mod squeeze;
mod step;
mod unmix;
mod varint;
mod xor;
mod zstd;

use std::ops::Range;

use tacho_model::ValueType;

use crate::bytes::{Reader, put_varint};
use crate::limits::NESTING_MAX;
use crate::{Effort, Encoding, Error};

use self::look::Look;

pub(crate) use self::plain::TAG as PLAIN;
pub(crate) use self::varint::cost as disorder;

/// A column to encode: 64-bit words and their type.
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

/// The requested numbers of a column.
#[derive(Debug)]
pub(crate) struct Part {
    /// Number of values in the whole column.
    pub(crate) count: usize,
    /// The requested range, within `count`.
    pub(crate) places: Range<usize>,
}

impl Part {
    pub(crate) const fn whole(count: usize) -> Self {
        Self { count, places: 0..count }
    }

    /// The same part, and all numbers before it.
    const fn until_end(&self) -> Self {
        Self { count: self.count, places: 0..self.places.end }
    }
}

pub(crate) struct Encoded {
    pub(crate) codec: u8,
    pub(crate) bytes: Vec<u8>,
}

trait Codec: Sync {
    /// The tag on disk.
    fn tag(&self) -> u8;
    fn name(&self) -> &'static str;
    /// Estimated bits per number. 0 if no other codec can be better. `None` if the codec cannot encode the column, or is
    /// unlikely to be the best choice. Never called with an empty column. A codec of [`READ_ONLY`] has no estimate.
    fn estimate(&self, _: &Look<'_>) -> Option<f64> {
        None
    }
    /// `None` if the codec cannot encode the column, for example because of numbers outside of the sample.
    fn encode(&self, _: &Look<'_>) -> Option<Vec<u8>> {
        None
    }
    /// Decodes `count` words. Allocates memory only in proportion to `count` and to the number of bytes.
    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error>;
    /// Decodes a part of the words. Damage outside of the part may not be detected.
    fn decode_part(&self, bytes: &[u8], part: &Part, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut words = self.decode(bytes, part.count, kind, depth)?;
        words.truncate(part.places.end);
        words.drain(..part.places.start.min(words.len()));
        Ok(words)
    }
    /// Whether the codec searches for patterns. An estimate cannot predict patterns, so only a trial shows the output size.
    fn searches(&self) -> bool {
        false
    }
    /// The size of this codec's output is multiplied by this factor before it is compared with the sizes of other codecs. A slow
    /// codec has a factor above 1, a fast codec a factor below 1.
    fn slowness(&self) -> f64 {
        1.0
    }
}

/// The codecs of numbers that an encoder may choose. Of codecs with equal estimates, the earlier and simpler one is preferred.
static LADDER: [&dyn Codec; 16] = [
    &constant::Constant,
    &step::Step,
    &varint::Varint,
    &packed::Packed,
    &decimal::Decimal,
    &except::Except,
    &unmix::Unmix,
    &multiple::Multiple,
    &lines::Lines,
    &ans::Ans,
    &xor::Xor,
    &ordered::Ordered,
    &dictionary::Dictionary,
    &pco::Pco,
    &zstd::Zstd,
    &plain::Plain,
];

/// Codecs that can be read but are no longer written, because they saved too little
/// (docs/adr/0012-codecs-that-earn-their-place.md), each with the codec that is written instead.
static READ_ONLY: [(&dyn Codec, &dyn Codec); 3] = [
    (&integer::Integer, &decimal::Decimal),
    (&planes::Planes, &zstd::Zstd),
    (&compressed::ZSTD_NESTED, &zstd::Zstd),
];

/// With [`Effort::Thorough`]: number of candidates that encode a column of the chunk before the smallest output is kept.
const CANDIDATES_THOROUGH: usize = 3;
/// The same for a nested column. It is lower because the outer codec is itself one of several candidates.
const CANDIDATES_NESTED: usize = 2;
/// The same for a short column with [`Effort::Fast`]. Encoding a short column is cheap.
const CANDIDATES_SHORT: usize = 3;
/// Maximum number of values of a short column.
const SHORT: usize = 512;
/// A candidate is usually skipped if its estimate is above the best one times this factor, plus 8 bytes for the column.
const PROMISE_MAX: f64 = 1.5;

/// All codecs of the format: those of [`LADDER`], those that compress the output of others, and those of [`READ_ONLY`].
fn all() -> impl Iterator<Item = &'static dyn Codec> {
    let compressed = compressed::WRITTEN.iter().map(|codec| codec as &dyn Codec);
    LADDER.into_iter().chain(compressed).chain(READ_ONLY.into_iter().map(|(codec, _)| codec))
}

fn find(tag: u8) -> Option<&'static dyn Codec> {
    all().find(|codec| codec.tag() == tag)
}

/// Name of a codec of numbers, for display.
pub(crate) fn name(tag: u8) -> Option<&'static str> {
    find(tag).map(|codec| codec.name())
}

/// The tag of a codec of [`LADDER`]. Settings may still name a codec of [`READ_ONLY`]; this returns the tag of the codec that is
/// written instead.
pub(crate) fn tag(name: &str) -> Option<u8> {
    let ladder = LADDER.into_iter().map(|codec| (codec.name(), codec));
    let old = READ_ONLY.into_iter().map(|(codec, instead)| (codec.name(), instead));
    ladder.chain(old).find(|(known, _)| *known == name).map(|(_, codec)| codec.tag())
}

/// Tags and names of the codecs, other than plain, that an encoder may choose if no compression is requested.
pub(crate) fn written() -> impl Iterator<Item = (u8, &'static str)> {
    let written = LADDER.into_iter().map(|codec| (codec.tag(), codec.name()));
    written.filter(|(tag, _)| *tag != PLAIN)
}

/// Names of all codecs of numbers that an encoder may choose, in the order of their tags.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    (0..=u8::MAX).filter(|tag| LADDER.iter().any(|codec| codec.tag() == *tag)).filter_map(name)
}

/// Encodes a column in the smallest form found with the permitted effort, codecs and compression.
pub(crate) fn encode(numbers: Numbers<'_>, depth: u8, encoding: &Encoding) -> Encoded {
    let plain_bytes = numbers.words.len() * 8;
    if numbers.words.is_empty() {
        return Encoded { codec: plain::TAG, bytes: vec![] };
    }
    let look = Look::new(numbers, depth, encoding);
    let candidates = candidates(&look);
    let most = candidates.first().map_or(0.0, |(bits, _)| bits * PROMISE_MAX + look.bits_each(8));
    let mut wanted = match encoding.effort {
        Effort::Thorough if depth == 0 => CANDIDATES_THOROUGH,
        Effort::Thorough => CANDIDATES_NESTED,
        Effort::Fast if numbers.words.len() <= SHORT => CANDIDATES_SHORT,
        Effort::Fast => 1,
    };
    let mut best: Option<(f64, Encoded)> = None;
    for (promised, codec) in candidates {
        // While no output is kept, no candidate is excluded: the column may differ from its sample, and then the best candidates
        // may fail to encode it.
        let is_excluded = wanted == 0 || promised > most;
        if is_excluded && best.as_ref().is_some_and(|(bytes, _)| !look.is_missed(codec, *bytes)) {
            continue;
        }
        wanted = wanted.saturating_sub(1);
        let Some(bytes) = codec.encode(&look) else { continue };
        let score = score(bytes.len(), codec);
        let smaller = best.as_ref().is_none_or(|(least, _)| score < *least);
        if smaller && bytes.len() <= plain_bytes - plain_bytes / 16 {
            best = Some((score, Encoded { codec: codec.tag(), bytes }));
        }
    }
    let best = best.map_or_else(|| plain::encode(numbers), |(_, encoded)| encoded);
    compressed::compress(&look, &best).unwrap_or(best)
}

#[expect(clippy::cast_precision_loss, reason = "a measure of preference")]
fn score(bytes: usize, codec: &dyn Codec) -> f64 {
    bytes as f64 * codec.slowness()
}

/// The permitted codecs that have an estimate, best first, with the estimate in bits per number multiplied by the slowness.
/// Only one codec if no other codec can be better.
fn candidates(look: &Look<'_>) -> Vec<(f64, &'static dyn Codec)> {
    let mut candidates: Vec<(f64, &'static dyn Codec)> = vec![];
    for codec in LADDER.iter().filter(|codec| look.encoding.codecs.has(codec.tag())) {
        match codec.estimate(look) {
            Some(bits) if bits <= 0.0 => return vec![(bits, *codec)],
            Some(bits) => {
                look.promise(bits);
                candidates.push((bits * codec.slowness(), *codec));
            }
            None => {}
        }
    }
    candidates.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    candidates
}

/// Decodes a column of `count` words. The caller has checked `count` against a limit.
pub(crate) fn decode(
    tag: u8,
    bytes: &[u8],
    count: usize,
    kind: ValueType,
    depth: u8,
) -> Result<Vec<u64>, Error> {
    decode_part(tag, bytes, &Part::whole(count), kind, depth)
}

pub(crate) fn decode_part(
    tag: u8,
    bytes: &[u8],
    part: &Part,
    kind: ValueType,
    depth: u8,
) -> Result<Vec<u64>, Error> {
    let codec = find(tag).ok_or_else(|| Error::value("codec of numbers", tag))?;
    if depth > NESTING_MAX {
        return Err(Error::limit("nesting of columns", depth.into(), NESTING_MAX.into()));
    }
    if part.count == 0 {
        return Reader::new(bytes).end("column of no numbers").map(|()| vec![]);
    }
    let words = codec.decode_part(bytes, part, kind, depth)?;
    debug_assert_eq!(
        words.len(),
        part.places.len(),
        "{} must yield the requested number of values",
        codec.name()
    );
    Ok(words)
}

/// Encodes a column that is nested in a column of this depth: `u8 codec`, `varint bytes`, the bytes.
pub(crate) fn encode_nested(out: &mut Vec<u8>, numbers: Numbers<'_>, depth: u8, encoding: &Encoding) {
    let encoded = encode(numbers, depth + 1, encoding);
    out.push(encoded.codec);
    put_varint(out, encoded.bytes.len() as u64);
    out.extend_from_slice(&encoded.bytes);
}

/// Decodes the output of [`encode_nested`].
pub(crate) fn take_nested(
    reader: &mut Reader<'_>,
    count: usize,
    kind: ValueType,
    depth: u8,
) -> Result<Vec<u64>, Error> {
    take_nested_part(reader, &Part::whole(count), kind, depth)
}

pub(crate) fn take_nested_part(
    reader: &mut Reader<'_>,
    part: &Part,
    kind: ValueType,
    depth: u8,
) -> Result<Vec<u64>, Error> {
    let tag = reader.byte("codec of a nested column")?;
    let size = reader.size("bytes of a nested column", reader.left())?;
    decode_part(tag, reader.take(size, "nested column")?, part, kind, depth + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CodecSet, Compression};

    const KINDS: [ValueType; 3] = [ValueType::F64, ValueType::I64, ValueType::U64];

    fn column() -> impl Strategy<Value = Vec<u64>> {
        let len = 1usize..300;
        prop_oneof![
            prop::collection::vec(any::<u64>(), len.clone()),
            prop::collection::vec(0u64..5, len.clone()),
            prop::collection::vec((0i64..1 << 40).prop_map(|n| (n as f64).to_bits()), len.clone()),
            (any::<u64>(), any::<u64>(), len.clone()).prop_map(|(low, m, len)| (0..len as u64)
                .map(|n| low.wrapping_add((n * n % 97).wrapping_mul(m)))
                .collect()),
            (any::<u64>(), len.clone()).prop_map(|(word, len)| vec![word; len]),
            prop::collection::vec(
                (0u64..400).prop_map(|n| if n < 10 { holes(n) } else { (n as f64 / 10.0).to_bits() }),
                len.clone()
            ),
            prop::collection::vec(0u64..64, len)
                .prop_map(|widths| widths.iter().map(|w| tacho_model::mix64(*w) >> w).collect()),
        ]
    }

    /// A NaN, an infinity, -0.0, or a float next to one of these.
    fn holes(n: u64) -> u64 {
        [f64::NAN, f64::INFINITY, -0.0, f64::NEG_INFINITY][n as usize % 4].to_bits() + n / 4
    }

    proptest! {
        #[test]
        fn every_codec_decodes_what_it_encoded(words in column()) {
            for kind in KINDS {
                for codec in LADDER {
                    for depth in 0..=NESTING_MAX {
                        let encoding = if depth == 1 { Encoding::default() } else { Encoding::thorough() };
                        let look = Look::new(Numbers { words: &words, kind }, depth, &encoding);
                        let Some(bytes) = codec.estimate(&look).and_then(|_| codec.encode(&look)) else { continue };
                        let read = codec.decode(&bytes, words.len(), kind, depth);
                        prop_assert_eq!(read.as_ref(), Ok(&words), "{} {:?}", codec.name(), kind);
                    }
                }
            }
        }

        #[test]
        fn a_part_equals_the_same_part_of_the_whole(
            step in 1u64..9,
            width in 0u32..40,
            count in 1usize..9_000,
            part in any::<[prop::sample::Index; 2]>(),
            seed in any::<u64>(),
        ) {
            let noise = |n: u64| tacho_model::mix64(seed ^ n) & ((1 << width) - 1);
            let numbers = || (0..count as u64).map(|n| n * step * 100 + noise(n));
            let (from, to) = (part[0].index(count + 1), part[1].index(count + 1));
            let part = from.min(to)..from.max(to);
            for kind in KINDS {
                let words: Vec<u64> = match kind {
                    ValueType::F64 => numbers().map(|n| (n as f64 / 100.0).to_bits()).collect(),
                    ValueType::I64 | ValueType::U64 => numbers().collect(),
                };
                let look = Encoding::default();
                let look = Look::new(Numbers { words: &words, kind }, 0, &look);
                for codec in LADDER {
                    let Some(bytes) = codec.estimate(&look).and_then(|_| codec.encode(&look)) else { continue };
                    let read = codec.decode_part(&bytes, &Part { count, places: part.clone() }, kind, 0).unwrap();
                    prop_assert_eq!(&read, &words[part.clone()], "{} {:?} {:?}", codec.name(), kind, &part);
                }
            }
        }

        #[test]
        fn every_column_round_trips_with_every_encoding(words in column()) {
            for kind in KINDS {
                for compression in Compression::ALL {
                    for effort in [Effort::Fast, Effort::Thorough] {
                        let encoding = Encoding { effort, compression, ..Encoding::default() };
                        let encoded = encode(Numbers { words: &words, kind }, 0, &encoding);
                        let read = decode(encoded.codec, &encoded.bytes, words.len(), kind, 0);
                        prop_assert_eq!(read.as_ref(), Ok(&words), "{:?} {:?}", name(encoded.codec), kind);
                    }
                }
            }
        }

        #[test]
        fn damaged_columns_are_errors_or_numbers(
            words in column(),
            kind in prop::sample::select(KINDS.to_vec()),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            for codec in LADDER {
                let encoding = Encoding::thorough();
                let look = Look::new(Numbers { words: &words, kind }, 0, &encoding);
                let Some(mut bytes) = codec.encode(&look).filter(|bytes| !bytes.is_empty()) else { continue };
                for (at, byte) in &damage {
                    let at = at.index(bytes.len());
                    bytes[at] ^= byte;
                }
                for count in [words.len(), words.len() / 2 + 1, words.len() * 2] {
                    if let Ok(read) = codec.decode(&bytes, count, kind, 0) {
                        prop_assert_eq!(read.len(), count, "{}", codec.name());
                    }
                }
            }
        }

        #[test]
        fn no_codec_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 1usize..600) {
            for kind in KINDS {
                for codec in all() {
                    if let Ok(words) = codec.decode(&bytes, count, kind, 0) {
                        prop_assert_eq!(words.len(), count, "{}", codec.name());
                    }
                }
            }
        }
    }

    /// A row of the table may name several codecs: `| 16, 17, 18 | lz4, gzip, zstd-nested | ...`.
    #[test]
    fn tags_and_names_are_those_of_the_format_page() {
        let page = include_str!("../../../../docs/format/chunk.md");
        let section = page.split("## Columns of numbers").nth(1).unwrap();
        let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        let cells =
            rows.take_while(|line| line.starts_with('|')).map(|line| line.split('|').collect::<Vec<_>>());
        let listed = |cells: Vec<&str>| {
            let names: Vec<String> = cells[2].split(',').map(|name| name.trim().to_owned()).collect();
            cells[1].split(',').map(|tag| tag.trim().parse::<u8>().unwrap()).zip(names).collect::<Vec<_>>()
        };
        let mut known: Vec<(u8, String)> =
            all().map(|codec| (codec.tag(), codec.name().to_owned())).collect();
        known.sort_unstable();
        assert_eq!(known, cells.flat_map(listed).collect::<Vec<_>>());
        assert!(known.is_sorted_by(|a, b| a.0 < b.0), "tags must be unique and in ascending order");
    }

    /// Encodes a column and returns the name of the chosen codec.
    fn chosen(words: &[u64], kind: ValueType) -> &'static str {
        name(encode(Numbers { words, kind }, 0, &Encoding::thorough()).codec).unwrap()
    }

    #[test]
    fn the_ladder_chooses_the_best_codec() {
        let floats = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        let ids: Vec<u64> = (0..500).map(|n| tacho_model::mix64((7 + n * n) << 24)).collect();
        let noise: Vec<u64> =
            (0..500u64).map(|n| tacho_model::mix64(n).rotate_left(n as u32 % 60) ^ n).collect();
        let repeated: Vec<u64> = noise.iter().cycle().take(2_000).copied().collect();
        assert_eq!(chosen(&[9; 50], ValueType::U64), "constant");
        assert_eq!(chosen(&floats(vec![f64::NAN; 50]), ValueType::F64), "constant");
        assert_eq!(chosen(&[9, 7, 5, 3, 1], ValueType::I64), "step");
        assert_eq!(chosen(&[9, 7, 6, 3, 2], ValueType::I64), "packed");
        assert_eq!(chosen(&[9, 1 << 40, 6], ValueType::I64), "varint");
        assert_eq!(chosen(&floats(vec![3.0, 5.0, 4.0, 9.0]), ValueType::F64), "decimal");
        assert_eq!(chosen(&floats(vec![0.0, -0.0]), ValueType::F64), "ordered");
        assert_eq!(chosen(&ids, ValueType::U64), "unmix");
        assert_eq!(chosen(&noise, ValueType::U64), "plain");
        assert_eq!(chosen(&repeated, ValueType::U64), "zstd");
        assert_eq!(chosen(&[5_000_000, 9_000_000, 6_000_000, 90_000_000], ValueType::I64), "multiple");
        let states: Vec<u64> =
            (0..22).map(|n| [3, 900_000_007, 1 << 60][tacho_model::mix64(n) as usize % 3]).collect();
        assert_eq!(chosen(&states, ValueType::U64), "dictionary");
        let walk: Vec<f64> = (0..900).map(|n| f64::from(n * n % 1009) / 8.0).collect();
        assert_eq!(chosen(&floats(walk), ValueType::F64), "decimal");
    }

    #[test]
    fn only_permitted_codecs_are_chosen() {
        let words: Vec<u64> = (0..2_000).map(|n| tacho_model::mix64(n * n % 7) >> 8).collect();
        let chosen = |set: &[&str], compression| {
            let codecs = CodecSet::only(set.iter().copied()).unwrap();
            name(
                encode(Numbers::u64(&words), 0, &Encoding { codecs, compression, effort: Effort::Fast })
                    .codec,
            )
            .unwrap()
        };
        assert_eq!(chosen(&["packed"], Compression::None), "packed");
        assert_eq!(chosen(&["dictionary", "packed"], Compression::None), "dictionary");
        assert_eq!(chosen(&["step"], Compression::None), "plain");
        assert_eq!(chosen(&["step"], Compression::Lz4), "lz4");
        assert_eq!(chosen(&["step"], Compression::Gzip), "gzip");
        assert_eq!(chosen(&["step"], Compression::Zstd), "plain");
        assert_eq!(chosen(&["zstd"], Compression::Zstd), "zstd");
        assert!(
            CodecSet::only(["lz4"]).is_none(),
            "a set with lz4 was accepted, but lz4 is not in the ladder"
        );
        assert!(CodecSet::only(["stones"]).is_none());
    }

    #[test]
    fn the_name_of_a_read_only_codec_permits_its_replacement() {
        for (old, instead) in [("integer", "decimal"), ("planes", "zstd"), ("zstd-nested", "zstd")] {
            assert_eq!(CodecSet::only([old]), CodecSet::only([instead]), "{old}");
            assert!(CodecSet::names().all(|name| name != old), "{old} is listed as a codec to choose");
        }
    }

    #[test]
    fn exceptions_do_not_enlarge_decimal_columns() {
        let word = |n: u64| (if n % 50 == 7 { f64::NAN } else { (n % 90) as f64 / 10.0 }).to_bits();
        let words: Vec<u64> = (0..2_000).map(word).collect();
        for encoding in [Encoding::default(), Encoding::thorough()] {
            let encoded = encode(Numbers { words: &words, kind: ValueType::F64 }, 0, &encoding);
            assert!(["except", "lines"].contains(&name(encoded.codec).unwrap()), "{:?}", name(encoded.codec));
            assert!(encoded.bytes.len() < 600, "{} bytes", encoded.bytes.len());
        }
    }

    #[test]
    fn nesting_is_limited() {
        let error = decode(8, &[8, 6, 8, 4, 8, 2, 1, 0], 1, ValueType::U64, 0).unwrap_err();
        assert_eq!(error.to_string(), "nesting of columns is 3, at most 2 is allowed");
    }
}
