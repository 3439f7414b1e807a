//! HTTP client of the commands of `tacho`.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::SendRequest;
use hyper::header::HOST;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::failure::Failure;

/// Timeout of a request: longer than the server's own limit.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);

/// One server. Every request has its own connection, except those of a [`Connection`].
pub struct Client {
    /// `HOST:PORT`.
    authority: String,
}

/// A connection that is reused for many requests, one after the other.
pub struct Connection {
    authority: String,
    sender: SendRequest<Full<Bytes>>,
}

/// A temporary refusal: the server is busy or full.
#[derive(Debug)]
pub enum Refusal {
    /// Retry after this time.
    Later(Duration),
    Failed(Failure),
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
        serde_json::from_str(&text)
            .map_err(|e| Failure::new(format!("http://{}{path} does not return JSON: {e}", self.authority)))
    }

    pub async fn get_text(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::GET, path).await
    }

    /// An empty POST.
    pub async fn post(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::POST, path).await
    }

    pub async fn delete(&self, path: &str) -> Result<String, Failure> {
        self.send(Method::DELETE, path).await
    }

    async fn send(&self, method: Method, path: &str) -> Result<String, Failure> {
        match tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(method, path)).await {
            Ok(Ok((status, text))) if status.is_success() => Ok(text),
            Ok(Ok((status, text))) => Err(asked_wrongly(status, &text)),
            Ok(Err(failure)) => Err(failure),
            Err(_) => {
                Err(Failure::new(format!("{} does not answer within {ANSWER_TIME_MAX:?}", self.authority)))
            }
        }
    }

    async fn exchange(&self, method: Method, path: &str) -> Result<(StatusCode, String), Failure> {
        let mut connection = self.connect().await?;
        let response = connection.request(method, path, Bytes::new()).await?;
        let status = response.status();
        Ok((status, connection.text(response).await?))
    }

    /// A connection for many requests.
    pub async fn connect(&self) -> Result<Connection, Failure> {
        if let Some((scheme, _)) = self.authority.split_once("://") {
            return Err(Failure::usage(format!(
                "{}: unsupported scheme {scheme}, only http is supported",
                self.authority
            ))
            .hint("give HOST:PORT; for TLS, use a proxy or an SSH tunnel"));
        }
        let stream = TcpStream::connect(&self.authority).await.map_err(|e| self.unreachable(&e))?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(|e| self.unreachable(&e))?;
        // Ends when the sender is dropped.
        tokio::spawn(connection);
        Ok(Connection { authority: self.authority.clone(), sender })
    }

    fn unreachable(&self, error: &dyn std::fmt::Display) -> Failure {
        unreachable(&self.authority, error)
    }

    /// The response at `path`, part by part as it arrives. No time limit.
    pub async fn stream(&self, path: &str) -> Result<Stream, Failure> {
        let mut connection = self.connect().await?;
        let response = connection.request(Method::GET, path, Bytes::new()).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(asked_wrongly(status, &connection.text(response).await?));
        }
        Ok(Stream { authority: self.authority.clone(), body: response.into_body(), _connection: connection })
    }
}

/// A response that is still being received.
pub struct Stream {
    authority: String,
    body: Incoming,
    _connection: Connection,
}

impl Stream {
    /// The next part; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|e| {
                Failure::new(format!("{} ended its response early: {e}", self.authority))
                    .hint("its log says why")
            })?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }
}

impl Connection {
    /// Posts a body; the text of the answer.
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
                let message = format!("{} does not answer within {ANSWER_TIME_MAX:?}", self.authority);
                return Err(Refusal::Failed(Failure::new(message)));
            }
        };
        match wait {
            _ if status.is_success() => Ok(text),
            Some(wait) if status == StatusCode::SERVICE_UNAVAILABLE => Err(Refusal::Later(wait)),
            _ => Err(Refusal::Failed(refused(status, &text))),
        }
    }

    async fn request(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Response<Incoming>, Failure> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.authority)
            .body(Full::new(body))
            .map_err(|e| Failure::usage(format!("{path:?} is not a path: {e}")))?;
        self.sender.ready().await.map_err(|e| unreachable(&self.authority, &e))?;
        self.sender.send_request(request).await.map_err(|e| unreachable(&self.authority, &e))
    }

    async fn text(&self, response: Response<Incoming>) -> Result<String, Failure> {
        let body = response.into_body().collect().await;
        let body = body.map_err(|e| unreachable(&self.authority, &e))?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}

fn unreachable(authority: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot reach a server at {authority}: {error}"))
        .hint("is it running? start one with `tacho serve`, or name another with --server")
}

fn retry_after(response: &Response<Incoming>) -> Option<Duration> {
    let seconds = response.headers().get(hyper::header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// 400 with the server's `bad_data` means that an argument of the command is wrong, such as a selector that cannot be
/// parsed. A proxy or another program sent any other 400.
fn asked_wrongly(status: StatusCode, body: &str) -> Failure {
    let failure = refused(status, body);
    let is_judged = serde_json::from_str::<Value>(body).is_ok_and(|said| said["errorType"] == "bad_data");
    if status == StatusCode::BAD_REQUEST && is_judged { failure.into_usage() } else { failure }
}

/// The server's error message, if there is one.
fn refused(status: StatusCode, body: &str) -> Failure {
    let said: Option<Value> = serde_json::from_str(body).ok();
    match said.as_ref().and_then(|v| v["error"].as_str()) {
        Some(error) => Failure::new(error),
        None => Failure::new(format!("the server answers {status}")),
    }
}

/// All but the unreserved characters of RFC 3986.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `path?name=value&...` of the given parameters, percent-encoded (RFC 3986).
pub fn path<'a>(path: &str, params: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut out = path.to_owned();
    for (name, value) in params {
        if let Some(value) = value {
            out.push(if out.contains('?') { '&' } else { '?' });
            out.push_str(name);
            out.push('=');
            out.extend(utf8_percent_encode(value, &RESERVED));
        }
    }
    out
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

    #[test]
    fn only_the_server_itself_judges_an_argument_as_wrong() {
        let code = |status: StatusCode, body: &str| asked_wrongly(status, body).exit_code();
        let failed = Failure::new("").exit_code();
        let said = |kind: &str| format!(r#"{{"status":"error","errorType":"{kind}","error":"no"}}"#);
        assert_eq!(code(StatusCode::BAD_REQUEST, &said("bad_data")), Failure::usage("").exit_code());
        assert_eq!(code(StatusCode::BAD_REQUEST, "<html>Bad Request</html>"), failed);
        assert_eq!(code(StatusCode::BAD_REQUEST, r#"{"error":"no"}"#), failed);
        assert_eq!(code(StatusCode::PAYLOAD_TOO_LARGE, &said("bad_data")), failed);
        assert_eq!(code(StatusCode::UNPROCESSABLE_ENTITY, &said("execution")), failed);
    }
}
