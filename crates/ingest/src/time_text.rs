//! Which time does a text name?
//!
//! There are three formats: a number since 1970 in some unit, ISO 8601 (RFC 3339, RFC 9557), and a pattern as in
//! `strptime`. In the last two formats, times without an offset are local times of a given zone.

use std::fmt;

use jiff::civil::DateTime;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::AmbiguousOffset;
pub use jiff::tz::TimeZone;
use tacho_model::Timestamp;

/// The unit of a number since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

impl Unit {
    pub const fn nanoseconds(self) -> i64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Milliseconds => 1_000_000,
            Self::Microseconds => 1_000,
            Self::Nanoseconds => 1,
        }
    }

    /// The unit in which the number is a time between the years 1973 and 5138. In this period the ranges of the four
    /// units do not overlap, so there is only one such unit. Smaller numbers are seconds, larger ones nanoseconds. The sign is
    /// ignored.
    pub fn guess(number: f64) -> Self {
        match number.abs() {
            n if n < 1e11 => Self::Seconds,
            n if n < 1e14 => Self::Milliseconds,
            n if n < 1e17 => Self::Microseconds,
            _ => Self::Nanoseconds,
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "s",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimeFormat {
    Epoch(Unit),
    Iso,
    /// A pattern with the directives of `strptime` that jiff supports.
    Pattern(String),
}

impl fmt::Display for TimeFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epoch(unit) => f.write_str(match unit {
                Unit::Seconds => "epoch",
                Unit::Milliseconds => "epoch-ms",
                Unit::Microseconds => "epoch-us",
                Unit::Nanoseconds => "epoch-ns",
            }),
            Self::Iso => f.write_str("iso"),
            Self::Pattern(pattern) => f.write_str(pattern),
        }
    }
}

/// `iso`, `epoch` or `epoch-s`, `epoch-ms`, `epoch-us`, `epoch-ns`, or a pattern with at least one `%`.
impl std::str::FromStr for TimeFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "iso" => Self::Iso,
            "epoch" | "epoch-s" => Self::Epoch(Unit::Seconds),
            "epoch-ms" => Self::Epoch(Unit::Milliseconds),
            "epoch-us" => Self::Epoch(Unit::Microseconds),
            "epoch-ns" => Self::Epoch(Unit::Nanoseconds),
            pattern if pattern.contains('%') => Self::Pattern(pattern.to_owned()),
            _ => {
                return Err("give iso, epoch, epoch-ms, epoch-us, epoch-ns, or a pattern such as \
                            '%d.%m.%Y %H:%M:%S%.f'"
                    .into());
            }
        })
    }
}

/// Reads times of one format and zone.
#[derive(Clone, Debug)]
pub struct TimeReader {
    format: TimeFormat,
    zone: TimeZone,
    /// Number of local times that occurred twice because a clock was set back. The earlier time was used.
    pub ambiguous: u64,
}

impl TimeReader {
    pub const fn new(format: TimeFormat, zone: TimeZone) -> Self {
        Self { format, zone, ambiguous: 0 }
    }

    /// Reads a time in the format of this reader.
    ///
    /// # Errors
    /// If the text is not a time; the error names the reason and the text.
    pub fn read(&mut self, text: &str) -> Result<Timestamp, String> {
        match &self.format {
            TimeFormat::Epoch(unit) => decimal(text, unit.nanoseconds())
                .ok_or_else(|| format!("{} is not a number of {unit} since 1970", super::rows::shown(text))),
            TimeFormat::Iso => match text.parse::<jiff::Timestamp>() {
                Ok(at) => in_range(at, text),
                Err(_) => match text.parse::<DateTime>() {
                    Ok(local) => self.local(local, text),
                    Err(_) => Err(format!("{} is not a time in ISO 8601", super::rows::shown(text))),
                },
            },
            TimeFormat::Pattern(pattern) => {
                let bad = || format!("{} is not a time like {pattern:?}", super::rows::shown(text));
                let parsed = BrokenDownTime::parse(pattern, text).map_err(|_| bad())?;
                if parsed.offset().is_some() {
                    return in_range(parsed.to_timestamp().map_err(|_| bad())?, text);
                }
                let local = match parsed.to_datetime() {
                    Ok(local) => local,
                    Err(_) => parsed.to_date().map_err(|_| bad())?.into(),
                };
                self.local(local, text)
            }
        }
    }

    /// Converts a local time to UTC. `ns` is the local time in ns since 1970-01-01 00:00 of the same clock.
    #[cfg(feature = "parquet")]
    pub(crate) fn utc_of_local(&mut self, ns: i128) -> Result<Timestamp, String> {
        let text = format!("{ns} ns");
        let local = jiff::Timestamp::from_nanosecond(ns).map_err(|_| outside(&text))?;
        self.local(TimeZone::UTC.to_datetime(local), &text)
    }

