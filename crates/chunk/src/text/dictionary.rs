//! Few distinct strings that repeat: methods, states, repeated log lines.

use foldhash::{HashMap, HashMapExt};
use tacho_model::ValueType;

use super::{Codec, Strings, Texts, put_nested, take_nested};
use crate::bytes::{Reader, put_varint};
use crate::codec;
use crate::codec::Numbers;
use crate::limits::CHUNK_TEXT_BYTES_MAX;
use crate::{Encoding, Error};

pub(super) struct Dictionary;

impl Codec for Dictionary {
    fn tag(&self) -> u8 {
        34
    }

    fn name(&self) -> &'static str {
        "dictionary"
    }

    fn encode(&self, strings: Strings<'_>, depth: u8, encoding: &Encoding) -> Option<Vec<u8>> {
        if depth > 0 {
            return None;
        }
        let mut table = vec![];
        let mut positions: HashMap<&[u8], u64> = HashMap::new();
        let mut indices = Vec::with_capacity(strings.len());
        for string in strings {
            indices.push(*positions.entry(string).or_insert_with(|| {
                table.push(*string);
                table.len() as u64 - 1
            }));
            if table.len() * 2 > strings.len() {
                return None;
            }
        }
        let mut out = vec![];
        put_varint(&mut out, table.len() as u64);
        put_nested(&mut out, &table, depth, encoding);
        codec::encode_nested(&mut out, Numbers::u64(&indices), depth, encoding);
        Some(out)
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
            let text = text.ok_or(Error::value("position in a dictionary", index))?;
            let total = texts.bytes.len() + text.len();
            if total > CHUNK_TEXT_BYTES_MAX {
                return Err(Error::limit("bytes of strings", total, CHUNK_TEXT_BYTES_MAX));
            }
            texts.push(text);
        }
        Ok(texts)
    }
}
