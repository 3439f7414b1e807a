//! What does a chunk contain? Opening a chunk checks only its header. Checksums of records are checked before decoding.

use std::borrow::Cow;
use std::ops::Range;

use tacho_model::{Entry, Kind, TimeRange, TraceId};

use crate::bytes::Reader;
use crate::columns::Columns;
use crate::header::Front;
use crate::limits::CHUNK_HEADER_BYTES_MAX;
use crate::samples::SampleColumns;
use crate::times::Times;
use crate::values::ValueColumn;
use crate::{
    AttributeData, CallSummary, Error, ExecutionBlock, Filters, Header, entries, execution, group, samples,
    summary,
};

pub(crate) const MAGIC: &[u8; 4] = b"TCHK";
/// Version of chunks of entries, and of old chunks of samples and executions.
pub(crate) const VERSION: u8 = 1;
/// Version of chunks of samples.
pub(crate) const GROUP_VERSION: u8 = 2;
/// Version of old chunks of executions: version 1 with filters between header and columns.
pub(crate) const FILTER_VERSION: u8 = 3;
/// Version of old chunks of executions: version 3 with a summary between filters and columns.
const SUMMARY_VERSION: u8 = 4;
/// Version of chunks of executions: version 4 with a table of callers.
pub(crate) const CALLER_VERSION: u8 = 5;
/// Number of bytes before the header in all versions except 2.
pub(crate) const PREFIX_BYTES: usize = 20;
/// Number of bytes before the header in version 2, which has no checksum of the body.
pub(crate) const GROUP_PREFIX_BYTES: usize = 16;

/// A chunk with a decoded and checked header. The records are still encoded.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    header: Cow<'a, Header>,
    /// Only in version 3 and above.
    filters: &'a [u8],
    /// Only in version 4 and above.
    summary: &'a [u8],
    body: &'a [u8],
    /// Checksum of the columns. `None` in version 2, in which each column has its own checksum.
    body_checksum: Option<u32>,
}

/// A parsed chunk, before the size of its body is checked.
struct Opened<'a> {
    header: Header,
    /// The bytes after the header.
    body: &'a [u8],
    body_checksum: Option<u32>,
}

impl<'a> Chunk<'a> {
    /// Checks magic, version, header and the length of the body, but not its content.
    pub fn open(bytes: &'a [u8]) -> Result<Self, Error> {
        let Opened { header, body, body_checksum } = Opened::of(bytes, bytes.len())?;
        check_body_bytes(&header, body.len())?;
        Ok(Self::new(Cow::Owned(header), body, body_checksum))
    }

    /// Opens the header and the filters of a chunk, without records. `bytes` has at least [`Chunk::front_bytes`] bytes; `whole`
    /// is the length of the chunk.
    pub fn open_front(bytes: &'a [u8], whole: usize) -> Result<Self, Error> {
        let Opened { header, body, body_checksum } = Opened::of(bytes, whole)?;
        match body.get(..header.filter_bytes()) {
            Some(filters) => {
                Ok(Self { header: Cow::Owned(header), filters, summary: &[], body: &[], body_checksum })
            }
            None => Err(Error::Short { what: "filters", wanted: header.filter_bytes(), left: body.len() }),
        }
    }

    /// Length of prefix, header and filters, from the first bytes of a chunk. `None` if these bytes are damaged or lack a part of
    /// the header.
    pub fn front_bytes(front: &[u8]) -> Option<usize> {
        let Opened { header, body, .. } = Opened::of(front, u32::MAX as usize).ok()?;
        (front.len() - body.len()).checked_add(header.filter_bytes())
    }

    /// `rest` is everything after the header.
    fn new(header: Cow<'a, Header>, rest: &'a [u8], body_checksum: Option<u32>) -> Self {
        let (filters, rest) = rest.split_at_checked(header.filter_bytes()).unwrap_or((&[], rest));
        let (summary, body) = rest.split_at_checked(header.summary_bytes()).unwrap_or((&[], rest));
        Self { header, filters, summary, body, body_checksum }
    }