    fn local(&mut self, local: DateTime, text: &str) -> Result<Timestamp, String> {
        let moment = self.zone.to_ambiguous_timestamp(local);
        match moment.offset() {
            AmbiguousOffset::Gap { .. } => {
                return Err(format!("{} did not exist: the clock was set forward", super::rows::shown(text)));
            }
            AmbiguousOffset::Fold { .. } => self.ambiguous += 1,
            AmbiguousOffset::Unambiguous { .. } => {}
        }
        let at = moment.compatible().map_err(|_| outside(text))?;
        in_range(at, text)
    }
}

fn in_range(at: jiff::Timestamp, text: &str) -> Result<Timestamp, String> {
    i64::try_from(at.as_nanosecond()).map_err(|_| outside(text))
}

fn outside(text: &str) -> String {
    format!("time {} is outside the years 1677 to 2262", super::rows::shown(text))
}

/// Converts a decimal number of units to nanoseconds. A unit has `scale` nanoseconds. Digits below one nanosecond are truncated.
/// Exponents are not allowed.
pub(crate) fn decimal(text: &str, scale: i64) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let sign = if negative { -1 } else { 1 };
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        format!("{}{whole}", if negative { "-" } else { "" }).parse().ok()?
    };
    let mut part = 0i64;
    let mut unit = scale;
    for digit in fraction.bytes() {
        unit /= 10;
        part += i64::from(digit - b'0') * unit;
    }
    whole.checked_mul(scale)?.checked_add(sign * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: &str, zone: TimeZone, text: &str, expect: Result<i64, &str>) {
        let got = TimeReader::new(format.parse().unwrap(), zone).read(text);
        match (&got, expect) {
            (Ok(at), Ok(expect)) => assert_eq!(*at, expect, "{format} {text}"),
            (Err(reason), Err(expect)) => assert!(reason.contains(expect), "{expect} in {reason}"),
            _ => panic!("{format} {text}: {got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn times_are_exact_and_errors_name_the_text() {
        let berlin = || TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let utc = || TimeZone::UTC;
        let german = "%d.%m.%Y %H:%M:%S%.f";
        check(german, utc(), "12.08.2015 17:25:41.389", Ok(1_439_400_341_389_000_000));
        check(german, berlin(), "12.08.2015 17:25:41.389", Ok(1_439_393_141_389_000_000));
        check(german, berlin(), "12.08.2015 17:25:41", Ok(1_439_393_141_000_000_000));
        check(german, utc(), "32.08.2015 17:25:41", Err("\"32.08.2015 17:25:41\" is not a time like"));
        check("%d.%m.%Y", utc(), "02.01.1970", Ok(86_400_000_000_000));
        check("%Y-%m-%d %H:%M:%S %z", berlin(), "1970-01-01 01:00:00 +0100", Ok(0));
        check("iso", utc(), "1970-01-01T00:00:01.5Z", Ok(1_500_000_000));
        check("iso", berlin(), "1970-01-01 01:00:01", Ok(1_000_000_000));
        check("iso", berlin(), "2015-03-29T02:30:00", Err("did not exist"));
        check("iso", utc(), "3000-01-01T00:00:00Z", Err("outside the years 1677 to 2262"));
        check("iso", utc(), "soon", Err("\"soon\" is not a time in ISO 8601"));
        check("epoch", utc(), "1700000000.123456789", Ok(1_700_000_000_123_456_789));
        check("epoch-ms", utc(), "-0.5", Ok(-500_000));
        check("epoch-ns", utc(), "9223372036854775807", Ok(i64::MAX));
        check("epoch-ns", utc(), "-9223372036854775808", Ok(i64::MIN));
        check("epoch", utc(), "9223372037", Err("is not a number of s since 1970"));
        check("epoch", utc(), "1.", Ok(1_000_000_000));
        for bad in ["", ".", "-", "1e9", "1,5", "0x1"] {
            check("epoch", utc(), bad, Err("is not a number of s since 1970"));
        }
    }

    #[test]
    fn an_ambiguous_local_time_is_counted() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let mut reader = TimeReader::new(TimeFormat::Iso, zone);
        let earlier = reader.read("2015-10-25T02:30:00").unwrap();
        assert_eq!((earlier, reader.ambiguous), (1_445_733_000_000_000_000, 1));
    }

    #[test]
    fn the_unit_is_detected_from_the_size() {
        for (number, unit) in [
            (1.7e9, Unit::Seconds),
            (1.7e12, Unit::Milliseconds),
            (1.7e15, Unit::Microseconds),
            (1.7e18, Unit::Nanoseconds),
        ] {
            assert_eq!(Unit::guess(number), unit);
        }
    }
}
