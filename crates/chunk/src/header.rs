//! What is known about a chunk before its records are decoded?

use tacho_model::{Kind, Timestamp, ValueType};

use crate::bytes::{Reader, put_varint};
use crate::limits::{CHUNK_COLUMNS_MAX, CHUNK_EVENTS_MAX, CHUNK_RECORDS_MAX};
use crate::stats::{Stats, Sum, from_word};
use crate::{Error, FilterInfo, Loss, Role, SummaryInfo, codec, text};

/// The part of a chunk before the records. For samples, it includes their statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    pub kind: Kind,
    /// Number of records: samples per member, entries, or completed calls.
    pub count: usize,
    /// First time in the chunk, ns.
    pub start: Timestamp,
    /// Last time in the chunk, inclusive, ns.
    pub end: Timestamp,
    /// Largest difference between the stored and the recorded time of a sample, ns; 0 if all times are exact.
    pub time_error_max: u64,
    /// Columns of values, ordered by member. Only for samples.
    pub members: Vec<MemberInfo>,
    /// Only for executions.
    pub tables: Option<Tables>,
    /// Length of the whole chunk, bytes.
    pub bytes: usize,
    /// Only for executions of version 3 and above.
    pub filters: Option<FilterInfo>,
    /// Only for executions of version 4 and above.
    pub summary: Option<SummaryInfo>,
    /// Only for samples.
    pub(crate) times: Option<TimesForm>,
    /// For entries and executions.
    pub(crate) columns: Vec<ColumnInfo>,
}

/// Description of the values of one member, as stored in the header.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberInfo {
    /// Index of the series in its group.
    pub member: u16,
    pub value_type: ValueType,
    /// `count` is the number of values that are not NaN.
    pub stats: Stats,
    /// Name of the codec, as in the tables of the format page.
    pub codec: &'static str,
    /// Size in the body, bytes; 0 if the header contains the value instead, because all values are equal.
    pub bytes: usize,
    /// The loss of the values; `None` if they are lossless.
    pub loss: Option<Loss>,
    pub(crate) form: MemberForm,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MemberForm {
    /// All values are equal; these are their bits.
    Uniform(u64),
    Stored(Stored),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimesForm {
    Regular { step: i64 },
    Stored(Stored),
}

/// A column of numbers in the body of a chunk of samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) tag: u8,
    pub(crate) codec: &'static str,
    /// Position in the body.
    pub(crate) from: usize,
    pub(crate) bytes: usize,
    /// `None` in version 1, which has one checksum for the body.
    pub(crate) checksum: Option<u32>,
}

/// Number of columns with the operations: the first columns of executions.
const OPERATION_COLUMNS: usize = 2;
/// Number of columns with the callers, which follow the columns with the operations.
const CALLER_COLUMNS: usize = 4;

/// What a version of chunks of executions has. Each version has the parts of the versions before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Front {
    /// Version 1: no parts between header and columns.
    Nothing,
    /// Version 3: filters.
    Filters,
    /// Version 4: a summary.
    Summary,
    /// Version 5: a table of callers.
    Callers,
}

/// Number of rows and table entries in a chunk of executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub segments: usize,
    pub operations: usize,
    pub threads: usize,
    pub keys: usize,
    pub shapes: usize,
    pub layouts: usize,
    /// 0 in versions below 5.
    pub callers: usize,
}

/// One column as listed in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnInfo {
    pub role: Role,
    /// Name of the codec, as in the tables of the format page.
    pub codec: &'static str,
    pub bytes: usize,
    pub(crate) tag: u8,
}

impl MemberInfo {
    pub(crate) const fn new(
        member: u16,
        value_type: ValueType,
        stats: Stats,
        form: MemberForm,
        loss: Option<Loss>,
    ) -> Self {
        let (codec, bytes) = match &form {
            MemberForm::Uniform(_) => ("constant", 0),
            MemberForm::Stored(stored) => (stored.codec, stored.bytes),
        };
        Self { member, value_type, stats, codec, bytes, loss, form }
    }

