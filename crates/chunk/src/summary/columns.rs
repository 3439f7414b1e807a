//! How are numbers of a summary written and read? As columns with their codec and length.

use tacho_model::ValueType;

use crate::bytes::{Reader, put_varint};
use crate::codec::{self, Encoded, Numbers};
use crate::text::{self, Texts};
use crate::{Encoding, Error};

pub(super) struct Writer<'a> {
    pub(super) encoding: &'a Encoding,
    pub(super) out: Vec<u8>,
}

impl Writer<'_> {
    pub(super) fn column(&mut self, words: impl Iterator<Item = u64>) {
        let words: Vec<u64> = words.collect();
        let encoded = codec::encode(Numbers::u64(&words), 0, self.encoding);
        self.put(&encoded);
    }

    pub(super) fn texts(&mut self, texts: text::Strings<'_>) {
        let encoded = text::encode(texts, 0, self.encoding);
        self.put(&encoded);
    }

    fn put(&mut self, encoded: &Encoded) {
        self.out.push(encoded.codec);
        put_varint(&mut self.out, encoded.bytes.len() as u64);
        self.out.extend_from_slice(&encoded.bytes);
    }
}

/// Reads columns, and names them in errors.
pub(super) struct Taker<'a> {
    pub(super) reader: Reader<'a>,
}

impl<'a> Taker<'a> {
    pub(super) fn column(&mut self, what: &'static str, count: usize) -> Result<Vec<u64>, Error> {
        let (tag, bytes) = self.encoded(what)?;
        let wrong = |source| Error::SummaryColumn { what, source: Box::new(source) };
        codec::decode(tag, bytes, count, ValueType::U64, 0).map_err(wrong)
    }

    pub(super) fn texts(&mut self, what: &'static str, count: usize) -> Result<Texts, Error> {
        let (tag, bytes) = self.encoded(what)?;
        let wrong = |source| Error::SummaryColumn { what, source: Box::new(source) };
        text::decode(tag, bytes, count, 0).map_err(wrong)
    }

    fn encoded(&mut self, what: &'static str) -> Result<(u8, &'a [u8]), Error> {
        let tag = self.reader.byte(what)?;
        let bytes = self.reader.size(what, self.reader.left())?;
        Ok((tag, self.reader.take(bytes, what)?))
    }

    /// Reads a column of numbers. Each must be at most `max`.
    pub(super) fn within(&mut self, what: &'static str, count: usize, max: u64) -> Result<Vec<u64>, Error> {
        let words = self.column(what, count)?;
        match words.iter().find(|word| **word > max) {
            Some(value) => Err(Error::Limit { what, value: *value, max }),
            None => Ok(words),
        }
    }

    /// Reads a column of indexes into a list of `of` items.
    pub(super) fn indexes(&mut self, what: &'static str, count: usize, of: usize) -> Result<Vec<u64>, Error> {
        let words = self.column(what, count)?;
        match words.iter().find(|word| **word >= of as u64) {
            Some(index) => {
                let source = Box::new(Error::Index { index: *index, count: of });
                Err(Error::SummaryColumn { what, source })
            }
            None => Ok(words),
        }
    }
}

pub(super) fn sum(what: &'static str, counts: impl IntoIterator<Item = u64>) -> Result<u64, Error> {
    counts.into_iter().try_fold(0u64, u64::checked_add).ok_or(Error::SummarySum { what })
}

pub(super) fn stated(what: &'static str, stated: u64, found: u64) -> Result<(), Error> {
    if stated == found {
        return Ok(());
    }
    Err(Error::Stated { what, stated: stated.to_string(), found: found.to_string() })
}
