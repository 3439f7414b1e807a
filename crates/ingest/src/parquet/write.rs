//! The inverse of [`super::Parquet`]: writes a file in the long layout (one record per row), one row group after the other.
//! The columns are described in `own.rs`.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{
    Compression, ConvertedType, Encoding, LogicalType, Repetition, TimeUnit, Type, ZstdLevel,
};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type as SchemaType, TypePtr};
use tacho_model::{Body, Entry, Kind, Labels, NAME, Sample, Value};

use super::own;

/// Limit on the rows of a row group. The rows are in memory until the group is written. Readers usually read several row groups
/// in parallel, each in one thread.
const GROUP_ROWS_MAX: usize = 1 << 17;
/// Limit on the cells of a row group. If a file has many labels, its row groups have fewer rows, but the limit on the rows is
/// at least [`GROUP_ROWS_MIN`].
const GROUP_CELLS_MAX: usize = 1 << 23;
const GROUP_ROWS_MIN: usize = 1 << 10;
/// A row group is written as soon as the bodies of its entries have this many bytes.
const GROUP_BYTES_MAX: usize = 16 << 20;

pub struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    /// Labels that have a column; the first label is the name.
    labels: Vec<String>,
    kind: Kind,
    /// For each run of consecutive rows of the same series: its labels, and the number of rows.
    runs: Vec<(Arc<Labels>, usize)>,
    samples: Vec<Sample>,
    entries: Vec<Entry>,
    rows: usize,
    bytes: usize,
    rows_max: usize,
}

impl<W: Write + Send> Writer<W> {
    /// `names` are the names of all labels that will occur. `kind` is samples or entries.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new(out: W, names: impl IntoIterator<Item = String>, kind: Kind) -> Result<Self> {
        let labels: Vec<String> =
            [NAME.to_owned()].into_iter().chain(names.into_iter().filter(|name| name != NAME)).collect();
        let time = ColumnPath::from(own::TIME);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("tachograph ", env!("CARGO_PKG_VERSION")).into())
            .set_key_value_metadata(Some(vec![own::mark()]))
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_column_dictionary_enabled(time.clone(), false)
            .set_column_encoding(time, Encoding::DELTA_BINARY_PACKED)
            .build();
        let schema = Arc::new(schema(&labels, kind)?);
        let rows_max = (GROUP_CELLS_MAX / schema.get_fields().len()).clamp(GROUP_ROWS_MIN, GROUP_ROWS_MAX);
        let file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        let (runs, samples, entries) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { file, labels, kind, runs, samples, entries, rows: 0, bytes: 0, rows_max })
    }

    /// Appends samples of one series.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn samples(&mut self, labels: &Arc<Labels>, samples: &[Sample]) -> Result<()> {
        let mut rest = samples;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.rows_max - self.rows));
            self.samples.extend_from_slice(now);
            self.run(labels, now.len())?;
            rest = later;
        }
        Ok(())
    }

    /// Appends entries of one series.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn entries(&mut self, labels: &Arc<Labels>, entries: &[Entry]) -> Result<()> {
        for entry in entries {
            self.bytes += entry.body.as_bytes().len();
            self.entries.push(entry.clone());
            self.run(labels, 1)?;
        }
        Ok(())
    }

    fn run(&mut self, labels: &Arc<Labels>, rows: usize) -> Result<()> {
        match self.runs.last_mut() {
            Some((last, count)) if Arc::ptr_eq(last, labels) || last == labels => *count += rows,
            _ => self.runs.push((Arc::clone(labels), rows)),
        }
        self.rows += rows;
        if self.rows >= self.rows_max || self.bytes >= GROUP_BYTES_MAX {
            self.group()?;
        }
        Ok(())
    }

    fn group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        let times: Vec<i64> = match self.kind {
            Kind::Entry => self.entries.iter().map(|entry| entry.at).collect(),
            _ => self.samples.iter().map(|sample| sample.at).collect(),
        };
        column::<Int64Type>(group.next_column()?, &times, None)?;
        for label in &self.labels {
            let (mut values, mut levels) = (Vec::new(), Vec::with_capacity(self.rows));
            for (labels, rows) in &self.runs {
                let value = labels.get(label);
                levels.resize(levels.len() + rows, i16::from(value.is_some()));
                if let Some(value) = value {
                    // The rows of a run share the memory of the text.
                    let value = ByteArray::from(value.as_bytes().to_vec());
                    values.resize(values.len() + rows, value);
                }
            }
            column::<ByteArrayType>(group.next_column()?, &values, Some(&levels))?;
        }
        if self.kind == Kind::Entry {
            for wants_text in [true, false] {
                let of = |entry: &Entry| match &entry.body {
                    Body::Text(text) => wants_text.then(|| ByteArray::from(text.as_bytes().to_vec())),
                    Body::Bytes(bytes) => (!wants_text).then(|| ByteArray::from(bytes.to_vec())),
                };
                optional::<ByteArrayType, _>(group.next_column()?, &self.entries, of)?;
            }
        } else {
            let double = |sample: &Sample| Some(sample.value.as_f64());
            optional::<DoubleType, _>(group.next_column()?, &self.samples, double)?;
            let signed = |sample: &Sample| match sample.value {
                Value::I64(value) => Some(value),
                Value::U64(_) | Value::F64(_) => None,
            };
            optional::<Int64Type, _>(group.next_column()?, &self.samples, signed)?;
            let unsigned = |sample: &Sample| match sample.value {
                // Parquet stores unsigned numbers in the bits of signed numbers.
                Value::U64(value) => Some(value.cast_signed()),
                Value::I64(_) | Value::F64(_) => None,
            };
            optional::<Int64Type, _>(group.next_column()?, &self.samples, unsigned)?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        self.runs.clear();
        self.samples.clear();
        self.entries.clear();
        Ok(())
    }

    /// Writes the remaining rows and the footer; returns the output.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn finish(mut self) -> Result<W> {
        if self.rows > 0 {
            self.group()?;
        }
        self.file.into_inner()
    }
}

