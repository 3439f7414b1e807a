//! Codec for few distinct numbers that repeat: states, status codes, booleans.

use foldhash::{HashMap, HashMapExt};
use tacho_model::ValueType;

use super::{Codec, Look, Numbers, take_nested};
use crate::Error;
use crate::bytes::{Reader, put_varint};

pub(super) struct Dictionary;

const DISTINCT_MAX: usize = 256;
/// Bits per number. With [`Effort::Fast`](crate::Effort::Fast), a table is tried only if all earlier estimates are above this.
const PAYS_ABOVE: f64 = 2.0;
/// Minimum number of values. For fewer values, a table takes more bytes than the codec saves.
const COUNT_MIN: usize = 16;

/// Distinct words in order of first appearance, and the index of each number's word. `None` if there are too many words.
fn distinct(words: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let mut table = vec![];
    let mut positions: HashMap<u64, u64> = HashMap::new();
    let mut indices = Vec::with_capacity(words.len());
    let mut last = None;
    for word in words {
        // Checked first, because runs of equal numbers are common and lookups are expensive.
        if let Some((before, position)) = last
            && before == *word
        {
            indices.push(position);
            continue;
        }
        let position = *positions.entry(*word).or_insert_with(|| {
            table.push(*word);
            table.len() as u64 - 1
        });
        if table.len() > DISTINCT_MAX {
            return None;
        }
        indices.push(position);
        last = Some((*word, position));
    }
    Some((table, indices))
}

impl Codec for Dictionary {
    fn tag(&self) -> u8 {
        6
    }

    fn name(&self) -> &'static str {
        "dictionary"
    }

    /// Entropy of the words in the sample, assuming that they are independent, plus the bits of the table per number.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    fn estimate(&self, look: &Look<'_>) -> Option<f64> {
        if look.depth > 0 || look.numbers.words.len() < COUNT_MIN || !look.leaves(PAYS_ABOVE) {
            return None;
        }
        let mut sample: Vec<u64> = look.sample().collect();
        sample.sort_unstable();
        let counts: Vec<f64> = sample.chunk_by(|a, b| a == b).map(|equal| equal.len() as f64).collect();
        let all = sample.len() as f64;
        if counts.len() * 2 > sample.len() {
            return None;
        }
        let entropy: f64 = counts.iter().map(|count| count / all * (all / count).log2()).sum();
        Some(entropy + look.bits_each(16 + counts.len() * 6))
    }

    fn encode(&self, look: &Look<'_>) -> Option<Vec<u8>> {
        let (table, indices) = distinct(look.numbers.words)?;
        if table.len() * 2 > look.numbers.words.len() {
            return None;
        }
        let mut out = vec![];
        put_varint(&mut out, table.len() as u64);
        look.put_nested(&mut out, Numbers { words: &table, kind: look.numbers.kind });
        look.put_nested(&mut out, Numbers::u64(&indices));
        Some(out)
    }

    fn decode(&self, bytes: &[u8], count: usize, kind: ValueType, depth: u8) -> Result<Vec<u64>, Error> {
        let mut reader = Reader::new(bytes);
        let size = reader.size("size of a dictionary", DISTINCT_MAX)?;
        let table = take_nested(&mut reader, size, kind, depth)?;
        let indices = take_nested(&mut reader, count, ValueType::U64, depth)?;
        reader.end("dictionary")?;
        let word = |index: u64| {
            let at = usize::try_from(index).ok().and_then(|at| table.get(at));
            at.copied().ok_or_else(|| Error::value("position in a dictionary", index))
        };
        indices.into_iter().map(word).collect()
    }

    fn slowness(&self) -> f64 {
        1.03
    }
}
