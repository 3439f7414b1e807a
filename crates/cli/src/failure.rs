//! The failure of a command: the error in one or more lines, an optional hint, and an exit code for scripts.

use std::fmt;
use std::process::ExitCode;

use tacho_api::printable::printable_lines;

/// Exit codes other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The command was tried and failed.
    Failed = 1,
    /// The command was not tried, because settings or arguments are wrong. clap has the same exit code.
    Usage = 2,
    /// The command did a part of its work. The rest failed, for example because records are broken or were refused.
    Partly = 3,
    /// A signal ended the command. The code is that of a shell: 128 plus the number of SIGINT.
    Interrupted = 130,
}

#[derive(Debug)]
pub struct Failure {
    message: String,
    hint: Option<String>,
    code: Code,
}

impl Failure {
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None, code: Code::Failed }
    }

    pub fn usage(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None, code: Code::Usage }
    }

    pub fn partly(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None, code: Code::Partly }
    }

    pub const INTERRUPTED: i32 = Code::Interrupted as i32;

    pub fn interrupted(message: impl fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None, code: Code::Interrupted }
    }

    #[must_use]
    pub fn into_usage(self) -> Self {
        Self { code: Code::Usage, ..self }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds lines that show the place of the error.
    #[must_use]
    pub fn showing(self, lines: &str) -> Self {
        Self { message: format!("{}\n{lines}", self.message), ..self }
    }

    /// Puts the place before the message.
    #[must_use]
    pub fn within(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// The error without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code as u8)
    }
}

/// Formats `error: ...`, and `hint: ...` on the last line.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", printable_lines(&self.message))?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {}", printable_lines(hint)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_of_names_are_escaped() {
        let failure = Failure::new("no service \u{1b}[31mshop\nat all").hint("look at \u{9b}2J");
        let expect = "error: no service \\u{1b}[31mshop\nat all\nhint: look at \\u{9b}2J";
        assert_eq!(failure.to_string(), expect);
    }
}
