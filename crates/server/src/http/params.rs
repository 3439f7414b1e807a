//! Parameters of a request, from the path, from the query string and from a POST form. Errors name the parameter.

use std::ops::RangeInclusive;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use tacho_api::time;
use tacho_model::{TimeRange, Timestamp};

use super::error::ApiError;

/// Length of the range of a request without `start`: one hour, in nanoseconds.
const RANGE_DEFAULT_NS: i64 = 3_600_000_000_000;

/// Limit on the parameters of one request. A request to remove rules needs one parameter for each of up to 1,000 rules. An
/// empty parameter takes 2 bytes of the request, but 60 bytes of memory.
const PARAMETERS_MAX: usize = 2_048;

/// The decoded part of the path that the placeholder of the route stands for. Handlers use it instead of axum's `Path`, whose
/// errors are not JSON.
pub struct PathText(pub String);

impl<S: Send + Sync> FromRequestParts<S> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let text = Path::<String>::from_request_parts(parts, state).await;
        // All routes with a placeholder have exactly one, so this is the only possible error.
        let bad = |_| ApiError::bad(format!("path {:?} is not UTF-8 after decoding", parts.uri.path()));
        text.map(|Path(text)| Self(text)).map_err(bad)
    }
}

/// All parameters in order. Names may repeat.
pub struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequest<S> for Params {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let Self(mut all) = Self::from_uri(request.uri())?;
        if is_form(request.method(), request.headers()) {
            let body = Bytes::from_request(request, state).await.map_err(|e| ApiError::bad(e.body_text()))?;
            check(all.len(), &body)?;
            all.extend(form_urlencoded::parse(&body).into_owned());
        }
        Ok(Self(all))
    }
}

/// Whether the body of a request has parameters.
pub fn is_form(method: &Method, headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    method == Method::POST
        && content_type.to_ascii_lowercase().starts_with(b"application/x-www-form-urlencoded")
}

/// Refuses too many parameters before they are parsed, and parameters that are not UTF-8. The parser would replace bytes that
/// are not UTF-8, so that the request would select other series.
fn check(before: usize, encoded: &[u8]) -> Result<(), ApiError> {
    let parts = || encoded.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let count = before + parts().count();
    if count > PARAMETERS_MAX {
        let message = format!("{count} parameters are over {PARAMETERS_MAX}: send several requests");
        return Err(ApiError::bad(message));
    }
    match parts().position(|part| !is_utf8(part)) {
        Some(nth) => Err(ApiError::bad(format!("parameter {} is not UTF-8", before + nth + 1))),
        None => Ok(()),
    }
}

