//! Reads certificates and keys from PEM files (RFC 7468), for the server and for the commands.

use std::io;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tacho_api::printable::printable;

/// Why a file cannot be used. The message follows the name of the file.
#[derive(Debug, thiserror::Error)]
pub enum PemError {
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
    #[error("is not PEM: {}", fault(.0))]
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

const NAME_CHARS_MAX: usize = 48;

/// Shows only names of sections, because other lines of the file may be a part of a private key.
fn fault(error: &Error) -> String {
    match error {
        Error::MissingSectionEnd { end_marker } => {
            let name = String::from_utf8_lossy(end_marker);
            let name: String = printable(&name).chars().take(NAME_CHARS_MAX).collect();
            format!("the line \"-----END {name}-----\" is missing: the file may be cut off")
        }
        Error::IllegalSectionStart { .. } => {
            "a line that begins with \"-----BEGIN \" does not end with \"-----\"".to_owned()
        }
        Error::Base64Decode(_) => "a section is not in Base64".to_owned(),
        Error::NoItemsFound => "it has no section".to_owned(),
        other => other.to_string(),
    }
}

/// Limit on the size of a file. The certificates of all public authorities have less than 1 MB.
const FILE_BYTES_MAX: u64 = 16 << 20;

fn read(path: &Path) -> io::Result<Vec<u8>> {
    tacho_store::disk::read_regular(path, FILE_BYTES_MAX)
}

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

pub fn authorities(path: &Path) -> Result<RootCertStore, PemError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(PemError::Authority)?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_fault_and_never_shows_a_line_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file.pem");
        for (text, expect) in [
            (
                "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n",
                "is not PEM: the line \"-----END CERTIFICATE-----\" is missing: the file may be cut off",
            ),
            (
                "-----BEGIN CERTIFICATE--\nc2VjcmV0\n",
                "is not PEM: a line that begins with \"-----BEGIN \" does not end with \"-----\"",
            ),
            (
                "-----BEGIN CERTIFICATE-----\nsecret!\n-----END CERTIFICATE-----\n",
                "is not PEM: a section is not in Base64",
            ),
            ("secret", "holds no CERTIFICATE, a PEM file with \"-----BEGIN CERTIFICATE-----\" is needed"),
        ] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(certificates(&path).unwrap_err().to_string(), expect, "{text}");
        }
    }
}
