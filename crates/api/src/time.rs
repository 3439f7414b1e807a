//! Times and durations in parameters. Times are Unix seconds or RFC 3339. Commands also accept dates and times relative to now.
//! Durations have the Prometheus form or are seconds.

use tacho_model::{DURATION_UNITS, Timestamp};

const NS: i64 = 1_000_000_000;

/// Parses Unix seconds or RFC 3339. A fraction is exact to the nanosecond, except in a number with an exponent. `None` for
/// any other text, and for a time outside of [`RANGE`].
pub fn parse_time(text: &str) -> Option<Timestamp> {
    parse_seconds(text).or_else(|| {
        let at: jiff::Timestamp = text.parse().ok()?;
        i64::try_from(at.as_nanosecond()).ok()
    })
}

/// Whether the text is Unix seconds or RFC 3339, but of a time that 64-bit nanoseconds cannot represent.
pub fn is_out_of_range(text: &str) -> bool {
    let text = text.trim();
    // `f64` accepts `+5` and `.5e3`, but `parse_time` does not.
    let begins_with_digit = text.strip_prefix('-').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit());
    let is_number = begins_with_digit && text.parse().is_ok_and(f64::is_finite);
    let is_moment = text.parse::<jiff::Timestamp>().is_ok()
        || text.strip_suffix(['Z', 'z']).is_some_and(|civil| civil.parse::<jiff::civil::DateTime>().is_ok());
    (is_number || is_moment) && parse_time(text).is_none()
}

/// The times that can be represented, for messages.
pub const RANGE: &str = "1677-09-21 to 2262-04-11";

/// Parses a time that a person writes: a form of [`parse_time`], a time relative to now (`now`, `-2h`, `2h ago`, `now-2h`), or
/// a date with or without a time of day. A date without a zone is in UTC, like the times that commands print.
pub fn parse_moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    parse_time(text).or_else(|| relative(text, now)).or_else(|| in_utc(text))
}

fn relative(text: &str, now: Timestamp) -> Option<Timestamp> {
    if text == "now" {
        return Some(now);
    }
    let rest = text.strip_prefix("now").map_or(text, str::trim_start);
    let (sign, duration) = match (rest.strip_prefix('-'), rest.strip_prefix('+'), rest.strip_suffix("ago")) {
        (Some(duration), ..) => (-1, duration),
        (_, Some(duration), _) if rest.len() < text.len() => (1, duration),
        (.., Some(duration)) if rest.len() == text.len() => (-1, duration),
        _ => return None,
    };
    now.checked_add(sign * parse_duration_with_unit(duration.trim())?)
}

fn in_utc(text: &str) -> Option<Timestamp> {
    let at: jiff::civil::DateTime = text.parse().ok()?;
    let at = at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    i64::try_from(at.as_nanosecond()).ok()
}

/// Parses `5m`, `1h30m`, `1.5s`, `100ms`, or a number of seconds. Returns nanoseconds above zero.
pub fn parse_duration(text: &str) -> Option<i64> {
    parse_seconds(text).or_else(|| parse_units(text)).filter(|ns| *ns > 0)
}

/// The same as [`parse_duration`], but rejects numbers without a unit, because a user may mean a unit other than seconds.
pub fn parse_duration_with_unit(text: &str) -> Option<i64> {
    parse_units(text).filter(|ns| *ns > 0)
}

/// Whether the text has the form of a duration with units, of any length.
pub fn is_duration_form(text: &str) -> bool {
    !text.is_empty() && parse_units(&text.replace(|c: char| c.is_ascii_digit(), "0")).is_some()
}

/// Whether the text is a duration with units that 64-bit nanoseconds cannot represent.
pub fn is_too_long(text: &str) -> bool {
    is_duration_form(text) && parse_units(text).is_none()
}

/// Converts decimal seconds to nanoseconds. Fraction digits after the ninth are dropped. A number with an exponent is
/// converted through `f64`.
fn parse_seconds(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if digits.contains(['e', 'E']) && digits.starts_with(|c: char| c.is_ascii_digit()) {
        return from_float(text.parse().ok()?);
    }
    let ns = i64::try_from(parse_decimal(digits)?).ok()?;
    Some(if negative { -ns } else { ns })
}

/// Converts `1`, `1.5` or `.5` to billionths. Fraction digits after the ninth are dropped.
fn parse_decimal(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if text.len() == usize::from(text.contains('.')) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nine: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    Some(i128::from(whole) * i128::from(NS) + nine.parse::<i128>().ok()?)
}

#[expect(clippy::cast_possible_truncation, reason = "bounds are checked")]
fn from_float(seconds: f64) -> Option<i64> {
    let ns = seconds * 1e9;
    (ns.abs() < 9.2e18).then_some(ns as i64)
}

