//! How is a text written as a JSON string? The writers of JSON lines, of bodies of declared records and of broken rows of a
//! Parquet file call [`put`].

use std::fmt::Write;

/// Appends `text` in quotes (RFC 8259, section 7).
pub fn put(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a string cannot fail.
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
