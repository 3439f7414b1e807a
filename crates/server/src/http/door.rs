//! Who sends this request? Checks the credentials of a request, and notes refusals and changes in the audit log.
//!
//! `crate::access` holds the tokens. Step before: `origin.rs` has checked the origin. Step after: the handler gets the
//! [`Access`].

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::app::App;
use super::error::ApiError;
use super::origin::APPLICATION_JSON;
use super::page;
use super::params::Params;
use super::route::{Need, is_reading};
use crate::access::token::Role;
use crate::access::{Access, Gate, Reason, Refusal, Whole};

pub const COOKIE: &str = "tacho_session";
/// A page of another origin cannot send this header without a CORS permission. This server never gives one.
const OWN_HEADER: &str = "x-tacho";
/// The path that accepts a token in the parameter `p`, because some clients of InfluxDB 1 send no header `Authorization`.
const WITH_PARAMETER: &str = "/write";

/// The methods of HTTP (RFC 9110, section 9.3, and RFC 5789).
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::CONNECT,
    Method::OPTIONS,
    Method::TRACE,
    Method::PATCH,
];

/// The address of the client. A request has it in its extensions.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// What a handler did, for the audit log. A response has it in its extensions.
#[derive(Clone, Debug)]
pub struct Done(pub Value);

/// The facts of a request for the gate and the audit log.
pub struct Visit<'a> {
    pub route: &'a str,
    pub method: &'a Method,
    pub address: Option<IpAddr>,
    pub need: Need,
}

enum Credential {
    Token(String),
    Cookie(String),
}

impl<'a> Visit<'a> {
    pub fn new(app: &App, route: &'a str, method: &'a Method, uri: &Uri, address: Option<IpAddr>) -> Self {
        let unknown = if page::has(uri.path()) { Need::Nothing } else { Need::Token };
        Self { route, method, address, need: app.needs.get(route, method).unwrap_or(unknown) }
    }

    /// Method and path, for the audit log. A client can send any text as the method, so a method that HTTP does not define is
    /// `other`.
    pub fn place(&self) -> String {
        let method = if METHODS.contains(self.method) { self.method.as_str() } else { "other" };
        format!("{method} {}", self.route)
    }

    /// `None` if the request needs no access.
    ///
    /// # Errors
    /// 401 without valid credentials. 429 after too many wrong tokens. 403 if the credentials do not permit the request, or if
    /// a change with a cookie does not come from the page. 400 for several credentials, or for an unknown form of the header
    /// `Authorization`.
    pub fn enter(&self, gate: &Gate, headers: &HeaderMap, uri: &Uri) -> Result<Option<Access>, ApiError> {
        if self.need == Need::Nothing {
            return Ok(None);
        }
        if !gate.needs_tokens() {
            return gate.enter(None, (self.address, "")).map(Some).map_err(|refusal| unauthorized(&refusal));
        }
        let place = self.place();
        let client = (self.address, &*place);
        let access = match credential(headers, uri, self.route)? {
            None => gate.enter(None, client),
            Some(Credential::Token(text)) => gate.enter(Some(&text), client),
            Some(Credential::Cookie(cookie)) => {
                if !is_reading(self.method) {
                    check_own(headers)
                        .inspect_err(|error| gate.note_stranger(client, "page", &error.message))?;
                }
                gate.enter_by_session(&cookie, client)
            }
        };
        let access = access.map_err(|refusal| unauthorized(&refusal))?;
        self.check(&access)?;
        Ok(Some(access))
    }

    fn check(&self, access: &Access) -> Result<(), ApiError> {
        let role = match self.need {
            Need::Nothing | Need::Token => return Ok(()),
            Need::Write => Role::Write,
            Need::Read | Need::ReadWhole => Role::Read,
            Need::Admin => Role::Admin,
        };
        let name = access.name().unwrap_or_default();
        let (reason, error) = if !access.permits(role) {
            (Reason::Role, format!("token {name:?} does not have the role {}", role.name()))
        } else if self.need == Need::ReadWhole && access.whole().is_none() {
            let error =
                format!("token {name:?} is confined to some series, and this answer is about all series");
            (Reason::Selector, error)
        } else {
            return Ok(());
        };
        access.refuse(reason, 1, &error);
        Err(ApiError::forbidden(error))
    }

    /// Notes a request with the need [`Need::Admin`] that may have changed something.
    pub fn note(&self, gate: &Gate, access: Option<&Access>, response: &Response) {
        // A backup renews its snapshot every ten seconds. A renewal changes nothing that matters to an administrator.
        let is_noted =
            self.need == Need::Admin && !is_reading(self.method) && !self.route.ends_with("/renew");
        if !is_noted || access.is_none() {
            return;
        }
        let done = response.extensions().get::<Done>().map_or(Value::Null, |done| done.0.clone());
        let status = response.status().as_u16();
        let members = [("place", self.place().into()), ("status", json!(status)), ("done", done)];
        gate.note("changed", self.address, access, &members);
    }
}

