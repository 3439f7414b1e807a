//! Which time does a cell hold?

use jiff::tz::TimeZone;
use tacho_model::Timestamp;

use super::cell::{Cell, Kind};
use crate::csv;
use crate::rows::shown;
use crate::time_text::{TimeFormat, TimeReader, Unit, decimal};

/// If a cell is not UTF-8, its error message is made from at most this number of bytes. The message shows at most 48 characters.
const SHOWN_BYTES: usize = 256;
const DAY_NS: i128 = 86_400_000_000_000;

pub struct Times {
    kind: Kind,
    unit: Unit,
    /// Reads texts, and converts local times to UTC.
    reader: TimeReader,
    format: TimeFormat,
}

impl Times {
    /// `head` has the first cells. They determine the unit of numbers or the format of texts, unless `given` does.
    ///
    /// # Errors
    /// If the first cells determine no format, or if the given format does not suit the type of the column.
    pub fn new(
        kind: Kind,
        given: Option<&TimeFormat>,
        zone: TimeZone,
        head: &[Cell],
    ) -> Result<Self, String> {
        let mut texts = Vec::new();
        for cell in head.iter().filter(|cell| !cell.is_null()) {
            let mut text = String::new();
            if cell.put(kind, &mut text).is_ok() {
                texts.push(text);
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let format = match (kind, given) {
            (Kind::Text, Some(given)) => given.clone(),
            (Kind::Text, None) if texts.is_empty() => TimeFormat::Iso,
            (Kind::Text, None) => csv::time_format(&texts)?,
            (_, Some(TimeFormat::Epoch(unit))) => TimeFormat::Epoch(*unit),
            (_, Some(_)) if !kind.is_time() => {
                return Err("times are numbers: give epoch, epoch-ms, epoch-us or epoch-ns".into());
            }
            _ => {
                let first = texts.first().and_then(|text| text.parse().ok());
                TimeFormat::Epoch(first.map_or(Unit::Nanoseconds, Unit::guess))
            }
        };
        let unit = match &format {
            TimeFormat::Epoch(unit) => *unit,
            TimeFormat::Iso | TimeFormat::Pattern(_) => Unit::Nanoseconds,
        };
        Ok(Self { kind, unit, reader: TimeReader::new(format.clone(), zone), format })
    }

    /// Describes the time format for the user.
    pub fn description(&self, zone: &str) -> String {
        match self.kind {
            Kind::Timestamp { unit, utc: true } => format!("timestamps in {unit}"),
            Kind::Timestamp { unit, utc: false } => format!("timestamps in {unit}, local to {zone}"),
            Kind::Date => format!("days in {zone}"),
            Kind::Julian => "INT96".into(),
            Kind::Text => format!("{} in {zone}", self.format),
            _ => self.format.to_string(),
        }
    }

    /// The format of the numbers or texts. `None` if the column has a type for times, because such a column needs no format.
    pub fn format(&self) -> Option<&TimeFormat> {
        (!self.kind.is_time()).then_some(&self.format)
    }

    /// Reads the time in a cell of the time column.
    ///
    /// # Errors
    /// If the cell is not a time; the error names the reason.
    pub fn read(&mut self, cell: &Cell) -> Result<Timestamp, String> {
        let unit = i128::from(self.unit.nanoseconds());
        match (cell, self.kind) {
            (Cell::Null, _) => Err("time is null".into()),
            (Cell::Signed(value), Kind::Timestamp { unit, utc }) => {
                let at = i128::from(*value) * i128::from(unit.nanoseconds());
                if utc { in_range(at) } else { self.reader.utc_of_local(at) }
            }
            (Cell::Signed(days), Kind::Date) => self.reader.utc_of_local(i128::from(*days) * DAY_NS),
            (Cell::Signed(value), _) => in_range(i128::from(*value) * unit),
            (Cell::Unsigned(value), _) => in_range(i128::from(*value) * unit),
            (Cell::Moment(at), _) => in_range(*at),
            (Cell::Float(value), _) => decimal(&value.to_string(), self.unit.nanoseconds())
                .ok_or_else(|| format!("{value} is not a number of {} since 1970", self.unit)),
            (Cell::Bytes(bytes), _) => match std::str::from_utf8(bytes.data()) {
                Ok(text) => self.reader.read(text.trim()),
                Err(_) => {
                    let begin = bytes.data().get(..SHOWN_BYTES).unwrap_or(bytes.data());
                    Err(format!("{} is not UTF-8", shown(&String::from_utf8_lossy(begin))))
                }
            },
            (Cell::Bool(_), _) => Err("time is neither a number nor a text".into()),
        }
    }
}

fn in_range(at: i128) -> Result<Timestamp, String> {
    Timestamp::try_from(at).map_err(|_| format!("time {at} ns is outside the years 1677 to 2262"))
}
