//! What is the value of a number, duration or string? The rules are those of Prometheus, most of which come from Go.

use std::borrow::Cow;
use std::time::Duration;

use tacho_model::DURATION_UNITS;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Plain(f64),
    /// Duration in ns.
    Duration(i64),
}

/// The longest duration, as written in messages.
const LONGEST: &str = "292 years";

impl Number {
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("{} is neither a number nor a duration such as 1h30m", quoted(text));
        if !underscores_separate_digits(text) {
            return Err(bad());
        }
        let digits: Cow<'_, str> =
            if text.contains('_') { text.replace('_', "").into() } else { text.into() };
        if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            return integer(digits, 16).map(Self::Plain).ok_or_else(bad);
        }
        let is_octal = digits.len() > 1 && digits.starts_with('0');
        if is_octal && let Some(number) = integer(&digits, 8) {
            return Ok(Self::Plain(number));
        }
        // Rust also accepts "inf" and "nan", but the text starts with a digit or a dot.
        if let Ok(number) = digits.parse::<f64>() {
            let too_large = || format!("number {} does not fit into 64 bits", quoted(text));
            return if number.is_finite() { Ok(Self::Plain(number)) } else { Err(too_large()) };
        }
        duration(text).unwrap_or_else(|| Err(bad())).map(Self::Duration)
    }

    /// The value of the literal as an operand. The value of a duration is its number of seconds.
    pub fn value(self) -> f64 {
        match self {
            Self::Plain(number) => number,
            Self::Duration(ns) => Duration::from_nanos(ns.unsigned_abs()).as_secs_f64(),
        }
    }

    /// The literal as a duration or time in ns. A number counts as seconds. `None` if it is NaN, negative or too large.
    pub fn nanoseconds(self) -> Option<i64> {
        match self {
            Self::Plain(seconds) => i64::try_from(Duration::try_from_secs_f64(seconds).ok()?.as_nanos()).ok(),
            Self::Duration(ns) => Some(ns),
        }
    }
}

pub fn too_long(text: &str) -> String {
    format!("duration {} is longer than {LONGEST}", quoted(text))
}

/// Quotes a part of the query for a message; a long part is cut.
pub fn quoted(text: &str) -> String {
    let (shown, dots) = cut(text);
    format!("{shown:?}{dots}")
}

/// Like [`quoted`], for a string that has quotes.
pub fn quoted_already(text: &str) -> String {
    let (shown, dots) = cut(text);
    format!("{shown}{dots}")
}

/// The part of a text that a message shows, and dots if the text is cut.
fn cut(text: &str) -> (&str, &'static str) {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => (&text[..end], "..."),
        None => (text, ""),
    }
}

/// Integers up to `i64::MAX`, as in Prometheus.
#[expect(clippy::cast_precision_loss, reason = "large integers are rounded, as in Prometheus")]
fn integer(digits: &str, radix: u32) -> Option<f64> {
    let is_digit = |c: char| c.is_digit(radix);
    if !digits.chars().all(is_digit) {
        return None;
    }
    i64::from_str_radix(digits, radix).ok().map(|number| number as f64)
}

/// Checks that each underscore is between two digits, or between `0x` and a digit.
fn underscores_separate_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let radix = if text.starts_with("0x") || text.starts_with("0X") { 16 } else { 10 };
    let is_digit = |at: usize| bytes.get(at).is_some_and(|byte| char::from(*byte).is_digit(radix));
    let after_prefix = |at: usize| radix == 16 && at == 2;
    bytes
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'_')
        .all(|(at, _)| (at.checked_sub(1).is_some_and(is_digit) || after_prefix(at)) && is_digit(at + 1))
}

/// The duration in ns. `None` if the text is not a duration; `Err` if the duration is too long.
fn duration(text: &str) -> Option<Result<i64, String>> {
    let mut rest = text;
    let mut units = DURATION_UNITS.iter();
    let mut total: Option<i64> = Some(0);
    while !rest.is_empty() {
        let (digits, after) = rest.split_at(rest.bytes().position(|b| !b.is_ascii_digit())?);
        let end = after.bytes().position(|b| b.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, ns) = units.find(|(name, _)| *name == unit).filter(|_| !digits.is_empty())?;
        let part = digits.parse::<i64>().ok().and_then(|count| count.checked_mul(*ns));
        total = total.zip(part).and_then(|(total, part)| total.checked_add(part));
        rest = after;
    }
    Some(total.ok_or_else(|| too_long(text)))
}

