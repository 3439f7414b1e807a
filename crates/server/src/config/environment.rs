//! Settings from `TACHO_*` variables.
//!
//! Unknown variables with this prefix are ignored, because they may belong to agents in the same environment.

use std::path::PathBuf;

use super::error::ConfigError;
use super::settings::Settings;

#[derive(Default)]
pub struct Environment {
    /// `TACHO_CONFIG`: the configuration file.
    pub file: Option<PathBuf>,
    pub settings: Settings,
}

pub fn name(key: &str) -> String {
    format!("TACHO_{}", key.to_ascii_uppercase())
}

pub fn read(variables: impl IntoIterator<Item = (String, String)>) -> Result<Environment, ConfigError> {
    let mut out = Environment::default();
    let is_capital = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
    for (name, value) in variables {
        match name.strip_prefix("TACHO_").filter(|key| key.bytes().all(is_capital)) {
            None => {}
            Some("CONFIG") => out.file = Some(value.into()),
            Some(key) => {
                let set = out.settings.set(&key.to_ascii_lowercase(), &value);
                set.map_err(|cause| ConfigError::Environment { name, value, cause })?;
            }
        }
    }
    Ok(out)
}