    /// Opens the header of a chunk. `bytes` has at least the header; `whole` is the length of the chunk.
    pub fn open_header(bytes: &[u8], whole: usize) -> Result<Header, Error> {
        Opened::of(bytes, whole).map(|opened| opened.header)
    }

    /// Byte ranges that [`Chunk::open_summary`] needs: the header, and the summary with the names that follow it. `front` is the
    /// start of the chunk. `None` if `front` is damaged or lacks a part of the header.
    pub fn summary_parts(front: &[u8]) -> Option<Vec<Range<usize>>> {
        let Opened { header, body, .. } = Opened::of(front, u32::MAX as usize).ok()?;
        let begin = front.len() - body.len();
        let summary = begin.checked_add(header.filter_bytes())?;
        let end = summary.checked_add(header.summary_bytes())?.checked_add(header.name_bytes())?;
        Some(vec![0..begin, summary..end])
    }

    /// The summary of a chunk, from its whole bytes or the concatenated ranges of [`Chunk::summary_parts`]. `whole` is the
    /// length of the chunk. `None` if it has no summary.
    pub fn open_summary(bytes: &[u8], whole: usize) -> Result<Option<CallSummary>, Error> {
        let Opened { header, body, .. } = Opened::of(bytes, whole)?;
        let before = if bytes.len() == whole { header.filter_bytes() } else { 0 };
        summary_of(&header, body.get(before..).unwrap_or_default())
    }

    /// Byte ranges of a chunk of samples: the header, and the columns that are needed for the samples of some members in
    /// `range`. The ranges are in order, with gaps between them. `front` is the start of the chunk. `None` if `front` is damaged
    /// or lacks a part of the header, or if the chunk has no checksum per column.
    pub fn parts(
        front: &[u8],
        range: TimeRange,
        is_wanted: impl Fn(u16) -> bool,
    ) -> Option<Vec<Range<usize>>> {
        let Opened { mut header, body, body_checksum: None } = Opened::of(front, u32::MAX as usize).ok()?
        else {
            return None;
        };
        let begin = front.len() - body.len();
        let mut parts: Vec<Range<usize>> = std::iter::once(0..begin).collect();
        for part in group::gather(&mut header, range, is_wanted) {
            let (from, to) = (part.start.checked_add(begin)?, part.end.checked_add(begin)?);
            match parts.last_mut().filter(|last| last.end == from) {
                Some(last) => last.end = to,
                None => parts.push(from..to),
            }
        }
        Some(parts)
    }

    /// Like [`Chunk::open`], from the concatenated ranges of [`Chunk::parts`]. `whole` is the length of the chunk.
    pub fn open_parts(
        bytes: &'a [u8],
        whole: usize,
        range: TimeRange,
        is_wanted: impl Fn(u16) -> bool,
    ) -> Result<Self, Error> {
        let Opened { mut header, body, body_checksum } = Opened::of(bytes, whole)?;
        let wanted = group::gather(&mut header, range, is_wanted).iter().map(Range::len).sum();
        check_length(wanted, body.len())?;
        Ok(Self::new(Cow::Owned(header), body, body_checksum))
    }

    /// Opens a chunk again from the same bytes, with its decoded header.
    pub fn reopen(bytes: &'a [u8], header: &'a Header) -> Result<Self, Error> {
        let (prefix, body_checksum) = Prefix::take(&mut Reader::new(bytes))?;
        let length = if body_checksum.is_some() { PREFIX_BYTES } else { GROUP_PREFIX_BYTES };
        let mut reader = Reader::new(bytes);
        reader.take(length.saturating_add(prefix.header_bytes), "header")?;
        Ok(Self::new(Cow::Borrowed(header), reader.rest(), body_checksum))
    }

    pub(crate) const fn has_body_checksum(&self) -> bool {
        self.body_checksum.is_some()
    }

