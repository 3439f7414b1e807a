//! Escapes texts before they are printed to a terminal. Names come from other programs and machines, which may be
//! hostile. An escape sequence could clear the screen, and a line break could imitate a line of this program.

/// The text on one line: characters that a terminal would interpret are escaped, such as `\n` and `\u{1b}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_interpreted(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// The same as [`printable`], but keeps line breaks and tabs.
pub fn printable_lines(text: &str) -> String {
    let kept = |part: &str| {
        let cells: Vec<String> = part.split('\t').map(printable).collect();
        cells.join("\t")
    };
    let lines: Vec<String> = text.split('\n').map(kept).collect();
    lines.join("\n")
}

/// Control characters, line separators, and the explicit characters for the direction of text (Unicode Standard Annex 9, 2.1
/// to 2.5).
fn is_interpreted(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, line, lines) in [
            ("shop größe 漢 🚀", "shop größe 漢 🚀", "shop größe 漢 🚀"),
            ("\u{1b}[2Jclear", "\\u{1b}[2Jclear", "\\u{1b}[2Jclear"),
            ("a\n\tb\r\n", "a\\n\\tb\\r\\n", "a\n\tb\\r\n"),
            ("\u{7f}\u{9b}31m\u{0}", "\\u{7f}\\u{9b}31m\\u{0}", "\\u{7f}\\u{9b}31m\\u{0}"),
            ("gpj.\u{202e}exe\u{2066}", "gpj.\\u{202e}exe\\u{2066}", "gpj.\\u{202e}exe\\u{2066}"),
            ("", "", ""),
        ] {
            assert_eq!((printable(text), printable_lines(text)), (line.to_owned(), lines.to_owned()));
            assert_eq!(printable(&printable(text)), line, "a printable text has changed");
        }
    }
}
