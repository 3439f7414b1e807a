//! Numbers on few straight lines. A line is several numbers, each with the same difference from the number before it. This
//! difference is the slope of the line.
//!
//! Examples are counters that alternate between no growth and steady growth, times with occasional jumps, and numbers that
//! [`crate::semantic`] has replaced by lines within a permitted error. Floats are encoded as decimal numbers
//! ([`super::decimal`]). NaN, infinities and -0.0 are exceptions, which are stored separately.

use tacho_model::ValueType;

use super::except::ordinary;
use super::{Codec, Look, Numbers, decimal, take_nested};
use crate::Error;
use crate::bytes::{Reader, put_varint, unzigzag, zigzag};

pub(super) struct Lines;

/// Minimum average number of values per line. Below it, other codecs are better.
const RUN_MIN: usize = 3;
/// Approximate size of a line, bits.
const LINE_BITS: f64 = 20.0;
/// At most one float in this many may be an exception: NaN, an infinity, -0.0.
const EXCEPTION_EVERY: usize = 4;

/// The lines in order. `more` and `slopes` have one element for each line, `jumps` for each line except the first.
#[derive(Default)]
struct Parsed {
    first: u64,
    /// Number of values on the line, minus one.
    more: Vec<u64>,
    slopes: Vec<u64>,
    /// The line's first number minus the expected number: the last number of the previous line plus the slope of this line.
    jumps: Vec<u64>,
}

impl Parsed {
    /// Extends each line as far as possible. `None` if there are too many lines, or fewer than two words. Arithmetic is mod
    /// 2^64.
    fn of(words: &[u64]) -> Option<Self> {
        let (first, mut rest) = words.split_first()?;
        let mut parsed = Self { first: *first, ..Self::default() };
        let (mut before, mut slope) = (*first, rest.first()?.wrapping_sub(*first));
        loop {
            let mut more = 0;
            while let Some((next, after)) = rest.split_first()
                && *next == before.wrapping_add(slope)
            {
                (before, rest) = (*next, after);
                more += 1;
            }
            parsed.more.push(more);
            parsed.slopes.push(slope);
            let Some((start, after)) = rest.split_first() else { return Some(parsed) };
            if (parsed.more.len() + 1) * RUN_MIN > words.len() {
                return None;
            }
            slope = next_slope(*start, after, slope);
            parsed.jumps.push(start.wrapping_sub(before).wrapping_sub(slope));
            (before, rest) = (*start, after);
        }
    }

    fn put(&self, out: &mut Vec<u8>, look: &Look<'_>) {
        put_varint(out, zigzag(self.first.cast_signed()));
        put_varint(out, self.more.len() as u64);
        look.put_nested(out, Numbers::u64(&self.more));
        look.put_nested(out, Numbers { words: &self.slopes, kind: ValueType::I64 });
        look.put_nested(out, Numbers { words: &self.jumps, kind: ValueType::I64 });
    }

    fn take(reader: &mut Reader<'_>, count: usize, depth: u8) -> Result<Self, Error> {
        let first = unzigzag(reader.varint("first of the lines")?).cast_unsigned();
        let lines = reader.size("lines", count)?;
        if lines == 0 {
            return Err(Error::value("lines", 0u8));
        }
        Ok(Self {
            first,
            more: take_nested(reader, lines, ValueType::U64, depth)?,
            slopes: take_nested(reader, lines, ValueType::I64, depth)?,
            jumps: take_nested(reader, lines - 1, ValueType::I64, depth)?,
        })
    }

    /// The numbers on the lines. Fails unless there are exactly `count`.
    fn unfold(&self, count: usize) -> Result<Vec<u64>, Error> {
        let mut words = Vec::with_capacity(count);
        let jumps = std::iter::once(&0).chain(&self.jumps);
        let mut before = self.first;
        for (line, ((more, slope), jump)) in self.more.iter().zip(&self.slopes).zip(jumps).enumerate() {
            let left = count - words.len();
            let more = usize::try_from(*more).ok().filter(|more| *more < left);
            let more = more.ok_or(Error::limit("numbers on the lines", count + 1, count))?;
            let start = if line == 0 { before } else { before.wrapping_add(*slope).wrapping_add(*jump) };
            let at = |place: usize| start.wrapping_add(slope.wrapping_mul(place as u64));
            words.extend((0..=more).map(at));
            before = at(more);
        }
        let short = Error::Short { what: "numbers on the lines", wanted: count, left: words.len() };
        if words.len() == count { Ok(words) } else { Err(short) }
    }
}

/// The slope of the line that begins at `start`: the next step if the step after it is equal, otherwise the old slope.
fn next_slope(start: u64, after: &[u64], old: u64) -> u64 {
    match after {
        [a, b, ..] if b.wrapping_sub(*a) == a.wrapping_sub(start) => a.wrapping_sub(start),
        _ => old,
    }
}

/// Floats as decimal integers, plus exceptions.
struct Floats {
    exponent: u8,
    integers: Vec<u64>,
    /// Positions of the exceptions, each as the distance from the previous exception.
    gaps: Vec<u64>,
    /// The exceptions, as bits.
    words: Vec<u64>,
}

