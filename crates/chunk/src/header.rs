//! What can be said of a chunk without decoding it?

use tacho_model::{Kind, Timestamp, Value, ValueType};

use crate::bytes::{Reader, put_scalar, put_varint, put_zigzag128};
use crate::limits::{CHUNK_COLUMNS_MAX, CHUNK_EVENTS_MAX, CHUNK_RECORDS_MAX};
use crate::{Error, Role, codec, text};

/// What stands before the records, with statistics of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub kind: Kind,
    /// Records: samples, entries, or completed calls.
    pub count: usize,
    /// First moment that the chunk speaks of, ns.
    pub start: Timestamp,
    /// Last moment, inclusive, ns.
    pub end: Timestamp,
    /// Of samples only.
    pub stats: Option<Stats>,
    /// Of executions only.
    pub tables: Option<Tables>,
    pub columns: Vec<ColumnInfo>,
    /// Bytes of the whole chunk.
    pub bytes: usize,
}

/// Statistics of samples, in their own type. NaN takes no part in `min`, `max` and `sum`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Values that took part: all but NaN.
    pub count: usize,
    /// NaN when nothing took part.
    pub min: Value,
    pub max: Value,
    pub sum: Sum,
    /// Of the order in which the samples stand in the chunk.
    pub first: Value,
    pub last: Value,
}

/// A sum: exact for integers of either type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    F64(f64),
    Integer(i128),
}

impl Sum {
    #[expect(clippy::cast_precision_loss, reason = "asked for as f64")]
    pub const fn as_f64(self) -> f64 {
        match self {
            Self::F64(sum) => sum,
            Self::Integer(sum) => sum as f64,
        }
    }
}

/// How many rows and table entries a chunk of executions has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub segments: usize,
    pub operations: usize,
    pub threads: usize,
    pub keys: usize,
    pub shapes: usize,
    pub layouts: usize,
}

/// One column as the header lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    pub role: Role,
    /// Name of the codec, as in the format's tables.
    pub codec: &'static str,
    pub bytes: usize,
    pub(crate) tag: u8,
}

pub(crate) const fn to_word(value: Value) -> u64 {
    match value {
        Value::F64(v) => v.to_bits(),
        Value::I64(v) => v.cast_unsigned(),
        Value::U64(v) => v,
    }
}

pub(crate) const fn from_word(word: u64, kind: ValueType) -> Value {
    match kind {
        ValueType::F64 => Value::F64(f64::from_bits(word)),
        ValueType::I64 => Value::I64(word.cast_signed()),
        ValueType::U64 => Value::U64(word),
    }
}

impl Stats {
    fn put(&self, out: &mut Vec<u8>) {
        let kind = self.first.value_type();
        out.push(kind as u8);
        put_varint(out, self.count as u64);
        for value in [self.min, self.max, self.first, self.last] {
            put_scalar(out, to_word(value), kind);
        }
        match self.sum {
            Sum::F64(sum) => put_scalar(out, sum.to_bits(), ValueType::F64),
            Sum::Integer(sum) => put_zigzag128(out, sum),
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let byte = reader.byte("value type")?;
        let kind = ValueType::from_byte(byte).ok_or(Error::value("value type", byte))?;
        let count = reader.size("numbers", CHUNK_RECORDS_MAX)?;
        let mut scalar = |what| reader.scalar(kind, what).map(|word| from_word(word, kind));
        let (min, max, first, last) = (scalar("min")?, scalar("max")?, scalar("first")?, scalar("last")?);
        let sum = match kind {
            ValueType::F64 => Sum::F64(f64::from_bits(reader.scalar(kind, "sum")?)),
            ValueType::I64 | ValueType::U64 => Sum::Integer(reader.zigzag128("sum")?),
        };
        Ok(Self { count, min, max, sum, first, last })
    }
}

impl Tables {
    fn put(&self, out: &mut Vec<u8>) {
        for n in [self.segments, self.operations, self.threads, self.keys, self.shapes, self.layouts] {
            put_varint(out, n as u64);
        }
    }

    fn take(reader: &mut Reader<'_>) -> Result<Self, Error> {
        Ok(Self {
            segments: reader.size("segments", CHUNK_RECORDS_MAX)?,
            operations: reader.size("operations", CHUNK_RECORDS_MAX)?,
            threads: reader.size("threads", CHUNK_RECORDS_MAX)?,
            keys: reader.size("attribute keys", CHUNK_RECORDS_MAX)?,
            shapes: reader.size("shapes", CHUNK_RECORDS_MAX)?,
            layouts: reader.size("layouts", CHUNK_RECORDS_MAX)?,
        })
    }
}

impl ColumnInfo {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend([self.role as u8, self.tag]);
        put_varint(out, self.bytes as u64);
    }

    fn take(reader: &mut Reader<'_>, bytes_max: usize) -> Result<Self, Error> {
        let [role, tag] = reader.array("column")?;
        let role = Role::from_byte(role).ok_or(Error::value("role of a column", role))?;
        let codec = codec::name(tag).or_else(|| text::name(tag)).ok_or(Error::value("codec", tag))?;
        Ok(Self { role, codec, tag, bytes: reader.size("bytes of a column", bytes_max)? })
    }
}

impl Header {
    /// The header's bytes, from `count` to the last column.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.count as u64);
        out.extend_from_slice(&self.start.to_le_bytes());
        put_varint(out, self.end.wrapping_sub(self.start).cast_unsigned());
        if let Some(stats) = &self.stats {
            stats.put(out);
        }
        if let Some(tables) = &self.tables {
            tables.put(out);
        }
        put_varint(out, self.columns.len() as u64);
        for column in &self.columns {
            column.put(out);
        }
    }

    /// Reads what [`Self::put`] wrote. `bytes` is the length of the whole chunk.
    pub(crate) fn take(kind: Kind, fields: &[u8], bytes: usize) -> Result<Self, Error> {
        let mut reader = Reader::new(fields);
        let count_max = if kind == Kind::Execution { CHUNK_EVENTS_MAX } else { CHUNK_RECORDS_MAX };
        let count = reader.size("records", count_max)?;
        let start = Timestamp::from_le_bytes(reader.array("start")?);
        let span = reader.varint("span")?;
        let end = start.checked_add_unsigned(span).ok_or(Error::value("span", span))?;
        let stats = (kind == Kind::Sample).then(|| Stats::take(&mut reader)).transpose()?;
        let tables = (kind == Kind::Execution).then(|| Tables::take(&mut reader)).transpose()?;
        let listed = reader.size("columns", CHUNK_COLUMNS_MAX)?;
        let columns = (0..listed).map(|_| ColumnInfo::take(&mut reader, bytes)).collect::<Result<_, _>>()?;
        reader.end("header")?;
        Ok(Self { kind, count, start, end, stats, tables, columns, bytes })
    }
}