fn schema(labels: &[String], kind: Kind) -> Result<SchemaType> {
    let primitive = |name: &str, physical, repetition, logical: Option<LogicalType>| -> Result<TypePtr> {
        let column = SchemaType::primitive_type_builder(name, physical).with_repetition(repetition);
        Ok(Arc::new(column.with_logical_type(logical).build()?))
    };
    let optional = Repetition::OPTIONAL;
    let utc_ns = LogicalType::timestamp(true, TimeUnit::NANOS);
    let mut fields = vec![primitive(own::TIME, Type::INT64, Repetition::REQUIRED, Some(utc_ns))?];
    for label in labels {
        let name = if label == NAME { own::SERIES.to_owned() } else { own::column(label) };
        let column = SchemaType::primitive_type_builder(&name, Type::BYTE_ARRAY).with_repetition(optional);
        let column = column.with_logical_type(Some(LogicalType::String));
        fields.push(Arc::new(column.with_converted_type(ConvertedType::UTF8).build()?));
    }
    if kind == Kind::Entry {
        fields.push(primitive(own::TEXT, Type::BYTE_ARRAY, optional, Some(LogicalType::String))?);
        fields.push(primitive(own::BYTES, Type::BYTE_ARRAY, optional, None)?);
    } else {
        let integer = |signed| Some(LogicalType::integer(64, signed));
        fields.push(primitive(own::VALUE, Type::DOUBLE, optional, None)?);
        fields.push(primitive(own::VALUE_I64, Type::INT64, optional, integer(true))?);
        fields.push(primitive(own::VALUE_U64, Type::INT64, optional, integer(false))?);
    }
    SchemaType::group_type_builder("tachograph").with_fields(fields).build()
}

fn optional<T: DataType, R>(
    writer: Option<SerializedColumnWriter<'_>>,
    rows: &[R],
    of: impl Fn(&R) -> Option<T::T>,
) -> Result<()> {
    let mut values = Vec::with_capacity(rows.len());
    let mut levels = Vec::with_capacity(rows.len());
    for row in rows {
        let value = of(row);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    column::<T>(writer, &values, Some(&levels))
}

fn column<T: DataType>(
    writer: Option<SerializedColumnWriter<'_>>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let mut writer = writer.ok_or_else(|| ParquetError::General("a column is missing".into()))?;
    writer.typed::<T>().write_batch(values, levels, None)?;
    writer.close()
}
