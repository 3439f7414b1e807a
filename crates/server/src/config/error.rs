//! Why can the settings not be used?

use std::path::PathBuf;

use super::address::Address;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("configuration file {path}: {cause}")]
    Syntax { path: PathBuf, cause: String },
    #[error("environment variable {name}={value:?}: {cause}")]
    Environment { name: String, value: String, cause: String },
    #[error(
        "{key} {address} is reachable from other machines, and clients are not authenticated: set tls-cert, tls-key and \
         tls-client-ca, listen on 127.0.0.1, or set insecure-listen if the network is trusted"
    )]
    Exposed { key: &'static str, address: Address },
    #[error("{given} is set without {missing}")]
    HalfTls { given: &'static str, missing: &'static str },
    #[error("{key} is 0, at least 1 is needed")]
    Zero { key: &'static str },
    #[error("rule {number} of [[{section}]]: {key} = {value:?}: {cause}")]
    Rule { section: &'static str, number: usize, key: &'static str, value: String, cause: String },
}
