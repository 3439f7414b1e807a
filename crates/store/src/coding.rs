//! Reads and writes the varints, zigzags and strings of `docs/format/wire.md` for the journal and
//! for rows.

use tacho_model::varint;
pub use tacho_model::varint::{put_bytes as put_string, put_varint, put_zigzag};

/// Bytes could not be read as `what`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed {what}, {left} bytes before the end")]
pub struct Malformed {
    pub what: &'static str,
    pub left: usize,
}

#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub const fn malformed(&self, what: &'static str) -> Malformed {
        Malformed { what, left: self.rest.len() }
    }

    pub fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(self.malformed(what))?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(self.malformed(what))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    #[inline]
    pub fn varint(&mut self, what: &'static str) -> Result<u64, Malformed> {
        varint::read(&mut self.rest).map_err(|_| self.malformed(what))
    }

    pub fn varint_u32(&mut self, what: &'static str) -> Result<u32, Malformed> {
        u32::try_from(self.varint(what)?).map_err(|_| self.malformed(what))
    }

    pub fn zigzag(&mut self, what: &'static str) -> Result<i64, Malformed> {
        self.varint(what).map(varint::unzigzag)
    }

    pub fn string(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let length = self.varint(what)?;
        let length = usize::try_from(length).map_err(|_| self.malformed(what))?;
        self.bytes(length, what)
    }

    pub fn text(&mut self, what: &'static str) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.string(what)?).map_err(|_| self.malformed(what))
    }

    /// Reads a number that is at most `max`.
    pub fn count_up_to(&mut self, max: usize, what: &'static str) -> Result<usize, Malformed> {
        let count = usize::try_from(self.varint(what)?).map_err(|_| self.malformed(what))?;
        if count > max { Err(self.malformed(what)) } else { Ok(count) }
    }

    /// Reads the number of items that follow, each of at least `item_bytes`. Refuses a number that the remaining bytes cannot
    /// hold.
    pub fn count(&mut self, item_bytes: usize, what: &'static str) -> Result<usize, Malformed> {
        let count = usize::try_from(self.varint(what)?).map_err(|_| self.malformed(what))?;
        if count > self.rest.len() / item_bytes { Err(self.malformed(what)) } else { Ok(count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        let mut out = Vec::new();
        let unsigned = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let signed = [0, -1, 1, i64::MIN, i64::MAX];
        unsigned.iter().for_each(|n| put_varint(&mut out, *n));
        signed.iter().for_each(|n| put_zigzag(&mut out, *n));
        let mut cursor = Cursor::new(&out);
        unsigned.iter().for_each(|n| assert_eq!(cursor.varint("n"), Ok(*n)));
        signed.iter().for_each(|n| assert_eq!(cursor.zigzag("n"), Ok(*n)));
        assert!(cursor.is_empty());
    }

    #[test]
    fn hostile_bytes_are_refused() {
        assert!(Cursor::new(&[0xff; 10]).varint("n").is_err());
        assert!(Cursor::new(&[0x80]).varint("n").is_err());
        assert!(Cursor::new(&[5, b'a']).string("s").is_err());
        assert!(Cursor::new(&[200, 1, 0]).count(1, "c").is_err());
        assert!(Cursor::new(&[1, 0xff]).text("t").is_err());
    }
}
