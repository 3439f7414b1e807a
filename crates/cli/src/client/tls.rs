//! TLS of the HTTP client: the trusted authorities, and the certificate of the client.
//!
//! Environment variables name the PEM files of the certificates.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tacho_server::tls::pem;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::failure::Failure;

/// Variable that names the file of certificate authorities that are trusted instead of the authorities of the system.
pub const CA: &str = "TACHO_TLS_CA";
/// Value of [`CA`] that selects the authorities of the system, like an unset [`CA`]. Agents, which read the same variable, need
/// this value, because they use TLS only if the variable or `tls_ca` is set.
const SYSTEM: &str = "system";
/// Variables that name the files of the client's certificate and its key.
pub const CERT: &str = "TACHO_TLS_CLIENT_CERT";
pub const KEY: &str = "TACHO_TLS_CLIENT_KEY";

#[derive(Clone)]
pub struct Tls(TlsConnector);

impl Tls {
    /// # Errors
    /// When a file cannot be used, or only one of certificate and key is named. The message names the variables.
    /// When [`CA`] names no file and the system has no authorities.
    pub fn of_environment() -> Result<Self, Failure> {
        let ca = file(CA).filter(|path| path.as_os_str() != SYSTEM);
        Self::new(ca.as_deref(), file(CERT).as_deref(), file(KEY).as_deref())
    }

    fn new(ca: Option<&Path>, cert: Option<&Path>, key: Option<&Path>) -> Result<Self, Failure> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Failure::new)?
            .with_root_certificates(roots(ca)?);
        let config = match (cert, key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => {
                let shown = pem::certificates(cert).map_err(|error| wrong(CERT, cert, &error))?;
                let private = pem::private_key(key).map_err(|error| wrong(KEY, key, &error))?;
                builder.with_client_auth_cert(shown, private).map_err(|error| wrong(CERT, cert, &error))?
            }
            (Some(_), None) => return Err(Failure::usage(format!("{CERT} is set without {KEY}"))),
            (None, Some(_)) => return Err(Failure::usage(format!("{KEY} is set without {CERT}"))),
        };
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }

    /// Does the handshake. `authority` is `HOST:PORT`.
    pub async fn connect(&self, authority: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, Failure> {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(Failure::usage)?;
        self.0.connect(name, stream).await.map_err(|error| refused(authority, &error))
    }
}

/// The file that a variable names. An empty variable counts as unset.
fn file(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// A failure of TLS: in the handshake, or after it if the server refuses the certificate of the client.
pub fn refused(authority: &str, error: &io::Error) -> Failure {
    let failure = Failure::new(format!("no TLS connection to {authority}: {error}"));
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>());
    match cause {
        Some(rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer)) => {
            failure.hint(match file(CA) {
                Some(path) if path.as_os_str() != SYSTEM => format!(
                    "no authority in {CA}={} has signed the server's certificate: add the right authority to the file",
                    path.display()
                ),
                _ => format!("set {CA} to the file of the authority that signed the server's certificate"),
            })
        }
        Some(rustls::Error::InvalidMessage(_)) => failure.hint("the port does not use TLS: use http://"),
        Some(rustls::Error::AlertReceived(_)) => failure.hint(match file(CERT) {
            Some(path) => format!(
                "the server refuses the certificate in {CERT}={}: use one of an authority in the server's tls-client-ca",
                path.display()
            ),
            None => {
                format!("the server requires a certificate of an authority that it trusts: set {CERT} and {KEY}")
            }
        }),
        Some(rustls::Error::InvalidCertificate(CertificateError::Other(other)))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            failure.hint("the server uses the certificate of an authority (CA:TRUE): create a server certificate with CA:FALSE")
        }
        _ => failure,
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, Failure> {
    if let Some(path) = ca {
        return pem::authorities(path).map_err(|error| wrong(CA, path, &error));
    }
    let mut roots = RootCertStore::empty();
    // Some systems have certificates that cannot be parsed. They are ignored.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Failure::new("this system has no certificate authorities")
            .hint(format!("install ca-certificates, or name a file in {CA}")));
    }
    Ok(roots)
}

fn wrong(variable: &str, path: &Path, cause: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!("{variable}={}: {cause}", path.display()))
}
