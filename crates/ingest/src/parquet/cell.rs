//! What is the type of a column, and which values does the column hold in some rows?

use std::fmt::Write;

use jiff::tz::TimeZone;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::Result;
use parquet::schema::types::ColumnDescriptor;

use crate::time_text::Unit;

/// Number of days from the start of the Julian day count to 1970.
const JULIAN_DAY_OF_1970: i128 = 2_440_588;
const DAY_NS: i128 = 86_400_000_000_000;
/// Bytes of the largest supported decimal, which has 38 digits.
const DECIMAL_BYTES_MAX: usize = 16;

/// The meaning of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Signed,
    Unsigned,
    Float,
    Bool,
    /// A decimal number with this number of digits after the point.
    Decimal(i32),
    Text,
    Bytes,
    Uuid,
    /// Days since 1970.
    Date,
    /// A number of `unit` since 1970, in UTC if `utc` is true, otherwise in local time.
    Timestamp {
        unit: Unit,
        utc: bool,
    },
    /// INT96: a Julian day, and nanoseconds of that day. Impala and old versions of Spark write times in this form.
    Julian,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Bytes(ByteArray),
    /// Nanoseconds since 1970. They may be outside the range of timestamps.
    Moment(i128),
}

impl Kind {
    /// The kind of the cells of a column. `None` for unsupported types, such as lists, maps, intervals, times of day,
    /// geometries.
    pub fn of(column: &ColumnDescriptor) -> Option<Self> {
        if column.max_rep_level() > 0 {
            return None;
        }
        if let Some(logical) = column.logical_type_ref() {
            return logical_kind(logical, column.physical_type());
        }
        Some(match (column.physical_type(), column.converted_type()) {
            (Type::BOOLEAN, _) => Self::Bool,
            (Type::INT96, _) => Self::Julian,
            (Type::FLOAT | Type::DOUBLE, _) => Self::Float,
            (_, ConvertedType::DECIMAL) => Self::Decimal(column.type_scale()),
            (Type::INT32, ConvertedType::DATE) => Self::Date,
            (Type::INT64, ConvertedType::TIMESTAMP_MILLIS) => {
                Self::Timestamp { unit: Unit::Milliseconds, utc: true }
            }
            (Type::INT64, ConvertedType::TIMESTAMP_MICROS) => {
                Self::Timestamp { unit: Unit::Microseconds, utc: true }
            }
            (
                Type::INT32 | Type::INT64,
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64,
            ) => Self::Unsigned,
            (
                Type::INT32 | Type::INT64,
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64,
            ) => Self::Signed,
            (Type::BYTE_ARRAY, ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON) => Self::Text,
            (Type::BYTE_ARRAY, ConvertedType::NONE) => Self::Bytes,
            _ => return None,
        })
    }

    pub const fn is_number(self) -> bool {
        matches!(self, Self::Signed | Self::Unsigned | Self::Float | Self::Bool | Self::Decimal(_))
    }

    /// Whether the column type itself is a time. For such a column, a given time format has no effect.
    pub const fn is_time(self) -> bool {
        matches!(self, Self::Date | Self::Timestamp { .. } | Self::Julian)
    }

    /// Whether times can be read from the column.
    pub const fn may_be_time(self) -> bool {
        self.is_time() || matches!(self, Self::Signed | Self::Unsigned | Self::Float | Self::Text)
    }
}

fn logical_kind(logical: &LogicalType, physical: Type) -> Option<Kind> {
    Some(match (logical, physical) {
        (LogicalType::Timestamp(of), Type::INT64) => {
            let unit = match of.unit {
                TimeUnit::MILLIS => Unit::Milliseconds,
                TimeUnit::MICROS => Unit::Microseconds,
                TimeUnit::NANOS => Unit::Nanoseconds,
            };
            Kind::Timestamp { unit, utc: of.is_adjusted_to_u_t_c }
        }
        (LogicalType::Date, Type::INT32) => Kind::Date,
        (LogicalType::Integer(of), Type::INT32 | Type::INT64) => {
            if of.is_signed {
                Kind::Signed
            } else {
                Kind::Unsigned
            }
        }
        (LogicalType::Decimal(of), _) => Kind::Decimal(of.scale),
        (LogicalType::String | LogicalType::Enum | LogicalType::Json, Type::BYTE_ARRAY) => Kind::Text,
        (LogicalType::Uuid, Type::FIXED_LEN_BYTE_ARRAY) => Kind::Uuid,
        _ => return None,
    })
}

