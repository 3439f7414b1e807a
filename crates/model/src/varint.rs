//! Unsigned LEB128: writes whole numbers in as few bytes as their size needs, and reads them from untrusted bytes.
//!
//! Chunks, the native protocol, protobuf and the journal all use this encoding. The crates for chunks, for ingest and for
//! the store each have a reader around [`read`], with their own errors.

/// A byte holds seven bits. A 64-bit number therefore has at most ten bytes, and the tenth byte holds one bit.
const BYTES_MAX: usize = 10;
/// The same as [`BYTES_MAX`], for 128 bits: the last byte holds two bits.
const WIDE_BYTES_MAX: usize = 19;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The bytes end within the number.
    Short,
    /// The number has more bits than the type, or more bytes than the type can need.
    Long,
}

/// Maps small differences of either sign to small numbers: 0, -1, 1, -2 become 0, 1, 2, 3.
pub const fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)).cast_unsigned()
}

pub const fn unzigzag(n: u64) -> i64 {
    (n >> 1).cast_signed() ^ -((n & 1).cast_signed())
}

pub const fn varint_bytes(n: u64) -> u32 {
    (u64::BITS - (n | 1).leading_zeros()).div_ceil(7)
}

#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    out.push(n.to_le_bytes()[0]);
}

/// The same as [`put_varint`], for a number of up to 128 bits.
pub fn put_varint128(out: &mut Vec<u8>, mut n: u128) {
    while n >= 0x80 {
        out.push(n.to_le_bytes()[0] | 0x80);
        n >>= 7;
    }
    out.push(n.to_le_bytes()[0]);
}

#[inline]
pub fn put_zigzag(out: &mut Vec<u8>, n: i64) {
    put_varint(out, zigzag(n));
}

/// Writes the length as a varint, then the bytes.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a number from the front of `bytes` and removes it. After an error `bytes` is unchanged.
#[inline]
pub fn read(bytes: &mut &[u8]) -> Result<u64, Flaw> {
    // Most numbers are one byte long.
    if let Some((byte, rest)) = bytes.split_first()
        && *byte < 0x80
    {
        *bytes = rest;
        return Ok(u64::from(*byte));
    }
    read_long(bytes)
}

/// [`read`] of input that does not start with a number of one byte. This function and [`read_wide`] have a loop each: a
/// common loop, which first finds the end of the number, takes twice as long.
fn read_long(bytes: &mut &[u8]) -> Result<u64, Flaw> {
    let mut n = 0u64;
    let mut rest = *bytes;
    for nth in 0..BYTES_MAX {
        let (byte, behind) = rest.split_first().ok_or(Flaw::Short)?;
        rest = behind;
        let bits = u64::from(*byte & 0x7f);
        if nth == BYTES_MAX - 1 && bits > 1 {
            break;
        }
        n |= bits << (7 * nth);
        if *byte < 0x80 {
            *bytes = rest;
            return Ok(n);
        }
    }
    Err(Flaw::Long)
}

/// The same as [`read`], for a number of up to 128 bits.
pub fn read_wide(bytes: &mut &[u8]) -> Result<u128, Flaw> {
    let mut n = 0u128;
    let mut rest = *bytes;
    for nth in 0..WIDE_BYTES_MAX {
        let (byte, behind) = rest.split_first().ok_or(Flaw::Short)?;
        rest = behind;
        let bits = u128::from(*byte & 0x7f);
        if nth == WIDE_BYTES_MAX - 1 && bits > 3 {
            break;
        }
        n |= bits << (7 * nth);
        if *byte < 0x80 {
            *bytes = rest;
            return Ok(n);
        }
    }
    Err(Flaw::Long)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_round_trip(unsigned in any::<u64>(), signed in any::<i64>(), wide in any::<u128>(), shift in 0u32..64) {
            let mut out = Vec::new();
            put_varint(&mut out, unsigned >> shift);
            prop_assert_eq!(out.len(), varint_bytes(unsigned >> shift) as usize);
            put_zigzag(&mut out, signed >> shift);
            put_varint128(&mut out, wide >> (2 * shift));
            put_bytes(&mut out, b"text");
            let mut rest = &out[..];
            prop_assert_eq!(read(&mut rest), Ok(unsigned >> shift));
            prop_assert_eq!(read(&mut rest).map(unzigzag), Ok(signed >> shift));
            prop_assert_eq!(read_wide(&mut rest), Ok(wide >> (2 * shift)));
            prop_assert_eq!(rest, b"\x04text");
        }

        #[test]
        fn both_widths_agree_on_any_bytes(input in proptest::collection::vec(any::<u8>(), 0..24)) {
            let (mut rest, mut wide_rest) = (&input[..], &input[..]);
            let (narrow, wide) = (read(&mut rest), read_wide(&mut wide_rest));
            match (narrow, wide) {
                (Ok(n), wide) => prop_assert_eq!((wide, rest), (Ok(u128::from(n)), wide_rest)),
                (Err(flaw), _) => prop_assert!(rest == input && (flaw == Flaw::Long || wide == Err(Flaw::Short))),
            }
        }
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let check = |bytes: &[u8], expect| assert_eq!(read(&mut &*bytes), expect, "{bytes:02x?}");
        check(&[0x80, 0x00], Ok(0));
        check(&[0xac, 0x02], Ok(300));
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Ok(u64::MAX));
        check(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], Err(Flaw::Long));
        check(&[0x80; 11], Err(Flaw::Long));
        check(&[0x80; 4], Err(Flaw::Short));
        check(&[], Err(Flaw::Short));
        assert_eq!(read_wide(&mut &[0x80; 40][..]), Err(Flaw::Long));
        assert_eq!(read_wide(&mut &[0x80; 18][..]), Err(Flaw::Short));
        let most = [vec![0xff; 18], vec![0x03]].concat();
        assert_eq!(read_wide(&mut &most[..]), Ok(u128::MAX));
        let more = [vec![0xff; 18], vec![0x04]].concat();
        assert_eq!(read_wide(&mut &more[..]), Err(Flaw::Long));
    }
}
