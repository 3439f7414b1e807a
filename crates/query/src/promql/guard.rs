//! Is this text safe to hand to the parser?
//!
//! The parser recurses over what it has read and panics on durations that do not fit. This one pass over the text bounds
//! both, and the number of patterns, and knows the position of a fault, which the parser does not. What it lets through
//! may still be no PromQL.

use std::borrow::Cow;

use crate::Error;

use super::Limits;

/// Seconds that fit into an `i64` of nanoseconds.
const DURATION_SECONDS_MAX: f64 = 9_223_372_036.0;
/// Digits of one number of a duration, so that it fits into the parser's `u32`.
const DURATION_DIGITS_MAX: usize = 9;
/// The same for milliseconds: [`narrowed`] turns many into seconds.
const MILLISECONDS_DIGITS_MAX: usize = 13;

/// Checks length, nesting, number of operators and patterns, and durations.
pub fn check(text: &str, limits: &Limits) -> Result<(), Error> {
    if text.len() > limits.query_bytes_max {
        return Err(Error::limit("bytes of text", text.len() as u128, limits.query_bytes_max));
    }
    let mut guard = Guard { limits, open: Vec::new(), operators: 0, patterns: 0, after_offset: false };
    let mut scanner = Scanner::new(text);
    while let Some(token) = scanner.next()? {
        guard.see(&token).map_err(|error| error.at(token.at))?;
    }
    match guard.open.last() {
        Some((bracket, at)) => Err(Error::bad_data(format!("unclosed {bracket:?}")).at(*at)),
        None => Ok(()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Word,
    /// Starts with a digit: a number or a duration.
    Number,
    Text,
    Symbol,
}

pub struct Token<'t> {
    pub kind: Kind,
    pub text: &'t str,
    /// First byte.
    pub at: usize,
}

/// Splits text into words, numbers, strings and symbols; knows no grammar.
pub struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub fn next(&mut self) -> Result<Option<Token<'t>>, Error> {
        self.skip_blank();
        let rest = &self.text[self.at..];
        let mut chars = rest.chars();
        let Some(first) = chars.next() else { return Ok(None) };
        let second = chars.next().unwrap_or(' ');
        let (kind, bytes) = match first {
            '"' | '\'' | '`' => (Kind::Text, text_bytes(rest, first).map_err(|error| error.at(self.at))?),
            'a'..='z' | 'A'..='Z' | '_' | ':' => (
                Kind::Word,
                rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c))).unwrap_or(rest.len()),
            ),
            '0'..='9' => (Kind::Number, number_bytes(rest)),
            '.' if second.is_ascii_digit() => (Kind::Number, number_bytes(rest)),
            '=' | '!' | '<' | '>' if "=~".contains(second) => (Kind::Symbol, 2),
            _ => (Kind::Symbol, first.len_utf8()),
        };
        let token = Token { kind, text: &rest[..bytes], at: self.at };
        self.at += bytes;
        Ok(Some(token))
    }

    fn skip_blank(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start().len();
            let comment = match rest[blank..].strip_prefix('#') {
                Some(comment) => 1 + comment.find(['\n', '\r']).unwrap_or(comment.len()),
                None => 0,
            };
            self.at += blank + comment;
            if comment == 0 {
                return;
            }
        }
    }
}

/// Length of the quoted string that `rest` begins with.
fn text_bytes(rest: &str, quote: char) -> Result<usize, Error> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return Ok(at + 1),
            _ => {}
        }
    }
    Err(Error::bad_data("unterminated string"))
}

/// Length of the number or duration that `rest` begins with; takes the sign of an exponent along.
fn number_bytes(rest: &str) -> usize {
    let mut previous = ' ';
    let hexadecimal = rest.starts_with("0x") || rest.starts_with("0X");
    for (at, c) in rest.char_indices() {
        let exponent_sign = "+-".contains(c) && "eE".contains(previous) && !hexadecimal;
        if !(c.is_ascii_alphanumeric() || c == '.' || exponent_sign) {
            return at;
        }
        previous = c;
    }
    rest.len()
}

/// The same query, with milliseconds that the parser would take for 0, as they are beyond its `u32`, in seconds.
/// [`check`] has passed it. What stands behind moves by one byte at most.
pub fn narrowed(text: &str) -> Cow<'_, str> {
    let mut narrowed = Cow::Borrowed(text);
    let mut moved = 0;
    let mut scanner = Scanner::new(text);
    while let Ok(Some(token)) = scanner.next() {
        let Some(numbers) = token.text.strip_suffix("ms").filter(|_| matches!(token.kind, Kind::Number))
        else {
            continue;
        };
        let from = numbers.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| last + 1);
        let Ok(milliseconds) = numbers[from..].parse::<u64>() else { continue };
        // Behind seconds there is no place for more of them.
        if u32::try_from(milliseconds).is_ok() || numbers[..from].ends_with('s') {
            continue;
        }
        let width = numbers.len() - from;
        let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
        let seconds = match rest {
            0 => format!("{seconds:0>width$}s", width = width + 1),
            rest => format!("{seconds}s{rest:03}ms"),
        };
        let at = token.at + from + moved;
        narrowed.to_mut().replace_range(at..at + width + 2, &seconds);
        moved += seconds.len() - (width + 2);
    }
    narrowed
}

struct Guard<'l> {
    limits: &'l Limits,
    open: Vec<(char, usize)>,
    operators: usize,
    patterns: usize,
    /// The word before, signs aside, was `offset`.
    after_offset: bool,
}

