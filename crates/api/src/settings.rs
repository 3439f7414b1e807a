//! Messages about errors in settings, for the server and the command line.

use std::ops::Range;

/// The expected form of a setting that is a whole number. Numbers of bytes have no unit either.
pub const WHOLE_NUMBER: &str = "a whole number from 0 without a unit";

const LINE_CHARS_SHOWN: usize = 200;

/// One-line message about an error in the TOML `text`: line number, column, content of the line, and `message`. `span` is the
/// place of the error, in bytes of `text`. Without `span`, the result is only `message`.
pub fn toml_cause(text: &str, message: &str, span: Option<Range<usize>>) -> String {
    let message = shown(&message.lines().collect::<Vec<_>>().join(", "), usize::MAX);
    let Some(before) = span.and_then(|span| text.get(..span.start)) else { return message };
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |before| before.chars().count()) + 1;
    let whole = text.lines().nth(line).unwrap_or("").trim();
    format!("line {}, column {column}, `{}`: {message}", line + 1, shown(whole, LINE_CHARS_SHOWN))
}

/// The first characters of a text from a file, for a message: at most `chars_max`, then `..` if there are more. Control
/// characters are escaped. Otherwise a file could change a terminal, or add lines to a log.
pub fn shown(text: &str, chars_max: usize) -> String {
    let mut shown = String::new();
    for (number, c) in text.chars().enumerate() {
        if number == chars_max {
            shown.push_str("..");
            break;
        }
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_short_printable_line() {
        let cause = |text: &str, message: &str, at: usize| toml_cause(text, message, Some(at..at));
        assert_eq!(cause("a\n b = c\n", "wrong", 3), "line 2, column 2, `b = c`: wrong");
        assert_eq!(
            cause("\u{1b}[2J\tx", "unknown `\u{7}`\nsecond", 0),
            "line 1, column 1, `\\u{1b}[2J\\tx`: unknown `\\u{7}`, second"
        );
        let long = cause(&"é".repeat(1_000), "wrong", 0);
        assert_eq!(long, format!("line 1, column 1, `{}..`: wrong", "é".repeat(LINE_CHARS_SHOWN)));
    }
}
