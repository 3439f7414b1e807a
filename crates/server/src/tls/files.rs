//! Reads the files of TLS: certificate chain, private key, certificate authorities of clients.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::expiry;
use super::pem::{self, PemError};

/// Files in PEM (RFC 7468).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The server's certificate, followed by intermediate certificates.
    pub cert: PathBuf,
    /// The private key of the certificate: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
    /// If present, clients need a certificate signed by one of these authorities.
    pub client_ca: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {what} {path}: {source}")]
    Read { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{what} {path} {source}")]
    Pem { what: &'static str, path: PathBuf, source: PemError },
    #[error("tls-key {path} may be read by every user of this machine (mode {mode:03o}): chmod 600 {path}")]
    Readable { path: PathBuf, mode: u32 },
    #[error("tls-client-ca {path} cannot be used: {cause}")]
    Authority { path: PathBuf, cause: String },
    #[error("certificate {cert} and key {key} cannot be used: {cause}")]
    Pair { cert: PathBuf, key: PathBuf, cause: String },
}

pub(super) struct Loaded {
    pub config: Arc<ServerConfig>,
    /// Earliest expiry of the certificates in `tls_cert`, Unix seconds. `None` if no expiry can be read.
    pub expires: Option<i64>,
}

/// For each file the inode, and the time of the last change of its content or metadata (ctime). `None` if the file is missing.
pub(super) type State = Vec<Option<(u64, i64, i64)>>;

impl Files {
    pub(super) fn state(&self) -> State {
        let state = |path: &PathBuf| {
            let about = fs::metadata(path).ok()?;
            Some((about.ino(), about.ctime(), about.ctime_nsec()))
        };
        [&self.cert, &self.key].into_iter().chain(&self.client_ca).map(state).collect()
    }

    pub(super) fn read(&self) -> Result<Loaded, TlsError> {
        let pair = |cause: String| TlsError::Pair { cert: self.cert.clone(), key: self.key.clone(), cause };
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| pair(error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(path)?),
        };
        let cert = pem::certificates(&self.cert).map_err(failed("tls-cert", &self.cert))?;
        let expires = cert.iter().filter_map(|der| expiry::not_after(der)).min();
        if cert.first().is_some_and(is_authority) {
            tracing::warn!(
                path = %self.cert.display(),
                "tls-cert is the certificate of an authority (CA:TRUE): agents and tacho refuse it; create one with CA:FALSE"
            );
        }
        let key = self.key()?;
        let mut config = builder.with_single_cert(cert, key).map_err(|error| pair(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Loaded { config: Arc::new(config), expires })
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let path = &self.key;
        let key = pem::private_key(path).map_err(failed("tls-key", path))?;
        let mode = fs::metadata(path).map_or(0, |about| about.mode() & 0o777);
        if mode & 0o004 != 0 {
            return Err(TlsError::Readable { path: path.clone(), mode });
        }
        Ok(key)
    }
}

fn verifier(path: &Path) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let roots = pem::authorities(path).map_err(failed("tls-client-ca", path))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| TlsError::Authority { path: path.to_owned(), cause: error.to_string() })
}

/// Whether clients that verify with webpki, such as `tacho`, refuse the certificate because it is that of an authority (CA:TRUE).
fn is_authority(cert: &CertificateDer<'static>) -> bool {
    let mut roots = RootCertStore::empty();
    if roots.add(cert.clone()).is_err() {
        return false;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let Ok(verifier) = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let name = ServerName::IpAddress(Ipv4Addr::LOCALHOST.into());
    // An expired certificate gives another error, so the certificate is checked at the end of its validity.
    let at = expiry::not_after(cert).and_then(|at| u64::try_from(at).ok()).unwrap_or_default();
    let at = UnixTime::since_unix_epoch(Duration::from_secs(at));
    let verified = verifier.verify_server_cert(cert, &[], &name, &[], at);
    verified.is_err_and(|error| error.to_string().contains("CaUsedAsEndEntity"))
}

fn failed(what: &'static str, path: &Path) -> impl Fn(PemError) -> TlsError {
    move |source| match source {
        PemError::Read(source) => TlsError::Read { what, path: path.to_owned(), source },
        source => TlsError::Pem { what, path: path.to_owned(), source },
    }
}