/// Whether the bytes are UTF-8 after their percent encoding is decoded.
fn is_utf8(mut encoded: &[u8]) -> bool {
    // All bytes below 0x80 are UTF-8. Most parameters have no others, neither plain nor encoded as `%80` to `%ff`.
    let has_others = encoded.iter().any(|byte| !byte.is_ascii())
        || encoded.windows(2).any(|pair| matches!(pair, [b'%', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F']));
    if !has_others {
        return true;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(encoded.len());
    while let [first, rest @ ..] = encoded {
        let (byte, rest) = match (first, rest) {
            (b'%', [high, low, rest @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, rest),
                _ => (b'%', encoded.get(1..).unwrap_or_default()),
            },
            _ => (*first, rest),
        };
        decoded.push(byte);
        encoded = rest;
    }
    std::str::from_utf8(&decoded).is_ok()
}

impl Params {
    /// Reads only the query string, for requests whose body is not a form.
    pub fn from_uri(uri: &Uri) -> Result<Self, ApiError> {
        let encoded = uri.query().unwrap_or_default().as_bytes();
        check(0, encoded)?;
        Ok(Self(form_urlencoded::parse(encoded).into_owned().collect()))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str()).filter(|v| !v.is_empty())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// For requests whose parameters narrow a selection. With a misspelt, empty or repeated parameter, more would be selected
    /// than is meant.
    ///
    /// # Errors
    /// When a parameter is neither among `single` nor among `lists`, is empty, or is one of `single` and repeated.
    pub fn only(&self, single: &[&str], lists: &[&str]) -> Result<(), ApiError> {
        for (nth, (name, value)) in self.0.iter().enumerate() {
            let is_single = single.contains(&name.as_str());
            if !is_single && !lists.contains(&name.as_str()) {
                let known = match [single, lists].concat() {
                    known if known.is_empty() => "none is allowed here".to_owned(),
                    known => format!("there are {}", known.join(", ")),
                };
                return Err(ApiError::bad(format!("unknown parameter {name:?}: {known}")));
            }
            if value.is_empty() {
                return Err(ApiError::empty(name));
            }
            if is_single && self.0.iter().take(nth).any(|(earlier, _)| earlier == name) {
                return Err(ApiError::bad(format!("parameter {name:?} is given more than once")));
            }
        }
        Ok(())
    }

    pub fn required(&self, name: &'static str) -> Result<&str, ApiError> {
        self.get(name).ok_or_else(|| ApiError::missing(name))
    }

    pub fn time(&self, name: &'static str) -> Result<Option<Timestamp>, ApiError> {
        if let Some(text) = self.get(name).filter(|text| time::is_out_of_range(text)) {
            let range = time::RANGE;
            return Err(ApiError::bad(format!(
                "invalid parameter {name:?}: {text:?} is out of range: times are from {range}"
            )));
        }
        self.parse(
            name,
            "a time: Unix seconds or RFC 3339, for example 2026-01-31T12:00:00Z",
            time::parse_time,
        )
    }

    /// A duration in nanoseconds, above zero.
    pub fn duration(&self, name: &'static str) -> Result<Option<i64>, ApiError> {
        self.parse(name, "a duration above zero: seconds, or for example 5m", time::parse_duration)
    }

    pub fn count(
        &self,
        name: &'static str,
        within: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ApiError> {
        let to = match within.end() {
            &usize::MAX => String::new(),
            max => format!(" to {max}"),
        };
        let what = format!("a whole number from {}{to}", within.start());
        self.parse(name, &what, |text| text.parse().ok().filter(|count| within.contains(count)))
    }

    /// `what` describes the expected value in the error.
    pub fn parse<T>(
        &self,
        name: &'static str,
        what: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match read(text) {
            Some(value) => Ok(Some(value)),
            None => Err(ApiError::bad(format!("invalid parameter {name:?}: {text:?} is not {what}"))),
        }
    }

    /// `end` is `now` by default, `start` one hour before `end`.
    pub fn range(&self, now: Timestamp) -> Result<TimeRange, ApiError> {
        let end = self.time("end")?.unwrap_or(now);
        let start = self.time("start")?.unwrap_or_else(|| end.saturating_sub(RANGE_DEFAULT_NS));
        if start > end {
            return Err(ApiError::bad("invalid parameter \"end\": it is before \"start\""));
        }
        Ok(TimeRange::new(start, end))
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn errors_name_parameter_and_value() {
        let fails = |pairs: &[(&str, &str)], expect: &str| {
            let error = params(pairs).range(0).unwrap_err();
            assert!(error.message.contains(expect), "{expect} in {}", error.message);
        };
        fails(&[("start", "soon")], "\"start\": \"soon\" is not a time");
        fails(
            &[("end", "9999999999")],
            "\"end\": \"9999999999\" is out of range: times are from 1677-09-21 to 2262-04-11",
        );
        fails(&[("end", "9999-12-31T00:00:00Z")], "out of range");
        fails(&[("end", "NaN")], "is not a time");
        fails(&[("end", "1x")], "\"end\": \"1x\"");
        fails(&[("start", "5"), ("end", "4")], "\"end\": it is before");
        for (text, within, expect) in [
            ("-1", 0..=usize::MAX, "\"limit\": \"-1\" is not a whole number from 0"),
            ("0", 1..=usize::MAX, "\"limit\": \"0\" is not a whole number from 1"),
            ("8", 1..=7, "\"limit\": \"8\" is not a whole number from 1 to 7"),
        ] {
            let error = params(&[("limit", text)]).count("limit", within).unwrap_err();
            assert_eq!(error.message, format!("invalid parameter {expect}"));
        }
        assert_eq!(params(&[("limit", "7")]).count("limit", 1..=7).ok(), Some(Some(7)));
    }

    #[test]
    fn unknown_empty_and_repeated_parameters_are_named() {
        let known = ["service"];
        for (pairs, known, expect) in [
            (&[("service", "a"), ("rule", "1"), ("rule", "2")][..], &known[..], None),
            (&[], &[], None),
            (&[("servise", "a")], &known, Some("unknown parameter \"servise\": there are service, rule")),
            (&[("a\u{1b}", "1")], &[], Some("unknown parameter \"a\\u{1b}\": none is allowed here")),
            (
                &[("service", "a"), ("rule", "")],
                &known,
                Some("parameter \"rule\" is empty: give a value or omit it"),
            ),
            (
                &[("service", "a"), ("rule", "1"), ("service", "a")],
                &known,
                Some("parameter \"service\" is given more than once"),
            ),
        ] {
            let lists: &[&str] = if known.is_empty() { &[] } else { &["rule"] };
            let said = params(pairs).only(known, lists).err().map(|error| error.message);
            assert_eq!(said.as_deref(), expect, "{pairs:?}");
        }
    }

    #[tokio::test]
    async fn parameters_are_counted_before_they_are_parsed() {
        let ask = async |query: String, form: String| {
            let request = axum::http::Request::post(format!("/x?{query}"))
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")
                .body(Body::from(form));
            let params = Params::from_request(request.unwrap(), &()).await;
            params.map(|params| params.0.len()).map_err(|error| (error.status.as_u16(), error.message))
        };
        let most = PARAMETERS_MAX;
        assert_eq!(ask("a=1&b".into(), "c=%26&".repeat(most - 2)).await, Ok(most));
        let refused = Err((400, "2049 parameters are over 2048: send several requests".to_owned()));
        assert_eq!(ask("a=1&b".into(), "c&".repeat(most - 1)).await, refused);
        assert_eq!(ask("&a".repeat(most + 1), String::new()).await, refused);
    }

    #[test]
    fn parameters_that_are_not_utf8_are_refused_with_their_number() {
        for (query, expect) in [
            ("match[]=a%C3%A9%EF%BF%BD&b=%2B%", None),
            ("b=%zz&c=%F&d=%%41", None),
            ("a=1&match[]=%7Ba%3D%22%FF%22%7D", Some("parameter 2 is not UTF-8")),
            ("%C3=1", Some("parameter 1 is not UTF-8")),
            ("a=%C3&b=%A9", Some("parameter 1 is not UTF-8")),
        ] {
            let uri = Uri::try_from(format!("/x?{query}")).unwrap();
            assert_eq!(Params::from_uri(&uri).err().map(|e| e.message).as_deref(), expect, "{query}");
        }
    }

    #[test]
    fn start_defaults_to_one_hour_before_end() {
        let range = params(&[("end", "7200")]).range(0).unwrap();
        assert_eq!(range, TimeRange::new(3_600_000_000_000, 7_200_000_000_000));
    }
}
