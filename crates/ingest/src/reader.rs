//! Reads the numbers and strings of an untrusted message.
//!
//! The decoders of the native protocol, of protobuf and of the page heads of Parquet use this reader. All three formats have
//! LEB128 varints and little-endian numbers of fixed width.

use tacho_model::varint;

/// An error in a body, and its position in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct Flaw {
    pub what: &'static str,
    pub at: usize,
}

/// Reads a body from front to back. Each reading method consumes the item in its name or returns a [`Flaw`].
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Position of the end of `rest` in the body, in bytes.
    end: usize,
}

impl<'a> Reader<'a> {
    pub const fn new(body: &'a [u8]) -> Self {
        Self { rest: body, end: body.len() }
    }

    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of remaining bytes. It limits every count that the input states.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub const fn at(&self) -> usize {
        self.end - self.rest.len()
    }

    pub const fn flaw(&self, what: &'static str) -> Flaw {
        Flaw { what, at: self.at() }
    }

    pub fn u8(&mut self) -> Result<u8, Flaw> {
        let (byte, rest) = self.rest.split_first().ok_or(self.flaw("end of input in a byte"))?;
        self.rest = rest;
        Ok(*byte)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (bytes, rest) =
            self.rest.split_first_chunk().ok_or(self.flaw("end of input in a fixed-width field"))?;
        self.rest = rest;
        Ok(*bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Flaw> {
        self.array().map(i64::from_le_bytes)
    }

    #[inline]
    pub fn varint(&mut self) -> Result<u64, Flaw> {
        varint::read(&mut self.rest).map_err(|flaw| match flaw {
            varint::Flaw::Short => self.flaw("end of input in a varint"),
            varint::Flaw::Long => self.flaw("varint of more than 64 bits"),
        })
    }

    pub fn varint_u32(&mut self) -> Result<u32, Flaw> {
        let flaw = self.flaw("number of more than 32 bits");
        u32::try_from(self.varint()?).map_err(|_| flaw)
    }

    pub fn zigzag(&mut self) -> Result<i64, Flaw> {
        self.varint().map(varint::unzigzag)
    }

    /// Reads a length or a count. Each counted item has at least one byte, so the remaining bytes limit the number.
    pub fn length(&mut self) -> Result<usize, Flaw> {
        let flaw = self.flaw("length beyond the end of the input");
        let length = usize::try_from(self.varint()?).map_err(|_| flaw)?;
        if length <= self.rest.len() { Ok(length) } else { Err(flaw) }
    }

    /// Reads a `varint` length, then as many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Flaw> {
        let length = self.length()?;
        let flaw = self.flaw("length beyond the end of the input");
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(flaw)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads `length` bytes that have no length before them.
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Flaw> {
        let flaw = self.flaw("end of input in a fixed-width field");
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(flaw)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub fn string(&mut self) -> Result<&'a str, Flaw> {
        let flaw = self.flaw("string that is not UTF-8");
        std::str::from_utf8(self.bytes()?).map_err(|_| flaw)
    }

    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Checks that the input ends here. A record must end at its stated length.
    pub const fn finish(&self) -> Result<(), Flaw> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.flaw("bytes left over")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tacho_model::varint::{put_varint, put_zigzag};

    fn check(bytes: &[u8], expect: Result<u64, &str>) {
        let got = Reader::new(bytes).varint();
        assert_eq!(got.map_err(|flaw| flaw.to_string()), expect.map_err(str::to_owned), "{bytes:02x?}");
    }

    #[test]
    fn varints_hold_at_most_64_bits() {
        check(&[0], Ok(0));
        check(&[0x80, 0x00], Ok(0));
        check(&[0xac, 0x02], Ok(300));
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Ok(u64::MAX));
        check(
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            Err("varint of more than 64 bits at byte 0"),
        );
        check(&[0x80; 11], Err("varint of more than 64 bits at byte 0"));
        check(&[0x80], Err("end of input in a varint at byte 0"));
        check(&[], Err("end of input in a varint at byte 0"));
    }

    #[test]
    fn a_length_beyond_the_input_is_refused() {
        assert_eq!(Reader::new(&[2, 1, 2]).bytes(), Ok(&[1, 2][..]));
        let flaw = Reader::new(&[3, 1, 2]).bytes().unwrap_err();
        assert_eq!(flaw.to_string(), "length beyond the end of the input at byte 0");
    }

    proptest! {
        #[test]
        fn numbers_round_trip(unsigned in any::<u64>(), signed in any::<i64>(), shift in 0u32..64) {
            let mut out = Vec::new();
            put_varint(&mut out, unsigned >> shift);
            put_zigzag(&mut out, signed >> shift);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.varint(), Ok(unsigned >> shift));
            prop_assert_eq!(reader.zigzag(), Ok(signed >> shift));
            prop_assert_eq!(reader.finish(), Ok(()));
        }
    }
}
