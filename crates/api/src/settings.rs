//! Messages about errors in settings, for the server and the command line.

use std::ops::Range;

/// The expected form of a numeric setting. Numbers of bytes have no unit either.
pub const WHOLE_NUMBER: &str = "a whole number from 0 without a unit";

/// One-line message about an error in the TOML `text`: line number, content of the line, and `message`. `span` is the
/// place of the error, in bytes of `text`.
pub fn toml_cause(text: &str, message: &str, span: Option<Range<usize>>) -> String {
    let mut message = message.lines().collect::<Vec<_>>().join(", ");
    // The message of serde names the expected Rust type.
    for number in ["usize", "u64", "u32"] {
        message = message.replace(&format!("expected {number}"), &format!("expected {WHOLE_NUMBER}"));
    }
    let Some(before) = span.and_then(|span| text.get(..span.start)) else { return message };
    let line = before.matches('\n').count();
    format!("line {}, `{}`: {message}", line + 1, text.lines().nth(line).unwrap_or("").trim())
}
