//! Lengths, followed by all bytes.

use tacho_model::ValueType;

use super::{Codec, Strings, Texts, put_lengths};
use crate::bytes::Reader;
use crate::codec::{Encoded, take_nested};
use crate::{Encoding, Error};

pub(super) const TAG: u8 = 32;

pub(super) struct Plain;

pub(super) fn encode(strings: Strings<'_>, depth: u8, encoding: &Encoding) -> Encoded {
    let mut bytes = vec![];
    put_lengths(&mut bytes, strings, depth, encoding);
    for string in strings {
        bytes.extend_from_slice(string);
    }
    Encoded { codec: TAG, bytes }
}

impl Codec for Plain {
    fn tag(&self) -> u8 {
        TAG
    }

    fn name(&self) -> &'static str {
        "plain"
    }

    /// The encoder compares the other codecs with the plain form, so it does not need the plain form again.
    fn encode(&self, _: Strings<'_>, _: u8, _: &Encoding) -> Option<Vec<u8>> {
        None
    }

    fn decode(&self, bytes: &[u8], count: usize, depth: u8) -> Result<Texts, Error> {
        let mut reader = Reader::new(bytes);
        let lengths = take_nested(&mut reader, count, ValueType::U64, depth)?;
        Texts::cut(reader.rest().to_vec(), &lengths)
    }
}
