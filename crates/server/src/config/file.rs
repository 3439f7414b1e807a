//! Settings from `tacho.toml`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tacho_api::settings::toml_cause;
use toml::de::DeTable;

use super::error::ConfigError;
use super::settings::Settings;
use super::wording::reworded;

/// This file is read if it exists and no other file is named.
pub const DEFAULT: &str = "tacho.toml";

/// The text is kept to find the line of a key.
#[derive(Default)]
pub struct Source {
    path: PathBuf,
    text: String,
}

pub fn read(path: &Path) -> Result<(Settings, Source), ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::File { path: path.into(), source })?;
    parse(path, text)
}

/// Parses the text of a file. `path` is for messages.
pub fn parse(path: &Path, text: String) -> Result<(Settings, Source), ConfigError> {
    let source = Source { path: path.into(), text };
    let settings = toml::from_str(&source.text).map_err(|e| ConfigError::Syntax {
        path: path.into(),
        cause: toml_cause(&source.text, &reworded(e.message()), e.span()),
    })?;
    Ok((settings, source))
}

/// The same as [`read`], but a missing file gives no settings.
pub fn read_if_there(path: &Path) -> Result<(Settings, Source), ConfigError> {
    match read(path) {
        Err(ConfigError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(Default::default())
        }
        other => other,
    }
}

impl Source {
    /// Adds the file and the line of the key to an error.
    pub fn locate(&self, error: ConfigError) -> ConfigError {
        let place = match &error {
            ConfigError::Rule { section, number, key, .. } => self.of_rule(section, *number, key),
            error => error.key().and_then(|key| self.of_key(key)),
        };
        let Some(start) = place else { return error };
        let (path, line) = (self.path.display(), 1 + self.text[..start].matches('\n').count());
        ConfigError::At {
            place: format!("configuration file {path}: line {line}"),
            error: Box::new(error.in_file()),
        }
    }

    /// The byte position of a top-level key in the file.
    fn of_key(&self, key: &str) -> Option<usize> {
        let table = DeTable::parse(&self.text).ok()?;
        table.get_ref().keys().find(|found| found.get_ref() == key).map(|found| found.span().start)
    }

    /// The byte position of a key in a rule, or of the whole rule if it lacks the key. `number` counts the rules of the section
    /// from 1.
    fn of_rule(&self, section: &str, number: usize, key: &str) -> Option<usize> {
        let table = DeTable::parse(&self.text).ok()?;
        let rules = table.get_ref().get(section)?.get_ref().as_array()?;
        let rule = rules.get(number.checked_sub(1)?)?;
        let mut keys = rule.get_ref().as_table()?.keys();
        Some(keys.find(|found| found.get_ref() == key).map_or(rule.span().start, |found| found.span().start))
    }
}
