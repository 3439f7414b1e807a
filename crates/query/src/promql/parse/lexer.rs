//! Which token comes next? Cuts the text into words, numbers, strings and symbols, without regard to the grammar.

use super::source::Source;
use crate::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name or keyword. It may contain colons.
    Word,
    /// A number or a duration, valid or not. It starts with a digit, or with a dot and a digit.
    Number,
    /// A string with its quotes. Its escapes are not checked yet.
    Text,
    Symbol,
    End,
}

#[derive(Clone, Copy, Debug)]
pub struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
    /// Position of the token's first byte in the text of the query, counted from 0.
    pub at: usize,
}

impl Token<'_> {
    pub fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// Ignores case, as PromQL does for its keywords.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }
}

#[derive(Debug)]
pub struct Lexer<'t> {
    source: Source<'t>,
    at: usize,
    /// Whether the position is between `[` and `]`, where a colon at the start of a token is a symbol. Elsewhere the colon
    /// belongs to a name.
    in_range: bool,
}

impl<'t> Lexer<'t> {
    pub fn new(source: Source<'t>) -> Self {
        Self { source, at: 0, in_range: false }
    }

    pub fn next(&mut self) -> Result<Token<'t>, Error> {
        self.skip_blanks();
        let rest = &self.source.text[self.at..];
        let mut chars = rest.chars();
        let (first, second) = (chars.next(), chars.next().unwrap_or(' '));
        let (kind, bytes) = match first {
            None => (Kind::End, 0),
            Some(quote @ ('"' | '\'' | '`')) => (Kind::Text, self.string_bytes(rest, quote)?),
            Some(':') if self.in_range => (Kind::Symbol, 1),
            Some('a'..='z' | 'A'..='Z' | '_' | ':') => (Kind::Word, run(rest, |c| c == b':')),
            Some('0'..='9') => (Kind::Number, number_bytes(rest)),
            Some('.') if second.is_ascii_digit() => (Kind::Number, number_bytes(rest)),
            Some('=' | '!') if "=~".contains(second) => (Kind::Symbol, 2),
            Some('<' | '>') if second == '=' => (Kind::Symbol, 2),
            Some(symbol) if "()[]{},=<>+-*/%^@".contains(symbol) => (Kind::Symbol, 1),
            Some(other) => {
                return Err(self.source.error(self.at, format!("unexpected character {other:?}")));
            }
        };
        let token = Token { kind, text: &rest[..bytes], at: self.at };
        match token.text {
            "[" => self.in_range = true,
            "]" => self.in_range = false,
            _ => {}
        }
        self.at += bytes;
        Ok(token)
    }

    fn skip_blanks(&mut self) {
        let bytes = self.source.text.as_bytes();
        let mut in_comment = false;
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\n' | b'\r' => in_comment = false,
                b'#' => in_comment = true,
                _ if in_comment || is_blank(*byte) => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    /// Length of the string at the start of `rest`, including its quotes.
    fn string_bytes(&self, rest: &str, quote: char) -> Result<usize, Error> {
        let mut escaped = false;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                '\n' if quote != '`' => break,
                _ if escaped => escaped = false,
                '\\' if quote != '`' => escaped = true,
                _ if c == quote => return Ok(at + 1),
                _ => {}
            }
        }
        Err(self.source.error(self.at, format!("the string has no closing {quote}")))
    }
}

/// Length of the letters, digits, underscores and other bytes accepted by `also` at the start of `rest`.
fn run(rest: &str, also: impl Fn(u8) -> bool) -> usize {
    let ends = |byte: u8| !(byte.is_ascii_alphanumeric() || byte == b'_' || also(byte));
    rest.bytes().position(ends).unwrap_or(rest.len())
}

/// Length of the number or duration at the start of `rest`; the sign of an exponent is included.
fn number_bytes(rest: &str) -> usize {
    let is_hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    let bytes = run(rest, |byte| byte == b'.' && !is_hexadecimal);
    let mantissa = rest[..bytes].strip_suffix(['e', 'E']).filter(|_| !is_hexadecimal);
    let is_decimal = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b"._".contains(&b));
    match (mantissa, rest[bytes..].strip_prefix(['+', '-'])) {
        (Some(mantissa), Some(exponent)) if is_decimal(mantissa) => bytes + 1 + run(exponent, |_| false),
        _ => bytes,
    }
}

/// Whether a byte may separate tokens. All other white space is an error.
pub const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
