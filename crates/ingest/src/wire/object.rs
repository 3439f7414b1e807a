//! The body of a declared record's entry: a JSON object (RFC 8259), written member by member.
//!
//! Whole numbers keep all digits. Numbers that JSON cannot express (`NaN`, `+Inf`, `-Inf`) are strings, as in PromQL
//! responses.

use std::fmt::Write;

use crate::json_text;

const NS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// An object under construction. A member is written as its name, then its value.
#[derive(Default)]
pub(super) struct Object {
    out: String,
}

impl Object {
    pub fn name(&mut self, name: &str) {
        self.out.push(if self.out.is_empty() { '{' } else { ',' });
        self.text(name);
        self.out.push(':');
    }

    pub fn null(&mut self) {
        self.out.push_str("null");
    }

    pub fn truth(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    pub fn number(&mut self, value: impl std::fmt::Display) {
        self.put(format_args!("{value}"));
    }

    /// The fewest digits that identify this number.
    pub fn real(&mut self, value: f64) {
        match special(value) {
            Some(text) => self.text(text),
            None => self.put(format_args!("{value:?}")),
        }
    }

    /// The same as [`Object::real`], for a 32-bit number: the 32-bit number 0.1 is written as 0.1, not as 0.10000000149011612.
    pub fn real_short(&mut self, value: f32) {
        match special(f64::from(value)) {
            Some(text) => self.text(text),
            None => self.put(format_args!("{value:?}")),
        }
    }

    /// A time as in RFC 3339, in UTC, with nine digits of nanoseconds.
    pub fn time(&mut self, at: i64) {
        let seconds = at.div_euclid(NS_PER_SECOND);
        let (year, month, day) = date(seconds.div_euclid(SECONDS_PER_DAY));
        let second = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        let ns = at.rem_euclid(NS_PER_SECOND);
        self.put(format_args!(
            "\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z\""
        ));
    }

    pub fn text(&mut self, text: &str) {
        json_text::put(&mut self.out, text);
    }

    pub fn so_far(&self) -> &[u8] {
        self.out.as_bytes()
    }

    pub fn finish(mut self) -> String {
        self.out.push_str(if self.out.is_empty() { "{}" } else { "}" });
        self.out
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.out.write_fmt(arguments);
    }
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        None
    }
}

/// Year, month and day of a number of days since 1970, in the proleptic Gregorian calendar. The calculation begins
/// years in March, so that a leap day is the last day of its year. 400 years have 146,097 days.
const fn date(day: i64) -> (i64, i64, i64) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + if month <= 2 { 1 } else { 0 }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expect: &str, put: impl FnOnce(&mut Object)) {
        let mut object = Object::default();
        object.name("a");
        put(&mut object);
        assert_eq!(object.finish(), format!("{{\"a\":{expect}}}"));
    }

    #[test]
    fn values_are_json() {
        check("null", Object::null);
        check("true", |object| object.truth(true));
        check("-9223372036854775808", |object| object.number(i64::MIN));
        check("18446744073709551615", |object| object.number(u64::MAX));
        check("9.5", |object| object.real(9.5));
        check("-0.0", |object| object.real(-0.0));
        check("1e300", |object| object.real(1e300));
        check("5e-324", |object| object.real(5e-324));
        check("\"NaN\"", |object| object.real(f64::NAN));
        check("\"+Inf\"", |object| object.real(f64::INFINITY));
        check("\"-Inf\"", |object| object.real_short(f32::NEG_INFINITY));
        check("0.1", |object| object.real_short(0.1));
        check(r#""ö漢🚀 \"\\\n\r\t\u0000\u001f""#, |object| object.text("ö漢🚀 \"\\\n\r\t\0\u{1f}"));
        assert_eq!(Object::default().finish(), "{}");
    }

    #[test]
    fn times_are_dates_of_any_year() {
        check("\"1970-01-01T00:00:00.000000000Z\"", |object| object.time(0));
        check("\"2024-02-29T23:59:59.999999999Z\"", |object| object.time(1_709_251_199_999_999_999));
        check("\"2000-03-01T00:00:00.000000001Z\"", |object| object.time(951_868_800_000_000_001));
        check("\"1969-12-31T23:59:59.999999999Z\"", |object| object.time(-1));
        check("\"1677-09-21T00:12:43.145224192Z\"", |object| object.time(i64::MIN));
        check("\"2262-04-11T23:47:16.854775807Z\"", |object| object.time(i64::MAX));
    }
}