/// Reads the cells of one column of one row group.
pub struct CellReader {
    kind: Kind,
    /// Limit on the rows of one call of the decoder. The callers of `read` must not ask for more rows.
    step: usize,
    levels: i16,
    reader: ColumnReader,
}

impl CellReader {
    pub fn new(kind: Kind, step: usize, column: &ColumnDescriptor, reader: ColumnReader) -> Self {
        Self { kind, step, levels: column.max_def_level(), reader }
    }

    pub const fn step(&self) -> usize {
        self.step
    }

    /// Appends `rows` cells to `out`, or fewer at the end.
    pub fn read(&mut self, rows: usize, out: &mut Vec<Cell>) -> Result<()> {
        use ColumnReader as C;
        let (kind, levels) = (self.kind, self.levels);
        match &mut self.reader {
            C::BoolColumnReader(r) => read(r, rows, levels, out, |v| Cell::Bool(*v)),
            C::Int32ColumnReader(r) => read(r, rows, levels, out, |v| match kind {
                // Parquet stores unsigned numbers in the bits of signed numbers.
                Kind::Unsigned => Cell::Unsigned(v.cast_unsigned().into()),
                Kind::Decimal(scale) => decimal((*v).into(), scale),
                _ => Cell::Signed((*v).into()),
            }),
            C::Int64ColumnReader(r) => read(r, rows, levels, out, |v| match kind {
                Kind::Unsigned => Cell::Unsigned(v.cast_unsigned()),
                Kind::Decimal(scale) => decimal((*v).into(), scale),
                _ => Cell::Signed(*v),
            }),
            C::Int96ColumnReader(r) => read(r, rows, levels, out, |v| match *v.data() {
                [low, high, day] => {
                    let of_day = i128::from(high) << 32 | i128::from(low);
                    Cell::Moment((i128::from(day) - JULIAN_DAY_OF_1970) * DAY_NS + of_day)
                }
                _ => Cell::Null,
            }),
            C::FloatColumnReader(r) => read(r, rows, levels, out, |v| Cell::Float((*v).into())),
            C::DoubleColumnReader(r) => read(r, rows, levels, out, |v| Cell::Float(*v)),
            C::ByteArrayColumnReader(r) => read(r, rows, levels, out, |v| bytes(kind, v)),
            C::FixedLenByteArrayColumnReader(r) => read(r, rows, levels, out, |v| bytes(kind, v)),
        }
    }

    /// Skips `rows` rows, or fewer at the end. Skips them in steps, because some decoders need memory for all rows that one
    /// call skips.
    pub fn skip(&mut self, mut rows: usize) -> Result<()> {
        while rows > 0 {
            let step = rows.min(self.step);
            if self.skip_step(step)? < step {
                return Ok(());
            }
            rows -= step;
        }
        Ok(())
    }

