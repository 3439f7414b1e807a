//! Settings from `tacho.toml`.

use std::io::ErrorKind;
use std::path::Path;

use super::{ConfigError, Settings, WHOLE_NUMBER};

/// Read when no other file is named and this one is there.
pub const DEFAULT: &str = "tacho.toml";

pub fn read(path: &Path) -> Result<Settings, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::File { path: path.into(), source })?;
    parse(path, &text)
}

/// `path` is for messages.
pub fn parse(path: &Path, text: &str) -> Result<Settings, ConfigError> {
    toml::from_str(text).map_err(|e| ConfigError::Syntax { path: path.into(), cause: cause(text, &e) })
}

/// In one line: where, what, and the line it stands in.
pub fn cause(text: &str, error: &toml::de::Error) -> String {
    let mut message = error.message().lines().collect::<Vec<_>>().join(", ");
    // What serde expects is a type of Rust.
    for number in ["usize", "u64", "u32"] {
        message = message.replace(&format!("expected {number}"), &format!("expected {WHOLE_NUMBER}"));
    }
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return message };
    let line = before.matches('\n').count();
    format!("line {}, `{}`: {message}", line + 1, text.lines().nth(line).unwrap_or("").trim())
}

/// As [`read`]; a file that does not exist says nothing.
pub fn read_if_there(path: &Path) -> Result<Settings, ConfigError> {
    match read(path) {
        Err(ConfigError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(Settings::default())
        }
        other => other,
    }
}
