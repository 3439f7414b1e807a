//! Reads JSON (RFC 8259) in place: objects, arrays, strings, numbers, booleans and null.
//!
//! Numbers stay text until their type is known, so that 64-bit integers and floats stay exact.

use std::borrow::Cow;

/// Maximum depth of arrays and objects that are skipped.
const DEPTH_MAX: usize = 32;

/// An error in a line. `at` is its position, bytes from the beginning of the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) reason: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
}

#[derive(Clone)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn fault<T>(&self, reason: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { at: self.at, reason: reason.into() })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blank(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    pub(super) fn peek(&mut self) -> Option<u8> {
        self.blank();
        self.rest().bytes().next()
    }

    /// Skips blanks, then consumes `byte` if it is next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.take(byte) { Ok(()) } else { self.fault(format!("{:?} is missing", char::from(byte))) }
    }

    /// Calls `each` for every element. `each` must consume the element.
    pub(super) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Calls `each` with every name. The cursor is at the value; `each` must consume the value.
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':')?;
            each(self, name)?;
            if !self.take(b',') {
                return self.expect(b'}');
            }
        }
    }

    pub(super) fn scalar(&mut self) -> Result<Scalar<'a>, Fault> {
        match self.peek() {
            Some(b'"') => self.string().map(Scalar::Text),
            Some(b'-' | b'0'..=b'9') => self.number().map(Scalar::Number),
            _ => {
                for (word, scalar) in
                    [("null", Scalar::Null), ("true", Scalar::Bool(true)), ("false", Scalar::Bool(false))]
                {
                    if self.rest().starts_with(word) {
                        self.at += word.len();
                        return Ok(scalar);
                    }
                }
                self.fault("a text, a number, a boolean or null is missing")
            }
        }
    }

    fn number(&mut self) -> Result<&'a str, Fault> {
        let rest = self.rest();
        let end = rest.bytes().position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let number = rest.get(..end.unwrap_or(rest.len())).unwrap_or("");
        self.at += number.len();
        Ok(number)
    }

    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.expect(b'"')?;
        let rest = self.rest();
        let Some(end) = rest.bytes().position(|b| b == b'"' || b == b'\\') else {
            return self.fault("text without a closing quote");
        };
        let plain = rest.get(..end).unwrap_or("");
        self.at += end;
        if self.rest().starts_with('"') {
            self.at += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut out = plain.to_owned();
        loop {
            let mut rest = self.rest().chars();
            match rest.next() {
                None => return self.fault("text without a closing quote"),
                Some('"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(out));
                }
                Some('\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                Some(char) => {
                    self.at += char.len_utf8();
                    out.push(char);
                }
            }
        }
    }

    /// Reads the character after a backslash.
    fn escape(&mut self) -> Result<char, Fault> {
        let Some(char) = self.rest().chars().next() else { return self.fault("text ends after a backslash") };
        self.at += char.len_utf8();
        Ok(match char {
            '"' | '\\' | '/' => char,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode(),
            _ => return self.fault(format!("{char:?} cannot be escaped")),
        })
    }

    /// Reads the four hexadecimal digits after `\u`. For a character above U+FFFF, also reads the second escape of the pair.
    fn unicode(&mut self) -> Result<char, Fault> {
        let first = self.hex4()?;
        let code = match first {
            0xD800..=0xDBFF => {
                if !self.rest().starts_with("\\u") {
                    return self.fault("unpaired surrogate");
                }
                self.at += 2;
                let second = self.hex4()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return self.fault("unpaired surrogate");
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            code => code,
        };
        match char::from_u32(code) {
            Some(char) => Ok(char),
            None => self.fault("unpaired surrogate"),
        }
    }

    fn hex4(&mut self) -> Result<u32, Fault> {
        let digits = self.rest().get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.map_or_else(|| self.fault("four hexadecimal digits are missing"), Ok)
    }

    /// Skips a value of any kind and returns a cursor at its beginning.
    pub(super) fn skip(&mut self) -> Result<Self, Fault> {
        self.blank();
        let begin = self.clone();
        self.skip_deep(0)?;
        Ok(begin)
    }

    fn skip_deep(&mut self, depth: usize) -> Result<(), Fault> {
        if depth > DEPTH_MAX {
            return self.fault(format!("more than {DEPTH_MAX} levels"));
        }
        match self.peek() {
            Some(b'[') => self.array(|cursor| cursor.skip_deep(depth + 1)),
            Some(b'{') => self.object(|cursor, _| cursor.skip_deep(depth + 1)),
            _ => self.scalar().map(|_| ()),
        }
    }

    /// Checks that only blanks follow.
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fault("bytes after the object"),
        }
    }

    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// The text from the current position to the position of `end`.
    pub(super) fn until(&self, end: &Self) -> &'a str {
        self.text.get(self.at..end.at).unwrap_or("")
    }
}
