//! How are the texts of one slot (a place of a template where texts differ) encoded? As numbers, as ids, or as words.

use foldhash::{HashMap, HashMapExt};
use tacho_model::ValueType;

use crate::bytes::{Reader, put_varint};
use crate::codec::{Numbers, encode_nested, take_nested};
use crate::encoding::form;
use crate::execution::parse_id;
use crate::text::{Strings, Texts};
use crate::{Encoding, Error};

const DECIMAL: u8 = 0;
const PADDED: u8 = 1;
const HEX: u8 = 2;
const ID: u8 = 3;
const WORDS: u8 = 4;
const DICTIONARY: u8 = 5;

/// Limit on the digits of a decimal number, so that it fits into 64 bits.
const DIGITS_MAX: usize = 18;
const HEX_DIGITS_MAX: usize = 32;
const WORD_DIGITS: usize = 16;
/// Minimum average number of occurrences per word. Below it, a dictionary saves no space.
const PLACES_MIN: usize = 4;

/// The texts of a slot. `Padded` and `Hex` begin with the number of digits. `Words` and `Dictionary` begin with the index of
/// their first string in the table of strings.
pub(super) enum Slot {
    Decimal(Vec<u64>),
    Padded(usize, Vec<u64>),
    Hex(usize, Vec<u64>, Vec<u64>),
    Id(Vec<u64>, Vec<u64>),
    Words(usize),
    Dictionary(usize, Vec<u64>),
}

/// Appends the form and the numbers of a slot to `out`, and its strings to `table`.
pub(super) fn write<'a>(
    texts: Strings<'a>,
    out: &mut Vec<u8>,
    table: &mut Vec<&'a [u8]>,
    depth: u8,
    encoding: &Encoding,
) {
    let put = |out: &mut Vec<u8>, words: &[u64]| encode_nested(out, Numbers::u64(words), depth, encoding);
    let all =
        |parse: fn(&[u8]) -> Option<u64>| texts.iter().map(|text| parse(text)).collect::<Option<Vec<_>>>();
    let width = texts.first().map_or(0, |text| text.len());
    let even = (1..=HEX_DIGITS_MAX).contains(&width) && texts.iter().all(|text| text.len() == width);
    let may = |form| encoding.codecs.has(form);
    if let Some(numbers) = all(decimal) {
        let zeros = texts.iter().any(|text| text.len() > 1 && text.first() == Some(&b'0'));
        if !zeros || (even && may(form::PADDED)) {
            match u8::try_from(width).ok().filter(|_| zeros) {
                Some(width) => out.extend_from_slice(&[PADDED, width]),
                None => out.push(DECIMAL),
            }
            return put(out, &numbers);
        }
    } else if let Some(words) = texts
        .iter()
        .map(|text| hex(text))
        .collect::<Option<Vec<_>>>()
        .filter(|_| even && may(form::HEXADECIMAL))
    {
        out.extend_from_slice(&[HEX, u8::try_from(width).unwrap_or(0)]);
        if width > WORD_DIGITS {
            put(out, &words.iter().map(|word| high(*word)).collect::<Vec<_>>());
        }
        return put(out, &words.iter().map(|word| low(*word)).collect::<Vec<_>>());
    } else if let Some(ids) =
        texts.iter().map(|text| id(text)).collect::<Option<Vec<_>>>().filter(|_| may(form::ID))
    {
        out.push(ID);
        put(out, &ids.iter().map(|[high, _]| *high).collect::<Vec<_>>());
        return put(out, &ids.iter().map(|[_, low]| *low).collect::<Vec<_>>());
    }
    let mut places: HashMap<&[u8], u64> = HashMap::new();
    let start = table.len();
    let mut position = |text: &&'a [u8]| {
        let next = places.len() as u64;
        *places.entry(text).or_insert_with(|| {
            table.push(text);
            next
        })
    };
    let positions: Vec<u64> = texts.iter().map(&mut position).collect();
    let words = table.len() - start;
    if words * PLACES_MIN > texts.len() || !may(form::WORDS) {
        out.push(WORDS);
        table.truncate(start);
        table.extend_from_slice(texts);
    } else {
        out.push(DICTIONARY);
        put_varint(out, words as u64);
        put(out, &positions);
    }
}

fn decimal(text: &[u8]) -> Option<u64> {
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let fits = (1..=DIGITS_MAX).contains(&text.len());
    fits.then(|| text.iter().try_fold(0, |number, byte| Some(number * 10 + digit(byte)?))).flatten()
}

fn hex(text: &[u8]) -> Option<u128> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let fits = (1..=HEX_DIGITS_MAX).contains(&text.len());
    fits.then(|| text.iter().try_fold(0, |number, byte| Some(number << 4 | u128::from(digit(byte)?))))
        .flatten()
}

