//! Why could bytes not be decoded? Most messages include the wrong value or the place. A retry never helps.

use tacho_model::{Kind, SegmentError};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not a chunk: begins with {got:02x?}, expected \"TCHK\"")]
    Magic { got: [u8; 4] },
    #[error("chunk version {got} is newer than this program knows (at most {known})")]
    Version { got: u8, known: u8 },
    #[error("chunk header checksum mismatch: expected {expected:#010x}, got {got:#010x}")]
    HeaderChecksum { expected: u32, got: u32 },
    #[error("chunk checksum mismatch: expected {expected:#010x}, got {got:#010x}")]
    BodyChecksum { expected: u32, got: u32 },
    #[error("checksum mismatch of the filters: expected {expected:#010x}, got {got:#010x}")]
    FilterChecksum { expected: u32, got: u32 },
    #[error("the filter of {what} ids denies {id}, which a segment has")]
    FilterLacks { what: &'static str, id: String },
    #[error("checksum mismatch of the summary: expected {expected:#010x}, got {got:#010x}")]
    SummaryChecksum { expected: u32, got: u32 },
    #[error("{what} of the summary: {source}")]
    SummaryColumn { what: &'static str, source: Box<Error> },
    #[error("summary version {got} is newer than this program knows (at most {known})")]
    SummaryVersion { got: u8, known: u8 },
    #[error("the sum of {what} in the summary is above 2^64 - 1")]
    SummarySum { what: &'static str },
    #[error("slot {slot} of the summary is outside of the chunk, which has slots {first} to {last}")]
    SummarySlot { slot: i64, first: i64, last: i64 },
    #[error("{what} of the summary are not in order")]
    SummaryDisordered { what: &'static str },
    #[error("the summary has other {what} than the calls of the chunk")]
    SummaryDiffers { what: &'static str },
    #[error("checksum mismatch: expected {expected:#010x}, got {got:#010x}")]
    ColumnChecksum { expected: u32, got: u32 },
    #[error("chunk holds {} records, expected {}", got.name(), wanted.name())]
    Kind { got: Kind, wanted: Kind },
    #[error("{what}: {wanted} bytes are needed, {left} are left")]
    Short { what: &'static str, wanted: usize, left: usize },
    #[error("the column is missing")]
    Absent,
    #[error("{what}: {left} trailing bytes")]
    Trailing { what: &'static str, left: usize },
    #[error("{what} is {value}, at most {max} is allowed")]
    Limit { what: &'static str, value: u64, max: u64 },
    #[error("the index {index} is invalid: {count} values exist")]
    Index { index: u64, count: usize },
    #[error("{what} is {value}, which is invalid")]
    Value { what: &'static str, value: u64 },
    #[error("{what} has more bytes than a number can have")]
    Varint { what: &'static str },
    #[error("the times do not ascend from the start to the end of the chunk")]
    Disordered,
    #[error("{what} is {found}, the header states {stated}")]
    Stated { what: &'static str, stated: String, found: String },
    #[error("{what} is not UTF-8")]
    Utf8 { what: &'static str },
    #[error("{codec} data is damaged: {reason}")]
    Codec { codec: &'static str, reason: String },
    #[error("column {number} ({role}): {source}")]
    Column { number: usize, role: &'static str, source: Box<Error> },
    #[error("shape {shape}: {source}")]
    Shape { shape: usize, source: SegmentError },
    #[error("segment {row}: {source}")]
    Segment { row: usize, source: SegmentError },
}

impl Error {
    /// The error for a `value` that is above `max`. `what` is the name of the value.
    pub(crate) fn limit(what: &'static str, value: usize, max: usize) -> Self {
        Self::Limit { what, value: value as u64, max: max as u64 }
    }

    pub(crate) fn value(what: &'static str, value: impl Into<u64>) -> Self {
        Self::Value { what, value: value.into() }
    }
}