    pub fn into_header(self) -> Header {
        self.header.into_owned()
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Times of the samples of all members. Fails if the chunk holds another kind of record, if the column of times is damaged,
    /// or if the times of a chunk of version 1 are not in strictly ascending order.
    pub fn times(&self) -> Result<Times, Error> {
        group::times(&self.header, self.body(Kind::Sample)?)
    }

    /// Values of one member, one per time. `None` if the chunk does not have the member. In version 2, reads only the
    /// bytes of this column.
    pub fn values(&self, member: u16) -> Result<Option<ValueColumn>, Error> {
        self.values_in(member, 0..self.header.count)
    }

    /// Like [`Chunk::values`], but only for the indexes `part`, clipped to the number of times. Faster than reading the
    /// whole column if the codec supports partial reads.
    pub fn values_in(&self, member: u16, part: Range<usize>) -> Result<Option<ValueColumn>, Error> {
        let body = self.body(Kind::Sample)?;
        let end = part.end.min(self.header.count);
        let part = part.start.min(end)..end;
        self.header.member(member).map(|info| group::values(&self.header, info, body, part)).transpose()
    }

    /// The samples of a chunk of version 1, with times in any order, or the samples of the first member of a group.
    pub fn samples(&self) -> Result<SampleColumns, Error> {
        samples::decode(&self.header, self.body(Kind::Sample)?)
    }

    /// The entries, in order.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        entries::decode(&self.header, self.columns(Kind::Entry)?)
    }

    /// The segments, in order.
    pub fn executions(&self) -> Result<ExecutionBlock, Error> {
        execution::decode(&self.header, self.columns(Kind::Execution)?)
    }

    /// The filters of trace ids and request ids. `None` in versions 1 and 2. Fails if the filters are damaged; the records may
    /// still be readable.
    pub fn filters(&self) -> Result<Option<Filters<'a>>, Error> {
        self.header.filters.as_ref().map(|info| Filters::open(info, self.filters)).transpose()
    }

    /// The summary. `None` if the chunk has none. Fails if the summary is damaged; the records may still be readable.
    pub fn summary(&self) -> Result<Option<CallSummary>, Error> {
        let names = self.body.get(..self.header.name_bytes()).unwrap_or_default();
        summary_of(&self.header, &[self.summary, names].concat())
    }

    /// The trace ids of the segments, in order. Decodes only the columns that determine them.
    pub fn execution_traces(&self) -> Result<Vec<TraceId>, Error> {
        execution::traces(&self.header, self.columns(Kind::Execution)?)
    }

    /// For each segment, whether it has an attribute with this key and a value that `is_value` accepts. Empty if no segment has
    /// the key. Decodes a few columns only.
    pub fn segments_with(
        &self,
        key: &str,
        is_value: &dyn Fn(&AttributeData) -> bool,
    ) -> Result<Vec<bool>, Error> {
        execution::with_value(&self.header, self.columns(Kind::Execution)?, key, is_value)
    }

    /// The segments for which `kept` is `true`, in order. If these are few, faster than [`Chunk::executions`].
    pub fn selected_executions(&self, kept: &[bool]) -> Result<ExecutionBlock, Error> {
        execution::decode_selected(&self.header, self.columns(Kind::Execution)?, kept)
    }

    fn columns(&self, wanted: Kind) -> Result<Columns<'_>, Error> {
        Ok(Columns::new(&self.header.columns, self.body(wanted)?))
    }

    /// The columns. In all versions except 2, verifies their checksum.
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

/// The bytes before the header.
struct Prefix {
    version: u8,
    kind: u8,
    reserved: [u8; 2],
    header_bytes: usize,
}

impl Prefix {
    /// Reads the prefix up to the checksum of the header. Also returns the checksum of the body, if there is one.
    fn take(reader: &mut Reader<'_>) -> Result<(Self, Option<u32>), Error> {
        let got = reader.array("magic")?;
        if got != *MAGIC {
            return Err(Error::Magic { got });
        }
        let [version, kind, reserved @ ..] = reader.array::<4>("version and kind")?;
        if version > CALLER_VERSION {
            return Err(Error::Version { got: version, known: CALLER_VERSION });
        }
        let header_bytes = u32::from_le_bytes(reader.array("header length")?);
        let of_group = version == GROUP_VERSION;
        let body_checksum = if of_group { None } else { Some(reader.array("body checksum")?) };
        let header_bytes = usize::try_from(header_bytes).unwrap_or(usize::MAX);
        Ok((Self { version, kind, reserved, header_bytes }, body_checksum.map(u32::from_le_bytes)))
    }
}

