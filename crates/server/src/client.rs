//! Asks a running server over HTTP: what the commands of `tacho` use.

use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::command::Failure;

/// How long an answer may take: longer than the server's own limit on a request.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);

/// One server; every request has a connection of its own.
pub struct Client {
    /// `HOST:PORT`.
    authority: String,
}

impl Client {
    /// `server` is `HOST:PORT` or `http://HOST:PORT`.
    pub fn new(server: &str) -> Self {
        let authority = server.strip_prefix("http://").unwrap_or(server).trim_end_matches('/');
        let port =
            if authority.rsplit(']').next().is_some_and(|end| end.contains(':')) { "" } else { ":7070" };
        Self { authority: format!("{authority}{port}") }
    }

    /// The JSON at `path`.
    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        let text = self.get_text(path).await?;
        serde_json::from_str(&text).map_err(|e| {
            Failure::new(format!("http://{}{path} does not answer with JSON: {e}", self.authority))
        })
    }

    pub async fn get_text(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::GET, path).await
    }

    /// An empty POST.
    pub async fn post(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::POST, path).await
    }

    async fn send(&self, method: Method, path: &str) -> Result<String, Failure> {
        match tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(method, path)).await {
            Ok(Ok((status, text))) if status.is_success() => Ok(text),
            Ok(Ok((status, text))) => Err(refused(status, &text)),
            Ok(Err(failure)) => Err(failure),
            Err(_) => {
                Err(Failure::new(format!("{} does not answer within {ANSWER_TIME_MAX:?}", self.authority)))
            }
        }
    }

    async fn exchange(&self, method: Method, path: &str) -> Result<(StatusCode, String), Failure> {
        let unreachable = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot reach a server at {}: {e}", self.authority))
                .hint("is it running? start one with `tacho serve`, or name another with --server")
        };
        let stream = TcpStream::connect(&self.authority).await.map_err(|e| unreachable(&e))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| unreachable(&e))?;
        let driver = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .body(Empty::<Bytes>::new())
            .map_err(|e| Failure::usage(format!("{path:?} is not a path: {e}")))?;
        let response = sender.send_request(request).await.map_err(|e| unreachable(&e))?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|e| unreachable(&e))?.to_bytes();
        driver.abort();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}

/// The server's own words, where it has said any.
fn refused(status: StatusCode, body: &str) -> Failure {
    let said: Option<Value> = serde_json::from_str(body).ok();
    match said.as_ref().and_then(|v| v["error"].as_str()) {
        Some(error) => Failure::new(error),
        None => Failure::new(format!("the server answers {status}")),
    }
}

/// `path?name=value&...` of the parameters that are there, percent-encoded (RFC 3986).
pub fn path<'a>(path: &str, params: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut out = path.to_owned();
    for (name, value) in params {
        if let Some(value) = value {
            out.push(if out.contains('?') { '&' } else { '?' });
            out.push_str(name);
            out.push('=');
            value.bytes().for_each(|byte| encode(byte, &mut out));
        }
    }
    out
}

fn encode(byte: u8, out: &mut String) {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
        _ => out.push_str(&format!("%{byte:02X}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_paths() {
        for (server, authority) in [
            ("http://127.0.0.1:7070/", "127.0.0.1:7070"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("http://box", "box:7070"),
            ("[::1]:5", "[::1]:5"),
            ("[::1]", "[::1]:7070"),
        ] {
            assert_eq!(Client::new(server).authority, authority, "{server}");
        }
        let params = [("a", Some("x y{ö}")), ("b", None), ("c", Some("1"))];
        assert_eq!(path("/p", params), "/p?a=x%20y%7B%C3%B6%7D&c=1");
    }
}
