//! Which samples and entries do the lines of a body in InfluxDB line protocol hold?
//!
//! ```text
//!   measurement,tag=value,tag=value field=1.5,other=3i 1763758800000000000
//!   └────────── head ─────────────┘ └──── fields ────┘ └─ time, optional ┘
//! ```
//!
//! A field becomes the series `measurement_field`; the field `value` becomes the series `measurement`. Tags become
//! labels. Names are not changed, because labels may contain any UTF-8. Floats are f64, `3i` is i64, `3u` is u64,
//! booleans are the u64 values 1 and 0, strings are entries. A line without a time gets the time of its arrival.
//!
//! Most heads are repeated, in one body and over many bodies. The series of a repeated head are found by the bytes of
//! the head. For each head, the decoder remembers the head that followed it the last time. The next line is first compared
//! with that following head. If the bytes of the head and of the field keys are equal, nothing is unescaped, copied or hashed
//! again. A decoder that has to forget its heads after each body asks the store for the series instead (`known.rs`).
//! Step before: `server/src/http/`. Step after: the store takes the batch.

mod batch;
mod cursor;
mod known;
mod number;
mod places;
mod refused;
mod series;
mod text;

use std::str::FromStr;

use tacho_model::{Batch, FindSeries, KnownSamples, Spelling, Timestamp, Value};

use crate::Rejects;
use batch::Gathering;
use cursor::{Cursor, Fault};
use known::KnownLines;
pub use refused::Refused;
use series::{Line, SeriesIndex, SeriesTable};

/// The unit of the times in a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    #[default]
    Nanoseconds,
    /// The sender states no unit, so times are taken as nanoseconds. A time that is plausible only in a larger unit is
    /// refused.
    Assumed,
    Microseconds,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
}

impl Precision {
    pub const fn nanoseconds(self) -> i64 {
        match self {
            Self::Nanoseconds | Self::Assumed => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
        }
    }
}

/// 1980 and 2100 in Unix seconds: times between them are plausible.
const PLAUSIBLE: std::ops::Range<i64> = 315_532_800..4_102_444_800;
/// Units that senders often use instead of ns: name, and number of units per second. The plausible times of these units do not
/// overlap. If they are read as ns, they are in January and February 1970.
const LARGER_UNITS: [(&str, i64); 3] = [("s", 1), ("ms", 1_000), ("us", 1_000_000)];

/// The first time in ns that is too large to be a plausible time in any of the larger units.
const CERTAIN_NS: i64 = PLAUSIBLE.end * 1_000_000;

/// Returns why a time without a stated unit is probably not in ns.
#[inline]
fn doubt(time: i64) -> Option<String> {
    // Almost all times are certain. The divisions in `doubt_small` would take 5 % of the time to decode a short line.
    if time >= CERTAIN_NS { None } else { doubt_small(time) }
}

#[cold]
fn doubt_small(time: i64) -> Option<String> {
    let (unit, per_second) =
        LARGER_UNITS.into_iter().find(|(_, per_second)| PLAUSIBLE.contains(&(time / per_second)))?;
    let year = |ns: i128| {
        jiff::Timestamp::from_nanosecond(ns)
            .map_or_else(|_| ns.to_string(), |at| at.strftime("%Y-%m-%d").to_string())
    };
    let (as_ns, as_unit) =
        (year(time.into()), year(i128::from(time) * i128::from(1_000_000_000 / per_second)));
    Some(format!(
        "time {time} is on {as_ns} as ns, and on {as_unit} as {unit}: give the parameter precision={unit}, or precision=ns if \
         {as_ns} is meant"
    ))
}

/// Parses the names of units in InfluxDB's HTTP API, version 1 or 2.
impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "n" | "ns" => Ok(Self::Nanoseconds),
            "u" | "us" | "µ" => Ok(Self::Microseconds),
            "ms" => Ok(Self::Milliseconds),
            "s" => Ok(Self::Seconds),
            "m" => Ok(Self::Minutes),
            "h" => Ok(Self::Hours),
            other => Err(format!("unknown precision {other:?}: use ns, us, ms, s, m or h")),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    pub batch: Batch,
    /// Samples of series that the store knows. If a series also has samples in `batch`, the samples in `known` arrived first.
    pub known: KnownSamples,
    /// The spelling of each series of samples of the batch. Empty if the store was not asked for the series.
    pub spellings: Vec<Spelling>,
    /// In the batch, series of samples that one line introduced are adjacent and differ only in their names. These are
    /// the lengths of such runs, in the order of the batch.
    pub runs: Vec<usize>,
    pub rejects: Rejects<Refused>,
}

