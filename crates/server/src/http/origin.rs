//! Is it a page of somebody else that asks, through the browser of a person who can reach this server?
//!
//! A server on the loopback address is not out of reach for such a page: it may post to it from any site, and by
//! binding its own name to 127.0.0.1 (DNS rebinding) it may even read the answers.

use axum::http::{HeaderMap, header};

use super::error::ApiError;

/// Refuses a request that a foreign page sent, and on loopback one that was sent to a foreign name.
pub fn check(headers: &HeaderMap, loopback: bool) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let host = text(header::HOST).unwrap_or("");
    if loopback && !is_local(host) {
        let message = format!("host {host:?} is not a name of this machine: use localhost or the address");
        return Err(ApiError::forbidden(message));
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, authority)| authority) != Some(host) => {
            Err(ApiError::forbidden(format!("a page of {origin:?} may not use this server")))
        }
        _ => Ok(()),
    }
}

/// `localhost` or an IP address, with or without a port; absent as in HTTP/1.0.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    host.is_empty() || name.eq_ignore_ascii_case("localhost") || address.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn allowed(host: &'static str, origin: Option<&'static str>, loopback: bool) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static(host));
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        }
        check(&headers, loopback).is_ok()
    }

    #[test]
    fn foreign_pages_are_refused() {
        assert!(allowed("127.0.0.1:7070", None, true));
        assert!(allowed("localhost:7070", Some("http://localhost:7070"), true));
        assert!(allowed("[::1]:7070", None, true));
        assert!(!allowed("evil.example:7070", None, true));
        assert!(allowed("monitor.example:7070", None, false));
        assert!(!allowed("127.0.0.1:7070", Some("https://evil.example"), true));
        assert!(!allowed("127.0.0.1:7070", Some("null"), true));
        assert!(!allowed("127.0.0.1:7070", Some("http://127.0.0.1:9999"), true));
    }
}
