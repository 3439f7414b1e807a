//! Refuses cross-origin requests sent by a web page through the browser of a user who can reach this server.
//!
//! A private network does not protect against such pages. A page of any site may send POST requests to the server or load a
//! path of the server as an image. It may even read responses, by binding its own host name to the server's address (DNS
//! rebinding).
//!
//! | requests of a browser | the header that shows that a request is cross-origin |
//! |---|---|
//! | all | `Host` is not a known name (DNS rebinding) |
//! | POST, and `fetch` across origins | `Origin` is not the origin of this server |
//! | to https and loopback | `Sec-Fetch-Site` is neither `same-origin` nor `none` |
//! | to http on other addresses | `Referer` is missing or not of this server. Our own page sends it (`guard.rs`) |
//!
//! Clients other than browsers (curl, Prometheus, Grafana's server, agents) send none of the last three headers. They are
//! accepted.

use axum::http::{HeaderMap, Method, Version, header};

use super::error::ApiError;

pub const APPLICATION_JSON: &[u8] = b"application/json";

/// Classes of routes by the origins that may use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Health checks: allowed from all origins.
    Health,
    /// The page, its files, and unknown paths: also allowed when the user follows a link of another site.
    Page,
    /// Routes that are expensive, or read or change data: not allowed from other origins.
    Data,
}

impl Reach {
    pub fn of(route: &str) -> Self {
        match route {
            "/healthz" | "/readyz" => Self::Health,
            "/" | "/assets/{*path}" | "other" => Self::Page,
            _ => Self::Data,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Names {
    /// In lower case.
    known: Vec<String>,
    loopback: bool,
}

impl Names {
    /// Accepts the machine's own names and the `configured` ones. If the server does not listen on loopback, also accepts names
    /// without a dot, because such names cannot be registered in the public DNS.
    pub fn new(configured: &[String], loopback: bool) -> Self {
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let short = own.split('.').next().unwrap_or_default().to_owned();
        let all = configured.iter().chain([&own, &short]).map(|name| name.trim().to_ascii_lowercase());
        Self { known: all.filter(|name| !name.is_empty()).collect(), loopback }
    }

    /// Whether this server accepts the value of `Host`. Addresses are always accepted, because DNS rebinding needs a name.
    fn has(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name == "localhost"
            || address.parse::<std::net::IpAddr>().is_ok()
            || self.known.contains(&name)
            || (!self.loopback && !name.is_empty() && !name.contains('.'))
    }

    /// Refuses requests to an unknown host name, requests with several origins, and cross-origin requests. [`check_host`] has
    /// checked that there is at most one `Host`.
    pub fn check(&self, reach: Reach, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
        if reach == Reach::Health {
            return Ok(());
        }
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
        // Only a request of HTTP/1.0 has no `Host`. Every browser sends one.
        let host = text(header::HOST);
        if let Some(host) = host.filter(|host| !self.has(host)) {
            let message = format!(
                "host {host:?} is not a name of this server: use its address, or add the name to allowed-hosts"
            );
            return Err(ApiError::forbidden(message));
        }
        let foreign = |who: &str| {
            let message = format!("{who} may not use this server: use the page of this server, or a program");
            Err(ApiError::forbidden(message))
        };
        let is_ours = |url: &str| {
            let authority = url.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
            host.is_some() && authority == host
        };
        if headers.get_all(header::ORIGIN).iter().count() > 1 {
            return Err(ApiError::forbidden("the request has several origins"));
        }
        // An origin that is not text cannot be this server's, so it counts as that of another page.
        let origin = headers.get(header::ORIGIN).map(|value| value.to_str().unwrap_or("?"));
        if let Some(origin) = origin.filter(|origin| !is_ours(origin)) {
            return foreign(&format!("a page of {origin:?}"));
        }
        let follows_link = reach == Reach::Page && method == Method::GET;
        match headers.get("sec-fetch-site").map(|v| v.as_bytes()) {
            Some(b"same-origin" | b"none") => Ok(()),
            Some(_) if follows_link => Ok(()),
            Some(_) => foreign("a page of another site"),
            None if follows_link || origin.is_some() || !is_browser(headers) => Ok(()),
            None if text(header::REFERER).is_some_and(is_ours) => Ok(()),
            None => foreign("a browser that does not send the page's origin"),
        }
    }
}

/// Refuses a request with several headers `Host`, with a `Host` that is not text, or without `Host` (RFC 9112, section 3.2).
/// HTTP/1.0 permits a request without `Host`.
pub fn check_host(version: Version, headers: &HeaderMap) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let error = match (hosts.next(), hosts.next()) {
        (Some(host), None) if host.to_str().is_ok() => return Ok(()),
        (None, _) if version < Version::HTTP_11 => return Ok(()),
        (None, _) => "the request has no header Host, which HTTP/1.1 needs",
        (Some(_), None) => "the header Host is not text",
        (Some(_), Some(_)) => "the request has several headers Host: send one",
    };
    Err(ApiError::bad(error))
}

/// Detects a browser by its name and language. Other programs may use the name of a browser, but send no language.
fn is_browser(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).map_or(&b""[..], |v| v.as_bytes());
    agent.starts_with(b"Mozilla/") && headers.contains_key(header::ACCEPT_LANGUAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};

    const BROWSER: [(&str, &str); 2] =
        [("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Chrome/140"), ("accept-language", "en")];

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::try_from(*name).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        // A name may be repeated.
        let mut all = HeaderMap::new();
        pairs.iter().map(pair).for_each(|(name, value)| _ = all.append(name, value));
        all
    }