/// Decodes a body. `now` is the time of lines without a time. To decode many bodies, keep a [`Decoder`].
pub fn decode(input: &[u8], precision: Precision, now: Timestamp) -> Decoded {
    Decoder::default().decode(input, precision, now)
}

/// Limit in bytes on the estimated memory of heads and series that are kept from one body to the next: about 25,000
/// heads with one field. If the memory exceeds the limit after a body, all kept heads and series are discarded.
pub const DECODER_BYTES_MAX: usize = 16 << 20;

/// If a decoder discards its heads after `n` lines, it asks the store for the series of the next `ASKED_LINES * n` lines. Then it
/// stops asking: if the sender now uses few heads, to find them in the decoder takes less time than to ask the store.
const ASKED_LINES: u64 = 64;

/// Decodes bodies. Remembers the heads of previous bodies.
#[derive(Debug, Default)]
pub struct Decoder {
    table: SeriesTable,
    gathering: Gathering,
    resets: u64,
    /// Number of lines since the heads were last discarded.
    lines: u64,
    /// Number of lines for which the store is still asked.
    asked: u64,
}

impl Decoder {
    /// `now` is the time of lines without a time.
    pub fn decode(&mut self, input: &[u8], precision: Precision, now: Timestamp) -> Decoded {
        self.decode_body(input, precision, now, None)
    }

    /// Like [`Decoder::decode`]. If the decoder cannot remember all heads of the sender, it asks `finder` for the series.
    pub fn decode_known(
        &mut self,
        input: &[u8],
        precision: Precision,
        now: Timestamp,
        finder: &mut dyn FindSeries,
    ) -> Decoded {
        if self.asked == 0 {
            return self.decode(input, precision, now);
        }
        self.decode_body(input, precision, now, Some(finder))
    }

    fn decode_body(
        &mut self,
        input: &[u8],
        precision: Precision,
        now: Timestamp,
        finder: Option<&mut dyn FindSeries>,
    ) -> Decoded {
        let mut cursor = Cursor::new(input);
        let mut rejects = Rejects::default();
        let mut known = finder.map(KnownLines::new);
        let mut lines = 0;
        self.gathering.begin_body(input.len());
        self.table.begin_body(input.len());
        while cursor.next_line() {
            lines += 1;
            let begin = cursor.at();
            let read = match known.as_mut().filter(|known| !known.has_ended()) {
                Some(known) => self.read_known_line(&mut cursor, precision, known),
                None => self.read_line(&mut cursor, precision).map(|(line, time)| (Some(line), time)),
            };
            let read = read.and_then(|read| {
                let taken = self.gathering.line_bytes() + known.as_ref().map_or(0, KnownLines::line_bytes);
                let budget = self.table.budget().take_beyond(taken, cursor.at() - begin);
                budget.map(|()| read).map_err(|full| Fault::new(begin, full.to_string()))
            });
            match read {
                Ok((line, time)) => {
                    let time = time.unwrap_or(now);
                    if let Some(line) = line {
                        self.table.end_line(line);
                        self.gathering.keep_line(&self.table, time);
                    }
                    if let Some(known) = &mut known {
                        known.keep_line(time, cursor.at() - begin, &cursor);
                    }
                }
                Err(fault) => {
                    self.table.drop_line();
                    self.gathering.drop_line();
                    known.as_mut().into_iter().for_each(KnownLines::drop_line);
                    rejects.add(|| cursor.refuse(&fault));
                    cursor.skip_line();
                }
            }
        }
        let spellings = known.as_ref().map_or_else(Vec::new, |known| {
            self.gathering.order().map(|series| self.table.spelling(series, known.keys())).collect()
        });
        let known = known.map(KnownLines::into_samples).unwrap_or_default();
        let (batch, runs) = self.gathering.take_batch();
        self.end_body(lines);
        Decoded { batch, known, spellings, runs, rejects }
    }

    fn end_body(&mut self, lines: u64) {
        self.lines += lines;
        self.asked = self.asked.saturating_sub(lines);
        if self.table.bytes() + self.gathering.bytes() > DECODER_BYTES_MAX {
            self.table = SeriesTable::default();
            self.gathering = Gathering::default();
            self.resets += 1;
            self.asked = self.asked.max(self.lines * ASKED_LINES);
            self.lines = 0;
        }
    }

