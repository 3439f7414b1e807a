//! Detects the format of a file and opens it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde::{Deserialize, Serialize};
use tacho_ingest::csv::{self, Csv, Dialect, Given, Numbers, Shape};
use tacho_ingest::json_lines::JsonLines;
use tacho_ingest::line_rows::LineProtocol;
use tacho_ingest::open_metrics::{Exposition, OpenMetrics};
use tacho_ingest::rows::Rows;
use tacho_ingest::time_text::Unit;
use tacho_model::{NAME, Timestamp};

use super::Reading;
use super::blocks::{Blocks, Lines};
use super::early::Counted;
use super::source::{self, Source, is_stdin, nameless};
#[cfg(feature = "parquet")]
use super::table::Table;
use crate::failure::Failure;

/// A format of files. A new format is added here, in [`Formats::open`], and in the other `match` expressions of this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values, also with other separators
    Csv,
    /// One JSON object per line: as VictoriaMetrics exports them, or {"__name__", "time", "value", labels}
    Jsonl,
    /// InfluxDB line protocol
    Line,
    /// OpenMetrics 1.0: times in seconds
    Openmetrics,
    /// Prometheus text format: times in milliseconds
    Prometheus,
    /// Apache Parquet, long or wide, as pandas, polars and DuckDB write it (needs a build with the feature parquet)
    Parquet,
}

/// Opens the files of one import.
pub struct Formats {
    pub format: Option<Format>,
    pub reading: Reading,
    /// The time for records without a time.
    pub now: Timestamp,
}

/// Settings that are detected in a file and apply to later files of the same import.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct Learned {
    /// The decimal separator and the thousands separator.
    numbers: Option<(char, Option<char>)>,
}

pub struct Opened {
    pub blocks: Box<dyn Blocks>,
    /// How the file is read, for a message.
    pub description: String,
    pub doubts: Vec<String>,
    /// Names of the columns of a CSV file, for a message, because the file of broken rows has no header line.
    pub columns: Vec<String>,
    /// The unit of times, if they are numbers.
    pub counted: Option<Counted>,
}

impl Formats {
    /// Checks that all files can be read, before any file is imported.
    pub fn check(&self, files: &[PathBuf]) -> Result<(), Failure> {
        files.iter().filter(|path| !is_stdin(path)).try_for_each(|path| source::check(path))?;
        let is_parquet = |path: &&PathBuf| self.format.or_else(|| by_name(path)) == Some(Format::Parquet);
        files.iter().filter(is_parquet).try_for_each(|path| check_parquet(path))
    }

    /// Opens a file and skips its header, if any. `read` counts the bytes of the file before decompression.
    pub fn open(&self, path: &Path, read: &Arc<AtomicU64>, learned: &mut Learned) -> Result<Opened, Failure> {
        let format = self.format.or_else(|| by_name(path));
        if format == Some(Format::Parquet) {
            return self.parquet(path, read);
        }
        let mut source = Source::open(path, Arc::clone(read))?;
        let Some(format) = format.or(by_head(source.head()?)) else {
            let message = format!("{}: cannot detect the format by name or first bytes", path.display());
            let hint = "give --format csv, jsonl, line, openmetrics, prometheus or parquet";
            return Err(Failure::usage(message).hint(hint));
        };
        if let Some((option, what)) = self.reading.not_for(format) {
            let message = format!("{}: {option} is for CSV and Parquet, this is {what}", path.display());
            return Err(Failure::usage(message));
        }
        let zone = self.reading.time_zone.clone();
        let (rows, description): (Box<dyn Rows>, _) = match format {
            Format::Csv => return self.csv(path, source, learned),
            Format::Parquet => return self.parquet(path, read),
            Format::Jsonl => (Box::new(JsonLines::new(zone)), "JSON lines"),
            Format::Line => (Box::new(LineProtocol::new(self.reading.precision, self.now)), "line protocol"),
            Format::Openmetrics => {
                (Box::new(OpenMetrics::new(Exposition::OpenMetrics, self.now)), "OpenMetrics")
            }
            Format::Prometheus => {
                (Box::new(OpenMetrics::new(Exposition::Prometheus, self.now)), "Prometheus text")
            }
        };
        let blocks = Box::new(Lines { source, rows, before: 0 });
        let counted = Some(self.reading.counted(format));
        Ok(Opened { blocks, description: description.into(), doubts: vec![], columns: vec![], counted })
    }