impl Floats {
    fn of(words: &[u64]) -> Option<Self> {
        let numbers = words.iter().copied().filter(|word| ordinary(*word));
        let whole = || numbers.clone().all(|word| decimal::scaled(word, 0).is_some());
        let exponent = if whole() { 0 } else { decimal::exponent(numbers.clone())? };
        let mut floats =
            Self { exponent, integers: Vec::with_capacity(words.len()), gaps: vec![], words: vec![] };
        let (mut last, mut before, mut slope) = (0, 0u64, 0u64);
        for (place, word) in words.iter().enumerate() {
            let integer = if ordinary(*word) {
                decimal::scaled(*word, exponent)?.cast_unsigned()
            } else {
                floats.gaps.push((place - last) as u64);
                floats.words.push(*word);
                last = place;
                // A value on the current line, so that the line does not end at the exception.
                before.wrapping_add(slope)
            };
            (slope, before) = (if place == 0 { 0 } else { integer.wrapping_sub(before) }, integer);
            floats.integers.push(integer);
        }
        (floats.words.len() * EXCEPTION_EVERY <= words.len()).then_some(floats)
    }

    fn put(&self, out: &mut Vec<u8>, look: &Look<'_>) {
        out.push(self.exponent);
        put_varint(out, self.words.len() as u64);
        if !self.words.is_empty() {
            look.put_nested(out, Numbers::u64(&self.gaps));
            look.put_nested(out, Numbers::u64(&self.words));
        }
    }
}

impl Codec for Lines {
    fn tag(&self) -> u8 {
        24
    }

    fn name(&self) -> &'static str {
        "lines"
    }

    /// Estimated from the number of lines that start in the sample. Each line costs a few bytes.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.numbers.words.len() < 2 * RUN_MIN || look.depth > 0 {
            return None;
        }
        let bends = |run: &[u64]| {
            let bend = |three: &&[u64]| match three {
                [a, b, c] => b.wrapping_sub(*a) != c.wrapping_sub(*b),
                _ => false,
            };
            run.windows(3).filter(bend).count()
        };
        let (mut lines, mut all) = (0, 0);
        for run in look.runs() {
            lines += match look.numbers.kind {
                ValueType::F64 => bends(&Floats::of(run)?.integers),
                ValueType::I64 | ValueType::U64 => bends(run),
            };
            all += run.len();
        }
        // A jump counts as two lines, because the differences change at the jump and again after it.
        let lines = lines as f64 / all as f64;
        (lines * RUN_MIN as f64 <= 1.0).then_some(lines * LINE_BITS + look.bits_each(16))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let mut out = vec![];
        if look.numbers.kind == ValueType::F64 {
            let floats = Floats::of(look.numbers.words)?;
            let parsed = Parsed::of(&floats.integers)?;
            floats.put(&mut out, look);
            parsed.put(&mut out, look);
        } else {
            Parsed::of(look.numbers.words)?.put(&mut out, look);
        }
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        if kind != ValueType::F64 {
            let words = Parsed::take(&mut reader, count, depth)?.unfold(count)?;
            return reader.end("lines").map(|()| words);
        }
        let exponent = reader.byte("decimal exponent")?;
        let exceptions = reader.size("exceptions", count)?;
        let mut nested = || take_nested(&mut reader, exceptions, ValueType::U64, depth);
        let (gaps, exact) = if exceptions == 0 { (vec![], vec![]) } else { (nested()?, nested()?) };
        let mut words = Parsed::take(&mut reader, count, depth)?.unfold(count)?;
        reader.end("lines")?;
        decimal::scaled(0, exponent).ok_or(Error::value("decimal exponent", exponent))?;
        words.iter_mut().for_each(|word| *word = decimal::float(word.cast_signed(), exponent));
        let mut place = 0usize;
        for (gap, exact) in gaps.into_iter().zip(exact) {
            place = place.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            let beyond = Error::limit("place of an exception", place, count);
            *words.get_mut(place).ok_or(beyond)? = exact;
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Encoding;

    /// Encodes and decodes floats; returns the number of bytes.
    fn check(values: &[f64]) -> Option<usize> {
        let words: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let numbers = Numbers { words: &words, kind: ValueType::F64 };
        let bytes = Lines.encode(&Look::new(numbers, 0, &Encoding::thorough()))?;
        assert_eq!(Lines.decode(&bytes, words.len(), ValueType::F64, 0), Ok(words));
        Some(bytes.len())
    }

    #[test]
    fn a_line_continues_after_an_exception() {
        let mut values: Vec<f64> = (0..400).map(|n| f64::from(n.min(250)) / 4.0).collect();
        let whole = check(&values).unwrap();
        assert!(whole < 30, "{whole} bytes");
        values[100] = f64::NAN;
        values[0] = f64::NEG_INFINITY;
        values[399] = -0.0;
        let holes = check(&values).unwrap();
        assert!(holes < whole + 60, "{holes} bytes");
    }

    #[test]
    fn a_jump_costs_one_line() {
        let words: Vec<u64> =
            (0..300).map(|n| n * 10 + if n >= 100 { 3 } else { 0 } + if n >= 200 { 4 } else { 0 }).collect();
        let parsed = Parsed::of(&words).unwrap();
        assert_eq!((parsed.more, parsed.slopes, parsed.jumps), (vec![99, 99, 99], vec![10; 3], vec![3, 4]));
    }

    #[test]
    fn lines_that_meet_have_no_jumps() {
        let words: Vec<u64> = (0..30u64).map(|n| n * 10 - n.saturating_sub(9) * 7).collect();
        let parsed = Parsed::of(&words).unwrap();
        assert_eq!((parsed.more, parsed.slopes, parsed.jumps), (vec![9, 19], vec![10, 3], vec![0]));
        assert!(Parsed::of(&[1, 5, 2, 9, 3, 30]).is_none());
    }
}
