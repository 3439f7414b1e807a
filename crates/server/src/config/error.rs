//! Errors in settings.
//!
//! This file and `settings.rs` use each other, through `policy.rs`. `ConfigError::key` searches `Settings::KEYS`. Settings
//! contain the rules of `policy.rs`, which returns a `ConfigError` for a wrong rule.

use std::path::PathBuf;

use super::address::Address;
use super::settings::Settings;

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the configuration file {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    #[error("configuration file {path}: {cause}")]
    Syntax { path: PathBuf, cause: String },
    #[error("environment variable {name}={value:?}: {cause}")]
    Environment { name: String, value: String, cause: String },
    #[error(
        "{key} {address} is reachable from other machines, and clients are not authenticated over TLS: {remedy}; or listen on \
         127.0.0.1, or set insecure-listen if the network is trusted"
    )]
    Exposed { key: &'static str, address: Address, remedy: &'static str },
    #[error("http and records are both {address}: each needs its own port")]
    OneAddress { address: Address },
    #[error("{given} is set without {missing}")]
    HalfTls { given: &'static str, missing: String },
    #[error("{key} is 0, at least 1 is needed")]
    Zero { key: &'static str },
    #[error("rule {number} of [[{section}]]: {key} = {value:?}: {cause}")]
    Rule { section: &'static str, number: usize, key: &'static str, value: String, cause: String },
    /// An error about an invalid value, after parsing succeeded. `place` is the place of the value.
    #[error("{place}: {error}")]
    At { place: String, error: Box<ConfigError> },
}

impl ConfigError {
    /// The key of the setting, as in `tacho.toml`.
    pub(super) fn key(&self) -> Option<&'static str> {
        match self {
            Self::Exposed { key, .. } | Self::Zero { key } | Self::HalfTls { given: key, .. } => {
                Settings::KEYS.iter().copied().find(|known| known.replace('_', "-") == *key)
            }
            _ => None,
        }
    }

    /// The same error, with the key as in `tacho.toml` instead of the name of the flag.
    pub(super) fn in_file(mut self) -> Self {
        let in_file = self.key();
        match (&mut self, in_file) {
            (Self::Exposed { key, .. } | Self::Zero { key }, Some(in_file)) => *key = in_file,
            (Self::HalfTls { given, missing }, Some(in_file)) => {
                (*given, *missing) = (in_file, missing.replace('-', "_"));
            }
            _ => {}
        }
        self
    }
}