    fn csv(&self, path: &Path, mut source: Source, learned: &mut Learned) -> Result<Opened, Failure> {
        let reading = &self.reading;
        let place = |reason: String| Failure::new(format!("{}: {reason}", path.display()));
        let like = learned.numbers.map(|(decimal, thousands)| Numbers { decimal, thousands });
        let given = Given { like, ..reading.given() };
        let detected = csv::detect(source.head()?, &given)
            .map_err(|reason| place(reason).hint("`tacho import --help` lists the options for CSV files"))?;
        if detected.numbers_certain {
            let Numbers { decimal, thousands } = detected.dialect.numbers;
            learned.numbers = Some((decimal, thousands));
        }
        let base = self.base(path).map_err(place)?;
        let description = describe(&detected.dialect, &detected.header, reading);
        let counted = Counted::by(&detected.dialect.time);
        source.skip(detected.header_bytes);
        let mut doubts = detected.doubts;
        if let (Shape::Long { name_column: Some(at), .. }, Some(name)) =
            (&detected.dialect.shape, &reading.name)
        {
            doubts.push(csv::only_where_empty(name, detected.header.get(*at).map_or("", String::as_str)));
        }
        doubts.extend(named_value(&detected.dialect, &detected.header, reading.name.is_some()));
        let columns = detected.header.clone();
        let csv = Csv::new(detected.header, detected.dialect, reading.time_zone.clone(), base)
            .map_err(|reason| nameless(place(reason.clone()), &reason))?;
        let blocks = Box::new(Lines { source, rows: Box::new(csv), before: detected.header_rows });
        Ok(Opened { blocks, description, doubts, columns, counted })
    }

    #[cfg(feature = "parquet")]
    fn parquet(&self, path: &Path, read: &Arc<AtomicU64>) -> Result<Opened, Failure> {
        check_parquet(path)?;
        let reading = &self.reading;
        let base = self.base(path).map_err(|e| Failure::new(format!("{}: {e}", path.display())))?;
        let table = Table::open(path, read, &reading.given(), reading.time_zone.clone(), base)?;
        let (description, doubts, counted) = (table.description(), table.doubts(), table.counted());
        Ok(Opened { blocks: Box::new(table), description, doubts, columns: vec![], counted })
    }

    #[cfg(not(feature = "parquet"))]
    fn parquet(&self, path: &Path, _: &Arc<AtomicU64>) -> Result<Opened, Failure> {
        Err(super::without_parquet(&format!("{} cannot be read", path.display())))
    }

    /// Labels for all series of a file. The name of `--name` applies only to series without a name of their own.
    fn base(&self, path: &Path) -> Result<Vec<(String, String)>, String> {
        let reading = &self.reading;
        let file = path.file_name().map_or("".into(), |name| name.to_string_lossy());
        let mut base = csv::attributes(&file, &reading.name_fields)?;
        base.extend(reading.labels.iter().cloned());
        base.extend(reading.name.iter().map(|name| (NAME.to_owned(), name.clone())));
        Ok(base)
    }
}

impl Reading {
    /// The first given option that the format does not support, and the name of the format. The checked options set the names,
    /// labels or kind of the series. The caller reports an error, because the series would be wrong if the option were ignored.
    fn not_for(&self, format: Format) -> Option<(&'static str, &'static str)> {
        let what = match format {
            Format::Csv | Format::Parquet => return None,
            Format::Jsonl => "JSON lines",
            Format::Line => "line protocol",
            Format::Openmetrics => "OpenMetrics",
            Format::Prometheus => "Prometheus text",
        };
        let options = [
            ("--name", self.name.is_some()),
            ("--label", !self.labels.is_empty()),
            ("--name-fields", !self.name_fields.is_empty()),
            ("--text", self.text),
        ];
        options.into_iter().find(|(_, given)| *given).map(|(option, _)| (option, what))
    }

    /// The unit of times in a format that is neither CSV nor Parquet.
    fn counted(&self, format: Format) -> Counted {
        match format {
            Format::Line => Counted {
                ns: Some(self.precision.nanoseconds()),
                remedy: "--precision ns, us, ms, s, m or h",
            },
            Format::Openmetrics => Counted::of(Unit::Seconds, "--format prometheus (ms)"),
            Format::Prometheus => Counted::of(Unit::Milliseconds, "--format openmetrics (s)"),
            Format::Csv | Format::Jsonl | Format::Parquet => Counted {
                ns: None,
                remedy: "the name of the JSON member (timestamps: ms, time: by size of the number)",
            },
        }
    }

