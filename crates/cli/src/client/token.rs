//! The token of the HTTP client: from `--token-file`, else from one of two variables of the environment. A token is never an
//! argument of a command, because other users of the machine can read arguments.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::HeaderValue;
use serde_json::Value;

use crate::failure::Failure;

pub const VARIABLE: &str = "TACHO_TOKEN";
pub const FILE_VARIABLE: &str = "TACHO_TOKEN_FILE";
/// Limit on the bytes of a token, the same as in the native protocol.
const BYTES_MAX: usize = tacho_ingest::wire::TOKEN_BYTES_MAX;

/// A token as the value of a header. `Debug` does not show it.
#[derive(Clone)]
pub struct Token {
    header: HeaderValue,
    /// The variable, or the option or variable with the path of the file.
    source: Arc<str>,
}

/// Why a text is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Blank,
    Lines(usize),
    Text,
}

impl Wrong {
    /// What is wrong with a variable.
    const fn of_text(self) -> &'static str {
        match self {
            Self::Blank => "is blank: set it, or unset it to send no token",
            Self::Lines(_) | Self::Text => "is not a token",
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token of a command. `file` is the value of `--token-file`.
    ///
    /// # Errors
    /// When the file cannot be read, the file or the variable does not contain exactly one token, or both variables are set and
    /// `file` is `None`. The message names the source and never the text.
    pub fn of_command(file: Option<&Path>) -> Result<Option<Self>, Failure> {
        if let Some(file) = file {
            return Self::of_file("--token-file", file).map(Some);
        }
        // A blank variable is a mistake, such as a secret that is not set. If it meant "no token", the server would refuse the
        // request because a token is missing, and the user would not learn that the variable is blank.
        let wrong = |name: &str, cause: Wrong| Failure::usage(format!("{name} {}", cause.of_text()));
        match (std::env::var_os(VARIABLE), std::env::var_os(FILE_VARIABLE)) {
            (Some(_), Some(_)) => {
                Err(Failure::usage(format!("{VARIABLE} and {FILE_VARIABLE} are both set: unset one of them")))
            }
            (Some(text), None) => {
                let token = Self::of(&text.to_string_lossy(), VARIABLE);
                token.map(Some).map_err(|cause| wrong(VARIABLE, cause))
            }
            (None, Some(file)) if file.to_string_lossy().trim().is_empty() => {
                Err(wrong(FILE_VARIABLE, Wrong::Blank))
            }
            (None, Some(file)) => Self::of_file(FILE_VARIABLE, file.as_ref()).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn of_file(source: &str, path: &Path) -> Result<Self, Failure> {
        let source = format!("{source} {}", path.display());
        let wrong = |cause: &str| Failure::usage(format!("{source}: {cause}"));
        let bytes = std::fs::read(path).map_err(|error| wrong(&error.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        Self::of(&text, &source).map_err(|cause| match cause {
            Wrong::Blank => wrong("the file is blank: put the token from `tacho token add` into it"),
            Wrong::Lines(lines) => {
                wrong(&format!("the file must contain one token and nothing else, but has {lines} lines"))
            }
            Wrong::Text => wrong("the file must contain one token and nothing else"),
        })
    }

    /// Blanks and line ends around the token are ignored.
    fn of(text: &str, source: &str) -> Result<Self, Wrong> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Wrong::Blank);
        }
        let lines = text.lines().count();
        if lines > 1 {
            return Err(Wrong::Lines(lines));
        }
        let is_one = text.len() <= BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
        let value = HeaderValue::from_str(&format!("Bearer {text}")).ok().filter(|_| is_one);
        let mut header = value.ok_or(Wrong::Text)?;
        header.set_sensitive(true);
        Ok(Self { header, source: source.into() })
    }

    pub const fn header(&self) -> &HeaderValue {
        &self.header
    }

    /// For messages, such as `TACHO_TOKEN` or `TACHO_TOKEN_FILE /etc/tacho/token`.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// Whether others in the network can read a token that is sent to this address without TLS.
pub fn is_on_network(authority: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
}

/// Whether the server refuses the token of a request, because it is not a valid one.
pub fn is_refused(status: StatusCode, error: &str) -> bool {
    status == StatusCode::UNAUTHORIZED && !error.contains(UNUSABLE)
}

/// A part of the error of a server that accepts no token at all.
const UNUSABLE: &str = "its file of tokens cannot be used";

/// The hint for an answer that concerns the token.
pub fn hint(status: StatusCode, said: Option<&Value>) -> Option<String> {
    let field = |name: &str| said.and_then(|said| said[name].as_str()).unwrap_or_default();
    match (status, field("errorType")) {
        // While the server cannot use its file of tokens, no token is valid. A new token helps only if the file is missing or
        // has no token.
        (StatusCode::UNAUTHORIZED, _) if field("error").contains(UNUSABLE) => Some(
            "on the machine of the server, its log has the fault, and `tacho check` of the data directory has the remedy".into(),
        ),
        (StatusCode::UNAUTHORIZED, _) => Some(format!(
            "give a valid token with {VARIABLE} or --token-file; `tacho token add` on the machine of the server makes one"
        )),
        (StatusCode::FORBIDDEN, "forbidden") => {
            field("error").starts_with("token ").then(|| {
                format!("use a token that permits the request: set {VARIABLE} or --token-file (see `tacho token list`)")
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_never_shown() {
        for text in [" tacho_secret\n", "tacho_secret\r\n", "\r\n\ntacho_secret"] {
            assert_eq!(
                Token::of(text, VARIABLE).unwrap().header().as_bytes(),
                b"Bearer tacho_secret",
                "{text:?}"
            );
        }
        let token = Token::of("tacho_secret", VARIABLE).unwrap();
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
        for (text, expect) in [
            ("", Wrong::Blank),
            (" \r\n\n", Wrong::Blank),
            ("a b", Wrong::Text),
            ("\u{feff}a", Wrong::Text),
            ("a\nb", Wrong::Lines(2)),
            ("a\r\n\r\nb\r\n", Wrong::Lines(3)),
            ("\u{f6}", Wrong::Text),
            (&"a".repeat(BYTES_MAX + 1), Wrong::Text),
        ] {
            assert_eq!(Token::of(text, VARIABLE).err(), Some(expect), "{text:?}");
        }
    }
}
