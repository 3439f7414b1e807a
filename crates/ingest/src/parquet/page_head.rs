//! Which sizes and counts does a page state in its head and in its body?
//!
//! ```text
//!   page    head (Thrift's compact protocol), then as many bytes as the head states, compressed or not
//!   deltas  values per block, miniblocks per block, number of values, first value; then blocks (DELTA_BINARY_PACKED)
//! ```
//! The crate `parquet` allocates memory according to these numbers before it reads the data. Therefore `pages.rs`
//! checks the numbers first, with the functions of this file.

use crate::reader::{Flaw, Reader};

/// Limit on the depth of nested structures in a head.
const DEPTH_MAX: usize = 4;
/// Limit on the values of a block of deltas. Writers use 128 to 4,096 values.
const DELTA_BLOCK_MAX: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Data,
    Dictionary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Length of the head itself.
    pub bytes: usize,
    pub kind: Kind,
    /// Bytes of the page after the head, as stored and when decompressed.
    pub packed: usize,
    pub unpacked: usize,
    pub values: usize,
}

/// Types of Thrift's compact protocol.
mod thrift {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const STRUCT: u8 = 12;
}

impl Head {
    /// `bytes` starts with the head.
    pub fn parse(bytes: &[u8]) -> Result<Self, Flaw> {
        let mut reader = Reader::new(bytes);
        let (mut kind, mut unpacked, mut packed, mut values) = (None, None, None, None);
        fields(&mut reader, |reader, field, of| match field {
            1 => once(reader, of, &mut kind),
            2 => once(reader, of, &mut unpacked),
            3 => once(reader, of, &mut packed),
            // Data, dictionary, and data of version 2. In all three, the first field is the number of values.
            5 | 7 | 8 if of == thrift::STRUCT => fields(reader, |reader, field, of| match field {
                1 => once(reader, of, &mut values),
                _ => skip(reader, of, DEPTH_MAX),
            }),
            _ => skip(reader, of, DEPTH_MAX),
        })?;
        let flaw = |what| reader.flaw(what);
        let size = |number: Option<i64>| {
            let size = number.and_then(|number| i32::try_from(number).ok());
            size.and_then(|size| usize::try_from(size).ok()).ok_or(flaw("page without its sizes"))
        };
        let kind = match kind {
            Some(0 | 3) => Kind::Data,
            Some(2) => Kind::Dictionary,
            _ => return Err(flaw("page that is neither data nor a dictionary")),
        };
        let [packed, unpacked, values] = [size(packed)?, size(unpacked)?, size(values)?];
        Ok(Self { bytes: reader.at(), kind, packed, unpacked, values })
    }
}

/// Calls `each` for every field of a structure, with its number and type.
fn fields<'a>(
    reader: &mut Reader<'a>,
    mut each: impl FnMut(&mut Reader<'a>, i64, u8) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    let mut field = 0i64;
    loop {
        let head = reader.u8()?;
        if head == 0 {
            return Ok(());
        }
        field = match head >> 4 {
            0 => reader.zigzag()?,
            more => field.saturating_add(more.into()),
        };
        each(reader, field, head & 0x0f)?;
    }
}

/// Reads a number of the head. A repeated number is refused: readers of Parquet disagree about which of the two is valid.
fn once(reader: &mut Reader<'_>, of: u8, number: &mut Option<i64>) -> Result<(), Flaw> {
    let flaw = reader.flaw("page head with an invalid or repeated number");
    let read = if (thrift::I16..=thrift::I64).contains(&of) { reader.zigzag()? } else { return Err(flaw) };
    if number.replace(read).is_some() { Err(flaw) } else { Ok(()) }
}

fn skip(reader: &mut Reader<'_>, of: u8, depth: usize) -> Result<(), Flaw> {
    let flaw = reader.flaw("page head with an unknown type");
    let Some(depth) = depth.checked_sub(1) else { return Err(flaw) };
    match of {
        thrift::TRUE | thrift::FALSE => Ok(()),
        thrift::BYTE => reader.u8().map(drop),
        thrift::I16..=thrift::I64 => reader.varint().map(drop),
        thrift::DOUBLE => reader.take(8).map(drop),
        thrift::BINARY => reader.bytes().map(drop),
        thrift::LIST | thrift::SET => {
            let head = reader.u8()?;
            let count = if head >> 4 == 15 { reader.varint()? } else { u64::from(head >> 4) };
            // Inside a list, a boolean takes a byte.
            let of = if head & 0x0f <= thrift::FALSE { thrift::BYTE } else { head & 0x0f };
            (0..count).try_for_each(|_| skip(reader, of, depth))
        }
        thrift::STRUCT => fields(reader, |reader, _, of| skip(reader, of, depth)),
        _ => Err(flaw),
    }
}