    fn given(&self) -> Given {
        Given {
            delimiter: self.delimiter,
            time: self.time_format.clone(),
            decimal: self.decimal,
            thousands: self.thousands,
            time_column: self.time_column.clone(),
            value_column: self.value_column.clone(),
            wide: self.wide,
            texts: self.text,
            columns: self.columns.clone(),
            like: None,
        }
    }
}

/// Checks that this build has Parquet, and that the input is not standard input, which is not seekable.
fn check_parquet(path: &Path) -> Result<(), Failure> {
    if cfg!(not(feature = "parquet")) {
        return Err(super::without_parquet(&format!("{} cannot be read", path.display())));
    }
    if is_stdin(path) {
        return Err(Failure::usage("Parquet cannot be read from standard input")
            .hint("Parquet needs a seekable file: write it to a file first"));
    }
    Ok(())
}

/// The doubt about a file with a single value column that has a general name such as `value`, if no option names the series.
/// The series then gets the general name of the column.
fn named_value(dialect: &Dialect, header: &[String], has_name: bool) -> Option<String> {
    let is_value = |(at, _): &(usize, &String)| *at != dialect.time_column;
    let mut columns = header.iter().enumerate().filter(is_value).map(|(_, name)| name);
    let (column, None) = (columns.next()?, columns.next()) else { return None };
    let applies = matches!(dialect.shape, Shape::Wide) && !has_name && csv::is_value_name(column);
    applies.then(|| format!("the series is named {column:?}, like the column: --name NAME sets another name"))
}

fn describe(dialect: &Dialect, header: &[String], reading: &Reading) -> String {
    let column = |at: usize| header.get(at).map_or("?", String::as_str);
    let shape = match &dialect.shape {
        Shape::Wide => "one series per column".to_owned(),
        Shape::Long { value_column, name_column } => {
            let name = name_column.map_or(String::new(), |at| format!(" named by {:?}", column(at)));
            format!("one value per row in {:?}{name}, other columns are labels", column(*value_column))
        }
    };
    let values = match (dialect.texts, dialect.numbers.thousands) {
        (true, _) => "texts".to_owned(),
        (false, Some(between)) => format!("numbers like 1{between}234{}5", dialect.numbers.decimal),
        (false, None) => format!("numbers like 1234{}5", dialect.numbers.decimal),
    };
    let zone = reading.time_zone.iana_name().unwrap_or("a zone without a name");
    format!(
        "CSV with {:?} between cells; times in {:?} as {} in {zone}; {values}; {shape}",
        char::from(dialect.delimiter),
        column(dialect.time_column),
        dialect.time,
    )
}

fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let extension = name.rsplit_once('.')?.1;
    let known = BTreeMap::from([
        ("csv", Format::Csv),
        ("tsv", Format::Csv),
        ("jsonl", Format::Jsonl),
        ("ndjson", Format::Jsonl),
        ("json", Format::Jsonl),
        ("line", Format::Line),
        ("lp", Format::Line),
        ("influx", Format::Line),
        ("openmetrics", Format::Openmetrics),
        ("om", Format::Openmetrics),
        ("prom", Format::Prometheus),
        ("parquet", Format::Parquet),
        ("pq", Format::Parquet),
    ]);
    known.get(extension).copied()
}

fn by_head(head: &[u8]) -> Option<Format> {
    if head.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    let head = String::from_utf8_lossy(head);
    let first = head.lines().find(|line| !line.trim().is_empty())?.trim_start();
    if first.starts_with('{') {
        return Some(Format::Jsonl);
    }
    ["# TYPE ", "# HELP ", "# UNIT "]
        .iter()
        .any(|begin| first.starts_with(begin))
        .then(|| if head.trim_end().ends_with("# EOF") { Format::Openmetrics } else { Format::Prometheus })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_name_and_head() {
        for (name, format) in [
            ("a.csv.gz", Some(Format::Csv)),
            ("A.JSONL", Some(Format::Jsonl)),
            ("a.prom", Some(Format::Prometheus)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.txt", None),
            ("a", None),
        ] {
            assert_eq!(by_name(Path::new(name)), format, "{name}");
        }
        for (head, format) in [
            ("\n {\"a\":1}", Some(Format::Jsonl)),
            ("# TYPE a counter\na_total 1\n# EOF\n", Some(Format::Openmetrics)),
            ("# HELP a A.\na 1\n", Some(Format::Prometheus)),
            ("PAR1\u{15}", Some(Format::Parquet)),
            ("a v=1", None),
            ("", None),
        ] {
            assert_eq!(by_head(head.as_bytes()), format, "{head}");
        }
    }
}
