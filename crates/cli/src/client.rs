//! HTTP client of the commands of `tacho`.

mod stream;
pub mod tls;
pub mod token;

use std::error::Error;
use std::fmt;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use stream::Stream;
use tls::Tls;
use token::Token;

/// Environment variable with the address of the server. Used if `--server` is not given.
pub const SERVER_VARIABLE: &str = "TACHO_URL";

/// Header with the id that the client chooses for a query (`docs/api.md`, Running queries).
const QUERY_ID: &str = "x-tacho-query";

/// Timeout of a request, except of [`Client::stream`]. Longer than the server's default time limit of a request, 60 s.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);

/// Limit on an answer that is not read part by part, bytes. Without it, a wrong or hostile server could take all memory.
const ANSWER_BYTES_MAX: usize = 512 << 20;

/// Timeout for connecting, including the TLS handshake.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);

/// A client of one server. Every request uses a new connection, except requests of a [`Connection`].
pub struct Client {
    target: Target,
    tls: Option<Tls>,
}

#[derive(Clone, Debug)]
struct Target {
    /// `HOST:PORT`.
    authority: String,
    named: Named,
    token: Option<Token>,
    query: Option<String>,
}

/// The source of the address. Hints refer to this source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Flag,
    Variable,
    /// The address was not given.
    Default,
}

/// A connection that is used for many requests, one after the other.
pub struct Connection {
    target: Target,
    sender: SendRequest<Full<Bytes>>,
    /// The task that reads and writes the socket. It ends when the sender is dropped.
    driver: JoinHandle<hyper::Result<()>>,
}

/// Why a POST over a [`Connection`] did not succeed.
#[derive(Debug)]
pub enum Refusal {
    /// The server is busy or full: retry after this time. The text is the reason given by the server.
    Later(Duration, String),
    Failed(Failure),
}

impl Client {
    /// `server` is `HOST` or `HOST:PORT`, with or without `http://` or `https://`.
    ///
    /// # Errors
    /// - When the address has another form. The message names the variable if the address is from there, and never contains a
    ///   password.
    /// - When the TLS files cannot be used.
    pub fn new(server: &str, named: Named, token: Option<Token>) -> Result<Self, Failure> {
        let (authority, is_encrypted) = authority(server).map_err(|failure| match named {
            Named::Variable => failure.within(SERVER_VARIABLE),
            Named::Flag | Named::Default => failure,
        })?;
        let tls = is_encrypted.then(Tls::of_environment).transpose()?;
        Ok(Self { target: Target { authority, named, token, query: None }, tls })
    }

    /// Gives the queries of this client an id. Only one of them can run at a time.
    pub fn set_query(&mut self, id: String) {
        self.target.query = Some(id);
    }

    /// The address of the server, if others in the network can read the token that is sent to it.
    pub fn exposes_token_to(&self) -> Option<&str> {
        let authority = &*self.target.authority;
        (self.target.token.is_some() && self.tls.is_none() && token::is_on_network(authority))
            .then_some(authority)
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        json(&self.get_text(path).await?)
    }