pub fn unauthorized(refusal: &Refusal) -> ApiError {
    match refusal {
        Refusal::TooMany(seconds) => ApiError::too_many(refusal.message()).after(*seconds),
        Refusal::Missing => ApiError::unauthorized(refusal.message(), "Bearer realm=\"tachograph\""),
        _ => {
            ApiError::unauthorized(refusal.message(), "Bearer realm=\"tachograph\", error=\"invalid_token\"")
        }
    }
}

/// Checks that a request with a cookie comes from the page. A page of another origin can send neither JSON nor `X-Tacho`.
///
/// # Errors
/// 403 if the request does not come from the page.
fn check_own(headers: &HeaderMap) -> Result<(), ApiError> {
    if has_origin(headers) && (is_json(headers) || headers.contains_key(OWN_HEADER)) {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "a change with the page's cookie needs the header Origin, and JSON or the header X-Tacho: send a token instead",
    ))
}

/// `origin.rs` has compared `Origin` with `Host`.
pub fn has_origin(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN)
}

pub fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    content_type.to_ascii_lowercase().starts_with(APPLICATION_JSON)
}

/// A token in a header or parameter takes precedence over the cookie.
fn credential(headers: &HeaderMap, uri: &Uri, route: &str) -> Result<Option<Credential>, ApiError> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let in_header = values.next().map(|value| value.to_str().ok().and_then(of_header));
    let in_address = match route {
        WITH_PARAMETER => Params::from_uri(uri)?.get("p").map(ToOwned::to_owned),
        _ => None,
    };
    if values.next().is_some() || in_header.is_some() && in_address.is_some() {
        return Err(ApiError::bad("the request has several credentials: send one"));
    }
    match (in_header, in_address) {
        (Some(None), _) => {
            let forms = "\"Bearer TOKEN\", \"Token TOKEN\" or Basic with the token as password";
            Err(ApiError::bad(format!("the header Authorization has another form than {forms}")))
        }
        (Some(Some(text)), _) | (None, Some(text)) => Ok(Some(Credential::Token(text))),
        (None, None) => Ok(cookie(headers).map(Credential::Cookie)),
    }
}

fn of_header(value: &str) -> Option<String> {
    let (scheme, rest) = value.trim().split_once(' ')?;
    let rest = rest.trim();
    match &*scheme.to_ascii_lowercase() {
        "bearer" | "token" => Some(rest.to_owned()),
        "basic" => {
            let decoded = String::from_utf8(base64(rest)?).ok()?;
            decoded.split_once(':').map(|(_, password)| password.to_owned())
        }
        _ => None,
    }
}

/// Decodes base64 and base64url (RFC 4648), with or without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xfff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(out)
}

pub fn cookie(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value.to_owned())
}

impl<S: Sync> FromRequestParts<S> for Access {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let access = parts.extensions.get::<Self>().cloned();
        access.ok_or_else(|| ApiError::internal("the handler uses an access, but its route needs none"))
    }
}

/// Only a route with the need [`Need::ReadWhole`] or [`Need::Admin`] uses it.
impl<S: Sync> FromRequestParts<S> for Whole {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let access = Access::from_request_parts(parts, state).await?;
        access.whole().ok_or_else(|| ApiError::forbidden("the token is confined to some series"))
    }
}

pub struct Address(pub Option<IpAddr>);

impl<S: Sync> FromRequestParts<S> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Peer>().map(|peer| peer.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_from_all_forms_of_the_header() {
        for (value, expect) in [
            ("Bearer tacho_1", Some("tacho_1")),
            ("bearer  tacho_1 ", Some("tacho_1")),
            ("Token tacho_1", Some("tacho_1")),
            ("Basic dTp0YWNob18x", Some("tacho_1")),
            ("Basic OnRhY2hvXzE=", Some("tacho_1")),
            ("Basic !", None),
            ("Basic dGFjaG8", None),
            ("Digest x", None),
            ("tacho_1", None),
            ("", None),
        ] {
            assert_eq!(of_header(value).as_deref(), expect, "{value}");
        }
    }

    #[test]
    fn a_place_has_no_text_of_a_client() {
        let place =
            |method: &Method| Visit { route: "/write", method, address: None, need: Need::Write }.place();
        assert_eq!(place(&Method::POST), "POST /write");
        assert_eq!(place(&Method::from_bytes(b"SECRET").unwrap()), "other /write");
    }

    #[test]
    fn base64_is_decoded() {
        for (text, expect) in
            [("", Some("")), ("Zg==", Some("f")), ("Zm8", Some("fo")), ("Zm9v", Some("foo")), ("Zm9v!", None)]
        {
            assert_eq!(base64(text).as_deref(), expect.map(str::as_bytes), "{text}");
        }
    }
}