/// Skips one list of deltas. The list may have at most `values_max` values.
///
/// # Errors
/// If the list states more values, or is malformed.
pub fn pass_deltas(reader: &mut Reader<'_>, values_max: usize) -> Result<(), Flaw> {
    let flaw = reader.flaw("malformed lengths of texts");
    let (block, miniblocks, count) = (reader.varint()?, reader.varint()?, reader.varint()?);
    reader.varint()?;
    let fits = block > 0
        && block.is_multiple_of(128)
        && block <= DELTA_BLOCK_MAX
        && miniblocks > 0
        && block.is_multiple_of(miniblocks)
        && (block / miniblocks).is_multiple_of(32)
        && count <= values_max as u64;
    if !fits {
        return Err(flaw);
    }
    let of_miniblock = block / miniblocks;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        reader.varint()?;
        let widths = reader.take(usize::try_from(miniblocks).map_err(|_| flaw)?)?;
        let mut bytes = 0;
        for width in widths {
            // After the last value, the widths of the remaining miniblocks have no meaning.
            bytes += if left > 0 { u64::from(*width) * of_miniblock / 8 } else { 0 };
            left = left.saturating_sub(of_miniblock);
        }
        reader.take(usize::try_from(bytes).map_err(|_| flaw)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_to_their_last_byte() {
        // Type, sizes, checksum; then the data header: count, encodings, and statistics with a text.
        let data = [
            0x15, 0, 0x15, 200, 1, 0x15, 20, 0x15, 1, 0x1c, 0x15, 14, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18,
            2, 7, 7, 0, 0, 0, 9,
        ];
        let expect = Head { bytes: data.len() - 1, kind: Kind::Data, packed: 10, unpacked: 100, values: 7 };
        assert_eq!(Head::parse(&data), Ok(expect));
        for end in 0..data.len() - 1 {
            assert!(Head::parse(&data[..end]).is_err(), "{end}");
        }
        let dictionary = [0x15, 4, 0x15, 8, 0x15, 6, 0x4c, 0x15, 2, 0x15, 0, 0x12, 0, 0];
        let expect = Head { bytes: 14, kind: Kind::Dictionary, packed: 3, unpacked: 4, values: 1 };
        assert_eq!(Head::parse(&dictionary), Ok(expect));
        // A repeated size, a negative size, a map, an index page, a text without an end.
        for wrong in [
            &[0x15, 0, 0x15, 8, 0x05, 4, 8][..],
            &[0x15, 0, 0x15, 7, 0x15, 6, 0x2c, 0x15, 2, 0, 0],
            &[0x15, 0, 0x1b, 0, 0],
            &[0x15, 2, 0x15, 8, 0x15, 6, 0x2c, 0x15, 2, 0, 0],
            &[0x18, 0xff, 0xff, 0xff, 0xff, 0x0f],
        ] {
            assert!(Head::parse(wrong).is_err(), "{wrong:02x?}");
        }
    }

    #[test]
    fn more_deltas_than_values_of_the_page_are_refused() {
        let pass = |bytes: &[u8], values| {
            let mut reader = Reader::new(bytes);
            pass_deltas(&mut reader, values).map(|()| reader.at())
        };
        // Blocks of 128 values with 4 miniblocks, three values: 3 bits each in the first miniblock.
        let three = [0x80, 1, 4, 3, 2, 0, 3, 9, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xaa];
        assert_eq!(pass(&three, 3), Ok(three.len() - 1));
        assert!(pass(&three, 2).is_err() && pass(&three[..20], 3).is_err());
        assert_eq!(pass(&[0x80, 1, 4, 1, 2, 0xaa], 1), Ok(5), "one value is in the head");
        assert!(pass(&[0x80, 1, 0, 3, 2], 3).is_err() && pass(&[0, 1, 3, 2], 3).is_err());
    }
}
