//! What lies in these bytes? Opening checks the header only; the body is checked before it is decoded.

use tacho_model::{Entry, Kind};

use crate::bytes::Reader;
use crate::columns::Columns;
use crate::limits::CHUNK_HEADER_BYTES_MAX;
use crate::{Error, ExecutionBlock, Header, SampleColumns, entries, execution, samples};

pub(crate) const MAGIC: &[u8; 4] = b"TCHK";
/// The version that is written. All up to it are read.
pub(crate) const VERSION: u8 = 1;
/// Bytes before the header.
pub(crate) const PREFIX_BYTES: usize = 20;

/// A chunk whose header has been read and checked; the records are still encoded.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    header: Header,
    body: &'a [u8],
    body_checksum: u32,
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
        if version > VERSION {
            return Err(Error::Version { got: version, known: VERSION });
        }
        let header_bytes = u32::from_le_bytes(reader.array("header length")?);
        let body_checksum = u32::from_le_bytes(reader.array("body checksum")?);
        let expected = u32::from_le_bytes(reader.array("header checksum")?);
        let header_bytes = usize::try_from(header_bytes).unwrap_or(usize::MAX);
        if header_bytes > CHUNK_HEADER_BYTES_MAX {
            return Err(Error::limit("bytes of the header", header_bytes, CHUNK_HEADER_BYTES_MAX));
        }
        let fields = reader.take(header_bytes, "header")?;
        let before = bytes.get(..PREFIX_BYTES - 4).unwrap_or_default();
        let got = crc32c::crc32c_append(crc32c::crc32c(before), fields);
        if got != expected {
            return Err(Error::HeaderChecksum { expected, got });
        }
        let reserved = u16::from_le_bytes([reserved_low, reserved_high]);
        if version == 0 || reserved != 0 {
            return Err(Error::value("version or reserved field", version.max(reserved_low)));
        }
        let kind = Kind::from_byte(kind).ok_or(Error::value("kind of chunk", kind))?;
        let header = Header::take(kind, fields, bytes.len())?;
        let body = reader.rest();
        check_body_bytes(&header, body.len())?;
        Ok(Self { header, body, body_checksum })
    }

    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The samples in their order. Fails when the chunk holds something else or its body is damaged.
    pub fn samples(&self) -> Result<SampleColumns, Error> {
        samples::decode(&self.header, self.columns(Kind::Sample)?)
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
        if self.header.kind != wanted {
            return Err(Error::Kind { got: self.header.kind, wanted });
        }
        let got = crc32c::crc32c(self.body);
        if got != self.body_checksum {
            return Err(Error::BodyChecksum { expected: self.body_checksum, got });
        }
        Ok(Columns::new(&self.header.columns, self.body))
    }
}

fn check_body_bytes(header: &Header, got: usize) -> Result<(), Error> {
    let wanted = header.columns.iter().fold(0usize, |sum, column| sum.saturating_add(column.bytes));
    if got < wanted {
        return Err(Error::Short { what: "body", wanted, left: got });
    }
    if got > wanted {
        return Err(Error::Trailing { what: "body", left: got - wanted });
    }
    Ok(())
}
