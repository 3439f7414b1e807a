//! The token of the HTTP client: from `--token-file`, else from the environment. A token is never an argument of a
//! command, because other users of the machine can read arguments.

use std::fmt;
use std::path::Path;

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
pub struct Token(HeaderValue);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token of a command. `file` is the value of `--token-file`.
    ///
    /// # Errors
    /// When the file cannot be read, or the file or the variable does not contain exactly one token. The message names the
    /// source and never the text.
    pub fn of_command(file: Option<&Path>) -> Result<Option<Self>, Failure> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(file) = file {
            return Self::of_file("--token-file", file).map(Some);
        }
        match (set(VARIABLE), set(FILE_VARIABLE)) {
            (Some(text), _) => {
                let text = text.to_string_lossy();
                let token = Self::of(&text);
                token.map(Some).ok_or_else(|| Failure::usage(format!("{VARIABLE} is not a token")))
            }
            (None, Some(file)) => Self::of_file(FILE_VARIABLE, file.as_ref()).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn of_file(source: &str, path: &Path) -> Result<Self, Failure> {
        let wrong = |cause: &str| Failure::usage(format!("{source} {}: {cause}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        Self::of(&text).ok_or_else(|| wrong("the file must contain one token and nothing else"))
    }

    fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_one =
            !text.is_empty() && text.len() <= BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic());
        let mut value = HeaderValue::from_str(&format!("Bearer {text}")).ok().filter(|_| is_one)?;
        value.set_sensitive(true);
        Some(Self(value))
    }

    pub const fn header(&self) -> &HeaderValue {
        &self.0
    }
}

/// Whether others in the network can read a token that is sent to this address without TLS.
pub fn is_on_network(authority: &str) -> bool {
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host != "localhost" && !address.is_ok_and(|address| address.is_loopback())
}

/// The hint for an answer that concerns the token.
pub fn hint(status: StatusCode, said: Option<&Value>) -> Option<String> {
    let kind = said.and_then(|said| said["errorType"].as_str()).unwrap_or_default();
    match (status, kind) {
        (StatusCode::UNAUTHORIZED, _) => Some(format!(
            "give a valid token with {VARIABLE} or --token-file; `tacho token add` on the machine of the server makes one"
        )),
        (StatusCode::FORBIDDEN, "forbidden") => {
            let message = said.and_then(|said| said["error"].as_str()).unwrap_or_default();
            message.starts_with("token ").then(|| {
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
        let token = Token::of(" tacho_secret\n").unwrap();
        assert_eq!(token.header().as_bytes(), b"Bearer tacho_secret");
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
        for text in ["", " ", "a b", "a\nb", "\u{f6}", &"a".repeat(BYTES_MAX + 1)] {
            assert!(Token::of(text).is_none(), "{text}");
        }
    }
}
