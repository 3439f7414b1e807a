//! What lies in these bytes? Opening checks the header only; what lies behind it is checked before it is decoded.

use std::ops::Range;

use tacho_model::{Entry, Kind};

use crate::bytes::Reader;
use crate::columns::Columns;
use crate::limits::CHUNK_HEADER_BYTES_MAX;
use crate::samples::SampleColumns;
use crate::times::Times;
use crate::values::ValueColumn;
use crate::{Error, ExecutionBlock, Header, entries, execution, group, samples};

pub(crate) const MAGIC: &[u8; 4] = b"TCHK";
/// The version of entries and executions; samples of old have it too.
pub(crate) const VERSION: u8 = 1;
/// The version of samples. All up to it are read.
pub(crate) const GROUP_VERSION: u8 = 2;
/// Bytes before the header in version 1, and in version 2, which has no checksum of the body.
pub(crate) const PREFIX_BYTES: usize = 20;
pub(crate) const GROUP_PREFIX_BYTES: usize = 16;

/// A chunk whose header has been read and checked; the records are still encoded.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    header: Header,
    body: &'a [u8],
    /// In version 1; columns of version 2 have one each.
    body_checksum: Option<u32>,
}

impl<'a> Chunk<'a> {
    /// Checks magic, version and header, not the body.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let got = reader.array("magic")?;
        if got != *MAGIC {
            return Err(Error::Magic { got });
        }
        let [version, kind, reserved_low, reserved_high] = reader.array("version and kind")?;
        if version > GROUP_VERSION {
            return Err(Error::Version { got: version, known: GROUP_VERSION });
        }
        let header_bytes = u32::from_le_bytes(reader.array("header length")?);
        let of_group = version == GROUP_VERSION;
        let body_checksum = if of_group { None } else { Some(reader.array("body checksum")?) };
        let body_checksum = body_checksum.map(u32::from_le_bytes);
        let prefix_bytes = if of_group { GROUP_PREFIX_BYTES } else { PREFIX_BYTES };
        let expected = u32::from_le_bytes(reader.array("header checksum")?);
        let header_bytes = usize::try_from(header_bytes).unwrap_or(usize::MAX);
        if header_bytes > CHUNK_HEADER_BYTES_MAX {
            return Err(Error::limit("bytes of the header", header_bytes, CHUNK_HEADER_BYTES_MAX));
        }
        let fields = reader.take(header_bytes, "header")?;
        let before = bytes.get(..prefix_bytes - 4).unwrap_or_default();
        let got = crc32c::crc32c_append(crc32c::crc32c(before), fields);
        if got != expected {
            return Err(Error::HeaderChecksum { expected, got });
        }
        let reserved = u16::from_le_bytes([reserved_low, reserved_high]);
        if version == 0 || reserved != 0 {
            return Err(Error::value("version or reserved field", version.max(reserved_low)));
        }
        let kind = Kind::from_byte(kind).ok_or(Error::value("kind of chunk", kind))?;
        let header = match (of_group, kind) {
            (false, _) => Header::take(kind, fields, bytes.len())?,
            (true, Kind::Sample) => group::take_header(fields, bytes.len())?,
            (true, Kind::Entry | Kind::Execution) => return Err(Error::value("kind of a group", kind as u8)),
        };
        let body = reader.rest();
        check_body_bytes(&header, body.len())?;
        Ok(Self { header, body, body_checksum })
    }

    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Times of all members' samples. Fails when the chunk holds something else or the column is damaged.
    pub fn times(&self) -> Result<Times, Error> {
        group::times(&self.header, self.body(Kind::Sample)?)
    }

    /// Values of one member, as many as there are times; `None` when it has none here. Only its bytes are looked at.
    pub fn values(&self, member: u16) -> Result<Option<ValueColumn>, Error> {
        self.values_in(member, 0..self.header.count)
    }

    /// As [`Chunk::values`], those at the places of `part`, which is cut to the times that there are. Takes less time than all of
    /// them where the codec can begin and end within a column.
    pub fn values_in(&self, member: u16, part: Range<usize>) -> Result<Option<ValueColumn>, Error> {
        let body = self.body(Kind::Sample)?;
        let end = part.end.min(self.header.count);
        let part = part.start.min(end)..end;
        self.header.member(member).map(|info| group::values(&self.header, info, body, part)).transpose()
    }

    /// The samples of a chunk of version 1, whose times may be in any order, or of a group's first member.
    pub fn samples(&self) -> Result<SampleColumns, Error> {
        samples::decode(&self.header, self.body(Kind::Sample)?)
    }

    /// The entries in their order.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        entries::decode(&self.header, self.columns(Kind::Entry)?)
    }

    /// The segments in their order.
    pub fn executions(&self) -> Result<ExecutionBlock, Error> {
        execution::decode(&self.header, self.columns(Kind::Execution)?)
    }

    fn columns(&self, wanted: Kind) -> Result<Columns<'_>, Error> {
        Ok(Columns::new(&self.header.columns, self.body(wanted)?))
    }

    /// The body; of version 1 it is checked as a whole.
    fn body(&self, wanted: Kind) -> Result<&'a [u8], Error> {
        if self.header.kind != wanted {
            return Err(Error::Kind { got: self.header.kind, wanted });
        }
        if let Some(expected) = self.body_checksum {
            let got = crc32c::crc32c(self.body);
            if got != expected {
                return Err(Error::BodyChecksum { expected, got });
            }
        }
        Ok(self.body)
    }
}

fn check_body_bytes(header: &Header, got: usize) -> Result<(), Error> {
    let wanted = header.columns().fold(0usize, |sum, column| sum.saturating_add(column.bytes));
    if got < wanted {
        return Err(Error::Short { what: "body", wanted, left: got });
    }
    if got > wanted {
        return Err(Error::Trailing { what: "body", left: got - wanted });
    }
    Ok(())
}
