//! Reads certificates and keys from PEM files (RFC 7468), for the server and for the commands.

use std::io;
use std::path::{Path, PathBuf};

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
    #[error(
        "holds a private key that is encrypted with a password ({mark}), which is not supported; \
         decrypt it: openssl pkey -in {path} -out decrypted.key, then chmod 600 decrypted.key"
    )]
    Encrypted { mark: &'static str, path: PathBuf },
    #[error("holds a certificate that cannot be an authority: {0}")]
    Authority(rustls::Error),
}

/// Limit on the size of a file. The certificates of all public authorities have less than 1 MB.
const FILE_BYTES_MAX: u64 = 16 << 20;

fn read(path: &Path) -> io::Result<Vec<u8>> {
    tacho_store::disk::read_regular(path, FILE_BYTES_MAX)
}

/// All certificates of a file, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, PemError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(path)?).collect();
    match found.map_err(PemError::Syntax)? {
        none if none.is_empty() => Err(PemError::Empty("CERTIFICATE")),
        found => Ok(found),
    }
}

/// Marks of encrypted private keys: PKCS #8 (RFC 5958), and the older form (RFC 1421).
const ENCRYPTED: [&str; 2] = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];

/// The first private key of a file: PKCS #8, PKCS #1 or SEC 1.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, PemError> {
    let bytes = read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| {
        let text = String::from_utf8_lossy(&bytes);
        match (ENCRYPTED.into_iter().find(|mark| text.contains(mark)), error) {
            (Some(mark), _) => PemError::Encrypted { mark, path: path.to_owned() },
            (None, Error::NoItemsFound) => PemError::Empty("PRIVATE KEY"),
            (None, error) => PemError::Syntax(error),
        }
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