impl<'a> Opened<'a> {
    /// Reads and checks the header of a chunk of `whole` bytes. `bytes` must contain at least prefix and header.
    fn of(bytes: &'a [u8], whole: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let (Prefix { version, kind, reserved, header_bytes }, body_checksum) = Prefix::take(&mut reader)?;
        let before = bytes.get(..bytes.len() - reader.left()).unwrap_or_default();
        let expected = u32::from_le_bytes(reader.array("header checksum")?);
        if header_bytes > CHUNK_HEADER_BYTES_MAX {
            return Err(Error::limit("bytes of the header", header_bytes, CHUNK_HEADER_BYTES_MAX));
        }
        let fields = reader.take(header_bytes, "header")?;
        let got = crc32c::crc32c_append(crc32c::crc32c(before), fields);
        if got != expected {
            return Err(Error::HeaderChecksum { expected, got });
        }
        if version == 0 || reserved != [0; 2] {
            let [low, _] = reserved;
            return Err(Error::value("version or reserved field", version.max(low)));
        }
        let kind = Kind::from_byte(kind).ok_or_else(|| Error::value("kind of chunk", kind))?;
        let header = match (version, kind) {
            (GROUP_VERSION, Kind::Sample) => group::take_header(fields, whole)?,
            (GROUP_VERSION, _) => return Err(Error::value("kind of a group", kind as u8)),
            (FILTER_VERSION, Kind::Execution) => Header::take(kind, fields, whole, Front::Filters)?,
            (SUMMARY_VERSION, Kind::Execution) => Header::take(kind, fields, whole, Front::Summary)?,
            (CALLER_VERSION, Kind::Execution) => Header::take(kind, fields, whole, Front::Callers)?,
            (FILTER_VERSION | SUMMARY_VERSION | CALLER_VERSION, _) => {
                return Err(Error::value("kind of a chunk with filters", kind as u8));
            }
            _ => Header::take(kind, fields, whole, Front::Nothing)?,
        };
        Ok(Self { header, body: reader.rest(), body_checksum })
    }
}

fn check_body_bytes(header: &Header, got: usize) -> Result<(), Error> {
    let front = header.filter_bytes().saturating_add(header.summary_bytes());
    check_length(header.columns().fold(front, |sum, column| sum.saturating_add(column.bytes)), got)
}

/// Decodes the summary. `bytes` begins with the bytes of the summary; those of the columns of names follow.
fn summary_of(header: &Header, bytes: &[u8]) -> Result<Option<CallSummary>, Error> {
    let (Some(info), Some(tables)) = (header.summary.filter(|info| info.bytes > 0), header.tables) else {
        return Ok(None);
    };
    let wanted = info.bytes.saturating_add(header.name_bytes());
    let short = Error::Short { what: "summary", wanted, left: bytes.len() };
    let bytes = bytes.get(..wanted).ok_or(short)?;
    info.verify(bytes)?;
    let (summary, names) = bytes.split_at(info.bytes);
    let mut names = Columns::new(header.name_columns(), names);
    let operations = execution::operations(&mut names, &tables)?;
    let callers = execution::callers(&mut names, &tables)?;
    let summary = summary::decode(summary, operations.into(), callers.into())?;
    summary::check_header(&summary, header)?;
    Ok(Some(summary))
}

fn check_length(wanted: usize, got: usize) -> Result<(), Error> {
    if got < wanted {
        return Err(Error::Short { what: "body", wanted, left: got });
    }
    if got > wanted {
        return Err(Error::Trailing { what: "body", left: got - wanted });
    }
    Ok(())
}