impl Guard<'_> {
    fn see(&mut self, token: &Token<'_>) -> Result<(), Error> {
        let after_offset = std::mem::take(&mut self.after_offset);
        match token.kind {
            Kind::Text => Ok(()),
            Kind::Number => self.see_number(token.text, after_offset),
            Kind::Word => self.see_word(token.text, after_offset),
            Kind::Symbol => {
                self.after_offset = after_offset && "+-".contains(token.text);
                self.see_symbol(token)
            }
        }
    }

    fn inside(&self, bracket: char) -> bool {
        self.open.last().is_some_and(|(open, _)| *open == bracket)
    }

    fn see_number(&self, text: &str, after_offset: bool) -> Result<(), Error> {
        let plain = text.parse::<f64>().ok();
        let is_duration = self.inside('[') || after_offset;
        if plain.is_some_and(|seconds| is_duration && seconds > DURATION_SECONDS_MAX) {
            return Err(Error::bad_data(format!("duration {text} is longer than {DURATION_SECONDS_MAX} s")));
        }
        let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
        let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
        let (longer, milliseconds) = text.strip_suffix("ms").map_or((text, ""), |numbers| {
            numbers.split_at(numbers.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |last| last + 1))
        });
        let too_long = if hexadecimal {
            is_duration && text.len() > 10
        } else {
            plain.is_none() && digits(longer) > DURATION_DIGITS_MAX
        };
        if too_long || digits(milliseconds) > MILLISECONDS_DIGITS_MAX {
            let most = if too_long { DURATION_DIGITS_MAX } else { MILLISECONDS_DIGITS_MAX };
            return Err(Error::bad_data(format!("duration {text} has a number of more than {most} digits")));
        }
        Ok(())
    }

    fn see_word(&mut self, text: &str, after_offset: bool) -> Result<(), Error> {
        match text.to_ascii_lowercase().as_str() {
            "offset" => self.after_offset = true,
            "and" | "or" | "unless" | "atan2" => return self.count_operator(),
            "inf" | "nan" if after_offset => return Err(Error::bad_data(format!("bad duration {text:?}"))),
            _ => {}
        }
        Ok(())
    }

    fn see_symbol(&mut self, token: &Token<'_>) -> Result<(), Error> {
        match token.text {
            "(" | "[" | "{" => {
                self.open.push((token.text.chars().next().unwrap_or('('), token.at));
                if self.open.len() > self.limits.nesting_max {
                    return Err(Error::limit(
                        "levels of brackets",
                        self.open.len() as u128,
                        self.limits.nesting_max,
                    ));
                }
            }
            ")" | "]" | "}" => {
                let wanted = match token.text {
                    ")" => '(',
                    "]" => '[',
                    _ => '{',
                };
                match self.open.pop() {
                    Some((open, _)) if open == wanted => {}
                    _ => return Err(Error::bad_data(format!("unexpected {:?}", token.text))),
                }
            }
            "=~" | "!~" => {
                self.patterns += 1;
                if self.patterns > self.limits.patterns_max {
                    return Err(Error::limit("patterns", self.patterns as u128, self.limits.patterns_max));
                }
            }
            "+" | "-" | "*" | "/" | "%" | "^" | "==" | "!=" | "<" | ">" | "<=" | ">="
                if !self.inside('{') =>
            {
                return self.count_operator();
            }
            _ => {}
        }
        Ok(())
    }

    fn count_operator(&mut self) -> Result<(), Error> {
        self.operators += 1;
        if self.operators > self.limits.operators_max {
            return Err(Error::limit("operators", self.operators as u128, self.limits.operators_max));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, expect: &str) {
        let error = check(text, &Limits::default()).expect_err(text).to_string();
        assert!(error.contains(expect), "{text}: {error}");
    }

    fn passes(text: &str) {
        check(text, &Limits::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    #[test]
    fn what_would_hurt_the_parser_is_refused() {
        refused("a[99999999999s]", "more than 9 digits (at character 3)");
        refused("a[99999999999999ms]", "more than 13 digits (at character 3)");
        refused("a[1e30]", "longer than");
        refused("a offset - inf", "bad duration \"inf\" (at character 12)");
        refused("a offset 1e300", "longer than");
        refused("a[0xffffffffffff]", "more than 9 digits");
        refused("sum(a", "unclosed '(' (at character 4)");
        refused("a)", "unexpected \")\" (at character 2)");
        refused("a{b=\"c", "unterminated string (at character 5)");
        refused(&"(".repeat(65), "query needs 65 levels of brackets, at most 64");
        refused(&format!("a{}", "+a".repeat(257)), "query needs 257 operators, at most 256");
        refused(&format!("{{{}}}", r#"a=~"b","#.repeat(65)), "query needs 65 patterns");
        refused(&"a".repeat(40_000), "40000 bytes of text");
    }

    #[test]
    fn milliseconds_stay_what_they_are() {
        for (text, expect) in [
            ("a[300000ms]", "a[300000ms]"),
            ("a[7862400000ms] offset 4294967296ms", "a[00007862400s] offset 4294967s296ms"),
            (
                "a[1h7862400000ms:4294967295ms] # 7862400000ms",
                "a[1h00007862400s:4294967295ms] # 7862400000ms",
            ),
            ("a{b=\"7862400000ms\"}", "a{b=\"7862400000ms\"}"),
        ] {
            assert_eq!(narrowed(text), expect);
        }
    }

    #[test]
    fn ordinary_queries_pass() {
        passes("1e10 + 0xffffffffffffff + 1234567890123 # (((");
        passes(r#"a{b="(((", c=~'\'[', d!~`\d`}[5m:1m30s] offset -1.5"#);
        passes(&format!("{}{}", "(".repeat(64), ")".repeat(64)));
        passes("é漢");
    }
}