    /// Upper bound of the difference between a stored and the recorded (or aggregated) value, in the unit of the values; 0
    /// if all values are exact.
    pub fn value_error_max(&self) -> f64 {
        let largest = self.stats.min.as_f64().abs().max(self.stats.max.as_f64().abs());
        self.loss.map_or(0.0, |loss| loss.error_max(largest))
    }
}

/// Decodes statistics as stored in version 1.
fn take_stats(reader: &mut Reader<'_>) -> Result<(ValueType, Stats), Error> {
    let byte = reader.byte("value type")?;
    let kind = ValueType::from_byte(byte).ok_or_else(|| Error::value("value type", byte))?;
    let count = reader.size("numbers", CHUNK_RECORDS_MAX)?;
    let mut scalar = |what| reader.scalar(kind, what).map(|word| from_word(word, kind));
    let (min, max, first, last) = (scalar("min")?, scalar("max")?, scalar("first")?, scalar("last")?);
    let sum = match kind {
        ValueType::F64 => Sum::F64(f64::from_bits(reader.scalar(kind, "sum")?)),
        ValueType::I64 | ValueType::U64 => Sum::Integer(reader.zigzag128("sum")?),
    };
    Ok((kind, Stats { count, min, max, sum, first, last }))
}

impl Tables {
    fn put(&self, out: &mut Vec<u8>) {
        let Self { segments, operations, threads, keys, shapes, layouts, callers } = *self;
        for n in [segments, operations, threads, keys, shapes, layouts, callers] {
            put_varint(out, n as u64);
        }
    }

    fn take(reader: &mut Reader<'_>, front: Front) -> Result<Self, Error> {
        Ok(Self {
            segments: reader.size("segments", CHUNK_RECORDS_MAX)?,
            operations: reader.size("operations", CHUNK_RECORDS_MAX)?,
            threads: reader.size("threads", CHUNK_RECORDS_MAX)?,
            keys: reader.size("attribute keys", CHUNK_RECORDS_MAX)?,
            shapes: reader.size("shapes", CHUNK_RECORDS_MAX)?,
            layouts: reader.size("layouts", CHUNK_RECORDS_MAX)?,
            callers: match front {
                Front::Callers => reader.size("callers", CHUNK_RECORDS_MAX)?,
                Front::Nothing | Front::Filters | Front::Summary => 0,
            },
        })
    }

    /// Number of columns with the names that a summary refers to: the first columns of executions. A chunk without callers
    /// has no columns with callers.
    pub(crate) const fn name_columns(&self) -> usize {
        if self.callers == 0 { OPERATION_COLUMNS } else { OPERATION_COLUMNS + CALLER_COLUMNS }
    }
}

impl ColumnInfo {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend([self.role as u8, self.tag]);
        put_varint(out, self.bytes as u64);
    }

    fn take(reader: &mut Reader<'_>, bytes_max: usize) -> Result<Self, Error> {
        let [role, tag] = reader.array("column")?;
        let role = Role::from_byte(role).ok_or_else(|| Error::value("role of a column", role))?;
        let codec = codec::name(tag).or_else(|| text::name(tag)).ok_or_else(|| Error::value("codec", tag))?;
        Ok(Self { role, codec, tag, bytes: reader.size("bytes of a column", bytes_max)? })
    }
}

impl Header {
    pub fn member(&self, member: u16) -> Option<&MemberInfo> {
        let place = self.members.binary_search_by_key(&member, |info| info.member).ok()?;
        self.members.get(place)
    }