    pub async fn get_text(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::GET, path).await
    }

    /// Sends a POST without a body.
    pub async fn post(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::POST, path).await
    }

    pub async fn delete(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::DELETE, path).await
    }

    /// Like [`Self::post`]. The inner result is an error if the server answers 429 (Too Many Requests).
    pub async fn post_or_busy(&self, path: &str) -> Result<Result<String, Failure>, Failure> {
        let (status, text) = self.exchange_in_time(Method::POST, path).await?;
        match status {
            StatusCode::TOO_MANY_REQUESTS => Ok(Err(refused(&self.target, status, &text))),
            _ => self.successful(status, text).map(Ok),
        }
    }

    /// Like [`Self::post`]. Returns `None` on success. Returns the message of the server if its answer is a refusal that a retry
    /// does not change: a status 4xx except 408 and 429, for example because the server does not know what the path names.
    pub async fn post_or_refused(&self, path: &str) -> Result<Option<String>, Failure> {
        let (status, text) = self.exchange_in_time(Method::POST, path).await?;
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                self.successful(status, text).map(|_| None)
            }
            _ if status.is_client_error() => {
                Ok(Some(refused(&self.target, status, &text).message().to_owned()))
            }
            _ => self.successful(status, text).map(|_| None),
        }
    }

    async fn send(&self, method: Method, path: &str) -> Result<String, Failure> {
        let (status, text) = self.exchange_in_time(method, path).await?;
        self.successful(status, text)
    }

    fn successful(&self, status: StatusCode, text: String) -> Result<String, Failure> {
        if status.is_success() { Ok(text) } else { Err(asked_wrongly(&self.target, status, &text)) }
    }

    async fn exchange_in_time(&self, method: Method, path: &str) -> Result<(StatusCode, String), Failure> {
        match tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(method, path)).await {
            Ok(exchanged) => exchanged,
            Err(_) => {
                Err(Failure::new(format!("{} does not answer within {ANSWER_TIME_MAX:?}", self.target)))
            }
        }
    }

    async fn exchange(&self, method: Method, path: &str) -> Result<(StatusCode, String), Failure> {
        let mut connection = self.connect().await?;
        let response = connection.request(method, path, Bytes::new()).await?;
        let status = response.status();
        Ok((status, connection.text(response).await?))
    }

    pub async fn connect(&self) -> Result<Connection, Failure> {
        match tokio::time::timeout(CONNECT_TIME_MAX, self.connection()).await {
            Ok(connected) => connected,
            Err(_) => {
                let message = format!("no connection to {} within {CONNECT_TIME_MAX:?}", self.target);
                Err(Failure::new(message)
                    .hint(format!("{}, and check the network and firewalls", self.target.check())))
            }
        }
    }

    async fn connection(&self) -> Result<Connection, Failure> {
        let found = tokio::net::lookup_host(&self.target.authority).await.map_err(|e| {
            Failure::new(format!("cannot find the host of {}: {e}", self.target)).hint(self.target.check())
        })?;
        let found: Vec<SocketAddr> = found.collect();
        let stream = TcpStream::connect(&*found).await.map_err(|e| self.unreachable(&e))?;
        match &self.tls {
            None => self.over(stream).await,
            Some(tls) => self.over(tls.connect(&self.target.authority, stream).await?).await,
        }
    }

    async fn over<S>(&self, stream: S) -> Result<Connection, Failure>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|e| interrupted(&self.target, &e))?;
        Ok(Connection { target: self.target.clone(), sender, driver: tokio::spawn(connection) })
    }

    fn unreachable(&self, error: &io::Error) -> Failure {
        let failure = Failure::new(format!("cannot reach a server at {}: {error}", self.target));
        match error.kind() {
            io::ErrorKind::ConnectionRefused => failure.hint(self.target.is_it_running()),
            _ => failure.hint(format!("{}, and check the network and firewalls", self.target.check())),
        }
    }

    /// Sends a GET. The response can be read part by part as it arrives, without a time limit.
    pub async fn stream(&self, path: &str) -> Result<Stream, Failure> {
        let mut connection = self.connect().await?;
        let response = connection.request(Method::GET, path, Bytes::new()).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(asked_wrongly(&self.target, status, &connection.text(response).await?));
        }
        Ok(Stream { target: self.target.clone(), body: response.into_body(), _connection: connection })
    }
}