    /// Number of times that the remembered heads were discarded.
    pub const fn resets(&self) -> u64 {
        self.resets
    }

    /// Collects the values of one line. They are kept only if the whole line is valid.
    ///
    /// This and the next function are never inlined, and the functions for numbers are always inlined into both. Without these
    /// attributes, the compiler makes one or two calls for each number, and reading a value takes 14 to 22 % longer.
    #[inline(never)]
    fn read_line(
        &mut self,
        cursor: &mut Cursor<'_>,
        precision: Precision,
    ) -> Result<(Line, Option<Timestamp>), Fault> {
        let mut line = self.table.head(cursor)?;
        loop {
            let series = self.table.field(&mut line, cursor)?;
            self.read_field(series, cursor)?;
            if !cursor.take(b',') {
                break;
            }
        }
        Ok((line, read_time(cursor, precision)?))
    }

    /// Like [`Self::read_line`], but numeric values of series that the store knows go to `known`. `None` instead of a [`Line`] if
    /// the line has no other values.
    #[inline(never)]
    fn read_known_line(
        &mut self,
        cursor: &mut Cursor<'_>,
        precision: Precision,
        known: &mut KnownLines<'_>,
    ) -> Result<(Option<Line>, Option<Timestamp>), Fault> {
        self.table.begin_line(cursor.at());
        let head = cursor.head()?;
        let spelled = known.keys().head(head.bytes);
        let mut line = None;
        loop {
            let key = cursor.key()?;
            let found = if cursor.is_before_string() {
                known.release();
                None
            } else {
                known.find(&spelled, key.bytes)
            };
            if let Some(series) = found {
                known.add(series, read_number(cursor)?);
            } else {
                let line = match &mut line {
                    Some(line) => line,
                    None => line.insert(self.table.line_of(head)?),
                };
                let series = self.table.next_field(line, key)?;
                self.read_field(series, cursor)?;
            }
            if !cursor.take(b',') {
                break;
            }
        }
        Ok((line, read_time(cursor, precision)?))
    }

    #[inline(always)]
    fn read_field(&mut self, series: SeriesIndex, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        match cursor.short_number() {
            Some(number) => self.gathering.add_number(series, number),
            None => match read_value(cursor)? {
                FieldValue::Number(number) => self.gathering.add_number(series, number),
                FieldValue::Text(text) => self.gathering.add_text(series, text),
            },
        }
        Ok(())
    }
}

#[inline(always)]
fn read_time(cursor: &mut Cursor<'_>, precision: Precision) -> Result<Option<Timestamp>, Fault> {
    let Some((time, at)) = cursor.time()? else { return Ok(None) };
    if precision == Precision::Assumed
        && let Some(doubt) = doubt(time)
    {
        return Err(Fault::new(at, doubt));
    }
    let late = || Fault::new(at, format!("time {time} is outside the years 1677 to 2262"));
    time.checked_mul(precision.nanoseconds()).map(Some).ok_or_else(late)
}

/// A field's value as written. A string is still escaped.
#[derive(Clone, Copy, Debug)]
enum FieldValue<'a> {
    Number(Value),
    Text(&'a str),
}

fn read_value<'a>(cursor: &mut Cursor<'a>) -> Result<FieldValue<'a>, Fault> {
    if cursor.take(b'"') {
        return cursor.string().map(FieldValue::Text);
    }
    read_number_token(cursor).map(FieldValue::Number)
}

/// Reads a value that is not a string.
#[inline(always)]
fn read_number(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    cursor.short_number().map_or_else(|| read_number_token(cursor), Ok)
}

fn read_number_token(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let token = cursor.token();
    let value = std::str::from_utf8(token.bytes).ok().and_then(parse_value);
    value.ok_or_else(|| {
        let shown = text::shown(token.bytes);
        Fault::new(token.at, format!("{shown} is not a finite number, a boolean or a quoted string"))
    })
}

fn parse_value(token: &str) -> Option<Value> {
    if let Some(digits) = token.strip_suffix('i') {
        return digits.parse().ok().map(Value::I64);
    }
    if let Some(digits) = token.strip_suffix('u') {
        return digits.parse().ok().map(Value::U64);
    }
    match token {
        "t" | "T" | "true" | "True" | "TRUE" => Some(Value::U64(1)),
        "f" | "F" | "false" | "False" | "FALSE" => Some(Value::U64(0)),
        // Also rejects "inf" and "nan", which Rust parses as numbers.
        _ => token.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::F64),
    }
}

#[cfg(test)]
mod tests;