/// The content of a string with quotes. An error has the distance in bytes from the first quote to the fault (0 if the
/// escapes yield bytes that are not UTF-8), and the message.
pub fn unquote(text: &str) -> Result<Cow<'_, str>, (usize, String)> {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    if text.starts_with('`') || !inner.contains('\\') {
        return Ok(inner.into());
    }
    let quote = text.as_bytes().first().copied().unwrap_or(b'"');
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at..];
        let place = 1 + inner.len() - escape.len();
        let length = unescape(escape, quote, &mut bytes).ok_or_else(|| {
            let shown: String = escape.chars().take(2).collect();
            (place, format!("unknown or incomplete escape {shown} in a string"))
        })?;
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| (0, "the escapes of the string yield bytes that are not UTF-8".to_owned()))
}

/// Appends the meaning of the escape at the start of `text`; returns the length of the escape.
fn unescape(text: &str, quote: u8, out: &mut Vec<u8>) -> Option<usize> {
    let letter = *text.as_bytes().get(1)?;
    let number = |from: usize, count: usize, radix: u32| {
        let digits = text.get(from..from + count)?;
        let all = digits.bytes().all(|b| char::from(b).is_digit(radix));
        u32::from_str_radix(digits, radix).ok().filter(|_| all)
    };
    let (byte, length) = match letter {
        b'a' => (7, 2),
        b'b' => (8, 2),
        b'f' => (12, 2),
        b'n' => (b'\n', 2),
        b'r' => (b'\r', 2),
        b't' => (b'\t', 2),
        b'v' => (11, 2),
        b'\\' => (b'\\', 2),
        b'0'..=b'7' => (u8::try_from(number(1, 3, 8)?).ok()?, 4),
        b'x' => (u8::try_from(number(2, 2, 16)?).ok()?, 4),
        b'u' | b'U' => {
            let count = if letter == b'u' { 4 } else { 8 };
            let c = char::from_u32(number(2, count, 16)?)?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(2 + count);
        }
        _ if letter == quote => (quote, 2),
        _ => return None,
    };
    out.push(byte);
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_in_prometheus() {
        for (text, expect) in [
            ("0", 0.0),
            ("1.5", 1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1e3),
            ("1E-3", 1e-3),
            ("1.5e+2", 150.0),
            ("0x1F", 31.0),
            ("0Xfe", 254.0),
            ("0x_1_f", 31.0),
            ("0755", 493.0),
            ("0_7", 7.0),
            ("089", 89.0),
            ("0.5", 0.5),
            ("1_000_000.2_5", 1_000_000.25),
            ("9223372036854775807", 9_223_372_036_854_775_807.0),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
        ] {
            assert_eq!(Number::parse(text), Ok(Number::Plain(expect)), "{text}");
        }
        for bad in [
            "1_", "1__0", "1_.5", "1._5", "0x", "0xg", "0x1.5", "1.2.3", "1e", "1e+", "12a", "0_x1", "1e_3",
            "1_e3",
        ] {
            assert!(Number::parse(bad).is_err(), "{bad}: {:?}", Number::parse(bad));
        }
        for large in ["1e400", "0xffffffffffffffffff"] {
            assert!(Number::parse(large).is_err(), "{large}");
        }
    }

    #[test]
    fn durations_have_descending_units() {
        for (text, seconds) in [
            ("5m", 300.0),
            ("1h30m", 5_400.0),
            ("1y2w3d4h5m6s7ms", 33_019_506.007),
            ("0s", 0.0),
            ("90ms", 0.09),
            ("7862400000ms", 7_862_400.0),
            ("292y", 292.0 * 365.0 * 86_400.0),
        ] {
            let parsed = Number::parse(text).unwrap();
            assert!(matches!(parsed, Number::Duration(_)), "{text}");
            assert_eq!(parsed.value(), seconds, "{text}");
        }
        for bad in ["5m1h", "5m5m", "1h2", "1.5h", "5M", "1mss", "m", "1hm", "1_0m"] {
            let message = Number::parse(bad).unwrap_err();
            assert!(message.contains("neither a number nor a duration"), "{bad}: {message}");
        }
        for long in ["293y", "99999999999999999999s", "292y52w"] {
            let message = Number::parse(long).unwrap_err();
            assert!(message.ends_with("is longer than 292 years"), "{long}: {message}");
        }
        assert_eq!(Number::Plain(1.5).nanoseconds(), Some(1_500_000_000));
        for bad in [1e300, f64::NAN, -1.0, 9.3e9] {
            assert_eq!(Number::Plain(bad).nanoseconds(), None, "{bad}");
        }
    }

    #[test]
    fn escapes_are_those_of_go() {
        for (text, expect) in [
            (r#""""#, ""),
            (r#""a'b`c""#, "a'b`c"),
            (r#""\a\b\f\n\r\t\v\\\"""#, "\u{7}\u{8}\u{c}\n\r\t\u{b}\\\""),
            (r"'\''", "'"),
            (r"`\n`", "\\n"),
            ("`a\nb`", "a\nb"),
            (r#""\x41\101\u00e9\U0001F600""#, "AAé😀"),
            (r#""\xc3\xa9\303\251""#, "éé"),
            ("\"é\\té\"", "é\té"),
        ] {
            assert_eq!(unquote(text).as_deref(), Ok(expect), "{text}");
        }
        for (text, at) in [
            (r#""\'""#, 1),
            (r#"'\"'"#, 1),
            (r#""ab\q""#, 3),
            (r#""\x4""#, 1),
            (r#""\x+4""#, 1),
            (r#""\400""#, 1),
            (r#""\ud800""#, 1),
            (r#""\U00110000""#, 1),
            (r#""é\é""#, 3),
            (r#""\xff""#, 0),
        ] {
            assert_eq!(unquote(text).unwrap_err().0, at, "{text}");
        }
    }
}
