//! Settings from `tacho.toml`.

use std::io::ErrorKind;
use std::path::Path;

use tacho_api::settings::toml_cause;

use super::error::ConfigError;
use super::settings::Settings;

/// Read if it exists and no other file is named.
pub const DEFAULT: &str = "tacho.toml";

pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::File { path: path.into(), source })?;
    parse(path, &text)
}

/// `path` is for messages.
pub fn parse(path: &Path, text: &str) -> Result<Settings, ConfigError> {
    toml::from_str(text).map_err(|e| ConfigError::Syntax {
        path: path.into(),
        cause: toml_cause(text, e.message(), e.span()),
    })
}

/// As [`read`]; a missing file gives no settings.
pub fn read_if_there(path: &Path) -> Result<Settings, ConfigError> {
    match read(path) {
        Err(ConfigError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(Settings::default())
        }
        other => other,
    }
}
