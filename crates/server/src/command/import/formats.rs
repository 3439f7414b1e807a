//! What is this file, and how is it read?

use std::collections::BTreeMap;
use std::path::Path;

use tacho_ingest::csv::{self, Csv, Dialect, Given, Numbers, Shape};
use tacho_ingest::json_lines::JsonLines;
use tacho_ingest::line_rows::LineProtocol;
use tacho_ingest::open_metrics::{Exposition, OpenMetrics};
use tacho_ingest::rows::Rows;
use tacho_model::{NAME, Timestamp};

use super::{Reading, Source};
use crate::command::Failure;

/// A format of files. One more is one line here and one in [`Formats::open`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Comma-separated values, whatever the separator
    Csv,
    /// Objects, one a line: as VictoriaMetrics exports them, or {"__name__", "time", "value", labels}
    Jsonl,
    /// InfluxDB line protocol
    Line,
    /// OpenMetrics 1.0: times in seconds
    Openmetrics,
    /// Prometheus text format: times in milliseconds
    Prometheus,
}

/// Opens files of one import.
pub struct Formats {
    pub format: Option<Format>,
    pub reading: Reading,
    /// The time of records without one.
    pub now: Timestamp,
}

/// What files of one import teach about those after them.
#[derive(Default)]
pub struct Learned {
    numbers: Option<Numbers>,
}

/// A file that is understood.
pub struct Opened {
    pub rows: Box<dyn Rows>,
    /// What was found out, for people.
    pub description: String,
    pub doubts: Vec<String>,
    /// Rows of the header, which are behind us.
    pub rows_before: u64,
}

impl Formats {
    /// Steps over the header, where there is one.
    pub fn open(&self, path: &Path, source: &mut Source, learned: &mut Learned) -> Result<Opened, Failure> {
        let head = source.head()?;
        let format = match self.format.or_else(|| by_name(path)).or_else(|| by_head(head)) {
            Some(format) => format,
            None => {
                let message =
                    format!("{}: its format is told neither by its name nor its head", path.display());
                return Err(
                    Failure::usage(message).hint("give --format csv, jsonl, line, openmetrics or prometheus")
                );
            }
        };
        let zone = self.reading.time_zone.clone();
        let rows: Box<dyn Rows> = match format {
            Format::Csv => return self.csv(path, source, learned),
            Format::Jsonl => Box::new(JsonLines::new(zone)),
            Format::Line => Box::new(LineProtocol::new(self.reading.precision, self.now)),
            Format::Openmetrics => Box::new(OpenMetrics::new(Exposition::OpenMetrics, self.now)),
            Format::Prometheus => Box::new(OpenMetrics::new(Exposition::Prometheus, self.now)),
        };
        let description = match format {
            Format::Csv => "CSV",
            Format::Jsonl => "JSON lines",
            Format::Line => "line protocol",
            Format::Openmetrics => "OpenMetrics",
            Format::Prometheus => "Prometheus text",
        };
        Ok(Opened { rows, description: description.into(), doubts: vec![], rows_before: 0 })
    }

    fn csv(&self, path: &Path, source: &mut Source, learned: &mut Learned) -> Result<Opened, Failure> {
        let reading = &self.reading;
        let place = |reason: String| Failure::new(format!("{}: {reason}", path.display()));
        let given = Given { like: learned.numbers, ..reading.given() };
        let detected = csv::detect(source.head()?, &given).map_err(|reason| {
            place(reason).hint("`tacho import --help` lists what can be said about a CSV file")
        })?;
        if detected.numbers_certain {
            learned.numbers = Some(detected.dialect.numbers);
        }
        let file = path.file_name().map_or("".into(), |name| name.to_string_lossy());
        let mut base = csv::attributes(&file, &reading.name_fields).map_err(place)?;
        base.extend(reading.labels.iter().cloned());
        base.extend(reading.name.iter().map(|name| (NAME.to_owned(), name.clone())));
        let description = describe(&detected.dialect, &detected.header, reading);
        source.skip(detected.header_bytes);
        let csv = Csv::new(detected.header, detected.dialect, reading.time_zone.clone(), base)
            .map_err(|reason| place(reason).hint("give --name, or the columns with --value-column"))?;
        Ok(Opened { rows: Box::new(csv), description, doubts: detected.doubts, rows_before: 1 })
    }
}

impl Reading {
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
            like: None,
        }
    }
}

fn describe(dialect: &Dialect, header: &[String], reading: &Reading) -> String {
    let column = |at: usize| header.get(at).map_or("?", String::as_str);
    let shape = match &dialect.shape {
        Shape::Wide => "a series a column".to_owned(),
        Shape::Long { value_column, name_column } => {
            let name = name_column.map_or(String::new(), |at| format!(" named by {:?}", column(at)));
            format!("one value a row in {:?}{name}, other columns are labels", column(*value_column))
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
    ]);
    known.get(extension).copied()
}

fn by_head(head: &[u8]) -> Option<Format> {
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
    fn formats_are_told_by_name_and_head() {
        for (name, format) in [
            ("a.csv.gz", Some(Format::Csv)),
            ("A.JSONL", Some(Format::Jsonl)),
            ("a.prom", Some(Format::Prometheus)),
            ("a.txt", None),
            ("a", None),
        ] {
            assert_eq!(by_name(Path::new(name)), format, "{name}");
        }
        for (head, format) in [
            ("\n {\"a\":1}", Some(Format::Jsonl)),
            ("# TYPE a counter\na_total 1\n# EOF\n", Some(Format::Openmetrics)),
            ("# HELP a A.\na 1\n", Some(Format::Prometheus)),
            ("a v=1", None),
            ("", None),
        ] {
            assert_eq!(by_head(head.as_bytes()), format, "{head}");
        }
    }
}
