//! Floats that are exactly decimal numbers with few decimals or none: counters, percentages, seconds, money.
//!
//! The idea is from ALP (Afroozeh, Kuffo, Boncz, "ALP: Adaptive Lossless floating-Point Compression", SIGMOD 2024).
//! Decoding divides two exact numbers, and IEEE 754 rounds the quotient correctly. The result is the float nearest to the
//! decimal number, which is also the float that a parser of the decimal text returns.

use tacho_model::ValueType;

use super::integer::{self, whole};
use super::{Codec, Look, Numbers, Part, take_nested_part};
use crate::Error;
use crate::bytes::Reader;

pub(super) struct Decimal;

/// Powers of ten for the division. All of them are exact in f64.
const POWERS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// 2^52 + 2^51. Adding and then subtracting it rounds a float below 2^51 to an integer.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// An exponent is tried with this number of values before it is tried with all values.
const PROBE: usize = 8;

/// The integer equal to the float `word` times 10^`exponent`. `None` if decoding the integer does not return `word`.
#[expect(clippy::cast_possible_truncation, reason = "decoding is compared")]
pub(crate) fn scaled(word: u64, exponent: u8) -> Option<i64> {
    if exponent == 0 {
        // Also converts numbers of 2^51 and more, for which the sum below may be inexact.
        return whole(word).map(u64::cast_signed);
    }
    let power = POWERS.get(usize::from(exponent))?;
    let integer = ((f64::from_bits(word) * power + ROUNDER) - ROUNDER) as i64;
    (float(integer, exponent) == word).then_some(integer)
}

/// The word of the float `integer` / 10^`exponent`.
#[expect(clippy::cast_precision_loss, reason = "the encoder accepts only exactly decodable integers")]
pub(crate) fn float(integer: i64, exponent: u8) -> u64 {
    let power = POWERS.get(usize::from(exponent)).copied().unwrap_or(1.0);
    (integer as f64 / power).to_bits()
}

/// The smallest exponent with which all of `words` are decimal; `None` if there is none.
pub(crate) fn exponent(words: impl Iterator<Item = u64> + Clone) -> Option<u8> {
    let fits = |exponent: u8| move |word: u64| scaled(word, exponent).is_some();
    let exponents = 0..u8::try_from(POWERS.len()).ok()?;
    let mut probed = exponents.filter(|exponent| words.clone().take(PROBE).all(fits(*exponent)));
    // Later numbers may have more decimals than the first ones.
    probed.find(|exponent| words.clone().all(fits(*exponent)))
}

impl Codec for Decimal {
    fn tag(&self) -> u8 {
        10
    }

    fn name(&self) -> &'static str {
        "decimal"
    }

    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.kind != ValueType::F64 || look.depth > 1 {
            return None;
        }
        let exponent = exponent(look.sample())?;
        look.bits_after(|word| scaled(word, exponent).map(i64::cast_unsigned))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let first = exponent(look.sample())?;
        let integers = |exponent: u8| {
            let scaled = |word: &u64| scaled(*word, exponent).map(i64::cast_unsigned);
            look.numbers.words.iter().map(scaled).collect::<Option<Vec<u64>>>()
        };
        // Exponents up to two higher are tried, because numbers outside of the sample may have more decimals.
        let (exponent, integers) = (first..first.saturating_add(3)).find_map(|e| Some((e, integers(e)?)))?;
        let mut out = vec![exponent];
        look.put_nested(&mut out, Numbers { words: &integers, kind: ValueType::I64 });
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        self.decode_part(bytes, &Part::whole(count), kind, depth)
    }

    fn decode_part(&self, bytes: &[u8], part: &Part, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        if kind != ValueType::F64 {
            return Err(Error::value("type of a decimal column", kind as u8));
        }
        let mut reader = Reader::new(bytes);
        let exponent = reader.byte("decimal exponent")?;
        let power =
            *POWERS.get(usize::from(exponent)).ok_or_else(|| Error::value("decimal exponent", exponent))?;
        let integers = take_nested_part(&mut reader, part, ValueType::I64, depth)?;
        reader.end("decimal column")?;
        if exponent == 0 {
            // Skips the division by one, because divisions take most of the time of the loop below.
            return Ok(integers.into_iter().map(integer::float).collect());
        }
        #[expect(clippy::cast_precision_loss, reason = "the encoder accepts only exactly decodable integers")]
        let float = |integer: u64| (integer.cast_signed() as f64 / power).to_bits();
        Ok(integers.into_iter().map(float).collect())
    }
}