impl Connection {
    pub async fn post(&mut self, path: &str, body: Bytes) -> Result<String, Refusal> {
        let exchange = async {
            let response = self.request(Method::POST, path, body).await?;
            let (status, wait) = (response.status(), retry_after(&response));
            Ok((status, wait, self.text(response).await?))
        };
        let answer = tokio::time::timeout(ANSWER_TIME_MAX, exchange).await;
        let (status, wait, text) = match answer {
            Ok(answer) => answer.map_err(Refusal::Failed)?,
            Err(_) => {
                let message = format!("{} does not answer within {ANSWER_TIME_MAX:?}", self.target);
                return Err(Refusal::Failed(Failure::new(message)));
            }
        };
        match wait {
            _ if status.is_success() => Ok(text),
            Some(wait)
                if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) =>
            {
                Err(Refusal::Later(wait, refused(&self.target, status, &text).message().to_owned()))
            }
            _ => Err(Refusal::Failed(refused(&self.target, status, &text))),
        }
    }

    async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let mut request = Request::builder().method(method).uri(path).header(HOST, &self.target.authority);
        if let Some(token) = &self.target.token {
            request = request.header(AUTHORIZATION, token.header());
        }
        if let Some(id) = &self.target.query {
            request = request.header(QUERY_ID, id);
        }
        let request = request
            .body(Full::new(body))
            .map_err(|e| Failure::usage(format!("{path:?} is not a path: {e}")))?;
        if let Err(error) = self.sender.ready().await {
            return Err(self.ended(error).await);
        }
        match self.sender.send_request(request).await {
            Ok(response) => Ok(response),
            Err(error) => Err(self.ended(error).await),
        }
    }

    /// The failure of a request. If the connection ended first, the error of the connection is the reason.
    async fn ended(&mut self, error: hyper::Error) -> Failure {
        if (error.is_canceled() || error.is_closed())
            && let Ok(Err(cause)) = (&mut self.driver).await
        {
            return interrupted(&self.target, &cause);
        }
        interrupted(&self.target, &error)
    }

    async fn text(&self, response: Response<Incoming>) -> Result<String, Failure> {
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| {
            match error.downcast::<hyper::Error>() {
                Ok(error) => interrupted(&self.target, &error),
                Err(_) => {
                    Failure::new(format!("the answer of {} has over {ANSWER_BYTES_MAX} bytes", self.target))
                        .hint("ask for less, for example for a shorter time")
                }
            }
        });
        Ok(String::from_utf8_lossy(&body?.to_bytes()).into_owned())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.authority.fmt(f)
    }
}

impl Target {
    const fn check(&self) -> &'static str {
        match self.named {
            Named::Flag => "check the address in --server",
            Named::Variable => "check the address in TACHO_URL",
            Named::Default => "name the server with --server or TACHO_URL",
        }
    }

    const fn is_it_running(&self) -> &'static str {
        match self.named {
            Named::Flag => "is it running? start one with `tacho serve`, or check the address in --server",
            Named::Variable => {
                "is it running? start one with `tacho serve`, or check the address in TACHO_URL"
            }
            Named::Default => {
                "is it running? start one with `tacho serve`, or name another server with --server or TACHO_URL"
            }
        }
    }
}

/// Returns `HOST:PORT`, and whether the scheme is https. Errors show the address without user name and password.
fn authority(server: &str) -> Result<(String, bool), Failure> {
    let (scheme, rest) = server.split_once("://").unwrap_or(("http", server));
    let wrong = |cause: &str| Failure::usage(format!("{}: {cause}", without_credentials(server)));
    let form = "give HOST:PORT, for example http://127.0.0.1:7070";
    if server.is_empty() {
        return Err(Failure::usage("the address of the server is empty").hint(form));
    }
    if server.contains('@') {
        return Err(wrong("user name and password are not supported").hint(form));
    }
    if !matches!(scheme, "http" | "https") {
        return Err(
            wrong(&format!("unsupported scheme {scheme}, only http and https are supported")).hint(form)
        );
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if let Some((host, path)) = rest.split_once(['/', '?', '#']) {
        let first = rest.chars().nth(host.chars().count()).unwrap_or('/');
        return Err(wrong(&format!("the address must not have a path, but has {first}{path}")).hint(form));
    }
    // An IPv6 address is in brackets, so a colon inside of brackets does not separate a port.
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (rest, "7070"),
    };
    if !port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Err(wrong(&format!("port {port:?} is not a number from 1 to 65535")).hint(form));
    }
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match bare {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    if host.is_empty() || !is_host {
        return Err(wrong(&format!("{host:?} is not a host")).hint(form));
    }
    Ok((format!("{host}:{port}"), scheme == "https"))
}

/// Replaces all text between the scheme and the last `@` with `***`, because a password may have unescaped `/` and `@`.
fn without_credentials(server: &str) -> String {
    let Some((credentials, host)) = server.rsplit_once('@') else { return server.to_owned() };
    let scheme =
        credentials.split_once("://").filter(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphanumeric()));
    let scheme = scheme.map_or(String::new(), |(scheme, _)| format!("{scheme}://"));
    format!("{scheme}***@{host}")
}