fn parse_units(text: &str) -> Option<i64> {
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let (mut rest, mut total, mut next) = (text, 0i64, 0);
    while !rest.is_empty() {
        let (count, behind) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, behind) = behind.split_at(behind.find(is_number).unwrap_or(behind.len()));
        let at = DURATION_UNITS.iter().position(|(name, _)| *name == unit).filter(|at| *at >= next)?;
        let ns = parse_decimal(count)?.checked_mul(DURATION_UNITS[at].1.into())? / i128::from(NS);
        total = total.checked_add(i64::try_from(ns).ok()?)?;
        (rest, next) = (behind, at + 1);
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_to_nanoseconds() {
        let cases = [
            ("0", Some(0)),
            ("4", Some(4 * NS)),
            ("-1.5", Some(-1_500_000_000)),
            ("1700000000.123456789", Some(1_700_000_000_123_456_789)),
            (".5", Some(NS / 2)),
            ("1.7e9", Some(1_700_000_000 * NS)),
            ("1970-01-01T00:00:01Z", Some(NS)),
            ("1970-01-01T01:00:00.5+01:00", Some(NS / 2)),
            ("99999999999999", None),
            ("", None),
            (".", None),
            ("now", None),
            ("1,5", None),
        ];
        for (text, expect) in cases {
            assert_eq!(parse_time(text), expect, "{text}");
        }
    }

    #[test]
    fn only_texts_with_the_form_of_a_time_are_out_of_range() {
        for text in ["99999999999999", "-99999999999999", "1e300", "9999999999.5e9", "0001-01-01T00:00:00Z"] {
            assert!(is_out_of_range(text), "{text}");
        }
        for text in ["+5", ".5e3", "+1e300", "-.5e300", "inf", "NaN", "-", "", "5", "-1.5", "tomorrow"] {
            assert!(!is_out_of_range(text), "{text}");
        }
    }

    #[test]
    fn durations_above_292_years_have_the_form_of_a_duration() {
        for text in ["300y", "999999999999999999999d", "292y9999999h", "-300y"] {
            let unsigned = text.trim_start_matches('-');
            assert_eq!((is_duration_form(unsigned), is_too_long(unsigned)), (true, true), "{text}");
            assert!(!is_too_long(text) || unsigned == text, "{text}");
        }
        for text in ["292y", "0s", "1h30m", "1.5s"] {
            assert_eq!((is_duration_form(text), is_too_long(text)), (true, false), "{text}");
        }
        for text in ["", "5", "1m1h", "5q", "s", "3 days"] {
            assert_eq!((is_duration_form(text), is_too_long(text)), (false, false), "{text}");
        }
    }

    #[test]
    fn moments_are_parsed_as_a_person_writes_them() {
        let day = 86_400 * NS;
        let now = 20_000 * day + 5;
        for (text, expect) in [
            ("now", Some(now)),
            ("-2h", Some(now - 7_200 * NS)),
            ("2h ago", Some(now - 7_200 * NS)),
            ("1h30m ago", Some(now - 5_400 * NS)),
            ("2hago", Some(now - 7_200 * NS)),
            ("now-2h", Some(now - 7_200 * NS)),
            ("now - 2h", Some(now - 7_200 * NS)),
            ("now+1d", Some(now + day)),
            ("-1.5s", Some(now - 1_500_000_000)),
            // A number is Unix seconds, not relative to now.
            ("-60", Some(-60 * NS)),
            ("1700000000", Some(1_700_000_000 * NS)),
            ("2026-11-01", Some(1_793_491_200 * NS)),
            ("2026-11-01 12:30", Some(1_793_536_200 * NS)),
            ("2026-11-01T12:30:05", Some(1_793_536_205 * NS)),
            ("2026-11-01T12:30:05Z", Some(1_793_536_205 * NS)),
            ("2026-11-01T12:30:05+01:00", Some(1_793_532_605 * NS)),
            (" 2026-11-01 ", Some(1_793_491_200 * NS)),
            ("2h", None),
            ("+2h", None),
            ("-2", Some(-2 * NS)),
            ("2 ago", None),
            ("now-2", None),
            ("now2h", None),
            ("now 2h ago", None),
            ("ago", None),
            ("-", None),
            ("", None),
            ("01.11.2026", None),
            ("11/01/2026", None),
            ("12:30", None),
            ("2026-13-01", None),
            ("-300y", None),
            ("soon", None),
        ] {
            assert_eq!(parse_moment(text, now), expect, "{text}");
        }
    }

    #[test]
    fn durations_are_parsed_to_nanoseconds() {
        let cases = [
            ("15", Some(15 * NS)),
            ("0.25", Some(NS / 4)),
            ("5m", Some(300 * NS)),
            ("1h30m", Some(5_400 * NS)),
            ("100ms", Some(NS / 10)),
            ("1d12h", Some(129_600 * NS)),
            ("1.5s", Some(1_500_000_000)),
            ("1.5h30.25s", Some(5_430_250_000_000)),
            (".5m", Some(30 * NS)),
            ("10000000000ms", Some(10_000_000 * NS)),
            ("0.000000001s", Some(1)),
            ("5m1h", None),
            ("0", None),
            ("-5", None),
            ("5", Some(5 * NS)),
            ("m", None),
            ("5q", None),
            ("999999999y", None),
            ("9223372036854775807y", None),
            ("9999999999999999999s", None),
            ("", None),
            (".s", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("3 days", None),
            ("1e400s", None),
        ];
        for (text, expect) in cases {
            assert_eq!(parse_duration(text), expect, "{text}");
            let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
            assert_eq!(parse_duration_with_unit(text), expect.filter(|_| has_unit), "{text}");
        }
    }
}
