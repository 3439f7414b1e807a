//! Reads certificates and keys from PEM files (RFC 7468), for the server and for the commands.

use std::fs;
use std::io;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why a file cannot be used. The message follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("is not PEM: {0:?}")]
    Syntax(Error),
    #[error("holds no {0}, a PEM file with \"-----BEGIN {0}-----\" is needed")]
    Empty(&'static str),
    #[error("holds a certificate that cannot be an authority: {0}")]
    Authority(rustls::Error),
}

/// All certificates of a file, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&fs::read(path)?).collect();
    match found.map_err(PemError::Syntax)? {
        none if none.is_empty() => Err(PemError::Empty("CERTIFICATE")),
        found => Ok(found),
    }
}

/// The first private key of a file: PKCS #8, PKCS #1 or SEC 1.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    PrivateKeyDer::from_pem_slice(&fs::read(path)?).map_err(|error| match error {
        Error::NoItemsFound => PemError::Empty("PRIVATE KEY"),
        error => PemError::Syntax(error),
    })
}

/// The certificates of a file as authorities.
pub fn authorities(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(PemError::Authority)?;
    }
    Ok(roots)
}
