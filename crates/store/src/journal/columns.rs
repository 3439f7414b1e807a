//! Encodes and decodes the samples of several series with the same times: a block of tag 4 (`docs/format/journal.md`).
//!
//! In a batch, many series have the same times, and values change little. The times are therefore written once, and most
//! values take one byte. Columns are written and read in simple loops.

use tacho_model::varint::{unzigzag, zigzag};
use tacho_model::{Sample, Timestamp, Value, ValueType};

use super::format::{BLOCK_COLUMNS, CODING_RAW, FORM_CODING_SHIFT, FORM_TYPE_MASK, TIMES_DELTAS, TIMES_STEP};
use crate::coding::{Cursor, Malformed, put_varint, put_zigzag};

/// An f64 represents each whole number from -2^53 to 2^53 exactly.
const EXACT_MAX: u64 = 1 << 53;

/// Collects series with the same times. Writes their block when a series with other times follows, or at [`Columns::end`].
#[derive(Debug, Default)]
pub struct Columns {
    /// Times of the series in the block. Empty if the block has no series.
    at: Vec<Timestamp>,
    series: u64,
    /// Number of the last series in the block, plus 1.
    next: i64,
    columns: Vec<u8>,
    words: Vec<i64>,
}

impl Columns {
    /// Adds the samples of one series. `samples` must not be empty. If their values have several types, adds nothing and
    /// returns `false`.
    pub fn add(&mut self, out: &mut Vec<u8>, number: u64, samples: &[Sample]) -> bool {
        let Some((value_type, exact)) = to_words(samples, &mut self.words) else { return false };
        if !samples.iter().map(|sample| &sample.at).eq(&self.at) {
            self.end(out);
            self.at.extend(samples.iter().map(|sample| sample.at));
        }
        let number = number.cast_signed();
        put_zigzag(&mut self.columns, number.wrapping_sub(self.next));
        self.next = number.wrapping_add(1);
        self.series += 1;
        put_values(&mut self.columns, value_type, &self.words, exact);
        true
    }

    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.series > 0 {
            out.push(BLOCK_COLUMNS);
            put_varint(out, self.at.len() as u64);
            put_times(out, &self.at);
            put_varint(out, self.series);
            out.append(&mut self.columns);
        }
        self.at.clear();
        (self.series, self.next) = (0, 0);
    }
}

/// Converts values to 64-bit words. Returns their type, and whether the words are whole numbers. They always are for i64 and
/// u64, and for f64 if all values are whole and exact. Otherwise the words of f64 values are their bits. `None` if the types
/// differ.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "saturates, and is compared"
)]
fn to_words(samples: &[Sample], words: &mut Vec<i64>) -> Option<(ValueType, bool)> {
    words.clear();
    words.reserve(samples.len());
    let value_type = samples.first()?.value.value_type();
    let mut exact = true;
    match value_type {
        ValueType::I64 => {
            for sample in samples {
                let Value::I64(value) = sample.value else { return None };
                words.push(value);
            }
        }
        ValueType::U64 => {
            for sample in samples {
                let Value::U64(value) = sample.value else { return None };
                words.push(value.cast_signed());
            }
        }
        ValueType::F64 => {
            for sample in samples {
                let Value::F64(value) = sample.value else { return None };
                let whole = value as i64;
                exact &= (whole as f64).to_bits() == value.to_bits() && whole.unsigned_abs() <= EXACT_MAX;
                words.push(whole);
            }
            if !exact {
                words.clear();
                words.extend(samples.iter().map(|sample| sample.value.as_f64().to_bits().cast_signed()));
            }
        }
    }
    Some((value_type, exact))
}

/// `exact`: the words are whole numbers, so their differences may be small.
#[expect(clippy::cast_possible_truncation, reason = "`coding` is wide enough for the largest difference")]
#[expect(clippy::cast_precision_loss, reason = "exact words have at most 53 bits")]
fn put_values(out: &mut Vec<u8>, value_type: ValueType, words: &[i64], exact: bool) {
    let Some((first, rest)) = words.split_first() else { return };
    let differences = || rest.iter().zip(words).map(|(value, before)| zigzag(value.wrapping_sub(*before)));
    let all = if exact { differences().fold(0, |all, difference| all | difference) } else { u64::MAX };
    let coding = match all {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 3,
        _ => CODING_RAW,
    };
    out.push(value_type as u8 | coding << FORM_CODING_SHIFT);
    if coding == CODING_RAW {
        let bits = |word: &i64| match value_type {
            ValueType::F64 if exact => (*word as f64).to_bits(),
            _ => word.cast_unsigned(),
        };
        return out.extend(words.iter().flat_map(|word| bits(word).to_le_bytes()));
    }
    put_zigzag(out, *first);
    match coding {
        1 => out.extend(differences().map(|difference| difference as u8)),
        2 => out.extend(differences().flat_map(|difference| (difference as u16).to_le_bytes())),
        _ => out.extend(differences().flat_map(|difference| (difference as u32).to_le_bytes())),
    }
}