/// The failure of an established connection.
fn interrupted(target: &Target, error: &hyper::Error) -> Failure {
    // In TLS 1.3 the server's refusal of a client certificate arrives after the handshake, sometimes before the request is
    // sent.
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let of_tls = |error: &&io::Error| error.get_ref().is_some_and(|cause| cause.is::<rustls::Error>());
    if let Some(error) = causes.filter_map(|cause| cause.downcast_ref::<io::Error>()).find(of_tls) {
        return tls::refused(&target.authority, error);
    }
    if error.is_parse() {
        return Failure::new(format!("{target} does not answer with HTTP: {error}"))
            .hint(format!("{}: 7070 is usually the port of HTTP, 7071 that of the agents", target.check()));
    }
    Failure::new(format!("the connection to {target} ended: {error}"))
        .hint("if this is a Tachograph server, its log says why")
}

pub fn json(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|e| {
        Failure::new(format!("the answer is not from a Tachograph server, because it is not JSON: {e}"))
            .hint("check the address of the server")
    })
}

fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let seconds = response.headers().get(hyper::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The failure of an error response. Status 400 with the error type `bad_data` means that an argument of the command is wrong,
/// such as a selector that cannot be parsed. A proxy, another program, or a server that requires TLS may send another 400, which
/// is no argument error.
fn asked_wrongly(target: &Target, status: StatusCode, body: &str) -> Failure {
    let failure = refused(target, status, body);
    let is_judged = serde_json::from_str::<Value>(body).is_ok_and(|said| said["errorType"] == "bad_data");
    if status == StatusCode::BAD_REQUEST && is_judged { failure.into_usage() } else { failure }
}

/// Limit on the characters of a response that a message shows.
const ANSWER_CHARS_MAX: usize = 200;

/// The failure of an error response: the message of the server, or the first line of the response of another program.
fn refused(target: &Target, status: StatusCode, body: &str) -> Failure {
    let said: Option<Value> = serde_json::from_str(body).ok();
    if let Some(error) = said.as_ref().and_then(|v| v["error"].as_str()) {
        let failure = match &target.token {
            Some(token) if token::is_refused(status, error) => Failure::new(error).within(token.source()),
            _ => Failure::new(error),
        };
        return match token::hint(status, said.as_ref()) {
            Some(hint) => failure.hint(hint),
            None => failure,
        };
    }
    let line = body.lines().next().unwrap_or("").trim();
    let line: String = line.chars().take(ANSWER_CHARS_MAX).collect();
    let is_text = !line.is_empty() && !line.starts_with(['<', '{', '[']);
    if line.starts_with("this port requires TLS") {
        return Failure::new(format!("{target}: {line}"));
    }
    let line = if is_text { format!(": {line}") } else { String::new() };
    Failure::new(format!("{target} answers {status}{line}"))
        .hint(format!("{}: no API of Tachograph answers there", target.check()))
}

/// The characters to encode: all except the unreserved ones of RFC 3986.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes a part of a path, or the value of a parameter (RFC 3986).
pub fn encoded(part: &str) -> String {
    utf8_percent_encode(part, &RESERVED).to_string()
}

/// Builds `path?name=value&...` from the given parameters, percent-encoded (RFC 3986).
pub fn path<'a>(path: &str, params: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut out = path.to_owned();
    for (name, value) in params {
        if let Some(value) = value {
            out.push(if out.contains('?') { '&' } else { '?' });
            out.push_str(name);
            out.push('=');
            out.push_str(&encoded(value));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_parameters_are_encoded() {
        for (server, authority) in [
            ("http://127.0.0.1:7070/", "127.0.0.1:7070"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("http://box", "box:7070"),
            ("[::1]:5", "[::1]:5"),
            ("[::1]", "[::1]:7070"),
            ("https://box", "box:7070"),
        ] {
            assert_eq!(
                Client::new(server, Named::Flag, None).unwrap().target.authority,
                authority,
                "{server}"
            );
        }
        let params = [("a", Some("x y{ö}")), ("b", None), ("c", Some("1"))];
        assert_eq!(path("/p", params), "/p?a=x%20y%7B%C3%B6%7D&c=1");
    }

    #[test]
    fn wrong_addresses_are_explained_without_their_password() {
        for (server, expect) in [
            ("ftp://x", "ftp://x: unsupported scheme ftp, only http and https are supported"),
            ("ht tp://x", "ht tp://x: unsupported scheme ht tp, only http and https are supported"),
            ("http://a:1/api?x", "http://a:1/api?x: the address must not have a path, but has /api?x"),
            ("a:1?x", "a:1?x: the address must not have a path, but has ?x"),
            ("http://a:99999", "http://a:99999: port \"99999\" is not a number from 1 to 65535"),
            ("a:0", "a:0: port \"0\" is not a number from 1 to 65535"),
            ("a:", "a:: port \"\" is not a number from 1 to 65535"),
            ("", "the address of the server is empty"),
            (":7070", ":7070: \"\" is not a host"),
            ("http://", "http://: \"\" is not a host"),
            ("a b:1", "a b:1: \"a b\" is not a host"),
            ("::1", "::1: \":\" is not a host"),
            ("[x]:1", "[x]:1: \"[x]\" is not a host"),
            ("http://me:s3cret@box:1", "http://***@box:1: user name and password are not supported"),
            ("me:s3cret@box", "***@box: user name and password are not supported"),
            ("http://me:s3/cr@et@box/x", "http://***@box/x: user name and password are not supported"),
            ("https://me:s3cret@box", "https://***@box: user name and password are not supported"),
            ("me:s3cret@http://x@box", "***@box: user name and password are not supported"),
            ("me:s3cret@http://box", "***@http://box: user name and password are not supported"),
        ] {
            let failure = Client::new(server, Named::Flag, None).err().unwrap();
            assert_eq!(failure.message(), expect, "{server}");
            assert_eq!(failure.exit_code(), Failure::usage("").exit_code(), "{server}");
        }
    }

    fn target() -> Target {
        Target { authority: "a:1".into(), named: Named::Flag, token: None, query: None }
    }

    #[test]
    fn answers_of_other_programs_are_recognised() {
        for (body, expect) in [
            ("<html>no</html>", "a:1 answers 404 Not Found"),
            ("", "a:1 answers 404 Not Found"),
            ("{}", "a:1 answers 404 Not Found"),
            ("no such\nthing", "a:1 answers 404 Not Found: no such"),
        ] {
            let failure = refused(&target(), StatusCode::NOT_FOUND, body);
            assert_eq!(failure.message(), expect, "{body}");
            assert!(failure.to_string().ends_with("no API of Tachograph answers there"), "{body}");
        }
        let failure = refused(&target(), StatusCode::BAD_REQUEST, "this port requires TLS: use https://\n");
        assert_eq!(failure.to_string(), "error: a:1: this port requires TLS: use https://");
        assert_eq!(
            refused(&target(), StatusCode::NOT_FOUND, r#"{"error":"no trace"}"#).to_string(),
            "error: no trace"
        );
    }

    #[test]
    fn only_the_server_itself_judges_an_argument_as_wrong() {
        let code = |status: StatusCode, body: &str| asked_wrongly(&target(), status, body).exit_code();
        let failed = Failure::new("").exit_code();
        let said = |kind: &str| format!(r#"{{"status":"error","errorType":"{kind}","error":"no"}}"#);
        assert_eq!(code(StatusCode::BAD_REQUEST, &said("bad_data")), Failure::usage("").exit_code());
        assert_eq!(code(StatusCode::BAD_REQUEST, "<html>Bad Request</html>"), failed);
        assert_eq!(code(StatusCode::BAD_REQUEST, r#"{"error":"no"}"#), failed);
        assert_eq!(code(StatusCode::PAYLOAD_TOO_LARGE, &said("bad_data")), failed);
        assert_eq!(code(StatusCode::UNPROCESSABLE_ENTITY, &said("execution")), failed);
    }

    #[test]
    fn a_lasting_refusal_of_a_renewal_differs_from_a_busy_server() {
        use std::io::{Read, Write};

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&listener.local_addr().unwrap().to_string(), Named::Flag, None).unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let cases =
            [(200, None), (401, Some(())), (403, Some(())), (404, Some(())), (429, None), (503, None)];
        for (status, refused) in cases {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let mut head = [0; 1_024];
                    assert!(stream.read(&mut head).unwrap() > 0);
                    let head = format!("HTTP/1.1 {status} x\r\nContent-Length: 2\r\n\r\n{{}}");
                    stream.write_all(head.as_bytes()).unwrap();
                });
                let answered = runtime.block_on(client.post_or_refused("/renew"));
                assert_eq!(answered.unwrap_or(None).map(drop), refused, "{status}");
            });
        }
    }
}
