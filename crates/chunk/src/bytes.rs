//! How are numbers and byte strings encoded, and decoded from untrusted bytes?

use tacho_model::ValueType;
use tacho_model::varint::{self, Flaw};
pub(crate) use tacho_model::varint::{put_varint, put_varint128, unzigzag, varint_bytes, zigzag};

use crate::Error;

pub(crate) fn put_zigzag128(out: &mut Vec<u8>, n: i128) {
    put_varint128(out, ((n << 1) ^ (n >> 127)).cast_unsigned());
}

pub(crate) fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    out.reserve(words.len() * 8);
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}

/// Writes one number as a varint. An f64 takes few bytes if its low bits are zero, as in whole numbers.
pub(crate) fn put_scalar(out: &mut Vec<u8>, word: u64, kind: ValueType) {
    put_varint(
        out,
        match kind {
            ValueType::U64 => word,
            ValueType::I64 => zigzag(word.cast_signed()),
            ValueType::F64 => word.swap_bytes(),
        },
    );
}

/// Reads from the front of a byte string. A read past the end returns an error.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    pub(crate) const fn left(&self) -> usize {
        self.left.len()
    }

    pub(crate) fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Error> {
        let Some((taken, left)) = self.left.split_at_checked(count) else {
            return Err(Error::Short { what, wanted: count, left: self.left.len() });
        };
        self.left = left;
        Ok(taken)
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.left)
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Error> {
        let Some((taken, left)) = self.left.split_first_chunk::<N>() else {
            return Err(Error::Short { what, wanted: N, left: self.left.len() });
        };
        self.left = left;
        Ok(*taken)
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, Error> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    #[inline]
    pub(crate) fn varint(&mut self, what: &'static str) -> Result<u64, Error> {
        varint::read(&mut self.left).map_err(|flaw| unread(flaw, what))
    }

    pub(crate) fn zigzag128(&mut self, what: &'static str) -> Result<i128, Error> {
        let wide = self.varint128(what)?;
        Ok((wide >> 1).cast_signed() ^ -((wide & 1).cast_signed()))
    }

    pub(crate) fn varint128(&mut self, what: &'static str) -> Result<u128, Error> {
        varint::read_wide(&mut self.left).map_err(|flaw| unread(flaw, what))
    }

    /// Reads a count or size. Checks its limit before memory is allocated for it.
    pub(crate) fn size(&mut self, what: &'static str, max: usize) -> Result<usize, Error> {
        let value = self.varint(what)?;
        match usize::try_from(value) {
            Ok(size) if size <= max => Ok(size),
            _ => Err(Error::Limit { what, value, max: max as u64 }),
        }
    }

    pub(crate) fn scalar(&mut self, kind: ValueType, what: &'static str) -> Result<u64, Error> {
        let n = self.varint(what)?;
        Ok(match kind {
            ValueType::U64 => n,
            ValueType::I64 => unzigzag(n).cast_unsigned(),
            ValueType::F64 => n.swap_bytes(),
        })
    }

    pub(crate) const fn end(&self, what: &'static str) -> Result<(), Error> {
        if self.left.is_empty() { Ok(()) } else { Err(Error::Trailing { what, left: self.left.len() }) }
    }
}

#[cold]
const fn unread(flaw: Flaw, what: &'static str) -> Error {
    match flaw {
        Flaw::Short => Error::Short { what, wanted: 1, left: 0 },
        Flaw::Long => Error::Varint { what },
    }
}

/// Reads `count` words. `bytes` must have exactly eight bytes per word.
pub(crate) fn words(bytes: &[u8], count: usize, what: &'static str) -> Result<Vec<u64>, Error> {
    let wanted = count.saturating_mul(8);
    if bytes.len() < wanted {
        return Err(Error::Short { what, wanted, left: bytes.len() });
    }
    if bytes.len() > wanted {
        return Err(Error::Trailing { what, left: bytes.len() - wanted });
    }
    Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// The lowest 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "takes the low half")]
pub(crate) const fn low_word(wide: u128) -> u64 {
    wide as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn scalars_are_read_as_written(word in any::<u64>(), wide in any::<i128>()) {
            for kind in [ValueType::F64, ValueType::I64, ValueType::U64] {
                let mut out = vec![];
                put_scalar(&mut out, word, kind);
                put_zigzag128(&mut out, wide);
                let mut reader = Reader::new(&out);
                prop_assert_eq!(reader.scalar(kind, "scalar"), Ok(word));
                prop_assert_eq!(reader.zigzag128("wide"), Ok(wide));
                prop_assert_eq!(reader.end("scalar"), Ok(()));
            }
        }
    }

    #[test]
    fn a_varint_without_end_is_refused() {
        assert_eq!(Reader::new(&[0x80; 40]).varint("n"), Err(Error::Varint { what: "n" }));
        assert_eq!(Reader::new(&[0x80; 4]).varint("n"), Err(Error::Short { what: "n", wanted: 1, left: 0 }));
    }
}
