//! Who sends? HELLO may have a token that authenticates the client (`docs/format/wire.md`).
//!
//! Step after: `crates/server/src/listen/greeting.rs` passes the token to the gate (`access/`), which finds it by its hash
//! among the tokens of the server.

use std::fmt;

use super::TOKEN_BYTES_MAX;
use crate::reader::{Flaw, Reader};

/// A token. Its text is secret: `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<str>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// The token with this text. `None` for an empty text or a text over [`TOKEN_BYTES_MAX`].
    pub fn new(text: &str) -> Option<Self> {
        (1..=TOKEN_BYTES_MAX).contains(&text.len()).then(|| Self(text.into()))
    }

    pub const fn text(&self) -> &str {
        &self.0
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, Flaw> {
        let long = reader.flaw("token that is longer than allowed");
        match reader.string()? {
            "" => Ok(None),
            text => Self::new(text).map(Some).ok_or(long),
        }
    }
}

#[cfg(test)]
mod tests {
    use tacho_model::varint::put_bytes;

    use super::*;

    #[test]
    fn a_token_has_1_to_256_bytes_and_is_never_shown() {
        let read = |text: &str| {
            let mut body = Vec::new();
            put_bytes(&mut body, text.as_bytes());
            Token::read(&mut Reader::new(&body))
        };
        let longest = "a".repeat(TOKEN_BYTES_MAX);
        assert_eq!(read(&longest), Ok(Token::new(&longest)));
        assert_eq!(read(""), Ok(None));
        assert!(read(&"a".repeat(TOKEN_BYTES_MAX + 1)).is_err());
        assert_eq!(format!("{:?}", Token::new("tacho_secret")), "Some(Token)");
    }
}
