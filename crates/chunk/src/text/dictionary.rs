//! Codec for few distinct strings that repeat. The codec only decodes existing chunks; new chunks use templates without slots.

use tacho_model::ValueType;

use super::{Codec, Texts, take_nested};
use crate::Error;
use crate::bytes::Reader;
use crate::codec;
use crate::limits::CHUNK_TEXT_BYTES_MAX;

pub(super) struct Dictionary;

impl Codec for Dictionary {
    fn tag(&self) -> u8 {
        34
    }

    fn name(&self) -> &'static str {
        "dictionary"
    }

    fn decode(&self, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error> {
        let mut reader = Reader::new(bytes);
        let size = reader.size("size of a dictionary", count)?;
        let table = take_nested(&mut reader, size, depth)?;
        let indices = codec::take_nested(&mut reader, count, ValueType::U64, depth)?;
        reader.end("dictionary")?;
        let mut texts = Texts::with_capacity(count, 0);
        for index in indices {
            let text = usize::try_from(index).ok().and_then(|at| table.get(at));
            let text = text.ok_or_else(|| Error::value("position in a dictionary", index))?;
            let total = texts.bytes.len() + text.len();
            if total > CHUNK_TEXT_BYTES_MAX {
                return Err(Error::limit("bytes of strings", total, CHUNK_TEXT_BYTES_MAX));
            }
            texts.push(text);
        }
        Ok(texts)
    }
}
