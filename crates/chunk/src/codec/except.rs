//! Floats with a few exceptions, which are stored separately: NaN of a failed scrape, an infinity, -0.0.

use tacho_model::ValueType;

use super::{Codec, Look, Numbers, decimal, integer, ordered, take_nested};
use crate::Error;
use crate::bytes::{Reader, put_varint};

pub(super) struct Except;

/// At most one number in this many may be an exception.
const EXCEPTION_EVERY: usize = 4;
/// Approximate size of an exception, bits.
const EXCEPTION_BITS: f64 = 40.0;

pub(super) const fn ordinary(word: u64) -> bool {
    f64::from_bits(word).is_finite() && word != (-0.0f64).to_bits()
}

/// Replaces each exception by the previous ordinary word. Exceptions before the first ordinary word are replaced by that word.
fn filled(words: &[u64]) -> Vec<u64> {
    let mut last = words.iter().copied().find(|word| ordinary(*word)).unwrap_or(0);
    let fill = |word: &u64| {
        if ordinary(*word) {
            last = *word;
        }
        last
    };
    words.iter().map(fill).collect()
}

impl Codec for Except {
    fn tag(&self) -> u8 {
        15
    }

    fn name(&self) -> &'static str {
        "except"
    }

    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        let words = look.numbers.words;
        if look.numbers.kind != ValueType::F64 || look.depth > 0 {
            return None;
        }
        let exceptions = words.iter().filter(|word| !ordinary(**word)).count();
        if exceptions == 0 || exceptions * EXCEPTION_EVERY > words.len() {
            return None;
        }
        let runs: Vec<Vec<u64>> = look.runs().map(filled).collect();
        let all = || runs.iter().flatten().copied();
        let map: Box<dyn Fn(u64) -> Option<u64>> = if all().all(|word| integer::whole(word).is_some()) {
            Box::new(integer::whole)
        } else if let Some(exponent) = decimal::exponent(all()) {
            Box::new(move |word| decimal::scaled(word, exponent).map(i64::cast_unsigned))
        } else {
            Box::new(|word| Some(ordered::rank(word)))
        };
        let mapped = runs.iter().map(|run| run.iter().map(|word| map(*word)).collect::<Option<Vec<_>>>());
        let bits = look.bits_of(mapped.collect::<Option<Vec<_>>>()?)?;
        Some(bits + exceptions as f64 / words.len() as f64 * EXCEPTION_BITS + look.bits_each(16))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let words = look.numbers.words;
        let (mut gaps, mut exceptions, mut last) = (vec![], vec![], 0);
        for (place, word) in words.iter().enumerate().filter(|(_, word)| !ordinary(**word)) {
            gaps.push((place - last) as u64);
            exceptions.push(*word);
            last = place;
        }
        let mut out = vec![];
        put_varint(&mut out, exceptions.len() as u64);
        look.put_nested(&mut out, Numbers::u64(&gaps));
        look.put_nested(&mut out, Numbers::u64(&exceptions));
        look.put_nested(&mut out, Numbers { words: &filled(words), kind: ValueType::F64 });
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        if kind != ValueType::F64 {
            return Err(Error::value("type of a column with exceptions", kind as u8));
        }
        let mut reader = Reader::new(bytes);
        let exceptions = reader.size("exceptions", count)?;
        let gaps = take_nested(&mut reader, exceptions, ValueType::U64, depth)?;
        let exceptions = take_nested(&mut reader, exceptions, ValueType::U64, depth)?;
        let mut words = take_nested(&mut reader, count, kind, depth)?;
        reader.end("column with exceptions")?;
        let mut place = 0usize;
        for (gap, exception) in gaps.into_iter().zip(exceptions) {
            place = place.saturating_add(usize::try_from(gap).unwrap_or(usize::MAX));
            *words.get_mut(place).ok_or_else(|| Error::limit("place of an exception", place, count))? =
                exception;
        }
        Ok(words)
    }
}
