//! Reads the files of TLS: certificate chain, private key, certificate authorities of clients.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// Files in PEM (RFC 7468).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The server's certificate, followed by the intermediate ones.
    pub cert: PathBuf,
    /// Its private key: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
    /// If given, clients need a certificate of one of these authorities.
    pub client_ca: Option<PathBuf>,
}

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {what} {path}: {source}")]
    Read { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{what} {path} is not PEM: {source:?}")]
    Pem { what: &'static str, path: PathBuf, source: PemError },
    #[error("{what} {path} holds no {item}, a PEM file with \"-----BEGIN {item}-----\" is needed")]
    Empty { what: &'static str, path: PathBuf, item: &'static str },
    #[error("tls-key {path} may be read by every user of this machine (mode {mode:03o}): chmod 600 {path}")]
    Readable { path: PathBuf, mode: u32 },
    #[error("tls-client-ca {path} cannot be used: {cause}")]
    Authority { path: PathBuf, cause: String },
    #[error("certificate {cert} and key {key} cannot be used: {cause}")]
    Pair { cert: PathBuf, key: PathBuf, cause: String },
}

/// What tells whether a file has changed: inode, size, and times of its content and of its permissions.
pub(super) type State = Vec<Option<[i128; 4]>>;

impl Files {
    pub(super) fn state(&self) -> State {
        let state = |path: &Path| {
            let about = fs::metadata(path).ok()?;
            let time = |seconds: i64, ns: i64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
            let (content, about_it) =
                (time(about.mtime(), about.mtime_nsec()), time(about.ctime(), about.ctime_nsec()));
            Some([about.ino().into(), about.size().into(), content, about_it])
        };
        [Some(&self.cert), Some(&self.key), self.client_ca.as_ref()]
            .into_iter()
            .flatten()
            .map(|path| state(path))
            .collect()
    }

    pub(super) fn read(&self) -> Result<ServerConfig, TlsError> {
        let pair = |cause: String| TlsError::Pair { cert: self.cert.clone(), key: self.key.clone(), cause };
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| pair(error.to_string()))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(verifier(path)?),
        };
        let (cert, key) = (certificates("tls-cert", &self.cert)?, self.key()?);
        let mut config = builder.with_single_cert(cert, key).map_err(|error| pair(error.to_string()))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let (what, path) = ("tls-key", self.key.clone());
        let bytes = read(what, &path)?;
        let mode = fs::metadata(&path).map_or(0, |about| about.mode() & 0o777);
        if mode & 0o004 != 0 {
            return Err(TlsError::Readable { path, mode });
        }
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|source| match source {
            PemError::NoItemsFound => TlsError::Empty { what, path, item: "PRIVATE KEY" },
            source => TlsError::Pem { what, path, source },
        })
    }
}

fn verifier(path: &Path) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let failed = |cause: String| TlsError::Authority { path: path.to_owned(), cause };
    let mut roots = RootCertStore::empty();
    for certificate in certificates("tls-client-ca", path)? {
        roots.add(certificate).map_err(|error| failed(error.to_string()))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| failed(error.to_string()))
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(what, path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(|source| TlsError::Pem { what, path: path.to_owned(), source })?;
    if found.is_empty() {
        return Err(TlsError::Empty { what, path: path.to_owned(), item: "CERTIFICATE" });
    }
    Ok(found)
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { what, path: path.to_owned(), source })
}