fn put_times(out: &mut Vec<u8>, at: &[Timestamp]) {
    let Some((first, rest)) = at.split_first() else { return };
    let deltas = || rest.iter().zip(at).map(|(time, before)| time.wrapping_sub(*before));
    let step = deltas().next().unwrap_or(0);
    let regular = deltas().all(|delta| delta == step);
    out.push(if regular { TIMES_STEP } else { TIMES_DELTAS });
    put_zigzag(out, *first);
    if regular {
        put_zigzag(out, step);
    } else {
        deltas().for_each(|delta| put_zigzag(out, delta));
    }
}

/// Reads a block after its tag. Passes the number and the samples of each series to the callback.
pub fn read(
    cursor: &mut Cursor<'_>,
    mut each: impl FnMut(u64, &[Sample], &Cursor<'_>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    // Each value takes at least one byte. A number of times above the number of remaining bytes is therefore refused, before
    // memory is allocated.
    let count = cursor.count(1, "number of times")?;
    let at = read_times(cursor, count)?;
    let (mut next, mut samples) = (0i64, Vec::with_capacity(at.len()));
    for _ in 0..cursor.count(3, "number of columns")? {
        let number = next.wrapping_add(cursor.zigzag("series number")?);
        next = number.wrapping_add(1);
        samples.clear();
        read_column(cursor, &at, &mut samples)?;
        each(number.cast_unsigned(), &samples, cursor)?;
    }
    Ok(())
}

fn read_times(cursor: &mut Cursor<'_>, count: usize) -> Result<Vec<Timestamp>, Malformed> {
    let form = cursor.byte("form of times")?;
    if count == 0 || form > TIMES_DELTAS {
        return Err(cursor.malformed("times"));
    }
    let mut time = cursor.zigzag("first time")?;
    let mut at = Vec::with_capacity(count);
    at.push(time);
    let step = if form == TIMES_STEP { cursor.zigzag("step")? } else { 0 };
    for _ in 1..count {
        let delta = if form == TIMES_STEP { step } else { cursor.zigzag("time")? };
        time = time.wrapping_add(delta);
        at.push(time);
    }
    Ok(at)
}

fn read_column(
    cursor: &mut Cursor<'_>,
    at: &[Timestamp],
    samples: &mut Vec<Sample>,
) -> Result<(), Malformed> {
    let form = cursor.byte("form of a column")?;
    let value_type = ValueType::from_byte(form & FORM_TYPE_MASK).ok_or(cursor.malformed("value type"))?;
    match form >> FORM_CODING_SHIFT {
        CODING_RAW => {
            let (words, _) = cursor.bytes(at.len() * 8, "values")?.as_chunks::<8>();
            let value = |word: &[u8; 8]| raw_value(u64::from_le_bytes(*word), value_type);
            samples.extend(at.iter().zip(words).map(|(at, word)| Sample { at: *at, value: value(word) }));
            Ok(())
        }
        1 => read_differences(cursor, (at, samples), value_type, |[byte]: [u8; 1]| byte.into()),
        2 => read_differences(cursor, (at, samples), value_type, |bytes| u16::from_le_bytes(bytes).into()),
        3 => read_differences(cursor, (at, samples), value_type, |bytes| u32::from_le_bytes(bytes).into()),
        _ => Err(cursor.malformed("form of a column")),
    }
}

fn read_differences<const N: usize>(
    cursor: &mut Cursor<'_>,
    (at, samples): (&[Timestamp], &mut Vec<Sample>),
    value_type: ValueType,
    difference: impl Fn([u8; N]) -> u64,
) -> Result<(), Malformed> {
    let mut word = cursor.zigzag("first value")?;
    let (differences, _) = cursor.bytes(at.len().saturating_sub(1) * N, "values")?.as_chunks::<N>();
    let mut rest = differences.iter();
    for at in at {
        samples.push(Sample { at: *at, value: value(word, value_type) });
        word = word.wrapping_add(rest.next().map_or(0, |bytes| unzigzag(difference(*bytes))));
    }
    Ok(())
}

const fn raw_value(bits: u64, value_type: ValueType) -> Value {
    match value_type {
        ValueType::F64 => Value::F64(f64::from_bits(bits)),
        ValueType::I64 => Value::I64(bits.cast_signed()),
        ValueType::U64 => Value::U64(bits),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the encoder has compared the number with the word")]
const fn value(word: i64, value_type: ValueType) -> Value {
    match value_type {
        ValueType::F64 => Value::F64(word as f64),
        ValueType::I64 => Value::I64(word),
        ValueType::U64 => Value::U64(word.cast_unsigned()),
    }
}
