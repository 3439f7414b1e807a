//! What of a text may reach a terminal? Names come from programs and machines that may mean no good: an escape sequence in one
//! would clear the screen, and a line break would pretend to be a line of ours.

/// The text on one line: what a terminal would not show but obey stands escaped in it, as `\n` and `\u{1b}`.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_obeyed(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// As [`printable`], of a text that may have lines and tabs.
pub fn printable_lines(text: &str) -> String {
    let kept = |part: &str| {
        let cells: Vec<String> = part.split('\t').map(printable).collect();
        cells.join("\t")
    };
    let lines: Vec<String> = text.split('\n').map(kept).collect();
    lines.join("\n")
}

/// Control characters, what separates lines, and what changes the direction of what follows (Unicode Standard Annex 9, 2).
fn is_obeyed(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (text, line, lines) in [
            ("shop größe 漢 🚀", "shop größe 漢 🚀", "shop größe 漢 🚀"),
            ("\u{1b}[2Jclear", "\\u{1b}[2Jclear", "\\u{1b}[2Jclear"),
            ("a\n\tb\r\n", "a\\n\\tb\\r\\n", "a\n\tb\\r\n"),
            ("\u{7f}\u{9b}31m\u{0}", "\\u{7f}\\u{9b}31m\\u{0}", "\\u{7f}\\u{9b}31m\\u{0}"),
            ("gpj.\u{202e}exe\u{2066}", "gpj.\\u{202e}exe\\u{2066}", "gpj.\\u{202e}exe\\u{2066}"),
            ("", "", ""),
        ] {
            assert_eq!((printable(text), printable_lines(text)), (line.to_owned(), lines.to_owned()));
            assert_eq!(printable(&printable(text)), line, "once is enough");
        }
    }
}
