//! Which token is at the current position of the lines?

use memchr::memchr3;
use tacho_model::Value;
use tacho_model::limits::ENTRY_BYTES_MAX;

use super::number::{short_number, short_time};
use super::refused::Refused;
use super::text::{IN_STRINGS, shown, unescape};

/// Why a line is refused, and the position in the body.
#[derive(Debug)]
pub(super) struct Fault {
    at: usize,
    reason: String,
}

impl Fault {
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { at, reason: reason.into() }
    }
}

/// A slice of the body and its position. The slice is still escaped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
    /// Number of the current line, counted from 1, and the position of its start.
    line: u64,
    line_at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(input: &'a [u8]) -> Self {
        Self { input, at: 0, line: 1, line_at: 0 }
    }

    pub(super) fn refuse(&self, fault: &Fault) -> Refused {
        let column = fault.at.saturating_sub(self.line_at) + 1;
        Refused { line: self.line, column, reason: fault.reason.clone() }
    }

    /// Number of bytes read so far.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn piece(&self, from: usize) -> Piece<'a> {
        Piece { bytes: self.input.get(from..self.at).unwrap_or_default(), at: from }
    }

    fn skip(&mut self, unwanted: impl Fn(u8) -> bool) {
        let rest = self.input.get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|byte| !unwanted(*byte)).unwrap_or(rest.len());
    }

    /// Consumes `byte` if it is next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Moves to the next line that is neither empty nor a comment. Returns false at the end.
    pub(super) fn next_line(&mut self) -> bool {
        loop {
            self.skip(is_blank);
            match self.peek() {
                None => return false,
                Some(b'\n') => {
                    self.at += 1;
                    self.begin_line();
                }
                Some(b'#') => self.skip_line(),
                Some(_) => return true,
            }
        }
    }

    const fn begin_line(&mut self) {
        self.line += 1;
        self.line_at = self.at;
    }

    /// Whether the next line is not empty and begins with neither a blank nor `#`.
    pub(super) fn is_before_line(&self) -> bool {
        matches!(self.rest(), [b'\n', next, ..] if !is_blank(*next) && !matches!(next, b'\n' | b'#'))
    }

    /// Whether the next value is a string.
    #[inline]
    pub(super) fn is_before_string(&self) -> bool {
        self.peek() == Some(b'"')
    }

    pub(super) fn skip_line(&mut self) {
        self.skip(|byte| byte != b'\n');
    }

    fn rest(&self) -> &'a [u8] {
        self.input.get(self.at..).unwrap_or_default()
    }

    /// Consumes `head` and the space after it, if they are next and a field follows.
    #[inline]
    pub(super) fn take_head(&mut self, head: &[u8]) -> bool {
        let Some(behind) = self.rest().strip_prefix(head) else { return false };
        let found = matches!(behind, [b' ', field, ..] if !is_blank(*field) && *field != b'\n');
        self.at += if found { head.len() + 1 } else { 0 };
        found
    }

    /// Consumes `key` and the following `=` if they are next.
    #[inline]
    pub(super) fn take_key(&mut self, key: &[u8]) -> bool {
        let found = matches!(self.rest().strip_prefix(key), Some([b'=', ..]));
        self.at += if found { key.len() + 1 } else { 0 };
        found
    }

    /// Consumes a value if all of it is a number that takes the fast path.
    #[inline(always)]
    pub(super) fn short_number(&mut self) -> Option<Value> {
        let (value, bytes) = short_number(self.rest())?;
        let ends =
            self.rest().get(bytes).is_none_or(|byte| matches!(byte, b',' | b' ' | b'\n' | b'\r' | b'\t'));
        self.at += if ends { bytes } else { 0 };
        ends.then_some(value)
    }

    /// Consumes one space and a time of plain digits, if nothing else is left of the line. Returns the time and its position.
    #[inline]
    fn short_time(&mut self) -> Option<(i64, usize)> {
        let digits = self.rest().strip_prefix(b" ")?;
        let (time, bytes) = short_time(digits)?;
        let ends = digits.get(bytes).is_none_or(|byte| *byte == b'\n');
        let at = self.at + 1;
        self.at += if ends { 1 + bytes } else { 0 };
        ends.then_some((time, at))
    }

    /// Measurement and tags, up to the first unescaped space. Also consumes the spaces after them.
    pub(super) fn head(&mut self) -> Result<Piece<'a>, Fault> {
        let from = self.at;
        loop {
            self.at += memchr3(b' ', b'\n', b'\\', self.rest()).unwrap_or(self.rest().len());
            if self.peek() != Some(b'\\') {
                break;
            }
            self.skip_escaped();
        }
        let head = self.piece(from);
        self.skip(|byte| byte == b' ');
        match self.peek() {
            None | Some(b'\n' | b'\r') => Err(Fault::new(self.at, "line has no fields")),
            Some(_) => Ok(head),
        }
    }

    /// A field's key. Also consumes the `=` after the key.
    pub(super) fn key(&mut self) -> Result<Piece<'a>, Fault> {
        let from = self.at;
        self.scan(|byte| matches!(byte, b'=' | b',' | b' ' | b'\n'));
        let key = self.piece(from);
        if key.bytes.is_empty() {
            return Err(Fault::new(from, "field has no name"));
        }
        if self.take(b'=') {
            return Ok(key);
        }
        Err(Fault::new(from, format!("field {} has no value", shown(key.bytes))))
    }

    /// Moves to the first unescaped byte for which `ends` is true.
    fn scan(&mut self, ends: impl Fn(u8) -> bool) {
        loop {
            self.skip(|byte| byte != b'\\' && !ends(byte));
            if self.peek() != Some(b'\\') {
                return;
            }
            self.skip_escaped();
        }
    }

    /// Consumes a backslash, and the byte after it unless it is a line feed.
    fn skip_escaped(&mut self) {
        self.at += 1;
        if self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Reads an unquoted value, or a time.
    pub(super) fn token(&mut self) -> Piece<'a> {
        let from = self.at;
        self.skip(|byte| !matches!(byte, b',' | b'\n') && !is_blank(byte));
        self.piece(from)
    }

    /// Reads a string after its opening quote. The string may contain line feeds.
    pub(super) fn string(&mut self) -> Result<&'a str, Fault> {
        let from = self.at;
        let (line, line_at) = (self.line, self.line_at);
        loop {
            self.skip(|byte| !matches!(byte, b'"' | b'\\' | b'\n'));
            match self.peek() {
                Some(b'"') => break,
                Some(b'\n') => {
                    self.at += 1;
                    self.begin_line();
                }
                // A backslash escapes the next byte. Line feeds are not escaped here, because they must be counted.
                Some(_) => self.at += if self.input.get(self.at + 1) == Some(&b'\n') { 1 } else { 2 },
                None => {
                    // Refuses only this line, not all following lines.
                    (self.at, self.line, self.line_at) = (from, line, line_at);
                    return Err(Fault::new(from - 1, "string without a closing quote"));
                }
            }
        }
        let raw = self.piece(from);
        self.at += 1;
        check_string(raw)
    }

    /// Reads the time at the end of a line. Returns it and its position; `None` if the line has no time.
    pub(super) fn time(&mut self) -> Result<Option<(i64, usize)>, Fault> {
        if let Some(time) = self.short_time() {
            return Ok(Some(time));
        }
        if self.peek().is_some_and(|byte| !is_blank(byte) && byte != b'\n') {
            return Err(self.unexpected("a field"));
        }
        self.skip(is_blank);
        let token = self.token();
        if token.bytes.is_empty() && self.peek() != Some(b',') {
            return Ok(None);
        }
        let number = std::str::from_utf8(token.bytes).ok().and_then(|digits| digits.parse().ok());
        let bad = || Fault::new(token.at, format!("{} is not a time", shown(token.bytes)));
        let number = number.ok_or_else(bad)?;
        self.skip(is_blank);
        match self.peek() {
            None | Some(b'\n') => Ok(Some((number, token.at))),
            Some(_) => Err(self.unexpected("the time")),
        }
    }

    fn unexpected(&self, after: &str) -> Fault {
        let mut rest = *self;
        rest.skip_line();
        Fault::new(self.at, format!("unexpected {} after {after}", shown(rest.piece(self.at).bytes)))
    }
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r')
}

fn check_string(raw: Piece<'_>) -> Result<&str, Fault> {
    let text = std::str::from_utf8(raw.bytes).map_err(|_| Fault::new(raw.at, "string that is not UTF-8"))?;
    if text.len() <= ENTRY_BYTES_MAX {
        return Ok(text);
    }
    let bytes = unescape(text, IN_STRINGS).len();
    if bytes <= ENTRY_BYTES_MAX {
        return Ok(text);
    }
    let reason = format!("string of {bytes} bytes, at most {ENTRY_BYTES_MAX} are allowed");
    Err(Fault::new(raw.at, reason))
}