    /// All columns in order, including those without bytes.
    pub fn columns(&self) -> impl Iterator<Item = ColumnInfo> + '_ {
        let times = self.times.iter().map(|times| match times {
            TimesForm::Regular { .. } => ColumnInfo { role: Role::At, codec: "step", bytes: 0, tag: 0 },
            TimesForm::Stored(s) => ColumnInfo { role: Role::At, codec: s.codec, bytes: s.bytes, tag: s.tag },
        });
        let value = |info: &MemberInfo| ColumnInfo {
            role: Role::Value,
            codec: info.codec,
            bytes: info.bytes,
            tag: 0,
        };
        times.chain(self.members.iter().map(value)).chain(self.columns.iter().copied())
    }

    /// Bytes of the filters, at the start of the body.
    pub(crate) fn filter_bytes(&self) -> usize {
        self.filters.as_ref().map_or(0, FilterInfo::bytes)
    }

    /// Bytes of the summary, which follows the filters.
    pub(crate) fn summary_bytes(&self) -> usize {
        self.summary.map_or(0, |summary| summary.bytes)
    }

    /// The columns with the names that a summary refers to. Empty for other kinds of records.
    pub(crate) fn name_columns(&self) -> &[ColumnInfo] {
        let count = self.tables.as_ref().map_or(0, Tables::name_columns);
        self.columns.get(..count).unwrap_or_default()
    }

    /// Bytes of [`Self::name_columns`].
    pub(crate) fn name_bytes(&self) -> usize {
        self.name_columns().iter().fold(0, |sum, column| sum.saturating_add(column.bytes))
    }

    /// Appends the header of entries or executions, with the descriptions of its filters and its summary.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_varint(out, self.count as u64);
        out.extend_from_slice(&self.start.to_le_bytes());
        put_varint(out, self.end.wrapping_sub(self.start).cast_unsigned());
        if let Some(tables) = &self.tables {
            tables.put(out);
        }
        put_varint(out, self.columns.len() as u64);
        for column in &self.columns {
            column.put(out);
        }
        if let Some(filters) = &self.filters {
            filters.put(out);
        }
        if let Some(summary) = &self.summary {
            summary.put(out);
        }
    }

    /// Decodes a header of any version but 2. `bytes` is the length of the whole chunk.
    pub(crate) fn take(kind: Kind, fields: &[u8], bytes: usize, front: Front) -> Result<Self, Error> {
        let mut reader = Reader::new(fields);
        let count_max = if kind == Kind::Execution { CHUNK_EVENTS_MAX } else { CHUNK_RECORDS_MAX };
        let count = reader.size("records", count_max)?;
        let start = Timestamp::from_le_bytes(reader.array("start")?);
        let span = reader.varint("span")?;
        let end = start.checked_add_unsigned(span).ok_or_else(|| Error::value("span", span))?;
        let stats = (kind == Kind::Sample).then(|| take_stats(&mut reader)).transpose()?;
        let tables = (kind == Kind::Execution).then(|| Tables::take(&mut reader, front)).transpose()?;
        let listed = reader.size("columns", CHUNK_COLUMNS_MAX)?;
        let columns = (0..listed).map(|_| ColumnInfo::take(&mut reader, bytes)).collect::<Result<_, _>>()?;
        let has_filters = front >= Front::Filters;
        let filters = has_filters.then(|| FilterInfo::take(&mut reader, bytes)).transpose()?;
        let has_summary = front >= Front::Summary;
        let summary = has_summary.then(|| SummaryInfo::take(&mut reader, bytes)).transpose()?;
        reader.end("header")?;
        let (time_error_max, members, times) = (0, vec![], None);
        let header = Self {
            kind,
            count,
            start,
            end,
            time_error_max,
            members,
            tables,
            bytes,
            filters,
            summary,
            times,
            columns,
        };
        match stats {
            Some((value_type, stats)) => header.into_group(value_type, stats),
            None => Ok(header),
        }
    }

    /// Converts samples of version 1 to a group with one member.
    fn into_group(mut self, value_type: ValueType, stats: Stats) -> Result<Self, Error> {
        let columns = std::mem::take(&mut self.columns);
        let [at, value] = columns.as_slice() else {
            return Err(Error::value("number of columns of samples", columns.len() as u64));
        };
        for (column, role) in [(at, Role::At), (value, Role::Value)] {
            if column.role != role {
                return Err(Error::value("role of the column", column.role as u8));
            }
        }
        let stored = |column: &ColumnInfo, from| Stored {
            tag: column.tag,
            codec: column.codec,
            from,
            bytes: column.bytes,
            checksum: None,
        };
        self.times = Some(TimesForm::Stored(stored(at, 0)));
        let form = MemberForm::Stored(stored(value, at.bytes));
        self.members = vec![MemberInfo::new(0, value_type, stats, form, None)];
        Ok(self)
    }
}
