//! Why does the service refuse a request, and what can the user correct?
//!
//! Step before: `s3.rs` and `s3_http.rs`, which get the response. The S3 client has the status and the body of a response only in
//! the text of its errors.

use std::fmt;

/// Precedes status and body in the texts of errors.
pub const STATUS: &str = "status code: ";
/// Limit on the characters of the service's own message.
const SAID_MAX: usize = 300;

/// A response that refuses a request. A retry would get the same status.
#[derive(Debug)]
pub struct Refusal {
    service: String,
    status: String,
    code: String,
    said: String,
    remedy: String,
}

impl Refusal {
    /// Reads the refusal from the text of an error. `None` for other errors, such as a missing object or a failed connection.
    /// `address` is `s3://BUCKET/PREFIX`, `service` the address of the service.
    pub fn of(error: &str, address: &str, service: &str) -> Option<Self> {
        let (_, response) = error.split_once(STATUS)?;
        let (status, body) = response.split_once(':').unwrap_or((response, ""));
        let number: u16 = status.get(..3)?.parse().ok()?;
        let code = element(body, "Code");
        let is_missing_object = number == 404 && !code.is_empty() && code != "NoSuchBucket";
        if !(300..500).contains(&number) || matches!(number, 304 | 408 | 409 | 412 | 429) || is_missing_object
        {
            return None;
        }
        let said = element(body, "Message");
        let remedy = remedy(number, &code, &said, &element(body, "Region"), address);
        let service = service.rsplit('@').next().unwrap_or_default().to_owned();
        Some(Self { service, status: status.trim().to_owned(), code, said, remedy })
    }
}

fn remedy(status: u16, code: &str, said: &str, region: &str, address: &str) -> String {
    let other_region = || {
        let region = if region.is_empty() { "the region of the bucket" } else { region };
        format!("set AWS_REGION to {region}, or AWS_ENDPOINT_URL to the service that has the bucket")
    };
    match (code, status) {
        ("AuthorizationHeaderMalformed", _) if !said.contains("region") => "correct AWS_ACCESS_KEY_ID".into(),
        (
            "PermanentRedirect"
            | "TemporaryRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException",
            _,
        ) => other_region(),
        ("InvalidAccessKeyId", _) => {
            "correct AWS_ACCESS_KEY_ID, or AWS_ENDPOINT_URL if the key is for another service".into()
        }
        ("SignatureDoesNotMatch", _) => "correct AWS_SECRET_ACCESS_KEY".into(),
        ("InvalidToken" | "ExpiredToken" | "TokenRefreshRequired", _) => {
            "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN to new credentials".into()
        }
        ("RequestTimeTooSkewed" | "RequestExpired", _) => "correct the clock of this machine".into(),
        ("NoSuchBucket", _) => format!("create the bucket, or correct its name in {address}"),
        ("InvalidBucketName", _) => format!("correct the name of the bucket in {address}"),
        (_, 401 | 403) => {
            "permit the key in AWS_ACCESS_KEY_ID to list the bucket and to get, put, copy and delete \
             objects, or set another key"
                .into()
        }
        (_, 300..=399) => other_region(),
        (_, 404 | 405) => format!("correct AWS_ENDPOINT_URL, or the name of the bucket in {address}"),
        _ => format!("check AWS_ENDPOINT_URL, AWS_REGION and {address}"),
    }
}

/// The text of the first element with this name, without control characters. Empty if there is none.
fn element(body: &str, name: &str) -> String {
    let inner = body.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split_once("</"));
    let mut text: String =
        inner.map_or("", |(text, _)| text).chars().filter(|c| !c.is_control()).take(SAID_MAX).collect();
    for (entity, plain) in [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")] {
        text = text.replace(entity, plain);
    }
    text.trim().trim_end_matches('.').to_owned()
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, status, code, said, remedy } = self;
        write!(f, "{service} answered {status}")?;
        if !code.is_empty() {
            write!(f, ", {code}")?;
        }
        if !said.is_empty() {
            write!(f, " ({said})")?;
        }
        write!(f, ": {remedy}")
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(error: &str) -> Option<String> {
        Refusal::of(error, "s3://b/p", "https://me:secret@box:9000").map(|refusal| refusal.to_string())
    }

    #[test]
    fn a_refusal_has_the_words_of_the_service_and_a_remedy() {
        let body = |code: &str, said: &str| {
            format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>{said}</Message></Error>")
        };
        let denied = "permit the key in AWS_ACCESS_KEY_ID";
        let region = "set AWS_REGION to the region of the bucket";
        let malformed = "The authorization header is malformed";
        for (status, code, message, expect) in [
            ("403 Forbidden", "AccessDenied", "Access Denied.", denied),
            ("403 Forbidden", "InvalidAccessKeyId", "no such key", "correct AWS_ACCESS_KEY_ID"),
            ("403 Forbidden", "SignatureDoesNotMatch", "", "correct AWS_SECRET_ACCESS_KEY"),
            (
                "400 Bad Request",
                "ExpiredToken",
                "it &quot;expired&quot;",
                "AWS_SESSION_TOKEN to new credentials",
            ),
            ("403 Forbidden", "RequestTimeTooSkewed", "too large", "correct the clock of this machine"),
            ("404 Not Found", "NoSuchBucket", "", "create the bucket, or correct its name in s3://b/p"),
            ("301 Moved Permanently", "PermanentRedirect", "other endpoint", region),
            ("400 Bad Request", "AuthorizationHeaderMalformed", "the region 'a' is wrong", region),
            ("400 Bad Request", "AuthorizationHeaderMalformed", malformed, "correct AWS_ACCESS_KEY_ID"),
        ] {
            let text = said(&format!("Error in {STATUS}{status}: {}", body(code, message))).expect(code);
            assert!(text.starts_with(&format!("box:9000 answered {status}, {code}")), "{text}");
            assert!(text.contains(expect), "{text}");
            let shown = message.trim_end_matches('.').replace("&quot;", "\"");
            assert!(text.contains(&shown) && !text.contains("secret"), "{text}");
        }
        let elsewhere =
            said(&format!("{STATUS}301 Moved Permanently: <Region>eu-central-1</Region>")).unwrap();
        assert!(elsewhere.contains("set AWS_REGION to eu-central-1"), "{elsewhere}");
        for empty in ["403 Forbidden", "404 Not Found", "405 Method Not Allowed", "400 Bad Request"] {
            assert!(said(&format!("{STATUS}{empty}: ")).is_some(), "{empty}");
        }
    }

    #[test]
    fn other_errors_are_no_refusals() {
        let missing = format!("{STATUS}404 Not Found: <Error><Code>NoSuchKey</Code></Error>");
        let busy = format!("{STATUS}503 Service Unavailable: <Error><Code>SlowDown</Code></Error>");
        for other in ["connection refused", &missing, &busy, STATUS, "status code: é"] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