fn id(text: &[u8]) -> Option<[u64; 2]> {
    parse_id(str::from_utf8(text).ok()?)
}

const fn high(word: u128) -> u64 {
    low(word >> 64)
}

#[expect(clippy::cast_possible_truncation, reason = "takes the low half")]
const fn low(word: u128) -> u64 {
    word as u64
}

/// Decodes a slot of `count` texts. `used` is the number of table entries that are already taken.
pub(super) fn read(
    reader: &mut Reader<'_>,
    count: usize,
    used: &mut usize,
    depth: u8,
) -> Result<Slot, Error> {
    let take = |reader: &mut Reader<'_>| take_nested(reader, count, ValueType::U64, depth);
    let mut strings = |count: usize| std::mem::replace(used, used.saturating_add(count));
    Ok(match reader.byte("form of a slot")? {
        DECIMAL => Slot::Decimal(take(reader)?),
        PADDED => {
            let width = width(reader, DIGITS_MAX)?;
            Slot::Padded(width, below(take(reader)?, 10, width)?)
        }
        HEX => {
            let width = width(reader, HEX_DIGITS_MAX)?;
            let over = width.saturating_sub(WORD_DIGITS);
            let high = if over > 0 { below(take(reader)?, 16, over)? } else { vec![] };
            Slot::Hex(width, high, below(take(reader)?, 16, width.min(WORD_DIGITS))?)
        }
        ID => Slot::Id(take(reader)?, take(reader)?),
        WORDS => Slot::Words(strings(count)),
        DICTIONARY => {
            let words = reader.size("words of a slot", count)?;
            let positions = take(reader)?;
            if let Some(past) = positions.iter().find(|position| **position >= words as u64) {
                return Err(Error::value("position of a word", *past));
            }
            Slot::Dictionary(strings(words), positions)
        }
        form => return Err(Error::value("form of a slot", form)),
    })
}

fn width(reader: &mut Reader<'_>, max: usize) -> Result<usize, Error> {
    match usize::from(reader.byte("width of a slot")?) {
        0 => Err(Error::value("width of a slot", 0u8)),
        width if width > max => Err(Error::limit("width of a slot", width, max)),
        width => Ok(width),
    }
}

/// Checks that each of the numbers `words` has at most `digits` digits in this base.
fn below(words: Vec<u64>, base: u64, digits: usize) -> Result<Vec<u64>, Error> {
    // `None` means that every word fits.
    let power = u32::try_from(digits).ok().and_then(|digits| base.checked_pow(digits));
    let long = power.and_then(|power| words.iter().find(|word| **word >= power));
    long.map_or(Ok(()), |long| Err(Error::value("number in a slot", *long)))?;
    Ok(words)
}

impl Slot {
    /// Appends the text at `row`.
    pub(super) fn put(&self, row: usize, table: &Texts, out: &mut Vec<u8>) -> Result<(), Error> {
        let missing = Error::value("row of a slot", row as u64);
        let get = |words: &[u64]| words.get(row).copied().ok_or(missing.clone());
        let word = |at: Option<usize>| at.and_then(|at| table.get(at)).ok_or(missing.clone());
        match self {
            Self::Decimal(words) => put_digits(get(words)?, 1, 10, out),
            Self::Padded(width, words) => put_digits(get(words)?, *width, 10, out),
            Self::Hex(width, high, words) => {
                if *width > WORD_DIGITS {
                    put_digits(get(high)?, width - WORD_DIGITS, 16, out);
                }
                put_digits(get(words)?, (*width).min(WORD_DIGITS), 16, out);
            }
            Self::Id(high, low) => {
                let (high, low) = (get(high)?, get(low)?);
                let parts = [(high >> 32, 8), (high >> 16 & 0xffff, 4), (high & 0xffff, 4), (low >> 48, 4)];
                for (part, digits) in parts {
                    put_digits(part, digits, 16, out);
                    out.push(b'-');
                }
                put_digits(low & 0xffff_ffff_ffff, 12, 16, out);
            }
            Self::Words(first) => out.extend_from_slice(word(first.checked_add(row))?),
            Self::Dictionary(first, positions) => {
                let position = usize::try_from(get(positions)?).ok();
                out.extend_from_slice(word(position.and_then(|position| first.checked_add(position)))?);
            }
        }
        Ok(())
    }
}

/// Appends a number with at least `width` digits.
fn put_digits(mut number: u64, width: usize, base: u64, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    for digit in digits.iter_mut().rev() {
        if number == 0 {
            break;
        }
        *digit = DIGITS.get(usize::try_from(number % base).unwrap_or(0)).copied().unwrap_or(b'0');
        number /= base;
        first -= 1;
    }
    out.extend_from_slice(digits.get(first.min(digits.len() - width)..).unwrap_or_default());
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";
