//! Messages about errors in settings, for the server and the command line.

use std::ops::Range;

/// The expected form of a numeric setting. Numbers of bytes have no unit either.
pub const WHOLE_NUMBER: &str = "a whole number from 0 without a unit";

/// One-line message about an error in the TOML `text`: line number, column, content of the line, and `message`. `span` is the
/// place of the error, in bytes of `text`.
pub fn toml_cause(text: &str, message: &str, span: Option<Range<usize>>) -> String {
    let message = message.lines().collect::<Vec<_>>().join(", ");
    let Some(before) = span.and_then(|span| text.get(..span.start)) else { return message };
    let line = before.matches('\n').count();
    let column = before.rsplit('\n').next().map_or(0, |before| before.chars().count()) + 1;
    let shown = text.lines().nth(line).unwrap_or("").trim();
    format!("line {}, column {column}, `{shown}`: {message}", line + 1)
}