    fn allowed(reach: Reach, loopback: bool, method: &Method, pairs: &[(&str, &str)]) -> bool {
        let names = Names::new(&["Monitor.example".to_owned()], loopback);
        names.check(reach, method, &headers(pairs)).is_ok()
    }

    #[test]
    fn unknown_host_names_are_refused_on_every_listen_address() {
        let named = |host: &str, loopback| allowed(Reach::Data, loopback, &Method::GET, &[("host", host)]);
        for host in ["127.0.0.1:7070", "localhost:7070", "[::1]:7070", "10.0.0.7", "monitor.example:7070"] {
            assert!(named(host, true) && named(host, false), "{host}");
        }
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        assert!(named(&own, true) && named(&format!("{own}.:7070"), false), "{own}");
        for host in [
            "evil.example:7070",
            "monitor.example.evil.example",
            "localhost.evil.example",
            "10.0.0.7.evil.example",
            "",
            ":7070",
            ".",
        ] {
            assert!(!named(host, true) && !named(host, false), "{host}");
        }
        assert!(!named("tacho-of-compose:7070", true) && named("tacho-of-compose:7070", false));
        for host in ["evil.example", ""] {
            assert!(allowed(Reach::Health, false, &Method::GET, &[("host", host)]));
        }
        assert!(allowed(Reach::Data, true, &Method::GET, &[]), "HTTP/1.0");
        assert!(!allowed(Reach::Data, true, &Method::GET, &[("origin", "null")]), "HTTP/1.0");
        assert!(!allowed(Reach::Data, true, &Method::GET, &[("origin", "http://")]), "HTTP/1.0");
    }

    #[test]
    fn a_request_of_http_1_1_has_one_host() {
        let host = ("host", "127.0.0.1");
        for (version, pairs, expect) in [
            (Version::HTTP_11, &[host][..], None),
            (Version::HTTP_11, &[("host", "")], None),
            (Version::HTTP_10, &[], None),
            (Version::HTTP_11, &[], Some("no header Host")),
            (Version::HTTP_10, &[host, host], Some("several headers Host")),
            (Version::HTTP_11, &[host, ("host", "")], Some("several headers Host")),
        ] {
            let error = check_host(version, &headers(pairs)).err();
            let said = error.as_ref().map(|error| (error.status.as_u16(), error.message.as_str()));
            let is_expected =
                said.map(|(status, text)| (status, expect.is_some_and(|expect| text.contains(expect))));
            assert_eq!(is_expected, expect.map(|_| (400, true)), "{version:?} {pairs:?}: {said:?}");
        }
        let bytes = HeaderMap::from_iter([(header::HOST, HeaderValue::from_bytes(b"\xff").unwrap())]);
        assert!(check_host(Version::HTTP_11, &bytes).is_err());
    }

    #[test]
    fn cross_origin_requests_are_refused_by_their_headers() {
        let asks = |reach, method: &Method, more: &[(&str, &str)]| {
            allowed(reach, false, method, &[&[("host", "10.0.0.7:7070")], more].concat())
        };
        let data = |more: &[(&str, &str)]| asks(Reach::Data, &Method::GET, more);
        assert!(
            data(&[]) && data(&[("user-agent", "curl/8.5")]) && data(&[("user-agent", "Grafana/12.0.0")])
        );
        assert!(data(&[("origin", "http://10.0.0.7:7070")]));
        for origin in ["https://evil.example", "null", "http://10.0.0.7:9999", "http://10.0.0.7"] {
            assert!(!data(&[("origin", origin)]), "{origin}");
        }
        assert!(!data(&[("origin", "http://10.0.0.7:7070"), ("origin", "http://10.0.0.7:7070")]));
        for (site, expect) in
            [("same-origin", true), ("none", true), ("cross-site", false), ("same-site", false), ("?", false)]
        {
            assert_eq!(data(&[("sec-fetch-site", site)]), expect, "{site}");
            assert!(
                asks(Reach::Page, &Method::GET, &[("sec-fetch-site", site)]),
                "a link to the page was refused: {site}"
            );
        }
        assert!(!asks(Reach::Page, &Method::POST, &[("sec-fetch-site", "cross-site")]));
        // Chromium sends `Sec-Fetch-Site` to https and to loopback, but not to http on other addresses.
        let browser = |more: &[(&str, &str)]| data(&[&BROWSER, more].concat());
        assert!(!browser(&[]) && !browser(&[("referer", "https://evil.example/10.0.0.7:7070/")]));
        assert!(
            browser(&[("referer", "http://10.0.0.7:7070/")]) && asks(Reach::Page, &Method::GET, &BROWSER)
        );
        let powershell =
            [("user-agent", "Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1")];
        assert!(data(&powershell));
    }
}
