//! HTTP for the S3 client, with the libraries that the program already has. The client's own HTTP library (reqwest) would
//! bring a second cryptographic library for TLS (aws-lc) in addition to ring.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::{BodyExt, Collected, Limited};
use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::{Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tacho_store::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::s3_lock::Lease;
use super::s3_refusal::STATUS;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest time from the start of a connection until the head of the response. It includes sending the request, for example a
/// part of an upload.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(180);

/// Limit on the body of a redirection.
const REDIRECTION_BYTES_MAX: usize = 64 << 10;

/// Sends the requests of the S3 client. Each request has its own connection, because a backup sends only a few requests for each
/// object.
#[derive(Clone)]
pub struct Connector {
    tls: TlsConnector,
    lease: Arc<Lease>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    /// The new connector sends requests that change the repository only while the lease permits changes.
    pub fn new(lease: Arc<Lease>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        // Unparsable certificates are ignored, because some systems have such certificates.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|e| Error::invalid("cannot set up TLS").caused_by(e))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), lease })
    }

    async fn connect(&self, uri: &Uri) -> io::Result<Box<dyn Stream>> {
        let host = uri.host().ok_or_else(|| io::Error::other("address has no host"))?;
        let is_encrypted = uri.scheme_str() != Some("http");
        let port = uri.port_u16().unwrap_or(if is_encrypted { 443 } else { 80 });
        // An IPv6 address is in brackets.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        if !is_encrypted {
            return Ok(Box::new(stream));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }

    async fn exchange(&self, mut request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let uri = request.uri().clone();
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, self.connect(&uri)).await;
        let stream = match connected {
            Ok(connected) => connected.map_err(|e| HttpError::new(HttpErrorKind::Connect, e))?,
            Err(late) => return Err(HttpError::new(HttpErrorKind::Timeout, late)),
        };
        let failed = |e: hyper::Error| HttpError::new(HttpErrorKind::Request, e);
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
        // The task ends with the connection, after the response has been read or dropped.
        tokio::spawn(connection);
        if !request.headers().contains_key(HOST)
            && let Some(authority) = uri.authority()
            && let Ok(host) = HeaderValue::from_str(authority.as_str())
        {
            request.headers_mut().insert(HOST, host);
        }
        if let Some(path) = uri.path_and_query().and_then(|path| path.as_str().parse().ok()) {
            *request.uri_mut() = path;
        }
        // The lease is checked as late as possible, and again before each retry, which may be minutes after the first attempt.
        if !request.method().is_safe() {
            self.lease.check().map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        }
        let response = sender.send_request(request).await.map_err(failed)?;
        if response.status().is_redirection() && response.status() != StatusCode::NOT_MODIFIED {
            return Err(HttpError::new(HttpErrorKind::Unknown, redirection(response).await));
        }
        let interrupted = |e: hyper::Error| HttpError::new(HttpErrorKind::Interrupted, e);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}

/// The error for a redirection, which the S3 client would report without the words of the service. S3 redirects to the region
/// of the bucket, but a request is signed for one region. The text has the form that `s3_refusal.rs` reads.
async fn redirection(response: Response<Incoming>) -> io::Error {
    let (head, body) = response.into_parts();
    let region = head.headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok());
    let region = region.map(|region| format!("<Region>{region}</Region>")).unwrap_or_default();
    let body = Limited::new(body, REDIRECTION_BYTES_MAX)
        .collect()
        .await
        .map(Collected::to_bytes)
        .unwrap_or_default();
    io::Error::other(format!("{STATUS}{}: {region}{}", head.status, String::from_utf8_lossy(&body)))
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        match tokio::time::timeout(ANSWER_TIME_MAX, self.exchange(request)).await {
            Ok(answered) => answered,
            Err(late) => Err(HttpError::new(HttpErrorKind::Timeout, late)),
        }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}