    fn skip_step(&mut self, rows: usize) -> Result<usize> {
        use ColumnReader as C;
        match &mut self.reader {
            C::BoolColumnReader(r) => r.skip_records(rows),
            C::Int32ColumnReader(r) => r.skip_records(rows),
            C::Int64ColumnReader(r) => r.skip_records(rows),
            C::Int96ColumnReader(r) => r.skip_records(rows),
            C::FloatColumnReader(r) => r.skip_records(rows),
            C::DoubleColumnReader(r) => r.skip_records(rows),
            C::ByteArrayColumnReader(r) => r.skip_records(rows),
            C::FixedLenByteArrayColumnReader(r) => r.skip_records(rows),
        }
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: i16,
    out: &mut Vec<Cell>,
    cell: impl Fn(&T::T) -> Cell,
) -> Result<()> {
    let (mut values, mut present) = (Vec::new(), Vec::new());
    reader.read_records(rows, (levels > 0).then_some(&mut present), None, &mut values)?;
    if levels == 0 {
        out.extend(values.iter().map(cell));
        return Ok(());
    }
    let mut values = values.iter();
    out.extend(present.iter().map(|level| match *level == levels {
        true => values.next().map_or(Cell::Null, &cell),
        false => Cell::Null,
    }));
    Ok(())
}

fn bytes(kind: Kind, value: &ByteArray) -> Cell {
    match kind {
        Kind::Decimal(scale) => match value.data() {
            digits if digits.len() <= DECIMAL_BYTES_MAX => {
                // The bytes are big-endian and two's complement.
                let sign = digits.first().map_or(0, |first| if *first >= 0x80 { -1 } else { 0 });
                decimal(digits.iter().fold(sign, |sum: i128, byte| sum << 8 | i128::from(*byte)), scale)
            }
            _ => Cell::Null,
        },
        Kind::Uuid => Cell::Bytes(uuid(value.data()).into_bytes().into()),
        _ => Cell::Bytes(value.clone()),
    }
}

/// The double that is nearest to the decimal number. A division by a power of ten would round a second time.
fn decimal(digits: i128, scale: i32) -> Cell {
    Cell::Float(format!("{digits}e{}", -i64::from(scale)).parse().unwrap_or(f64::NAN))
}

/// Writes a UUID as in RFC 9562.
fn uuid(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(36);
    for (nth, byte) in bytes.iter().enumerate() {
        if matches!(nth, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

impl Cell {
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Length of the cell if it is a text or a byte string, otherwise 0.
    pub fn text_bytes(&self) -> usize {
        if let Self::Bytes(bytes) = self { bytes.len() } else { 0 }
    }

    /// Appends the cell as text to `out`. A null appends nothing.
    ///
    /// # Errors
    /// If the cell holds bytes that are not UTF-8.
    pub fn put(&self, kind: Kind, out: &mut String) -> std::result::Result<(), String> {
        // Only a time in UTC has a `Z`. A reader of the text converts a local time or a day with its
        // own time zone.
        let moment = |ns: i128, out: &mut String| match (jiff::Timestamp::from_nanosecond(ns), kind) {
            (Ok(at), Kind::Timestamp { utc: false, .. }) => write!(out, "{}", TimeZone::UTC.to_datetime(at)),
            (Ok(at), Kind::Date) => write!(out, "{}", TimeZone::UTC.to_datetime(at).date()),
            (Ok(at), _) => write!(out, "{at}"),
            (Err(_), _) => write!(out, "{ns}"),
        };
        // Writing to a string cannot fail.
        let _ = match (self, kind) {
            (Self::Null, _) => Ok(()),
            (Self::Signed(value), Kind::Timestamp { unit, .. }) => {
                moment(i128::from(*value) * i128::from(unit.nanoseconds()), out)
            }
            (Self::Signed(value), Kind::Date) => moment(i128::from(*value) * DAY_NS, out),
            (Self::Signed(value), _) => write!(out, "{value}"),
            (Self::Unsigned(value), _) => write!(out, "{value}"),
            (Self::Float(value), _) => write!(out, "{value}"),
            (Self::Bool(value), _) => write!(out, "{value}"),
            (Self::Moment(ns), _) => moment(*ns, out),
            (Self::Bytes(bytes), _) => {
                let text = std::str::from_utf8(bytes.data()).map_err(|_| "text is not UTF-8".to_owned())?;
                out.push_str(text);
                Ok(())
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_in_utc_are_written_with_their_zone() {
        let timestamp = |utc| Kind::Timestamp { unit: Unit::Milliseconds, utc };
        for (cell, kind, expect) in [
            (Cell::Signed(1_500), timestamp(true), "1970-01-01T00:00:01.5Z"),
            (Cell::Signed(1_500), timestamp(false), "1970-01-01T00:00:01.5"),
            (Cell::Signed(-1_000), timestamp(false), "1969-12-31T23:59:59"),
            (Cell::Signed(-1), Kind::Date, "1969-12-31"),
            (Cell::Moment(0), Kind::Julian, "1970-01-01T00:00:00Z"),
            (Cell::Signed(i64::MAX), timestamp(false), "9223372036854775807000000"),
        ] {
            let mut out = String::new();
            cell.put(kind, &mut out).unwrap();
            assert_eq!(out, expect, "{cell:?} {kind:?}");
        }
    }
}
