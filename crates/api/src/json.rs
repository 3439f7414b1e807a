//! JSON in the notation of Prometheus: times are seconds with milliseconds, and `NaN` and infinities are strings.

use serde_json::{Value, json};
use tacho_model::Timestamp;

/// Nanoseconds as seconds, rounded down to whole milliseconds as in Prometheus.
pub fn seconds(at: Timestamp) -> Value {
    let ms = at.div_euclid(1_000_000);
    if ms % 1_000 == 0 { json!(ms / 1_000) } else { json!(milliseconds_as_seconds(ms)) }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of i64 nanoseconds stay below 2^53")]
fn milliseconds_as_seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

/// A member's value as text. Strings have no quotes.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Number of bytes of a text in JSON: with the escapes that `serde_json` writes, without the quotes.
pub fn json_text_bytes(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() + text.bytes().map(escape).sum::<usize>()
}

/// A float as a number, or as one of the strings `NaN`, `+Inf` and `-Inf`. Older versions wrote `null` instead of these
/// strings. `null` is read as infinity, which means that a bound is unknown.
pub mod float {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use serde_json::{Value, json};

    pub fn value(v: f64) -> Value {
        if v.is_finite() { json!(v) } else { json!(text(v)) }
    }

    const fn text(v: f64) -> &'static str {
        if v.is_nan() {
            "NaN"
        } else if v > 0.0 {
            "+Inf"
        } else {
            "-Inf"
        }
    }

    /// The inverse of [`value`]. `None` if the member is not a float.
    pub fn read(value: &Value) -> Option<f64> {
        match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            Value::Null => Some(f64::INFINITY),
            _ => None,
        }
    }

    pub fn serialize<S: Serializer>(v: &f64, to: S) -> Result<S::Ok, S::Error> {
        if v.is_finite() { v.serialize(to) } else { to.serialize_str(text(*v)) }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        let value = Value::deserialize(from)?;
        read(&value).ok_or_else(|| D::Error::custom(format!("{value} is not a number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_text_is_that_of_its_json() {
        let text: String = (0..=0x7fu8).map(char::from).chain("ä漢🚀".chars()).collect();
        let written = serde_json::to_string(&text).unwrap();
        assert_eq!(json_text_bytes(&text), written.len() - 2);
    }

    #[test]
    fn floats_round_trip_even_nan_and_infinities() {
        #[derive(serde::Serialize, serde::Deserialize)]
        struct Member(#[serde(with = "float")] f64);
        for (v, text) in [
            (0.5, "0.5"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "\"+Inf\""),
            (f64::NEG_INFINITY, "\"-Inf\""),
            (f64::NAN, "\"NaN\""),
        ] {
            let written = serde_json::to_string(&Member(v)).unwrap();
            assert_eq!((written.as_str(), float::value(v).to_string().as_str()), (text, text));
            let Member(back) = serde_json::from_str(&written).unwrap();
            assert_eq!(back.total_cmp(&v), std::cmp::Ordering::Equal, "{text}");
        }
        assert_eq!(serde_json::from_str::<Member>("null").unwrap().0, f64::INFINITY);
        for wrong in ["true", "\"much\"", "[]"] {
            assert!(serde_json::from_str::<Member>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_keep_milliseconds() {
        for (ns, text) in [
            (0, "0"),
            (1_500_000_000, "1.5"),
            (1_700_000_000_123_456_789, "1700000000.123"),
            (-1_000_000, "-0.001"),
        ] {
            assert_eq!(seconds(ns).to_string(), text);
        }
    }
}
