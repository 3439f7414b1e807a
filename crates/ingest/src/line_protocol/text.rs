//! Which characters are escaped in the line protocol?

use std::borrow::Cow;

/// Characters that a backslash escapes in a quoted string.
pub(super) const IN_STRINGS: &[char] = &['"', '\\'];

/// Removes the backslash before each of the characters `escapable`. Any other backslash is an ordinary character.
pub(super) fn unescape<'a>(raw: &'a str, escapable: &[char]) -> Cow<'a, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw.chars().peekable();
    while let Some(char) = rest.next() {
        let escaped = rest.peek().copied().filter(|next| char == '\\' && escapable.contains(next));
        out.push(escaped.unwrap_or(char));
        if escaped.is_some() {
            rest.next();
        }
    }
    Cow::Owned(out)
}

/// Limit on the number of characters of the input that an error shows.
const SHOWN_CHARS_MAX: usize = 32;

/// Puts the beginning of some input into quotes.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes.get(..4 * SHOWN_CHARS_MAX).unwrap_or(bytes));
    let begin: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    format!("{begin:?}")
}
